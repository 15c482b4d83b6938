"""Reductions to one softmax over a row: how many labels it has, and which set of labels it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from scoreloss import losses
from scoreloss.checks import InputError, checked_targets
from scoreloss.counts import unit_weights
from scoreloss.losses.definitions import check_shapes
from scoreloss.losses.options import check_whole
from scoreloss.losses.shared import prepare_targets, reduce_rows, unmasked
from scoreloss.torch.base import Floats, Loss, check_types
from scoreloss.torch.ops import OPS, widen


class LabelCount(nn.Linear):
    """A head for the number of labels of a row, 0 to ``most``, on the features of any other head (ML-NET).

    ``loss`` is trained beside any loss, and ``predict`` gives ``TopK`` its counts:

        total = loss(head(x), y) + count.loss(x, y)
        labels = sl.TopK(count.predict(x).numpy()).predict(scores)
    """

    def __init__(self, features: int, most: int) -> None:
        check_whole("most", most)
        super().__init__(features, most + 1)

    def loss(
        self, features: Tensor, targets: Tensor, mask: Tensor | None = None, weight: Tensor | None = None
    ) -> Tensor:
        """Softmax cross-entropy against the label counts of targets (n, c), those above ``most`` taken as it.

        ``mask`` and ``weight`` are those of examples, (n, 1).
        """
        logits = self(features)
        check_types(logits, targets, mask, weight)
        _check_examples((*logits.shape[:-1], targets.shape[-1]), targets, mask, weight, "count")
        loss: Tensor = losses.label_count(OPS, logits, targets, mask=mask, weight=weight)
        return loss

    @torch.no_grad()
    def predict(self, features: Tensor) -> Tensor:
        """The most likely count of each row."""
        logits: Tensor = self(features)
        return torch.as_tensor(logits.argmax(-1))


class LabelPowerset(Loss):
    """Softmax cross-entropy over whole label sets: those that ``targets`` (n, c) hold, a logit for each.

    Rows with any other set are skipped in training. ``scores`` are the chances of the labels, summed over the
    sets that hold them; ``predict`` gives the likeliest set, which is what subset accuracy asks for.
    """

    sets: Tensor

    def __init__(self, targets: ArrayLike) -> None:
        super().__init__()
        sets = np.unique(checked_targets(targets), axis=0)
        self.register_buffer("sets", torch.from_numpy(sets).float(), persistent=False)

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None, **options: Any) -> Self:
        """With the sets of the targets."""
        return cls(targets, **options)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """A logit for each set."""
        return (len(self.sets),)

    def logits_of(self, label_logits: Floats) -> Floats:
        """What independent labels would give each set, up to a constant."""
        sets: Floats = self.sets.double().numpy()
        return np.asarray(label_logits @ sets.T)

    def forward(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None = None, weight: Tensor | None = None
    ) -> Tensor:
        """The mean over rows of logits (..., n, sets) against targets (n, c) or (..., n, c).

        ``mask`` and ``weight`` are those of examples, (n, 1).
        """
        check_types(logits, targets, mask, weight)
        if logits.shape[-1] != len(self.sets):
            raise InputError(f"logits have {logits.shape[-1]} numbers: there are {len(self.sets)} sets")
        _check_examples((*logits.shape[:-1], self.sets.shape[1]), targets, mask, weight, "set")
        z = unmasked(OPS, widen(logits), mask)
        y, weights = prepare_targets(OPS, z, targets, mask, weight)
        with torch.autocast(z.device.type, enabled=False):
            sets = self.sets.to(z.dtype)
            wrong = y.sum(-1, keepdim=True) + sets.sum(-1) - 2 * y @ sets.mT
        known, which = (wrong == 0).max(-1)
        chosen = z.log_softmax(-1).gather(-1, which.expand(z.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        mean: Tensor = reduce_rows(OPS, -chosen, known, unit_weights(OPS, weights, "samples"), "mean")
        return mean

    def scores(self, logits: Tensor) -> Tensor:
        """The chance of each label."""
        z = widen(logits)
        with torch.autocast(z.device.type, enabled=False):
            return z.softmax(-1) @ self.sets.to(z.dtype)

    def predict(self, logits: Tensor) -> Tensor:
        """The likeliest set of each row, as booleans."""
        return self.sets[logits.argmax(-1)] > 0


def _check_examples(
    shape: Sequence[int], targets: Tensor, mask: Tensor | None, weight: Tensor | None, what: str
) -> None:
    """Refuse shapes that do not fit, and mask and weight that are not those of examples: an example has one ``what``."""
    shapes = [None if part is None else part.shape for part in (mask, weight)]
    check_shapes(shape, targets.shape, *shapes)
    for name, extra in (("mask", mask), ("weight", weight)):
        if extra is not None and extra.shape[-1:] != (1,):
            raise InputError(
                f"{name} has shape {tuple(extra.shape)}: an example has one {what}, so it must be ({targets.shape[-2]}, 1)"
            )
