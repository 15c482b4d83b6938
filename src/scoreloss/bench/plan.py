"""What is to be trained: the cells of a benchmark, and the packs that are trained together."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError, one_of
from scoreloss.data import Dataset
from scoreloss.split import stratified_split
from scoreloss.torch import LOSSES

PROTOCOL = 3
"""Rises when the same cell would give other numbers; results of an older protocol are trained again."""

PAPER_LOSSES = ("bce", "focal", "asymmetric", "unbounded_f1", "sigmoid_f1")
INITS = ("priors", "default")
HEADS: dict[str, tuple[int, ...]] = {"linear": (), "mlp": (256,)}
"""The widths of the hidden layers, with ReLU after each, under the linear layer that gives the logits."""

VALIDATION_SHARE = 0.2


@dataclass(frozen=True)
class Settings:
    """How every cell of a benchmark is trained."""

    head: str = "mlp"
    epochs: int = 60
    batch_size: int = 256
    learning_rate: float = 0.003
    weight_decay: float = 0.0
    init: str = "priors"

    def __post_init__(self) -> None:
        one_of("init", self.init, INITS)
        one_of("head", self.head, HEADS)
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate is {self.learning_rate}: it must be above 0")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay is {self.weight_decay}: it must be at least 0")


@dataclass(frozen=True)
class Cell:
    """One training run: dataset x backbone x head x loss x seed, under its settings."""

    dataset: str
    data_hash: str
    loss: str
    seed: int
    settings: Settings
    backbone: str = "identity"

    def describe(self) -> dict[str, Any]:
        """All that decides the result, as JSON can hold it."""
        return {**asdict(self), "protocol": PROTOCOL}

    @classmethod
    def described(cls, record: Mapping[str, Any]) -> Self:
        """The cell of a description."""
        parts = {name: value for name, value in record.items() if name != "protocol"}
        return cls(**{**parts, "settings": Settings(**parts["settings"])})

    @property
    def name(self) -> str:
        """A file name: readable, and another one for any other cell."""
        content = json.dumps(self.describe(), sort_keys=True).encode()
        return f"{self.loss}-seed{self.seed}-{hashlib.sha256(content).hexdigest()[:12]}"


def cells(dataset: Dataset, losses: Sequence[str], seeds: int, settings: Settings) -> list[Cell]:
    """Every loss with every seed."""
    if seeds < 1:
        raise InputError(f"seeds is {seeds}: it must be at least 1")
    if not losses:
        raise InputError(f"losses is empty: name some of {', '.join(LOSSES)}")
    for loss in losses:
        one_of("loss", loss, LOSSES)
    return [
        Cell(dataset.name, dataset.content_hash, loss, seed, settings)
        for loss in dict.fromkeys(losses)
        for seed in range(seeds)
    ]


def packs(missing: Sequence[Cell], outputs: Mapping[str, tuple[int, ...]]) -> list[list[list[Cell]]]:
    """Cells that are trained together, as [seed][loss] with the same losses for each seed of a pack.

    ``outputs`` are the shapes of the logits that each loss takes: those of a pack are alike.
    """
    by_seed: dict[tuple[tuple[int, ...], int], list[Cell]] = defaultdict(list)
    for cell in missing:
        by_seed[outputs[cell.loss], cell.seed].append(cell)
    by_losses: dict[tuple[str, ...], list[list[Cell]]] = defaultdict(list)
    for row in by_seed.values():
        by_losses[tuple(cell.loss for cell in row)].append(row)
    return list(by_losses.values())


@dataclass(frozen=True)
class Split:
    """Where one seed trains, chooses and is judged: indices of examples."""

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    test: NDArray[np.intp]


def split_for(dataset: Dataset, seed: int) -> Split:
    """The dataset's own test part; the validation part is cut from its training part by the seed."""
    pool = np.asarray(dataset.splits["train"])
    cut = round(VALIDATION_SHARE * len(pool))
    train, validation = stratified_split(dataset.targets[pool], [len(pool) - cut, cut], seed=seed)
    return Split(pool[train], pool[validation], np.asarray(dataset.splits["test"]))


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
