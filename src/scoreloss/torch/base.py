"""What every loss module shares: options, shapes, boundary and scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scoreloss.checks import InputError, number_from, one_of
from scoreloss.losses.metric import across_examples
from scoreloss.losses.shared import REDUCTIONS
from scoreloss.torch.ops import wide, widen
from scoreloss.torch.sync import ops_for

Floats = NDArray[np.float64]

Knob = float | Sequence[float] | Tensor
"""A number, or a vector with one a label."""


class Loss(nn.Module):
    """What every loss has: a boundary, scores, and the shape of the logits it takes."""

    only_ranks: ClassVar[bool] = False
    """Whether the loss says nothing of where "positive" begins, and so has no boundary."""

    learns: ClassVar[bool] = False
    """Whether the loss has parameters of its own, for so many labels."""

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], runs: int | None = None) -> Self:
        """The loss with its defaults for such targets (n, c); what it learns, once for each of ``runs``."""
        make: Callable[..., Self] = cls
        return make(targets.shape[1], runs=runs) if cls.learns else make()

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
        boundary = self.boundary
        return torch.sigmoid(widen(logits) - (0.0 if boundary is None else across_examples(boundary)))


class FunctionLoss(Loss):
    """A function of ``scoreloss.losses`` with its options; vectors among them move with the module."""

    weighs_examples_only: ClassVar[bool] = False

    sync: bool = False
    """Whether the batch is that of all processes of ``torch.distributed``."""

    def __init__(self, function: Callable[..., Tensor], **options: Any) -> None:
        super().__init__()
        self._function = function
        self._fixed: dict[str, Any] = {}
        self._vectors: list[str] = []
        for name, value in options.items():
            vector = as_vector(name, value)
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
        for name in self._vectors:
            if len(getattr(self, name)) != targets.shape[-1]:
                raise InputError(
                    f"{name} has {len(getattr(self, name))} numbers: the logits have {targets.shape[-1]} labels"
                )
        options = {**self._options(wide(logits.dtype)), **self._of_batch(logits, targets, mask, weight)}
        return self._function(ops_for(sync=self.sync), logits, targets, mask=mask, weight=weight, **options)

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
        check_types(logits, targets, mask, weight)
        check_shapes(logits.shape, targets, mask, weight)
        if self.weighs_examples_only and weight is not None and weight.shape[-1:] != (1,):
            raise InputError(
                f"weight has shape {tuple(weight.shape)}: {type(self).__name__} ranks whole labels, so weights are "
                f"those of examples, ({logits.shape[-2]}, 1)"
            )

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


class ReducedLoss(FunctionLoss):
    """A loss of entries or of rows, with a ``reduction``."""

    def __init__(self, function: Callable[..., Tensor], reduction: str, **options: Any) -> None:
        one_of("reduction", reduction, REDUCTIONS)
        super().__init__(function, reduction=reduction, **options)


def leading(runs: int | None, *shape: int) -> tuple[int, ...]:
    """The shape of what is learned once for each run."""
    for name, size in (("runs", runs), *(("labels", size) for size in shape)):
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InputError(f"{name} is {size!r}: it must be a whole number above 0")
    return shape if runs is None else (runs, *shape)


def check_types(logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    """Refuse what is no tensor, and logits that are no floats."""
    for name, value in (("logits", logits), ("targets", targets), ("mask", mask), ("weight", weight)):
        if not isinstance(value, Tensor) and (value is not None or name in ("logits", "targets")):
            raise InputError(f"{name} must be a torch.Tensor: it is a {type(value).__name__}")
    if not logits.is_floating_point():
        raise InputError(f"logits are {logits.dtype}: they must be floating-point")


def check_shapes(shape: Sequence[int], targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    """Refuse targets, mask and weight that do not fit logits of a shape (..., n, c)."""
    if len(shape) < 2:
        raise InputError(f"logits have shape {tuple(shape)}: they must have (..., examples, labels)")
    if targets.ndim < 2 or targets.shape != shape[-targets.ndim :]:
        raise InputError(
            f"targets have shape {tuple(targets.shape)}: logits of {tuple(shape)} need "
            f"{tuple(shape[-2:])} or their own"
        )
    for name, extra in (("mask", mask), ("weight", weight)):
        if extra is not None and not _broadcasts(extra.shape, shape):
            raise InputError(
                f"{name} has shape {tuple(extra.shape)}: it must broadcast against {tuple(shape)}"
            )


def _broadcasts(shape: Sequence[int], full: Sequence[int]) -> bool:
    return len(shape) <= len(full) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False)
    )


def as_vector(name: str, value: Any) -> Tensor | None:
    """An option that is a vector, as a tensor; None for any other. A knob is a number or one a label."""
    if not isinstance(value, (Tensor, np.ndarray, Sequence)) or isinstance(value, str):
        return None
    try:
        vector = torch.as_tensor(value).detach().clone()
    except (TypeError, ValueError, RuntimeError):
        vector = torch.empty(0, 0)
    if vector.ndim != 1 or vector.is_complex():
        shape = f"shape {tuple(vector.shape)}" if vector.numel() else f"{value!r}"
        raise InputError(f"{name} has {shape}: it must be a number, or a vector with one for each label")
    return vector if vector.is_floating_point() else vector.to(torch.get_default_dtype())


def check_knob(name: str, value: Knob | None, high: float = math.inf) -> None:
    """Refuse what is not a finite number from 0 to ``high``, or a vector of such."""
    vector = as_vector(name, value)
    if vector is None:
        number_from(name, value, 0)
        vector = torch.tensor([float(value)])  # type: ignore[arg-type]
    if not bool((torch.isfinite(vector) & (vector >= 0) & (vector <= high)).all()):
        bound = "at least 0" if high == math.inf else f"from 0 to {high:g}"
        raise InputError(f"{name} is {value!r}: its numbers must be {bound}")


def check_share(name: str, value: float, *, strict: bool = False) -> None:
    """Refuse what is not a number from 0 (above it if ``strict``) to 1, 1 left out."""
    number_from(name, value, 0, strict=strict)
    if value >= 1:
        raise InputError(f"{name} is {value!r}: it must lie below 1")
