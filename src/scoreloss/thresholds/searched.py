"""Rules that search their thresholds among the scores of held-out data, exactly.

Every distinct score and "above all of them" is tried, by running sums over one sort; nothing here samples a grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.checks import Booleans, Floats, InputError, formula_of, number_from, one_of
from scoreloss.counts import AXES, Counts, from_sums
from scoreloss.hard import DIV, hard_counts, ladder, rounding_off, tie_ends
from scoreloss.scores import Score
from scoreloss.split import stratified_split
from scoreloss.thresholds.rule import Rule, at_least, check_below_inf, fitted

EQUAL = 1e-12
"""Scores that differ by less came out of sums in another order."""


class Global(Rule):
    """The one threshold that maximises a score, averaged as told, on the data it is fitted on; exact.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div). ``score_`` is what it reached.

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

    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        """One sort of all scores; each step down changes the counts of one label, or one row."""
        check_below_inf(scores, mask)
        entries = _Entries(targets, scores, weight, mask)
        n, c = targets.shape
        rows, labels = entries.rows, entries.labels
        if self.average == "micro":
            unit, units = np.zeros_like(labels), np.ones(1)
        elif self.average == "samples":
            unit, units = rows, np.ones(n) if weight is None else weight
        else:
            unit, units = labels, np.ones(c)
        if self.average == "weighted":
            units = np.bincount(unit, entries.positives, minlength=c).astype(float)
        seen = np.bincount(unit, minlength=len(units)) > 0
        self.threshold_, self.score_ = _best(
            entries, unit, units * seen, self._score, flat_weight=self.average == "samples"
        )

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return at_least(scores, fitted(self, "threshold_"))

    def __repr__(self) -> str:
        return f"Global({_name(self.score)!r}, {self.average!r})"


class PerLabel(Rule):
    """The threshold of each label that maximises a score on the data it is fitted on; exact.

    A label with fewer than ``min_positives`` positives, or on which all thresholds score the same, takes the
    threshold of ``Global(score)``, and is marked in ``fallback_``. With ``cv`` each threshold is the mean over as
    many stratified folds, each time fitted with one fold left out, so that a few examples don't decide; inf stands
    where it did in most of them. ``scores_`` is what each label reaches on the data it was fitted on.

    >>> PerLabel().fit([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.3]]).thresholds_.tolist()
    [0.9, 0.3]
    """

    thresholds_: Floats
    scores_: Floats
    fallback_: Booleans

    def __init__(self, score: str | Score = "f1", *, min_positives: int = 0, cv: int | None = None) -> None:
        self._score = formula_of(score)
        number_from("min_positives", min_positives, 0)
        if cv is not None and (isinstance(cv, bool) or not isinstance(cv, int) or cv < 2):
            raise InputError(f"cv is {cv!r}: it must be a number of folds, at least 2, or None")
        self.score = score
        self.min_positives = min_positives
        self.cv = cv

    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        """One sort a label."""
        check_below_inf(scores, mask)
        found = _best_of_labels(targets, scores, weight, mask, self._score)
        self.thresholds_, self.scores_ = found.thresholds, found.scores
        self.fallback_ = (np.count_nonzero(targets, axis=0) < self.min_positives) | ~found.told_apart
        if self.cv is not None:
            self.thresholds_ = self._over_folds(self.cv, targets, scores, weight, mask)
        if self.fallback_.any():
            shared = Global(self.score).fit(targets, scores, sample_weight=weight, mask=mask)
            self.thresholds_[self.fallback_] = shared.threshold_
        if self.cv is not None or self.fallback_.any():
            counts = hard_counts(targets, scores >= self.thresholds_, weight, mask, axis=0)
            self.scores_ = _values(self._score, counts)

    def _over_folds(
        self, cv: int, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None
    ) -> Floats:
        """The mean over folds that tell thresholds apart, each left out once."""
        n = len(targets)
        if n < cv:
            raise InputError(f"cv is {cv}: there are only {n} examples")
        found = []
        for fold in stratified_split(targets, [1 / cv] * cv):
            kept = np.delete(np.arange(n), fold)
            w = None if weight is None else weight[kept]
            m = None if mask is None else mask[kept]
            found.append(_best_of_labels(targets[kept], scores[kept], w, m, self._score))
        told = np.array([each.told_apart for each in found])
        thresholds = np.array([each.thresholds for each in found])
        finite = told & np.isfinite(thresholds)
        mean = DIV(np.where(finite, thresholds, 0.0).sum(axis=0), finite.sum(axis=0))
        return np.where(2 * finite.sum(axis=0) > told.sum(axis=0), mean, np.inf)

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return at_least(scores, fitted(self, "thresholds_"))

    def __repr__(self) -> str:
        return f"PerLabel({_name(self.score)!r}, min_positives={self.min_positives}, cv={self.cv})"


class Averaging(Rule):
    """The paper's threshold averaging: the mean over examples of the score that, used with >=, gives each its best F1.

    Of scores that are equally good for an example, the highest. Examples without a positive have no say; where none
    has one, the threshold is inf.

    >>> Averaging().fit([[1, 0, 1], [0, 1, 0]], [[0.9, 0.2, 0.5], [0.4, 0.7, 0.1]]).threshold_
    0.6
    """

    threshold_: float

    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        """One sort a row."""
        seen = np.ones_like(targets) if mask is None else mask
        if not np.isfinite(scores[seen]).all():
            raise InputError("scores contain inf: they have no mean")
        falling = np.where(seen, -scores, np.inf)
        order = np.argsort(falling, axis=1)
        falling = np.take_along_axis(falling, order, 1)
        tp = np.cumsum(np.take_along_axis(targets & seen, order, 1), axis=1)
        predicted = np.arange(1, targets.shape[1] + 1)
        scored = DIV(2.0 * tp, (predicted + tp[:, -1:]).astype(np.float64))
        stands = np.isfinite(falling)
        stands[:, :-1] &= falling[:, 1:] != falling[:, :-1]
        best = np.argmax(np.where(stands, scored, -1.0), axis=1)
        says = (tp[:, -1] > 0) * (1.0 if weight is None else weight)
        thresholds = np.where(says > 0, -falling[np.arange(len(falling)), best], 0.0)
        self.threshold_ = float(thresholds @ says / says.sum()) if says.any() else np.inf

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return at_least(scores, fitted(self, "threshold_"))

    def __repr__(self) -> str:
        return "Averaging()"


class _Found(NamedTuple):
    """Of each label: the best threshold, what it reaches, and whether any threshold is better than another."""

    thresholds: Floats
    scores: Floats
    told_apart: Booleans


def _best_of_labels(
    targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None, score: Score
) -> _Found:
    found = _Found(*(np.empty(targets.shape[1], dtype) for dtype in (np.float64, np.float64, bool)))
    columns = zip(np.ascontiguousarray(targets.T), np.ascontiguousarray(scores.T), strict=True)
    for j, (y, s) in enumerate(columns):
        w = weight
        if mask is not None:
            seen = mask[:, j]
            y, s, w = y[seen], s[seen], None if w is None else w[seen]
        steps = ladder(y, s, w)
        total = steps.predicted[-1]
        counts = from_sums(steps.tp, steps.predicted, steps.tp[-1], total, rounding_off(weight, total))
        values = _values(score, counts)
        best = values.max()
        place = np.argmax(values >= best - EQUAL)
        found.thresholds[j] = steps.thresholds[place]
        found.scores[j] = values[place]
        found.told_apart[j] = best - values.min() > EQUAL
    return found


def _values(score: Score, counts: Counts) -> Floats:
    """A score at many counts."""
    values = np.broadcast_to(score(*counts, DIV), np.shape(counts.tp))
    if np.isnan(values).any():
        raise InputError(f"score {_name(score)} is NaN at some counts: its div knows what 0/0 is")
    return values


class _Entries:
    """The entries of a score matrix from the highest score down."""

    def __init__(
        self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None
    ) -> None:
        c = targets.shape[1]
        flat = np.arange(targets.size) if mask is None else np.flatnonzero(mask)
        values = scores.ravel()[flat]
        order = np.argsort(-values)
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
    grouped = np.argsort(unit.astype(np.min_scalar_type(len(units))), kind="stable")  # few bits sort fast
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
    values = _values(score, from_sums(tp, predicted, true[member], total[member], floor))
    nothing = _values(score, from_sums(0.0 * true, 0.0 * true, true, total))
    before = np.concatenate([[0.0], values[:-1]])
    occupied = sizes > 0
    before[starts[occupied]] = nothing[occupied]
    added = np.empty(len(unit))
    added[grouped] = (values - before) * units[member]
    mass = float(units.sum()) or 1.0
    means = (float(nothing @ units) + np.concatenate([[0.0], np.cumsum(added)])) / mass
    place = _highest_best(means, entries.values)
    return (np.inf if place == 0 else float(entries.values[place - 1])), float(means[place])


def _highest_best(values: Floats, ordered: Floats) -> int:
    """The first place, thus the highest threshold, whose value is the best; place 0 is "above all"."""
    ends = tie_ends(ordered)
    at_ends = values[ends]
    return int(ends[np.argmax(at_ends >= at_ends.max() - EQUAL)])


def _running(values: Floats, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
    """Cumulative sums that start anew with each group."""
    sums = np.cumsum(values)
    offsets = np.concatenate([[0.0], sums])[starts]
    return np.asarray(sums - np.repeat(offsets, sizes))


def _name(score: str | Score) -> str:
    return score if isinstance(score, str) else getattr(score, "__name__", "a function")
