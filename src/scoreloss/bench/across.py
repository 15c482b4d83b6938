"""Comparisons across datasets: average ranks, and which of them differ by more than chance (Demšar 2006).

Tables are (datasets, contenders), higher is better; equals share their ranks. It knows no file and no page.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import Booleans, Floats, InputError

LEVEL = 0.05


@dataclass(frozen=True)
class Friedman:
    """Whether some contender differs from another: the statistic, corrected for ties, and its p-value."""

    ranks: Floats
    """The average rank of each contender, 1 the best."""
    statistic: float
    p: float


def average_ranks(table: Floats) -> Floats:
    """The rank of each contender, 1 the best, averaged over datasets."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-table, axis=1).mean(axis=0))


def friedman(table: Floats) -> Friedman:
    """Friedman's test: under the null hypothesis all contenders rank alike on every dataset."""
    from scipy.stats import friedmanchisquare

    n, k = table.shape
    if n < 2 or k < 3:
        raise InputError(f"the table is {n} datasets x {k} contenders: Friedman's test needs 2 x 3")
    ranks = average_ranks(table)
    if np.ptp(table, axis=1).max() == 0:
        return Friedman(ranks, 0.0, 1.0)
    found = friedmanchisquare(*table.T)
    return Friedman(ranks, float(found.statistic), float(found.pvalue))


def critical_difference(datasets: int, contenders: int, level: float = LEVEL) -> float:
    """Nemenyi: average ranks that are farther apart differ."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, contenders, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(contenders * (contenders + 1) / (6 * datasets)))


def wilcoxon_holm(table: Floats) -> Floats:
    """p-values (contenders, contenders) of Wilcoxon's signed-rank tests of all pairs, adjusted by Holm."""
    from scipy.stats import wilcoxon

    k = table.shape[1]
    pairs = list(itertools.combinations(range(k), 2))
    plain = np.ones(len(pairs))
    for place, (a, b) in enumerate(pairs):
        differences = table[:, a] - table[:, b]
        if differences.any():
            plain[place] = wilcoxon(differences).pvalue
    adjusted = np.ones((k, k))
    largest = 0.0
    for place, index in enumerate(np.argsort(plain, kind="stable")):
        largest = max(largest, min(1.0, (len(pairs) - place) * plain[index]))
        a, b = pairs[index]
        adjusted[a, b] = adjusted[b, a] = largest
    return adjusted


def groups(ranks: Floats, alike: Booleans) -> list[NDArray[np.intp]]:
    """The largest runs of neighbouring ranks within which all pairs are alike, of two contenders or more."""
    order = np.argsort(ranks, kind="stable")
    found: list[NDArray[np.intp]] = []
    reached = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and alike[np.ix_(order[start : end + 1], order[start : end + 1])].all():
            end += 1
        if end - start > 1 and end > reached:
            found.append(order[start:end])
            reached = end
    return found
