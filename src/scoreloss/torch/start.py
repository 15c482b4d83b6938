"""The start of a head, which decides what a metric loss reaches."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from scoreloss.checks import InputError
from scoreloss.start import checked_frequencies, start_of_scores, start_of_surrogate, weight_bounds
from scoreloss.torch.base import Floats, FunctionLoss, Loss
from scoreloss.torch.metric import MetricLoss
from scoreloss.torch.mix import Mix


class Head(Protocol):
    """The last layer: an ``nn.Linear``, or a stack of them with leading run axes."""

    weight: Any  # (..., labels, features)
    bias: Any  # (..., labels)


class StackedLinear(nn.Module):
    """Linear heads side by side, one a run: features (n, d) or (runs, n, d) to logits (runs, n, c)."""

    def __init__(self, runs: int, in_features: int, out_features: int) -> None:
        super().__init__()
        bound = in_features**-0.5
        shape = (runs, out_features, in_features)
        self.weight = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(shape[:2]).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """The logits of every run."""
        return features @ self.weight.mT + self.bias.unsqueeze(-2)


@torch.no_grad()
def start_at_priors(
    head: Head,
    frequencies: ArrayLike | Tensor,
    loss: Loss | None = None,
    *,
    seed: int | Sequence[int] = 0,
) -> None:
    """Start a head where it predicts each label's frequency: the start decides what a metric loss reaches.

    The bias is set so that ``loss.surrogate`` (``loss.scores`` where there is none; sigmoid without a loss)
    equals the frequencies, (c,) or one row a run, and the weights are redrawn at a tenth of
    ``nn.Linear``'s own scale. ``seed`` is one number, or one a run. A head without a bias needs a loss that says the
    frequencies at a logit of 0 (``init="prior"``).
    ``scoreloss.label_frequencies(targets)`` gives frequencies that are never 0 or 1.
    """
    if not (loss is None or isinstance(loss, Loss)):
        raise InputError(f"loss is {loss!r}: it must be a loss of scoreloss.torch, or None")
    if getattr(getattr(head, "weight", None), "ndim", 0) < 2:
        raise InputError(
            f"head is a {type(head).__name__}: it must be the last layer, an nn.Linear or a stack of them"
        )
    wanted = np.asarray(frequencies, np.float64)
    *runs, outputs, features = head.weight.shape
    labels = _labels_of(outputs, wanted, loss)
    if wanted.shape not in ((labels,), (*runs, labels)):
        raise InputError(
            f"frequencies have shape {wanted.shape}: the head has {labels} labels, "
            f"so it takes ({labels},) or {(*runs, labels)}"
        )
    checked_frequencies(wanted)
    if isinstance(loss, FunctionLoss):
        loss.check_sizes(runs, labels)
    loss = copy.deepcopy(loss).cpu() if loss is not None else None
    z, steepness = _start_of(wanted, loss)
    bias = z if loss is None else loss.logits_of(z).reshape(*z.shape[:-1], outputs)
    if getattr(head, "bias", None) is not None:
        head.bias.copy_(torch.from_numpy(bias))
    elif bias.any():
        raise InputError(
            "head has no bias: start_at_priors needs one, or a loss with init='prior' and these frequencies"
        )
    bound = weight_bounds(steepness, features)
    # logits of no label in particular, such as those of sets, start as gently as the steepest
    bound = bound.min(-1, keepdims=True) if outputs % labels else np.repeat(bound, outputs // labels, axis=-1)
    bounds = np.broadcast_to(bound, (*runs, outputs))
    stack = head.weight.view(-1, outputs, features)
    seeds = list(seed) if isinstance(seed, Sequence | np.ndarray) else [seed] * len(stack)
    if len(seeds) != len(stack):
        raise InputError(f"seed has {len(seeds)} numbers: the head has {len(stack)} runs")
    for weight, within, run_seed in zip(
        stack, torch.from_numpy(bounds.copy()).view(-1, outputs, 1), seeds, strict=True
    ):
        generator = torch.Generator().manual_seed(int(run_seed))
        drawn = torch.rand(outputs, features, generator=generator, dtype=torch.float64)
        weight.copy_((2 * drawn - 1) * within)


def _labels_of(outputs: int, frequencies: Floats, loss: Loss | None) -> int:
    """How many labels a head of so many outputs decides on, with this loss."""
    labels = frequencies.shape[-1] if frequencies.ndim else 0
    return labels if loss is not None and outputs == math.prod(loss.outputs(labels)) else outputs


def _start_of(frequencies: Floats, loss: Loss | None) -> tuple[Floats, Floats]:
    """The logits to start at, and the slope of the sigmoid that is as steep there."""
    if isinstance(loss, Mix):
        return _start_of(frequencies, loss.decides)
    if isinstance(loss, MetricLoss):
        return start_of_surrogate(frequencies, loss.surrogate_name, loss.plain_knobs())
    return start_of_scores(frequencies, None if loss is None else loss.boundary)
