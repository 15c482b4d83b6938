"""A score as a metric that streams over batches, and is that of the whole epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np

from scoreloss.checks import InputError, formula_of, one_of
from scoreloss.counts import AXES, Counts, Weights, division, mean_over_units, unit_shares, weighted_mean
from scoreloss.keras.base import Loss, as_weight, register, score_config, score_from
from scoreloss.keras.ops import OPS, cast, widen
from scoreloss.ops import Array
from scoreloss.scores import Score as Formula


@register
class Score(keras.metrics.Metric):  # type: ignore[misc]
    """Any score of hard decisions on logits, exact over an epoch: not the mean of the scores of batches.

    Positive is where ``loss.scores(logits)`` (sigmoid without a loss) is at or above ``thresholds``, a number or one a
    label: the default is the loss's own boundary, and ``rule.thresholds_`` of a fitted rule fits. ``score`` and
    ``average`` as for ``MetricLoss``; 0/0 is 0. ``sample_weight`` is (n,), (n, 1) or (n, c); a label or row without
    weight leaves the mean. Counts are kept in float32: whole ones are exact up to 2^24 a label.
    """

    def __init__(
        self,
        score: str | Formula = "f1",
        *,
        average: str | None = "macro",
        thresholds: float | Sequence[float] = 0.5,
        loss: Loss | None = None,
        name: str | None = None,
    ) -> None:
        self.formula = formula_of(score)
        one_of("average", average, AXES)
        if loss is not None and not isinstance(loss, Loss):
            raise InputError(f"loss is {loss!r}: it must be a loss of scoreloss.keras, or None")
        self.thresholds = np.asarray(thresholds, np.float64)
        if self.thresholds.ndim > 1 or np.isnan(self.thresholds).any():
            raise InputError(f"thresholds are {thresholds!r}: they must be a number or one a label, none NaN")
        self.score, self.average, self.loss = score, average, loss
        shown = score if isinstance(score, str) else getattr(score, "__name__", "score")
        super().__init__(name=name or (f"{average}_{shown}" if average else shown))
        self._sums: dict[str, Array] = {}

    def update_state(self, y_true: Array, y_pred: Array, sample_weight: Array | None = None) -> None:
        """Count a batch of logits against targets of 0 and 1."""
        z = widen(y_pred)
        scores = OPS.sigmoid(z) if self.loss is None else self.loss.scores(z)
        y = cast(y_true, scores)
        predicted = cast(scores >= cast(self.thresholds.astype(np.float32), scores), scores)
        given = (
            None if sample_weight is None else as_weight(cast(sample_weight, scores), y) * OPS.ones_like(y)
        )
        if self.average == "samples":
            rows, shares = unit_shares(OPS, Weights(None, given, given), "samples")
            values = self.formula(*self._counts(y, predicted, shares, -1), division(OPS))
            rows = OPS.ones_like(values) if rows is None else rows
            self._add({"values": OPS.sum(values * rows, -1), "rows": OPS.sum(rows, -1)})
        else:
            self._add(self._counts(y, predicted, given, -2)._asdict())

    def _counts(self, y: Array, predicted: Array, weight: Array | None, axis: int) -> Counts:
        """Each count summed by itself, so that one that is 0 is exactly 0."""
        w = OPS.ones_like(y) if weight is None else weight
        hits, rest = w * predicted, w * (1 - predicted)
        sums = (hits * y, hits * (1 - y), rest * y, rest * (1 - y))
        return Counts(*(OPS.sum(part, axis) for part in sums))

    def _add(self, parts: dict[str, Array]) -> None:
        for name, part in parts.items():
            if name not in self._sums:
                self._sums[name] = self.add_variable(tuple(part.shape), initializer="zeros", name=name)
            self._sums[name].assign(self._sums[name] + keras.ops.cast(part, self._sums[name].dtype))

    def result(self) -> Array:
        """The score of all that was counted; 0 of nothing."""
        if not self._sums:
            return keras.ops.convert_to_tensor(0.0)
        div = division(OPS)
        if self.average == "samples":
            return div(*(keras.ops.convert_to_tensor(self._sums[name]) for name in ("values", "rows")))
        counts = Counts(*(keras.ops.convert_to_tensor(self._sums[name]) for name in Counts._fields))
        if self.average == "micro":
            counts = Counts(*(OPS.sum(count, -1) for count in counts))
        values = self.formula(*counts, div)
        if self.average == "weighted":
            return weighted_mean(OPS, values, counts.tp + counts.fn)
        seen = counts.tp + counts.fp + counts.fn + counts.tn
        units = OPS.where(seen > 0, OPS.ones_like(seen), 0.0)
        return mean_over_units(OPS, values, units, self.average)

    def get_config(self) -> dict[str, Any]:
        """The name and the options, as JSON can hold them."""
        return {
            "name": self.name,
            "score": score_config(self.score),
            "average": self.average,
            "thresholds": self.thresholds.tolist(),
            "loss": None if self.loss is None else keras.saving.serialize_keras_object(self.loss),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The metric that ``get_config`` describes."""
        loss = config["loss"] and keras.saving.deserialize_keras_object(config["loss"])
        return cls(**{**config, "score": score_from(config["score"]), "loss": loss})
