"""``Classifier``: texts, paths of images or a matrix in, names of labels out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.checks import Booleans, Floats, InputError, as_array, checked_targets, one_of
from scoreloss.data import Dataset
from scoreloss.data.dataset import KINDS
from scoreloss.model import folder
from scoreloss.model.fitted import Model, Prediction
from scoreloss.say import Say, silent


class Classifier:
    """A multilabel classifier that chooses its loss and its threshold rule on validation data.

    ``backbone`` turns inputs into features (None: ``identity`` for a matrix, ``tfidf`` for texts; for images name one).
    ``loss`` and ``rule`` are names, or "auto"; ``score`` is the F1 they are chosen by. ``head`` is "linear", "relu" or
    "mlp" (None: "mlp" for a matrix, else "linear"). ``budget`` configurations of each loss are tried, for at most
    ``epochs``. With ``refit`` the head is trained again on validation data too. ``kind`` is "matrix", "text" or "image"
    (None: an array is a matrix, a text a text, and a ``Path`` an image).

    >>> x = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 20
    >>> names = [["b"], ["a"], ["a", "b"], []] * 20
    >>> Classifier(loss="bce", head="linear").fit(x, names).predict(x[:4])
    [['b'], ['a'], ['a', 'b'], []]
    """

    model_: Model
    """What was fitted or loaded: safe for several threads at once."""

    def __init__(
        self,
        *,
        backbone: str | None = None,
        loss: str = "auto",
        rule: str = "auto",
        score: str = "weighted_f1",
        head: str | None = None,
        budget: int = 4,
        epochs: int = 60,
        refit: bool = True,
        seed: int = 0,
        kind: str | None = None,
        cache: str | Path | None = None,
    ) -> None:
        self.backbone = backbone
        self.loss = loss
        self.rule = rule
        self.score = score
        self.head = head
        self.budget = budget
        self.epochs = epochs
        self.refit = refit
        self.seed = seed
        self.kind = kind
        self.cache = cache

    def fit(
        self,
        inputs: Any,
        labels: Any,
        *,
        label_names: Sequence[str] | None = None,
        name: str = "data",
        say: Say = silent,
    ) -> Self:
        """Learn from inputs and, for each, a list of names of labels; or a 0/1 matrix (n, c) with ``label_names``.

        The order of the labels is that of ``label_names``, else that of the alphabet. ``name`` is what the model card
        calls the data.
        """
        given = inputs_of(inputs, self.kind)
        targets, names = targets_of(labels, label_names)
        return self.fit_dataset(Dataset(name, given, targets, names), say=say)

    def fit_dataset(self, dataset: Dataset, *, say: Say = silent) -> Self:
        """Learn from a dataset; its official parts are kept to, and its test part is only reported."""
        from scoreloss.model.choose import Choice, fit

        choice = Choice(
            backbone=self.backbone,
            loss=self.loss,
            rule=self.rule,
            score=self.score,
            head=self.head,
            budget=self.budget,
            epochs=self.epochs,
            refit=self.refit,
            seed=self.seed,
        )
        cache = None if self.cache is None else Path(self.cache).expanduser()
        self.model_ = fit(dataset, choice, cache=cache, say=say)
        return self

    @property
    def labels_(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the columns."""
        return self._model().labels

    def predict(self, inputs: Any) -> list[list[str]]:
        """The names of the labels of each input."""
        return self.predict_all(inputs).labels

    def predict_proba(self, inputs: Any) -> Floats:
        """Calibrated probabilities (n, c)."""
        return self.predict_all(inputs).probabilities

    def scores(self, inputs: Any) -> Floats:
        """The scores of the loss (n, c): 1/2 at its own boundary."""
        return self.predict_all(inputs).scores

    def predict_all(self, inputs: Any) -> Prediction:
        """Labels, scores, probabilities and expected F1 at once."""
        return self._model().predict(inputs)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the model to a folder, whole; one that is there is replaced only with ``force``."""
        folder.save(self._model(), path, force=force)

    @classmethod
    def load(cls, path: str | Path, *, backbone: str | None = None) -> Self:
        """Read what ``save`` or ``scoreloss fit`` wrote; a folder that was changed is an ``InputError``.

        ``backbone`` says where its backbone is now, if its folder was moved.
        """
        found = cls()
        found.model_ = folder.load(path, backbone=backbone)
        return found

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise InputError("the classifier is not fitted: call fit(inputs, labels) first")
        return self.model_


def inputs_of(inputs: Any, kind: str | None) -> Any:
    """Inputs as a ``Dataset`` has them."""
    one_of("kind", kind, (None, *KINDS))
    if isinstance(inputs, (str, Path)):
        raise InputError(f"inputs are one {type(inputs).__name__}: give a list of them")
    first = None
    if not hasattr(inputs, "shape"):
        inputs = list(inputs)
        first = next(iter(inputs), None)
    if kind is None:
        kind = "text" if isinstance(first, str) else "image" if isinstance(first, Path) else "matrix"
    if kind == "matrix":
        matrix = as_array("inputs", inputs)
        return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
    wanted = (str, Path) if kind == "image" else str
    for row, value in enumerate(inputs):
        if not isinstance(value, wanted):
            raise InputError(f"inputs[{row}] is a {type(value).__name__}: inputs of kind {kind} are needed")
    return tuple(map(Path, inputs)) if kind == "image" else tuple(map(str, inputs))


def targets_of(labels: Any, names: Sequence[str] | None) -> tuple[Booleans, tuple[str, ...]]:
    """Lists of names, or a 0/1 matrix with its names, as a matrix and names."""
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise InputError(f"label_names are {names!r}: they must be a list of names")
    found = labels if hasattr(labels, "shape") else list(labels)
    if hasattr(found, "shape") or (len(found) and _is_numbers(found[0])):
        targets = checked_targets(_numbers(found))
        if names is None:
            raise InputError("label_names is None: a 0/1 matrix needs the names of its columns")
        return targets, tuple(names)
    for row, some in enumerate(found):
        if isinstance(some, str) or not hasattr(some, "__iter__"):
            raise InputError(f"labels[{row}] is {some!r}: it must be a list of names")
        for label in some:
            if not isinstance(label, str):
                raise InputError(f"labels[{row}] holds {label!r}: names of labels are texts")
    there = {label for some in found for label in some}
    order = sorted(there) if names is None else list(names)
    if not order:
        raise InputError("labels are all empty: there must be a label")
    if unknown := there - set(order):
        raise InputError(f"labels hold {min(unknown)!r}: label_names does not")
    place = {label: k for k, label in enumerate(order)}
    targets = np.zeros((len(found), len(order)), bool)
    for row, some in enumerate(found):
        targets[row, [place[label] for label in some]] = True
    return targets, tuple(order)


def _is_numbers(row: Any) -> bool:
    values = list(row) if hasattr(row, "__iter__") and not isinstance(row, str) else []
    return bool(values) and not any(isinstance(value, str) for value in values)


def _numbers(rows: ArrayLike) -> Any:
    return as_array("labels", rows)
