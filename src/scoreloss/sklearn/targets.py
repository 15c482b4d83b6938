"""Targets as scikit-learn has them, as the 0/1 matrix of this package, and back.

Targets are a matrix (dense or sparse) of 0 and 1, or a vector of two classes, the second of which is "positive".
This module knows no estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from scoreloss.checks import Booleans, Floats, InputError, one_of

FORMS = ("dense", "csr_matrix", "csr_array", "binary")


@dataclass(frozen=True)
class Targets:
    """What the targets of a fit looked like: predictions shall look the same."""

    form: str
    """One of ``FORMS``."""
    labels: int
    classes: NDArray[Any] | None = None
    """Of "binary" targets: the two."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes of a vector, or (labels, 2): 0 and 1 for each label, as scorers want to see them."""
        return np.tile(np.arange(2), (self.labels, 1)) if self.classes is None else self.classes

    def dense(self, predicted: Booleans) -> NDArray[Any]:
        """Booleans (n, c) as a vector of classes, or as a dense matrix of 0 and 1."""
        if self.classes is not None:
            return np.asarray(self.classes[predicted[:, 0].astype(np.intp)])
        return predicted.astype(np.int64)

    def as_given(self, predicted: Booleans) -> Any:
        """Booleans (n, c) in the form of the targets."""
        whole = self.dense(predicted)
        return getattr(scipy.sparse, self.form)(whole) if self.form.startswith("csr") else whole

    def describe(self) -> dict[str, Any]:
        """As JSON can hold it."""
        if self.classes is None:
            return {"form": self.form, "labels": self.labels}
        if self.classes.dtype.kind == "O" and not all(isinstance(name, str) for name in self.classes):
            raise InputError(
                f"classes_ are {self.classes.tolist()!r}: only numbers, booleans and text can be saved"
            )
        return {
            "form": self.form,
            "labels": self.labels,
            "classes": self.classes.tolist(),
            "dtype": self.classes.dtype.str,
        }

    @classmethod
    def restored(cls, described: Mapping[str, Any]) -> Self:
        """From what ``describe`` said."""
        one_of("form", described["form"], FORMS)
        labels = described["labels"]
        if not isinstance(labels, int) or labels < 1:
            raise InputError(f"labels are {labels!r}: they must be a whole number above 0")
        if described["form"] != "binary":
            return cls(described["form"], labels)
        classes = np.array(described["classes"], described["dtype"])
        if classes.shape != (2,) or labels != 1:
            raise InputError(f"classes are {classes.tolist()!r}: there must be two")
        return cls("binary", labels, classes)


def read_targets(y: Any) -> tuple[Booleans, Targets]:
    """Targets that scikit-learn has checked, as booleans (n, c), and what they looked like."""
    if scipy.sparse.issparse(y):
        form = "csr_array" if isinstance(y, scipy.sparse.sparray) else "csr_matrix"
        y = y.toarray()
    else:
        form, y = "dense", np.asarray(y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        odd = (y != 0) & (y != 1)
        if odd.any():
            row, label = np.argwhere(odd)[0]
            raise InputError(f"y[{row}, {label}] is {y[row, label]!r}: a matrix of labels must hold 0 and 1")
        return y.astype(bool), Targets(form, y.shape[1])
    if kind != "binary":
        raise InputError(
            f"y is {kind}: Only binary classification is supported. It may also be a 0/1 matrix (examples, labels)"
        )
    classes, positive = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) == 1:
        raise InputError(f"y holds one class, {classes.tolist()[0]!r}: there must be two")
    return positive.astype(bool)[:, None], Targets("binary", 1, classes)


def read_weights(sample_weight: ArrayLike, n: int) -> Floats:
    """Weights of n examples, none below 0 and some above."""
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape}: it must have ({n},)")
    if (weight < 0).any() or not weight.any():
        raise InputError("sample_weight must be at least 0, and not zero everywhere")
    return np.asarray(weight)
