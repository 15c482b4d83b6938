"""What a person wants to know of a dataset before anything is trained on it, beside what the paper says of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.data.dataset import Dataset, file_digest

RARE = 10
"""A label with fewer examples is called rare."""

PAPER: dict[str, dict[str, float]] = {
    "movie_posters": {"examples": 37632, "labels": 28, "cardinality": 2.2},
    "arxiv": {"examples": 26558, "labels": 155, "cardinality": 1.9},
    "chemical_exposure": {"examples": 3661, "labels": 38, "cardinality": 6.1},
    "cancer_hallmarks": {"examples": 1582, "labels": 33, "cardinality": 3.5},
    "voc": {"examples": 9963, "labels": 20, "cardinality": 1.6},
    "coco": {"examples": 122218, "labels": 80, "cardinality": 2.9},
}
"""The paper's table of datasets, by format: examples, classes, and its label count."""


def statistics(dataset: Dataset) -> dict[str, Any]:
    """Counts of examples and labels, labels an example and their share of all, rows without, inputs that come again.

    ``duplicates`` are the examples whose input is, to the byte, that of an earlier one.
    """
    n, c = dataset.targets.shape
    counts = dataset.targets.sum(axis=0)
    positives = int(counts.sum())
    return {
        "examples": n,
        "labels": c,
        "cardinality": positives / n,
        "density": positives / (n * c),
        "empty": int((~dataset.targets.any(axis=1)).sum()),
        "duplicates": _duplicates(dataset),
        "rare": {
            dataset.labels[k]: int(counts[k]) for k in np.argsort(counts, kind="stable") if counts[k] < RARE
        },
    }


def _duplicates(dataset: Dataset) -> int:
    if isinstance(dataset.inputs, np.ndarray):
        return _repeats((row + 0.0).tobytes() for row in dataset.inputs)
    if dataset.kind == "text":
        return _repeats(dataset.inputs)
    by_size: dict[int, list[Path]] = {}
    for path in map(Path, dataset.inputs):
        by_size.setdefault(path.stat().st_size, []).append(path)
    return sum(_repeats(map(file_digest, paths)) for paths in by_size.values() if len(paths) > 1)


def _repeats(values: Iterable[Any]) -> int:
    seen: set[Any] = set()
    count = 0
    for value in values:
        count += value in seen
        seen.add(value)
    return count
