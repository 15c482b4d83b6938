"""Estimators on disk without pickle: each says in JSON and arrays what it is, and is made of that again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scoreloss.checks import InputError
from scoreloss.files import Arrays, read_arrays, write_arrays

Description = dict[str, Any]
"""What JSON can hold."""


class Saved:
    """``save`` and ``load`` of an estimator that has ``described`` and ``restored``."""

    def described(self) -> tuple[Description, Arrays]:
        """What the fitted estimator is; an ``InputError`` where a file cannot say it."""
        raise NotImplementedError

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Arrays) -> Self:
        """The estimator that described itself so; an error of any kind where it does not fit together."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file (safetensors with JSON in its header), whole."""
        check_is_fitted(self)
        write_arrays(path, type(self).__name__, *self.described())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote; what is damaged or does not fit together is an ``InputError``."""
        description, arrays = read_arrays(path, cls.__name__)
        try:
            return cls.restored(description, arrays)
        except InputError as problem:
            raise InputError(f"{path}: {problem}") from problem
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as problem:
            said = str(problem).partition("\n")[0]
            raise InputError(
                f"{path} does not hold a whole {cls.__name__}: {type(problem).__name__} {said}"
            ) from problem


def plain(argument: str, value: Any) -> Any:
    """A parameter as JSON can hold it; an ``InputError`` that names the parameter where it cannot."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(f"{argument}[{key!r}]", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(argument, item) for item in value]
    if (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and np.isfinite(value))
    ):
        return value
    raise InputError(
        f"{argument} is {value!r}: only finite numbers, text, None and lists of them can be saved"
    )


def plain_parameters(parameters: Mapping[str, Any]) -> Description:
    """All parameters as JSON can hold them."""
    return {name: plain(name, value) for name, value in parameters.items()}


def described_features(estimator: Any) -> Description:
    """The number of features, and their names where the estimator was fitted on some."""
    names = getattr(estimator, "feature_names_in_", None)
    return {"n_features_in": estimator.n_features_in_, "feature_names_in": plain("feature_names_in_", names)}


def restore_features(estimator: Any, description: Mapping[str, Any]) -> int:
    """Give an estimator the features it was fitted on, and their number back."""
    features, names = description["n_features_in"], description["feature_names_in"]
    if not isinstance(features, int) or features < 1 or (names is not None and len(names) != features):
        raise InputError(
            f"n_features_in is {features!r}: it must be a whole number above 0, with so many names"
        )
    estimator.n_features_in_ = features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return features


def finite(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Any:
    """An array that must have a shape, floats, and no NaN or infinity."""
    if name not in arrays:
        raise InputError(f"{name} is missing")
    array = arrays[name]
    if array.shape != shape or array.dtype not in (np.float32, np.float64):
        raise InputError(
            f"{name} has shape {array.shape} and type {array.dtype}: floats of {shape} are needed"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity: it must hold finite numbers")
    return array
