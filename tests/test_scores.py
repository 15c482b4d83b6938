"""Every score against scikit-learn, against exact fractions of its definition, and against its own bounds."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st

import scoreloss as sl
from scoreloss.scores import has_tp_factor, is_rational
from tests.oracles import assert_close, confusion, matrices, quiet, ratio

count = st.integers(0, 30)


def float_div(num, den, power=1):
    return num / den**power if den else 0.0


SKLEARN = {
    "f1": partial(sk.f1_score, zero_division=0),
    "fbeta": partial(sk.fbeta_score, beta=1, zero_division=0),
    "precision": partial(sk.precision_score, zero_division=0),
    "recall": partial(sk.recall_score, zero_division=0),
    "specificity": partial(sk.recall_score, pos_label=0, zero_division=0),
    "npv": partial(sk.precision_score, pos_label=0, zero_division=0),
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "jaccard": partial(sk.jaccard_score, zero_division=0),
    "mcc": sk.matthews_corrcoef,
    "kappa": sk.cohen_kappa_score,
}


@pytest.mark.parametrize("name", SKLEARN)
@given(data=matrices())
def test_equals_scikit_learn(name, data):
    y, s = data
    predicted = s >= 0.5
    for j in range(y.shape[1]):
        expected = quiet(SKLEARN[name], y[:, j].astype(int), predicted[:, j].astype(int))
        if np.isnan(expected):
            expected = 0.0
        tp, fp, fn, tn = confusion(y[:, j], predicted[:, j])
        assert_close(sl.SCORES[name](tp, fp, fn, tn, float_div), expected)


def exact_definitions(tp, fp, fn, tn):
    """The textbook, in fractions; of mcc and gmean the square."""
    n = tp + fp + fn + tn
    precision, recall = ratio(tp, tp + fp), ratio(tp, tp + fn)
    specificity, npv = ratio(tn, tn + fp), ratio(tn, tn + fn)
    observed = ratio(tp + tn, n)
    chance = ratio((tp + fp) * (tp + fn) + (tn + fn) * (tn + fp), n * n)
    sides = bool(tp + fn) + bool(tn + fp)
    return {
        "f1": ratio(2 * precision * recall, precision + recall),
        "fbeta": ratio(2 * precision * recall, precision + recall),
        "precision": precision,
        "recall": recall,
        "specificity": specificity,
        "npv": npv,
        "accuracy": observed,
        "balanced_accuracy": ratio(recall + specificity, sides),
        "jaccard": ratio(tp, tp + fp + fn),
        "kappa": ratio(observed - chance, 1 - chance),
        "informedness": recall + specificity - 1,
        "markedness": precision + npv - 1,
        "mcc": ratio((tp * tn - fp * fn) ** 2, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
        "gmean": recall * specificity,
        "fowlkes_mallows": precision * recall,
    }


def exact_div(num, den, power=1):
    """num / den**power; of a quotient with a root the square, which is rational."""
    return ratio(num * num, den) if power == 0.5 else ratio(num, den)


@given(count, count, count, count)
def test_equals_its_definition_in_fractions(tp, fp, fn, tn):
    counts = [Fraction(k) for k in (tp, fp, fn, tn)]
    for name, expected in exact_definitions(*counts).items():
        actual = sl.SCORES[name](*counts, exact_div)
        assert isinstance(actual, Fraction), name
        assert actual == expected, name


@given(count, count, count, count, st.fractions(Fraction(1, 8), 4))
def test_fbeta_and_tversky_take_their_parameters(tp, fp, fn, tn, b):
    counts = [Fraction(k) for k in (tp, fp, fn, tn)]
    precision, recall = ratio(tp, tp + fp), ratio(tp, tp + fn)
    fbeta = sl.SCORES["fbeta"](*counts, exact_div, beta=b)
    assert fbeta == ratio((1 + b * b) * precision * recall, b * b * precision + recall)
    tversky = sl.SCORES["tversky"](*counts, exact_div, alpha=b, beta=1 / b)
    assert tversky == ratio(tp, tp + b * fp + fn / b)
    assert sl.SCORES["tversky"](*counts, float_div) == pytest.approx(
        float(sl.SCORES["f1"](*counts, exact_div))
    )


@given(count, count, count, count)
def test_every_score_is_bounded(tp, fp, fn, tn):
    signed = {"mcc", "kappa", "informedness", "markedness"}
    for name, score in sl.SCORES.items():
        value = score(float(tp), float(fp), float(fn), float(tn), float_div)
        assert (-1 - 1e-12 if name in signed else 0) <= value <= 1 + 1e-12, name


def test_every_score_of_the_contract_is_there():
    assert set(sl.SCORES) == {*exact_definitions(1, 1, 1, 1), "tversky"}


def test_traits_are_found_by_trying():
    with_factor = {name for name, score in sl.SCORES.items() if has_tp_factor(score)}
    assert with_factor == {
        "f1",
        "fbeta",
        "precision",
        "recall",
        "jaccard",
        "tversky",
        "fowlkes_mallows",
        "gmean",
    }
    with_root = {name for name, score in sl.SCORES.items() if not is_rational(score)}
    assert with_root == {"mcc", "gmean", "fowlkes_mallows"}


def test_the_comparison_can_fail():
    with pytest.raises(AssertionError):
        assert_close(math.nextafter(1.0, 2) * (1 + 1e-11), 1.0)
