"""``ThresholdTunedClassifier``: any multilabel classifier of scikit-learn, and a threshold rule on its scores."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.files import Arrays
from scoreloss.sklearn.head import TorchMultilabelClassifier
from scoreloss.sklearn.saved import (
    Description,
    Saved,
    described_features,
    finite,
    plain,
    plain_parameters,
    restore_features,
)
from scoreloss.sklearn.targets import Targets, read_targets, read_weights
from scoreloss.split import stratified_split
from scoreloss.thresholds import Averaging, ExpectedF1, Fixed, Global, Lipton, PerLabel, Rule, TopK

RULES: dict[str, Rule] = {
    "fixed": Fixed(),
    "global": Global(),
    "per_label": PerLabel(),
    "averaging": Averaging(),
    "top_k": TopK("count"),
    "lipton": Lipton(),
    "expected_f1": ExpectedF1(),
}
"""The rules by the names that ``rule`` takes, with their defaults."""

RESPONSES = ("predict_proba", "decision_function")
"""What scores are taken from, the first that a classifier has."""

NUMBERS = "fiub"
SCALES = ("mean_", "var_", "scale_")
SAVEABLE = "a TorchMultilabelClassifier, or a Pipeline of StandardScaler and it"


def _has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), method)


class ThresholdTunedClassifier(Saved, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose scores a threshold rule turns into labels; the rule is fitted on out-of-fold scores alone.

    ``estimator`` is any multilabel classifier (or a binary one, for targets of two classes) with ``predict_proba``,
    a matrix or a list of one array a label, or ``decision_function``. For each fold it is fitted on the others and
    scores this one; the rule is fitted on these scores; then the estimator is fitted on everything. So no score the
    rule sees comes from a model that has seen its example.

    ``rule`` is a rule of ``scoreloss`` or a name ("fixed", "global", "per_label", "averaging",
    "top_k", "lipton", "expected_f1"; the last three take the scores for probabilities). ``cv`` is a number of folds,
    stratified over all labels and drawn by ``random_state``, or what scikit-learn takes for ``cv``.
    ``response_method`` is "predict_proba", "decision_function" or "auto": the first of them that there is.

    Fitted: ``estimator_``, ``rule_``, ``classes_``, and ``n_features_in_`` and ``feature_names_in_`` where the
    estimator has them.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> x = [[float(i)] for i in range(20)]
    >>> tuned = ThresholdTunedClassifier(KNeighborsClassifier(3), rule="global", random_state=0)
    >>> tuned.fit(x, [[i < 5, i > 9] for i in range(20)]).predict([[2.0], [15.0]]).tolist()
    [[1, 0], [0, 1]]
    """

    def __init__(
        self,
        estimator: Any,
        *,
        rule: Rule | str = "per_label",
        cv: Any = 5,
        response_method: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.rule = rule
        self.cv = cv
        self.response_method = response_method
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on whatever the estimator takes and a 0/1 matrix (n, c), dense or sparse, or two classes (n,).

        ``sample_weight`` (n,) goes to the estimator (the last step of a pipeline) and to the rule.
        """
        one_of("response_method", self.response_method, ("auto", *RESPONSES))
        rule = self._new_rule()
        if y is None:
            raise InputError("ThresholdTunedClassifier requires y to be passed, but the target y is None")
        y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y")
        x, y = indexable(X, y)
        known, targets = read_targets(y)
        weight = None if sample_weight is None else read_weights(sample_weight, len(known))
        counted = np.ones(len(known), bool) if weight is None else weight > 0
        if targets.form == "binary" and known[counted].all() == known[counted].any():
            raise InputError("y holds one class where sample_weight is above 0: there must be two")
        given = targets.dense(known)
        tested, scores = [], []
        for train, test in self._folds(x, given, known, counted):
            fitted = _fitted(self.estimator, x, given, weight, train[counted[train]])
            tested.append(test[counted[test]])
            scores.append(
                _scores(fitted, _safe_indexing(x, tested[-1]), self.response_method, targets.labels)
            )
        held_out = np.concatenate(tested)
        weights = {} if weight is None else {"sample_weight": weight[held_out]}
        self.rule_ = rule.fit(known[held_out], np.concatenate(scores), **weights)
        self.estimator_ = _fitted(self.estimator, x, given, weight, np.flatnonzero(counted))
        self._targets = targets
        self.classes_ = targets.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> Any:
        """What the rule makes of the scores of the fitted estimator, in the form of the targets of ``fit``."""
        check_is_fitted(self)
        scores = _scores(self.estimator_, X, self.response_method, self._targets.labels)
        return self._targets.as_given(self.rule_.predict(scores))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """That of the fitted estimator; no threshold changes it."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """That of the fitted estimator; no threshold changes it."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def _new_rule(self) -> Rule:
        if isinstance(self.rule, str):
            one_of("rule", self.rule, RULES)
            return copy.deepcopy(RULES[self.rule])
        if isinstance(self.rule, type) or not all(hasattr(self.rule, name) for name in ("fit", "predict")):
            raise InputError(
                f"rule is {self.rule!r}: it must be a threshold rule, such as Global('f1'), or one of "
                f"{', '.join(RULES)}"
            )
        return copy.deepcopy(self.rule)

    def _folds(
        self, x: Any, given: NDArray[Any], known: Booleans, counted: Booleans
    ) -> Iterable[tuple[Any, Any]]:
        """Rows to fit on and rows to score; folds of our own are drawn from the rows that count."""
        if not isinstance(self.cv, int | np.integer) or isinstance(self.cv, bool):
            return list(check_cv(self.cv, given, classifier=True).split(x, given))
        rows = np.flatnonzero(counted)
        n = len(rows)
        if not 2 <= self.cv <= n:
            raise InputError(f"cv is {self.cv!r}: it must be from 2 to n_samples={n}")
        sizes = np.diff(np.arange(self.cv + 1) * n // self.cv)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        parts = stratified_split(known[rows], sizes.tolist(), seed=seed)
        return [(np.delete(rows, part), rows[part]) for part in parts]

    def described(self) -> tuple[Description, Arrays]:
        """What the fitted estimator is; the inner one must be one of ours."""
        parameters = self.get_params(deep=False)
        rule = parameters.pop("rule")
        del parameters["estimator"]
        estimator, inner = _described_estimator(self.estimator_)
        kind, fitted = type(self.rule_), _learned(self.rule_)
        numbers = all(value.dtype.kind in NUMBERS for value in fitted.values())
        if kind not in map(type, RULES.values()) or not numbers:
            raise InputError(
                f"rule is {self.rule!r}: only a rule of scoreloss that learns numbers can be saved"
            )
        return {
            "parameters": plain_parameters(parameters),
            "targets": self._targets.describe(),
            "estimator": estimator,
            "rule_name": rule if isinstance(rule, str) else None,
            "rule": {
                "kind": kind.__name__,
                "parameters": _parameters_of(self.rule_),
                "fitted": sorted(fitted),
            },
        }, {**inner, **{f"rule.{name}": value for name, value in fitted.items()}}

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Arrays) -> Self:
        """The estimator that described itself so."""
        targets = Targets.restored(description["targets"])
        estimator = _restored_estimator(description["estimator"], arrays)
        rule = _restored_rule(description["rule"], arrays)
        tuned = cls(
            clone(estimator),
            rule=description["rule_name"] or copy.deepcopy(rule),
            **description["parameters"],
        )
        tuned.estimator_ = estimator
        tuned.rule_ = rule
        inner = _last(estimator)._targets
        if inner.describe() != replace(targets, form=inner.form).describe():
            raise InputError("targets are not those of the estimator")
        if rule.predict(np.full((1, targets.labels), 0.5)).shape != (1, targets.labels):
            raise InputError(f"rule {rule!r} does not fit {targets.labels} labels")
        tuned._targets = targets
        tuned.classes_ = targets.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(tuned, name, getattr(estimator, name))
        return tuned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        tags.input_tags = inner.input_tags
        return tags


def _fitted(estimator: Any, x: Any, y: NDArray[Any], weight: Floats | None, rows: NDArray[np.intp]) -> Any:
    """A clone fitted on rows."""
    parameters = _fit_parameters(estimator, None if weight is None else weight[rows])
    return clone(estimator).fit(_safe_indexing(x, rows), y[rows], **parameters)


def _fit_parameters(estimator: Any, weight: Floats | None) -> dict[str, Any]:
    if weight is None:
        return {}
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weight}
    if isinstance(estimator, Pipeline) and has_fit_parameter(_last(estimator), "sample_weight"):
        return {f"{estimator.steps[-1][0]}__sample_weight": weight}
    raise InputError(f"sample_weight is given: {type(_last(estimator)).__name__}.fit takes none")


def _scores(estimator: Any, x: Any, response: str, labels: int) -> Floats:
    """Scores (n, labels) out of any form in which scikit-learn gives them."""
    wanted = RESPONSES if response == "auto" else (response,)
    method = next((name for name in wanted if hasattr(estimator, name)), None)
    if method is None:
        raise InputError(f"estimator is a {type(estimator).__name__}: it has no {' or '.join(wanted)}")
    values = getattr(estimator, method)(x)
    if isinstance(values, list):
        values = np.column_stack(
            [_of_positives(p, classes) for p, classes in zip(values, estimator.classes_, strict=True)]
        )
    scores = np.asarray(values)
    if scores.ndim == 1:
        scores = scores[:, None]
    if labels == 1 and scores.shape[1] == 2:
        scores = scores[:, 1:]
    if scores.shape[1:] != (labels,):
        raise InputError(
            f"estimator gives {method} of shape {scores.shape}: there must be a column for each of {labels} labels"
        )
    return scores


def _of_positives(probabilities: Any, classes: Any) -> Any:
    """The column of class 1; an estimator that saw one class alone has no other."""
    known = np.asarray(classes) == 1
    return probabilities[:, known][:, 0] if known.any() else np.zeros(len(probabilities))


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _learned(rule: Rule) -> Arrays:
    return {name: np.asarray(value) for name, value in vars(rule).items() if name.endswith("_")}


def _parameters_of(rule: Rule) -> Description:
    names = inspect.signature(type(rule)).parameters
    return {name: plain(f"rule.{name}", getattr(rule, name)) for name in names}


def _restored_rule(description: Mapping[str, Any], arrays: Arrays) -> Rule:
    kinds = {type(rule).__name__: type(rule) for rule in RULES.values()}
    one_of("rule", description["kind"], kinds)
    rule = kinds[description["kind"]](**description["parameters"])
    for name in description["fitted"]:
        value = arrays[f"rule.{name}"]
        if not name.endswith("_") or value.dtype.kind not in NUMBERS or np.isnan(value).any():
            raise InputError(f"rule.{name} holds NaN, or is no part of a rule")
        setattr(rule, name, value if value.ndim else value.item())
    return rule


def _described_estimator(estimator: Any) -> tuple[Description, Arrays]:
    if isinstance(estimator, TorchMultilabelClassifier):
        description, arrays = estimator.described()
        return {"steps": None, "head": description}, arrays
    steps = estimator.steps if isinstance(estimator, Pipeline) else []
    if [type(step) for _, step in steps] != [StandardScaler, TorchMultilabelClassifier]:
        raise InputError(f"estimator is a {_kinds(estimator)}: only {SAVEABLE} can be saved")
    (_, scaler), (_, head) = steps
    description, arrays = head.described()
    scales = {name: getattr(scaler, name) for name in SCALES if getattr(scaler, name) is not None}
    return {
        "steps": [name for name, _ in steps],
        "scaler": {
            "parameters": plain_parameters(scaler.get_params()),
            "seen": plain("n_samples_seen_", scaler.n_samples_seen_),
            "scales": sorted(scales),
            **described_features(scaler),
        },
        "head": description,
    }, {**arrays, **{f"scaler.{name}": scale for name, scale in scales.items()}}


def _restored_estimator(description: Mapping[str, Any], arrays: Arrays) -> Any:
    head = TorchMultilabelClassifier.restored(description["head"], arrays)
    if description["steps"] is None:
        return head
    described = description["scaler"]
    scaler = StandardScaler(**described["parameters"])
    features = restore_features(scaler, described)
    for name in SCALES:
        known = name in described["scales"]
        setattr(scaler, name, finite(arrays, f"scaler.{name}", (features,)) if known else None)
    seen = described["seen"]
    scaler.n_samples_seen_ = np.array(seen) if isinstance(seen, list) else seen
    if features != head.n_features_in_:
        raise InputError(f"the scaler has {features} features: the head has {head.n_features_in_}")
    return Pipeline(list(zip(description["steps"], (scaler, head), strict=True)))


def _kinds(estimator: Any) -> str:
    names = [type(step).__name__ for _, step in getattr(estimator, "steps", [])]
    return type(estimator).__name__ + (f" of {', '.join(names)}" if names else "")
