"""Reductions to one softmax over a row: how many labels it has, and which set of labels it is."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from scoreloss import losses
from scoreloss.checks import InputError, checked_targets
from scoreloss.losses.definitions import check_shapes
from scoreloss.losses.options import check_whole
from scoreloss.losses.shared import reduce_rows
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
        shapes = [None if part is None else part.shape for part in (mask, weight)]
        check_shapes((*logits.shape[:-1], targets.shape[-1]), targets.shape, *shapes)
        for name, extra in (("mask", mask), ("weight", weight)):
            if extra is not None and extra.shape[-1:] != (1,):
                raise InputError(
                    f"{name} has shape {tuple(extra.shape)}: an example has one count, so it must be "
                    f"({targets.shape[-2]}, 1)"
                )
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
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None) -> Self:
        """With the sets of the targets."""
        return cls(targets)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """A logit for each set."""
        return (len(self.sets),)

    def logits_of(self, label_logits: Floats) -> Floats:
        """What independent labels would give each set, up to a constant."""
        sets: Floats = self.sets.double().numpy()
        return np.asarray(label_logits @ sets.T)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean over rows of logits (..., n, sets) against targets (n, c) or (..., n, c)."""
        check_types(logits, targets, None, None)
        check_shapes((*logits.shape[:-1], self.sets.shape[1]), targets.shape)
        z = widen(logits)
        targets = targets.to(self.sets.dtype)
        wrong = targets.sum(-1, keepdim=True) + self.sets.sum(-1) - 2 * targets @ self.sets.mT
        known, which = (wrong == 0).max(-1)
        chosen = z.log_softmax(-1).gather(-1, which.expand(z.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        mean: Tensor = reduce_rows(OPS, -chosen, known, None, "mean")
        return mean

    def scores(self, logits: Tensor) -> Tensor:
        """The chance of each label."""
        z = widen(logits)
        return z.softmax(-1) @ self.sets.to(z.dtype)

    def predict(self, logits: Tensor) -> Tensor:
        """The likeliest set of each row, as booleans."""
        return self.sets[logits.argmax(-1)] > 0
