"""Metric losses: 1 - score of soft counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from scoreloss.checks import InputError, number_from, one_of
from scoreloss.counts import Sums
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.metric import across_examples, check_metric
from scoreloss.losses.options import check_share
from scoreloss.scores import Score
from scoreloss.start import checked_frequencies
from scoreloss.surrogates import SURROGATES, Surrogate
from scoreloss.torch.base import FunctionLoss, Knob, as_vector, leading
from scoreloss.torch.ops import OPS, widen

INITS = ("given", "prior")
LEARNABLE = ("slope", "offset")

STEEPEST = 30.0
"""A learned slope stays between one over this and this: see ``docs/losses.md``."""


class MetricLoss(FunctionLoss):
    """1 - score of soft counts: any score x surrogate x average.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div), such as
    ``functools.partial(sl.SCORES["fbeta"], beta=2)``. ``average`` is
    "macro", "micro", "samples", "weighted" or None (a vector). ``empty`` says what a label (a row, for
    "samples") without a positive counts as, where the score has tp as a factor: "zero", "skip" or "one".
    ``smoothing`` is added to numerator and denominator, of such a label too unless it is skipped or one.
    ``knobs`` belong to the surrogate: ``slope`` and ``offset`` (numbers or one a label) to "sigmoid", ``scale`` to
    "amplify", ``prior``, ``mu`` and ``delta`` to "cdf"; "linear" and "hinge" have none.

    ``learnable`` names knobs of "sigmoid" to be learned ("slope", "offset" or both), from the values given: one
    number, or one a label where a vector is given; ``runs`` makes it one set for each run of a stack.
    ``init="prior"`` sets the offsets to logit(f) / slope of the label ``frequencies`` f, so that a logit of 0 says
    them: for a head without a bias.

    ``sync``: the counts (for "samples" the mean over rows) are those of the examples of all processes of
    ``torch.distributed``; the gradient is right once it is averaged over them, as DDP and FSDP do. See ``docs/scale.md``.
    ``momentum`` m scores a running mean of the counts, (1 - m) sum of m^s counts s steps ago, so that a batch that is
    too small for a score borrows from those before it; only this batch has a gradient. In ``eval()`` mode the counts
    are the batch's own. It is no option of "samples", whose rows are whole.

    >>> loss = MetricLoss("jaccard", slope=2.0)
    >>> loss(torch.tensor([[9.0, -9.0], [9.0, 9.0]]), torch.tensor([[1, 0], [1, 1]])).item() < 1e-6
    True
    """

    definition = DEFINITIONS["metric_loss"]
    sums = ("running", "steps")

    log_slope: nn.Parameter
    offset: nn.Parameter
    running: Tensor
    steps: Tensor

    def __init__(
        self,
        score: str | Score = "f1",
        *,
        surrogate: str = "sigmoid",
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
        learnable: str | Sequence[str] = (),
        init: str = "given",
        frequencies: ArrayLike | None = None,
        sync: bool = False,
        momentum: float = 0.0,
        runs: int | None = None,
        **knobs: Any,
    ) -> None:
        check_share("momentum", momentum)
        if momentum and average == "samples":
            raise InputError(
                f"momentum is {momentum:g}: average 'samples' scores whole rows, so it must be 0"
            )
        one_of("init", init, INITS)
        if init == "prior":
            knobs["offset"] = _prior_offset(knobs, frequencies)
        elif frequencies is not None:
            raise InputError("frequencies are given, but init is 'given': they are for init='prior'")
        knobs = check_metric(score, surrogate, average, empty, smoothing, knobs)
        learned = _learned(learnable, surrogate, knobs)
        super().__init__(
            score=score,
            surrogate=surrogate,
            average=average,
            empty=empty,
            smoothing=smoothing,
            **{name: knob for name, knob in knobs.items() if name not in learned},
        )
        for name in learned:
            start = _start(name, knobs[name], runs)
            self.register_parameter("log_slope" if name == "slope" else name, nn.Parameter(start))
        self._learned = learned
        self.sync = sync
        self.momentum = momentum
        if momentum:
            self.register_buffer("running", torch.empty(0))
            # Not a scalar: compiled, one of float64 is not updated (torch 2.13).
            self.register_buffer("steps", torch.zeros(1))

    def _sized(self) -> list[str]:
        return [*super()._sized(), *("log_slope" if name == "slope" else name for name in self._learned)]

    @property
    def is_bounded(self) -> bool:
        """Whether the surrogate keeps all counts at or above zero."""
        return self._kind.bounded

    @property
    def surrogate_name(self) -> str:
        """The name of the surrogate."""
        name: str = self._fixed["surrogate"]
        return name

    def plain_knobs(self) -> dict[str, Any]:
        """The knobs of the surrogate as they are now, tensors as arrays."""
        knobs = self._knobs().items()
        return {k: v.detach().cpu().double().numpy() if isinstance(v, Tensor) else v for k, v in knobs}

    @property
    def _kind(self) -> Surrogate:
        return SURROGATES[self.surrogate_name]

    def _options(self, dtype: torch.dtype | None = None) -> dict[str, Any]:
        options = super()._options(dtype)
        for name in self._learned:
            if name == "slope":  # between two bounds that it never reaches
                limit = math.log(STEEPEST)
                options[name] = torch.exp(limit * torch.tanh(self.log_slope / limit)).to(dtype)
            else:
                options[name] = self.offset.to(dtype)
        return options

    def _knobs(self, dtype: torch.dtype | None = None) -> Mapping[str, Any]:
        options = self._options(dtype)
        return {name: options[name] for name in self._kind.knobs}

    def _of_batch(
        self, logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> dict[str, Any]:
        return {"carry": self._carry} if self.momentum and self.training else {}

    def _carry(self, *sums: Any) -> Sums:
        """The running mean of the sums, with the gradient of this batch's."""
        numbers = (torch.as_tensor(part, dtype=sums[0].dtype, device=sums[0].device) for part in sums)
        now = torch.stack(torch.broadcast_tensors(*numbers))
        with torch.no_grad():
            if not self.running.numel():
                self.running = torch.zeros_like(now)
            if self.running.shape != now.shape:
                raise InputError(
                    f"logits need running counts of shape {tuple(now.shape)}: those so far have "
                    f"{tuple(self.running.shape)}"
                )
            self.running.mul_(self.momentum).add_(now)
            self.steps.mul_(self.momentum).add_(1)
            mean = (self.running / self.steps).to(now.dtype)
        return (mean + (now - now.detach())).unbind()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Running counts take the shape they were saved in."""
        saved = state_dict.get(f"{prefix}running")
        if self.momentum and saved is not None:
            self.running = torch.zeros_like(saved, device=self.running.device)
        super()._load_from_state_dict(state_dict, prefix, *others)

    @property
    def boundary(self) -> Any:
        """The logit where the surrogate says 1/2: a number, or one a label."""
        boundary = self._kind.boundary(**self._knobs())
        return boundary.detach() if isinstance(boundary, Tensor) else boundary

    def surrogate(self, logits: Tensor) -> Tensor:
        """What stands in for "predicted positive" (``hinge``: the mean of its two sides)."""
        knobs = {name: across_examples(knob) for name, knob in self._knobs().items()}
        on_positives: Tensor
        on_positives, on_negatives = self._kind.stand_in(OPS, widen(logits), **knobs)
        return torch.div(on_positives + on_negatives, 2)


def _learned(learnable: str | Sequence[str], surrogate: str, knobs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the knobs that are learned."""
    may = [knob for knob in LEARNABLE if knob in knobs]
    if not isinstance(learnable, str | Sequence):
        raise InputError(f"learnable is {learnable!r}: it must be {' or '.join(may)}, or both in a list")
    names = (learnable,) if isinstance(learnable, str) else tuple(learnable)
    for name in names:
        if not may:
            raise InputError(f"learnable is {name!r}: the {surrogate} surrogate has nothing to learn")
        one_of("learnable", name, may)
    return names


def _prior_offset(knobs: Mapping[str, Any], frequencies: ArrayLike | None) -> Tensor:
    """logit(f) / slope: S(0) is f."""
    if "offset" in knobs:
        raise InputError("offset is given, and init is 'prior', which sets it: leave one of them out")
    f = checked_frequencies(np.nan if frequencies is None else frequencies)
    slope = torch.as_tensor(knobs.get("slope", 1.0))
    return torch.from_numpy(np.log(f / (1 - f))).to(torch.get_default_dtype()) / slope


def _start(name: str, value: Any, runs: int | None) -> Tensor:
    """Where a learned knob starts: as it was given, once for each run."""
    start = as_vector(name, value)
    if start is None:
        start = torch.tensor(float(value))
        shape: tuple[int, ...] = () if runs is None else leading(runs, 1)
    else:
        shape = leading(runs, len(start))
    if name == "slope":
        inside = (start > 1 / STEEPEST) & (start < STEEPEST)
        if not bool(inside.all()):
            raise InputError(
                f"slope is {value!r}: a learned one must lie between 1/{STEEPEST:g} and {STEEPEST:g}"
            )
        limit = math.log(STEEPEST)
        start = limit * torch.atanh(torch.log(start) / limit)
    return start.expand(shape).clone()


class _SmoothScore(MetricLoss):
    def __init__(
        self,
        *,
        slope: Knob = 1.0,
        offset: Knob | None = None,
        average: str | None = "macro",
        **options: Any,
    ) -> None:
        if offset is not None:
            options["offset"] = offset
        super().__init__(self.definition.fixed["score"], average=average, slope=slope, **options)


class SigmoidF1(_SmoothScore):
    """1 - F1 on counts of S(z) = sigmoid(slope (z + offset)): the paper's loss. Options as of ``MetricLoss``.

    >>> SigmoidF1()(torch.zeros(4, 3), torch.ones(4, 3)).item()  # tp = fn = 2: F1 = 4 / 6
    0.3333333134651184
    """

    definition = DEFINITIONS["sigmoid_f1"]


class SmoothAccuracy(_SmoothScore):
    """1 - (tp + tn) / n on sigmoid counts."""

    definition = DEFINITIONS["smooth_accuracy"]


class SmoothPrecision(_SmoothScore):
    """1 - tp / (tp + fp) on sigmoid counts."""

    definition = DEFINITIONS["smooth_precision"]


class SmoothNPV(_SmoothScore):
    """1 - tn / (tn + fn) on sigmoid counts."""

    definition = DEFINITIONS["smooth_npv"]


class SmoothRecall(_SmoothScore):
    """1 - tp / (tp + fn) on sigmoid counts."""

    definition = DEFINITIONS["smooth_recall"]


class SmoothSpecificity(_SmoothScore):
    """1 - tn / (tn + fp) on sigmoid counts."""

    definition = DEFINITIONS["smooth_specificity"]


class UnboundedF1(MetricLoss):
    """1 - F1 with the logit itself in place of "predicted positive", the denominator held at 1e-7 or more.

    It has no minimum: logits far below zero on the negatives make it as low as one likes, and training
    may diverge. It stands here because the paper compares it.
    """

    definition = DEFINITIONS["unbounded_f1"]

    def __init__(
        self,
        *,
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
        sync: bool = False,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(
            **self.definition.fixed,
            average=average,
            empty=empty,
            smoothing=smoothing,
            sync=sync,
            momentum=momentum,
        )


class SoftF1(MetricLoss):
    """1 - F1 on counts of sigmoid(z): ``SigmoidF1`` at slope 1 and offset 0."""

    definition = DEFINITIONS["soft_f1"]

    def __init__(
        self,
        *,
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
        sync: bool = False,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(
            **self.definition.fixed,
            average=average,
            empty=empty,
            smoothing=smoothing,
            sync=sync,
            momentum=momentum,
        )


class DoubleSoftF1(MetricLoss):
    """1 - the mean of the soft F1 of the positives and that of the negatives."""

    definition = DEFINITIONS["double_soft_f1"]

    def __init__(
        self,
        *,
        average: str | None = "macro",
        smoothing: float = 0.0,
        sync: bool = False,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(
            **self.definition.fixed,
            average=average,
            smoothing=smoothing,
            sync=sync,
            momentum=momentum,
        )


class MFC(MetricLoss):
    """1 - micro F1 on counts of S(z) = sigmoid(slope (z + offset)), the offset of each label learned."""

    learns = True

    def __init__(
        self,
        labels: int,
        *,
        slope: float = 1.0,
        sync: bool = False,
        momentum: float = 0.0,
        runs: int | None = None,
    ) -> None:
        number_from("slope", slope, 0, strict=True)
        leading(None, labels)
        super().__init__(
            "f1",
            average="micro",
            slope=slope,
            offset=[0.0] * labels,
            learnable="offset",
            sync=sync,
            momentum=momentum,
            runs=runs,
        )
