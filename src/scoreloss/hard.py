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


FEW = 16
"""Up to so many positives, scores are compared with each rather than sorted."""


def at_positives(targets: Booleans, scores: Floats, weight: Floats | None) -> Ladder:
    """The steps of the ladder that a positive stands on: where something is gained."""
    if weight is not None:
        steps = ladder(targets, scores, weight)
        gains = np.flatnonzero(np.diff(steps.tp)) + 1
        return Ladder(*(column[gains] for column in steps))
    falling = -np.sort(-scores[targets])
    tp = tie_ends(falling)[1:]
    thresholds = falling[tp - 1]
    if len(thresholds) <= FEW:
        predicted = np.count_nonzero(scores >= thresholds[:, None], axis=1)
    else:
        predicted = len(scores) - np.searchsorted(np.sort(scores), thresholds)
    return Ladder(thresholds, tp.astype(np.float64), predicted.astype(np.float64))


def places_in_rows(
    scores: Floats, rows: NDArray[np.intp], own: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For some entries of a matrix, in order of their rows: how many of their row score above them, and at least as much.

    A score of NaN counts for nothing.
    """
    sizes = np.bincount(rows, minlength=len(scores))
    starts = np.cumsum(sizes) - sizes
    number = np.arange(len(rows)) - starts[rows]
    few = sizes[rows] <= FEW
    above, at_least = np.empty((2, len(rows)), np.intp)
    for k in range(min(FEW, sizes.max(initial=0))):
        here = np.flatnonzero(few & (number == k))
        others, each = scores[rows[here]], own[here, None]
        above[here] = np.count_nonzero(others > each, axis=1)
        at_least[here] = np.count_nonzero(others >= each, axis=1)
    for row in np.flatnonzero(sizes > FEW):
        mine = slice(starts[row], starts[row] + sizes[row])
        rising = np.sort(scores[row])
        rising = rising[: np.searchsorted(rising, np.nan)]  # which sort behind inf
        above[mine] = len(rising) - np.searchsorted(rising, own[mine], side="right")
        at_least[mine] = len(rising) - np.searchsorted(rising, own[mine])
    return above, at_least


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
