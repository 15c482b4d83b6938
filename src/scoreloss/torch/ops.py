"""PyTorch's ``Ops``."""

from __future__ import annotations

import math
import operator

import torch
import torch.nn.functional as F
from torch import Tensor

from scoreloss.ops import Ops, static_size


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type that losses of such logits are computed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def widen(x: Tensor) -> Tensor:
    """To float32; float64 stays. A gradient that float16 cannot hold comes back as its largest number."""
    wider = x.to(wide(x.dtype))
    if x.dtype == torch.float16 and wider.requires_grad and not torch.compiler.is_compiling():
        wider.register_hook(_within_float16)
    return wider


def _within_float16(gradient: Tensor) -> Tensor:
    limit = torch.finfo(torch.float16).max
    return gradient.clamp(-limit, limit)


def _sigmoid(x: Tensor) -> Tensor:
    """The compiler writes a sigmoid to memory before two sums read it; one made of exp2 goes right into the sums."""
    if not torch.compiler.is_compiling():
        return torch.sigmoid(x)
    positive = x >= 0
    power = torch.exp2(torch.where(positive, -x, x) * math.log2(math.e))
    return torch.where(positive, 1.0, power) / (1 + power)


def _clip(x: Tensor, low: float | None, high: float | None) -> Tensor:
    """The backward pass of relu costs a tenth of clamp's."""
    return torch.relu(x) if low == 0 and high is None else torch.clamp(x, low, high)


OPS = Ops(
    widen=widen,
    cast=lambda x, like: torch.as_tensor(x, dtype=like.dtype, device=like.device),
    sum=lambda x, axis, keepdims=False: torch.sum(x, dim=axis, keepdim=keepdims),
    max=lambda x, axis, keepdims=False: torch.amax(x, dim=axis, keepdim=keepdims),
    size=static_size,
    divide=operator.truediv,
    where=torch.where,
    clip=_clip,
    epsilon=lambda x: torch.finfo(x.dtype).eps,
    ones_like=torch.ones_like,
    stop_gradient=lambda x: x.detach(),
    sigmoid=_sigmoid,
    softplus=lambda x: F.softplus(x, threshold=40),
    exp=torch.exp,
    log=torch.log,
    sqrt=torch.sqrt,
    abs=torch.abs,
    sin=torch.sin,
)
"""What the losses of ``scoreloss.losses`` need of PyTorch."""
