"""Losses of rows: an example's labels against each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scoreloss import losses
from scoreloss.checks import InputError, number_from
from scoreloss.torch.base import Floats, FunctionLoss, ReducedLoss, check_shapes, check_types
from scoreloss.torch.ops import widen


class PickAllLabels(ReducedLoss):
    """Softmax cross-entropy over a row's labels, summed over its positives.

    ``normalised`` divides by their number; ``pick_one`` draws one of them anew each time, which is the same on
    average. It only ranks. Rows without a positive are skipped.
    """

    only_ranks = True

    def __init__(self, *, normalised: bool = False, pick_one: bool = False, reduction: str = "mean") -> None:
        if normalised and pick_one:
            raise InputError("normalised and pick_one are both True: a loss takes one of them")
        super().__init__(losses.pick_all_labels, reduction, normalised=normalised)
        self.pick_one = pick_one

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        return {"draws": torch.rand_like(widen(logits))} if self.pick_one else {}


class BPMLL(ReducedLoss):
    """BP-MLL: the mean over a row's pairs of exp(-(t_k - t_l)), t = tanh z; a ranking loss in O(labels)."""

    only_ranks = True

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(losses.bp_mll, reduction)


class ZLPR(ReducedLoss):
    """log(1 + sum over negatives of e^z) + log(1 + sum over positives of e^-z): ranks all labels against a zero."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(losses.zlpr, reduction)


class TwoWay(FunctionLoss):
    """Two-way loss: hardest positives against hardest negatives, in each label and in each row. It only ranks.

    ``sync``: the columns of labels are those of all processes, and so is the mean over rows.
    """

    only_ranks = True

    def __init__(self, *, temperature: float = 4.0, sync: bool = False) -> None:
        number_from("temperature", temperature, 0, strict=True)
        super().__init__(losses.two_way, temperature=temperature)
        self.sync = sync


class RecallAtK(ReducedLoss):
    """RS@k: 1 - a smooth recall among a row's k best labels, averaged over ``k``. It only ranks."""

    only_ranks = True
    weighs_examples_only = True

    def __init__(
        self,
        *,
        k: Sequence[int] = (1, 2, 4, 8, 16),
        rank_temperature: float = 0.01,
        top_temperature: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        if not k or not all(isinstance(cut, int) and cut > 0 for cut in k):
            raise InputError(f"k is {k!r}: it must hold whole numbers above 0")
        number_from("rank_temperature", rank_temperature, 0, strict=True)
        number_from("top_temperature", top_temperature, 0, strict=True)
        super().__init__(
            partial(losses.recall_at_k, k=tuple(k)),
            reduction,
            rank_temperature=rank_temperature,
            top_temperature=top_temperature,
        )
        self.rank_temperature = rank_temperature

    def logits_of(self, label_logits: Floats) -> Floats:
        """In units of the temperature: the ranks of labels further apart have no gradient."""
        return label_logits * self.rank_temperature


class LambdaLoss(ReducedLoss):
    """NDCG-Loss2++: log losses of a row's pairs, weighed by what their order means to the NDCG. It only ranks."""

    only_ranks = True
    weighs_examples_only = True

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(losses.lambda_loss, reduction)


class DeepF(ReducedLoss):
    """The joint chance of each label and of the number of labels, from logits (..., n, c, most + 1).

    ``most`` is the largest count of labels that is told apart. ``scores`` are the chances of the labels,
    ``joint`` those that the decoder of the highest expected F1 takes.
    """

    def __init__(self, most: int, *, reduction: str = "mean") -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InputError(f"most is {most!r}: it must be a whole number above 0")
        super().__init__(losses.deep_f, reduction)
        self.most = most

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None) -> Self:
        """With the largest label count of the targets."""
        return cls(max(1, int(targets.sum(axis=1).max())))

    def outputs(self, labels: int) -> tuple[int, ...]:
        """A class for "not there", and one for each count."""
        return labels, self.most + 1

    def logits_of(self, label_logits: Floats) -> Floats:
        """0 for "not there"; the counts share the rest alike."""
        there = np.repeat(label_logits[..., None] - np.log(self.most), self.most, axis=-1)
        return np.concatenate([np.zeros_like(label_logits)[..., None], there], axis=-1)

    def scores(self, logits: Tensor) -> Tensor:
        """The chance of each label: 1 less the softmax of "not there"."""
        z = widen(logits)
        return torch.sigmoid(z[..., 1:].logsumexp(-1) - z[..., 0])

    def joint(self, logits: Tensor) -> Tensor:
        """The chance of (label i there, s labels in all), (..., n, c, most)."""
        return widen(logits).softmax(-1)[..., 1:]

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
        check_types(logits, targets, mask, weight)
        if logits.ndim < 3 or logits.shape[-1] != self.most + 1:
            raise InputError(
                f"logits have shape {tuple(logits.shape)}: they must have (..., examples, labels, {self.most + 1})"
            )
        check_shapes(logits.shape[:-1], targets, mask, weight)
        if mask is not None and mask.shape[-1:] != (1,):
            raise InputError(
                f"mask has shape {tuple(mask.shape)}: the label count of an example with a label missing is not "
                f"known, so a mask hides whole examples, ({targets.shape[-2]}, 1)"
            )

    def extra_repr(self) -> str:
        """The options, for ``repr``."""
        return f"most={self.most}, {super().extra_repr()}"
