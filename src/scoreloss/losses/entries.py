"""Losses of single entries: each logit has its own, and the mean, the sum or all of them are returned.

Entries are written as sums: the gradient of a difference is negated while it is still one number broadcast, and
comes out in another memory order than the logits.
"""

from __future__ import annotations

from scoreloss.counts import NOTHING
from scoreloss.losses.shared import prepare, reduce_entries
from scoreloss.ops import Array, Ops


def bce(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    pos_weight: Array | None = None,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Binary cross-entropy: w y softplus(-z) + (1 - y) softplus(z), w = ``pos_weight``."""
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    above = ops.softplus(z)  # -log(1 - p); less z it is -log p
    entries = above + -y * z
    if pos_weight is not None:
        entries = entries + (pos_weight - 1) * y * (above - z)
    return reduce_entries(ops, entries, weights.entries, reduction)


def focal(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    alpha: Array | None = 0.25,
    gamma: Array = 2.0,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """a_t (1 - p_t)^gamma bce: entries that are nearly right count less (Lin et al. 2017).

    a_t is alpha on the positives and 1 - alpha on the negatives; 1 where alpha is None.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    return reduce_entries(ops, _focal_entries(ops, z, y, alpha, gamma), weights.entries, reduction)


def poly1(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    epsilon: Array = 1.0,
    alpha: Array | None = None,
    gamma: Array = 0.0,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """The focal loss + epsilon (1 - p_t)^(gamma + 1); bce + epsilon (1 - p_t) as it is (Leng et al. 2022)."""
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    on_positives = ops.exp(-(gamma + 1) * ops.softplus(z))
    on_negatives = ops.exp(-(gamma + 1) * ops.softplus(-z))
    wrong = y * on_positives + (1 - y) * on_negatives
    entries = _focal_entries(ops, z, y, alpha, gamma) + epsilon * wrong
    return reduce_entries(ops, entries, weights.entries, reduction)


def asymmetric(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    gamma_neg: Array = 4.0,
    gamma_pos: Array = 1.0,
    clip: float = 0.05,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """-[y (1 - p)^g+ log p + (1 - y) (1 - q)^g- log q], q = min(1 - p + clip, 1): easy negatives are dropped.

    The focal weights carry no gradient (Ridnik et al. 2021, whose own reduction is the sum).
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    off = ops.sigmoid(-z)  # 1 - p
    easy_positives = _power(ops.stop_gradient(off), gamma_pos)
    if clip > NOTHING:
        q = off + clip
        on_negatives = ops.clip(-ops.log(q), 0.0, None)
        easy_negatives = _power(ops.clip(1 - ops.stop_gradient(q), 0.0, None), gamma_neg)
    else:
        on_negatives = ops.softplus(z)
        easy_negatives = _power(1 - ops.stop_gradient(off), gamma_neg)
    entries = y * easy_positives * ops.softplus(-z) + (1 - y) * easy_negatives * on_negatives
    return reduce_entries(ops, entries, weights.entries, reduction)


def hill(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """-y (1 - p')^2 log p' + (1 - y) (3/2 - p) p^2, p' = sigmoid(z - 1): negatives that look positive are spared.

    The loss of a negative turns down at p = 1: it is taken for a label somebody forgot (Zhang et al. 2021).
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    p = ops.sigmoid(z)
    off = ops.sigmoid(1 - z)  # 1 - p'
    entries = y * off * off * ops.softplus(1 - z) + (1 - y) * (1.5 - p) * p * p
    return reduce_entries(ops, entries, weights.entries, reduction)


def _focal_entries(ops: Ops, z: Array, y: Array, alpha: Array | None, gamma: Array) -> Array:
    above = ops.softplus(z)
    below = above - z  # -log p, beside -log(1 - p)
    positives, negatives = (y, 1 - y) if alpha is None else (alpha * y, (1 - alpha) * (1 - y))
    if _is_usual(gamma):
        hard_positives, hard_negatives = _power(ops.sigmoid(-z), gamma), _power(ops.sigmoid(z), gamma)
    else:  # a power of what may be 0 has no gradient there
        hard_positives, hard_negatives = ops.exp(-gamma * above), ops.exp(-gamma * below)
    return positives * below * hard_positives + negatives * above * hard_negatives


def _is_usual(exponent: Array) -> bool:
    return isinstance(exponent, (int, float)) and exponent in (1, 2, 4)


def _power(base: Array, exponent: Array) -> Array:
    """base**exponent; of the usual whole exponents as products, which cost a tenth."""
    if _is_usual(exponent):
        for _ in range(int(exponent).bit_length() - 1):
            base = base * base
        return base
    return base**exponent
