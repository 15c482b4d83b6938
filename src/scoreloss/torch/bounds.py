"""Global objectives by bounds (Eban et al. 2017), with the multipliers they learn."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from scoreloss.losses.bounds import label_priors, label_sums
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.shared import prepare_targets
from scoreloss.torch.base import FunctionLoss, leading
from scoreloss.torch.ops import wide
from scoreloss.torch.sync import ops_for


class _Constrained(FunctionLoss):
    """Multipliers that an optimiser ascends with the gradient it is given, and a running share of positives.

    In ``train()`` mode each call adds its batch to the share.
    """

    learns = True
    sums = ("positives", "examples")
    multiplier: nn.Parameter
    positives: Tensor
    examples: Tensor

    def __init__(self, labels: int, sync: bool, runs: int | None, *anchors: int, **options: Any) -> None:
        super().__init__(**options)
        self.sync = sync
        self.multiplier = nn.Parameter(torch.ones(leading(runs, *anchors, labels)))
        for name in self.sums:
            self.register_buffer(name, torch.zeros(leading(runs, labels)))

    def _sized(self) -> list[str]:
        return [*super()._sized(), "positives"]

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        dtype, ops = wide(logits.dtype), ops_for(sync=self.sync)
        if self.training:
            with torch.no_grad():
                y, weights = prepare_targets(ops, logits.to(dtype), targets, mask, weight)
                positives, examples = label_sums(ops, y, weights.entries)
                self.positives += positives.sum_to_size(self.positives.shape)
                self.examples += examples.sum_to_size(self.examples.shape)
        prior = label_priors(ops, self.positives, self.examples).to(dtype)
        return {"prior": prior, "multiplier": self.multiplier.to(dtype)}


class PrecisionAtRecall(_Constrained):
    """The highest precision of each label at a ``recall`` of at least so much.

    The boundary is at 0, where the bound on the recall holds; ``bound`` is "log" or "hinge". The multipliers
    (``labels`` of them, in ``parameters()``) start at 1, rise where the recall is too low and fall where it is not.
    ``sync``: the means and the share of positives are those of all processes.
    """

    definition = DEFINITIONS["precision_at_recall"]

    def __init__(
        self,
        labels: int,
        *,
        recall: float = 0.8,
        bound: str = "log",
        sync: bool = False,
        runs: int | None = None,
    ) -> None:
        super().__init__(labels, sync, runs, recall=recall, bound=bound)


class RecallAtPrecision(_Constrained):
    """The highest recall of each label at a ``precision`` of at least so much. See ``PrecisionAtRecall``."""

    definition = DEFINITIONS["recall_at_precision"]

    def __init__(
        self,
        labels: int,
        *,
        precision: float = 0.8,
        bound: str = "log",
        sync: bool = False,
        runs: int | None = None,
    ) -> None:
        super().__init__(labels, sync, runs, precision=precision, bound=bound)


class AUCPR(_Constrained):
    """The area under the curve of precision and recall: the recall at each of ``anchors`` precisions, averaged.

    Each anchor and label has a multiplier and a bias of its own. It only ranks.
    """

    definition = DEFINITIONS["aucpr"]

    def __init__(
        self,
        labels: int,
        *,
        anchors: int = 20,
        bound: str = "log",
        sync: bool = False,
        runs: int | None = None,
    ) -> None:
        leading(None, anchors)
        super().__init__(labels, sync, runs, anchors, bound=bound)
        self.bias = nn.Parameter(torch.zeros_like(self.multiplier))

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        options = super()._of_batch(logits, targets, mask, weight)
        return {**options, "bias": self.bias.to(wide(logits.dtype))}


class HingeF1(FunctionLoss):
    """A bound on 1 - micro F1: (fn + fp) / (P + max(P - fn, 0)), fn and fp bounded by the hinge.

    ``sync``: fn, fp and P are those of all processes.
    """

    definition = DEFINITIONS["hinge_f1"]

    def __init__(self, *, sync: bool = False) -> None:
        super().__init__()
        self.sync = sync
