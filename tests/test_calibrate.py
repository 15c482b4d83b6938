"""Calibration against scikit-learn's public classes, reliability against a plain loop."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

import scoreloss as sl
from tests.oracles import assert_close, matrices, weights


class Itself(ClassifierMixin, BaseEstimator):
    """A classifier whose decision is its input."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x):
        return x[:, 0]

    def predict(self, x):
        return x[:, 0] >= 0


@pytest.fixture(scope="module")
def held_out():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3)) * 3
    y = rng.random((300, 3)) < 1 / (1 + np.exp(1 - logits / 2))
    return y, logits


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_equals_scikit_learn(held_out, method):
    y, logits = held_out
    new = np.linspace(-12, 12, 50)
    ours = sl.calibrate(y, logits, method=method).predict(np.stack([new] * 3, axis=1))
    for j in range(3):
        if method == "platt":
            frozen = FrozenEstimator(Itself().fit(logits, y[:, j]))
            theirs = CalibratedClassifierCV(frozen, method="sigmoid").fit(logits[:, [j]], y[:, j])
            assert_close(ours[:, j], theirs.predict_proba(new[:, None])[:, 1], 1e-9)
        else:
            theirs = IsotonicRegression(out_of_bounds="clip").fit(logits[:, j], y[:, j])
            assert_close(ours[:, j], theirs.predict(new), 1e-9)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_calibrated_scores_are_more_reliable_and_in_the_same_order(held_out, method):
    y, logits = held_out
    raw = 1 / (1 + np.exp(-logits))
    chances = sl.calibrate(y[:150], logits[:150], method=method).predict(logits[150:])
    before, after = sl.evaluate(y[150:], raw[150:]), sl.evaluate(y[150:], chances)
    assert after["ece"] < 0.6 * before["ece"]
    assert after["brier"] < before["brier"]
    assert (np.diff(np.take_along_axis(chances, np.argsort(logits[150:], 0), 0), axis=0) >= 0).all()


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_masked_and_weightless_examples_are_not_there(held_out, method):
    y, logits = held_out
    new = np.linspace(-5, 5, 9)[:, None] * np.ones(3)
    few = sl.calibrate(y[:100], logits[:100], method=method).predict(new)
    first = np.arange(300) < 100
    poisoned = np.where(first[:, None], logits, np.nan)
    masked = sl.calibrate(y, poisoned, method=method, mask=first[:, None])
    weighted = sl.calibrate(y, logits, method=method, sample_weight=first.astype(float))
    assert_close(masked.predict(new), few, 1e-7)
    assert_close(weighted.predict(new), few, 1e-7)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_label_of_one_class_gets_its_smoothed_share(method):
    y = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1]])
    s = np.array([[0.2, 0.3, 0.7], [0.4, 0.1, 0.2], [0.1, 0.9, 0.5]])
    chances = sl.calibrate(y, s, method=method).predict([[5.0, -5.0, 0.6]])
    assert_close(chances[0, :2], [1 / 5, 4 / 5])
    hidden = sl.calibrate(y, s, method=method, mask=np.array([[1, 0, 1]] * 3)).predict(s)
    assert_close(hidden[:, 1], [1 / 2] * 3)


def test_what_was_fitted_is_plain_arrays(held_out):
    y, logits = held_out
    for method in ("platt", "isotonic"):
        fitted = sl.calibrate(y, logits, method=method)
        arrays = {name: np.asarray(value).copy() for name, value in vars(fitted).items()}
        assert np.array_equal(type(fitted)(**arrays).predict(logits), fitted.predict(logits))


@given(data=st.data(), bins=st.integers(1, 20))
def test_reliability_equals_a_plain_loop(data, bins):
    y, s = data.draw(matrices())
    w = data.draw(st.none() | weights(len(y)))
    table = sl.reliability(y, s, bins, sample_weight=w)
    inside = [[] for _ in range(bins)]
    for i in range(len(y)):
        for j in range(y.shape[1]):
            inside[min(int(s[i, j] * bins), bins - 1)].append((1 if w is None else w[i], s[i, j], y[i, j]))
    for k, entries in enumerate(inside):
        count = sum(e[0] for e in entries)
        assert table["lower"][k] == k / bins
        assert_close(table["count"][k], count)
        assert_close(table["mean_score"][k], sum(e[0] * e[1] for e in entries) / count if count else 0)
        assert_close(table["positives"][k], sum(e[0] * e[2] for e in entries) / count if count else 0)


@given(data=st.data())
def test_the_table_has_the_error_that_evaluate_says(data):
    y, s = data.draw(matrices())
    w = data.draw(st.none() | weights(len(y)))
    table = sl.reliability(y, s, sample_weight=w)
    gaps = np.abs(table["positives"] - table["mean_score"])
    assert gaps @ table["count"] / table["count"].sum() == pytest.approx(
        sl.evaluate(y, s, sample_weight=w)["ece"], abs=1e-12
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sl.calibrate([[1]], [[0.5]], method="plat"), "method is 'plat': did you mean platt"),
        (lambda: sl.calibrate([[1]], [[np.inf]]), "scores contain inf"),
        (lambda: sl.calibrate([[1]], [[np.nan]]), r"scores\[0, 0\] is NaN"),
        (lambda: sl.calibrate([[1]], [[0.5]]).predict([[0.5, 0.5]]), "fitted on 1 labels"),
        (lambda: sl.calibrate([[1]], [[0.5]], method="isotonic").predict([[np.nan]]), "inf or NaN"),
        (lambda: sl.reliability([[1]], [[1.5]]), r"scores lie outside \[0, 1\]"),
        (lambda: sl.reliability([[1]], [[0.5]], 0), "bins is 0: it must be a whole number above 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_scikit_learn_the_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None\nimport scoreloss as sl\nsl.calibrate([[1]], [[0.5]])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith("needs scikit-learn: pip install 'scoreloss[sklearn]'")
