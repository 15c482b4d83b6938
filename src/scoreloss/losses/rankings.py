"""Losses of rows: each example's labels are ranked, or chosen among, against each other.

A row counts with the mean weight of its entries, and within it each label with its share of that. Rows on which a
loss says nothing (none of the labels positive, say) leave the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from scoreloss.counts import division, mean_over_units, over_all_examples, unit_shares, unit_weights
from scoreloss.losses.shared import (
    FAR,
    log_sum_exp,
    prepare,
    prepare_targets,
    reduce_rows,
    times,
    unmasked,
)
from scoreloss.ops import Array, Ops


def pick_all_labels(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    normalised: bool = False,
    draws: Array | None = None,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Softmax cross-entropy, summed over a row's positives (Menon et al. 2019).

    ``normalised`` divides by the number of positives. ``draws`` are random numbers (..., n, c): of each row's
    positives the one with the largest counts alone, which is the same on average as ``normalised``.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    rows, share = unit_shares(ops, weights, "samples")
    positives = times(y, share)
    if draws is not None:
        draws = ops.where(positives > 0, draws * ops.ones_like(positives), -FAR)
        first = draws >= ops.max(draws, -1, keepdims=True)
        positives = ops.where(first, positives, 0.0)
    total = ops.sum(positives, -1)
    values = ops.sum(positives * (log_sum_exp(ops, z, share)[..., None] - z), -1)
    if normalised:
        values = division(ops)(values, total)
    return reduce_rows(ops, values, total > 0, rows, reduction)


def bp_mll(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Mean over a row's pairs (positive k, negative l) of exp(-(t_k - t_l)), t = tanh z (Zhang and Zhou 2006).

    The sum over pairs is a product of two sums, so it costs as many operations as there are labels.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    rows, share = unit_shares(ops, weights, "samples")
    t = 2 * ops.sigmoid(2 * z) - 1
    positives, negatives = times(y, share), times(1 - y, share)
    of_positives = ops.sum(positives * ops.exp(-t), -1)
    of_negatives = ops.sum(negatives * ops.exp(t), -1)
    pairs = ops.sum(positives, -1) * ops.sum(negatives, -1)
    values = division(ops)(of_positives * of_negatives, pairs)
    return reduce_rows(ops, values, pairs > 0, rows, reduction)


def zlpr(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """log(1 + sum over negatives of e^z) + log(1 + sum over positives of e^-z) (Su et al. 2022)."""
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    rows, share = unit_shares(ops, weights, "samples")
    above = log_sum_exp(ops, z, times(1 - y, share))
    below = log_sum_exp(ops, -z, times(y, share))
    return reduce_rows(ops, ops.softplus(above) + ops.softplus(below), None, rows, reduction)


def two_way(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    temperature: float = 4.0,
    mask: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """softplus(T lse(-z/T over positives) + lse(z over negatives)) of columns and of rows (Kobayashi 2023).

    The mean over the labels that have a positive, plus the mean over the examples that have one. The loss is of
    a whole batch, so it has no ``reduction``.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)

    def side(average: str, axis: int) -> Array:
        units, share = unit_shares(ops, weights, average)
        positives = times(y, share)
        hard = temperature * log_sum_exp(ops, -z / temperature, positives, axis)
        easy = log_sum_exp(ops, z, times(1 - y, share), axis)
        (total,) = over_all_examples(ops, average, ops.sum(positives, axis))
        units = ops.where(total > 0, ops.ones_like(total) if units is None else units, 0.0)
        return mean_over_units(ops, ops.where(total > 0, ops.softplus(hard + easy), 0.0), units, average)

    return side("macro", -2) + side("samples", -1)


def recall_at_k(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    k: Sequence[int] = (1, 2, 4, 8, 16),
    rank_temperature: float = 0.01,
    top_temperature: float = 1.0,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """1 - the mean over k of a smooth recall among the k best labels of a row (RS@k, Patel et al. 2022).

    rank_i = 1 + sum over j of sigmoid((z_j - z_i) / t2), t2 = ``rank_temperature``; the recall at k is the sum
    over positives of sigmoid((k - rank) / t1), t1 = ``top_temperature``, at most k, over min(k, positives).
    Weights are those of examples, (n, 1): a rank counts labels, and a label does not count in part.
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    rows = unit_weights(ops, weights, "samples")
    scaled = z / rank_temperature
    labels = np.arange(z.shape[-1])
    others = ops.cast(-FAR * (labels[:, None] == labels), z)
    if weights.mask is not None:
        others = others + (weights.mask[..., None, :] - 1) * FAR
    ahead = ops.sum(ops.sigmoid(scaled[..., None, :] - scaled[..., None] + others), -1)
    positives = ops.sum(y, -1)
    recall: Any = 0
    for cut in k:
        found = ops.sum(y * ops.sigmoid((cut - 1 - ahead) / top_temperature), -1)
        recall = recall + division(ops)(ops.clip(found, None, cut), ops.clip(positives, None, cut))
    return reduce_rows(ops, 1 - recall / len(k), positives > 0, rows, reduction)


def lambda_loss(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Sum over a row's pairs (positive i, negative j) of w log2(1 + e^-(z_i - z_j)) (NDCG-Loss2++, Wang et al. 2018).

    With D(r) = log2(1 + r), ranks r by descending logit (of equals the lower label first), d = |r_i - r_j| and G
    the gain 1 / (sum of 1/D over the first ranks, one for each positive), w = G (|1/D(r_i) - 1/D(r_j)| + 10
    |1/D(d) - 1/D(d + 1)|), which carries no gradient. Targets are 0 or 1. Weights are those of examples, (n, 1).
    """
    z, y, weights = prepare(ops, logits, targets, mask, weight)
    rows = unit_weights(ops, weights, "samples")
    c = z.shape[-1]
    negatives = times(1 - y, weights.mask)
    pairs = y[..., None] * negatives[..., None, :]
    fixed = ops.stop_gradient(z)
    lead = fixed[..., None, :] - fixed[..., None]  # z_j - z_i at (i, j)
    earlier = ops.cast(np.tri(c, k=-1), z)
    ahead = ops.where(lead > 0, 1.0, ops.where(lead < 0, 0.0, earlier))
    others = None if weights.mask is None else weights.mask[..., None, :]
    rank = 1 + ops.sum(times(ahead, others), -1)
    discount = _discount(ops, rank)
    swap = ops.abs(discount[..., None] - discount[..., None, :])
    apart = ops.clip(ops.abs(rank[..., None] - rank[..., None, :]), 1.0, None)
    swap = swap + 10 * (_discount(ops, apart) - _discount(ops, apart + 1))
    positives, places = ops.sum(y, -1), np.arange(1.0, c + 1)
    best = ops.sum(
        ops.where(ops.cast(places, z) <= positives[..., None], ops.cast(1 / np.log2(1 + places), z), 0.0), -1
    )
    of_pairs = ops.softplus(z[..., None, :] - z[..., None])
    values = division(ops)(ops.sum(swap * pairs * of_pairs, (-2, -1)) / math.log(2), best)
    return reduce_rows(ops, values, (positives > 0) & (ops.sum(negatives, -1) > 0), rows, reduction)


def deep_f(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Softmax cross-entropy of (..., n, c, m + 1) against y_i times the row's label count, summed over labels.

    Counts above m are taken as m. Targets are 0 or 1. A mask hides whole examples, (n, 1): the count of a row with
    a label missing is not known (Decubber et al. 2018).
    """
    z = unmasked(ops, ops.widen(logits), None if mask is None else mask[..., None])
    y, weights = prepare_targets(ops, z, targets, mask, weight)
    rows, share = unit_shares(ops, weights, "samples")
    values = _cross_entropy(ops, z, y * _count(ops, y, z.shape[-1])[..., None])
    return reduce_rows(ops, ops.sum(times(values, share), -1), None, rows, reduction)


def deep_f_scores(ops: Ops, logits: Array) -> Array:
    """The chance of each label from logits (..., n, c, m + 1): 1 less the softmax of "not there"."""
    return ops.sigmoid(log_sum_exp(ops, logits[..., 1:]) - logits[..., 0])


def label_count(
    ops: Ops,
    logits: Array,
    targets: Array,
    *,
    mask: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """Softmax cross-entropy of (..., n, m + 1) against the number of a row's labels, at most m.

    Mask and weight are those of examples, (n, 1).
    """
    z = unmasked(ops, ops.widen(logits), mask)
    y, weights = prepare_targets(ops, z, targets, mask, weight)
    rows = unit_weights(ops, weights, "samples")
    values = _cross_entropy(ops, z, _count(ops, y, z.shape[-1]))
    return reduce_rows(ops, values, None, rows, reduction)


def _count(ops: Ops, y: Array, classes: int) -> Array:
    return ops.clip(ops.sum(y, -1), None, classes - 1)


def _cross_entropy(ops: Ops, z: Array, chosen: Array) -> Array:
    """Of logits (..., classes) against the number of a class."""
    classes = ops.cast(np.arange(z.shape[-1]), z)
    return log_sum_exp(ops, z) - ops.sum(ops.where(classes == chosen[..., None], z, 0.0), -1)


def _discount(ops: Ops, rank: Array) -> Array:
    return math.log(2) / ops.log(1 + rank)
