"""Soft or hard counts from three sums, their division, and the average over labels or rows.

tp, predicted positives and true positives are summed; fp, fn and tn follow by subtraction. Nothing
here knows a score or a framework: scores come in as functions, frameworks as ``Ops``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from scoreloss.ops import Array, Ops
    from scoreloss.scores import Div

AXES: dict[str | None, int | tuple[int, int]] = {
    "macro": -2,
    "micro": (-2, -1),
    "samples": -1,
    "weighted": -2,
    None: -2,
}
"""average -> the axes of (..., examples, labels) that its counts are summed over."""

NOTHING = 1e-30
"""A denominator up to here is 0: its reciprocal would overflow float32 in the backward pass."""


class Counts(NamedTuple):
    """The confusion matrix of each unit (label, row, or the whole batch)."""

    tp: Any
    fp: Any
    fn: Any
    tn: Any


def from_sums(
    tp: Array,
    predicted: Array,
    true: Array,
    total: Array,
    floor: Callable[[Array], Array] = lambda x: x,
) -> Counts:
    """Counts by subtraction; ``floor`` takes back what rounding leaves of a count that is 0."""
    fp = floor(predicted - tp)
    return Counts(tp, fp, floor(true - tp), floor(total - true - fp))


def soft_counts(
    ops: Ops,
    on_positives: Array,
    on_negatives: Array,
    targets: Array,
    weight: Array | None,
    average: str | None,
    *,
    bounded: bool,
) -> tuple[Counts, Array]:
    """Counts of the unit that ``average`` implies, from stand-ins for "predicted positive", and its positives.

    Most surrogates stand in alike for both sides, and pass one array twice. ``weight`` has the shape of the
    targets. A ``bounded`` tn of which only rounding is left is 0: it is the one count that scores divide by
    alone.
    """
    axis = AXES[average]
    if weight is None:
        total = ops.size(targets, axis)
        positives, everything = targets, on_positives
    else:
        total = ops.sum(weight, axis)
        positives, everything = targets * weight, on_positives * weight
    tp = ops.sum(on_positives * positives, axis)
    if on_negatives is on_positives:
        predicted = ops.sum(everything, axis)
    else:
        negatives = (1 if weight is None else weight) - positives
        predicted = tp + ops.sum(on_negatives * negatives, axis)
    true = ops.sum(positives, axis)
    counts = from_sums(tp, predicted, true, total)
    if bounded:
        tn = ops.where(counts.tn > ops.epsilon(tp) * total, counts.tn, 0.0)
        counts = counts._replace(tn=tn)
    return counts, true


def division(ops: Ops, *, smoothing: float = 0.0, least: float | None = None) -> Div:
    """num / den**power, where 0/0 is 0 and its gradient too.

    The denominator is guarded first and the root taken after. ``smoothing`` is added to both sides.
    ``least`` is for counts that may fall below zero: the denominator is then held at least there.
    """

    def div(num: Array, den: Array, power: float = 1) -> Array:
        if smoothing:
            num, den = num + smoothing, den + smoothing
        if least is not None:
            return num / ops.clip(den, least, None) ** power
        den = ops.where(den > NOTHING, den, math.inf)  # x / inf is 0, and so is its gradient
        return ops.divide(num, ops.sqrt(den) if power == 0.5 else den if power == 1 else den**power)

    return div


class Weights(NamedTuple):
    """What mask and weight say, as numbers in the shape of the targets; None where nobody said anything."""

    mask: Any
    entries: Any
    """The weight of each entry, 0 where masked."""
    given: Any
    """The weights as they came, before the mask and in their own shape."""


def unit_weights(ops: Ops, weights: Weights, average: str | None) -> Array | None:
    """How much each unit counts in the mean: 0 without an unmasked entry that has weight.

    Units that the weights tell apart count with the mean weight of their entries, those masked or of weight 0 left
    out. Others count alike: weights of examples, (n, 1), leave labels equal, whatever is masked.
    """
    if weights.entries is None:
        return None
    seen = ops.sum(weights.entries, AXES[average])
    tells_apart = weights.given is not None and _tells_apart(weights.given.shape, average)
    weight = _mean_weights(ops, weights, average) if tells_apart else ops.ones_like(seen)
    return ops.where(seen > 0, weight, 0.0)


def unit_shares(ops: Ops, weights: Weights, average: str | None) -> tuple[Array | None, Array | None]:
    """The weight of each unit, and of each entry its weight over the mean of its unit."""
    units = unit_weights(ops, weights, average)
    if units is None or weights.given is None:
        return units, weights.mask
    axis = AXES[average]
    mean = _mean_weights(ops, weights, average)
    along = mean[..., None, :] if axis == -2 else mean[..., None] if axis == -1 else mean[..., None, None]
    return units, division(ops)(weights.entries, along * ops.ones_like(weights.entries))


def _mean_weights(ops: Ops, weights: Weights, average: str | None) -> Array:
    """The mean weight of each unit's entries that have one; 0 without any."""
    axis = AXES[average]
    some = ops.where(weights.entries > 0, ops.ones_like(weights.entries), 0.0)
    return division(ops)(ops.sum(weights.entries, axis), ops.sum(some, axis))


def _tells_apart(shape: tuple[int | None, ...], average: str | None) -> bool:
    """Whether weights of a shape may differ from unit to unit: labels, rows, or whole batches."""
    if average == "samples":
        return len(shape) > 1 and shape[-2] != 1
    return average != "micro" and len(shape) > 0 and shape[-1] != 1


def mean_over_units(ops: Ops, values: Array, units: Array | None, average: str | None) -> Array:
    """The mean of (..., units) weighted by ``units``; 0 where nothing has weight.

    A vector for ``average=None``; ``micro`` has one unit and no axis to lose.
    """
    if average == "micro" or average is None:
        return values if units is None else ops.where(units > 0, values, 0.0)
    return weighted_mean(ops, values, units)


def over_number(ops: Ops, total: Array, number: Any) -> Array:
    """A sum over how many entries it has; 0 where there are none."""
    return total / (max(number, 1) if isinstance(number, int) else ops.clip(number, 1.0, None))


def weighted_mean(ops: Ops, values: Array, weights: Array | None) -> Array:
    """The mean over the last axis; 0 where nothing has weight."""
    if weights is None:
        return over_number(ops, ops.sum(values, -1), ops.size(values, -1))
    return division(ops)(ops.sum(values * weights, -1), ops.sum(ops.ones_like(values) * weights, -1))
