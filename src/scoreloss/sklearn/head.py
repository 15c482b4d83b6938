"""``TorchMultilabelClassifier``: a head trained with any loss of ``scoreloss.torch``, as scikit-learn has classifiers."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from scoreloss.checks import Booleans, Floats, InputError, number_from, one_of
from scoreloss.files import Arrays
from scoreloss.metrics import decision_metrics, ranking_metrics
from scoreloss.sklearn.saved import (
    Description,
    Saved,
    described_features,
    finite,
    plain_parameters,
    restore_features,
)
from scoreloss.sklearn.targets import Targets, read_targets, read_weights
from scoreloss.split import stratified_split

if TYPE_CHECKING:
    from scoreloss.sklearn.training import Layers, Training

INITS = ("priors", "default")

DECISION_SCORES = (
    *(
        f"{average}_{score}"
        for score in ("f1", "precision", "recall", "jaccard")
        for average in ("micro", "macro", "weighted", "samples")
    ),
    "subset_accuracy",
)
RANKING_SCORES = ("average_precision", "map", "lrap", "precision_at_1", "precision_at_3", "precision_at_5")


class TorchMultilabelClassifier(Saved, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear head, or one with hidden layers, trained with any loss of ``scoreloss.torch``.

    ``loss`` is a name (``scoreloss losses``), a class or a loss; ``loss_options`` are the keyword arguments of a
    name or class. ``hidden`` are the widths of hidden layers. ``init`` is "priors" (``start_at_priors``) or
    "default". A stratified part of the examples, ``validation_fraction`` of them, picks the epoch by ``epoch_score``,
    a metric of ``scoreloss.evaluate`` (None: "weighted_f1" at the boundary of the loss, "average_precision" where it
    only ranks), among equals the latest; with a fraction of 0 all examples train for all epochs. Features are taken
    as they are: put a ``StandardScaler`` before, unless they are of one scale. Sparse ones stay sparse. float32 features
    train in float32.

    Fitted: ``coefs_`` and ``intercepts_`` of each layer, ``loss_``, ``epoch_``, ``validation_scores_`` of each epoch,
    ``classes_``, ``n_features_in_``, ``feature_names_in_``.

    >>> x = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10
    >>> TorchMultilabelClassifier("bce", learning_rate=0.1, random_state=0).fit(x, x).predict(x[:2]).tolist()
    [[0, 1], [1, 0]]
    """

    def __init__(
        self,
        loss: Any = "sigmoid_f1",
        *,
        loss_options: Mapping[str, Any] | None = None,
        hidden: Sequence[int] = (),
        init: str = "priors",
        epochs: int = 100,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        weight_decay: float = 0.0,
        validation_fraction: float = 0.2,
        epoch_score: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.loss_options = loss_options
        self.hidden = hidden
        self.init = init
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.epoch_score = epoch_score
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (n, d), dense or sparse, and a 0/1 matrix (n, c), dense or sparse, or two classes (n,).

        ``sample_weight`` (n,) weighs examples in the loss, the start and the validation score.
        """
        from scoreloss.sklearn.training import Training, make_loss

        self._check_parameters()
        x, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), multi_output=True
        )
        weight = None
        if sample_weight is not None:
            weight = read_weights(sample_weight, x.shape[0])
            x, y, weight = x[weight > 0], y[weight > 0], weight[weight > 0]
            weight = weight / weight.mean()
        known, targets = read_targets(y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        loss = make_loss(self.loss, self.loss_options, known)
        train, validation = self._parts(known, seed)
        training = Training(
            x[train],
            known[train],
            None if weight is None else weight[train],
            loss,
            hidden=tuple(self.hidden),
            init=self.init,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            seed=seed,
        )
        self._targets, self._most = targets, int(known.sum(axis=1).max())
        self.classes_ = targets.classes_
        held_out = None
        if len(validation):
            held_out = x[validation], known[validation], None if weight is None else weight[validation]
        self._train(training, held_out, seed)
        return self

    def _train(self, training: Training, held_out: Any, seed: int) -> None:
        """All epochs; keeps the best on the held-out part (among equals the latest), or the last of all."""
        import torch

        values: list[float] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # a loss may draw
            for epoch in range(1, self.epochs + 1):
                training.epoch()
                head = training.head()
                if not all(np.isfinite(array).all() for layer in head for array in layer):
                    break
                value = float(epoch) if held_out is None else self._judge(training, head, *held_out)
                if np.isnan(value):
                    break
                if not values or value >= max(values):
                    self._keep(head, training.loss, epoch)
                values.append(value)
        if not values or (held_out is None and len(values) < self.epochs):
            raise InputError(
                f"learning_rate is {self.learning_rate!r}: the head diverged in epoch {len(values) + 1}, so give "
                "a lower one"
            )
        self.validation_scores_ = np.array([] if held_out is None else values)

    def _keep(self, head: Layers, loss: Any, epoch: int) -> None:
        self.coefs_, self.intercepts_ = map(list, zip(*head, strict=True))
        self.loss_ = copy.deepcopy(loss).eval()
        self.epoch_ = epoch

    def _judge(
        self, training: Training, head: Layers, features: Any, targets: Booleans, weight: Floats | None
    ) -> float:
        """The validation score of a head; NaN where its logits are no numbers."""
        from scoreloss.sklearn.training import decisions_of

        name = self.epoch_score
        if name is None:
            name = "average_precision" if training.loss.boundary is None else "weighted_f1"
        with np.errstate(over="ignore", invalid="ignore"):
            decisions = decisions_of(training.loss, _logits(features, head), targets.shape[1])
        if not np.isfinite(decisions).all():
            return float("nan")
        if name in RANKING_SCORES:
            return float(ranking_metrics(targets, decisions, weight)[name])
        return float(decision_metrics(targets, decisions >= 0, weight)[name])

    def _parts(self, targets: Booleans, seed: int) -> Sequence[NDArray[np.intp]]:
        n = len(targets)
        cut = min(round(self.validation_fraction * n), n - 1)
        return stratified_split(targets, [n - cut, cut], seed=seed)

    def decision_function(self, X: Any) -> Floats:
        """Logits relative to the boundary of the loss (n, c): positive from 0 up. (n,) for two classes."""
        check_is_fitted(self)
        from scoreloss.sklearn.training import decisions_of

        decisions = decisions_of(self.loss_, self._logits_of(X), self._targets.labels)
        return decisions[:, 0] if self._targets.form == "binary" else decisions

    def predict_proba(self, X: Any) -> Floats:
        """``loss.scores`` (n, c): 1/2 at the boundary of the loss. (n, 2) for two classes."""
        check_is_fitted(self)
        from scoreloss.sklearn.training import scores_of

        scores = scores_of(self.loss_, self._logits_of(X), self._targets.labels)
        return np.hstack([1 - scores, scores]) if self._targets.form == "binary" else scores

    def predict(self, X: Any) -> Any:
        """What the loss calls positive, in the form of the targets of ``fit``."""
        check_is_fitted(self)
        if self.loss_.boundary is None:
            raise InputError(
                f"loss is {self.loss!r}: it only ranks and has no boundary, so put a ThresholdTunedClassifier "
                "around it"
            )
        decisions = self.decision_function(X).reshape(-1, self._targets.labels)
        return self._targets.as_given(decisions >= 0)

    def _logits_of(self, X: Any) -> Floats:
        x = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        return _logits(x, list(zip(self.coefs_, self.intercepts_, strict=True)))

    def _check_parameters(self) -> None:
        one_of("init", self.init, INITS)
        if self.epoch_score is not None:
            one_of("epoch_score", self.epoch_score, (*DECISION_SCORES, *RANKING_SCORES))
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence):
            raise InputError(f"hidden is {self.hidden!r}: it must be a list of widths, () for a linear head")
        for name, value in (
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            *(("hidden", width) for width in self.hidden),
        ):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is {value!r}: it must be a whole number above 0")
        number_from("learning_rate", self.learning_rate, 0, strict=True)
        number_from("weight_decay", self.weight_decay, 0)
        number_from("validation_fraction", self.validation_fraction, 0)
        if self.validation_fraction >= 1:
            raise InputError(f"validation_fraction is {self.validation_fraction!r}: it must lie below 1")

    def described(self) -> tuple[Description, Arrays]:
        """What the fitted estimator is. The loss must be a name."""
        if not isinstance(self.loss, str):
            raise InputError(
                f"loss is {self.loss!r}: only a head whose loss is a name, with loss_options, can be saved"
            )
        arrays = {f"coefs.{i}": coef for i, coef in enumerate(self.coefs_)}
        arrays |= {f"intercepts.{i}": intercept for i, intercept in enumerate(self.intercepts_)}
        arrays |= {f"loss.{name}": tensor.numpy() for name, tensor in self.loss_.state_dict().items()}
        return {
            "parameters": plain_parameters(self.get_params(deep=False)),
            "targets": self._targets.describe(),
            "most": self._most,
            "epoch": self.epoch_,
            "validation_scores": self.validation_scores_.tolist(),
            **described_features(self),
        }, arrays

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Arrays) -> Self:
        """The estimator that described itself so."""
        import torch

        from scoreloss.sklearn.training import make_loss

        parameters = description["parameters"]
        head = cls(**{**parameters, "hidden": tuple(parameters["hidden"])})
        head._check_parameters()
        head._targets, head._most = Targets.restored(description["targets"]), description["most"]
        head.classes_ = head._targets.classes_
        head.epoch_ = description["epoch"]
        head.validation_scores_ = np.array(description["validation_scores"], np.float64)
        labels = head._targets.labels
        as_trained = np.arange(labels)[None] < head._most  # a loss is made for so many labels an example
        loss = make_loss(head.loss, head.loss_options, as_trained)
        widths = [restore_features(head, description), *head.hidden, math.prod(loss.outputs(labels))]
        pairs = list(enumerate(itertools.pairwise(widths)))
        head.coefs_ = [finite(arrays, f"coefs.{i}", pair) for i, pair in pairs]
        head.intercepts_ = [finite(arrays, f"intercepts.{i}", pair[1:]) for i, pair in pairs]
        state = {
            name: torch.from_numpy(finite(arrays, f"loss.{name}", tuple(tensor.shape)))
            for name, tensor in loss.state_dict().items()
        }
        loss.to(torch.from_numpy(head.coefs_[0]).dtype).load_state_dict(state)
        head.loss_ = loss.eval()
        return head

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


def _logits(features: Any, head: Layers) -> Floats:
    """Features (n, d), dense or sparse, to logits (n, outputs) in float64, so that ranks survive the sigmoid."""
    (weight, bias), *rest = head
    z = np.asarray(features @ weight) + bias
    for weight, bias in rest:
        z = np.maximum(z, 0) @ weight + bias
    return z.astype(np.float64, copy=False)
