"""What a fitted model computes with, in numpy alone: a head, a calibration and a rule, all by rows.

Everything is made of arrays, and gives them back to be saved. It knows no backbone and no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.calibrate import Platt
from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.ops import NUMPY, logits_from
from scoreloss.thresholds import ExpectedF1, TopK
from scoreloss.thresholds.rule import at_least

FORMS = ("linear", "relu", "mlp")
"""Of heads, as in ``scoreloss.bench.plan``: ``relu`` takes the positive part of the features first."""

KINDS = ("thresholds", "expected_f1", "top_k")
SIDES = ("scores", "probabilities")

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Head:
    """Features (n, d), dense or sparse, to the scores of a loss (n, c).

    Features are standardised by ``mean`` and ``scale`` (1 / spread, 0 where there is none), and go through ``weights``
    (outputs, inputs) and ``biases`` with ReLU between the layers. A score is sigmoid(logit - boundary); where the head
    gives several logits a label, it is 1 less the softmax of the first (``deep_f``).
    """

    form: str
    mean: Floats
    scale: Floats
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    boundary: Floats

    def __post_init__(self) -> None:
        first = self.weights[0] * self.scale
        folded = first, self.biases[0] - first @ self.mean
        object.__setattr__(self, "_folded", (folded, *zip(self.weights[1:], self.biases[1:], strict=True)))

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.mean)

    @property
    def labels(self) -> int:
        """The number of labels."""
        return len(self.boundary)

    def scores(self, features: Any) -> Floats:
        """``loss.scores`` of every label."""
        layers: Sequence[tuple[Floats, Floats]] = self._folded  # type: ignore[attr-defined]
        dense = isinstance(features, np.ndarray)
        z = features.astype(np.float64, copy=False) if dense else features
        if self.form == "relu":
            z = np.maximum(z, 0) if dense else z.maximum(0)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, (weight, bias) in enumerate(layers):
                z = np.asarray((np.maximum(z, 0) if k else z) @ weight.T) + bias
            z = z.reshape(len(z), self.labels, z.shape[1] // self.labels)
            if z.shape[2] == 1:
                scores = NUMPY.sigmoid(z[:, :, 0] - self.boundary)
            else:
                chances = np.exp(z - z.max(axis=2, keepdims=True))
                scores = 1 - chances[:, :, 0] / chances.sum(axis=2)
        if np.isnan(scores).any():
            row = int(np.argwhere(np.isnan(scores))[0, 0])
            raise InputError(f"inputs[{row}] gives scores that are no numbers: its features are too large")
        return np.asarray(scores, np.float64)

    def arrays(self) -> Arrays:
        """All that it is made of."""
        layers = {f"weight.{k}": weight for k, weight in enumerate(self.weights)}
        layers |= {f"bias.{k}": bias for k, bias in enumerate(self.biases)}
        return {"mean": self.mean, "scale": self.scale, "boundary": self.boundary, **layers}

    @classmethod
    def of(cls, form: str, arrays: Mapping[str, NDArray[Any]], labels: int) -> Self:
        """The head of these arrays; an ``InputError`` where they do not fit together."""
        one_of("head", form, FORMS)
        mean = array_of(arrays, "mean", (None,))
        scale = array_of(arrays, "scale", mean.shape)
        boundary = array_of(arrays, "boundary", (labels,))
        weights: list[Floats] = []
        biases: list[Floats] = []
        inputs, layers = len(mean), sum(name.startswith("weight.") for name in arrays)
        if layers != (2 if form == "mlp" else 1):
            raise InputError(f"the head has {layers} layers: a head of form {form} has another number")
        for k in range(layers):
            weights.append(array_of(arrays, f"weight.{k}", (None, inputs)))
            inputs = len(weights[-1])
            biases.append(array_of(arrays, f"bias.{k}", (inputs,)))
        if inputs == 0 or inputs % labels:
            raise InputError(f"weight.{layers - 1} has {inputs} outputs: there are {labels} labels")
        return cls(form, mean, scale, tuple(weights), tuple(biases), boundary)


@dataclass(frozen=True, eq=False)
class Decision:
    """The rule: which labels an example has, from its scores or its probabilities alone."""

    kind: str
    on: str
    thresholds: Floats | None = None
    """One a label, where the rule is one of thresholds; inf predicts nothing."""

    def decide(self, scores: Floats, chances: Floats) -> Booleans:
        """Scores and probabilities (n, c) to booleans."""
        rated = scores if self.on == "scores" else chances
        if self.kind == "thresholds":
            return at_least(rated, self.thresholds)
        rule = ExpectedF1() if self.kind == "expected_f1" else TopK("count")
        return rule.predict(rated)

    @classmethod
    def of(cls, kind: str, on: str, arrays: Mapping[str, NDArray[Any]], labels: int) -> Self:
        """The rule of these arrays; an ``InputError`` where they do not fit together."""
        one_of("rule.kind", kind, KINDS)
        one_of("rule.on", on, SIDES)
        if kind != "thresholds":
            if on != "probabilities":
                raise InputError(f"rule.on is {on!r}: a rule of kind {kind} decides on probabilities")
            return cls(kind, on)
        return cls(kind, on, array_of(arrays, "thresholds", (labels,), finite=False))


def calibration_of(arrays: Mapping[str, NDArray[Any]], labels: int) -> Platt:
    """The calibration of these arrays."""
    return Platt(*(array_of(arrays, f"platt.{name}", (labels,)) for name in ("slopes", "intercepts")))


def chances_of(calibration: Platt, scores: Floats) -> Floats:
    """The probabilities of scores."""
    with np.errstate(over="ignore"):
        return calibration.predict(logits_from(scores))


def array_of(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int | None, ...], *, finite: bool = True
) -> Floats:
    """An array that must have a shape (None: any length above 0), floats, and no NaN; as float64."""
    if name not in arrays:
        raise InputError(f"{name} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        size > 0 if wanted is None else size == wanted
        for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or array.dtype not in (np.float32, np.float64):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise InputError(
            f"{name} has shape {array.shape} and type {array.dtype}: floats of {wanted} are needed"
        )
    if not (np.isfinite(array).all() if finite else not np.isnan(array).any()):
        raise InputError(f"{name} holds NaN{' or infinity' if finite else ''}: it must hold numbers")
    return array.astype(np.float64)
