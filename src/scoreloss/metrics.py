"""``evaluate``: every metric of a multilabel prediction, in numpy.

Names are scikit-learn's. The paper swaps two of them: its "macro F1" is ``micro_f1``, its "micro F1" is
``macro_f1``. Its mAP is interpolated and stands under ``map``; scikit-learn's average precision is
``average_precision``. 0/0 is 0. This module knows no loss and no framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scoreloss import scores
from scoreloss.blocks import Block, Blocks, Indices, Scores, Targets, positives_of_labels, row_slices
from scoreloss.calibrate import binned, flat_entries, is_probability
from scoreloss.checks import Booleans, Floats, checked_thresholds
from scoreloss.counts import Counts, weighted_mean
from scoreloss.hard import DIV, at_positives, hard_counts, places_in_rows
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
    targets: Targets,
    scores: Scores,
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

    Targets may be sparse (CSR or CSC), and scores a function of a slice of rows and a slice of labels: what is dense
    is then a block of about a million entries. Each score is looked at twice, once by label and once by example.

    >>> evaluate([[1, 0], [1, 1]], [[0.9, 0.2], [0.8, 0.4]])["micro_f1"]
    0.8
    """
    data = Blocks(targets, scores, sample_weight, mask)
    t = checked_thresholds(thresholds, data.shape[1], data.dtype)
    labels, rows = [], []
    for block in data.of_labels():
        predicted = block.scores >= (t[block.labels] if t.ndim else t)
        labels.append((_decided(block, predicted, axis=0), _ranked_labels(block)))
    for block in data.of_examples():
        rows.append((_decided(block, block.scores >= t, axis=1), _ranked_rows(block), _calibrated(block)))
    of_labels, ranked_labels = map(_joined, zip(*labels, strict=True))
    of_rows, ranked_rows, sums = zip(*rows, strict=True)
    of_rows, ranked_rows = _joined(of_rows), _joined(ranked_rows)
    decided = _decisions(of_labels, of_rows, data.weight, per_label=per_label)
    ranked = _rankings(
        of_labels.seen, of_rows.seen, ranked_labels, ranked_rows, sums, data.weight, per_label=per_label
    )
    vectors = {**decided.pop("per_label", {}), **ranked.pop("per_label", {})}
    return {**decided, **ranked, **({"per_label": vectors} if per_label else {})}


def decision_metrics(
    targets: Booleans,
    predicted: Booleans,
    weight: Floats | None = None,
    mask: Booleans | None = None,
    *,
    per_label: bool = False,
) -> dict[str, Any]:
    """What depends on the predicted label sets alone. Arguments as ``checked`` returns them."""
    block = _one_block(targets, predicted, weight, mask)
    labels, rows = (_decided(block, predicted, axis) for axis in (0, 1))
    return _decisions(labels, rows, weight, per_label=per_label)


def ranking_metrics(
    targets: Booleans,
    scores: Floats,
    weight: Floats | None = None,
    mask: Booleans | None = None,
    *,
    per_label: bool = False,
) -> dict[str, Any]:
    """What depends on the scores and no threshold. Arguments as ``checked`` returns them."""
    block = _one_block(targets, scores, weight, mask)
    labels, rows = (_seen(mask, axis) for axis in (0, 1))
    parts = _ranked_labels(block), _ranked_rows(block), [_calibrated(block)]
    return _rankings(labels, rows, *parts, weight, per_label=per_label)


def label_frequencies(targets: Targets) -> Floats:
    """(P + 1) / (n + 2) for each label: its share of positives, smoothed so that it is never 0 or 1."""
    n, positives = positives_of_labels(targets)
    return np.asarray((positives + 1) / (n + 2))


class _Decided(NamedTuple):
    """Of labels or rows: their confusion matrices, and which of them are not masked whole."""

    counts: Counts
    seen: Floats | None


class _RankedLabels(NamedTuple):
    average_precision: Floats
    interpolated: Floats


class _RankedRows(NamedTuple):
    """Of each row: what its ranking of labels scores, and of its best labels how many are true."""

    lrap: Floats
    coverage_error: Floats
    ranking_loss: Floats
    precision_at: Floats
    """(rows, ks)."""


class _Calibrated(NamedTuple):
    """Sums over entries; ``chances`` says whether all of them are in [0, 1]."""

    chances: bool
    entries: int
    squares: float
    weight: float
    bins: Floats


def _joined(parts: Iterable[Any]) -> Any:
    """Named tuples of vectors, end to end."""
    first, *_ = parts = list(parts)
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return type(first)(*(_joined(column) for column in zip(*parts, strict=True)))


def _one_block(targets: Booleans, scores: Any, weight: Floats | None, mask: Booleans | None) -> Block:
    n, c = targets.shape
    return Block(targets, scores, weight, mask, slice(0, n), slice(0, c))


def _decided(block: Block, predicted: Booleans, axis: int) -> _Decided:
    """Of each label (axis 0) or row (axis 1), whose own weight is left for later."""
    weight = block.weight if axis == 0 else None
    return _Decided(hard_counts(block.targets, predicted, weight, block.mask, axis), _seen(block.mask, axis))


def _seen(mask: Booleans | None, axis: int) -> Floats | None:
    return None if mask is None else mask.any(axis=axis).astype(float)


def _decisions(labels: _Decided, rows: _Decided, weight: Floats | None, *, per_label: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    by_label, by_row = labels.counts, rows.counts
    pooled = Counts(*(count.sum() for count in by_label))
    support = by_label.tp + by_label.fn
    shares = _row_weights(weight, rows.seen)
    for name, score in AVERAGED.items():
        of_labels = score(*by_label, DIV)
        result[f"micro_{name}"] = float(score(*pooled, DIV))
        result[f"macro_{name}"] = _mean(of_labels, labels.seen)
        result[f"weighted_{name}"] = _mean(of_labels, support)
        result[f"samples_{name}"] = _mean(score(*by_row, DIV), shares)
    wrong = by_row.fp + by_row.fn
    seen = np.sum(by_row, axis=0)
    result["hamming_loss"] = float(DIV(np.sum(_times(wrong, weight)), np.sum(_times(seen, weight))))
    result["subset_accuracy"] = _mean((wrong == 0).astype(float), shares)
    if per_label:
        result["per_label"] = {name: score(*by_label, DIV) for name, score in AVERAGED.items()} | {
            "support": support
        }
    return result


def _rankings(
    labels: Floats | None,
    rows: Floats | None,
    ranked_labels: _RankedLabels,
    ranked_rows: _RankedRows,
    sums: Sequence[_Calibrated],
    weight: Floats | None,
    *,
    per_label: bool = False,
) -> dict[str, Any]:
    """``labels`` and ``rows`` say which of them are not masked whole."""
    shares = _row_weights(weight, rows)
    chances = all(part.chances for part in sums) and any(part.entries for part in sums)
    mass = np.asarray(sum(part.weight for part in sums))
    squares = np.asarray(sum(part.squares for part in sums))
    gaps = np.abs(np.sum([part.bins for part in sums], axis=0)).sum()
    result: dict[str, Any] = {
        "map": _mean(ranked_labels.interpolated, labels),
        "average_precision": _mean(ranked_labels.average_precision, labels),
        "lrap": _mean(ranked_rows.lrap, shares),
        "coverage_error": _mean(ranked_rows.coverage_error, shares),
        "ranking_loss": _mean(ranked_rows.ranking_loss, shares),
        **{
            f"precision_at_{k}": _mean(ranked_rows.precision_at[:, place], shares)
            for place, k in enumerate(PRECISION_AT)
        },
        "brier": float(DIV(squares, mass)) if chances else float("nan"),
        "ece": float(DIV(gaps, mass)) if chances else float("nan"),
    }
    if per_label:
        result["per_label"] = {
            "average_precision": ranked_labels.average_precision,
            "map": ranked_labels.interpolated,
        }
    return result


def _mean(values: Floats, units: Floats | None) -> float:
    return float(weighted_mean(NUMPY, values, units))


def _times(values: Floats, weight: Floats | None) -> Floats:
    return values if weight is None else values * weight


def _row_weights(weight: Floats | None, seen: Floats | None) -> Floats | None:
    """A row counts with its weight, and not at all where all of it is masked."""
    return weight if seen is None else _times(seen, weight)


def _ranked_labels(block: Block) -> _RankedLabels:
    columns = zip(np.ascontiguousarray(block.targets.T), np.ascontiguousarray(block.scores.T), strict=True)
    precision = [_average_precisions(*_drop_masked(y, s, block, j)) for j, (y, s) in enumerate(columns)]
    plain, interpolated = np.array(precision).reshape(-1, 2).T
    return _RankedLabels(plain, interpolated)


def _drop_masked(
    targets: Booleans, scores: Floats, block: Block, label: int
) -> tuple[Booleans, Floats, Floats | None]:
    """What of a label is not masked."""
    if block.mask is None:
        return targets, scores, block.weight
    seen = block.mask[:, label]
    return targets[seen], scores[seen], None if block.weight is None else block.weight[seen]


def _average_precisions(targets: Booleans, scores: Floats, weight: Floats | None) -> tuple[float, float]:
    """Of one label, plain and interpolated: sum over thresholds of (R_k - R_(k-1)) P_k.

    P_k is the precision there; interpolated, it is the best precision at that recall or more.
    """
    _, tp, predicted = at_positives(targets, scores, weight)  # where nothing is gained, precision only falls
    if not len(tp):
        return 0.0, 0.0
    precision = tp / predicted
    gained = np.diff(tp, prepend=0.0) / tp[-1]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(gained @ precision), float(gained @ best)


def _ranked_rows(block: Block) -> _RankedRows:
    """The metrics of each row's ranking of its labels: all of them are said by the places of its positives."""
    n, c = block.targets.shape
    scores, seen = block.scores, np.full(n, c)
    if block.mask is not None:
        scores, seen = np.where(block.mask, scores, np.nan), block.mask.sum(axis=1)
    row, label = np.nonzero(block.targets)
    own = scores[row, label]
    above, at_least = places_in_rows(scores, row, own)
    first = _in_first(scores, row, label, own, above, at_least)
    # The rank of a label counts all labels that score at least as much, true ones among them.
    order = np.lexsort((-own, row))
    row, own, at_least = row[order], own[order], at_least[order]
    positives = np.bincount(row, minlength=n)
    starts = np.cumsum(positives) - positives
    ends = np.flatnonzero(np.append((row[1:] != row[:-1]) | (own[1:] != own[:-1]), len(row) > 0)) + 1
    true_at_least = np.repeat(ends, np.diff(ends, prepend=0)) - starts[row]
    both = (positives > 0) & (positives < seen)
    lrap = DIV(np.bincount(row, true_at_least / at_least, minlength=n), positives.astype(float))
    pairs = np.bincount(row, at_least - true_at_least, minlength=n)
    deepest = np.zeros(n)
    deepest[positives > 0] = at_least[(starts + positives - 1)[positives > 0]]
    taken = np.minimum(seen[:, None], PRECISION_AT).astype(float)
    return _RankedRows(
        np.where(both, lrap, 1.0),
        deepest,
        DIV(pairs, (positives * (seen - positives)).astype(float)),
        DIV(first, taken),
    )


def _in_first(
    scores: Floats, row: Indices, label: Indices, own: Floats, above: Indices, at_least: Indices
) -> Floats:
    """Of each row, how many positives are among its k best labels, ties by label index; (rows, ks)."""
    near = np.flatnonzero(above < max(PRECISION_AT))
    place = above[near]
    tied = np.flatnonzero(at_least[near] - place > 1)
    for part in row_slices((len(tied), scores.shape[1])):
        of = near[tied[part]]
        before = np.arange(scores.shape[1]) < label[of, None]
        place[tied[part]] += np.count_nonzero((scores[row[of]] == own[of, None]) & before, axis=1)
    return np.stack(
        [np.bincount(row[near[place < k]], minlength=len(scores)) for k in PRECISION_AT], axis=1
    ).astype(float)


def _calibrated(block: Block) -> _Calibrated:
    """What the Brier score, and the expected calibration error in equal bins, are made of."""
    y, s, w = entries = flat_entries(block.targets, block.scores, block.weight, block.mask)
    if not is_probability(s):
        return _Calibrated(not s.size, 0, 0.0, 0.0, np.zeros(ECE_BINS))
    bins = binned(entries, ECE_BINS)
    squares = _times((s - y) ** 2, w)
    return _Calibrated(
        True, s.size, float(squares.sum()), float(bins.sizes.sum()), bins.scores - bins.positives
    )
