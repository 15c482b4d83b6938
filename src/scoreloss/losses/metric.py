"""1 - a score of soft counts: any score x surrogate x average."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scoreloss.checks import InputError, formula_of, number_from, one_of
from scoreloss.counts import AXES, Counts, Sums, division, mean_over_units, soft_counts, unit_shares
from scoreloss.losses.shared import prepare
from scoreloss.ops import Array, Ops
from scoreloss.scores import SCORES, Div, Number, Score, f1, has_tp_factor, is_rational
from scoreloss.surrogates import SURROGATES, check_bounds, knobs_of

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
    carry: Callable[..., Sums] | None = None,
    **knobs: Any,
) -> Array:
    """1 - score of the soft counts, averaged as scikit-learn's word says.

    A vector with one a label (None), the mean over labels, plain or by positives (macro, weighted), the score
    of the pooled counts (micro), or the mean over rows (samples). ``knobs`` are the surrogate's own. Names are
    taken as checked (``check_metric``). ``carry`` makes of the four sums of this batch those that are scored.
    A knob may be a number, or have one a label, (c,), or one a run and label, (runs, c).
    """
    kind = SURROGATES[surrogate]
    logits, targets, weights = prepare(ops, logits, targets, mask, weight)
    units, shares = unit_shares(ops, weights, average)
    if smoothing:  # counts against what is added to them: no score is free of their scale then
        shares = weights.entries
    knobs = {name: across_examples(knob) for name, knob in knobs.items()}
    counts, true = soft_counts(
        ops,
        *kind.stand_in(ops, logits, **knobs),
        targets,
        shares,
        average,
        bounded=kind.bounded,
        carry=carry,
    )
    losses = unit_losses(
        ops, counts, true, score=score, surrogate=surrogate, empty=empty, smoothing=smoothing
    )
    units = unit_importance(ops, true, units, score=score, average=average, empty=empty, smoothing=smoothing)
    return mean_over_units(ops, losses, units, average)


def unit_losses(
    ops: Ops,
    counts: Counts,
    true: Array,
    *,
    score: str | Score,
    surrogate: str,
    empty: str,
    smoothing: float,
) -> Array:
    """1 - the score of each unit, from its counts and its positives."""
    formula = SCORES[score] if isinstance(score, str) else score
    least = None if SURROGATES[surrogate].bounded else LEAST_DENOMINATOR
    losses = 1 - formula(*counts, division(ops, smoothing=smoothing, least=least))
    if empty != "zero" and has_tp_factor(formula):
        losses = ops.where(true > 0, losses, 0.0)
    return losses


def unit_importance(
    ops: Ops,
    true: Array,
    units: Array | None,
    *,
    score: str | Score,
    average: str | None,
    empty: str,
    smoothing: float,
) -> Array | None:
    """How much each unit counts in the mean, from its positives and the weight it was given; None: all alike."""
    formula = SCORES[score] if isinstance(score, str) else score
    if empty == "skip" and has_tp_factor(formula):
        units = ops.where(true > 0, ops.ones_like(true) if units is None else units, 0.0)
    if average == "weighted":
        support = true if units is None or smoothing else true * units
        seen = ops.ones_like(support)
        seen = seen if units is None else ops.where(units > 0, seen, 0.0)
        units = ops.where(ops.sum(support, -1, keepdims=True) > 0, support, seen)
    return units


def mfc(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    offset: Array = 0.0,
    slope: Array = 1.0,
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """1 - micro F1 of S(z) = sigmoid(slope (z + offset)), the offset learned for each label."""
    return metric_loss(
        ops, logits, targets, average="micro", slope=slope, offset=offset, mask=mask, weight=weight
    )


def double_f1(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """The mean of F1 on the positives and F1 on the negatives."""
    return (f1(tp, fp, fn, tn, div) + f1(tn, fn, fp, tp, div)) / 2


def check_metric(
    score: str | Score,
    surrogate: str,
    average: str | None,
    empty: str,
    smoothing: float,
    knobs: Mapping[str, Any],
) -> dict[str, Any]:
    """Refuse a metric loss that cannot be; the knobs of its surrogate, with their defaults."""
    formula = formula_of(score)
    one_of("average", average, AXES)
    one_of("empty", empty, EMPTY)
    number_from("smoothing", smoothing, 0)
    name = score if isinstance(score, str) else getattr(score, "__name__", "a function")
    if smoothing and not is_rational(formula):
        raise InputError(
            f"smoothing is {smoothing:g}: score {name} divides by a root, where smoothing would reward a "
            "constant prediction; it must be 0"
        )
    all_knobs = knobs_of(surrogate, knobs)
    check_bounds(formula, name, surrogate)
    return all_knobs


def across_examples(knob: Any) -> Any:
    """A knob of one value a run and label, (..., c), shaped to meet logits (..., n, c)."""
    return knob[..., None, :] if getattr(knob, "ndim", 0) > 1 else knob
