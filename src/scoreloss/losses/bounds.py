"""Global objectives by bounds (Eban et al. 2017): precision at a recall, recall at a precision, their curve, and F1.

A loss l+ of positives bounds how many are missed from above, a loss l- of negatives how many are raised: the log
loss is k = ln 2 times such a bound, the hinge is one (k = 1). A constraint has a multiplier for each label that rises
while it is broken: its gradient is reversed here, so that whatever descends the loss ascends the multiplier.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scoreloss.counts import division, mean_over_units, over_all_examples, unit_weights
from scoreloss.losses.shared import prepare, times
from scoreloss.ops import Array, Ops

BOUNDS = ("log", "hinge")


def precision_at_recall(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    recall: Array = 0.8,
    multiplier: Array = 1.0,
    prior: Array | None = None,
    bound: str = "log",
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """Fewest false positives at a recall of at least b: (1-y) l- + m (y l+ + pi k (b-1)), averaged.

    ``multiplier`` m is a number, one a label, or one a run and label, taken without its sign; ``prior`` pi is the
    share of positives of each label ((positives + 1) / (n + 2) of the batch where it is not given).
    """
    on_positives, on_negatives, prior, units = _sides(ops, logits, targets, prior, bound, mask, weight)
    m = _ascending(ops, multiplier)
    losses = on_negatives + m * (on_positives + prior * (_unit(bound) * (recall - 1)))
    return mean_over_units(ops, losses, units, "macro")


def recall_at_precision(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    precision: Array = 0.8,
    multiplier: Array = 1.0,
    prior: Array | None = None,
    bound: str = "log",
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """Highest recall at a precision of at least a: (1+m(1-a)) y l+ + m a (1-y) l- - m (1-a) k pi, averaged.

    ``multiplier`` and ``prior`` as in ``precision_at_recall``.
    """
    on_positives, on_negatives, prior, units = _sides(ops, logits, targets, prior, bound, mask, weight)
    m = _ascending(ops, multiplier)
    broken = (1 - precision) * on_positives + precision * on_negatives
    losses = on_positives + m * (broken + prior * (_unit(bound) * (precision - 1)))
    return mean_over_units(ops, losses, units, "macro")


def aucpr(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    multiplier: Array,
    bias: Array,
    prior: Array | None = None,
    bound: str = "log",
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """Recall at precision 1/(A+1) ... A/(A+1), averaged: the area under the curve of precision and recall.

    ``multiplier`` and ``bias`` are (..., A, c): each anchor has its own of every label, and sees the logits plus its
    bias.
    """

    def with_anchors(part: Any) -> Any:
        return part if part is None or part.ndim < 3 else part[..., None, :, :]

    anchors = bias.shape[-2]
    at = recall_at_precision(
        ops,
        ops.widen(logits)[..., None, :, :] + bias[..., None, :],
        with_anchors(targets),
        precision=ops.cast(np.arange(1.0, anchors + 1)[:, None] / (anchors + 1), bias),
        multiplier=multiplier,
        prior=None if prior is None else prior[..., None, :],
        bound=bound,
        mask=with_anchors(mask),
        weight=with_anchors(weight),
    )
    return ops.sum(at, -1) / anchors


def hinge_f1(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """(fn + fp) / (P + max(P - fn, 0)), pooled, fn and fp bounded by the hinge: it bounds 1 - micro F1 from above.

    Without any positive it is 1, as 1 - F1 is.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    w = weights.entries
    missed = ops.sum(times(y * ops.clip(1 - z, 0.0, None), w), (-2, -1))
    raised = ops.sum(times((1 - y) * ops.clip(1 + z, 0.0, None), w), (-2, -1))
    positives = ops.sum(times(y, w), (-2, -1))
    missed, raised, positives = over_all_examples(ops, "micro", missed, raised, positives)
    found = ops.clip(positives - missed, 0.0, None)
    return ops.where(positives > 0, division(ops)(missed + raised, positives + found), 1.0)


def label_priors(ops: Ops, positives: Array, examples: Array) -> Array:
    """(positives + 1) / (n + 2): a share that is never 0 or 1."""
    return (positives + 1) / (examples + 2)


def label_sums(ops: Ops, targets: Array, weight: Array | None, *values: Array) -> tuple[Array, ...]:
    """Of each label the positives, the examples, and sums of more values; ``weight`` has the shape of the targets."""
    everything = ops.ones_like(targets) if weight is None else weight
    sums = (ops.sum(times(part, weight), -2) for part in (targets, *values))
    positives, *others = sums
    return over_all_examples(ops, "macro", positives, ops.sum(everything, -2), *others)


def _sides(
    ops: Ops,
    logits: Array,
    targets: Array,
    prior: Array | None,
    bound: str,
    mask: Array | None,
    weight: Array | None,
) -> tuple[Array, Array, Array, Array | None]:
    """Of each label the mean loss of its positives and of its negatives, over all examples, its prior, its weight."""
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    w = weights.entries
    if bound == "hinge":
        plus, minus = ops.clip(1 - z, 0.0, None), ops.clip(1 + z, 0.0, None)
    else:
        plus, minus = ops.softplus(-z), ops.softplus(z)
    positives, examples, on_positives, on_negatives = label_sums(ops, y, w, y * plus, (1 - y) * minus)
    if prior is None:
        prior = label_priors(ops, positives, examples)
    div = division(ops)
    units = unit_weights(ops, weights, "macro")
    return div(on_positives, examples), div(on_negatives, examples), prior, units


def _unit(bound: str) -> float:
    """How much of the bound's loss one mistake stands for."""
    return math.log(2) if bound == "log" else 1.0


def _ascending(ops: Ops, multiplier: Array) -> Array:
    """abs(v), with its gradient reversed."""
    if isinstance(multiplier, (int, float)):
        return abs(multiplier)
    m = ops.abs(multiplier)
    return 2 * ops.stop_gradient(m) - m
