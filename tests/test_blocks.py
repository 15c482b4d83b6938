"""Sparse targets, and scores that are computed where they are asked for: block by block, the same numbers."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import scoreloss as sl
from scoreloss import blocks
from tests.oracles import assert_close, matrices, weights
from tests.test_metrics import by_scikit_learn
from tests.test_thresholds import recall_heavy

KINDS = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "matrix": lambda y: sparse.csr_matrix(y.astype(float)),
    "torch": lambda y: torch.from_numpy(y.astype(np.float32)).to_sparse_csr(),
    "dense": lambda y: y,
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES", 7)


def in_blocks(function, entries):
    """A function's result with blocks of so many entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "ENTRIES", entries)
        return function()


def computed(s):
    return lambda rows, labels: s[rows, labels]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_evaluate_says_the_same_of_blocks_as_of_all_at_once(kind, data):
    y, s = data.draw(matrices(max_labels=8))
    w = data.draw(st.none() | weights(len(y)))
    m = data.draw(st.none() | hnp.arrays(bool, y.shape))
    given_scores = data.draw(st.sampled_from([s, computed(s)]))
    expected = sl.evaluate(y, s, sample_weight=w, mask=m, per_label=True)
    entries = data.draw(st.sampled_from([1, 7, 30]))
    actual = in_blocks(
        lambda: sl.evaluate(KINDS[kind](y), given_scores, sample_weight=w, mask=m, per_label=True), entries
    )
    for name, value in expected.pop("per_label").items():
        assert_close(actual["per_label"][name], value)
    del actual["per_label"]
    assert actual == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(data=st.data())
def test_evaluate_of_sparse_targets_equals_scikit_learn(data):
    y, s = data.draw(matrices(min_labels=2))
    w = data.draw(st.none() | weights(len(y)))
    actual = in_blocks(lambda: sl.evaluate(sparse.csr_array(y), computed(s), sample_weight=w), 7)
    for name, expected in by_scikit_learn(y, s, w).items():
        assert actual[name] == pytest.approx(expected, abs=1e-12), name


def test_rows_of_many_positives_and_of_few_and_of_ties_equal_a_plain_loop():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 40, (30, 60)) / 40
    y = rng.random(s.shape) < np.linspace(0, 1, 30)[:, None]
    mask = rng.random(s.shape) < 0.8
    found = {name: [] for name in ("coverage_error", "lrap", "ranking_loss", "precision_at_5")}
    for truth, scores, seen in zip(y, s, mask, strict=True):
        t, values = truth[seen], scores[seen]
        ranks = [sum(values >= v) for v in values[t]]
        right = [sum(values[t] >= v) for v in values[t]]
        both = t.any() and not t.all()
        first = sorted(range(len(t)), key=lambda j, values=values: (-values[j], j))[:5]
        found["coverage_error"].append(max(ranks, default=0))
        found["lrap"].append(np.mean(np.divide(right, ranks)) if both else 1)
        wrong = [sum(values[~t] >= v) for v in values[t]]
        found["ranking_loss"].append(sum(wrong) / (t.sum() * (~t).sum()) if both else 0)
        found["precision_at_5"].append(t[first].mean())
    actual = sl.evaluate(sparse.csr_array(y), s, mask=mask)
    for name, of_rows in found.items():
        assert actual[name] == pytest.approx(np.mean(of_rows), abs=1e-12), name


def more_is_better(tp, fp, fn, tn, div):
    return div(2 * tp + fp, 2 * (tp + fn) + tn)


RULES = {
    "Fixed": lambda: sl.Fixed(0.3),
    **{
        f"Global {score} {average}": lambda score=score, average=average: sl.Global(score, average)
        for average in ("macro", "micro", "weighted", "samples")
        for score in ("f1", "accuracy", "mcc", "npv")
    },
    "PerLabel": sl.PerLabel,
    "PerLabel jaccard": lambda: sl.PerLabel("jaccard", min_positives=2),
    "PerLabel cv": lambda: sl.PerLabel("accuracy", cv=2),
    "Averaging": sl.Averaging,
    "TopK": lambda: sl.TopK(2),
    "TopK count": lambda: sl.TopK("count"),
    "Lipton": sl.Lipton,
    "Lipton micro": lambda: sl.Lipton("micro"),
    "ExpectedF1": sl.ExpectedF1,
}
ALL_SCORES = {
    f"Global {name} {average}": lambda score=score, average=average: sl.Global(score, average)
    for name, score in (("own", recall_heavy), ("own and mad", more_is_better))
    for average in ("macro", "micro", "weighted", "samples")
}
"""Rules that must see all scores at once."""


def learned(rule):
    return {name: value for name, value in vars(rule).items() if name.endswith("_")}


@pytest.mark.parametrize("name", RULES | ALL_SCORES)
@given(data=st.data())
def test_rules_learn_the_same_from_blocks_as_from_all_at_once(name, data):
    make = (RULES | ALL_SCORES)[name]
    y, s = data.draw(matrices(max_labels=6).filter(lambda drawn: len(drawn[0]) > 1))
    w = data.draw(st.none() | weights(len(y)))
    m = data.draw(st.none() | hnp.arrays(bool, y.shape))
    expected = make().fit(y, s, sample_weight=w, mask=m)
    kind = KINDS[data.draw(st.sampled_from(["csr", "csc", "matrix", "dense"]))]
    of_scores = s if name in ALL_SCORES else data.draw(st.sampled_from([s, computed(s)]))
    actual = in_blocks(lambda: make().fit(kind(y), of_scores, sample_weight=w, mask=m), 7)
    assert learned(actual).keys() == learned(expected).keys()
    for attribute, value in learned(expected).items():
        np.testing.assert_allclose(learned(actual)[attribute], value, rtol=1e-12, atol=1e-12)
    predicted = in_blocks(lambda: actual.predict(s), 7)
    assert np.array_equal(predicted, expected.predict(s))


def test_no_false_positive_raises_a_score():
    """What lets a search try the scores of positives alone, in exact fractions; that a rise would be seen, too."""

    def div(num, den, power=1):
        return 0 if den == 0 else Fraction(num) / Fraction(den) if power == 1 else num / den**power

    def rises(score):
        counts = itertools.product(range(5), range(5), range(1, 6))
        return any(
            b - a > 1e-12
            for tp, fn, n in counts
            for a, b in itertools.pairwise(score(tp, fp, fn, n - fp, div) for fp in range(n + 1))
        )

    assert not any(map(rises, sl.SCORES.values()))
    assert rises(lambda tp, fp, fn, tn, div: div(tp + fp, tp + fp + fn + tn))


@pytest.mark.usefixtures("small_blocks")
def test_float32_scores_and_thresholds_round_alike_in_blocks():
    s = np.full((3, 5), 0.7, np.float32)
    y = sparse.csr_array(np.ones((3, 5), bool))
    for given_scores in (s, computed(s), torch.from_numpy(s)):
        assert sl.evaluate(y, given_scores, 0.7)["micro_f1"] == 1
        assert sl.evaluate(y, given_scores, [0.7] * 5)["micro_f1"] == 1


def test_label_frequencies_of_sparse_targets(small_blocks):
    y = np.random.default_rng(0).random((20, 6)) < 0.3
    assert_close(sl.label_frequencies(sparse.csc_matrix(y)), sl.label_frequencies(y))
    assert_close(sl.label_frequencies(y), (y.sum(0) + 1) / 22)


def test_calibration_takes_sparse_targets():
    rng = np.random.default_rng(0)
    y, s = rng.random((40, 3)) < 0.4, rng.normal(size=(40, 3))
    assert_close(sl.calibrate(sparse.csr_array(y), s).slopes, sl.calibrate(y, s).slopes)


def test_what_is_masked_in_sparse_targets_may_be_anything():
    y = sparse.csr_array(np.array([[1.0, -1.0], [0.0, 1.0]]))
    mask = np.array([[True, False], [True, True]])
    assert sl.evaluate(y, [[0.9, np.nan], [0.1, 0.8]], mask=mask)["macro_f1"] == 1
    stored_zero = sparse.csr_array(([1, 0], ([0, 0], [0, 1])), shape=(1, 2))
    assert sl.evaluate(stored_zero, [[0.9, 0.1]])["subset_accuracy"] == 1


def test_a_memory_map_is_read_in_blocks(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.random((50, 30)).astype(np.float32)
    y = rng.random(s.shape) < 0.1
    on_disk = np.memmap(tmp_path / "scores", np.float32, "w+", shape=s.shape)
    on_disk[:] = s
    assert in_blocks(lambda: sl.evaluate(sparse.csr_array(y), on_disk), 100) == pytest.approx(
        sl.evaluate(y, s)
    )


def many_labels(n=500, c=4000):
    """Targets and scores of a few features: all scores at once would be 16 MB."""
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(n, 4)), rng.normal(size=(c, 4))
    rows = np.repeat(np.arange(n), 3)
    labels = rng.integers(0, c, len(rows))
    y = sparse.csr_array((np.ones(len(rows)), (rows, labels)), shape=(n, c)) != 0
    return y, lambda rows, labels: 1 / (1 + np.exp(-x[rows] @ weight[labels].T))


@pytest.mark.parametrize(
    "look",
    [
        sl.evaluate,
        *(
            lambda y, s, rule=rule: rule.fit(y, s)
            for rule in (
                sl.Fixed(),
                sl.Global(),
                sl.Global("f1", "micro"),
                sl.Global("f1", "samples"),
                sl.PerLabel("accuracy"),
                sl.Averaging(),
                sl.TopK("count"),
                sl.Lipton(),
                sl.Lipton("micro"),
            )
        ),
    ],
)
def test_what_is_held_is_less_than_a_boolean_for_each_entry(look, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES", 5000)
    y, scores = many_labels()
    tracemalloc.start()
    look(y, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * 4000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sl.evaluate(sparse.coo_array([[1, 0]]), [[1.0, 0]]),
            "targets are a coo_array: .* CSR or CSC",
        ),
        (
            lambda: sl.evaluate(sparse.csr_array([[1, 2]]), [[1.0, 0]]),
            r"targets\[0, 1\] is 2: targets must be 0",
        ),
        (
            lambda: sl.evaluate(sparse.csr_array(([1, 1], [1, 1], [0, 2]), shape=(1, 2)), [[1.0, 0]]),
            r"targets\[0, 1\] is there twice",
        ),
        (
            lambda: sl.evaluate(sparse.csr_array((0, 2)), np.ones((0, 2))),
            "there must be an example and a label",
        ),
        (
            lambda: sl.evaluate(sparse.csr_array([[1, 0]]), [[0.1]]),
            r"scores have shape \(1, 1\): the targets have",
        ),
        (
            lambda: sl.evaluate(np.eye(2), lambda rows, labels: np.ones((2, 2))),
            r"scores give shape \(2, 2\) for \[0:1, 0:1\]: .* must give \(1, 1\)",
        ),
        (
            lambda: sl.evaluate([[1, 0]], sparse.csr_array([[1, 0]])),
            "scores must be dense: it is a csr_array",
        ),
        (lambda: sl.evaluate(np.eye(2), np.ones((2, 2)), mask=[True] * 3), r"mask has shape \(3,\)"),
        (
            lambda: sl.Global(recall_heavy).fit(np.eye(2), computed(np.eye(2))),
            "score is recall_heavy: it must be one of f1, fbeta, ",
        ),
        (lambda: sl.Fixed().predict(computed(np.eye(2))), "scores are a function: predict takes a matrix"),
        (
            lambda: sl.stratified_split(sparse.csr_array([[1, 0]]), [1.0]),
            "targets must be dense: it is a csr_arr",
        ),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("small_blocks")
def test_the_place_of_a_wrong_entry_is_that_in_the_matrix():
    y, s = np.zeros((9, 9)), np.zeros((9, 9))
    y[7, 5] = 3
    with pytest.raises(ValueError, match=r"targets\[7, 5\] is 3"):
        sl.Fixed().fit(y, s)
    y[7, 5], s[8, 2] = 1, np.nan
    with pytest.raises(ValueError, match=r"scores\[8, 2\] is NaN"):
        sl.evaluate(y, s)
