"""What is to be trained: the cells of a benchmark, and the packs that are trained together."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from scoreloss.bench.contenders import FRAMEWORKS, Config, Contender, described
from scoreloss.checks import InputError, one_of
from scoreloss.data import Dataset

PROTOCOL = 5
"""Rises when the same cell would give other numbers; results of an older protocol are trained again."""

HEADS: dict[str, tuple[int, ...]] = {"linear": (), "relu": (), "mlp": (256,)}
"""The widths of the hidden layers, with ReLU after each, under the linear layer that gives the logits.

``relu`` is the paper's head: ReLU on the features, then the linear layer.
"""

JUDGEMENTS = ("bench", "paper")
"""Which rules judge, and at which epoch.

``bench``: all rules, each at the epoch where it did best on validation data. ``paper``: the paper's thresholds, on
``loss.scores`` and on sigmoid(z), at the last epoch.
"""

PACK_WORK = 1e12
"""A pack takes about a minute or two; this is what a run loses that is stopped."""

ENTRY_WORK = 300
"""What loss, looks and judgement of one logit cost, in multiplications."""


@dataclass(frozen=True)
class Settings:
    """How every cell of a benchmark is trained."""

    head: str = "mlp"
    epochs: int = 60
    patience: int | None = None
    """A run stops after so many epochs in which it got better under no rule; None: it never does."""
    framework: str = "torch"
    judged: str = "bench"

    def __post_init__(self) -> None:
        one_of("framework", self.framework, FRAMEWORKS)
        one_of("head", self.head, HEADS)
        one_of("judged", self.judged, JUDGEMENTS)
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise InputError(f"{name} is {value}: it must be at least 1")

    def describe(self) -> dict[str, Any]:
        """As JSON can hold it. How the bench itself judges goes without saying, so its cells keep their names."""
        said = asdict(self)
        return {name: value for name, value in said.items() if (name, value) != ("judged", JUDGEMENTS[0])}


@dataclass(frozen=True)
class Cell:
    """One result: dataset x backbone x head x loss (with the configurations it may choose from) x seed."""

    dataset: str
    data_hash: str
    contender: Contender
    seed: int
    settings: Settings
    backbone: str = "identity"

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.contender.name

    def describe(self) -> dict[str, Any]:
        """All that decides the result, as JSON can hold it."""
        return {
            "dataset": self.dataset,
            "data_hash": self.data_hash,
            "backbone": self.backbone,
            **described(self.contender),
            "seed": self.seed,
            "settings": self.settings.describe(),
            "protocol": PROTOCOL,
        }

    @classmethod
    def described(cls, record: Mapping[str, Any]) -> Self:
        """The cell of a description."""
        parts = dict(record)
        if (protocol := parts.pop("protocol")) != PROTOCOL:
            raise InputError(
                f"protocol is {protocol}: this release has {PROTOCOL}, so the bench must be run again"
            )
        configs = tuple(map(Config.described, parts.pop("configs")))
        contender = Contender(parts.pop("name"), parts.pop("loss"), configs)
        return cls(**{**parts, "settings": Settings(**parts["settings"])}, contender=contender)

    @property
    def loss(self) -> str:
        """What is trained."""
        return self.contender.loss

    @property
    def file(self) -> str:
        """A file name: readable, and another one for any other cell."""
        content = json.dumps(self.describe(), sort_keys=True).encode()
        readable = "".join(sign if sign.isalnum() or sign in "_-." else "_" for sign in self.name)
        return f"{readable[:60]}-seed{self.seed}-{hashlib.sha256(content).hexdigest()[:12]}"


def cells(
    dataset: Dataset,
    contenders: Sequence[Contender],
    seeds: int,
    settings: Settings,
    backbone: str = "identity",
) -> list[Cell]:
    """Every loss with every seed."""
    if seeds < 1:
        raise InputError(f"seeds is {seeds}: it must be at least 1")
    if not contenders:
        raise InputError("losses is empty: name some, or all (scoreloss losses lists them)")
    names = [contender.name for contender in contenders]
    for contender in contenders:
        contender.check_framework(settings.framework)
        if names.count(contender.name) > 1:
            raise InputError(
                f"{contender.name} names {names.count(contender.name)} losses: each needs a name of its own"
            )
    return [
        Cell(dataset.name, dataset.content_hash, contender, seed, settings, backbone)
        for contender in contenders
        for seed in range(seeds)
    ]


Pack = list[list[Cell]]
"""Cells that are trained together, as [seed][loss], with the same losses for each seed."""


def packs(missing: Sequence[Cell], shapes: Mapping[Cell, tuple[int, ...]], examples: int) -> list[Pack]:
    """The packs of these cells: as many as fit into ``PACK_WORK``, but never less than one loss with one seed.

    ``shapes`` are those of each cell's head, the width of its features and the shape of its logits: those of a pack are
    alike. ``examples`` is the size of a training part.
    """
    by_seed: dict[tuple[tuple[int, ...], int], list[Cell]] = defaultdict(list)
    for cell in missing:
        by_seed[shapes[cell], cell.seed].append(cell)
    by_losses: dict[tuple[tuple[int, ...], tuple[Contender, ...]], list[list[Cell]]] = defaultdict(list)
    for (shape, _), row in by_seed.items():
        by_losses[shape, tuple(cell.contender for cell in row)].append(row)
    found: list[Pack] = []
    for (shape, _), rows in by_losses.items():
        works = [_work(cell, shape, examples) for cell in rows[0]]
        for losses in _within(works, PACK_WORK / len(rows)):
            at_once = max(1, int(PACK_WORK / sum(works[losses])))
            found += [
                [row[losses] for row in rows[start : start + at_once]]
                for start in range(0, len(rows), at_once)
            ]
    return found


def _within(works: Sequence[float], limit: float) -> Iterator[slice]:
    """Neighbours whose sum stays within a limit, or one alone."""
    start = 0
    for end in range(1, len(works) + 1):
        if end == len(works) or sum(works[start : end + 1]) > limit:
            yield slice(start, end)
            start = end


def _work(cell: Cell, shape: tuple[int, ...], examples: int) -> float:
    inputs, *outputs = shape
    hidden = HEADS[cell.settings.head]
    widths = [inputs, *hidden, math.prod(outputs)]
    products = sum(a * b for a, b in itertools.pairwise(widths))
    of_one = examples * cell.settings.epochs * (products + ENTRY_WORK * widths[-1])
    return float(len(cell.contender.configs) * of_one)
