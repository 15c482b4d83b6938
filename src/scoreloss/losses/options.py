"""What the options of a loss may be, in every framework: an option means the same wherever it stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError, as_array, number_from, one_of
from scoreloss.losses.bounds import BOUNDS
from scoreloss.losses.shared import REDUCTIONS

KNOBS = ("pos_weight", "alpha", "gamma", "gamma_neg", "gamma_pos", "epsilon", "slope", "offset")
"""The options that are a number, or a vector with one for each label."""

PARAMETERS = ("multiplier", "bias", "prior", "draws")
"""The options that are arrays of the framework, which are learned, counted or drawn."""


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that no loss can have; those of a metric loss are checked together, by ``check_metric``."""
    for name, value in options.items():
        if name in CHECKS:
            CHECKS[name](name, value)


def vector_of(name: str, value: Any) -> NDArray[Any] | None:
    """A knob with one number a label as an array; None where it is no vector."""
    if isinstance(value, Real | str) or not (hasattr(value, "shape") or isinstance(value, Sequence)):
        return None
    try:
        vector = as_array(name, value)
    except InputError:
        raise InputError(
            f"{name} is {value!r}: it must be a number, or a vector with one for each label"
        ) from None
    if vector.ndim != 1:
        raise InputError(
            f"{name} has shape {vector.shape}: it must be a number, or a vector with one for each label"
        )
    return vector if vector.dtype.kind == "f" else vector.astype(np.float64)


def check_whole(name: str, value: Any) -> None:
    """Refuse what is not a whole number above 0."""
    if not _is_whole(value):
        raise InputError(f"{name} is {value!r}: it must be a whole number above 0")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0


def _knob(name: str, value: Any, low: float = 0, high: float = math.inf) -> None:
    vector = vector_of(name, value)
    if vector is None:
        number_from(name, value, low)
        vector = np.array([value], float)
    if not (np.isfinite(vector) & (vector >= low) & (vector <= high)).all():
        bound = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise InputError(f"{name} is {value!r}: its numbers must be {bound}")


def check_share(name: str, value: Any, *, strict: bool = False) -> None:
    """Refuse what is not a number from 0 (above it if ``strict``) to 1, 1 left out."""
    number_from(name, value, 0, strict=strict)
    if value >= 1:
        raise InputError(f"{name} is {value!r}: it must lie below 1")


def _cuts(name: str, value: Any) -> None:
    if not (np.ndim(value) == 1 and len(value) and all(map(_is_whole, value))):
        raise InputError(f"{name} is {value!r}: it must hold whole numbers above 0")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r}: it must be True or False")


def _or_none(check: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    return lambda name, value: None if value is None else check(name, value)


CHECKS: dict[str, Callable[[str, Any], None]] = {
    "pos_weight": _or_none(_knob),
    "alpha": _or_none(partial(_knob, high=1)),
    "gamma": _knob,
    "gamma_neg": _knob,
    "gamma_pos": _knob,
    "epsilon": partial(_knob, low=-1e30),
    "clip": check_share,
    "recall": partial(check_share, strict=True),
    "precision": partial(check_share, strict=True),
    "bound": partial(one_of, allowed=BOUNDS),
    "temperature": partial(number_from, low=0, strict=True),
    "rank_temperature": partial(number_from, low=0, strict=True),
    "top_temperature": partial(number_from, low=0, strict=True),
    "k": _cuts,
    "normalised": _flag,
    "reduction": partial(one_of, allowed=REDUCTIONS),
}
