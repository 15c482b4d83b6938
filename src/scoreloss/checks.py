"""What is said when an argument is wrong: one line with its name, what it was, and what it may be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.scores import SCORES, Score

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]


class InputError(ValueError):
    """A wrong argument, option or file. The command line prints it as one line."""


def reason_of(problem: BaseException) -> str:
    """The first line of what an exception says; its name where it says nothing."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)


def one_of(argument: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a value that is not among the allowed ones, with the nearest of them."""
    names = list(allowed)
    if isinstance(value, (str, type(None))) and value in names:
        return
    near = difflib.get_close_matches(str(value), [n for n in names if n], n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(f"{argument} is {value!r}: {hint}it may be {', '.join(map(str, names))}")


def number_from(argument: str, value: Any, low: float, *, strict: bool = False) -> None:
    """Refuse what is not a finite number of at least ``low`` (above it if ``strict``)."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    inside = real and (value > low if strict else value >= low)
    if not inside or not np.isfinite(value):
        bound = f"above {low:g}" if strict else f"at least {low:g}"
        raise InputError(f"{argument} is {value!r}: it must be a number {bound}")


def checked(
    targets: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> tuple[Booleans, Floats, Floats | None, Booleans | None]:
    """Targets as booleans, scores and weights as float64, the mask in full; or an ``InputError``."""
    m = None if mask is None else as_array("mask", mask)
    if m is not None and not (m.dtype == bool or (m.dtype.kind in "fiu" and ((m == 0) | (m == 1)).all())):
        raise InputError("mask must hold True and False, and holds something else")
    m = None if m is None else m.astype(bool)
    s = as_array("scores", scores)
    y = checked_targets(targets, m)
    if y.shape != s.shape:
        raise InputError(f"scores have shape {s.shape}: the targets have {y.shape}")
    if m is not None:
        m = np.broadcast_to(m, y.shape)
    unknown = np.isnan(s) if m is None else np.isnan(s) & m
    if unknown.any():
        row, label = np.argwhere(unknown)[0]
        raise InputError(f"scores[{row}, {label}] is NaN: scores must be numbers")
    w = None if sample_weight is None else as_array("sample_weight", sample_weight).astype(np.float64)
    if w is not None and w.shape != y.shape[:1]:
        raise InputError(f"sample_weight has shape {w.shape}: it must have ({len(y)},)")
    if w is not None and not (np.isfinite(w) & (w >= 0)).all():
        raise InputError("sample_weight must be finite and at least 0")
    return y, s.astype(np.float64, copy=False), w, m


def as_array(argument: str, value: Any) -> NDArray[Any]:
    """Numbers as an array; a tensor is taken from its graph and its device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.itemsize == 2 else value
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{argument} must be an array: the rows have different lengths") from None
    except TypeError:
        raise InputError(f"{argument} must be an array of numbers: it is a {type(value).__name__}") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{argument} must hold numbers: the type is {array.dtype}")
    return array


def checked_targets(targets: ArrayLike, mask: Booleans | None = None) -> Booleans:
    """Targets (n, c) of 0 and 1 as booleans; what is masked may be anything and becomes False."""
    y = as_array("targets", targets)
    if y.ndim != 2:
        raise InputError(
            f"targets have shape {y.shape} and type {y.dtype}: they must be a 0/1 matrix (examples, labels)"
        )
    if not y.size:
        raise InputError(f"targets have shape {y.shape}: there must be an example and a label")
    if mask is not None:
        try:
            mask = np.broadcast_to(mask, y.shape)
        except ValueError:
            raise InputError(f"mask has shape {mask.shape}: it must broadcast against {y.shape}") from None
        y = np.where(mask, y, 0)
    if y.dtype == bool:
        return y
    odd = (y != 0) & (y != 1)
    if odd.any():
        row, label = np.argwhere(odd)[0]
        raise InputError(f"targets[{row}, {label}] is {y[row, label]}: targets must be 0 or 1")
    return y.astype(bool)


def checked_thresholds(thresholds: ArrayLike, labels: int, scores: ArrayLike) -> Floats:
    """A threshold for all labels, or one for each, rounded as the scores are."""
    t = rounded_like(as_array("thresholds", thresholds), scores)
    if t.shape not in ((), (labels,)) or np.isnan(t).any():
        raise InputError(
            f"thresholds have shape {t.shape}: a number or one for each of {labels} labels is needed, none NaN"
        )
    return t


def rounded_like(thresholds: ArrayLike, scores: ArrayLike) -> Floats:
    """Thresholds as float64, rounded to float32 where the scores are: 0.7 shall find a score of 0.7."""
    t = np.asarray(thresholds, np.float64)
    dtype = as_array("scores", scores).dtype
    return t.astype(dtype).astype(np.float64) if dtype in (np.float16, np.float32) else t


def formula_of(score: str | Score) -> Score:
    """A score by its name, or a function that has been tried on plain numbers."""
    if not callable(score):
        one_of("score", score, SCORES)
        return SCORES[score]
    name = getattr(score, "__name__", "a function")
    try:
        value = score(1.0, 2.0, 3.0, 5.0, lambda num, den, power=1: num / den**power)
    except Exception as problem:
        raise InputError(
            f"score {name} fails on plain numbers ({problem}): it must be a function of (tp, fp, fn, tn, div)"
        ) from problem
    if not isinstance(value, Real):
        raise InputError(f"score {name} gives {value!r} on plain numbers: it must give a number")
    return score
