"""What a decision costs: thresholds, metrics, decoders and splits, each beside its peer in the same process.

    python benchmarks/decisions.py [--smoke]

Scores are random and 3.6 % of the targets true, as in COCO, whose size (122,218 x 80) they have. A ratio is the
median over rounds, its quartiles in brackets.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import sklearn.metrics as sk

import scoreloss as sl
from timing import medians, ratio, shown

SHARE = 0.036


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round, small shapes")
    smoke = parser.parse_args().smoke
    n, c, rounds, few = (2_000, 5, 2, 1) if smoke else (122_218, 80, 11, 3)
    rng = np.random.default_rng(0)
    y = rng.random((n, c)) < SHARE
    for dtype in (np.float32, np.float64):
        s = rng.random((n, c)).astype(dtype)
        against(
            f"PerLabel, {n:,} x {c} {dtype.__name__}, over np.argsort(scores, axis=0)",
            lambda s=s: sl.PerLabel().fit(y, s),
            lambda s=s: np.argsort(s, axis=0),
            rounds,
        )
        against(
            f"a loop over precision_recall_curve, {dtype.__name__}, over PerLabel",
            lambda s=s: curves(y, s),
            lambda s=s: sl.PerLabel().fit(y, s),
            few,
        )
    s = rng.random((n, c))
    against(
        f"the same numbers from scikit-learn, {n:,} x {c}, over evaluate",
        lambda: by_scikit_learn(y, s),
        lambda: sl.evaluate(y, s),
        1 if smoke else few,
    )
    rows = 200 if smoke else 10_000
    chances = rng.random((rows, c)) ** 4
    alone(f"ExpectedF1, {rows:,} x {c}", lambda: sl.ExpectedF1().predict(chances), rounds)
    alone("  with beta = 2", lambda: sl.ExpectedF1(beta=2).predict(chances), rounds)
    alone("  with beta = 0.7", lambda: sl.ExpectedF1(beta=0.7).predict(chances), rounds)
    rows = 1_000 if smoke else 100_000
    y = rng.random((rows, c)) < SHARE
    alone(f"stratified_split in 3, {rows:,} x {c}", lambda: sl.stratified_split(y, [0.6, 0.2, 0.2]), few)
    groups = rng.integers(0, rows // 5, rows)
    alone("  with groups of 5", lambda: sl.stratified_split(y, [0.6, 0.2, 0.2], groups=groups), few)


def curves(y: np.ndarray, s: np.ndarray) -> list[float]:
    """The best F1 threshold of each label, as one finds it with scikit-learn."""
    thresholds = []
    for j in range(y.shape[1]):
        precision, recall, at = sk.precision_recall_curve(y[:, j], s[:, j])
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        thresholds.append(float(at[np.argmax(f1[:-1])]))
    return thresholds


def by_scikit_learn(y: np.ndarray, s: np.ndarray) -> list[float]:
    """What of ``evaluate`` scikit-learn has."""
    predicted = s >= 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided = [
            metric(y, predicted, average=average, zero_division=0)
            for average in ("micro", "macro", "weighted", "samples")
            for metric in (sk.f1_score, sk.precision_score, sk.recall_score, sk.jaccard_score)
        ]
        return [
            *decided,
            sk.hamming_loss(y, predicted),
            sk.accuracy_score(y, predicted),
            sk.average_precision_score(y, s),
            sk.label_ranking_average_precision_score(y, s),
            sk.coverage_error(y, s),
            sk.label_ranking_loss(y, s),
            sk.brier_score_loss(y.ravel(), s.ravel()),
        ]


def against(name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> None:
    seconds = medians({"first": ours, "second": theirs}, rounds)
    print(f"{name:78} {shown(ratio(seconds['first'], seconds['second']))}", flush=True)


def alone(name: str, run: Callable[[], object], rounds: int) -> None:
    seconds = sorted(medians({"run": run}, rounds)["run"])
    print(f"{name:78} {seconds[len(seconds) // 2]:5.2f} s", flush=True)


if __name__ == "__main__":
    main()
