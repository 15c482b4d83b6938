"""The rules against brute force over every distinct threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scoreloss as sl
from tests.oracles import all_thresholds, averaged, matrices, weights


def plain(name):
    score = sl.SCORES[name] if isinstance(name, str) else name

    def of_counts(tp, fp, fn, tn):
        snapped = [k if k > 1e-9 else 0.0 for k in (tp, fp, fn, tn)]
        return score(*snapped, lambda num, den, power=1: num / den**power if den else 0.0)

    return of_counts


def recall_heavy(tp, fp, fn, tn, div):
    return div(tp, tp + fp + 3 * fn)


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", "samples"])
@pytest.mark.parametrize("score", [*sl.SCORES, recall_heavy])
@given(data=st.data())
def test_global_equals_brute_force(score, average, data):
    y, s = data.draw(matrices(max_rows=8, max_labels=3))
    w = data.draw(st.none() | weights(len(y)))
    rule = sl.Global(score, average).fit(y, s, sample_weight=w)
    reached = {t: averaged(plain(score), y, s >= t, average, w) for t in all_thresholds(s)}
    best = max(reached.values())
    assert rule.score_ == pytest.approx(best, abs=1e-9)
    assert reached[rule.threshold_] == pytest.approx(best, abs=1e-9)
    assert rule.threshold_ == max(t for t, value in reached.items() if value > best - 1e-12)


@pytest.mark.parametrize("score", [*sl.SCORES, recall_heavy])
@given(data=st.data())
def test_per_label_equals_brute_force(score, data):
    y, s = data.draw(matrices(max_rows=8, max_labels=3))
    w = data.draw(st.none() | weights(len(y)))
    rule = sl.PerLabel(score).fit(y, s, sample_weight=w)
    predicted = rule.predict(s)
    for j in range(y.shape[1]):
        reached = {
            t: averaged(plain(score), y[:, [j]], s[:, [j]] >= t, "micro", w) for t in all_thresholds(s[:, j])
        }
        best = max(reached.values())
        assert rule.scores_[j] == pytest.approx(best, abs=1e-9)
        own = averaged(plain(score), y[:, [j]], predicted[:, [j]], "micro", w)
        assert own == pytest.approx(best, abs=1e-9)
        if not rule.fallback_[j]:
            assert rule.thresholds_[j] == max(t for t, v in reached.items() if v > best - 1e-12)


@given(data=matrices(max_labels=3))
def test_masked_rows_are_not_there(data):
    y, s = data
    wide_y = np.vstack([1 - y, y])
    wide_s = np.vstack([np.full_like(s, np.nan), s])
    mask = np.arange(len(wide_y))[:, None] >= len(y)
    for rule in (sl.Global("f1", "micro"), sl.Global(), sl.PerLabel()):
        rule.fit(wide_y, wide_s, mask=mask)
        assert np.array_equal(rule.predict(s), type(rule)(*_arguments(rule)).fit(y, s).predict(s))


def _arguments(rule):
    return (rule.score, rule.average) if isinstance(rule, sl.Global) else (rule.score,)


def test_fixed_is_what_it_is_told():
    rule = sl.Fixed(0.3).fit([[1, 0]], [[0.3, 0.2]])
    assert rule.predict([[0.3, 0.29]]).tolist() == [[True, False]]


def test_predicting_nothing_is_a_candidate():
    rule = sl.Global("accuracy", "micro").fit([[0], [0]], [[0.9], [0.1]])
    assert rule.threshold_ == np.inf
    assert not rule.predict([[1.0]]).any()


def test_a_label_without_positives_takes_the_global_threshold():
    y = np.array([[1, 0], [1, 0], [0, 0]])
    s = np.array([[0.9, 0.3], [0.7, 0.2], [0.1, 0.1]])
    rule = sl.PerLabel().fit(y, s)
    assert rule.fallback_.tolist() == [False, True]
    assert rule.thresholds_[1] == sl.Global().fit(y, s).threshold_ == 0.7


def test_a_label_with_few_positives_takes_the_global_threshold():
    rng = np.random.default_rng(0)
    s = rng.random((50, 2))
    y = s > np.array([0.5, 0.97])
    few = int(y[:, 1].sum())
    rule = sl.PerLabel(min_positives=few + 1).fit(y, s)
    assert rule.thresholds_[1] == sl.Global().fit(y, s).threshold_
    assert rule.thresholds_[0] == sl.PerLabel(min_positives=few).fit(y, s).thresholds_[0]


def test_one_example_is_enough():
    assert sl.PerLabel().fit([[1, 1]], [[0.4, 0.2]]).thresholds_.tolist() == [0.4, 0.2]


def test_rules_and_evaluate_compare_alike():
    s = np.array([[0.7]], np.float32)
    assert sl.Fixed(0.7).predict(s)[0, 0] == bool(sl.evaluate([[1]], s, 0.7)["micro_f1"])
    assert sl.Global().fit([[1]], s).predict(s).all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="scores contain inf"):
        sl.Global().fit([[0], [0]], [[np.inf], [1.0]])
    with pytest.raises(ValueError, match="is not fitted"):
        sl.PerLabel().predict([[0.5]])
    with pytest.raises(ValueError, match="threshold is None"):
        sl.Fixed(None)
    with pytest.raises(ValueError, match=r"score is 'f2': .*f1"):
        sl.Global("f2")
    with pytest.raises(ValueError, match=r"average is None: .*macro"):
        sl.Global("f1", None)
    with pytest.raises(ValueError, match="min_positives is -1"):
        sl.PerLabel(min_positives=-1)
    with pytest.raises(ValueError, match="NaN"):
        sl.PerLabel().fit([[1]], [[np.nan]])
    with pytest.raises(ValueError, match=r"scores\[0, 0\] is NaN|scores contain NaN"):
        sl.Fixed().predict([[np.nan]])
    with pytest.raises(ValueError, match="3 labels: the rule was fitted on 2"):
        sl.PerLabel().fit([[1, 0]], [[0.1, 0.2]]).predict([[0.1, 0.2, 0.3]])


def test_the_scale_of_weights_does_not_matter():
    y, s = (
        np.array([[1, 0], [0, 1], [1, 1], [0, 0]]),
        np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.9], [0.1, 0.5]]),
    )
    for scale in (1e-12, 1e10):
        weighted = sl.PerLabel("mcc").fit(y, s, sample_weight=np.full(4, scale))
        assert np.array_equal(weighted.thresholds_, sl.PerLabel("mcc").fit(y, s).thresholds_)


@given(data=st.data())
def test_top_k_takes_the_best_and_of_equals_the_first(data):
    _, s = data.draw(matrices())
    n, c = s.shape
    each = data.draw(st.lists(st.integers(0, c + 1), min_size=n, max_size=n))
    for k in (0, 2, each, "count"):
        predicted = sl.TopK(k).predict(s)
        for i in range(n):
            count = k if isinstance(k, int) else each[i] if k is each else int(np.floor(s[i].sum() + 0.5))
            best = sorted(range(c), key=lambda j, i=i: (-s[i, j], j))[:count]
            assert np.flatnonzero(predicted[i]).tolist() == sorted(best)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sl.TopK(-1), "k is -1: it must be a whole number of at least 0"),
        (lambda: sl.TopK("counts"), "k is 'counts': did you mean count"),
        (lambda: sl.TopK([1, 2]).predict([[0.5]]), "k has 2 numbers: the scores have 1 rows"),
        (lambda: sl.TopK("count").predict([[2.0]]), r"TopK\('count'\) needs probabilities"),
        (lambda: sl.Global(lambda a: a), "fails on plain numbers"),
        (lambda: sl.Global(lambda tp, fp, fn, tn, div: None), "gives None on plain numbers"),
    ],
)
def test_bad_input_of_rules_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
