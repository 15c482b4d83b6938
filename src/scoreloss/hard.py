"""Hard counts in numpy: what a prediction got right and wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scoreloss.checks import Booleans, Floats
from scoreloss.counts import Counts, division, from_sums
from scoreloss.ops import NUMPY

DIV = division(NUMPY)
"""num / den**power of arrays, 0 where the denominator is 0."""

ROUNDING = 1e-12


def hard_counts(
    targets: Booleans,
    predicted: Booleans,
    weight: Floats | None,
    mask: Booleans | None,
    axis: int,
) -> Counts:
    """The confusion matrix of each label (axis 0) or row (axis 1)."""
    if mask is not None:
        targets, predicted = targets & mask, predicted & mask

    def total(entries: Booleans) -> Floats:
        if weight is not None and axis == 0:
            return np.asarray(weight @ entries)
        sums = np.count_nonzero(entries, axis=axis).astype(np.float64)
        return sums if weight is None else np.asarray(sums * weight)

    everything = total(np.ones_like(targets) if mask is None else mask)
    return from_sums(
        total(targets & predicted),
        total(predicted),
        total(targets),
        everything,
        rounding_off(weight, everything),
    )


def rounding_off(weight: Floats | None, total: Floats) -> Callable[[Floats], Floats]:
    """What makes a difference of weighted sums 0 where only rounding is left of it.

    A score with a root in its denominator would take the rest for a count.
    """
    if weight is None:
        return lambda count: count
    return lambda count: np.where(count <= ROUNDING * total, 0.0, count)
