"""The rules against brute force over every distinct threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import scoreloss as sl
from tests.oracles import all_thresholds, averaged, confusion, matrices, weights


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
    m = data.draw(st.none() | hnp.arrays(bool, y.shape).filter(np.any))
    rule = sl.Global(score, average).fit(y, s, sample_weight=w, mask=m)
    candidates = all_thresholds(s if m is None else s[m])
    reached = {t: averaged(plain(score), y, s >= t, average, w, m) for t in candidates}
    best = max(reached.values())
    assert rule.score_ == pytest.approx(best, abs=1e-9)
    assert reached[rule.threshold_] == pytest.approx(best, abs=1e-9)
    assert rule.threshold_ == max(t for t, value in reached.items() if value > best - 1e-12)


@pytest.mark.parametrize("score", [*sl.SCORES, recall_heavy])
@given(data=st.data())
def test_per_label_equals_brute_force(score, data):
    y, s = data.draw(matrices(max_rows=8, max_labels=3))
    w = data.draw(st.none() | weights(len(y)))
    m = data.draw(st.none() | hnp.arrays(bool, y.shape))
    rule = sl.PerLabel(score).fit(y, s, sample_weight=w, mask=m)
    predicted = rule.predict(s)
    for j in range(y.shape[1]):
        own_mask = None if m is None else m[:, [j]]
        candidates = all_thresholds(s[:, j] if m is None else s[m[:, j], j])
        reached = {
            t: averaged(plain(score), y[:, [j]], s[:, [j]] >= t, "micro", w, own_mask) for t in candidates
        }
        best = max(reached.values())
        assert rule.scores_[j] == pytest.approx(best, abs=1e-9)
        own = averaged(plain(score), y[:, [j]], predicted[:, [j]], "micro", w, own_mask)
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


def test_a_label_of_many_equal_and_unequal_scores_equals_brute_force():
    """Large enough that places, ties and dense positives matter; in single and double precision."""
    rng = np.random.default_rng(0)
    for share, dtype in ((0.02, np.float32), (0.6, np.float64)):
        y = rng.random((3000, 2)) < share
        s = np.stack([rng.random(3000), rng.integers(0, 50, 3000) / 50], axis=1).astype(dtype)
        rule = sl.PerLabel().fit(y, s)
        for j in range(2):
            best = max(
                2 * np.sum(y[:, j] & (s[:, j] >= t)) / (np.sum(s[:, j] >= t) + y[:, j].sum()) for t in s[:, j]
            )
            assert rule.scores_[j] == pytest.approx(best, abs=1e-12)
        assert sl.evaluate(y, s, rule.thresholds_)["macro_f1"] == pytest.approx(
            rule.scores_.mean(), abs=1e-12
        )


RULES = [
    sl.Fixed(0.3),
    sl.Global("f1", "samples"),
    sl.PerLabel("jaccard"),
    sl.PerLabel(cv=3),
    sl.Averaging(),
    sl.TopK("count"),
    sl.Lipton("macro"),
    sl.Lipton("micro"),
    sl.ExpectedF1(),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_poisoned_test_data_change_nothing(rule):
    """The test part is masked: its labels and its scores may be anything."""
    rng = np.random.default_rng(3)
    y, s = rng.random((40, 4)) < 0.4, rng.random((40, 4))
    mask = np.arange(40)[:, None] < 30
    learned = []
    for labels, scores in ((y, s), (y ^ ~mask, s), (y, np.where(mask, s, np.nan))):
        rule.fit(labels, scores, mask=mask)
        learned.append({k: np.array(v) for k, v in vars(rule).items() if k.endswith("_")})
        predicted = rule.predict(s)
        assert predicted.shape == s.shape
        assert predicted.dtype == bool
    for other in learned[1:]:
        assert other.keys() == learned[0].keys()
        assert all(np.array_equal(other[k], learned[0][k]) for k in other)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_says_how_it_was_made_and_takes_one_example(rule):
    n = getattr(rule, "cv", None) or 1
    again = eval(repr(rule), vars(sl)).fit([[1, 0]] * n, [[0.5, 0.1]] * n, sample_weight=[2.0] * n)
    assert repr(again) == repr(rule)
    assert again.predict([[0.9, 0.0]]).tolist() == [[True, False]]


@given(data=st.data())
def test_averaging_equals_a_plain_loop(data):
    y, s = data.draw(matrices())
    w = data.draw(st.none() | weights(len(y)))
    m = data.draw(st.none() | hnp.arrays(bool, y.shape))
    thresholds, says = [], []
    for i in range(len(y)):
        seen = np.ones(y.shape[1], bool) if m is None else m[i]
        truth, values = y[i, seen], s[i, seen]
        if truth.any():
            best = (-1.0, 0.0)
            for t in values:
                tp, fp, fn, _ = confusion(truth, values >= t)
                best = max(best, (2 * tp / (2 * tp + fp + fn), t))
            thresholds.append(best[1])
            says.append(1.0 if w is None else w[i])
    expected = np.average(thresholds, weights=says) if thresholds else np.inf
    rule = sl.Averaging().fit(y, s, sample_weight=w, mask=m)
    assert rule.threshold_ == pytest.approx(expected, abs=1e-12)


def test_averaging_never_stands_between_equal_scores():
    """At 0.9 the F1 is 2/3, at 0.5, with a false one beside the true one and another, 2/3 as well: the highest counts."""
    assert sl.Averaging().fit([[1, 1, 0, 0]], [[0.9, 0.5, 0.5, 0.5]]).threshold_ == 0.9
    assert sl.Averaging().fit([[0, 0], [0, 0]], [[0.9, 0.5], [0.1, 0.2]]).threshold_ == np.inf


@given(data=st.data())
def test_lipton_equals_the_plain_formula(data):
    y, s = data.draw(matrices())
    times = data.draw(st.none() | hnp.arrays(np.int64, len(y), elements=st.integers(1, 3)))
    m = data.draw(st.none() | hnp.arrays(bool, y.shape))

    def half_of_best(chances):
        falling = sorted(chances, reverse=True)
        best = max((2 * sum(falling[:k]) / (k + sum(falling)) for k in range(1, len(falling) + 1)), default=0)
        return best / 2 if best else np.inf

    repeated = s if times is None else np.repeat(s, times, axis=0)
    seen = np.ones(s.shape, bool) if m is None else m
    seen = seen if times is None else np.repeat(seen, times, axis=0)
    macro = sl.Lipton("macro").fit(y, s, sample_weight=times, mask=m)
    for j, threshold in enumerate(macro.thresholds_):
        assert threshold == pytest.approx(half_of_best(repeated[seen[:, j], j]), abs=1e-12)
    micro = sl.Lipton("micro").fit(y, s, sample_weight=times, mask=m)
    assert micro.threshold_ == pytest.approx(half_of_best(repeated[seen]), abs=1e-12)


def test_lipton_reaches_the_f1_that_it_expects_where_probabilities_are_true():
    rng = np.random.default_rng(0)
    chances = rng.random((200_000, 1)) ** 3
    y = rng.random(chances.shape) < chances
    rule = sl.Lipton().fit(y, chances)
    reached = sl.evaluate(y, chances, rule.thresholds_)["macro_f1"]
    assert reached == pytest.approx(2 * rule.thresholds_[0], abs=0.005)
    assert reached > sl.Global().fit(y, chances).score_ - 0.002


def test_thresholds_over_folds_are_the_mean_of_those_with_a_fold_left_out():
    rng = np.random.default_rng(1)
    s = rng.random((60, 3))
    y = rng.random((60, 3)) < s * [0.9, 0.5, 0]
    w = rng.random(60) + 0.5
    rule = sl.PerLabel(cv=4).fit(y, s, sample_weight=w)
    folds = sl.stratified_split(y, [0.25] * 4)
    each = []
    for fold in folds:
        kept = np.setdiff1d(np.arange(60), fold)
        each.append(sl.PerLabel().fit(y[kept], s[kept], sample_weight=w[kept]).thresholds_)
    assert rule.thresholds_[:2] == pytest.approx(np.mean(each, axis=0)[:2], abs=1e-12)
    assert rule.fallback_.tolist() == [False, False, True]
    assert rule.thresholds_[2] == sl.Global().fit(y, s, sample_weight=w).threshold_
    per_label = sl.evaluate(y, s, rule.thresholds_, sample_weight=w, per_label=True)["per_label"]
    assert rule.scores_ == pytest.approx(per_label["f1"], abs=1e-12)


def test_thresholds_over_folds_vary_less_than_those_of_one_fit():
    """On few positives: what cv is for."""
    rng = np.random.default_rng(0)
    spread = {}
    for cv in (None, 5):
        found = []
        for _ in range(60):
            y = rng.random((80, 1)) < 0.1
            y[:2] = [[1], [0]]
            found.append(sl.PerLabel(cv=cv).fit(y, y + rng.normal(size=y.shape)).thresholds_[0])
        spread[cv] = np.std(found)
    assert spread[5] < 0.95 * spread[None]


def test_nothing_is_predicted_over_folds_where_most_folds_say_so():
    y, s = np.zeros((20, 1), bool), np.linspace(0, 1, 20)[:, None]
    y[3] = True
    assert sl.PerLabel("accuracy", cv=4).fit(y, s).thresholds_[0] == np.inf


def test_a_score_of_ones_own_may_be_a_constant_and_must_be_a_number():
    y, s = [[1, 0], [0, 1]], [[0.9, 0.2], [0.1, 0.3]]
    assert sl.PerLabel(lambda tp, fp, fn, tn, div: div(tp + fn, 2)).fit(y, s).fallback_.all()
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="score bare is NaN at some counts"),
    ):
        sl.PerLabel(bare).fit(y, s)


def bare(tp, fp, fn, tn, div):
    return tp / (tp + fp)


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
        (lambda: sl.PerLabel(cv=1), "cv is 1: it must be a number of folds, at least 2"),
        (lambda: sl.PerLabel(cv=5).fit([[1]], [[0.5]]), "cv is 5: there are only 1 examples"),
        (lambda: sl.Averaging().fit([[1]], [[np.inf]]), "scores contain inf"),
        (lambda: sl.Averaging().fit([[1]], [[np.nan]]), r"scores\[0, 0\] is NaN"),
        (lambda: sl.Averaging().predict([[1]]), r"Averaging\(\) is not fitted"),
        (lambda: sl.Lipton("samples"), "average is 'samples': it may be macro, micro"),
        (
            lambda: sl.Lipton().fit([[1]], [[1.5]]),
            r"Lipton\('macro'\) needs probabilities, which scoreloss.calib",
        ),
        (lambda: sl.Lipton().fit([[1]], [[0.5]]).predict([[-1]]), "scores lie outside"),
        (lambda: sl.Lipton().fit([[1]], [[0.5]]).predict([[0.5, 0.5]]), "2 labels: the rule was fitted on 1"),
        (lambda: sl.TopK("count").fit([[1]], [[2.0]]), r"TopK\('count'\) needs probabilities"),
        (lambda: sl.ExpectedF1(beta=0), "beta is 0: it must be a number above 0"),
        (
            lambda: sl.ExpectedF1().fit([[1]], [[2.0]]),
            r"ExpectedF1\(beta=1, joint=False\) needs probabilities",
        ),
        (lambda: sl.ExpectedF1().predict([[-0.1]]), "needs probabilities"),
        (lambda: sl.ExpectedF1(joint=True).predict([[0.5]]), r"joint has shape \(1, 1\)"),
        (lambda: sl.ExpectedF1(joint=True).predict([[[0.5, np.nan]]]), "joint contains NaN"),
        (lambda: sl.ExpectedF1(joint=True).predict([[[0.7, 0.7]]]), "joint holds no chances"),
        (lambda: sl.ExpectedF1(joint=True).fit([[1, 1]], [[[0.5]]]), r"scores have shape \(1, 1\)"),
        (lambda: sl.Global(lambda a: a), "fails on plain numbers"),
        (lambda: sl.Global(lambda tp, fp, fn, tn, div: None), "gives None on plain numbers"),
    ],
)
def test_bad_input_of_rules_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
