"""Probabilities from scores, and how true probabilities are.

Whatever a loss was trained for, its scores order the examples of a label; held-out data say how often each score is
right. The fitting is scikit-learn's; what was fitted is plain arrays. Knows no loss and no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.blocks import checked
from scoreloss.checks import Booleans, Floats, InputError, as_array, one_of
from scoreloss.hard import DIV
from scoreloss.ops import NUMPY


@dataclass(frozen=True, eq=False)
class Platt:
    """Of each label sigmoid(slope * score + intercept)."""

    slopes: Floats
    intercepts: Floats

    def predict(self, scores: ArrayLike) -> Floats:
        """Scores (n, c) to probabilities."""
        s = _finite(scores, len(self.slopes))
        return np.asarray(NUMPY.sigmoid(s * self.slopes + self.intercepts))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Of each label a rising line through (knot, value), flat outside; label j has those from starts[j] to starts[j + 1]."""

    knots: Floats
    values: Floats
    starts: NDArray[np.intp]

    def predict(self, scores: ArrayLike) -> Floats:
        """Scores (n, c) to probabilities."""
        s = _finite(scores, len(self.starts) - 1)
        chances = np.empty(s.shape)
        for j in range(s.shape[1]):
            own = slice(self.starts[j], self.starts[j + 1])
            chances[:, j] = np.interp(s[:, j], self.knots[own], self.values[own])
        return chances


METHODS = ("platt", "isotonic")


def calibrate(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    method: str = "platt",
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Platt | Isotonic:
    """A calibrator, fitted label by label on held-out targets (n, c) and scores (n, c); its ``predict`` gives probabilities.

    "platt" fits a sigmoid (two numbers a label, for few examples); it expects logits, so take ``logits_from`` of
    scores in [0, 1]. "isotonic" fits a rising step function to scores of any kind, and wants some hundred positives.
    Both are scikit-learn's. A label whose examples are all of one class gets its smoothed share of positives,
    (P + 1) / (n + 2), whatever the score.
    """
    one_of("method", method, METHODS)
    y, s, w, m = checked(targets, scores, sample_weight, mask)
    _refuse_infinite(s if m is None else s[m])
    labels = list(_labels(y, s, w, m))
    sigmoid, isotonic, thread_limits = _scikit_learn()
    # Threads that share a fit of two numbers wait for each other: beside other work it took ten times as long.
    with thread_limits(1, user_api="blas"):
        return _platt(labels, sigmoid) if method == "platt" else _isotonic(labels, isotonic)


class _Label(NamedTuple):
    """The examples of a label that have weight."""

    targets: Booleans
    scores: Floats
    weight: Floats

    @property
    def share(self) -> float:
        """Its smoothed share of positives."""
        return float((self.weight @ self.targets + 1) / (self.weight.sum() + 2))

    @property
    def has_both(self) -> bool:
        """Whether its examples are of two classes."""
        return bool(self.targets.any() and not self.targets.all())


def _labels(
    targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None
) -> Iterator[_Label]:
    for j in range(targets.shape[1]):
        w = np.ones(len(targets)) if weight is None else weight
        seen = (w > 0) if mask is None else (w > 0) & mask[:, j]
        yield _Label(targets[seen, j], scores[seen, j], w[seen])


def _platt(labels: Sequence[_Label], sigmoid: Any) -> Platt:
    slopes, intercepts = np.zeros(len(labels)), np.empty(len(labels))
    for j, label in enumerate(labels):
        if label.has_both:
            fitted = sigmoid().fit(label.scores, label.targets, label.weight)
            slopes[j], intercepts[j] = -fitted.a_, -fitted.b_
        else:
            intercepts[j] = np.log(label.share / (1 - label.share))
    return Platt(slopes, intercepts)


def _isotonic(labels: Sequence[_Label], regression: Any) -> Isotonic:
    knots: list[Floats] = []
    values: list[Floats] = []
    for label in labels:
        if label.has_both:
            fitted = regression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            fitted.fit(label.scores, label.targets.astype(np.float64), label.weight)
            knots.append(fitted.X_thresholds_)
            values.append(fitted.y_thresholds_)
        else:
            knots.append(np.zeros(1))
            values.append(np.array([label.share]))
    starts = np.cumsum([0, *map(len, knots)])
    return Isotonic(np.concatenate(knots), np.concatenate(values), starts)


def _scikit_learn() -> tuple[Any, Any, Any]:
    """Its two fits (the public classes fit the sigmoid inside a classifier alone), and what limits threads."""
    try:
        from sklearn.calibration import _SigmoidCalibration
        from sklearn.isotonic import IsotonicRegression
        from threadpoolctl import threadpool_limits
    except ImportError as missing:
        raise ImportError("sl.calibrate needs scikit-learn: pip install 'scoreloss[sklearn]'") from missing
    return _SigmoidCalibration, IsotonicRegression, threadpool_limits


def reliability(
    targets: ArrayLike,
    scores: ArrayLike,
    bins: int = 15,
    *,
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> dict[str, Floats]:
    """How often probabilities are right, in equal bins of [0, 1] over all entries.

    Of each bin: "lower", its lower edge; "count", the entries in it (their weight); "mean_score"; and "positives",
    their share. An empty bin has 0. The mean of abs(positives - mean_score) by count is ``evaluate``'s "ece", whose
    bins are 15.

    >>> reliability([[1], [0], [1]], [[0.9], [0.8], [0.2]], bins=2)["positives"].tolist()
    [1.0, 0.5]
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}: it must be a whole number above 0")
    y, s, w, m = checked(targets, scores, sample_weight, mask)
    entries = flat_entries(y, s, w, m)
    if not is_probability(entries.scores):
        raise InputError("scores lie outside [0, 1]: reliability is that of probabilities")
    table = binned(entries, bins)
    return {
        "lower": np.arange(bins) / bins,
        "count": table.sizes,
        "mean_score": DIV(table.scores, table.sizes),
        "positives": DIV(table.positives, table.sizes),
    }


class Entries(NamedTuple):
    """All entries that are not masked, in one row."""

    targets: Floats
    scores: Floats
    weight: Floats | None


class Bins(NamedTuple):
    """Sums over the entries of each bin."""

    sizes: Floats
    scores: Floats
    positives: Floats


def flat_entries(targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> Entries:
    """Arguments as ``checked`` returns them."""
    w = None if weight is None else np.broadcast_to(weight[:, None], targets.shape)
    if mask is not None:
        targets, scores, w = targets[mask], scores[mask], None if w is None else w[mask]
    return Entries(targets.ravel().astype(np.float64), scores.ravel(), None if w is None else w.ravel())


def is_probability(scores: Floats) -> bool:
    """Whether there are scores, and all lie in [0, 1]."""
    return bool(scores.size and scores.min() >= 0 and scores.max() <= 1)


def binned(entries: Entries, bins: int) -> Bins:
    """The entries in equal bins of [0, 1]; 1 belongs to the last."""
    y, s, w = entries
    place = np.minimum((s * bins).astype(np.intp), bins - 1)
    weighted = (s, y) if w is None else (s * w, y * w)
    sizes, scores, positives = (
        np.bincount(place, weights, minlength=bins).astype(np.float64) for weights in (w, *weighted)
    )
    return Bins(sizes, scores, positives)


def _finite(scores: ArrayLike, labels: int) -> Floats:
    s = as_array("scores", scores).astype(np.float64, copy=False)
    if s.ndim != 2 or s.shape[1] != labels:
        raise InputError(f"scores have shape {s.shape}: the calibration was fitted on {labels} labels")
    _refuse_infinite(s)
    return s


def _refuse_infinite(scores: Floats) -> None:
    if not np.isfinite(scores).all():
        raise InputError("scores contain inf or NaN: they must be finite")
