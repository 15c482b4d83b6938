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

Sums = tuple[Any, ...]
"""True positives, predicted positives, positives, and the number of entries, of each unit."""

Shape = tuple[int | None, ...]


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
    carry: Callable[..., Sums] | None = None,
) -> tuple[Counts, Array]:
    """Counts of the unit that ``average`` implies, from stand-ins for "predicted positive", and its positives.

    Most surrogates stand in alike for both sides, and pass one array twice. ``weight`` has the shape of the
    targets. ``carry`` makes of the sums of this batch those that are counted.
    """
    sums = soft_sums(ops, on_positives, on_negatives, targets, weight, average)
    sums = over_all_examples(ops, average, *sums)
    return counts_of(ops, sums if carry is None else carry(*sums), bounded=bounded)


def soft_sums(
    ops: Ops,
    on_positives: Array,
    on_negatives: Array,
    targets: Array,
    weight: Array | None,
    average: str | None,
) -> Sums:
    """The sums of ``soft_counts`` over the examples at hand."""
    axis = AXES[average]
    if weight is None:
        total = ops.size(targets, axis)
        positives, everything = targets, on_positives
    else:
        total = ops.sum(weight, axis)
        positives, everything = targets * weight, on_positives * weight
    if on_negatives is on_positives:
        # summed first, so that autograd adds its gradient to that of tp in place
        predicted = ops.sum(everything, axis)
        tp = ops.sum(on_positives * positives, axis)
    else:
        tp = ops.sum(on_positives * positives, axis)
        negatives = (1 if weight is None else weight) - positives
        predicted = tp + ops.sum(on_negatives * negatives, axis)
    return tp, predicted, ops.sum(positives, axis), total


def over_all_examples(ops: Ops, average: str | None, *sums: Array) -> Sums:
    """The sums of the units of an average, over all examples; rows are whole as they are."""
    return sums if average == "samples" else ops.pool(*sums)


def counts_of(ops: Ops, sums: Sums, *, bounded: bool) -> tuple[Counts, Array]:
    """Counts and positives from the sums.

    A ``bounded`` tn of which only rounding is left is 0: it is the one count that scores divide by alone.
    """
    tp, predicted, true, total = sums
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
    return None if weights.entries is None else _weights_and_means(ops, weights, average)[0]


def unit_shares(ops: Ops, weights: Weights, average: str | None) -> tuple[Array | None, Array | None]:
    """The weight of each unit, and of each entry its weight over the mean of its unit."""
    if weights.entries is None:
        return None, None
    units, mean = _weights_and_means(ops, weights, average)
    if mean is None:
        return units, weights.mask
    axis = AXES[average]
    along = mean[..., None, :] if axis == -2 else mean[..., None] if axis == -1 else mean[..., None, None]
    return units, division(ops)(weights.entries, along * ops.ones_like(weights.entries))


def _weights_and_means(ops: Ops, weights: Weights, average: str | None) -> tuple[Array, Array | None]:
    """``unit_weights``, and the mean weight of each unit's entries that have one; None where no weights were given."""
    axis = AXES[average]
    seen = ops.sum(weights.entries, axis)
    if weights.given is None:
        (seen,) = over_all_examples(ops, average, seen)
        return ops.where(seen > 0, ops.ones_like(seen), 0.0), None
    some = ops.where(weights.entries > 0, ops.ones_like(weights.entries), 0.0)
    seen, number = over_all_examples(ops, average, seen, ops.sum(some, axis))
    mean = division(ops)(seen, number)
    alike = not _tells_apart(weights.given.shape, weights.entries.shape, average)
    return ops.where(seen > 0, ops.ones_like(seen) if alike else mean, 0.0), mean


def _tells_apart(shape: Shape, entries: Shape, average: str | None) -> bool:
    """Whether weights of a shape may differ from unit to unit (labels, rows, or whole batches) of so many entries.

    Of a single row, (1, 1) and (1, c) are what (n, 1) and (n, c) are of more: its batch may have others elsewhere.
    """
    if average == "samples":
        return len(shape) > 1 and (shape[-2] != 1 or entries[-2] == 1)
    return average != "micro" and len(shape) > 0 and shape[-1] != 1


def mean_over_units(ops: Ops, values: Array, units: Array | None, average: str | None) -> Array:
    """The mean of (..., units) weighted by ``units``; 0 where nothing has weight.

    A vector for ``average=None``; ``micro`` has one unit and no axis to lose.
    """
    if average == "micro" or average is None:
        return values if units is None else ops.where(units > 0, values, 0.0)
    return weighted_mean(ops, values, units, pool=ops.pool if average == "samples" else None)


def over_number(ops: Ops, total: Array, number: Any) -> Array:
    """A sum over how many entries it has; 0 where there are none."""
    return total / (max(number, 1) if isinstance(number, int) else ops.clip(number, 1.0, None))


def weighted_mean(
    ops: Ops, values: Array, weights: Array | None, pool: Callable[..., Sums] | None = None
) -> Array:
    """The mean over the last axis; 0 where nothing has weight. ``pool`` is for an axis of examples."""
    pool = pool or (lambda *sums: sums)
    if weights is None:
        return over_number(ops, *pool(ops.sum(values, -1), ops.size(values, -1)))
    return division(ops)(*pool(ops.sum(values * weights, -1), ops.sum(ops.ones_like(values) * weights, -1)))
