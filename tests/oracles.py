"""What the tests compare against: slow, plain, and written from the definitions alone."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def assert_close(actual, expected, tolerance=1e-12):
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert np.allclose(actual, expected, rtol=tolerance, atol=tolerance), (actual, expected)


def ratio(num, den):
    return Fraction(num) / Fraction(den) if den else Fraction(0)


def confusion(targets, predicted):
    """tp, fp, fn, tn of two vectors, by counting."""
    pairs = list(zip(map(bool, targets), map(bool, predicted), strict=True))
    return tuple(pairs.count(kind) for kind in [(True, True), (False, True), (True, False), (False, False)])


@st.composite
def matrices(draw, max_rows=12, max_labels=5, min_labels=1):
    """0/1 targets and scores with ties, empty and full labels and rows among them."""
    n = draw(st.integers(1, max_rows))
    c = draw(st.integers(min_labels, max_labels))
    y = draw(hnp.arrays(bool, (n, c)))
    for j in range(c):
        fill = draw(st.sampled_from(["mixed", "mixed", "empty", "full"]))
        if fill != "mixed":
            y[:, j] = fill == "full"
    tenths = draw(hnp.arrays(np.int64, (n, c), elements=st.integers(0, 10)))
    return y, tenths / 10


@st.composite
def weights(draw, n):
    return draw(hnp.arrays(np.int64, n, elements=st.integers(1, 5))) / 4


def quiet(function, *args, **kwargs):
    """A scikit-learn metric without its warnings on labels that do not occur."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def average_precision_loop(targets, scores, *, interpolated):
    """Down the distinct scores: gained recall times precision, or times the best precision still to come."""
    positives = sum(targets)
    if not positives:
        return 0.0
    points = []
    for t in sorted(set(scores), reverse=True):
        tp, fp, _, _ = confusion(targets, [s >= t for s in scores])
        points.append((tp / positives, tp / (tp + fp)))
    total, reached = 0.0, 0.0
    for k, (recall, precision) in enumerate(points):
        best = max(p for _, p in points[k:]) if interpolated else precision
        total += (recall - reached) * best
        reached = recall
    return total


def all_thresholds(scores):
    return [*sorted(set(np.ravel(scores))), np.inf]


def averaged(score, targets, predicted, average, weight=None, mask=None):
    """A score under an average, unit by unit; ``score`` takes four counts. A unit that is masked whole is not there."""
    n, c = targets.shape
    w = np.ones(n) if weight is None else weight
    seen = np.ones((n, c), bool) if mask is None else mask

    def counts(cells):
        total = np.zeros(4)
        for i, j in cells:
            kind = (1 - int(targets[i, j])) if predicted[i, j] else (2 if targets[i, j] else 3)
            total[kind] += (w[i] if average != "samples" else 1) * seen[i, j]
        return total

    if average == "micro":
        return score(*counts(itertools.product(range(n), range(c))))
    if average == "samples":
        rows = [score(*counts((i, j) for j in range(c))) for i in range(n)]
        return mean(rows, w * seen.any(axis=1))
    labels = [score(*counts((i, j) for i in range(n))) for j in range(c)]
    if average is None:
        return labels
    if average == "macro":
        return mean(labels, seen.any(axis=0))
    return mean(labels, [sum(w[i] * seen[i, j] for i in range(n) if targets[i, j]) for j in range(c)])


def mean(values, weights):
    return np.average(values, weights=weights) if np.sum(weights) else 0.0


def label_sets(c):
    """All 2^c of them."""
    return np.array(list(itertools.product([False, True], repeat=c)))


def f_of_sets(predicted, true, beta=1.0):
    """F-beta of two label sets; 1 where both are empty."""
    hits, sizes = np.sum(predicted & true), beta**2 * np.sum(true) + np.sum(predicted)
    return (1 + beta**2) * hits / sizes if sizes else 1.0
