"""Global objectives by bounds (Eban et al. 2017), with the multipliers they learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from scoreloss.losses.bounds import label_priors, label_sums
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.shared import prepare_targets
from scoreloss.torch.base import FunctionLoss, leading
from scoreloss.torch.ops import OPS, wide


class _Constrained(FunctionLoss):
    """Multipliers that an optimiser ascends with the gradient it is given, and a running share of positives.

    In ``train()`` mode each call adds its batch to the share.
    """

    learns = True
    multiplier: nn.Parameter
    positives: Tensor
    examples: Tensor

    def __init__(self, labels: int, runs: int | None, *anchors: int, **options: Any) -> None:
        super().__init__(**options)
        self.multiplier = nn.Parameter(torch.ones(leading(runs, *anchors, labels)))
        for name in ("positives", "examples"):
            self.register_buffer(name, torch.zeros(leading(runs, labels)))

    def _sized(self) -> list[str]:
        return [*super()._sized(), "positives"]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moved and cast like any module, but for the type of the sums: half precision would soon count no more."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name in ("positives", "examples"):
            sums = getattr(self, name)
            setattr(self, name, sums.to(wide(sums.dtype)))
        return self

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        dtype = wide(logits.dtype)
        if self.training:
            with torch.no_grad():
                y, weights = prepare_targets(OPS, logits.to(dtype), targets, mask, weight)
                positives, examples = label_sums(OPS, y, weights.entries)
                self.positives += positives.sum_to_size(self.positives.shape)
                self.examples += examples.sum_to_size(self.examples.shape)
        prior = label_priors(OPS, self.positives, self.examples).to(dtype)
        return {"prior": prior, "multiplier": self.multiplier.to(dtype)}


class PrecisionAtRecall(_Constrained):
    """The highest precision of each label at a ``recall`` of at least so much.

    The boundary is at 0, where the bound on the recall holds; ``bound`` is "log" or "hinge". The multipliers
    (``labels`` of them, in ``parameters()``) start at 1, rise where the recall is too low and fall where it is not.
    """

    definition = DEFINITIONS["precision_at_recall"]

    def __init__(
        self, labels: int, *, recall: float = 0.8, bound: str = "log", runs: int | None = None
    ) -> None:
        super().__init__(labels, runs, recall=recall, bound=bound)


class RecallAtPrecision(_Constrained):
    """The highest recall of each label at a ``precision`` of at least so much. See ``PrecisionAtRecall``."""

    definition = DEFINITIONS["recall_at_precision"]

    def __init__(
        self, labels: int, *, precision: float = 0.8, bound: str = "log", runs: int | None = None
    ) -> None:
        super().__init__(labels, runs, precision=precision, bound=bound)


class AUCPR(_Constrained):
    """The area under the curve of precision and recall: the recall at each of ``anchors`` precisions, averaged.

    Each anchor and label has a multiplier and a bias of its own. It only ranks.
    """

    definition = DEFINITIONS["aucpr"]

    def __init__(
        self, labels: int, *, anchors: int = 20, bound: str = "log", runs: int | None = None
    ) -> None:
        leading(None, anchors)
        super().__init__(labels, runs, anchors, bound=bound)
        self.bias = nn.Parameter(torch.zeros_like(self.multiplier))

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        options = super()._of_batch(logits, targets, mask, weight)
        return {**options, "bias": self.bias.to(wide(logits.dtype))}


class HingeF1(FunctionLoss):
    """A bound on 1 - micro F1: (fn + fp) / (P + max(P - fn, 0)), fn and fp bounded by the hinge."""

    definition = DEFINITIONS["hinge_f1"]
