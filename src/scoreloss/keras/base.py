"""What every loss of ``scoreloss.keras`` shares: options and their config, weights, boundary and scores."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, ClassVar, Self

import keras
import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import Floats, InputError
from scoreloss.keras.ops import OPS, cast, float_type, widen
from scoreloss.losses.definitions import DEFINITIONS, Definition
from scoreloss.losses.options import KNOBS, vector_of
from scoreloss.ops import Array
from scoreloss.scores import SCORES, Score

register = keras.saving.register_keras_serializable(package="scoreloss")


class Loss(keras.losses.Loss):  # type: ignore[misc]
    """A loss of logits (..., n, c) and targets (n, c), or of the same shape: a scalar; with leading axes, one a run.

    ``sample_weight`` goes into the sums: (n,) or (n, 1) weighs examples, (n, c) entries. ``mask`` is False where a
    label is missing.
    """

    definition: ClassVar[Definition]

    def __init_subclass__(cls, of: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of:
            cls.definition = DEFINITIONS[of]
            register(cls)
            if "__init__" not in vars(cls):
                cls.__signature__ = _signature(cls.definition)

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        self.options = {
            option: _kept(option, value) for option, value in self.definition.checked(options).items()
        }
        super().__init__(name=name, reduction=self.options.get("reduction", "none"))

    def __call__(
        self, y_true: Array, y_pred: Array, sample_weight: Array | None = None, mask: Array | None = None
    ) -> Array:
        """The loss of logits ``y_pred``."""
        return self.call(y_true, y_pred, sample_weight, mask)

    def call(
        self, y_true: Array, y_pred: Array, sample_weight: Array | None = None, mask: Array | None = None
    ) -> Array:
        """The loss of logits ``y_pred``."""
        logits = keras.ops.convert_to_tensor(y_pred)
        if "float" not in float_type(logits):
            raise InputError(f"logits are {float_type(logits)}: they must be floating-point")
        if getattr(y_pred, "_keras_mask", None) is not None:
            raise InputError(
                "logits carry a mask of time steps: give the loss mask= or sample_weight instead"
            )
        logits = widen(logits)
        targets = cast(y_true, logits)
        weight = None if sample_weight is None else as_weight(cast(sample_weight, logits), targets)
        mask = None if mask is None else cast(mask, logits)
        shapes = [None if part is None else tuple(part.shape) for part in (mask, weight)]
        self._check(tuple(logits.shape), tuple(targets.shape), *shapes)
        options = {
            option: cast(value, logits) if isinstance(value, np.ndarray) else value
            for option, value in self.options.items()
        }
        return self.definition.function(
            OPS, logits, targets, mask=mask, weight=weight, **self.definition.fixed, **options
        )

    def _check(self, *shapes: Any) -> None:
        self.definition.check_arguments(*shapes)
        for option, value in self.options.items():
            if isinstance(value, np.ndarray) and len(value) != shapes[1][-1]:
                raise InputError(f"{option} has {len(value)} numbers: the logits have {shapes[1][-1]} labels")

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], **options: Any) -> Self:
        """The loss for such targets (n, c), with these options."""
        return cls(**options)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """The shape of the logits of one example."""
        return (labels,)

    def logits_of(self, label_logits: Floats) -> Floats:
        """Logits (..., outputs) that say of each label what the logits (..., c) of a plain head would."""
        return label_logits

    @property
    def boundary(self) -> Any:
        """The logit at and above which the loss itself says positive (a number, or one a label); None if it only ranks."""
        return None if self.definition.only_ranks else 0.0

    def scores(self, logits: Array) -> Array:
        """sigmoid(logits - boundary): rises with the logit, 1/2 at the boundary. To be compared with thresholds."""
        z = widen(logits)
        return OPS.sigmoid(z - cast(0.0 if self.boundary is None else self.boundary, z))

    def get_config(self) -> dict[str, Any]:
        """The name and the options, as JSON can hold them."""
        return {"name": self.name, **{option: _plain(value) for option, value in self.options.items()}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The loss that ``get_config`` describes."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


def as_weight(weight: Array, targets: Array) -> Array:
    """What Keras calls sample_weight as a weight that broadcasts against the targets: (n,) is one an example."""
    if len(weight.shape) == 0:
        raise InputError(
            "sample_weight is one number: it must be one an example, (n,), or (n, c); a whole loss is scaled by "
            "loss_weights"
        )
    return weight[..., None] if len(weight.shape) == len(targets.shape) - 1 else weight


def score_config(score: str | Score) -> Any:
    """A score as JSON can hold it: its name, a name and its parameters, or a function registered with Keras."""
    if isinstance(score, str):
        return score
    if isinstance(score, partial) and score.func in SCORES.values() and not score.args:
        return {"partial": score.func.__name__, "keywords": score.keywords}
    if keras.saving.get_registered_object(keras.saving.get_registered_name(score)) is None:
        raise InputError(
            f"score {getattr(score, '__name__', score)!r} is a function of yours: to save it, decorate it with "
            "keras.saving.register_keras_serializable()"
        )
    return keras.saving.serialize_keras_object(score)


def score_from(config: Any) -> str | Score:
    """The score that ``score_config`` describes."""
    if isinstance(config, dict) and "partial" in config:
        return partial(SCORES[config["partial"]], **config["keywords"])
    if isinstance(config, dict):
        score: Score = keras.saving.deserialize_keras_object(config)
        return score
    return config  # type: ignore[no-any-return]


def _kept(option: str, value: Any) -> Any:
    if option in KNOBS:
        vector = vector_of(option, value)
        return value if vector is None else vector
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _signature(definition: Definition) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    options = {**definition.options, "name": None}
    return inspect.Signature([inspect.Parameter(o, kind, default=d) for o, d in options.items()])
