"""``evaluate``: every metric of a multilabel prediction, in numpy.

Names are scikit-learn's. The paper swaps two of them: its "macro F1" is ``micro_f1``, its "micro F1" is
``macro_f1``. Its mAP is interpolated and stands under ``map``; scikit-learn's average precision is
``average_precision``. 0/0 is 0. This module knows no loss and no framework.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss import scores
from scoreloss.calibrate import binned, flat_entries, is_probability
from scoreloss.checks import Booleans, Floats, checked, checked_targets, checked_thresholds
from scoreloss.counts import Counts, weighted_mean
from scoreloss.hard import DIV, hard_counts, ladder
from scoreloss.ops import NUMPY

AVERAGED = {
    "f1": scores.f1,
    "precision": scores.precision,
    "recall": scores.recall,
    "jaccard": scores.jaccard,
}
PRECISION_AT = (1, 3, 5)
ECE_BINS = 15


def evaluate(
    targets: ArrayLike,
    scores: ArrayLike,
    thresholds: ArrayLike = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    per_label: bool = False,
) -> dict[str, Any]:
    """All metrics of scores (n, c) against 0/1 targets (n, c); at or above its threshold is positive.

    ``thresholds`` is a number or one a label. ``sample_weight`` is (n,). ``mask`` broadcasts against the
    targets and is False where a label is missing. ``brier`` and ``ece`` are NaN unless the scores lie in [0, 1].
    ``per_label`` adds a dictionary of vectors under "per_label".

    >>> evaluate([[1, 0], [1, 1]], [[0.9, 0.2], [0.8, 0.4]])["micro_f1"]
    0.8
    """
    y, s, w, m = checked(targets, scores, sample_weight, mask)
    predicted = s >= checked_thresholds(thresholds, y.shape[1], scores)
    result = decision_metrics(y, predicted, w, m, per_label=per_label)
    ranking = ranking_metrics(y, s, w, m, per_label=per_label)
    labels = {**result.pop("per_label", {}), **ranking.pop("per_label", {})}
    return {**result, **ranking, **({"per_label": labels} if per_label else {})}


def decision_metrics(
    targets: Booleans,
    predicted: Booleans,
    weight: Floats | None = None,
    mask: Booleans | None = None,
    *,
    per_label: bool = False,
) -> dict[str, Any]:
    """What depends on the predicted label sets alone. Arguments as ``checked`` returns them."""
    result: dict[str, Any] = {}
    by_label = hard_counts(targets, predicted, weight, mask, axis=0)
    by_row = hard_counts(targets, predicted, None, mask, axis=1)
    pooled = Counts(*(count.sum() for count in by_label))
    labels = None if mask is None else mask.any(axis=0).astype(float)
    support = by_label.tp + by_label.fn
    rows = _row_weights(weight, mask)
    for name, score in AVERAGED.items():
        of_labels = score(*by_label, DIV)
        result[f"micro_{name}"] = float(score(*pooled, DIV))
        result[f"macro_{name}"] = _mean(of_labels, labels)
        result[f"weighted_{name}"] = _mean(of_labels, support)
        result[f"samples_{name}"] = _mean(score(*by_row, DIV), rows)
    wrong = by_row.fp + by_row.fn
    seen = np.sum(by_row, axis=0)
    result["hamming_loss"] = float(DIV(np.sum(_times(wrong, weight)), np.sum(_times(seen, weight))))
    result["subset_accuracy"] = _mean((wrong == 0).astype(float), rows)
    if per_label:
        result["per_label"] = {name: score(*by_label, DIV) for name, score in AVERAGED.items()} | {
            "support": support
        }
    return result


def ranking_metrics(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None = None,
    mask: Booleans | None = None,
    *,
    per_label: bool = False,
) -> dict[str, Any]:
    """What depends on the scores and no threshold. Arguments as ``checked`` returns them."""
    columns = zip(np.ascontiguousarray(targets.T), np.ascontiguousarray(scores.T), strict=True)
    precision = [
        _average_precisions(*_drop_masked(y, s, weight, mask, j)) for j, (y, s) in enumerate(columns)
    ]
    average_precision, interpolated = np.array(precision).reshape(-1, 2).T
    labels = None if mask is None else mask.any(axis=0).astype(float)
    result: dict[str, Any] = {
        "map": _mean(interpolated, labels),
        "average_precision": _mean(average_precision, labels),
        **_row_rankings(targets, scores, weight, mask),
        **_calibration(targets, scores, weight, mask),
    }
    if per_label:
        result["per_label"] = {
            "average_precision": average_precision,
            "map": interpolated,
        }
    return result


def label_frequencies(targets: ArrayLike) -> Floats:
    """(P + 1) / (n + 2) for each label: its share of positives, smoothed so that it is never 0 or 1."""
    y = checked_targets(targets)
    return np.asarray((np.count_nonzero(y, axis=0) + 1) / (len(y) + 2))


def _mean(values: Floats, units: Floats | None) -> float:
    return float(weighted_mean(NUMPY, values, units))


def _times(values: Floats, weight: Floats | None) -> Floats:
    return values if weight is None else values * weight


def _row_weights(weight: Floats | None, mask: Booleans | None) -> Floats | None:
    """A row counts with its weight, and not at all where all of it is masked."""
    return weight if mask is None else _times(mask.any(axis=1).astype(float), weight)


def _drop_masked(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None,
    mask: Booleans | None,
    label: int,
) -> tuple[Booleans, Floats, Floats | None]:
    """What of a label is not masked."""
    if mask is None:
        return targets, scores, weight
    seen = mask[:, label]
    return targets[seen], scores[seen], None if weight is None else weight[seen]


def _average_precisions(targets: Booleans, scores: Floats, weight: Floats | None) -> tuple[float, float]:
    """Of one label, plain and interpolated: sum over thresholds of (R_k - R_(k-1)) P_k.

    P_k is the precision there; interpolated, it is the best precision at that recall or more.
    """
    _, tp, predicted = ladder(targets, scores, weight)
    if tp[-1] == 0:
        return 0.0, 0.0
    steps = np.diff(tp)
    gains = np.flatnonzero(steps)  # where nothing is gained, precision only falls
    precision = tp[1:][gains] / predicted[1:][gains]
    gained = steps[gains] / tp[-1]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(gained @ precision), float(gained @ best)


def _row_rankings(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None,
    mask: Booleans | None,
) -> dict[str, float]:
    """The metrics of each row's ranking of its labels, averaged over rows."""
    n, c = targets.shape
    seen = np.ones_like(targets) if mask is None else mask
    order = _best_first(scores, mask)
    ordered = np.take_along_axis(scores, order, 1)
    true = np.take_along_axis(targets, order, 1)
    here = np.take_along_axis(seen, order, 1)
    hits = np.cumsum(true, axis=1)
    # The rank of a label counts all labels that score at least as much: that of the last of its equals.
    last = np.broadcast_to(np.arange(c), (n, c)).copy()
    equal = (ordered[:, :-1] == ordered[:, 1:]) & here[:, 1:]
    for j in np.flatnonzero(equal.any(axis=0))[::-1]:
        last[:, j] = np.where(equal[:, j], last[:, j + 1], j)
    at_least = last + 1
    true_at_least = np.take_along_axis(hits, last, 1)
    positives = hits[:, -1]
    negatives = here.sum(axis=1) - positives
    both = (positives > 0) & (negatives > 0)
    lrap = DIV((true * (true_at_least / at_least)).sum(1), positives.astype(float))
    pairs = (true * (at_least - true_at_least)).sum(1)
    rows = _row_weights(weight, mask)
    result = {
        "lrap": _mean(np.where(both, lrap, 1.0), rows),
        "coverage_error": _mean((true * at_least).max(axis=1).astype(float), rows),
        "ranking_loss": _mean(DIV(pairs, (positives * negatives).astype(float)), rows),
    }
    for k in PRECISION_AT:
        taken = np.minimum(here.sum(axis=1), k).astype(float)
        result[f"precision_at_{k}"] = _mean(DIV((true & here)[:, :k].sum(1), taken), rows)
    return result


def _best_first(scores: Floats, mask: Booleans | None) -> NDArray[np.intp]:
    """The labels of each row by score, ties by label index, and behind them the masked ones."""
    if mask is not None:
        return np.asarray(np.lexsort((-scores, ~mask), axis=1))
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, 1)
    tied = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    order[tied] = np.argsort(-scores[tied], axis=1, kind="stable")  # much slower, so for those alone
    return order


def _calibration(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None,
    mask: Booleans | None,
) -> dict[str, float]:
    """Brier score, and expected calibration error in equal bins, over all entries."""
    entries = flat_entries(targets, scores, weight, mask)
    if not is_probability(entries.scores):
        return {"brier": float("nan"), "ece": float("nan")}
    bins = binned(entries, ECE_BINS)
    return {
        "brier": _mean((entries.scores - entries.targets) ** 2, entries.weight),
        "ece": float(DIV(np.abs(bins.scores - bins.positives).sum(), bins.sizes.sum())),
    }
