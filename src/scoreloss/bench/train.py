"""Many heads, one program: the runs of a pack are trained side by side under one Adam.

Adam works element by element, so runs that share an optimiser stay independent of each other: each gets
the weights that it would get alone. Runs of one seed share their batches, and so one matrix product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scoreloss.bench.plan import HEADS
from scoreloss.bench.splits import Split
from scoreloss.checks import InputError
from scoreloss.metrics import label_frequencies
from scoreloss.torch import Loss, StackedLinear, start_at_priors

BETAS = (0.9, 0.999)
EPS = 1e-8


@dataclass(frozen=True, eq=False)
class Run:
    """One column of a pack: what is trained on every seed of it.

    A loss with parameters of its own is made for so many runs as there are seeds, and belongs to one column.
    """

    loss: Loss
    learning_rate: float
    weight_decay: float = 0.0
    init: str = "priors"


Layers = list[Tensor]
"""Weights (seeds, runs, outputs, inputs + 1) of each layer, the bias in the last column."""


class Pack:
    """Heads for every seed and run, and for every seed a split and a batch order.

    Features are one matrix for all seeds, or one for each, and are standardised on each seed's training part; a tensor
    is that already (``standardised``).
    """

    def __init__(
        self,
        features: NDArray[np.floating] | Sequence[NDArray[np.floating]] | Tensor,
        targets: NDArray[np.bool_],
        splits: Sequence[Split],
        runs: Sequence[Run],
        seeds: Sequence[int],
        *,
        head: str,
        batch_size: int | None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if len({len(split.train) for split in splits}) != 1:
            raise InputError("the seeds of a pack must have training parts of one size")
        labels = targets.shape[1]
        self.runs = list(runs)
        self.outputs = runs[0].loss.outputs(labels)
        if any(run.loss.outputs(labels) != self.outputs for run in runs):
            raise InputError("the losses of a pack must take logits of one shape")
        self.batch_size = len(splits[0].train) if batch_size is None else batch_size
        if not isinstance(features, Tensor):
            each = [features] * len(splits) if isinstance(features, np.ndarray) else features
            features = standardised(each, splits, head=head, dtype=dtype)
        self._features = features
        self._targets = torch.as_tensor(targets, dtype=dtype)
        self._train_rows = torch.as_tensor(np.stack([s.train for s in splits]))
        self._epoch = self._features.new_empty(self._train_rows.numel(), self._features.shape[2])
        self._orders = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.layers = [
            layer.to(dtype).requires_grad_()
            for layer in _started(targets, splits, runs, seeds, (self._features.shape[2] - 1, *HEADS[head]))
        ]

        def each_run(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=dtype).view(-1, 1, 1)

        self._adam = Adam(
            self.layers,
            rate=each_run([run.learning_rate for run in runs]),
            decay=each_run([run.weight_decay for run in runs]),
        )
        self._own = {
            run: Adam(own, rate=torch.tensor(run.learning_rate, dtype=dtype))
            for run in runs
            if (own := Layers(run.loss.to(dtype).parameters()))
        }

    @torch.no_grad()
    def logits(self, rows: Tensor, layers: Layers | None = None) -> Tensor:
        """Rows (seeds, n) to logits (runs, seeds, n, *outputs), by the heads as they are or by others."""
        layers = self.layers if layers is None else layers
        (logits,) = _logits(self._take(rows), layers, [layers[0].shape[1]])
        return torch.unflatten(logits, -1, self.outputs)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """One epoch of features and targets (seeds, batch, ...), each seed in its own order.

        The rows are put in order once an epoch; the last batch may be smaller.
        """
        rows = torch.stack(
            [
                rows[torch.randperm(len(rows), generator=order)]
                for rows, order in zip(self._train_rows, self._orders, strict=True)
            ]
        )
        x = self._take(rows, out=self._epoch).split(self.batch_size, dim=1)
        y = self._targets.index_select(0, rows.view(-1)).view(*rows.shape, -1).mT.contiguous().mT
        yield from zip(x, y.split(self.batch_size, dim=1), strict=True)

    def step(self, x: Tensor, y: Tensor) -> None:
        """One step of every run on its seed's batch."""
        together = _together(self.runs)
        parts = _logits(x, self.layers, [width for _, width in together])
        losses = [
            loss(part.unflatten(-1, self.outputs), y) for (loss, _), part in zip(together, parts, strict=True)
        ]
        ones = [torch.ones_like(loss) for loss in losses]
        adams = [self._adam, *self._own.values()]
        moved = [tensor for adam in adams for tensor in adam.layers]
        gradients = iter(torch.autograd.grad(losses, moved, ones))
        for adam in adams:
            adam.step([next(gradients) for _ in adam.layers])

    def _take(self, rows: Tensor, out: Tensor | None = None) -> Tensor:
        seeds, n, width = self._features.shape
        flat = rows + n * torch.arange(seeds).unsqueeze(1)
        picked = self._features.new_empty(0) if out is None else out
        torch.index_select(self._features.view(-1, width), 0, flat.view(-1), out=picked)
        return picked.view(seeds, -1, width)

    def epoch(self) -> None:
        """Every training example once."""
        for x, y in self.batches():
            self.step(x, y)

    def train(self, epochs: int) -> None:
        """So many epochs."""
        for _ in range(epochs):
            self.epoch()

    def keep(self, columns: Sequence[int]) -> None:
        """Go on with these runs alone; the others are done."""
        self.runs = [self.runs[column] for column in columns]
        self._adam.keep(columns)
        self.layers = self._adam.layers
        self._own = {run: adam for run, adam in self._own.items() if run in self.runs}


class Adam:
    """Adam with decoupled weight decay; rate and decay broadcast against the layers. The last column does not decay."""

    def __init__(self, layers: Layers, *, rate: Tensor, decay: Tensor | None = None) -> None:
        self.layers = layers
        self.rate = rate
        self.decay = decay if decay is not None and decay.any() else None
        self.means = [torch.zeros_like(layer) for layer in layers]
        self.squares = [torch.zeros_like(layer) for layer in layers]
        self.steps = 0

    def keep(self, columns: Sequence[int]) -> None:
        """Go on with these columns of the layers, (seeds, columns, ...), alone."""
        which = torch.tensor(columns)
        self.layers = [layer.detach()[:, which].requires_grad_() for layer in self.layers]
        self.means = [mean[:, which] for mean in self.means]
        self.squares = [square[:, which] for square in self.squares]
        self.rate = self.rate[which]
        self.decay = self.decay if self.decay is None else self.decay[which]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the layers in place."""
        self.steps += 1
        first = 1 - BETAS[0] ** self.steps
        second = (1 - BETAS[1] ** self.steps) ** 0.5
        for layer, gradient, mean, square in zip(
            self.layers, gradients, self.means, self.squares, strict=True
        ):
            mean.lerp_(gradient, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            if self.decay is not None:
                layer[..., :-1].mul_(1 - self.rate * self.decay)
            spread = square.sqrt().div_(second).add_(EPS)
            layer.sub_(mean.div(spread).mul_(self.rate / first))


def _logits(x: Tensor, layers: Layers, widths: Sequence[int]) -> list[Tensor]:
    """Features (seeds, n, inputs) to logits (runs, seeds, n, outputs), in parts of so many runs.

    In memory the examples stand side by side, as do the targets of ``batches``: nothing is copied, and the
    losses sum over neighbours.
    """
    seeds, runs, outputs, inputs = layers[0].shape
    z = layers[0].view(seeds, runs * outputs, inputs) @ x.mT
    z = z.view(seeds * runs, outputs, -1)
    for layer in layers[1:]:
        weight, bias = layer.flatten(0, 1).split([layer.shape[3] - 1, 1], dim=2)
        z = torch.baddbmm(bias, weight, z.relu())
    parts = z.view(seeds, runs, *z.shape[1:]).split(list(widths), dim=1)
    return [part.permute(1, 0, 3, 2) for part in parts]


def _together(runs: Sequence[Run]) -> list[tuple[Loss, int]]:
    """Neighbouring runs that share a loss object are one call of it: (loss, how many)."""
    groups: list[tuple[Loss, int]] = []
    for run in runs:
        if groups and groups[-1][0] is run.loss:
            groups[-1] = (run.loss, groups[-1][1] + 1)
        else:
            groups.append((run.loss, 1))
    return groups


def standardised(
    features: Sequence[NDArray[np.floating]],
    splits: Sequence[Split],
    *,
    head: str,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Features of each seed (seeds, n, d + 1) by the mean and spread of its training rows, as a head takes them.

    The last feature is always 1, and meets the bias.
    """
    return torch.stack(
        [_of_seed(x, split.train, head, dtype) for x, split in zip(features, splits, strict=True)]
    )


def _of_seed(
    features: NDArray[np.floating], train: NDArray[np.intp], head: str, dtype: torch.dtype
) -> Tensor:
    features = features.astype(np.promote_types(features.dtype, np.float32), copy=False)
    if head == "relu":
        features = np.maximum(features, 0)
    mean, spread = features[train].mean(0), features[train].std(0)
    scaled = (features - mean) * np.divide(1, spread, where=spread > 0, out=np.zeros_like(spread))
    return torch.as_tensor(np.pad(scaled, ((0, 0), (0, 1)), constant_values=1), dtype=dtype)


def _started(
    targets: NDArray[np.bool_],
    splits: Sequence[Split],
    runs: Sequence[Run],
    seeds: Sequence[int],
    widths: Sequence[int],
) -> Layers:
    """The layers at their start, which depends on each run's loss and its seed alone."""
    widths = [*widths, math.prod(runs[0].loss.outputs(targets.shape[1]))]
    frequencies = np.stack([label_frequencies(targets[split.train]) for split in splits])
    drawn = list(zip(*(_drawn(widths, seed) for seed in seeds), strict=True))
    *hidden, last = (torch.stack(layer) for layer in drawn)
    heads = []
    for run in runs:
        head = StackedLinear(len(seeds), widths[-2], widths[-1])
        with torch.no_grad():
            head.weight.copy_(last[..., :-1])
            head.bias.copy_(last[..., -1])
        if run.init == "priors":
            start_at_priors(head, frequencies, run.loss, seed=seeds)
        heads.append(torch.cat([head.weight, head.bias.unsqueeze(2)], dim=2).detach())
    shared = [layer.unsqueeze(1).repeat(1, len(runs), 1, 1) for layer in hidden]
    return [*shared, torch.stack(heads, dim=1)]


def _drawn(widths: Sequence[int], seed: int) -> Layers:
    """Layers as ``nn.Linear`` draws them, the bias in the last column."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    return [torch.cat([m.weight, m.bias.unsqueeze(1)], dim=1).detach() for m in layers]
