"""Losses of single entries: cross-entropy and its kin."""

from __future__ import annotations

from scoreloss import losses
from scoreloss.checks import number_from
from scoreloss.torch.base import Knob, ReducedLoss, check_knob, check_share


class BCE(ReducedLoss):
    """Binary cross-entropy with logits; ``pos_weight`` (a number or one a label) weighs the positives."""

    def __init__(self, *, pos_weight: Knob | None = None, reduction: str = "mean") -> None:
        if pos_weight is not None:
            check_knob("pos_weight", pos_weight)
        super().__init__(losses.bce, reduction, pos_weight=pos_weight)


class Focal(ReducedLoss):
    """Focal loss: cross-entropy in which entries that are nearly right count less.

    ``alpha`` (None: no weighing of the sides) and ``gamma`` may be numbers or vectors with one a label.
    """

    def __init__(
        self,
        *,
        alpha: Knob | None = 0.25,
        gamma: Knob = 2.0,
        reduction: str = "mean",
    ) -> None:
        if alpha is not None:
            check_knob("alpha", alpha, high=1)
        check_knob("gamma", gamma)
        super().__init__(losses.focal, reduction, alpha=alpha, gamma=gamma)


class Poly1(ReducedLoss):
    """The focal loss (cross-entropy at ``gamma`` 0 and ``alpha`` None, the defaults) + epsilon (1 - p_t)^(gamma + 1)."""

    def __init__(
        self,
        *,
        epsilon: Knob = 1.0,
        alpha: Knob | None = None,
        gamma: Knob = 0.0,
        reduction: str = "mean",
    ) -> None:
        if isinstance(epsilon, (int, float)):
            number_from("epsilon", epsilon, -1e30)
        if alpha is not None:
            check_knob("alpha", alpha, high=1)
        check_knob("gamma", gamma)
        super().__init__(losses.poly1, reduction, epsilon=epsilon, alpha=alpha, gamma=gamma)


class Asymmetric(ReducedLoss):
    """ASL: focal weights that differ between the sides and carry no gradient; easy negatives are dropped.

    The mean over entries; ``reduction="sum"`` is the authors' own.
    """

    def __init__(
        self,
        *,
        gamma_neg: Knob = 4.0,
        gamma_pos: Knob = 1.0,
        clip: float = 0.05,
        reduction: str = "mean",
    ) -> None:
        check_knob("gamma_neg", gamma_neg)
        check_knob("gamma_pos", gamma_pos)
        check_share("clip", clip)
        super().__init__(
            losses.asymmetric,
            reduction,
            gamma_neg=gamma_neg,
            gamma_pos=gamma_pos,
            clip=clip,
        )


class Hill(ReducedLoss):
    """Hill loss: a negative that looks positive is taken for a label somebody forgot, and spared."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(losses.hill, reduction)
