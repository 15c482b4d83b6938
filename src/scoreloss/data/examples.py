"""What the loaders gather: examples with their labels, one at a time, and the parts of a ``Dataset`` made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.data.reading import Problems

PARTS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""What the parts of a dataset are called, and what they are called here."""


class Examples:
    """Examples in the order in which they are found; an id that comes again is reported and skipped."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._rows: dict[str, int] = {}
        self._inputs: list[Any] = []
        self._labels: list[list[int]] = []
        self._columns: dict[str, int] = {}
        self._parts: dict[str, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self, where: object, name: str, value: Any, labels: Iterable[str], part: str | None = None
    ) -> None:
        """An example by its id, and the part of the split that it belongs to, if any."""
        if name in self._rows:
            self.problems.add(str(where), "an id that was there before, skipped", name)
            return
        row = self._rows[name] = len(self._rows)
        self._inputs.append(value)
        self._labels.append([self._columns.setdefault(label, len(self._columns)) for label in labels])
        if part is not None:
            self._parts[part].append(row)

    def parts(self, source: object, labels: Sequence[str] | None = None) -> dict[str, Any]:
        """The parts of a ``Dataset``, the labels in the order given, else in that of the alphabet."""
        if not self._rows or not (labels or self._columns):
            missing = "label" if self._rows else "example"
            found = self.problems.lines()
            raise InputError(f"{source} gives no {missing}" + (f": {found[0]}" if found else ""))
        names = sorted(self._columns) if labels is None else list(labels)
        place = {name: column for column, name in enumerate(names)}
        column_of = np.array([place[name] for name in self._columns], dtype=np.intp)
        targets = np.zeros((len(self._rows), len(names)), bool)
        for row, columns in enumerate(self._labels):
            targets[row, column_of[columns]] = True
        splits = {part: np.array(rows) for part, rows in self._parts.items()}
        return {
            "inputs": tuple(self._inputs),
            "targets": targets,
            "labels": tuple(names),
            "ids": tuple(self._rows),
            "splits": splits if {"train", "test"} <= set(splits) else {},
        }
