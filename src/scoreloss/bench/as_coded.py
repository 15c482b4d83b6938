"""The loss that the paper's published code computes, for those who want its numbers: S applied to sigmoid(z), not to z."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scoreloss.torch import Loss, SigmoidF1
from scoreloss.torch.ops import widen

if TYPE_CHECKING:
    from torch import Tensor


class SigmoidF1AsCoded(Loss):
    """``SigmoidF1`` on sigmoid(z) in place of z; the options are the same.

    sigmoid(z) lies between 0 and 1, and so S between S(0) and S(1): with an offset of 0 or more it says at least 1/2 of
    everything. So it has no boundary, and its scores are sigmoid(z).
    """

    only_ranks = True

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.on_chances = SigmoidF1(**options)

    def forward(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None = None, weight: Tensor | None = None
    ) -> Tensor:
        """The loss of logits (..., n, c): a scalar, or one a run."""
        loss: Tensor = self.on_chances(widen(logits).sigmoid(), targets, mask, weight)
        return loss
