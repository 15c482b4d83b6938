"""The losses in PyTorch: its ``Ops``, thin ``nn.Module`` classes, and the start of a head.

    loss = SigmoidF1()
    loss(model(x), y).backward()

Every loss takes logits (..., n, c) and targets (n, c) or of the same shape, and returns a scalar; with leading
axes, one loss a run. ``loss.boundary`` is the logit where the loss itself puts positive, and
``loss.scores(logits)`` is 1/2 there.
"""

from __future__ import annotations

import math
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
from scoreloss.surrogates import SURROGATES, Surrogate, logits_where

Floats = NDArray[np.float64]

Knob = float | Sequence[float] | Tensor
"""A number, or a vector with one a label."""


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _widen(x: Tensor) -> Tensor:
    return x.to(_wide(x.dtype))


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
    widen=_widen,
    cast=lambda x, like: torch.as_tensor(x, dtype=like.dtype, device=like.device),
    sum=lambda x, axis, keepdims=False: torch.sum(x, dim=axis, keepdim=keepdims),
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
            vector = _vector(name, value)
            if vector is None:
                self._fixed[name] = value
            else:
                self.register_buffer(name, vector, persistent=False)
                self._vectors.append(name)

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
        for name in self._vectors:
            if len(getattr(self, name)) != logits.shape[-1]:
                raise InputError(
                    f"{name} has {len(getattr(self, name))} numbers: the logits have {logits.shape[-1]} labels"
                )
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
    ``smoothing`` is added to numerator and denominator, of such a label too unless it is skipped or one.
    ``knobs`` belong to the surrogate: ``slope`` and
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

    @property
    def is_bounded(self) -> bool:
        """Whether the surrogate keeps all counts at or above zero."""
        return self._kind.bounded

    @property
    def _kind(self) -> Surrogate:
        return SURROGATES[self._fixed["surrogate"]]

    def _knobs(self, dtype: torch.dtype | None = None) -> Mapping[str, Any]:
        options = self._options(dtype)
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
        _check_weight("pos_weight", pos_weight)
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
        _check_weight("alpha", alpha)
        _check_weight("gamma", gamma)
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
        _check_weight("gamma_neg", gamma_neg)
        _check_weight("gamma_pos", gamma_pos)
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
    if not (loss is None or isinstance(loss, Loss)):
        raise InputError(f"loss is {loss!r}: it must be a loss of scoreloss.torch, or None")
    wanted = np.asarray(frequencies, np.float64)
    labels, features = head.weight.shape[-2:]
    if wanted.shape not in ((labels,), tuple(head.bias.shape)):
        raise InputError(
            f"frequencies have shape {wanted.shape}: the head has {labels} labels, "
            f"so it takes ({labels},) or {tuple(head.bias.shape)}"
        )
    if not ((wanted > 0) & (wanted < 1)).all():
        raise InputError(
            "frequencies must lie between 0 and 1, exclusive: take scoreloss.label_frequencies(targets)"
        )
    bias, steepness = _start_of(wanted, loss)
    head.bias.copy_(torch.from_numpy(bias))
    bound = 0.1 * features**-0.5 * np.minimum(1, GENTLE / steepness)
    bounds = torch.from_numpy(np.broadcast_to(bound, head.bias.shape).copy()).view(-1, labels, 1)
    stack = head.weight.view(-1, labels, features)
    seeds = list(seed) if isinstance(seed, Sequence | np.ndarray) else [seed] * len(stack)
    if len(seeds) != len(stack):
        raise InputError(f"seed has {len(seeds)} numbers: the head has {len(stack)} runs")
    for weight, within, run_seed in zip(stack, bounds, seeds, strict=True):
        generator = torch.Generator().manual_seed(int(run_seed))
        drawn = torch.rand(labels, features, generator=generator, dtype=torch.float64)
        weight.copy_((2 * drawn - 1) * within)


GENTLE = 50.0
"""A surrogate steeper than a sigmoid of this slope would be flat at nearly all logits that weights of a tenth of
the usual scale give: it gets smaller ones, so that no start is without gradient."""


def _start_of(frequencies: Floats, loss: Loss | None) -> tuple[Floats, Floats]:
    """The logits to start at, and the slope of the sigmoid that is as steep there.

    Where a surrogate cannot say the frequencies, or is flat there, its scores say them instead.
    """
    if isinstance(loss, MetricLoss):
        z, steepness = _where_it_says(loss.surrogate, frequencies)
        if (steepness > 1e-6).all():
            return z, steepness if loss.is_bounded else np.ones_like(z)
    scores = torch.sigmoid if loss is None else loss.scores
    fallback, _ = _where_it_says(scores, frequencies)
    if isinstance(loss, MetricLoss):
        return np.where(steepness > 1e-6, z, fallback), np.maximum(steepness, 1e-6)
    return fallback, np.ones_like(fallback)


def _where_it_says(says: Callable[[Tensor], Tensor], frequencies: Floats) -> tuple[Floats, Floats]:
    def rises(z: Floats) -> Floats:
        return says(torch.from_numpy(z)).numpy()

    z = logits_where(rises, frequencies)
    near = 1e-6
    gained = (rises(z + near) - rises(z - near)) / (2 * near)
    return z, gained / (frequencies * (1 - frequencies))


def check_shapes(logits: Tensor, targets: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    """Refuse logits, targets, mask and weight whose types or shapes do not fit."""
    for name, value in (("logits", logits), ("targets", targets), ("mask", mask), ("weight", weight)):
        if not isinstance(value, Tensor) and (value is not None or name in ("logits", "targets")):
            raise InputError(f"{name} must be a torch.Tensor: it is a {type(value).__name__}")
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


def _vector(name: str, value: Any) -> Tensor | None:
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


def _check_weight(name: str, value: Knob | None) -> None:
    """Refuse what is not a finite number of at least 0, or a vector of such."""
    if isinstance(value, (Tensor, np.ndarray, Sequence)) and not isinstance(value, str):
        vector = _vector(name, value)
        if vector is None or not bool((torch.isfinite(vector) & (vector >= 0)).all()):
            raise InputError(f"{name} is {value!r}: its numbers must be at least 0")
    elif value is not None:
        number_from(name, value, 0)
