"""Rules that turn scores into labels: ``fit`` on held-out data, then ``predict``.

A score at or above its threshold is positive. The candidates are all distinct scores and "above all of
them" (inf: predict nothing); among equals the highest wins. Never fit a rule on the data that it is
judged on, nor on those that trained the scores.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.checks import (
    Booleans,
    Floats,
    InputError,
    as_array,
    checked,
    formula_of,
    number_from,
    one_of,
    rounded_like,
)
from scoreloss.counts import AXES, from_sums
from scoreloss.hard import DIV, rounding_off
from scoreloss.scores import Score

EQUAL = 1e-12
"""Scores that differ by less came out of sums in another order."""


class Rule(Protocol):
    """What every rule can do."""

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Learn from held-out targets (n, c) and scores (n, c); returns the rule."""

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""


class Fixed:
    """One number, given. 0.5 on ``loss.scores`` is the boundary the loss itself was trained with.

    >>> Fixed(0.5).predict([[0.5, 0.4]]).tolist()
    [[True, False]]
    """

    def __init__(self, threshold: float = 0.5) -> None:
        if not isinstance(threshold, Real) or math.isnan(threshold):
            raise InputError(f"threshold is {threshold!r}: it must be a number")
        self.threshold: float = threshold

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Nothing to learn; the arguments are checked like any rule's."""
        checked(targets, scores, sample_weight, mask)
        return self

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return _at_least(scores, self.threshold)

    def __repr__(self) -> str:
        return f"Fixed({self.threshold:g})"


class Global:
    """The one threshold that maximises a score, averaged as told, on the data it is fitted on; exact.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div).

    >>> Global("f1").fit([[1], [1], [0]], [[0.9], [0.4], [0.2]]).threshold_
    0.4
    """

    threshold_: float
    score_: float

    def __init__(self, score: str | Score = "f1", average: str = "macro") -> None:
        self._score = formula_of(score)
        one_of("average", average, [name for name in AXES if name])
        self.score = score
        self.average = average

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """One sort of all scores; each step down changes the counts of one label, or one row."""
        y, s, w, m = _held_out(targets, scores, sample_weight, mask)
        entries = _Entries(y, s, w, m)
        n, c = y.shape
        rows, labels = entries.rows, entries.labels
        if self.average == "micro":
            unit, units = np.zeros_like(labels), np.ones(1)
        elif self.average == "samples":
            unit, units = rows, np.ones(n) if w is None else w
        else:
            unit, units = labels, np.ones(c)
        if self.average == "weighted":
            units = np.bincount(unit, entries.positives, minlength=c).astype(float)
        seen = np.bincount(unit, minlength=len(units)) > 0
        self.threshold_, self.score_ = _best(
            entries, unit, units * seen, self._score, flat_weight=self.average == "samples"
        )
        return self

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return _at_least(scores, _fitted(self, "threshold_"))

    def __repr__(self) -> str:
        return f"Global({_name(self.score)!r}, {self.average!r})"


class PerLabel:
    """The threshold of each label that maximises a score on the data it is fitted on; exact.

    A label with fewer than ``min_positives`` positives, or on which all thresholds score the same, takes
    the threshold of ``Global(score)``.

    >>> PerLabel().fit([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.3]]).thresholds_.tolist()
    [0.9, 0.3]
    """

    thresholds_: Floats
    scores_: Floats
    fallback_: Booleans

    def __init__(self, score: str | Score = "f1", *, min_positives: int = 0) -> None:
        self._score = formula_of(score)
        number_from("min_positives", min_positives, 0)
        self.score = score
        self.min_positives = min_positives

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """One sort a label."""
        y, s, w, m = _held_out(targets, scores, sample_weight, mask)
        labels = y.shape[1]
        self.thresholds_ = np.empty(labels)
        self.scores_ = np.empty(labels)
        self.fallback_ = np.count_nonzero(y, axis=0) < self.min_positives
        for j in range(labels):
            best = _best_of_label(y[:, j], s[:, j], w, m if m is None else m[:, j], self._score)
            self.thresholds_[j], self.scores_[j], told_apart = best
            self.fallback_[j] |= not told_apart
        if self.fallback_.any():
            shared = Global(self.score).fit(y, s, sample_weight=w, mask=m)
            self.thresholds_[self.fallback_] = shared.threshold_
        return self

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return _at_least(scores, _fitted(self, "thresholds_"))

    def __repr__(self) -> str:
        return f"PerLabel({_name(self.score)!r}, min_positives={self.min_positives})"


class TopK:
    """The k best labels of each row, ties by label index.

    ``k`` is a number, one for each row (the prediction of a ``LabelCount``), or "count": the sum of the row's
    probabilities, rounded. There is nothing to learn.

    >>> TopK(1).predict([[0.5, 0.9], [0.4, 0.4]]).tolist()
    [[False, True], [True, False]]
    """

    def __init__(self, k: int | ArrayLike | str) -> None:
        if isinstance(k, str):
            one_of("k", k, ["count"])
        else:
            counts = np.asarray(k)
            if counts.dtype.kind not in "iu" or counts.ndim > 1 or (counts < 0).any():
                raise InputError(
                    f"k is {k!r}: it must be a whole number of at least 0, one for each row, or 'count'"
                )
        self.k = k

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Nothing to learn; the arguments are checked like any rule's."""
        checked(targets, scores, sample_weight, mask)
        return self

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        s = _checked_scores(scores)
        if isinstance(self.k, str):
            if s.size and not (s.min() >= 0 and s.max() <= 1):
                raise InputError("scores lie outside [0, 1]: TopK('count') needs probabilities")
            counts = np.floor(s.sum(axis=1) + 0.5)
        else:
            counts = np.asarray(self.k)
            if counts.ndim and len(counts) != len(s):
                raise InputError(f"k has {len(counts)} numbers: the scores have {len(s)} rows")
        order = np.argsort(-s, axis=1, kind="stable")
        predicted = np.empty(s.shape, bool)
        first = np.arange(s.shape[1]) < counts.reshape(-1, 1)
        np.put_along_axis(predicted, order, np.broadcast_to(first, s.shape), axis=1)
        return predicted

    def __repr__(self) -> str:
        return f"TopK({self.k!r})"


class _Entries:
    """The entries of a score matrix from the highest score down."""

    def __init__(
        self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None
    ) -> None:
        c = targets.shape[1]
        flat = np.arange(targets.size) if mask is None else np.flatnonzero(mask)
        values = scores.ravel()[flat]
        order = np.argsort(-values, kind="stable")
        self.values = values[order]
        self.rows, self.labels = np.divmod(flat[order], c)
        self.targets = targets.ravel()[flat[order]]
        self.weight = None if weight is None else weight[self.rows]
        self.positives = self.targets * (1.0 if self.weight is None else self.weight)


def _best(
    entries: _Entries,
    unit: NDArray[np.intp],
    units: Floats,
    score: Score,
    *,
    flat_weight: bool,
) -> tuple[float, float]:
    """The best threshold for the mean over units, weighted by ``units``, of a score.

    Entries are regrouped by unit, still from the highest score down, so that each one's counts are a running
    sum; what each adds to its unit's score then goes back into the order of all, and is summed.
    """
    grouped = np.argsort(unit, kind="stable")
    ones = np.ones(len(unit))
    weight = ones if flat_weight or entries.weight is None else entries.weight[grouped]
    hits = weight * entries.targets[grouped]
    sizes = np.bincount(unit, minlength=len(units))
    starts = np.cumsum(sizes) - sizes
    member = unit[grouped]
    true = np.bincount(member, hits, minlength=len(units)).astype(float)
    total = np.bincount(member, weight, minlength=len(units)).astype(float)
    tp = _running(hits, starts, sizes)
    predicted = _running(weight, starts, sizes)
    floor = rounding_off(entries.weight, total[member])
    values = score(*from_sums(tp, predicted, true[member], total[member], floor), DIV)
    nothing = score(*from_sums(0.0 * true, 0.0 * true, true, total), DIV)
    before = np.concatenate([[0.0], values[:-1]])
    occupied = sizes > 0
    before[starts[occupied]] = nothing[occupied]
    added = np.empty(len(unit))
    added[grouped] = (values - before) * units[member]
    mass = float(units.sum()) or 1.0
    means = (float(nothing @ units) + np.concatenate([[0.0], np.cumsum(added)])) / mass
    place = _highest_best(means, entries.values)
    return (np.inf if place == 0 else float(entries.values[place - 1])), float(means[place])


def _best_of_label(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None,
    mask: Booleans | None,
    score: Score,
) -> tuple[float, float, bool]:
    """The best threshold of one label, its score, and whether any threshold scores better than another."""
    if mask is not None:
        targets, scores = targets[mask], scores[mask]
        weight = None if weight is None else weight[mask]
    order = np.argsort(-scores)
    ordered = scores[order]
    each = np.ones(len(order)) if weight is None else weight[order]
    tp = np.concatenate([[0.0], np.cumsum(targets[order] * each)])
    predicted = np.concatenate([[0.0], np.cumsum(each)])
    floor = rounding_off(weight, predicted[-1])
    values = score(*from_sums(tp, predicted, tp[-1], predicted[-1], floor), DIV)
    ends = _tie_ends(ordered)
    place = _highest_best(values, ordered)
    told_apart = bool(np.ptp(values[ends]) > EQUAL)
    return (np.inf if place == 0 else float(ordered[place - 1])), float(values[place]), told_apart


def _highest_best(values: Floats, ordered: Floats) -> int:
    """The first place, thus the highest threshold, whose value is the best; place 0 is "above all"."""
    ends = _tie_ends(ordered)
    at_ends = values[ends]
    return int(ends[np.argmax(at_ends >= at_ends.max() - EQUAL)])


def _tie_ends(ordered: Floats) -> NDArray[np.intp]:
    """Places where a threshold can stand: 0, and behind the last of each run of equal scores."""
    apart = np.ones(len(ordered) + 1, bool)
    apart[1:-1] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(apart)


def _running(values: Floats, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
    """Cumulative sums that start anew with each group."""
    sums = np.cumsum(values)
    offsets = np.concatenate([[0.0], sums])[starts]
    return np.asarray(sums - np.repeat(offsets, sizes))


def _name(score: str | Score) -> str:
    return score if isinstance(score, str) else getattr(score, "__name__", "a function")


def _held_out(
    targets: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None, mask: ArrayLike | None
) -> tuple[Booleans, Floats, Floats | None, Booleans | None]:
    y, s, w, m = checked(targets, scores, sample_weight, mask)
    if np.isposinf(s if m is None else s[m]).any():
        raise InputError("scores contain inf: no threshold lies above it")
    # A score does not depend on the scale of weights, but tiny ones would be taken for rounding.
    return y, s, w if w is None or not w.any() else w / w.mean(), m


def _fitted(rule: Any, attribute: str) -> Any:
    if not hasattr(rule, attribute):
        raise InputError(f"{rule!r} is not fitted: call fit(targets, scores) first")
    return getattr(rule, attribute)


def _checked_scores(scores: ArrayLike) -> Floats:
    s = as_array("scores", scores)
    if s.ndim != 2:
        raise InputError(f"scores have shape {s.shape}: they must be a matrix (examples, labels)")
    if np.isnan(s).any():
        raise InputError("scores contain NaN: they must be numbers")
    return np.asarray(s.astype(np.float64, copy=False))


def _at_least(scores: ArrayLike, thresholds: Any) -> Booleans:
    s = _checked_scores(scores)
    if np.ndim(thresholds) and s.shape[1] != len(thresholds):
        raise InputError(f"scores have {s.shape[1]} labels: the rule was fitted on {len(thresholds)}")
    return np.asarray(s >= rounded_like(thresholds, scores))
