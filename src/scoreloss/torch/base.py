"""What every loss module shares: options, shapes, boundary and scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scoreloss.checks import InputError
from scoreloss.losses.definitions import Definition
from scoreloss.losses.metric import across_examples
from scoreloss.losses.options import KNOBS, check_options, check_whole, vector_of
from scoreloss.torch.ops import wide, widen
from scoreloss.torch.sync import ops_for

Floats = NDArray[np.float64]

Knob = float | Sequence[float] | Tensor
"""A number, or a vector with one a label."""


class Loss(nn.Module):
    """What every loss has: a boundary, scores, and the shape of the logits it takes."""

    only_ranks: bool = False
    """Whether the loss says nothing of where "positive" begins, and so has no boundary."""

    learns: ClassVar[bool] = False
    """Whether the loss has parameters of its own, for so many labels."""

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None, **options: Any) -> Self:
        """The loss for such targets (n, c), with these options; what it learns, once for each of ``runs``."""
        make: Callable[..., Self] = cls
        return make(targets.shape[1], runs=runs, **options) if cls.learns else make(**options)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """The shape of the logits of one example."""
        return (labels,)

    def logits_of(self, label_logits: Floats) -> Floats:
        """Logits (..., outputs) that say of each label what the logits (..., c) of a plain head would."""
        return label_logits

    @property
    def boundary(self) -> Any:
        """The logit at and above which the loss itself says positive (a number, or one a label); None if it only ranks."""
        return None if self.only_ranks else 0.0

    def scores(self, logits: Tensor) -> Tensor:
        """sigmoid(logits - boundary): rises with the logit, 1/2 at the boundary. To be compared with thresholds."""
        if not isinstance(logits, Tensor):
            raise InputError(f"logits must be a torch.Tensor: it is a {type(logits).__name__}")
        boundary = self.boundary
        if isinstance(boundary, Tensor):
            check_size("boundary", boundary, logits.shape[:-2], logits.shape[-1])
        return torch.sigmoid(widen(logits) - (0.0 if boundary is None else across_examples(boundary)))


class FunctionLoss(Loss):
    """A function of ``scoreloss.losses`` with its options; vectors among them move with the module."""

    definition: ClassVar[Definition]

    sums: ClassVar[tuple[str, ...]] = ()
    """Buffers that add up over steps."""

    sync: bool = False
    """Whether the batch is that of all processes of ``torch.distributed``."""

    def __init__(self, **options: Any) -> None:
        check_options(options)
        super().__init__()
        self.only_ranks = self.definition.only_ranks
        self._fixed: dict[str, Any] = {}
        self._vectors: list[str] = []
        for name, value in options.items():
            vector = as_vector(name, value) if name in KNOBS else None
            if vector is None:
                self._fixed[name] = value
            else:
                self.register_buffer(name, vector, persistent=False)
                self._vectors.append(name)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The loss of logits (..., n, c): a scalar, or one a run (see ``losses`` for mask and weight)."""
        self._check(logits, targets, mask, weight)
        options = {**self._options(wide(logits.dtype)), **self._of_batch(logits, targets, mask, weight)}
        ops = ops_for(sync=self.sync)
        loss: Tensor = self.definition.function(ops, logits, targets, mask=mask, weight=weight, **options)
        return loss

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
        check_types(logits, targets, mask, weight)
        shapes = [None if part is None else part.shape for part in (mask, weight)]
        self.definition.check_arguments(logits.shape, targets.shape, *shapes)
        self.check_sizes(self._runs(logits), targets.shape[-1])

    def check_sizes(self, runs: Sequence[int], labels: int) -> None:
        """Refuse logits of other runs or labels than those the loss was made for."""
        for name in self._sized():
            check_size(name, getattr(self, name), runs, labels)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moved and cast like any module, but for the type of the sums: half precision would soon count no more."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name in self.sums:
            if name in self._buffers:
                setattr(self, name, widen(getattr(self, name)))
        return self

    def _runs(self, logits: Tensor) -> Sequence[int]:
        return logits.shape[: -1 - len(self.outputs(1))]

    def _sized(self) -> list[str]:
        """The names of what has one number a label, or one a run and label."""
        return self._vectors

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        """Options that depend on the batch at hand."""
        return {}

    def _options(self, dtype: torch.dtype | None = None) -> dict[str, Any]:
        vectors = {name: getattr(self, name).to(dtype) for name in self._vectors}
        return {**self._fixed, **vectors}

    def extra_repr(self) -> str:
        """The options, for ``repr``."""
        synced = {"sync": True} if self.sync else {}
        return ", ".join(f"{k}={v!r}" for k, v in {**self._options(), **synced}.items())


def check_size(name: str, own: Tensor, runs: Sequence[int], labels: int) -> None:
    """Refuse numbers (runs, labels) that are for other runs or labels. One for all labels of a run has size 1."""
    if own.ndim and own.shape[-1] != labels and (own.ndim, own.shape[-1]) != (2, 1):
        raise InputError(f"{name} has {own.shape[-1]} numbers: the logits have {labels} labels")
    if own.ndim > 1 and tuple(own.shape[:-1]) != tuple(runs[1 - own.ndim :]):
        raise InputError(f"{name} is of {own.shape[0]} runs: the logits have {tuple(runs) or 'none'}")


def leading(runs: int | None, *shape: int) -> tuple[int, ...]:
    """The shape of what is learned once for each run."""
    for name, size in (("runs", runs), *(("labels", size) for size in shape)):
        if size is not None:
            check_whole(name, size)
    return shape if runs is None else (runs, *shape)


def check_types(logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    """Refuse what is no tensor, and logits that are no floats."""
    for name, value in (("logits", logits), ("targets", targets), ("mask", mask), ("weight", weight)):
        if not isinstance(value, Tensor) and (value is not None or name in ("logits", "targets")):
            raise InputError(f"{name} must be a torch.Tensor: it is a {type(value).__name__}")
    if not logits.is_floating_point():
        raise InputError(f"logits are {logits.dtype}: they must be floating-point")


def as_vector(name: str, value: Any) -> Tensor | None:
    """A knob with one number a label as a tensor; None where it is no vector."""
    vector = vector_of(name, value)
    if vector is None:
        return None
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().clone()
    dtype = None if isinstance(value, np.ndarray) and value.dtype.kind == "f" else torch.get_default_dtype()
    return torch.tensor(vector, dtype=dtype)
