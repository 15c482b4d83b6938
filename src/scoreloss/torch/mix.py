"""A weighted sum of two losses, with a weight that may change as training goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from scoreloss.checks import InputError, number_from
from scoreloss.torch.base import Loss

Schedule = Callable[[Tensor], Tensor | float]
"""From the number of steps taken, a tensor of one number, to the weight of the first loss."""


class Mix(Loss):
    """weight a + (1 - weight) b, for those who warm up on one loss and end with another.

    ``weight`` is a number in [0, 1], or a function of the steps taken so far (calls in ``train()`` mode), such as
    ``warm_up(500)``. ``boundary`` and ``scores`` are those of b; those of a where b only ranks.

    >>> from scoreloss.torch import BCE, SigmoidF1
    >>> loss = Mix(BCE(), SigmoidF1(), weight=0.25)
    >>> round(loss(torch.zeros(4, 3), torch.ones(4, 3)).item(), 4)  # ln 2 / 4 + (1/3) 3/4
    0.4233
    """

    steps: Tensor

    def __init__(self, a: Loss, b: Loss, *, weight: float | Schedule = 0.5) -> None:
        for name, loss in (("a", a), ("b", b)):
            if not isinstance(loss, Loss):
                raise InputError(f"{name} is {loss!r}: it must be a loss of scoreloss.torch")
        if not callable(weight):
            number_from("weight", weight, 0)
            if weight > 1:
                raise InputError(f"weight is {weight!r}: it must lie in [0, 1]")
        super().__init__()
        self.a, self.b = a, b
        self.weight = weight
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    @property
    def decides(self) -> Loss:
        """The loss whose boundary and scores are taken."""
        return self.a if self.b.boundary is None else self.b

    @property
    def boundary(self) -> Any:
        """The boundary of the loss that decides."""
        return self.decides.boundary

    def scores(self, logits: Tensor) -> Tensor:
        """The scores of the loss that decides."""
        return self.decides.scores(logits)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """The shape of the logits of one example."""
        return self.decides.outputs(labels)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The sum, of losses that return the same shape."""
        share = self.weight(self.steps) if callable(self.weight) else self.weight
        if self.training:
            self.steps += 1
        first = self.a(logits, targets, mask, weight)
        second: Tensor = self.b(logits, targets, mask, weight)
        if first.shape != second.shape:
            raise InputError(
                f"a gives a loss of shape {tuple(first.shape)}, b of {tuple(second.shape)}: they must be alike"
            )
        mixed: Tensor = share * first + (1 - share) * second
        return mixed

    def extra_repr(self) -> str:
        """The weight."""
        return f"weight={self.weight!r}"


def warm_up(steps: float) -> Schedule:
    """A weight that falls from 1 to 0 in a straight line over so many steps."""
    number_from("steps", steps, 0, strict=True)
    return partial(_falling, over=steps)


def _falling(taken: Tensor, *, over: float) -> Tensor:
    return torch.clamp(1 - taken / over, min=0)
