"""Where a seed trains, chooses and is judged. It knows no loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError
from scoreloss.data import Dataset
from scoreloss.split import stratified_split

TEST_SHARE = 0.2
"""Of a dataset without a test part of its own."""

VALIDATION_SHARE = 0.2
"""Of what is left for training and validation."""

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Where one seed trains, chooses and is judged: indices of examples."""

    train: Indices
    validation: Indices
    test: Indices

    @property
    def pool(self) -> Indices:
        """All that is not for the test, in the order of the dataset."""
        return np.sort(np.concatenate([self.train, self.validation]))


def split_for(dataset: Dataset, seed: int) -> Split:
    """The dataset's own parts where it has them; the others are cut by the seed, stratified."""
    if "validation" in dataset.splits:
        return Split(*(np.asarray(dataset.splits[part]) for part in ("train", "validation", "test")))
    if "test" in dataset.splits:
        pool, test = np.asarray(dataset.splits["train"]), np.asarray(dataset.splits["test"])
    else:
        pool, test = _cut(dataset, np.arange(len(dataset.targets)), TEST_SHARE, seed)
    return Split(*_cut(dataset, pool, VALIDATION_SHARE, seed), test)


def _cut(dataset: Dataset, rows: Indices, share: float, seed: int) -> tuple[Indices, Indices]:
    size = round(share * len(rows))
    if not 0 < size < len(rows):
        raise InputError(f"dataset {dataset.name} has {len(rows)} examples to split: that is too few")
    rest, part = stratified_split(dataset.targets[rows], [len(rows) - size, size], seed=seed)
    return rows[rest], rows[part]


def split_record(dataset: Dataset, splits: Mapping[int, Split]) -> dict[str, Any]:
    """All splits of a benchmark, as JSON can hold them."""
    return {
        "dataset": dataset.name,
        "data_hash": dataset.content_hash,
        "seeds": {
            str(seed): {part: getattr(split, part).tolist() for part in ("train", "validation", "test")}
            for seed, split in splits.items()
        },
    }


def splits_of(record: Mapping[str, Any]) -> dict[int, Split]:
    """The splits of a record."""
    return {
        int(seed): Split(**{part: np.array(rows, np.intp) for part, rows in parts.items()})
        for seed, parts in record["seeds"].items()
    }
