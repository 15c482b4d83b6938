"""What is said when an argument is wrong: one line with its name, what it was, and what it may be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """A wrong argument, option or file. The command line prints it as one line."""


def one_of(argument: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a value that is not among the allowed ones, with the nearest of them."""
    names = list(allowed)
    if isinstance(value, (str, type(None))) and value in names:
        return
    near = difflib.get_close_matches(str(value), [n for n in names if n], n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(f"{argument} is {value!r}: {hint}it may be {', '.join(map(str, names))}")


def number_from(argument: str, value: Any, low: float, *, strict: bool = False) -> None:
    """Refuse what is not a finite number of at least ``low`` (above it if ``strict``)."""
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    inside = real and (value > low if strict else value >= low)
    if not inside or value == float("inf"):
        bound = f"above {low:g}" if strict else f"at least {low:g}"
        raise InputError(f"{argument} is {value!r}: it must be a number {bound}")
