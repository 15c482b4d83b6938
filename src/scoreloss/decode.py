"""Label sets of highest expected F-beta: from independent chances, or from joint chances of label and label count.

The empty set is a candidate, and F of the empty set where nothing is true is 1. Pure functions of arrays; nothing
here knows where the chances come from.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import Booleans, Floats

MOST_TERMS = 20
"""A beta^2 = q / r with q + r above this goes the general way: the quadrature takes (q + r) c / 2 nodes."""

MOST_NODES = 256
"""Of the quadrature for one set: its integrand is smooth, so that more would add nothing."""

BLOCK = 2**19
"""So many numbers are worked on at once: about what a cache holds."""


def best_sets(chances: Floats, beta: float) -> Booleans:
    """Of each row (n, c), the set of highest expected F-beta if labels are independent.

    That set is the k likeliest labels for some k (Lewis 1995), ties by label index.
    """
    order = np.argsort(-chances, axis=1, kind="stable")
    falling = np.take_along_axis(chances, order, 1)
    best = np.argmax(expected_f(falling, beta), axis=1)
    return _scattered(order, np.arange(chances.shape[1]) < best[:, None])


def expected_f(falling: Floats, beta: float) -> Floats:
    """The expected F-beta of the first k labels of each row, for k = 0 ... c, (n, c + 1); labels are independent."""
    n, c = falling.shape
    square = Fraction(beta * beta).limit_denominator(MOST_TERMS)
    terms = square.numerator + square.denominator
    exact = terms <= MOST_TERMS and math.isclose(float(square), beta * beta, rel_tol=1e-12)
    expected = np.empty((n, c + 1))
    expected[:, 0] = np.prod(1 - falling, axis=1)
    rows = max(1, BLOCK // (c * c * (terms if exact else 2) // 2))
    for start in range(0, n, rows):
        block = np.ascontiguousarray(falling[start : start + rows].T)
        expected[start : start + rows, 1:] = (
            _by_quadrature(block, square.numerator, square.denominator)
            if exact
            else _by_counts(block, beta * beta)
        ).T
    return expected


def _by_quadrature(falling: Floats, q: int, r: int) -> Floats:
    """Of chances (c, n), for beta^2 = q / r, O((q + r) c^2) an example; exact: the integrand is a polynomial.

    With S true labels, T of them among the first k, F = (1 + q/r) T / (k + q/r S), and 1 / (rk + qS) is the
    integral of u^(rk + qS - 1) over [0, 1]. The mean of T u^(qS) over independent labels is, with x = u^q,
    prod over all labels of (1 - p + px) times the sum over the first k of px / (1 - p + px). So the expected F is
    the integral of a polynomial of degree below (q + r) c, which Gauss-Legendre with half as many nodes gives
    exactly, as a sum of terms that are all positive.
    """
    c, n = falling.shape
    u, node_weights = _nodes(((q + r) * c + 1) // 2)
    x = u**q
    present = (1 - falling)[:, None] + falling[:, None] * x[:, None]  # (label, node, example), never 0
    hits = falling[:, None] / present * np.prod(present, axis=0)
    among_first = np.zeros((len(u), n))
    expected = np.empty_like(falling)
    for k in range(1, c + 1):
        among_first += hits[k - 1]
        expected[k - 1] = ((q + r) * node_weights * x * u ** (r * k - 1)) @ among_first
    return expected


def expected_f1(chances: Floats, chosen: Booleans) -> Floats:
    """The expected F1 of any label set of each row (n, c), if labels are independent; O(c^2) a row.

    The same integral as in ``_by_quadrature``. Beyond ``MOST_NODES`` labels the nodes are no more, and it is exact to
    the rounding of its sums no longer, but to 1e-6.
    """
    n, c = chances.shape
    u, node_weights = _nodes(min(c, MOST_NODES))
    expected = np.empty(n)
    rows = max(1, BLOCK // (c * len(u)))
    for start in range(0, n, rows):
        p, taken = chances[start : start + rows], chosen[start : start + rows]
        present = (1 - p)[:, :, None] + p[:, :, None] * u  # (example, label, node), never 0
        hits = ((p * taken)[:, :, None] / present).sum(axis=1) * np.prod(present, axis=1)
        size = taken.sum(axis=1)
        powers = u ** np.maximum(size, 1)[:, None]
        of_some = (2 * node_weights * powers * hits).sum(axis=1)
        expected[start : start + rows] = np.where(size > 0, of_some, np.prod(1 - p, axis=1))
    return expected


@lru_cache(maxsize=32)
def _nodes(count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1], by Newton's method: numpy's own lose digits above 100 nodes."""
    x = np.cos(np.pi * (np.arange(1, count + 1) - 0.25) / (count + 0.5))
    for _ in range(8):
        before, now = np.ones_like(x), x
        for k in range(2, count + 1):
            before, now = now, ((2 * k - 1) * x * now - (k - 1) * before) / k
        slope = count * (x * now - before) / (x * x - 1)
        x = x - now / slope
    return (x + 1) / 2, 1 / ((1 - x * x) * slope**2)


def _by_counts(falling: Floats, square: float) -> Floats:
    """Of chances (c, n), for any beta^2, O(c^3) an example: over the true labels among the first k and the others."""
    c, n = falling.shape
    others = [np.ones((1, n))]
    for k in range(c, 0, -1):
        others.append(_one_more(others[-1], falling[k - 1]))
    first = others[0]
    expected = np.empty_like(falling)
    for k in range(1, c + 1):
        first = _one_more(first, falling[k - 1])
        hits, missed = np.arange(k + 1.0)[:, None], np.arange(c - k + 1.0)
        f = (1 + square) * hits / (k + square * (hits + missed))
        expected[k - 1] = np.einsum("hn,hn->n", first, f @ others[c - k])
    return expected


def _one_more(distribution: Floats, chance: Floats) -> Floats:
    """The distribution of a count, (m, n), and that of it with one more label that is true by chance, (n,)."""
    longer = np.zeros((len(distribution) + 1, len(chance)))
    longer[1:] = distribution * chance
    longer[:-1] += distribution * (1 - chance)
    return longer


def best_sets_jointly(joint: Floats, beta: float) -> Booleans:
    """Of each row, the set of highest expected F-beta from joint[n, i, s - 1] = P(y_i = 1, |y| = s): GFM.

    The expected F-beta of a set of k labels is the sum over its labels of sum over s of
    (1 + beta^2) / (k + beta^2 s) P(y_i = 1, |y| = s): for each k the k best labels (Waegeman et al. 2014, O(c^2) a
    row beside a matrix product). No label is true with what chance is left.
    """
    n, c, m = joint.shape
    sizes, counts = np.arange(1.0, c + 1), np.arange(1.0, m + 1)
    gains = (1 + beta * beta) / (sizes + beta * beta * counts[:, None])
    predicted = np.empty((n, c), bool)
    rows = max(1, BLOCK // (c * max(c, m)))
    for start in range(0, n, rows):
        block = joint[start : start + rows]
        worth = block @ gains  # of label i in a set of size k
        falling = -np.sort(-worth, axis=1)
        kept = np.arange(c)[:, None] < sizes
        expected = np.empty((len(block), c + 1))
        expected[:, 0] = np.maximum(0.0, 1 - (block / counts).sum(axis=(1, 2)))
        expected[:, 1:] = np.einsum("nik,ik->nk", falling, kept)
        best = np.argmax(expected, axis=1)
        of_size = np.take_along_axis(worth, np.maximum(best - 1, 0)[:, None, None], 2)[..., 0]
        order = np.argsort(-of_size, axis=1, kind="stable")
        predicted[start : start + rows] = _scattered(order, np.arange(c) < best[:, None])
    return predicted


def _scattered(order: NDArray[np.intp], chosen: Booleans) -> Booleans:
    """What was chosen in an order of the labels, in their own."""
    sets = np.empty(order.shape, bool)
    np.put_along_axis(sets, order, chosen, axis=1)
    return sets
