"""Losses of single entries: cross-entropy and its kin."""

from __future__ import annotations

from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.torch.base import FunctionLoss, Knob


class BCE(FunctionLoss):
    """Binary cross-entropy with logits; ``pos_weight`` (a number or one a label) weighs the positives."""

    definition = DEFINITIONS["bce"]

    def __init__(self, *, pos_weight: Knob | None = None, reduction: str = "mean") -> None:
        super().__init__(pos_weight=pos_weight, reduction=reduction)


class Focal(FunctionLoss):
    """Focal loss: cross-entropy in which entries that are nearly right count less.

    ``alpha`` (None: no weighing of the sides) and ``gamma`` may be numbers or vectors with one a label.
    """

    definition = DEFINITIONS["focal"]

    def __init__(
        self,
        *,
        alpha: Knob | None = 0.25,
        gamma: Knob = 2.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(alpha=alpha, gamma=gamma, reduction=reduction)


class Poly1(FunctionLoss):
    """The focal loss (cross-entropy at ``gamma`` 0 and ``alpha`` None, the defaults) + epsilon (1 - p_t)^(gamma + 1)."""

    definition = DEFINITIONS["poly1"]

    def __init__(
        self,
        *,
        epsilon: Knob = 1.0,
        alpha: Knob | None = None,
        gamma: Knob = 0.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(epsilon=epsilon, alpha=alpha, gamma=gamma, reduction=reduction)


class Asymmetric(FunctionLoss):
    """ASL: focal weights that differ between the sides and carry no gradient; easy negatives are dropped.

    The mean over entries; ``reduction="sum"`` is the authors' own.
    """

    definition = DEFINITIONS["asymmetric"]

    def __init__(
        self,
        *,
        gamma_neg: Knob = 4.0,
        gamma_pos: Knob = 1.0,
        clip: float = 0.05,
        reduction: str = "mean",
    ) -> None:
        super().__init__(gamma_neg=gamma_neg, gamma_pos=gamma_pos, clip=clip, reduction=reduction)


class Hill(FunctionLoss):
    """Hill loss: a negative that looks positive is taken for a label somebody forgot, and spared."""

    definition = DEFINITIONS["hill"]

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
