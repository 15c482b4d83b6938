"""A fitted model: inputs to label sets, scores, probabilities and the F1 that is expected. It never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.calibrate import Platt
from scoreloss.checks import Booleans, Floats, InputError
from scoreloss.decode import expected_f1
from scoreloss.model.features import Features
from scoreloss.model.numbers import Decision, Head, chances_of


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of n examples and c labels."""

    label_names: tuple[str, ...]
    decided: Booleans
    """(n, c): the labels that each example has."""
    scores: Floats
    """(n, c): the scores of the loss, 1/2 at its own boundary."""
    probabilities: Floats
    """(n, c): the scores, calibrated on validation data."""
    expected_f1: Floats
    """(n,): the F1 to be expected of what was decided, if the probabilities are true and labels independent."""
    on: str = "scores"
    """Which of the two the rule compares with its thresholds."""

    def __len__(self) -> int:
        return len(self.decided)

    @property
    def rated(self) -> Floats:
        """(n, c): what the rule decided on, and thresholds are compared with."""
        return self.scores if self.on == "scores" else self.probabilities

    @property
    def labels(self) -> list[list[str]]:
        """The names of the labels of each example."""
        found: list[list[str]] = [[] for _ in range(len(self))]
        for row, label in np.argwhere(self.decided).tolist():
            found[row].append(self.label_names[label])
        return found


@dataclass(frozen=True, eq=False)
class Model:
    """A backbone, a head, a calibration and a rule, and the record of how they came about (``model.json``).

    All methods may be called by several threads at once.
    """

    labels: tuple[str, ...]
    features: Features
    head: Head
    calibration: Platt
    decision: Decision
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What it takes: "matrix", "text" or "image"."""
        return self.features.kind

    @property
    def thresholds(self) -> Floats | None:
        """One a label, where the rule is one of thresholds."""
        return self.decision.thresholds

    @property
    def block(self) -> int:
        """How many inputs are computed together."""
        return self.features.block(len(self.labels))

    def predict(self, inputs: Any) -> Prediction:
        """Texts, paths of images, or a matrix (n, d), to all that is known of them. What cannot be read is an ``InputError``."""
        parts = []
        checked = self.features.checked(inputs)
        for start in range(0, len(checked), self.block):
            _, part, problems = self._of(checked[start : start + self.block])
            for row, why in sorted(problems.items()):
                raise InputError(f"inputs[{start + row}] cannot be read: {checked[start + row]}: {why}")
            parts.append(part)
        return self._together(parts)

    def predict_readable(self, inputs: Any) -> tuple[NDArray[np.intp], Prediction, dict[int, str]]:
        """The same for one block, of the inputs that can be read: which these are, and why the others cannot."""
        return self._of(self.features.checked(inputs))

    def _of(self, inputs: Any) -> tuple[NDArray[np.intp], Prediction, dict[int, str]]:
        rows, features, problems = self.features.of(inputs)
        return rows, self.judged(self.head.scores(features)), problems

    def judged(self, scores: Floats) -> Prediction:
        """What the calibration and the rule make of scores (n, c)."""
        chances = chances_of(self.calibration, scores)
        decided = self.decision.decide(scores, chances)
        return Prediction(
            self.labels, decided, scores, chances, expected_f1(chances, decided), self.decision.on
        )

    def _together(self, parts: list[Prediction]) -> Prediction:
        if len(parts) == 1:
            return parts[0]
        empty = self.judged(np.zeros((0, len(self.labels))))

        def joined(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in (empty, *parts)])

        return Prediction(
            self.labels,
            joined("decided"),
            joined("scores"),
            joined("probabilities"),
            joined("expected_f1"),
            self.decision.on,
        )
