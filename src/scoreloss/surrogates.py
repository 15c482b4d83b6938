"""Surrogates: what stands in for "predicted positive" in the counts of a metric loss.

Each is a function of the logits, written once over ``Ops``, that returns its stand-in on the
positives and on the negatives of the targets (the same array twice, but for ``hinge``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss import scores
from scoreloss.checks import InputError, number_from, one_of
from scoreloss.ops import Array, Ops
from scoreloss.scores import Score

Pair = tuple[Array, Array]


def sigmoid(ops: Ops, z: Array, *, slope: Array = 1.0, offset: Array = 0.0) -> Pair:
    """S(z) = 1 / (1 + exp(-slope (z + offset))): bounded, smooth; sigmoidF1 with score f1."""
    if not _is(offset, 0):
        z = z + offset
    if not _is(slope, 1):
        z = z * slope
    s = ops.sigmoid(z)
    return s, s


def linear(ops: Ops, z: Array) -> Pair:
    """The logit itself, unbounded: unboundedF1 with score f1."""
    return z, z


def hinge(ops: Ops, z: Array) -> Pair:
    """min(1, z) bounds tp from below, max(0, 1 + z) bounds fp from above (Eban et al. 2017)."""
    return ops.clip(z, None, 1.0), ops.clip(1 + z, 0.0, None)


def amplify(ops: Ops, z: Array, *, scale: float = 73.0) -> Pair:
    """sigmoid(scale (p - 1/2)), p = sigmoid(z) (AnyLoss)."""
    s = ops.sigmoid(scale * (ops.sigmoid(z) - 0.5))
    return s, s


def cdf(
    ops: Ops,
    z: Array,
    *,
    prior: str = "uniform",
    mu: float = 0.5,
    delta: float = 0.1,
) -> Pair:
    """F(p), F the distribution function of a prior over thresholds (Marchetti et al.).

    ``uniform`` on [0, 1] makes F(p) = p; ``raised_cosine`` has its support in mu +- delta.
    """
    p = ops.sigmoid(z)
    if prior == "uniform":
        return p, p
    u = (p - mu) / delta
    inside = ops.clip(u, -1.0, 1.0)
    s = 0.5 * (1 + inside + ops.sin(math.pi * inside) / math.pi)
    s = ops.where(u > -1, ops.where(u < 1, s, 1.0), 0.0)  # sin(pi) is not quite 0
    return s, s


def _check_sigmoid(slope: Any, offset: Any) -> None:
    slopes, offsets = _plain("slope", slope), _plain("offset", offset)
    if not bool(np.all((slopes > 0) & np.isfinite(slopes))):
        raise InputError(
            f"slope is {_show(slopes)}: it must be finite and above 0 (a negative slope inverts predictions)"
        )
    if not bool(np.all(np.isfinite(offsets))):
        raise InputError(f"offset is {_show(offsets)}: it must be finite")


def _check_amplify(scale: Any) -> None:
    number_from("scale", scale, 0, strict=True)


def _check_cdf(prior: Any, mu: Any, delta: Any) -> None:
    one_of("prior", prior, ("uniform", "raised_cosine"))
    number_from("mu", mu, 0, strict=True)
    number_from("delta", delta, 0, strict=True)
    if mu >= 1:
        raise InputError(f"mu is {mu!r}: it must lie between 0 and 1")


@dataclass(frozen=True)
class Surrogate:
    """A stand-in, its knobs with their defaults, and where it puts positive."""

    stand_in: Callable[..., Pair]
    boundary: Callable[..., Array]
    """The logit where it says 1/2, from the knobs."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[..., None] = lambda: None
    bounded: bool = True
    """Whether all four counts stay at or above zero."""


SURROGATES: dict[str, Surrogate] = {
    "sigmoid": Surrogate(
        sigmoid,
        boundary=lambda slope, offset: 0.0 - offset,
        knobs={"slope": 1.0, "offset": 0.0},
        check=_check_sigmoid,
    ),
    "linear": Surrogate(linear, boundary=lambda: 0.5, bounded=False),
    "hinge": Surrogate(hinge, boundary=lambda: 0.0, bounded=False),
    "amplify": Surrogate(
        amplify,
        boundary=lambda scale: 0.0,
        knobs={"scale": 73.0},
        check=_check_amplify,
    ),
    "cdf": Surrogate(
        cdf,
        boundary=lambda prior, mu, delta: 0.0 if prior == "uniform" else math.log(mu / (1 - mu)),
        knobs={"prior": "uniform", "mu": 0.5, "delta": 0.1},
        check=_check_cdf,
    ),
}

HINGE_BOUNDS = (scores.f1, scores.fbeta, scores.jaccard, scores.recall)
"""The scores for which counts bounded as ``hinge`` bounds them bound the score."""


def knobs_of(surrogate: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All knobs of a surrogate, those given and the defaults of the others, checked."""
    one_of("surrogate", surrogate, SURROGATES)
    kind = SURROGATES[surrogate]
    for name in given:
        if name not in kind.knobs:
            own = ", ".join(kind.knobs) or "none"
            raise InputError(
                f"{name} is not a knob of the {surrogate} surrogate: it has {own} (a score takes its own parameters "
                "by functools.partial)"
            )
    knobs = {**kind.knobs, **given}
    kind.check(**knobs)
    return knobs


def check_bounds(score: Score, name: str, surrogate: str) -> None:
    """Refuse a score that its surrogate does not bound."""
    if surrogate == "hinge" and getattr(score, "func", score) not in HINGE_BOUNDS:
        raise InputError(f"score is {name}: the hinge surrogate bounds only f1, fbeta, jaccard and recall")
    if not SURROGATES[surrogate].bounded and not scores.is_rational(score):
        raise InputError(
            f"score is {name}: the {surrogate} surrogate is unbounded and takes no score with a root"
        )


def logits_where(
    rises: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The logits where a function that rises with the logit takes the values, by bisection."""
    reach = 1.0
    while reach < 1e12 and not np.all(
        (rises(0 * values - reach) < values) & (rises(0 * values + reach) > values)
    ):
        reach *= 4
    low, high = np.full(values.shape, -reach), np.full(values.shape, reach)
    for _ in range(54):
        middle = (low + high) / 2
        below = rises(middle) < values
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def _is(knob: Any, neutral: float) -> bool:
    return isinstance(knob, (int, float)) and knob == neutral


def _plain(name: str, knob: Any) -> NDArray[np.float64]:
    if getattr(knob, "requires_grad", False):
        raise InputError(
            f"{name} requires a gradient: name it in learnable= and give the value to start from"
        )
    if hasattr(knob, "cpu"):
        knob = knob.cpu()
    try:
        plain = np.asarray(knob)
    except (TypeError, ValueError):
        plain = np.asarray("")
    if plain.dtype.kind not in "fiu":
        raise InputError(f"{name} is {knob!r}: it must be a number, or one for each label")
    return plain.astype(np.float64)


def _show(knob: NDArray[np.float64]) -> str:
    return np.array2string(knob, threshold=6, separator=", ")
