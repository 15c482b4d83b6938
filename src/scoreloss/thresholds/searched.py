"""Rules that search their thresholds among the scores of held-out data, exactly.

They are the best among all distinct scores and "above all of them", by running sums over sorts; nothing samples a grid.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.blocks import Block, Blocks
from scoreloss.checks import Booleans, Floats, InputError, formula_of, number_from, one_of
from scoreloss.counts import AXES, Counts, from_sums
from scoreloss.hard import DIV, hard_counts, ladder, rounding_off
from scoreloss.scores import SCORES, Score, has_tp_factor
from scoreloss.split import stratified_split
from scoreloss.thresholds.rule import Rule, at_least, check_below_inf, fitted

EQUAL = 1e-12
"""Scores that differ by less came out of sums in another order."""


class Global(Rule):
    """The one threshold that maximises a score, averaged as told, on the data it is fitted on; exact.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div). ``score_`` is what it reached.
    No false positive raises a score in ``SCORES``, so only scores of positives are tried for these, in blocks; a function
    of yours is tried at every distinct score, in memory that grows with the entries.

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

    def _learn(self, data: Blocks) -> None:
        """Each step down changes the counts of one label, or one row, or of all, and those changes are added up."""
        ours = self._score in SCORES.values()
        if data.computed and not ours:
            raise InputError(
                f"score is {_name(self.score)}: it must be one of {', '.join(SCORES)} where scores are a function, "
                "since any other needs all scores at once"
            )
        of_average = _best_pooled if self.average == "micro" else _best_mean
        self.threshold_, self.score_ = of_average(data, self._score, self.average, positives_alone=ours)

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

    def _learn(self, data: Blocks) -> None:
        """One sort a label."""
        folds = [] if self.cv is None else self._folds(self.cv, data)
        found, fallback, thresholds = [], [], []
        for block in data.of_labels():
            check_below_inf(block.scores, block.mask)
            best = _best_of_labels(block, self._score)
            found.append(best)
            few = np.count_nonzero(block.targets, axis=0) < self.min_positives
            fallback.append(few | ~best.told_apart)
            thresholds.append(self._over_folds(block, folds) if folds else best.thresholds)
        self.thresholds_ = np.concatenate(thresholds)
        self.scores_ = np.concatenate([best.scores for best in found])
        self.fallback_ = np.concatenate(fallback)
        if self.fallback_.any():
            shared = Global(self.score)
            shared._learn(data)
            self.thresholds_[self.fallback_] = shared.threshold_
        if folds or self.fallback_.any():
            self.scores_ = np.concatenate([self._reached(block) for block in data.of_labels()])

    def _reached(self, block: Block) -> Floats:
        predicted = block.scores >= self.thresholds_[block.labels]
        return _values(self._score, hard_counts(block.targets, predicted, block.weight, block.mask, axis=0))

    def _folds(self, cv: int, data: Blocks) -> list[NDArray[np.intp]]:
        if data.shape[0] < cv:
            raise InputError(f"cv is {cv}: there are only {data.shape[0]} examples")
        return stratified_split(data.all_targets(), [1 / cv] * cv)

    def _over_folds(self, block: Block, folds: list[NDArray[np.intp]]) -> Floats:
        """The mean over folds that tell thresholds apart, each left out once."""
        found = []
        for fold in folds:
            kept = np.delete(np.arange(len(block.targets)), fold)
            found.append(_best_of_labels(_rows_of(block, kept), self._score))
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

    def _learn(self, data: Blocks) -> None:
        """One sort a row."""
        parts = [_best_of_rows(block) for block in data.of_examples()]
        thresholds, has_positive = (np.concatenate(part) for part in zip(*parts, strict=True))
        says = has_positive * (1.0 if data.weight is None else data.weight)
        said = np.where(says > 0, thresholds, 0.0)
        self.threshold_ = float(said @ says / says.sum()) if says.any() else np.inf

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return at_least(scores, fitted(self, "threshold_"))

    def __repr__(self) -> str:
        return "Averaging()"


def _rows_of(block: Block, kept: NDArray[np.intp]) -> Block:
    """Some of the rows of a block."""
    weight = None if block.weight is None else block.weight[kept]
    mask = None if block.mask is None else block.mask[kept]
    return block._replace(targets=block.targets[kept], scores=block.scores[kept], weight=weight, mask=mask)


def _best_of_rows(block: Block) -> tuple[Floats, Booleans]:
    """Of each row the threshold of its best F1, the highest among equals, and whether it has a positive."""
    seen = np.ones_like(block.targets) if block.mask is None else block.mask
    if not np.isfinite(block.scores[seen]).all():
        raise InputError("scores contain inf: they have no mean")
    falling = np.where(seen, -block.scores, np.inf)
    order = np.argsort(falling, axis=1)
    falling = np.take_along_axis(falling, order, 1)
    tp = np.cumsum(np.take_along_axis(block.targets, order, 1), axis=1)
    predicted = np.arange(1, falling.shape[1] + 1)
    scored = DIV(2.0 * tp, (predicted + tp[:, -1:]).astype(np.float64))
    stands = np.isfinite(falling)
    stands[:, :-1] &= falling[:, 1:] != falling[:, :-1]
    best = np.argmax(np.where(stands, scored, -1.0), axis=1)
    return -falling[np.arange(len(falling)), best], tp[:, -1] > 0


class _Found(NamedTuple):
    """Of each label: the best threshold, what it reaches, and whether any threshold is better than another."""

    thresholds: Floats
    scores: Floats
    told_apart: Booleans


def _best_of_labels(block: Block, score: Score) -> _Found:
    found = _Found(*(np.empty(block.targets.shape[1], dtype) for dtype in (np.float64, np.float64, bool)))
    says_nothing = _says_nothing_of_empty(score)
    columns = zip(np.ascontiguousarray(block.targets.T), np.ascontiguousarray(block.scores.T), strict=True)
    for j, (y, s) in enumerate(columns):
        if says_nothing and not y.any():
            found.thresholds[j], found.scores[j], found.told_apart[j] = np.inf, 0.0, False
            continue
        w = block.weight
        if block.mask is not None:
            seen = block.mask[:, j]
            y, s, w = y[seen], s[seen], None if w is None else w[seen]
        steps = ladder(y, s, w)
        total = steps.predicted[-1]
        counts = from_sums(steps.tp, steps.predicted, steps.tp[-1], total, rounding_off(w, total))
        values = _values(score, counts)
        best = values.max()
        place = np.argmax(values >= best - EQUAL)
        found.thresholds[j] = steps.thresholds[place]
        found.scores[j] = values[place]
        found.told_apart[j] = best - values.min() > EQUAL
    return found


def _says_nothing_of_empty(score: Score) -> bool:
    """Whether a score of ours is 0 without positives, at every threshold."""
    return score in SCORES.values() and has_tp_factor(score)


def _values(score: Score, counts: Counts) -> Floats:
    """A score at many counts."""
    values = np.broadcast_to(score(*counts, DIV), np.shape(counts.tp))
    if np.isnan(values).any():
        raise InputError(f"score {_name(score)} is NaN at some counts: its div knows what 0/0 is")
    return values


def _candidates(data: Blocks, *, positives_alone: bool) -> Floats:
    """The distinct scores in rising order; with ``positives_alone``, those of positives."""
    found = []
    for block in data.of_labels():
        check_below_inf(block.scores, block.mask)
        which = block.targets if positives_alone else block.mask
        found.append(np.unique(block.scores if which is None else block.scores[which]))
    return np.unique(np.concatenate(found))


class _Units(NamedTuple):
    """Some units, a row each, their entries from the highest score down."""

    values: Floats
    tp: Floats
    predicted: Floats
    """Running sums at each entry."""
    share: Floats
    """What each unit counts in the mean."""


def _units(block: Block, average: str) -> _Units:
    """The labels of a block; its examples, for "samples"; or, for "micro", all of it as one."""

    def turned(part: Any) -> Any:
        if part is None or average == "samples":
            return part
        return part.reshape(1, -1) if average == "micro" else part.T

    y, s, m = turned(block.targets), turned(block.scores), turned(block.mask)
    share, w = np.ones(len(y)), None
    if block.weight is not None and average == "samples":
        share = block.weight
    elif block.weight is not None:
        w = turned(np.broadcast_to(block.weight[:, None], block.targets.shape))
    if m is not None:
        s, w, share = np.where(m, s, -np.inf), m * (1.0 if w is None else w), share * m.any(axis=1)
    order = np.argsort(-s, axis=1)
    true = np.take_along_axis(y, order, 1)
    each = None if w is None else np.take_along_axis(w, order, 1)
    tp = np.cumsum(true if each is None else true * each, axis=1, dtype=np.float64)
    predicted = (
        np.broadcast_to(np.arange(1.0, y.shape[1] + 1), y.shape) if each is None else np.cumsum(each, axis=1)
    )
    if average == "weighted":
        share = share * tp[:, -1]
    return _Units(np.take_along_axis(s, order, 1), tp, predicted, share)


def _best_mean(data: Blocks, score: Score, average: str, *, positives_alone: bool) -> tuple[float, float]:
    """The best threshold for the mean over units of a score, and that mean; among equals the highest.

    What each entry adds to its unit's score, from the highest down, is added up in the order of all entries; or, with
    ``positives_alone``, goes at once to the highest candidate that takes the entry.
    """
    candidates = _candidates(data, positives_alone=True) if positives_alone else np.empty(0)
    added = np.zeros(len(candidates) + 1)
    steps = []
    nothing = mass = 0.0
    for block in data.of_examples() if average == "samples" else data.of_labels():
        check_below_inf(block.scores, block.mask)
        units = _units(block, average)
        mass += float(units.share.sum())
        says = units.share > 0
        if _says_nothing_of_empty(score):
            says &= units.tp[:, -1] > 0
        values, tp, predicted, share = (part[says] for part in units)
        true, total = tp[:, -1:], predicted[:, -1:]
        reached = np.empty((len(values), values.shape[1] + 1))
        reached[:, :1] = _values(score, from_sums(0.0 * true, 0.0 * true, true, total))
        floor = rounding_off(block.weight, total)
        reached[:, 1:] = _values(score, from_sums(tp, predicted, true, total, floor))
        nothing += float(share @ reached[:, 0])
        gains = np.diff(reached, axis=1) * share[:, None]
        if positives_alone:
            places = np.searchsorted(candidates, values.ravel(), side="right")
            added += np.bincount(places, gains.ravel(), minlength=len(added))
        else:
            steps.append((values.ravel(), gains.ravel()))
    if not positives_alone:
        values, gains = (np.concatenate(part) for part in zip(*steps, strict=True))
        candidates, which = np.unique(values, return_inverse=True)
        added = np.bincount(which + 1, gains, minlength=len(candidates) + 1).astype(np.float64)
    means = (nothing + np.append(0.0, np.cumsum(added[:0:-1]))) / (mass or 1.0)
    return _highest_best(candidates, means)


def _best_pooled(data: Blocks, score: Score, average: str, *, positives_alone: bool) -> tuple[float, float]:
    """The same of the counts of all entries, at each candidate."""
    candidates = _candidates(data, positives_alone=positives_alone)
    tp, predicted = np.zeros((2, len(candidates) + 1))
    true = total = 0.0
    for block in data.of_examples() if positives_alone else [data.whole()]:
        units = _units(block, average)
        # how many of the entries, from the highest down, reach each candidate
        ends = np.searchsorted(-units.values[0], -candidates[::-1], side="right")
        tp[1:] += np.append(0.0, units.tp)[ends]
        predicted[1:] += np.append(0.0, units.predicted)[ends]
        true += float(units.tp[0, -1])
        total += float(units.predicted[0, -1])
    floor = rounding_off(data.weight, np.asarray(total))
    values = _values(score, from_sums(tp, predicted, np.asarray(true), np.asarray(total), floor))
    return _highest_best(candidates, values)


def _highest_best(candidates: Floats, means: Floats) -> tuple[float, float]:
    """Of "above all" and the candidates from the highest down, the first that is the best."""
    place = np.argmax(means >= means.max() - EQUAL)
    return float(np.append(candidates, np.inf)[-1 - place]), float(means[place])


def _name(score: str | Score) -> str:
    return score if isinstance(score, str) else getattr(score, "__name__", "a function")
