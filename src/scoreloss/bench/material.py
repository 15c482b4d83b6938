"""What packs are trained on: targets, the features of each seed, and the splits. It can be sent to another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from scoreloss.bench.plan import Cell
from scoreloss.bench.splits import Split
from scoreloss.bench.train import standardised
from scoreloss.checks import Booleans


@dataclass(frozen=True, eq=False)
class Material:
    """One dataset by one backbone; seeds may share their features."""

    targets: Booleans
    features: Mapping[int, NDArray[Any]]
    splits: Mapping[int, Split]
    _last: dict[tuple[object, ...], Tensor] = field(default_factory=dict, init=False)

    def inputs(self, seeds: Sequence[int], head: str) -> Tensor:
        """The features of these seeds as a pack takes them; packs one after another often want the same."""
        key = (*seeds, head)
        if key not in self._last:
            self._last.clear()
            features = [np.asarray(self.features[seed]) for seed in seeds]
            self._last[key] = standardised(features, [self.splits[seed] for seed in seeds], head=head)
        return self._last[key]

    def shape(self, cell: Cell) -> tuple[int, ...]:
        """The width of a cell's features, and the shape of its logits."""
        pool = self.targets[self.splits[cell.seed].pool]
        loss = cell.contender.configs[0].loss(cell.contender.loss, pool)
        return (self.features[cell.seed].shape[1], *loss.outputs(pool.shape[1]))
