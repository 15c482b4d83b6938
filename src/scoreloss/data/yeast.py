"""Yeast genes (Elisseeff and Weston 2001): 2,417 examples, 103 features, 14 labels, out of the ``river`` package."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.data.reading import Problems
from scoreloss.split import stratified_split

LABELS = 14
TRAIN, TEST = 1500, 917
SPLIT_SEED = 0


def read(problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``; the package is located, not imported."""
    package = importlib.util.find_spec("river")
    if package is None or package.origin is None:
        raise InputError("dataset yeast comes inside the river package: pip install 'scoreloss[bench]'")
    path = Path(package.origin).parent / "datasets" / "yeast.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            header = next(lines).strip().split(",")
            table = np.loadtxt(lines, delimiter=",").reshape(TRAIN + TEST, len(header))
    except (OSError, EOFError, StopIteration, ValueError) as problem:
        raise InputError(f"{path} cannot be read ({problem}): install river again") from problem
    targets = table[:, -LABELS:] == 1
    train, test = stratified_split(targets, [TRAIN, TEST], seed=SPLIT_SEED)
    return {
        "inputs": table[:, :-LABELS],
        "targets": targets,
        "labels": tuple(header[-LABELS:]),
        "splits": {"train": train, "test": test},
        "notes": (
            f"The split is ours: {TRAIN:,} and {TEST} examples as in the classic one, stratified, seed {SPLIT_SEED}. "
            "The classic split itself cannot be had from the package, whose rows are in another order.",
        ),
    }
