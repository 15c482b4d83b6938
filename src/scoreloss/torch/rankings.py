"""Losses of rows: an example's labels against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scoreloss.checks import InputError
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.options import check_whole
from scoreloss.losses.rankings import deep_f_scores
from scoreloss.start import largest_count, shared_among_counts
from scoreloss.torch.base import Floats, FunctionLoss, check_types
from scoreloss.torch.ops import OPS, widen


class PickAllLabels(FunctionLoss):
    """Softmax cross-entropy over a row's labels, summed over its positives.

    ``normalised`` divides by their number; ``pick_one`` draws one of them anew each time, which is the same on
    average. It only ranks. Rows without a positive are skipped.
    """

    definition = DEFINITIONS["pick_all_labels"]

    def __init__(self, *, normalised: bool = False, pick_one: bool = False, reduction: str = "mean") -> None:
        if normalised and pick_one:
            raise InputError("normalised and pick_one are both True: a loss takes one of them")
        super().__init__(normalised=normalised, reduction=reduction)
        self.pick_one = pick_one

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        return {"draws": torch.rand_like(widen(logits))} if self.pick_one else {}


class BPMLL(FunctionLoss):
    """BP-MLL: the mean over a row's pairs of exp(-(t_k - t_l)), t = tanh z; a ranking loss in O(labels)."""

    definition = DEFINITIONS["bp_mll"]

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class ZLPR(FunctionLoss):
    """log(1 + sum over negatives of e^z) + log(1 + sum over positives of e^-z): ranks all labels against a zero."""

    definition = DEFINITIONS["zlpr"]

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class TwoWay(FunctionLoss):
    """Two-way loss: hardest positives against hardest negatives, in each label and in each row. It only ranks.

    ``sync``: the columns of labels are those of all processes, and so is the mean over rows.
    """

    definition = DEFINITIONS["two_way"]

    def __init__(self, *, temperature: float = 4.0, sync: bool = False) -> None:
        super().__init__(temperature=temperature)
        self.sync = sync


class RecallAtK(FunctionLoss):
    """RS@k: 1 - a smooth recall among a row's k best labels, averaged over ``k``. It only ranks."""

    definition = DEFINITIONS["recall_at_k"]

    def __init__(
        self,
        *,
        k: Sequence[int] = (1, 2, 4, 8, 16),
        rank_temperature: float = 0.01,
        top_temperature: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            k=k if isinstance(k, int) else tuple(k),
            rank_temperature=rank_temperature,
            top_temperature=top_temperature,
            reduction=reduction,
        )
        self.rank_temperature = rank_temperature

    def logits_of(self, label_logits: Floats) -> Floats:
        """In units of the temperature: the ranks of labels further apart have no gradient."""
        return label_logits * self.rank_temperature


class LambdaLoss(FunctionLoss):
    """NDCG-Loss2++: log losses of a row's pairs, weighed by what their order means to the NDCG. It only ranks.

    Targets are 0 or 1.
    """

    definition = DEFINITIONS["lambda_loss"]

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class DeepF(FunctionLoss):
    """The joint chance of each label and of the number of labels, from logits (..., n, c, most + 1).

    ``most`` is the largest count of labels that is told apart. ``scores`` are the chances of the labels,
    ``joint`` those that the decoder of the highest expected F1 takes.
    """

    definition = DEFINITIONS["deep_f"]

    def __init__(self, most: int, *, reduction: str = "mean") -> None:
        check_whole("most", most)
        super().__init__(reduction=reduction)
        self.most = most

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None, **options: Any) -> Self:
        """With the largest label count of the targets."""
        return cls(largest_count(targets), **options)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """A class for "not there", and one for each count."""
        return labels, self.most + 1

    def logits_of(self, label_logits: Floats) -> Floats:
        """0 for "not there"; the counts share the rest alike."""
        return shared_among_counts(label_logits, self.most)

    def scores(self, logits: Tensor) -> Tensor:
        """The chance of each label: 1 less the softmax of "not there"."""
        scores: Tensor = deep_f_scores(OPS, widen(logits))
        return scores

    def joint(self, logits: Tensor) -> Tensor:
        """The chance of (label i there, s labels in all), (..., n, c, most)."""
        return widen(logits).softmax(-1)[..., 1:]

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
        check_types(logits, targets, mask, weight)
        if logits.ndim < 3 or logits.shape[-1] != self.most + 1:
            raise InputError(
                f"logits have shape {tuple(logits.shape)}: they must have (..., examples, labels, {self.most + 1})"
            )
        super()._check(logits, targets, mask, weight)

    def extra_repr(self) -> str:
        """The options, for ``repr``."""
        return f"most={self.most}, {super().extra_repr()}"
