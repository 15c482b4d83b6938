"""The estimators for scikit-learn: their conventions, honest thresholds, and files that can be trusted."""

import copy
import json
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import (
    check_classifiers_train,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)
from torch import nn

import scoreloss as sl
from scoreloss.checks import InputError
from scoreloss.data import load
from scoreloss.files import read_arrays, write_arrays
from scoreloss.sklearn import ThresholdTunedClassifier, TorchMultilabelClassifier
from scoreloss.torch import BCE, LOSSES, LabelPowerset, MetricLoss, Mix, SigmoidF1, start_at_priors

N, FEATURES, LABELS = 120, 5, 3


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, FEATURES))
    z = x @ rng.normal(size=(FEATURES, LABELS)) + rng.normal(size=(N, LABELS)) - [0, 1, 1.5]
    return x, (z > 0).astype(int)


def head(loss="sigmoid_f1", **options):
    return TorchMultilabelClassifier(loss, **{"epochs": 5, "random_state": 0, "batch_size": 32, **options})


# scikit-learn's own checks

DRAWN = "the validation part and the batches are drawn: an example twice is another draw than one of weight 2"
TUNED = "predict follows the fitted thresholds, not the larger of two probabilities"


def expected_failures(estimator):
    """The list in docs/sklearn.md."""
    if isinstance(estimator, TorchMultilabelClassifier):
        return {
            "check_sample_weight_equivalence_on_dense_data": DRAWN,
            "check_sample_weight_equivalence_on_sparse_data": DRAWN,
        }
    if isinstance(estimator.estimator, LogisticRegression):
        return {"check_classifiers_train": TUNED}
    return {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        TorchMultilabelClassifier(epochs=20, learning_rate=0.1, random_state=0),
        ThresholdTunedClassifier(DecisionTreeClassifier(max_depth=3), random_state=0),
        ThresholdTunedClassifier(LogisticRegression(solver="liblinear"), random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_the_check_that_thresholds_fail_passes_without_tuning():
    logistic = LogisticRegression(solver="liblinear")
    check_classifiers_train("fixed", ThresholdTunedClassifier(logistic, rule="fixed", random_state=0))


# Thresholds

ESTIMATORS = {
    "a matrix of probabilities": OneVsRestClassifier(LogisticRegression(solver="liblinear")),
    "a list of probabilities": RandomForestClassifier(10, max_depth=3, random_state=0),
    "a list, one estimator a label": MultiOutputClassifier(LogisticRegression(solver="liblinear")),
    "decisions": RidgeClassifier(),
    "decisions of a pipeline": make_pipeline(StandardScaler(), RidgeClassifier()),
    "ours": head("bce"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_rule_is_fitted_on_what_cross_val_predict_gives(data, name):
    x, y = data
    estimator = ESTIMATORS[name]
    folds = list(KFold(4, shuffle=True, random_state=1).split(x))
    method = "decision_function" if "decisions" in name else "predict_proba"

    def matrix(scores):
        return np.column_stack([p[:, 1] for p in scores]) if isinstance(scores, list) else scores

    expected = sl.PerLabel("f1").fit(y, matrix(cross_val_predict(estimator, x, y, cv=folds, method=method)))
    tuned = ThresholdTunedClassifier(estimator, rule=sl.PerLabel("f1"), cv=folds).fit(x, y)
    np.testing.assert_allclose(tuned.rule_.thresholds_, expected.thresholds_, rtol=1e-12)
    whole = clone(estimator).fit(x, y)
    np.testing.assert_array_equal(tuned.predict(x), expected.predict(matrix(getattr(whole, method)(x))))
    assert tuned.n_features_in_ == FEATURES


class Witness:
    """A rule that keeps what it is shown."""

    def fit(self, targets, scores, *, sample_weight=None, mask=None):
        self.targets_, self.scores_, self.weight_ = targets, scores, sample_weight
        return self

    def predict(self, scores):
        return scores >= 0.5


def test_memory_of_the_training_data_is_no_advantage(data):
    """One nearest neighbour scores 1 on what it has seen, and the rule must not see that."""
    x, _ = data
    y = np.random.default_rng(1).random((N, LABELS)) < 0.4  # nothing to learn
    memory = KNeighborsClassifier(1).fit(x, y)
    assert sl.Global().fit(
        y, np.column_stack([p[:, 1] for p in memory.predict_proba(x)])
    ).score_ == pytest.approx(1)
    tuned = ThresholdTunedClassifier(KNeighborsClassifier(1), rule="global", random_state=0).fit(x, y)
    everything = np.mean(2 * y.mean(0) / (1 + y.mean(0)))
    assert tuned.rule_.score_ == pytest.approx(everything)  # no better than all labels always
    assert (tuned.predict(x) == 1).all()


def test_a_label_never_reaches_the_score_of_its_own_example(data):
    x, y = data
    folds = list(KFold(3).split(x))

    def shown(targets):
        rule = ThresholdTunedClassifier(DecisionTreeClassifier(random_state=0), rule=Witness(), cv=folds)
        return rule.fit(x, targets).rule_

    before = shown(y)
    for place, (_, test) in enumerate(folds):
        poisoned = y.copy()
        poisoned[test] = 1 - poisoned[test]
        here = slice(place * N // 3, (place + 1) * N // 3)
        after = shown(poisoned)
        np.testing.assert_array_equal(after.scores_[here], before.scores_[here])
        assert (after.scores_ != before.scores_).any()


@pytest.mark.parametrize(
    "estimator", [OneVsRestClassifier(LogisticRegression(solver="liblinear")), head()], ids=["lr", "ours"]
)
def test_poisoned_test_labels_change_nothing(data, estimator):
    x, y = data
    train = np.arange(0, N, 2)
    poisoned = y.copy()
    poisoned[1::2] = 1 - poisoned[1::2]
    first, second = (
        ThresholdTunedClassifier(estimator, random_state=0).fit(x[train], targets[train])
        for targets in (y, poisoned)
    )
    np.testing.assert_array_equal(first.rule_.thresholds_, second.rule_.thresholds_)


def test_folds_hold_every_example_once_and_are_stratified(data):
    x, y = data
    tuned = ThresholdTunedClassifier(KNeighborsClassifier(), rule=Witness(), cv=7, random_state=0).fit(x, y)
    assert tuned.rule_.targets_.sum(0).tolist() == y.sum(0).tolist()
    rare = np.zeros((N, 2), int)
    rare[:5], rare[:, 1] = 1, np.arange(N) % 2
    memory = KNeighborsClassifier(1)
    tuned = ThresholdTunedClassifier(memory, rule=Witness(), random_state=0).fit(np.arange(N)[:, None], rare)
    assert tuned.rule_.scores_[tuned.rule_.targets_[:, 0], 0].mean() > 0  # each fold has one of the five


def test_a_label_that_a_fold_knows_one_class_of(data):
    x, _ = data
    y = np.zeros((N, 2), int)
    y[:60, 0], y[0, 1] = 1, 1
    tuned = ThresholdTunedClassifier(DecisionTreeClassifier(), rule=Witness(), cv=KFold(2)).fit(x, y)
    np.testing.assert_array_equal(tuned.rule_.scores_[:, 0], np.repeat([0.0, 1.0], 60))
    assert tuned.predict(x).shape == (N, 2)


def test_the_rule_that_is_given_is_not_touched_and_is_cloned_deep(data):
    x, y = data
    rule = sl.PerLabel("jaccard", min_positives=3)
    tuned = ThresholdTunedClassifier(KNeighborsClassifier(), rule=rule)
    copied = clone(tuned)
    assert copied.rule is not rule
    assert vars(copied.rule) == vars(rule)
    copied.fit(x, y)
    assert not hasattr(copied.rule, "thresholds_")
    assert copied.rule_.min_positives == 3
    assert copied.get_params()["estimator__n_neighbors"] == 5


def test_equal_random_states_give_equal_results(data):
    x, y = data

    def predicted(seed):
        tuned = ThresholdTunedClassifier(head(random_state=seed), random_state=seed).fit(x, y)
        return tuned.predict_proba(x), tuned.rule_.thresholds_

    for first, second in zip(predicted(3), predicted(3), strict=True):
        np.testing.assert_array_equal(first, second)
    assert (predicted(3)[0] != predicted(4)[0]).any()
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    drawing = TorchMultilabelClassifier(
        "pick_all_labels", loss_options={"pick_one": True}, epochs=2, random_state=0
    )
    first = clone(drawing).fit(x, y).predict_proba(x)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(1)
    np.testing.assert_array_equal(first, clone(drawing).fit(x, y).predict_proba(x))


def test_weights_reach_the_estimator_and_the_rule(data):
    x, y = data
    weight = np.arange(N) % 3.0
    twice = np.repeat(np.arange(N), weight.astype(int))
    folds = list(KFold(2).split(x))
    places = [[np.flatnonzero(np.isin(twice, part)) for part in fold] for fold in folds]
    for estimator in (DecisionTreeClassifier(max_depth=2), make_pipeline(StandardScaler(), head())):
        tuned = ThresholdTunedClassifier(estimator, rule=Witness(), cv=folds).fit(x, y, sample_weight=weight)
        assert tuned.rule_.weight_.min() == 1
    tree = ThresholdTunedClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), cv=folds)
    weighted = clone(tree).fit(x, y, sample_weight=weight)
    repeated = clone(tree).set_params(cv=places).fit(x[twice], y[twice])
    np.testing.assert_array_equal(weighted.rule_.thresholds_, repeated.rule_.thresholds_)
    np.testing.assert_array_equal(weighted.predict(x), repeated.predict(x))
    with pytest.raises(InputError, match="y holds one class where sample_weight is above 0"):
        tree.fit(x, y[:, 0], sample_weight=y[:, 0])
    with pytest.raises(InputError, match=r"KNeighborsClassifier\.fit takes none"):
        ThresholdTunedClassifier(KNeighborsClassifier()).fit(x, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rule": "per_lable"}, "rule is 'per_lable': did you mean per_label"),
        ({"rule": sl.PerLabel}, "must be a threshold rule"),
        ({"cv": 1}, "cv is 1: it must be from 2 to n_samples=120"),
        ({"response_method": "predict"}, "response_method is 'predict'"),
        ({"response_method": "decision_function"}, "has no decision_function"),
    ],
)
def test_what_thresholds_refuse(data, options, said):
    with pytest.raises(InputError, match=said):
        ThresholdTunedClassifier(KNeighborsClassifier(), **options).fit(*data)


# Heads


@pytest.mark.slow
def test_a_head_is_what_a_plain_loop_trains(data):
    x, y = data
    seed = int(np.random.RandomState(7).randint(2**31 - 1))
    loss = SigmoidF1(slope=2.0).double()
    torch.manual_seed(seed)
    layers = [nn.Linear(FEATURES, 4), nn.Linear(4, LABELS)]
    start_at_priors(layers[1], sl.label_frequencies(y), loss, seed=seed)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1]).double()
    groups = [[layer.weight for layer in layers], [layer.bias for layer in layers]]
    optimiser = torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0.0}], lr=0.02
    )
    order = torch.Generator().manual_seed(seed)
    for _ in range(5):
        for rows in torch.randperm(N, generator=order).split(32):
            optimiser.zero_grad()
            loss(model(torch.as_tensor(x)[rows]), torch.as_tensor(y).double()[rows]).backward()
            optimiser.step()
    ours = head(
        SigmoidF1(slope=2.0),
        hidden=[4],
        learning_rate=0.02,
        weight_decay=0.1,
        validation_fraction=0,
        random_state=7,
    ).fit(x, y)
    for layer, coef, intercept in zip(layers, ours.coefs_, ours.intercepts_, strict=True):
        np.testing.assert_allclose(coef, layer.weight.detach().T, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(intercept, layer.bias.detach(), rtol=1e-9, atol=1e-12)
    with torch.no_grad():
        logits = model(torch.as_tensor(x))
    np.testing.assert_allclose(ours.decision_function(x), logits, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(x), loss.scores(logits), rtol=1e-9, atol=1e-12)
    assert ours.epoch_ == 5
    assert len(ours.validation_scores_) == 0


def test_two_examples_are_enough_to_train():
    fitted = head(validation_fraction=0.9).fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    assert fitted.predict_proba([[0.5]]).shape == (1, 2)


def test_the_epoch_is_the_best_on_the_validation_part(data):
    x, y = data
    long = head(epochs=30, learning_rate=0.3).fit(x, y)
    values = long.validation_scores_
    assert long.epoch_ == 1 + np.flatnonzero(values == values.max())[-1]
    assert 1 < long.epoch_ < 30
    short = head(epochs=long.epoch_, learning_rate=0.3).fit(x, y)
    np.testing.assert_array_equal(short.coefs_[0], long.coefs_[0])
    for score in ("macro_f1", "lrap", "subset_accuracy"):
        chosen = head(epochs=10, epoch_score=score).fit(x, y)
        assert ((chosen.validation_scores_ >= 0) & (chosen.validation_scores_ <= 1)).all()


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_trains_saves_and_scores(data, name, tmp_path):
    x, y = data
    fitted = head(name, epochs=3).fit(x, y)
    scores = fitted.predict_proba(x)
    assert scores.shape == y.shape
    logits = torch.from_numpy(x @ fitted.coefs_[0] + fitted.intercepts_[0])
    loss = fitted.loss_
    with torch.no_grad():
        own = loss.scores(logits.unflatten(-1, loss.outputs(LABELS)))
    np.testing.assert_allclose(scores, own, rtol=1e-12)
    np.testing.assert_allclose(1 / (1 + np.exp(-fitted.decision_function(x))), own, rtol=1e-6)
    fitted.save(tmp_path / "head")
    again = TorchMultilabelClassifier.load(tmp_path / "head")
    np.testing.assert_array_equal(again.predict_proba(x), scores)
    np.testing.assert_array_equal(clone(again).fit(x, y).predict_proba(x), scores)
    if loss.boundary is None:
        with pytest.raises(InputError, match="it only ranks and has no boundary"):
            fitted.predict(x)
    else:
        np.testing.assert_array_equal(again.predict(x), scores >= 0.5)
    assert set(np.unique(ThresholdTunedClassifier(fitted, cv=2).fit(x, y).predict(x))) <= {0, 1}


@pytest.mark.parametrize(
    "loss",
    [
        SigmoidF1,
        MetricLoss("mcc", surrogate="amplify"),
        SigmoidF1(slope=[1.0, 2.0, 3.0], offset=[1.0, 0.0, -1.0]),
        MetricLoss("f1", learnable=("slope", "offset")),
        Mix(BCE(), SigmoidF1(offset=2.0)),
    ],
    ids=["class", "amplify", "vectors", "learnable", "mix"],
)
def test_losses_that_are_made_already(data, loss):
    x, y = data
    before = None if isinstance(loss, type) else copy.deepcopy(loss.state_dict())
    fitted = head(loss).fit(x, y)
    assert clone(fitted).fit(x, y).loss_ is not fitted.loss_
    np.testing.assert_array_equal(fitted.predict(x), fitted.predict_proba(x) >= 0.5)
    np.testing.assert_allclose(
        fitted.predict_proba(x), 1 / (1 + np.exp(-fitted.decision_function(x))), rtol=1e-6
    )
    if before is not None:
        assert all(torch.equal(value, before[name]) for name, value in loss.state_dict().items())


def test_sets_of_labels_have_scores_and_weights(data):
    x, y = data
    fitted = head(LabelPowerset, epochs=20).fit(x, y)
    assert fitted.predict_proba(x).shape == y.shape
    weighted = head(LabelPowerset, epochs=20).fit(x, y, sample_weight=1 + 99 * y[:, 0])
    assert weighted.predict_proba(x)[:, 0].mean() > fitted.predict_proba(x)[:, 0].mean()


def test_a_head_starts_at_the_priors(data):
    x, y = data
    fitted = head(learning_rate=1e-9, validation_fraction=0).fit(x, y)
    np.testing.assert_allclose(
        fitted.predict_proba(np.zeros((1, FEATURES)))[0], (y.sum(0) + 1) / (N + 2), rtol=1e-6
    )
    weighted = head(learning_rate=1e-9, validation_fraction=0).fit(x, y, sample_weight=1 + 9 * y[:, 0])
    assert weighted.predict_proba(np.zeros((1, FEATURES)))[0, 0] > 0.8


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_sparse_features_are_dense_features(data, hidden, dtype, kind):
    x, y = data
    x = np.where(np.abs(x) > 0.7, x, 0).astype(dtype)
    x[3] = 0
    dense, sparse = (head(hidden=hidden).fit(features, y) for features in (x, kind(x)))
    assert dense.coefs_[0].dtype == sparse.coefs_[0].dtype == dtype
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(sparse.decision_function(kind(x)), dense.decision_function(x), **close)
    np.testing.assert_allclose(sparse.decision_function(x), dense.decision_function(kind(x)), **close)


@pytest.mark.parametrize(
    "estimator", [head(), ThresholdTunedClassifier(KNeighborsClassifier(), random_state=0)]
)
def test_predictions_have_the_form_of_the_targets(data, estimator):
    x, y = data
    dense = clone(estimator).fit(x, y).predict(x)
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == np.int64
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        sparse = clone(estimator).fit(x, kind(y)).predict(x)
        assert scipy.sparse.issparse(sparse)
        assert isinstance(sparse, scipy.sparse.sparray) == (kind is scipy.sparse.csr_array)
        np.testing.assert_array_equal(sparse.toarray(), dense)
    names = np.array(["no", "yes"])[y[:, 0]]
    one = clone(estimator).fit(x, names)
    assert one.classes_.tolist() == ["no", "yes"]
    assert one.predict_proba(x).shape == (N, 2)
    assert set(one.predict(x)) <= {"no", "yes"}
    assert one.score(x, names) > 0.6


def test_scorers_of_scikit_learn_work_with_two_labels(data):
    """Where ``classes_`` were (0, 1), they would take two labels for two classes."""
    x, y = data
    for estimator in (head(learning_rate=0.1), ThresholdTunedClassifier(KNeighborsClassifier())):
        assert (cross_val_score(estimator, x, y[:, :2], scoring="roc_auc", cv=3) > 0.7).all()
        assert (cross_val_score(estimator, x, y[:, :2], scoring="average_precision", cv=3) > 0.5).all()
        assert (cross_val_score(estimator, x, y[:, :2], scoring="f1_macro", cv=3) > 0.5).all()


def test_names_of_features_are_kept_and_asked_for(data, tmp_path):
    pa = pytest.importorskip("pandas")
    x, y = data
    frame = pa.DataFrame(x, columns=list("abcde"))
    fitted = head().fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list("abcde")
    tuned = ThresholdTunedClassifier(head(), cv=2).fit(frame, y)
    tuned.save(tmp_path / "tuned")
    again = ThresholdTunedClassifier.load(tmp_path / "tuned")
    assert again.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[list("edcba")])


def test_a_weight_counts_like_the_example_as_often():
    """With one batch and no validation part nothing is drawn, and the common start knows no frequencies."""
    exact = TorchMultilabelClassifier(
        validation_fraction=0, init="default", batch_size=10_000, epochs=10, random_state=0
    )
    check_sample_weight_equivalence_on_dense_data("exact", exact)
    check_sample_weight_equivalence_on_sparse_data("exact", exact)


def test_grids_and_pipelines(data):
    x, y = data
    pipeline = make_pipeline(StandardScaler(), head())
    name = "torchmultilabelclassifier"
    slopes = [{"slope": slope} for slope in (0.5, 2.0)]
    search = GridSearchCV(pipeline, {f"{name}__loss_options": slopes}, scoring="f1_macro", cv=2).fit(x, y)
    assert search.best_params_[f"{name}__loss_options"] in slopes
    assert (
        search.best_estimator_[-1].loss_._options()["slope"]
        == search.best_params_[f"{name}__loss_options"]["slope"]
    )
    tuned = ThresholdTunedClassifier(pipeline, cv=2, random_state=0)
    grid = {"rule": [sl.Global(), sl.PerLabel(min_positives=4)], f"estimator__{name}__epochs": [1, 3]}
    search = GridSearchCV(tuned, grid, scoring="f1_macro", cv=2).fit(x, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(x), search.predict(x))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "sigmoidf1"}, "loss is 'sigmoidf1': did you mean sigmoid_f1"),
        ({"loss": nn.BCEWithLogitsLoss()}, "loss is BCEWithLogitsLoss"),
        ({"loss_options": {"slop": 1.0}}, "slop is not a knob of the sigmoid surrogate"),
        ({"loss": "bce", "loss_options": {"slope": 1.0}}, "unexpected keyword argument 'slope'"),
        ({"loss": BCE(), "loss_options": {"pos_weight": 2.0}}, "a loss that is made already takes none"),
        ({"loss": "bce", "loss_options": {"reduction": "none"}}, "a head is trained on one"),
        ({"hidden": 5}, "hidden is 5"),
        ({"hidden": (0,)}, "hidden is 0"),
        ({"init": "prior"}, "init is 'prior': did you mean priors"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0: it must lie below 1"),
        ({"epoch_score": "hamming_loss"}, "epoch_score is 'hamming_loss'"),
        ({"loss": "unbounded_f1", "learning_rate": 1e308}, "the head diverged in epoch 1"),
    ],
)
def test_what_a_head_refuses(data, options, said):
    with pytest.raises(InputError, match=said) as raised:
        head(**options).fit(*data)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("estimator", [head(), ThresholdTunedClassifier(KNeighborsClassifier())])
@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (lambda y: y * 2, "must hold 0 and 1"),
        (lambda y: y[:, 0] * 0, "y holds one class, 0"),
        (lambda y: y.sum(1), "Only binary classification is supported"),
        (lambda y: y * 0.3, "Unknown label type: continuous"),
    ],
)
def test_targets_that_are_none(data, estimator, targets, said):
    x, y = data
    with pytest.raises(ValueError, match=said):
        clone(estimator).fit(x, targets(y))


# Files


class Halves(sl.Fixed):
    """A rule that is not ours."""


def saveable():
    return {
        "head": head(hidden=(4,), loss_options={"slope": np.float64(2.0), "offset": [0.0, 1.0, 2.0]}),
        "tuned": ThresholdTunedClassifier(head("bce"), rule=sl.PerLabel("jaccard", min_positives=4), cv=2),
        "pipeline": ThresholdTunedClassifier(
            Pipeline([("scale", StandardScaler()), ("head", head())]), rule="global", cv=2
        ),
        "centred": ThresholdTunedClassifier(
            make_pipeline(StandardScaler(with_std=False), head()), rule="fixed", cv=2
        ),
        "ranks": ThresholdTunedClassifier(head("two_way"), rule=sl.TopK(2), cv=2),
    }


@pytest.mark.parametrize("name", saveable())
@pytest.mark.parametrize("form", ["dense", "sparse", "binary"])
def test_what_is_saved_comes_back(data, name, form, tmp_path):
    x, y = data
    if form == "binary":
        y = np.array(["a", "b"])[y[:, 0]]
    estimator = saveable()[name]
    if form == "binary" and name == "head":
        estimator.set_params(loss_options=None)
    fitted = estimator.fit(x.astype(np.float32), scipy.sparse.csr_array(y) if form == "sparse" else y)
    fitted.save(tmp_path / "model.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    again = type(fitted).load(str(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    predicted, expected = again.predict(x), fitted.predict(x)
    assert type(predicted) is type(expected)
    assert predicted.dtype == expected.dtype
    if form == "sparse":
        predicted, expected = predicted.toarray(), expected.toarray()
    np.testing.assert_array_equal(predicted, expected)
    assert repr(again.get_params()) == repr(fitted.get_params()).replace("np.float64(2.0)", "2.0")
    again.save(tmp_path / "again.safetensors")
    assert json.dumps(read_arrays(tmp_path / "again.safetensors", type(fitted).__name__)[0]) == json.dumps(
        read_arrays(tmp_path / "model.safetensors", type(fitted).__name__)[0]
    )


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (head(SigmoidF1()), "only a head whose loss is a name"),
        (head(random_state=np.random.RandomState(0)), "^random_state is RandomState"),
        (
            ThresholdTunedClassifier(KNeighborsClassifier()),
            "estimator is a KNeighborsClassifier: only a Torch",
        ),
        (ThresholdTunedClassifier(make_pipeline(MinMaxScaler(), head())), "Pipeline of MinMaxScaler, Torch"),
        (ThresholdTunedClassifier(head(), cv=KFold(2)), "^cv is KFold"),
        (ThresholdTunedClassifier(head(), rule=Halves()), "only a rule of scoreloss that learns numbers"),
        (ThresholdTunedClassifier(head(), rule=sl.Global(sl.SCORES["f1"])), r"rule\.score is <function f1"),
    ],
)
def test_what_a_file_cannot_say_is_not_saved(data, estimator, said, tmp_path):
    estimator.fit(*data)
    with pytest.raises(InputError, match=said):
        estimator.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_files_need_safetensors(kept, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'scoreloss\[sklearn\]'"):
        ThresholdTunedClassifier.load(kept)


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        head().save(tmp_path / "model")


@pytest.fixture(scope="module")
def kept(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "tuned"
    estimator = make_pipeline(StandardScaler(), head("precision_at_recall"))
    ThresholdTunedClassifier(estimator, cv=2, random_state=0).fit(*data).save(path)
    return path


def test_damage_is_noticed_wherever_it_is(kept, tmp_path):
    whole = kept.read_bytes()
    path = tmp_path / "damaged"
    broken = [whole[:cut] for cut in range(0, len(whole), 97)]
    for place in range(0, len(whole), 41):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        broken.append(bytes(flipped))
    for content in [*broken, b"{}", struct.pack("<Q", 2) + b"{}", whole + b"\0"]:
        path.write_bytes(content)
        with pytest.raises(InputError) as raised:
            ThresholdTunedClassifier.load(path)
        assert str(raised.value).startswith(str(path))
        assert "\n" not in str(raised.value)


def test_files_that_are_none(kept, tmp_path):
    for path, said in ((tmp_path, "cannot be read"), (tmp_path / "none", "cannot be read: No such file")):
        with pytest.raises(InputError, match=said):
            ThresholdTunedClassifier.load(path)
    with pytest.raises(
        InputError, match="holds 'ThresholdTunedClassifier': 'TorchMultilabelClassifier' is needed"
    ):
        TorchMultilabelClassifier.load(kept)
    with pytest.raises(InputError, match="cannot be written"):
        ThresholdTunedClassifier.load(kept).save(tmp_path / "no" / "folder")


def test_another_version_is_refused(kept, tmp_path, monkeypatch):
    description, arrays = read_arrays(kept, "ThresholdTunedClassifier")
    monkeypatch.setattr("scoreloss.files.VERSION", 99)
    write_arrays(tmp_path / "new", "ThresholdTunedClassifier", description, arrays)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has version 99: this release reads version 1"):
        ThresholdTunedClassifier.load(tmp_path / "new")


def without(name):
    return lambda description, arrays: arrays.pop(name)


def changed(name, change):
    def apply(description, arrays):
        arrays[name] = change(arrays[name])

    return apply


def said_otherwise(*keys, value):
    def apply(description, arrays):
        *path, last = keys
        for key in path:
            description = description[key]
        description[last] = value

    return apply


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("coefs.0"), r"coefs\.0 is missing"),
        (changed("coefs.0", lambda a: a * np.nan), r"coefs\.0 holds NaN"),
        (changed("coefs.0", lambda a: a[:-1]), r"coefs\.0 has shape \(4, 3\)"),
        (changed("intercepts.0", lambda a: a.astype(int)), r"intercepts\.0 has shape \(3,\) and type int64"),
        (changed("loss.multiplier", lambda a: a / 0), r"loss\.multiplier holds NaN or infinity"),
        (changed("loss.multiplier", lambda a: a[:1]), r"loss\.multiplier has shape"),
        (changed("rule.thresholds_", lambda a: a * np.nan), r"rule\.thresholds_ holds NaN"),
        (changed("rule.thresholds_", lambda a: a[:2]), "the rule was fitted on 2"),
        (without("rule.thresholds_"), "does not hold a whole ThresholdTunedClassifier"),
        (changed("scaler.mean_", lambda a: a[:2]), r"scaler\.mean_ has shape \(2,\)"),
        (said_otherwise("rule", "kind", value="Magic"), "rule is 'Magic'"),
        (said_otherwise("rule", "parameters", value={"least": 1}), "does not hold a whole"),
        (said_otherwise("rule", "fitted", value=["predict"]), "does not hold a whole"),
        (said_otherwise("parameters", value={"verbose": 1}), "does not hold a whole"),
        (said_otherwise("targets", "labels", value=2), "targets are not those of the estimator"),
        (said_otherwise("targets", "form", value="ragged"), "form is 'ragged'"),
        (said_otherwise("estimator", value={}), "does not hold a whole"),
        (said_otherwise("estimator", "head", "parameters", "loss", value="magic"), "loss is 'magic'"),
        (said_otherwise("estimator", "head", "parameters", "hidden", value=[7]), r"coefs\.0 has shape"),
        (said_otherwise("estimator", "head", "n_features_in", value=0), "n_features_in is 0"),
        (said_otherwise("estimator", "head", "most", value="x"), "does not hold a whole"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_file_that_does_not_fit_together_is_refused(kept, tmp_path, change, said):
    """Written with a checksum that fits, so that the content itself must be looked at."""
    description, arrays = read_arrays(kept, "ThresholdTunedClassifier")
    change(description, arrays)
    write_arrays(tmp_path / "odd", "ThresholdTunedClassifier", description, arrays)
    with pytest.raises(InputError, match=said) as raised:
        ThresholdTunedClassifier.load(tmp_path / "odd")
    assert "\n" not in str(raised.value)


def test_a_file_is_replaced_whole_or_not_at_all(data, kept, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"before")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        ThresholdTunedClassifier.load(kept).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"before"


# Imports


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
def test_thresholds_need_no_torch():
    done = run(
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import numpy as np\n"
        "from scoreloss.sklearn import ThresholdTunedClassifier, TorchMultilabelClassifier\n"
        "from sklearn.neighbors import KNeighborsClassifier\n"
        "x = np.arange(20.)[:, None]; y = np.hstack([x > 9, x < 5])\n"
        "print(ThresholdTunedClassifier(KNeighborsClassifier()).fit(x, y).predict(x).shape)\n"
        "try: TorchMultilabelClassifier().fit(x, y)\n"
        "except ImportError as missing: print(missing)\n"
    )
    assert done.stdout.splitlines() == [
        "(20, 2)",
        "TorchMultilabelClassifier needs PyTorch: pip install 'scoreloss[torch]'",
    ]


@pytest.mark.slow
def test_torch_is_loaded_when_a_head_is_fitted():
    done = run(
        "import sys, scoreloss.sklearn\n"
        "head = scoreloss.sklearn.TorchMultilabelClassifier(epochs=1)\n"
        "print('torch' in sys.modules)\n"
        "head.fit([[0.], [1.]] * 5, [0, 1] * 5)\n"
        "print('torch' in sys.modules)"
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_missing_scikit_learn_is_one_clear_line():
    done = run("import sys; sys.modules['sklearn'] = None\nimport scoreloss.sklearn")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: scoreloss.sklearn needs scikit-learn: pip install 'scoreloss[sklearn]'"
    )


# What they are for


@pytest.mark.slow
def test_tuned_thresholds_and_trained_scores_pay_on_yeast():
    """Weighted F1 of the test part: docs/sklearn.md has the numbers."""
    yeast = load("yeast")
    train, test = yeast.splits["train"], yeast.splits["test"]
    x, y = StandardScaler().fit(yeast.inputs[train]).transform(yeast.inputs), yeast.targets.astype(int)

    def reached(estimator):
        predicted = estimator.fit(x[train], y[train]).predict(x[test])
        return 100 * f1_score(y[test], predicted, average="weighted", zero_division=0)

    plain = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
    assert reached(ThresholdTunedClassifier(plain, random_state=0)) > reached(plain) + 4
    bce, ours = (
        np.mean([reached(TorchMultilabelClassifier(loss, random_state=seed)) for seed in range(3)])
        for loss in ("bce", "sigmoid_f1")
    )
    assert ours > bce + 3
