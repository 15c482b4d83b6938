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

PROTOCOL = 4
"""Rises when the same cell would give other numbers; results of an older protocol are trained again."""

PAPER_LOSSES = ("bce", "focal", "asymmetric", "unbounded_f1", "sigmoid_f1")
INITS = ("priors", "default")
FRAMEWORKS = ("torch", "keras")
HEADS: dict[str, tuple[int, ...]] = {"linear": (), "mlp": (256,)}
"""The widths of the hidden layers, with ReLU after each, under the linear layer that gives the logits."""

TEST_SHARE = 0.2
"""Of a dataset without a test part of its own."""

VALIDATION_SHARE = 0.2
"""Of what is left for training and validation."""

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Settings:
    """How every cell of a benchmark is trained."""

    head: str = "mlp"
    epochs: int = 60
    batch_size: int = 256
    learning_rate: float = 0.003
    weight_decay: float = 0.0
    init: str = "priors"
    framework: str = "torch"

    def __post_init__(self) -> None:
        one_of("framework", self.framework, FRAMEWORKS)
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


def losses_in(framework: str) -> list[str]:
    """The losses that the bench trains in a framework: with Keras those without parameters of their own."""
    return [name for name, loss in LOSSES.items() if framework == "torch" or not loss.learns]


def cells(
    dataset: Dataset, losses: Sequence[str], seeds: int, settings: Settings, backbone: str = "identity"
) -> list[Cell]:
    """Every loss with every seed."""
    if seeds < 1:
        raise InputError(f"seeds is {seeds}: it must be at least 1")
    if not losses:
        raise InputError(f"losses is empty: name some of {', '.join(LOSSES)}")
    trainable = losses_in(settings.framework)
    for loss in losses:
        one_of("loss", loss, LOSSES)
        if loss not in trainable:
            raise InputError(
                f"loss is {loss!r}: it has parameters of its own, which the bench trains in torch alone"
            )
    return [
        Cell(dataset.name, dataset.content_hash, loss, seed, settings, backbone)
        for loss in dict.fromkeys(losses)
        for seed in range(seeds)
    ]


def packs(missing: Sequence[Cell], shapes: Mapping[Cell, tuple[int, ...]]) -> list[list[list[Cell]]]:
    """Cells that are trained together, as [seed][loss] with the same losses for each seed of a pack.

    ``shapes`` are those of each cell's head, the width of its features and the shape of its logits: those of a pack are
    alike.
    """
    by_seed: dict[tuple[tuple[int, ...], int], list[Cell]] = defaultdict(list)
    for cell in missing:
        by_seed[shapes[cell], cell.seed].append(cell)
    by_losses: dict[tuple[object, ...], list[list[Cell]]] = defaultdict(list)
    for (shape, _), row in by_seed.items():
        by_losses[shape, *(cell.loss for cell in row)].append(row)
    return list(by_losses.values())


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
