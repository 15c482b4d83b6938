"""What a framework must supply: a dozen functions. Everything else is arithmetic and broadcasting.

``NUMPY`` is the reference; ``scoreloss.torch``, ``scoreloss.keras`` and ``scoreloss.jax`` have their own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
"""An array or tensor of the framework at hand."""


@dataclass(frozen=True)
class Ops:
    """The functions the losses are written in."""

    widen: Callable[[Array], Array]
    """To float32, or left as it is where it is wider."""
    cast: Callable[[Array, Array], Array]
    """``cast(x, like)``: a number, array or tensor in the float type of ``like``."""
    sum: Callable[..., Array]
    """``sum(x, axis, keepdims=False)``."""
    max: Callable[..., Array]
    """``max(x, axis, keepdims=False)``."""
    size: Callable[[Array, int | tuple[int, ...]], Any]
    """The number of entries along axes: a whole number, or an array where only the run tells it."""
    divide: Callable[[Array, Array], Array]
    """num / den, with a finite gradient for a den from 1e-30 up; 0 where den is infinite."""
    where: Callable[[Array, Array, Array], Array]
    clip: Callable[..., Array]
    """``clip(x, low, high)``, either bound None."""
    epsilon: Callable[[Array], float]
    """The relative rounding of the float type of an array."""
    ones_like: Callable[[Array], Array]
    stop_gradient: Callable[[Array], Array]
    sigmoid: Callable[[Array], Array]
    softplus: Callable[[Array], Array]
    exp: Callable[[Array], Array]
    log: Callable[[Array], Array]
    sqrt: Callable[[Array], Array]
    abs: Callable[[Array], Array]
    sin: Callable[[Array], Array]
    pool: Callable[..., tuple[Array, ...]] = lambda *sums: sums
    """``pool(*sums)``: sums over the examples at hand (arrays or numbers) as sums over all examples.

    Where a batch lies in shards on several devices they are added up, with their gradient.
    """
    pool_max: Callable[[Array], Array] = lambda most: most
    """The same for a maximum over examples, without a gradient."""


def _widen(x: Array) -> Array:
    x = np.asarray(x)
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def static_size(x: Array, axis: int | tuple[int, ...]) -> int:
    """The number of entries along axes, where shapes are known beforehand."""
    return x.shape[axis] if isinstance(axis, int) else math.prod([x.shape[a] for a in axis])


def scaled_divide(
    where: Callable[[Array, Array, Array], Array],
    stop_gradient: Callable[[Array], Array],
) -> Callable[[Array, Array], Array]:
    """The ``divide`` of frameworks whose gradient of a quotient squares the denominator, which overflows.

    Both sides are brought to the scale of the denominator first, so that what is squared is 1.
    """

    def divide(num: Array, den: Array) -> Array:
        scale = stop_gradient(1 / where(den < math.inf, den, 1.0))
        return (num * scale) / (den * scale)

    return divide


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


NUMPY = Ops(
    widen=_widen,
    cast=lambda x, like: np.asarray(x, like.dtype),
    sum=lambda x, axis, keepdims=False: np.sum(x, axis=axis, keepdims=keepdims),
    max=lambda x, axis, keepdims=False: np.max(x, axis=axis, keepdims=keepdims),
    size=static_size,
    divide=operator.truediv,
    where=np.where,
    clip=np.clip,
    epsilon=lambda x: float(np.finfo(x.dtype).eps),
    ones_like=np.ones_like,
    stop_gradient=lambda x: x,
    sigmoid=lambda x: np.exp(-_softplus(-x)),
    softplus=_softplus,
    exp=np.exp,
    log=np.log,
    sqrt=np.sqrt,
    abs=np.abs,
    sin=np.sin,
)


def logits_from(probabilities: Any) -> Any:
    """log(p / (1 - p)), for those who have probabilities; p is held a float's epsilon away from 0 and 1.

    A torch tensor stays one, with its gradient; everything else becomes a numpy array.

    >>> float(logits_from(0.5))
    0.0
    """
    if hasattr(probabilities, "logit"):
        wide = probabilities.is_floating_point() and probabilities.element_size() == 8
        p = probabilities if wide else probabilities.float()
        return p.logit(eps=float(np.finfo(f"f{p.element_size()}").eps))
    p = np.asarray(probabilities)
    p = p if p.dtype in (np.float32, np.float64) else p.astype(np.float64)
    p = np.clip(p, np.finfo(p.dtype).eps, 1 - np.finfo(p.dtype).eps)
    return np.log(p / (1 - p))
