"""Results of many seeds in a few numbers, and what of their differences is more than noise.

What noise is: another draw of test examples and of seeds. Both are drawn anew together, and the same draw is used
for all that are compared (a paired bootstrap). It knows no file and no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.bench.packed import unpack
from scoreloss.checks import Booleans, Floats
from scoreloss.counts import Counts, from_sums
from scoreloss.hard import DIV, hard_counts
from scoreloss.metrics import AVERAGED

RESAMPLES = 1000
LEVEL = 0.05
"""Of the interval of a difference, both sides together."""

COLUMNS_AT_ONCE = 4096
"""Of the matrix products: enough to be fast, few enough to fit into memory."""


@dataclass(frozen=True)
class Gap:
    """How far a row is behind the best one: the mean over seeds, and the interval of the bootstrap."""

    mean: float
    low: float
    high: float

    @property
    def within_noise(self) -> bool:
        """Whether another draw of examples and seeds could have shown no difference."""
        return self.low <= 0


@dataclass(frozen=True, eq=False)
class Row:
    """One line of the table: what was trained, how it decided, and each metric's value for each seed."""

    name: str
    rule: str
    seeds: tuple[int, ...]
    values: Mapping[str, Floats]
    is_floor: bool = False
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    """For each metric that was resampled, how far it is behind the best row."""

    @cached_property
    def mean(self) -> dict[str, float]:
        """Over seeds."""
        return {metric: float(values.mean()) for metric, values in self.values.items()}

    @cached_property
    def std(self) -> dict[str, float]:
        """The sample standard deviation over seeds, 0 for one seed."""
        return {m: float(v.std(ddof=1)) if len(v) > 1 else 0.0 for m, v in self.values.items()}

    def quartiles(self, metric: str) -> tuple[float, float, float]:
        """The first quartile, the median and the third over seeds."""
        low, median, high = np.quantile(self.values[metric], [0.25, 0.5, 0.75])
        return float(low), float(median), float(high)

    def within_noise(self, metric: str) -> bool:
        """Whether it cannot be told from the best (the best itself is not marked)."""
        gap = self.gaps.get(metric)
        return gap is not None and gap.within_noise


def summarise(
    name: str, rule: str, results: Mapping[int, Mapping[str, Any]], *, is_floor: bool = False
) -> Row:
    """The row of what a rule gave for each seed."""
    tests = [result["test"] for result in results.values()]
    values = {metric: np.array([test[metric] for test in tests], float) for metric in tests[0]}
    return Row(name, rule, tuple(results), values, is_floor)


class Resamples:
    """Draws of test examples and seeds, the same for all that is compared.

    ``targets`` are those of each seed's test part, ``tests`` the numbers of its examples: an example that is in the
    test parts of two seeds is drawn as often in both. Of S seeds, S - 1 are drawn each time: with S the spread of
    their mean would come out too small by the factor (S - 1) / S.
    """

    def __init__(
        self,
        targets: Mapping[int, Booleans],
        tests: Mapping[int, NDArray[np.intp]],
        *,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.targets = targets
        self.seeds = tuple(targets)
        examples = np.unique(np.concatenate([tests[s] for s in self.seeds]))
        n, several = len(examples), len(self.seeds)
        times = np.empty((resamples, n), np.float32)
        for line in times:
            line[:] = np.bincount(rng.integers(n, size=n), minlength=n)
        self.weights = {
            s: times if np.array_equal(tests[s], examples) else times[:, np.searchsorted(examples, tests[s])]
            for s in self.seeds
        }
        self.seed_weights = rng.multinomial(max(several - 1, 1), [1 / several] * several, size=resamples)

    def metrics(
        self, predicted: Sequence[Mapping[int, str]], names: Iterable[str]
    ) -> list[dict[str, Floats]]:
        """For each row (seed -> packed prediction) the metrics (resamples, seeds), NaN where it lacks a seed.

        ``names`` are an average and a score, such as "macro_f1". What predicts the same is counted once.
        """
        names = list(names)
        shape = (len(self.seed_weights), len(self.seeds))
        found = [{name: np.full(shape, np.nan) for name in names} for _ in predicted]
        for place, seed in enumerate(self.seeds):
            different = list(dict.fromkeys(row[seed] for row in predicted if seed in row))
            values = dict(zip(different, self._of_seed(seed, different, names), strict=True))
            for row, table in zip(predicted, found, strict=True):
                if seed in row:
                    for name in names:
                        table[name][:, place] = values[row[seed]][name]
        return found

    def _of_seed(self, seed: int, predicted: Sequence[str], names: Sequence[str]) -> list[dict[str, Floats]]:
        """Counts of a label under the weights of a resample are one matrix product; it is exact in float32."""
        targets, weights = self.targets[seed], self.weights[seed]
        true = np.asarray(weights @ targets.astype(np.float32), np.float64)
        total = weights.sum(axis=1, dtype=np.float64)[:, None]
        found: list[dict[str, Floats]] = []
        at_once = max(COLUMNS_AT_ONCE // (2 * targets.shape[1]), 1)
        for start in range(0, len(predicted), at_once):
            some = [unpack(text, targets.shape) for text in predicted[start : start + at_once]]
            columns = np.concatenate([part for p in some for part in (targets & p, p)], axis=1)
            counts = np.split(weights @ columns.astype(np.float32), 2 * len(some), axis=1)
            for tp, said in zip(counts[::2], counts[1::2], strict=True):
                by_label = from_sums(tp.astype(np.float64), said.astype(np.float64), true, total)
                found.append({name: _of_labels(name, by_label) for name in names if not _by_row(name)})
        for name in filter(_by_row, names):
            score = AVERAGED[name.partition("_")[2]]
            of_rows = [
                score(*hard_counts(targets, unpack(text, targets.shape), None, None, axis=1), DIV)
                for text in predicted
            ]
            means = DIV(weights.astype(np.float64) @ np.stack(of_rows, axis=1), total)
            for values, metrics in zip(means.T, found, strict=True):
                metrics[name] = values
        return found

    def gap(self, best: Floats, other: Floats) -> tuple[float, float]:
        """The interval of best - other, both (resamples, seeds), over the seeds that both have."""
        both = ~(np.isnan(best[0]) | np.isnan(other[0]))
        drawn = self.seed_weights[:, both]
        times = drawn.sum(axis=1)
        seen = times > 0
        if not seen.any():
            return -np.inf, np.inf
        differences = ((best - other)[:, both] * drawn).sum(axis=1)[seen] / times[seen]
        low, high = np.quantile(differences, [LEVEL / 2, 1 - LEVEL / 2])
        return float(low), float(high)


def _by_row(name: str) -> bool:
    return name.startswith("samples_")


def _of_labels(name: str, by_label: Counts) -> Floats:
    """A metric of the counts (resamples, labels) of each label."""
    average, _, score_name = name.partition("_")
    score = AVERAGED[score_name]
    if average == "micro":
        return np.asarray(score(*Counts(*(count.sum(axis=1) for count in by_label)), DIV))
    of_labels = score(*by_label, DIV)
    if average == "macro":
        return np.asarray(of_labels.mean(axis=1))
    support = by_label.tp + by_label.fn
    return np.asarray(DIV((of_labels * support).sum(axis=1), support.sum(axis=1)))


def with_gaps(
    rows: Sequence[Row],
    predicted: Sequence[Mapping[int, str]],
    resamples: Resamples,
    names: Iterable[str],
) -> list[Row]:
    """The rows, each with how far it is behind the best row in each of the metrics."""
    names = list(names)
    found = resamples.metrics(predicted, names)
    gaps: list[dict[str, Gap]] = [{} for _ in rows]
    for name in names:
        means = [row.mean[name] for row in rows]
        best = int(np.argmax(means))
        for k in range(len(rows)):
            if k != best:
                interval = resamples.gap(found[best][name], found[k][name])
                gaps[k][name] = Gap(means[best] - means[k], *interval)
    return [
        Row(row.name, row.rule, row.seeds, row.values, row.is_floor, gap)
        for row, gap in zip(rows, gaps, strict=True)
    ]
