"""The start of a head, which decides what a metric loss reaches."""

from __future__ import annotations

from typing import Any, Self

import keras
import numpy as np
from numpy.typing import ArrayLike

from scoreloss.checks import Floats, InputError
from scoreloss.keras.base import Loss, register
from scoreloss.keras.losses import OfCounts
from scoreloss.ops import Array
from scoreloss.start import checked_frequencies, start_of_scores, start_of_surrogate


@register
class PriorBias(keras.initializers.Initializer):  # type: ignore[misc]
    """A bias at which the loss says each label's frequency: the start decides what a metric loss reaches.

    ``loss.surrogate`` equals the frequencies there (``loss.scores`` where there is none; sigmoid without a loss).
    ``scoreloss.label_frequencies(targets)`` gives frequencies that are never 0 or 1. Weights a tenth of torch's usual
    belong to it: ``kernel_initializer=keras.initializers.VarianceScaling(0.01 / 3, "fan_in", "uniform")``.
    """

    def __init__(self, frequencies: ArrayLike, loss: Loss | None = None) -> None:
        if loss is not None and not isinstance(loss, Loss):
            raise InputError(f"loss is {loss!r}: it must be a loss of scoreloss.keras, or None")
        self.frequencies = checked_frequencies(frequencies)
        self.loss = loss

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Array:
        """The bias, in the shape that the layer asks for."""
        bias = self._bias()
        if tuple(shape) != bias.shape:
            raise InputError(
                f"the bias has shape {tuple(shape)}: {self.loss or 'a head'} of "
                f"{self.frequencies.shape[-1]} frequencies takes {bias.shape}"
            )
        return keras.ops.convert_to_tensor(bias, dtype=dtype or keras.config.floatx())

    def _bias(self) -> Floats:
        if isinstance(self.loss, OfCounts):
            return start_of_surrogate(self.frequencies, self.loss.surrogate_name, self.loss.plain_knobs())[0]
        z, _ = start_of_scores(self.frequencies, None if self.loss is None else self.loss.boundary)
        return z if self.loss is None else np.ravel(self.loss.logits_of(z))

    def get_config(self) -> dict[str, Any]:
        """The frequencies and the loss, as JSON can hold them."""
        loss = None if self.loss is None else keras.saving.serialize_keras_object(self.loss)
        return {"frequencies": self.frequencies.tolist(), "loss": loss}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The initializer that ``get_config`` describes."""
        loss = config["loss"] and keras.saving.deserialize_keras_object(config["loss"])
        return cls(config["frequencies"], loss)
