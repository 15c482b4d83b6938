"""What the losses have in common: how arguments are prepared, logs of sums, and how values become one loss."""

from __future__ import annotations

from scoreloss.counts import Weights, division, over_number, weighted_mean
from scoreloss.ops import Array, Ops

REDUCTIONS = ("mean", "sum", "none")

FAR = 1e30
"""Stands in for infinity where infinity less infinity would come up: no logit is as large."""


def prepare(
    ops: Ops,
    logits: Array,
    targets: Array,
    mask: Array | None,
    weight: Array | None,
) -> tuple[Array, Array, Weights]:
    """Logits and targets in float32 or wider, mask and weight as numbers in the shape of the targets.

    A masked entry becomes 0 in all four, so that what it held, NaN too, is never seen.
    """
    logits = unmasked(ops, ops.widen(logits), mask)
    return logits, *prepare_targets(ops, logits, targets, mask, weight)


def prepare_targets(
    ops: Ops, like: Array, targets: Array, mask: Array | None, weight: Array | None
) -> tuple[Array, Weights]:
    """What ``prepare`` makes of targets, mask and weight, in the float type of an array."""
    targets = unmasked(ops, ops.cast(targets, like), mask)
    given = None if weight is None else ops.cast(weight, like)
    if mask is None:
        return targets, Weights(None, given if given is None else given * ops.ones_like(targets), given)
    mask = unmasked(ops, ops.ones_like(targets), mask)
    entries = mask if given is None else unmasked(ops, given * ops.ones_like(targets), mask)
    return targets, Weights(mask, entries, given)


def unmasked(ops: Ops, values: Array, mask: Array | None) -> Array:
    """Values, 0 where masked."""
    return values if mask is None else ops.where(ops.cast(mask, values) > 0, values, 0.0)


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
        return over_number(ops, total, ops.size(entries, (-2, -1)))
    return division(ops)(total, ops.sum(weight, (-2, -1)))


def reduce_rows(
    ops: Ops, values: Array, counted: Array | None, weight: Array | None, reduction: str
) -> Array:
    """Of (..., n) losses of rows the weighted mean, the weighted sum, or each, weighted; 0 where not ``counted``."""
    if counted is not None:
        values = ops.where(counted, values, 0.0)
        weight = ops.where(counted, ops.ones_like(values) if weight is None else weight, 0.0)
    if reduction == "mean":
        return weighted_mean(ops, values, weight)
    if weight is not None:
        values = values * weight
    return values if reduction == "none" else ops.sum(values, -1)


def times(values: Array, share: Array | None) -> Array:
    """Values, weighted where there are weights."""
    return values if share is None else values * share


def log_sum_exp(ops: Ops, z: Array, weight: Array | None = None, axis: int = -1) -> Array:
    """log of the sum of weight e^z along an axis; -FAR where all weights are 0. Axis -2 is that of the examples."""
    if weight is None:
        if z.shape[axis] == 0:
            return ops.sum(z, axis) - FAR
        top = ops.stop_gradient(ops.max(z, axis, keepdims=True))
        total = ops.sum(ops.exp(z - top), axis, keepdims=True)
    else:
        top = ops.sum(z, axis, keepdims=True) - FAR  # the maximum of nothing
        if z.shape[axis] != 0:
            top = ops.stop_gradient(ops.max(ops.where(weight > 0, z, -FAR), axis, keepdims=True))
        if axis == -2:
            top = ops.pool_max(top)
        total = ops.sum(weight * ops.exp(ops.where(weight > 0, z - top, 0.0)), axis, keepdims=True)
        if axis == -2:
            (total,) = ops.pool(total)
        total = ops.where(total > 0, total, 1.0)
    return ops.sum(ops.log(total) + top, axis)
