"""Every score of a confusion matrix, each written once.

A score is a pure function of the four counts and of a division. Hard counts make it a metric, soft
counts make it a loss. This module knows no framework: the counts may be numbers, ``Fraction``,
arrays or tensors, and ``div(num, den, power=1)`` is num / den**power with the caller's answer to 0/0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Number = Any
"""A count: an int, a float, a Fraction, or an array or tensor of any framework."""


class Div(Protocol):
    """num / den**power, and what 0/0 means."""

    def __call__(self, num: Number, den: Number, power: float = 1) -> Number:
        """The quotient."""


Score = Callable[[Number, Number, Number, Number, Div], Number]


def fbeta(tp: Number, fp: Number, fn: Number, tn: Number, div: Div, *, beta: float = 1) -> Number:
    """(1 + b^2) tp / ((1 + b^2) tp + b^2 fn + fp): recall counts b times as much as precision."""
    b2 = beta * beta
    hits = (1 + b2) * tp
    return div(hits, hits + b2 * fn + fp)


def f1(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """2 tp / (2 tp + fn + fp): the harmonic mean of precision and recall."""
    return fbeta(tp, fp, fn, tn, div)


def precision(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """tp / (tp + fp)."""
    return div(tp, tp + fp)


def recall(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """tp / (tp + fn)."""
    return div(tp, tp + fn)


def specificity(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """tn / (tn + fp): the recall of the negatives."""
    return div(tn, tn + fp)


def npv(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """tn / (tn + fn): the precision of the negatives."""
    return div(tn, tn + fn)


def accuracy(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """(tp + tn) / (tp + fp + fn + tn)."""
    return div(tp + tn, tp + fp + fn + tn)


def balanced_accuracy(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """The mean of recall and specificity, over the sides that exist (as in scikit-learn)."""
    positives, negatives = tp + fn, tn + fp
    sides = div(positives, positives) + div(negatives, negatives)
    return div(div(tp, positives) + div(tn, negatives), sides)


def jaccard(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """tp / (tp + fp + fn): intersection over union."""
    return div(tp, tp + fp + fn)


def tversky(
    tp: Number,
    fp: Number,
    fn: Number,
    tn: Number,
    div: Div,
    *,
    alpha: float = 0.5,
    beta: float = 0.5,
) -> Number:
    """tp / (tp + alpha fp + beta fn); the default is f1."""
    return div(tp, tp + alpha * fp + beta * fn)


def mcc(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """Matthews: (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))."""
    return div(tp * tn - fp * fn, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), power=0.5)


def kappa(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """Cohen: 2 (tp tn - fp fn) / ((tp + fp)(fp + tn) + (tp + fn)(fn + tn))."""
    return div(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def informedness(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """recall + specificity - 1 (Youden's J)."""
    return div(tp, tp + fn) + div(tn, tn + fp) - 1


def markedness(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """precision + npv - 1."""
    return div(tp, tp + fp) + div(tn, tn + fn) - 1


def gmean(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """sqrt(recall specificity), with the root in the divisor, where the division guards it."""
    both = tp * tn
    return div(both, both * (tp + fn) * (tn + fp), power=0.5)


def fowlkes_mallows(tp: Number, fp: Number, fn: Number, tn: Number, div: Div) -> Number:
    """sqrt(precision recall) = tp / sqrt((tp + fp)(tp + fn))."""
    return div(tp, (tp + fp) * (tp + fn), power=0.5)


SCORES: dict[str, Score] = {
    score.__name__: score
    for score in (
        f1,
        fbeta,
        precision,
        recall,
        specificity,
        npv,
        accuracy,
        balanced_accuracy,
        jaccard,
        tversky,
        mcc,
        kappa,
        informedness,
        markedness,
        gmean,
        fowlkes_mallows,
    )
}
"""Every score by its name, which the losses, the rules and the command line take."""


def is_rational(score: Score) -> bool:
    """Whether a score divides without roots, so that it is defined on counts below zero."""
    return _tried(score, 1.0)[1] <= {1}


def has_tp_factor(score: Score) -> bool:
    """Whether a score is 0 without true positives, whatever else: it says nothing of an empty label."""
    return bool(_tried(score, 0.0)[0] == 0)


def _tried(score: Score, tp: float) -> tuple[Number, set[float]]:
    """A score at some counts, and the powers it divides by."""
    powers: set[float] = set()

    def div(num: Number, den: Number, power: float = 1) -> Number:
        powers.add(power)
        return num / den**power if den else 0.0

    return score(tp, 2.0, 3.0, 5.0, div), powers
