"""What is said when an argument is wrong: one line with its name, what it was, and what it may be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.scores import SCORES, Score

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]


class InputError(ValueError):
    """A wrong argument, option or file. The command line prints it as one line."""


def reason_of(problem: BaseException) -> str:
    """The first line of what an exception says; its name where it says nothing."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)


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
    real = isinstance(value, Real) and not isinstance(value, bool)
    inside = real and (value > low if strict else value >= low)
    if not inside or not np.isfinite(value):
        bound = f"above {low:g}" if strict else f"at least {low:g}"
        raise InputError(f"{argument} is {value!r}: it must be a number {bound}")


def as_array(argument: str, value: Any) -> NDArray[Any]:
    """Numbers as an array; a tensor is taken from its graph and its device."""
    if hasattr(value, "tocsr"):
        raise InputError(
            f"{argument} must be dense: it is a {type(value).__name__}, which .toarray() makes so"
        )
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.itemsize == 2 else value
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{argument} must be an array: the rows have different lengths") from None
    except TypeError:
        raise InputError(f"{argument} must be an array of numbers: it is a {type(value).__name__}") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{argument} must hold numbers: the type is {array.dtype}")
    return array


def checked_targets(targets: ArrayLike) -> Booleans:
    """Targets (n, c) of 0 and 1 as booleans."""
    y = as_array("targets", targets)
    check_matrix(y.shape, y.dtype)
    return as_booleans(y)


def check_matrix(shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse targets that are no matrix, or have no entry."""
    if len(shape) != 2:
        raise InputError(
            f"targets have shape {shape} and type {dtype}: they must be a 0/1 matrix (examples, labels)"
        )
    if 0 in shape:
        raise InputError(f"targets have shape {shape}: there must be an example and a label")


def as_booleans(
    targets: NDArray[Any], mask: Booleans | None = None, start: tuple[int, int] = (0, 0)
) -> Booleans:
    """A block of 0/1 targets as booleans; what is masked may be anything and becomes False.

    ``start`` is the place of the block, for what is said.
    """
    y = targets if mask is None else np.where(mask, targets, 0)
    if y.dtype == bool:
        return y
    odd = (y != 0) & (y != 1)
    if odd.any():
        row, label = np.argwhere(odd)[0]
        place = f"{row + start[0]}, {label + start[1]}"
        raise InputError(f"targets[{place}] is {y[row, label]}: targets must be 0 or 1")
    return y.astype(bool)


def checked_thresholds(thresholds: ArrayLike, labels: int, dtype: Any) -> Floats:
    """A threshold for all labels, or one for each, rounded as scores of a type are."""
    t = rounded_like(as_array("thresholds", thresholds), dtype)
    if t.shape not in ((), (labels,)) or np.isnan(t).any():
        raise InputError(
            f"thresholds have shape {t.shape}: a number or one for each of {labels} labels is needed, none NaN"
        )
    return t


def rounded_like(thresholds: ArrayLike, dtype: Any) -> Floats:
    """Thresholds as float64, rounded to float32 where scores are: 0.7 shall find a score of 0.7."""
    t = np.asarray(thresholds, np.float64)
    return t.astype(dtype).astype(np.float64) if dtype in (np.float16, np.float32) else t


def formula_of(score: str | Score) -> Score:
    """A score by its name, or a function that has been tried on plain numbers."""
    if not callable(score):
        one_of("score", score, SCORES)
        return SCORES[score]
    name = getattr(score, "__name__", "a function")
    try:
        value = score(1.0, 2.0, 3.0, 5.0, lambda num, den, power=1: num / den**power)
    except Exception as problem:
        raise InputError(
            f"score {name} fails on plain numbers ({problem}): it must be a function of (tp, fp, fn, tn, div)"
        ) from problem
    if not isinstance(value, Real):
        raise InputError(f"score {name} gives {value!r} on plain numbers: it must give a number")
    return score
