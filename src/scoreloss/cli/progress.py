"""What the commands share: how they are added, and how they tell what they do."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


class Progress:
    """Lines on standard error; on a terminal, what counts up stays on one line."""

    def __init__(self) -> None:
        self._open_line = False

    def say(self, line: str, *, counting: bool = False) -> None:
        """One line; one that is ``counting`` takes the place of the one before."""
        if counting and sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
            self._open_line = True
            return
        self.end()
        print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Close the line that counts, if one is open."""
        if self._open_line:
            print(file=sys.stderr)
        self._open_line = False
