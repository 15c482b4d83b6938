"""One head in PyTorch: linear layers with ReLU between them, trained by Adam on dense or sparse features.

It knows losses and tensors; scikit-learn's conventions are the business of ``head``.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
except ImportError as missing:
    raise ImportError("TorchMultilabelClassifier needs PyTorch: pip install 'scoreloss[torch]'") from missing

from scoreloss.bench.train import Adam
from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.ops import logits_from
from scoreloss.torch import LOSSES, Loss, Mix, start_at_priors

Features = Any
"""A float matrix (n, d) of numpy, or one of scipy by rows (CSR)."""

Layers = list[tuple[NDArray[Any], NDArray[Any]]]
"""Weights (inputs, outputs) and biases (outputs,) of each layer."""


def make_loss(loss: Any, options: Mapping[str, Any] | None, targets: Booleans) -> Loss:
    """A loss for targets (n, c), from a name or a class (with its options); of a loss that is made, a copy."""
    if isinstance(loss, Loss):
        if options:
            raise InputError(f"loss_options are {options!r}: a loss that is made already takes none")
        return copy.deepcopy(loss)
    if isinstance(loss, str):
        one_of("loss", loss, LOSSES)
        loss = LOSSES[loss]
    if not (isinstance(loss, type) and issubclass(loss, Loss)):
        raise InputError(f"loss is {loss!r}: it must be a name, or a class or a loss of scoreloss.torch")
    if not options:
        return loss.for_targets(targets)
    sizes = (targets.shape[1],) if loss.learns else ()
    try:
        return loss(*sizes, **options)
    except TypeError as problem:
        raise InputError(f"loss_options are {options!r}: {problem}") from problem


@torch.no_grad()
def scores_of(loss: Loss, logits: Floats, labels: int) -> Floats:
    """``loss.scores`` of logits (n, outputs)."""
    z = torch.from_numpy(logits).unflatten(-1, loss.outputs(labels))
    scores: Floats = loss.scores(z).numpy()
    return scores


def decisions_of(loss: Loss, logits: Floats, labels: int) -> Floats:
    """The logits whose sigmoid are the scores: at and above 0 the loss says positive."""
    if isinstance(loss, Mix):
        return decisions_of(loss.decides, logits, labels)
    if type(loss).scores is not Loss.scores:
        decisions: Floats = logits_from(scores_of(loss, logits, labels))
        return decisions
    boundary = loss.boundary
    return logits - np.asarray(0.0 if boundary is None else boundary, np.float64)


class Training:
    """A head on its way: ``epoch`` goes once through the examples, each time in another order."""

    def __init__(
        self,
        features: Features,
        targets: Booleans,
        weight: Floats | None,
        loss: Loss,
        *,
        hidden: Sequence[int],
        init: str,
        learning_rate: float,
        weight_decay: float,
        batch_size: int,
        seed: int,
    ) -> None:
        dtype = torch.float32 if features.dtype == np.float32 else torch.float64
        self.features = features
        self.targets = torch.as_tensor(targets, dtype=dtype)
        self.weight = None if weight is None else torch.as_tensor(weight, dtype=dtype).unsqueeze(1)
        self.loss = loss.to(dtype).train()
        self.outputs = loss.outputs(targets.shape[1])
        self.batch_size = batch_size
        self.order = torch.Generator().manual_seed(seed)
        widths = [features.shape[1], *hidden, math.prod(self.outputs)]
        frequencies = _frequencies(targets, weight) if init == "priors" else None
        self.layers = [
            layer.to(dtype).requires_grad_() for layer in _started(widths, frequencies, loss, seed)
        ]
        rate, decay = (torch.tensor(value, dtype=dtype) for value in (learning_rate, weight_decay))
        self.adams = [Adam(self.layers, rate=rate, decay=decay)]
        own: list[Tensor] = list(loss.parameters())
        if own:
            self.adams.append(Adam(own, rate=rate))

    def epoch(self) -> None:
        """One step for each batch; the last one may be smaller."""
        for rows in torch.randperm(len(self.targets), generator=self.order).split(self.batch_size):
            logits = _logits(self.features[rows.numpy()], self.layers).unflatten(-1, self.outputs)
            weights = {} if self.weight is None else {"weight": self.weight[rows]}
            value = self.loss(logits, self.targets[rows], **weights)
            if value.ndim:
                raise InputError(
                    f"loss gives {tuple(value.shape)} numbers: a head is trained on one, so give the loss a reduction "
                    "other than 'none' and an average other than None"
                )
            moved = [tensor for adam in self.adams for tensor in adam.layers]
            gradients = iter(torch.autograd.grad(value, moved))
            for adam in self.adams:
                adam.step([next(gradients) for _ in adam.layers])

    def head(self) -> Layers:
        """The layers as they are now."""
        arrays = [layer.detach().numpy() for layer in self.layers]
        return [(layer[:, :-1].T.copy(), layer[:, -1].copy()) for layer in arrays]


def _logits(features: Features, layers: Sequence[Tensor]) -> Tensor:
    """By layers (outputs, inputs + 1) with the bias in the last column; sparse rows are summed as bags of columns."""
    parts: Iterator[tuple[Tensor, Tensor]] = ((layer[:, :-1], layer[:, -1]) for layer in layers)
    weight, bias = next(parts)
    if isinstance(features, np.ndarray):
        z = F.linear(torch.from_numpy(features), weight, bias)
    else:
        z = bias + F.embedding_bag(
            torch.as_tensor(features.indices, dtype=torch.int64),
            weight.mT.contiguous(),
            torch.as_tensor(features.indptr, dtype=torch.int64),
            mode="sum",
            per_sample_weights=torch.from_numpy(features.data),
            include_last_offset=True,
        )
    for weight, bias in parts:
        z = F.linear(z.relu(), weight, bias)
    return z


def _frequencies(targets: Booleans, weight: Floats | None) -> Floats:
    """(P + 1) / (n + 2) for each label, of weighted examples."""
    w = np.ones(len(targets)) if weight is None else weight
    return np.asarray((w @ targets + 1) / (w.sum() + 2))


def _started(widths: Sequence[int], frequencies: Floats | None, loss: Loss, seed: int) -> list[Tensor]:
    """Layers as ``nn.Linear`` draws them, the last one at the frequencies where they are given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    if frequencies is not None:
        start_at_priors(layers[-1], frequencies, loss, seed=seed)
    return [torch.cat([m.weight, m.bias.unsqueeze(1)], dim=1).detach() for m in layers]
