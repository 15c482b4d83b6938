"""The losses in PyTorch: its ``Ops``, thin ``nn.Module`` classes, and the start of a head.

    loss = SigmoidF1()
    loss(model(x), y).backward()

Every loss takes logits (..., n, c) and targets (n, c) or of the same shape, and returns a scalar; with leading
axes, one loss a run. ``loss.boundary`` is the logit where the loss itself puts positive, and
``loss.scores(logits)`` is 1/2 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
except ImportError as missing:
    raise ImportError("scoreloss.torch needs PyTorch: pip install 'scoreloss[torch]'") from missing

from scoreloss import losses
from scoreloss.checks import InputError, number_from, one_of
from scoreloss.ops import Ops
from scoreloss.scores import Score
from scoreloss.surrogates import SURROGATES, logits_where

Floats = NDArray[np.float64]

Knob = float | Sequence[float] | Tensor
"""A number, or a vector with one a label."""


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _widen(x: Tensor) -> Tensor:
    return x.to(_wide(x.dtype))


OPS = Ops(
    widen=_widen,
    cast=lambda x, like: torch.as_tensor(x, dtype=like.dtype, device=like.device),
    sum=lambda x, axis, keepdims=False: torch.sum(x, dim=axis, keepdim=keepdims),
    where=torch.where,
    clip=torch.clamp,
    ones_like=torch.ones_like,
    stop_gradient=lambda x: x.detach(),
    sigmoid=torch.sigmoid,
    softplus=lambda x: F.softplus(x, threshold=40),
    exp=torch.exp,
    log=torch.log,
    sqrt=torch.sqrt,
    sin=torch.sin,
)


class Loss(nn.Module):
    """A function of ``losses`` with its options; vectors among them move with the module."""

    def __init__(self, function: Callable[..., Tensor], **options: Any) -> None:
        super().__init__()
        self._function = function
        self._fixed: dict[str, Any] = {}
        self._vectors: list[str] = []
        for name, value in options.items():
            if isinstance(value, (Tensor, np.ndarray, Sequence)) and not isinstance(value, str):
                self.register_buffer(name, _vector(name, value), persistent=False)
                self._vectors.append(name)
            else:
                self._fixed[name] = value

    @property
    def boundary(self) -> Any:
        """The logit at and above which the loss itself says positive: a number, or one a label."""
        return 0.0

    def scores(self, logits: Tensor) -> Tensor:
        """sigmoid(logits - boundary): rises with the logit, 1/2 at the boundary. To be compared with thresholds."""
        return torch.sigmoid(_widen(logits) - self.boundary)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The loss of logits (..., n, c): a scalar, or one a run (see ``losses`` for mask and weight)."""
        check_shapes(logits, targets, mask, weight)
        options = self._options(_wide(logits.dtype))
        return self._function(OPS, logits, targets, mask=mask, weight=weight, **options)

    def _options(self, dtype: torch.dtype | None = None) -> dict[str, Any]:
        vectors = {name: getattr(self, name).to(dtype) for name in self._vectors}
        return {**self._fixed, **vectors}

    def extra_repr(self) -> str:
        """The options, for ``repr``."""
        return ", ".join(f"{k}={v!r}" for k, v in self._options().items())


class MetricLoss(Loss):
    """1 - score of soft counts: any score x surrogate x average.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div). ``average`` is
    "macro", "micro", "samples", "weighted" or None (a vector). ``empty`` says what a label (a row, for
    "samples") without a positive counts as, where the score has tp as a factor: "zero", "skip" or "one".
    ``smoothing`` is added to numerator and denominator. ``knobs`` belong to the surrogate: ``slope`` and
    ``offset`` (numbers or one a label) to "sigmoid", ``scale`` to "amplify", ``prior``, ``mu`` and ``delta``
    to "cdf"; "linear" and "hinge" have none.

    >>> loss = MetricLoss("jaccard", slope=2.0)
    >>> loss(torch.tensor([[9.0, -9.0], [9.0, 9.0]]), torch.tensor([[1, 0], [1, 1]])).item() < 1e-6
    True
    """

    def __init__(
        self,
        score: str | Score = "f1",
        *,
        surrogate: str = "sigmoid",
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
        **knobs: Any,
    ) -> None:
        knobs = losses.check_metric(score, surrogate, average, empty, smoothing, knobs)
        super().__init__(
            losses.metric_loss,
            score=score,
            surrogate=surrogate,
            average=average,
            empty=empty,
            smoothing=smoothing,
            **knobs,
        )
        self._kind = SURROGATES[surrogate]

    def _knobs(self) -> Mapping[str, Any]:
        options = self._options()
        return {name: options[name] for name in self._kind.knobs}

    @property
    def boundary(self) -> Any:
        """The logit where the surrogate says 1/2: a number, or one a label."""
        return self._kind.boundary(**self._knobs())

    def surrogate(self, logits: Tensor) -> Tensor:
        """What stands in for "predicted positive" (``hinge``: the mean of its two sides)."""
        on_positives: Tensor
        on_positives, on_negatives = self._kind.stand_in(OPS, _widen(logits), **self._knobs())
        return torch.div(on_positives + on_negatives, 2)


class _SmoothScore(MetricLoss):
    _score: ClassVar[str]

    def __init__(
        self,
        *,
        slope: Knob = 1.0,
        offset: Knob = 0.0,
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            self._score,
            average=average,
            empty=empty,
            smoothing=smoothing,
            slope=slope,
            offset=offset,
        )


class SigmoidF1(_SmoothScore):
    """1 - F1 on counts of S(z) = sigmoid(slope (z + offset)): the paper's loss.

    >>> SigmoidF1()(torch.zeros(4, 3), torch.ones(4, 3)).item()  # tp = fn = 2: F1 = 4 / 6
    0.3333333134651184
    """

    _score = "f1"


class SmoothAccuracy(_SmoothScore):
    """1 - (tp + tn) / n on sigmoid counts."""

    _score = "accuracy"


class SmoothPrecision(_SmoothScore):
    """1 - tp / (tp + fp) on sigmoid counts."""

    _score = "precision"


class SmoothNPV(_SmoothScore):
    """1 - tn / (tn + fn) on sigmoid counts."""

    _score = "npv"


class SmoothRecall(_SmoothScore):
    """1 - tp / (tp + fn) on sigmoid counts."""

    _score = "recall"


class SmoothSpecificity(_SmoothScore):
    """1 - tn / (tn + fp) on sigmoid counts."""

    _score = "specificity"


class UnboundedF1(MetricLoss):
    """1 - F1 with the logit itself in place of "predicted positive", the denominator held at 1e-7 or more.

    It has no minimum: logits far below zero on the negatives make it as low as one likes, and training
    may diverge. It stands here because the paper compares it.
    """

    def __init__(
        self,
        *,
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
    ) -> None:
        super().__init__("f1", surrogate="linear", average=average, empty=empty, smoothing=smoothing)


class _EntryLoss(Loss):
    def __init__(self, function: Callable[..., Tensor], reduction: str, **options: Any) -> None:
        one_of("reduction", reduction, losses.REDUCTIONS)
        super().__init__(function, reduction=reduction, **options)


class BCE(_EntryLoss):
    """Binary cross-entropy with logits; ``pos_weight`` (a number or one a label) weighs the positives."""

    def __init__(self, *, pos_weight: Knob | None = None, reduction: str = "mean") -> None:
        super().__init__(losses.bce, reduction, pos_weight=pos_weight)


class Focal(_EntryLoss):
    """Focal loss: cross-entropy in which entries that are nearly right count less.

    ``alpha`` (None: no weighing of the sides) and ``gamma`` may be numbers or vectors with one a label.
    """

    def __init__(
        self,
        *,
        alpha: Knob | None = 0.25,
        gamma: Knob = 2.0,
        reduction: str = "mean",
    ) -> None:
        _check_power("gamma", gamma)
        super().__init__(losses.focal, reduction, alpha=alpha, gamma=gamma)


class Asymmetric(_EntryLoss):
    """ASL: focal weights that differ between the sides and carry no gradient; easy negatives are dropped.

    The mean over entries; ``reduction="sum"`` is the authors' own.
    """

    def __init__(
        self,
        *,
        gamma_neg: Knob = 4.0,
        gamma_pos: Knob = 1.0,
        clip: float = 0.05,
        reduction: str = "mean",
    ) -> None:
        _check_power("gamma_neg", gamma_neg)
        _check_power("gamma_pos", gamma_pos)
        number_from("clip", clip, 0)
        super().__init__(
            losses.asymmetric,
            reduction,
            gamma_neg=gamma_neg,
            gamma_pos=gamma_pos,
            clip=clip,
        )


LOSSES: dict[str, Callable[[], Loss]] = {
    "bce": BCE,
    "focal": Focal,
    "asymmetric": Asymmetric,
    "unbounded_f1": UnboundedF1,
    "sigmoid_f1": SigmoidF1,
    "smooth_accuracy": SmoothAccuracy,
    "smooth_precision": SmoothPrecision,
    "smooth_npv": SmoothNPV,
    "smooth_recall": SmoothRecall,
    "smooth_specificity": SmoothSpecificity,
}
"""The losses by the names that the command line takes."""


class Head(Protocol):
    """The last layer: an ``nn.Linear``, or a stack of them with leading run axes."""

    weight: Any  # (..., labels, features)
    bias: Any  # (..., labels)


class StackedLinear(nn.Module):
    """Linear heads side by side, one a run: features (n, d) or (runs, n, d) to logits (runs, n, c)."""

    def __init__(self, runs: int, in_features: int, out_features: int) -> None:
        super().__init__()
        bound = in_features**-0.5
        shape = (runs, out_features, in_features)
        self.weight = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(shape[:2]).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """The logits of every run."""
        return features @ self.weight.mT + self.bias.unsqueeze(-2)


@torch.no_grad()
def start_at_priors(
    head: Head,
    frequencies: ArrayLike | Tensor,
    loss: Loss | None = None,
    *,
    seed: int | Sequence[int] = 0,
) -> None:
    """Start a head where it predicts each label's frequency: the start decides what a metric loss reaches.

    The bias is set so that ``loss.surrogate`` (``loss.scores`` where there is none; sigmoid without a loss)
    equals the frequencies, (c,) or one row a run, and the weights are redrawn at a tenth of
    ``nn.Linear``'s own scale. ``seed`` is one number, or one a run.
    ``scoreloss.label_frequencies(targets)`` gives frequencies that are never 0 or 1.
    """
    if getattr(head, "bias", None) is None:
        raise InputError("head has no bias: start_at_priors needs one, or a learned offset")
    wanted = np.asarray(frequencies, np.float64)
    labels, features = head.weight.shape[-2:]
    if wanted.shape[-1:] != (labels,):
        raise InputError(f"frequencies have shape {wanted.shape}: the head has {labels} labels")
    if not ((wanted > 0) & (wanted < 1)).all():
        raise InputError(
            "frequencies must lie between 0 and 1, exclusive: take scoreloss.label_frequencies(targets)"
        )
    bias, steepness = _start_of(wanted, loss)
    head.bias.copy_(torch.from_numpy(bias))
    bound = 0.1 * features**-0.5 * np.minimum(1, GENTLE / steepness)
    bounds = torch.from_numpy(np.broadcast_to(bound, head.bias.shape).copy()).view(-1, labels, 1)
    stack = head.weight.view(-1, labels, features)
    seeds = [seed] * len(stack) if isinstance(seed, int) else list(seed)
    if len(seeds) != len(stack):
        raise InputError(f"seed has {len(seeds)} numbers: the head has {len(stack)} runs")
    for weight, within, run_seed in zip(stack, bounds, seeds, strict=True):
        generator = torch.Generator().manual_seed(run_seed)
        drawn = torch.rand(labels, features, generator=generator, dtype=torch.float64)
        weight.copy_((2 * drawn - 1) * within)


GENTLE = 50.0
"""A surrogate steeper than a sigmoid of this slope would be flat at nearly all logits that weights of a tenth of
the usual scale give: it gets smaller ones, so that no start is without gradient."""


def _start_of(frequencies: Floats, loss: Loss | None) -> tuple[Floats, Floats]:
    """The logits where a loss says the frequencies, and the slope of the sigmoid that is as steep there."""
    says: Callable[[Tensor], Tensor] = torch.sigmoid
    if loss is not None:
        says = loss.surrogate if isinstance(loss, MetricLoss) else loss.scores

    def rises(z: Floats) -> Floats:
        return np.asarray(says(torch.from_numpy(z)).numpy())

    z = logits_where(rises, frequencies)
    near = 1e-6
    gained = (rises(z + near) - rises(z - near)) / (2 * near)
    return z, gained / (frequencies * (1 - frequencies))


def check_shapes(logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    """Refuse logits, targets, mask and weight whose types or shapes do not fit."""
    if not logits.is_floating_point():
        raise InputError(f"logits are {logits.dtype}: they must be floating-point")
    if logits.ndim < 2:
        raise InputError(f"logits have shape {tuple(logits.shape)}: they must have (..., examples, labels)")
    if targets.ndim < 2 or targets.shape != logits.shape[-targets.ndim :]:
        raise InputError(
            f"targets have shape {tuple(targets.shape)}: logits of {tuple(logits.shape)} need "
            f"{tuple(logits.shape[-2:])} or their own"
        )
    for name, extra in (("mask", mask), ("weight", weight)):
        if extra is not None and not _broadcasts(extra.shape, logits.shape):
            raise InputError(
                f"{name} has shape {tuple(extra.shape)}: it must broadcast against {tuple(logits.shape)}"
            )


def _broadcasts(shape: Sequence[int], full: Sequence[int]) -> bool:
    return len(shape) <= len(full) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False)
    )


def _vector(name: str, value: Any) -> Tensor:
    vector = torch.as_tensor(value)
    if not vector.is_floating_point():
        vector = vector.to(torch.get_default_dtype())
    return vector.detach().clone()


def _check_power(name: str, value: Knob) -> None:
    if not bool((torch.as_tensor(value) >= 0).all()):
        raise InputError(f"{name} is {value!r}: it must be at least 0")
