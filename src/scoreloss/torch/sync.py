"""A batch in shards, one a process: the sums over examples are added up over all processes, with their gradient.

Every process then has the loss of the whole batch, L. A process that differentiates it with respect to its own
parameters should get its share of dL; it gets that share times the number of processes, so that the *mean* over
processes, which is what DDP and FSDP take, is dL itself. All processes see the same L, so this factor stands for an
all-reduce in the backward pass, which would only add up equal numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from scoreloss.ops import Ops
from scoreloss.torch.ops import OPS


def processes() -> int:
    """The number of processes that share a batch; 1 without an initialised process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def ops_for(*, sync: bool) -> Ops:
    """The functions a loss is written in: sums over the examples at hand, or over those of all processes."""
    return SYNCED if sync and processes() > 1 else OPS


def _pool(*sums: Any) -> tuple[Tensor, ...]:
    """The sums, arrays of any shapes or numbers, in one all-reduce."""
    like = next(part for part in sums if isinstance(part, Tensor))
    parts = [torch.as_tensor(part, dtype=like.dtype, device=like.device) for part in sums]
    own = torch.cat([part.reshape(-1) for part in parts])
    total = own.detach().clone()
    dist.all_reduce(total)
    share = processes() * own
    pooled = total + (share - share.detach())  # the value of the one, the gradient of the other
    return tuple(
        flat.reshape(part.shape)
        for flat, part in zip(pooled.split([part.numel() for part in parts]), parts, strict=True)
    )


def _pool_max(most: Tensor) -> Tensor:
    most = most.detach().clone()
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most


SYNCED = replace(OPS, pool=_pool, pool_max=_pool_max)
