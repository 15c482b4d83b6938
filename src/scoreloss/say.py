"""How a long computation tells what it does, to whoever wants to know. Knows nothing of terminals."""

from __future__ import annotations

from typing import Protocol


class Say(Protocol):
    """Tells the person at the terminal one line; one that is ``counting`` takes the place of the one before."""

    def __call__(self, line: str, *, counting: bool = False) -> None:
        """Say it."""


def silent(line: str, *, counting: bool = False) -> None:
    """Say nothing."""
