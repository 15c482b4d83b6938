"""evaluate() against scikit-learn, and against plain loops where it has no such metric."""

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from hypothesis import given
from hypothesis import strategies as st

import scoreloss as sl
from tests.oracles import assert_close, average_precision_loop, matrices, quiet, weights

AVERAGES = ("micro", "macro", "weighted", "samples")
KEYS = {f"{a}_{m}" for a in AVERAGES for m in ("f1", "precision", "recall", "jaccard")} | {
    "hamming_loss",
    "subset_accuracy",
    "map",
    "average_precision",
    "lrap",
    "coverage_error",
    "ranking_loss",
    "precision_at_1",
    "precision_at_3",
    "precision_at_5",
    "brier",
    "ece",
}


def by_scikit_learn(y, s, w):
    y, predicted = y.astype(int), (s >= 0.5).astype(int)
    result = {
        f"{average}_{name}": quiet(
            getattr(sk, f"{name}_score"), y, predicted, average=average, zero_division=0, sample_weight=w
        )
        for average in AVERAGES
        for name in ("f1", "precision", "recall", "jaccard")
    }
    for name, metric in {
        "average_precision": sk.average_precision_score,
        "lrap": sk.label_ranking_average_precision_score,
        "coverage_error": sk.coverage_error,
        "ranking_loss": sk.label_ranking_loss,
    }.items():
        result[name] = quiet(metric, y, s, sample_weight=w)
    result["subset_accuracy"] = sk.accuracy_score(y, predicted, sample_weight=w)
    result["hamming_loss"] = sk.hamming_loss(y, predicted, sample_weight=w)
    return result


@given(data=st.data())
def test_equals_scikit_learn(data):
    y, s = data.draw(matrices(min_labels=2))
    w = data.draw(st.none() | weights(len(y)))
    actual = sl.evaluate(y, s, sample_weight=w)
    assert set(actual) == KEYS
    for name, expected in by_scikit_learn(y, s, w).items():
        assert actual[name] == pytest.approx(expected, abs=1e-12), name


@given(data=st.data())
def test_what_scikit_learn_lacks_equals_a_loop(data):
    y, s = data.draw(matrices())
    n, c = y.shape
    actual = sl.evaluate(y, s)
    for name, interpolated in (("map", True), ("average_precision", False)):
        labels = [average_precision_loop(y[:, j], s[:, j], interpolated=interpolated) for j in range(c)]
        assert_close(actual[name], np.mean(labels))
    for k in (1, 3, 5):
        rows = []
        for i in range(n):
            first = sorted(range(c), key=lambda j, i=i: (-s[i, j], j))[:k]
            rows.append(sum(y[i, j] for j in first) / len(first))
        assert_close(actual[f"precision_at_{k}"], np.mean(rows))
    assert_close(actual["brier"], np.mean([(s[i, j] - y[i, j]) ** 2 for i in range(n) for j in range(c)]))
    bins = {}
    for p, t in zip(s.ravel(), y.ravel(), strict=True):
        bins.setdefault(min(int(p * 15), 14), []).append((p, t))
    gap = sum(abs(sum(p for p, _ in b) - sum(t for _, t in b)) for b in bins.values())
    assert_close(actual["ece"], gap / (n * c))


@given(data=st.data())
def test_a_weight_of_two_is_the_example_twice(data):
    y, s = data.draw(matrices())
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)))
    if not sum(times):
        times[0] = 1
    weighted = sl.evaluate(y, s, sample_weight=times)
    repeated = sl.evaluate(np.repeat(y, times, axis=0), np.repeat(s, times, axis=0))
    assert weighted == pytest.approx(repeated, abs=1e-12)


@given(data=matrices(max_labels=4))
def test_a_masked_row_or_label_is_not_there(data):
    y, s = data
    mask = np.ones((len(y) + 2, y.shape[1] + 1), bool)
    mask[[0, -1]] = False
    mask[:, 1] = False
    wide_y, wide_s = np.ones(mask.shape), np.full(mask.shape, np.nan)
    inside = np.ix_(range(1, len(y) + 1), [0, *range(2, y.shape[1] + 1)])
    wide_y[inside], wide_s[inside] = y, s
    wide_y[~mask] = -1
    assert sl.evaluate(wide_y, wide_s, mask=mask) == pytest.approx(sl.evaluate(y, s), abs=1e-12)


def test_a_single_masked_entry_leaves_its_row_and_its_label():
    y = np.array([[1, 0, 1], [0, 1, 1]])
    s = np.array([[0.9, 0.8, 0.2], [0.4, 0.7, 0.6]])
    mask = np.array([[1, 0, 1], [1, 1, 1]], bool)
    actual = sl.evaluate(y, s, mask=mask)
    assert actual["micro_f1"] == pytest.approx(2 * 3 / (2 * 3 + 0 + 1))
    assert actual["hamming_loss"] == pytest.approx(1 / 5)
    assert actual["subset_accuracy"] == pytest.approx(1 / 2)
    assert actual["samples_recall"] == pytest.approx((1 / 2 + 1) / 2)


def test_a_masked_entry_is_below_a_score_of_minus_infinity():
    s = np.array([[-np.inf, 3.0, 7.0]])
    masked = sl.evaluate([[1, 0, 0]], s, mask=[[1, 1, 0]])
    sliced = sl.evaluate([[1, 0]], s[:, :2])
    for name in ("lrap", "coverage_error", "ranking_loss", "precision_at_1"):
        assert masked[name] == sliced[name], name


def test_a_label_is_there_where_only_examples_without_weight_have_it():
    y, s, mask = [[1, 1], [1, 0]], [[0.9, 0.9], [0.9, 0.9]], [[True, False], [True, True]]
    weighted = sl.evaluate(y, s, mask=mask, sample_weight=[1, 0])
    assert weighted["macro_f1"] == 0.5


def test_a_threshold_for_each_label_and_at_or_above_is_positive():
    y, s = [[1, 0], [1, 1]], [[0.3, 0.8], [0.29, 0.9]]
    assert sl.evaluate(y, s, [0.3, 0.9])["micro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 1))


def test_per_label_adds_vectors():
    y, s = np.array([[1, 0], [1, 1]]), np.array([[0.9, 0.8], [0.2, 0.9]])
    labels = sl.evaluate(y, s, per_label=True)["per_label"]
    assert_close(labels["f1"], [2 / 3, 2 / 3])
    assert_close(labels["support"], [2, 1])
    assert set(labels) == {"f1", "precision", "recall", "jaccard", "support", "average_precision", "map"}


def test_scores_that_are_no_probabilities_have_no_calibration():
    actual = sl.evaluate([[1, 0]], [[3.0, -2.0]])
    assert np.isnan(actual["brier"])
    assert np.isnan(actual["ece"])
    assert actual["average_precision"] == pytest.approx(0.5)


def test_label_frequencies_are_smoothed():
    assert_close(sl.label_frequencies([[1, 0], [1, 0], [1, 1]]), [4 / 5, 2 / 5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], [[0.1, 0.2]]), r"targets\[0, 1\] is 2"),
        (([[1, 0]], [[0.1, np.nan]]), r"scores\[0, 1\] is NaN"),
        (([[1, np.nan]], [[0.1, 0.2]]), r"targets\[0, 1\] is nan"),
        (([[1, 0]], [[0.1, 0.2, 0.3]]), r"scores have shape \(1, 3\): the targets have \(1, 2\)"),
        (([1, 0], [0.1, 0.2]), r"targets have shape \(2,\)"),
        ((np.zeros((0, 3)), np.zeros((0, 3))), "there must be an example and a label"),
        (([[1, 0]], [["a", "b"]]), "scores must hold numbers"),
        (([[1, 0]], [[0.1, 0.2]], [0.5] * 3), r"thresholds have shape \(3,\)"),
        (([[1, 0]], [[0.1, 0.2]], "a"), "thresholds must hold numbers"),
        (([[1, 0], [1]], [[0.1, 0.2]]), "targets must be an array: the rows have different lengths"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sl.evaluate(*arguments)


def test_tensors_are_taken_from_their_graph_and_thresholds_round_as_the_scores_do():
    scores = torch.tensor([[0.7, 0.2]], requires_grad=True)
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        assert sl.evaluate(torch.tensor([[1, 0]]), scores.to(kind))["micro_f1"] == 1
    assert sl.evaluate([[1, 0]], scores, 0.7)["micro_f1"] == 1
    assert sl.Fixed(0.7).predict(scores).tolist() == [[True, False]]


def test_bad_weights_and_masks_are_named():
    with pytest.raises(ValueError, match="mask must hold True and False"):
        sl.evaluate([[1, 0]], [[0.1, 0.2]], mask=[[0.5, 1.0]])
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        sl.evaluate([[1, 0]], [[0.1, 0.2]], sample_weight=["a"])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\)"):
        sl.evaluate([[1, 0]], [[0.1, 0.2]], sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        sl.evaluate([[1, 0]], [[0.1, 0.2]], sample_weight=[-1])
    with pytest.raises(ValueError, match=r"mask has shape \(3,\)"):
        sl.evaluate([[1, 0]], [[0.1, 0.2]], mask=[True] * 3)
