"""Keras's ``Ops``, for all its backends."""

from __future__ import annotations

import math

import keras
import numpy as np
from keras import ops

from scoreloss.ops import Array, Ops, scaled_divide


def float_type(x: Array) -> str:
    """The name of the type of a tensor."""
    return str(keras.backend.standardize_dtype(x.dtype))


def widen(x: Array) -> Array:
    """To float32; float64 stays."""
    x = ops.convert_to_tensor(x)
    return x if float_type(x) == "float64" else ops.cast(x, "float32")


def cast(x: Array, like: Array) -> Array:
    """A number, array or tensor in the float type of another."""
    return ops.cast(ops.convert_to_tensor(x), float_type(like))


def _size(x: Array, axis: int | tuple[int, ...]) -> Array:
    """A whole number; a tensor where the number of examples is known only when a graph runs."""
    axes = (axis,) if isinstance(axis, int) else axis
    sizes = [ops.shape(x)[a] for a in axes]
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    return math.prod(cast(size, x) for size in sizes)


def _clip(x: Array, low: float | None, high: float | None) -> Array:
    if low is not None:
        x = ops.maximum(x, low)
    return x if high is None else ops.minimum(x, high)


OPS = Ops(
    widen=widen,
    cast=cast,
    sum=lambda x, axis, keepdims=False: ops.sum(x, axis, keepdims=keepdims),
    max=lambda x, axis, keepdims=False: ops.max(x, axis, keepdims=keepdims),
    size=_size,
    divide=scaled_divide(ops.where, ops.stop_gradient),
    where=ops.where,
    clip=_clip,
    epsilon=lambda x: float(np.finfo(float_type(x)).eps),
    ones_like=ops.ones_like,
    stop_gradient=ops.stop_gradient,
    sigmoid=ops.sigmoid,
    softplus=ops.softplus,
    exp=ops.exp,
    log=ops.log,
    sqrt=ops.sqrt,
    abs=ops.abs,
    sin=ops.sin,
)
"""What the losses of ``scoreloss.losses`` need of Keras."""
