"""Every loss, once, as a pure function of logits and targets over ``Ops``.

``logits`` have shape (..., n, c): n examples, c labels, leading axes independent runs. ``targets`` are in
[0, 1] and have that shape or (n, c). ``mask`` (False where a label is missing) and ``weight`` broadcast
against them: (n, 1) weighs examples, (c,) labels, (n, c) entries. A weight of 2 counts like two of the same.

Entries are written as sums: the gradient of a difference is negated while it is still one number broadcast, and
comes out in another memory order than the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoreloss.checks import InputError, number_from, one_of
from scoreloss.counts import (
    AXES,
    NOTHING,
    division,
    mean_over_units,
    soft_counts,
    unit_weights,
)
from scoreloss.ops import Array, Ops
from scoreloss.scores import SCORES, Score, has_tp_factor, is_rational
from scoreloss.surrogates import SURROGATES, check_bounds, knobs_of

REDUCTIONS = ("mean", "sum", "none")
EMPTY = ("zero", "skip", "one")

LEAST_DENOMINATOR = 1e-7
"""Where a surrogate is unbounded, so may be a denominator: it is held at least here."""


def metric_loss(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    score: str | Score = "f1",
    surrogate: str = "sigmoid",
    average: str | None = "macro",
    empty: str = "zero",
    smoothing: float = 0.0,
    mask: Array | None = None,
    weight: Array | None = None,
    **knobs: Any,
) -> Array:
    """1 - score of the soft counts, averaged as scikit-learn's word says.

    A vector with one a label (None), the mean over labels, plain or by positives (macro, weighted), the score
    of the pooled counts (micro), or the mean over rows (samples). ``knobs`` are the surrogate's own. Names are
    taken as checked (``check_metric``).
    """
    formula = SCORES[score] if isinstance(score, str) else score
    kind = SURROGATES[surrogate]
    logits, targets, mask, weight = prepare(ops, logits, targets, mask, weight)
    counts, true = soft_counts(
        ops, *kind.stand_in(ops, logits, **knobs), targets, weight, average, bounded=kind.bounded
    )
    div = division(ops, smoothing=smoothing, least=None if kind.bounded else LEAST_DENOMINATOR)
    losses = 1 - formula(*counts, div)
    units = unit_weights(ops, mask, weight, average)
    if empty != "zero" and has_tp_factor(formula):
        losses = ops.where(true > 0, losses, 0.0)
        if empty == "skip":
            units = ops.where(true > 0, 1.0 if units is None else units, 0.0)
    if average == "weighted":
        someone = ops.sum(true, -1, keepdims=True) > 0
        seen = 1.0 if units is None else ops.where(units > 0, 1.0, 0.0)
        units = ops.where(someone, true, seen * ops.ones_like(true))
    return mean_over_units(ops, losses, units, average)


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
    z, y, mask, weight = prepare(ops, logits, targets, mask, weight)
    above = ops.softplus(z)  # -log(1 - p); less z it is -log p
    entries = above + -y * z
    if pos_weight is not None:
        entries = entries + (pos_weight - 1) * y * (above - z)
    return reduce_entries(ops, entries, weight, reduction)


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
    z, y, mask, weight = prepare(ops, logits, targets, mask, weight)
    above = ops.softplus(z)
    below = above - z  # -log p, beside -log(1 - p)
    positives, negatives = (y, 1 - y) if alpha is None else (alpha * y, (1 - alpha) * (1 - y))
    entries = positives * below * ops.exp(-gamma * above)
    entries = entries + negatives * above * ops.exp(-gamma * below)
    return reduce_entries(ops, entries, weight, reduction)


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
    z, y, mask, weight = prepare(ops, logits, targets, mask, weight)
    off = ops.sigmoid(-z)  # 1 - p
    easy_positives = _power(ops.stop_gradient(off), gamma_pos)
    if clip > NOTHING:
        q = off + clip
        on_negatives = ops.clip(-ops.log(q), 0.0, None)
        easy_negatives = _power(ops.clip(1 - ops.stop_gradient(q), 0.0, None), gamma_neg)
    else:
        on_negatives = ops.softplus(z)
        easy_negatives = _power(ops.stop_gradient(1 - off), gamma_neg)
    entries = y * easy_positives * ops.softplus(-z) + (1 - y) * easy_negatives * on_negatives
    return reduce_entries(ops, entries, weight, reduction)


def _power(base: Array, exponent: Array) -> Array:
    """base**exponent; of the usual whole exponents as products, which cost a tenth."""
    if isinstance(exponent, (int, float)) and exponent in (1, 2, 4):
        for _ in range(int(exponent).bit_length() - 1):
            base = base * base
        return base
    return base**exponent


def prepare(
    ops: Ops,
    logits: Array,
    targets: Array,
    mask: Array | None,
    weight: Array | None,
) -> tuple[Array, Array, Array | None, Array | None]:
    """Logits and targets in float32 or wider, mask and weight as numbers in the shape of the targets.

    A masked entry becomes 0 in all four, so that what it held, NaN too, is never seen.
    """
    logits = ops.widen(logits)
    targets = ops.cast(targets, logits)
    if mask is not None:
        there = mask > 0
        logits = ops.where(there, logits, 0.0)
        targets = ops.where(there, targets, 0.0)
        mask = ops.where(there, ops.ones_like(targets), 0.0)
    if weight is not None:
        weight = ops.cast(weight, logits) * ops.ones_like(targets)
        if mask is not None:
            weight = ops.where(mask > 0, weight, 0.0)
    return logits, targets, mask, mask if weight is None else weight


def reduce_entries(ops: Ops, entries: Array, weight: Array | None, reduction: str) -> Array:
    """Of (..., n, c) element-wise losses the weighted mean, the weighted sum, or each, weighted."""
    if weight is not None:
        entries = entries * weight
    if reduction == "none":
        return entries
    total = ops.sum(entries, (-2, -1))
    if reduction == "sum":
        return total
    if weight is None:
        return total / max(entries.shape[-2] * entries.shape[-1], 1)
    return division(ops)(total, ops.sum(weight, (-2, -1)))


def check_metric(
    score: str | Score,
    surrogate: str,
    average: str | None,
    empty: str,
    smoothing: float,
    knobs: Mapping[str, Any],
) -> dict[str, Any]:
    """Refuse a metric loss that cannot be; the knobs of its surrogate, with their defaults."""
    if not callable(score):
        one_of("score", score, SCORES)
    formula = SCORES[score] if isinstance(score, str) else score
    one_of("average", average, AXES)
    one_of("empty", empty, EMPTY)
    number_from("smoothing", smoothing, 0)
    name = score if isinstance(score, str) else getattr(score, "__name__", "a function")
    try:
        has_tp_factor(formula)
    except Exception as problem:
        raise InputError(
            f"score {name} fails on plain numbers ({problem}): it must be a function of (tp, fp, fn, tn, div)"
        ) from problem
    if smoothing and not is_rational(formula):
        raise InputError(
            f"smoothing is {smoothing:g}: score {name} divides by a root, where smoothing would reward a "
            "constant prediction; it must be 0"
        )
    all_knobs = knobs_of(surrogate, knobs)
    check_bounds(formula, name, surrogate)
    return all_knobs
