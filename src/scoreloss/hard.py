"""Hard counts in numpy: what a prediction got right and wrong, and what every threshold would."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class Ladder(NamedTuple):
    """One label from its highest threshold down: "above all" (inf), then every distinct score."""

    thresholds: Floats
    tp: Floats
    predicted: Floats


def ladder(targets: Booleans, scores: Floats, weight: Floats | None) -> Ladder:
    """What each threshold of one label predicts, and what of it is right.

    Without weights the scores are sorted alone, and the positives then find their places among them: several times
    faster than a sort that carries positions along, and as exact.
    """
    if weight is None:
        falling = np.sort(-scores)
        places = np.searchsorted(falling, np.sort(-scores[targets]), side="right")
        ends = tie_ends(falling)
        tp = np.cumsum(np.bincount(places, minlength=len(falling) + 1))[ends].astype(np.float64)
        predicted = ends.astype(np.float64)
    else:
        order = np.argsort(-scores)
        falling, each = -scores[order], weight[order]
        ends = tie_ends(falling)
        tp = np.append(0.0, np.cumsum(targets[order] * each))[ends]
        predicted = np.append(0.0, np.cumsum(each))[ends]
    thresholds = 0.0 - np.append(-np.inf, falling)[ends]  # not -falling, which would make -0.0 of 0
    return Ladder(thresholds, tp, predicted)


def tie_ends(ordered: Floats) -> NDArray[np.intp]:
    """Places where a threshold can stand: 0, and behind the last of each run of equal scores."""
    apart = np.ones(len(ordered) + 1, bool)
    apart[1:-1] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(apart)


def rounding_off(weight: Floats | None, total: Floats) -> Callable[[Floats], Floats]:
    """What makes a difference of weighted sums 0 where only rounding is left of it.

    A score with a root in its denominator would take the rest for a count.
    """
    if weight is None:
        return lambda count: count
    return lambda count: np.where(count <= ROUNDING * total, 0.0, count)
