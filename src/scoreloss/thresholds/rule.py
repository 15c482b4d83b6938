"""What every rule can do, and what its arguments are checked for. Knows no particular rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.checks import Booleans, Floats, InputError, as_array, checked, rounded_like


class Rule(ABC):
    """Learns from held-out data, then turns scores into labels."""

    def fit(
        self,
        targets: ArrayLike,
        scores: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Learn from held-out targets (n, c) and scores (n, c); returns the rule.

        ``sample_weight`` is (n,); ``mask`` broadcasts against the targets and is False where a label is missing.
        """
        y, s, w, m = checked(targets, scores, sample_weight, mask)
        # A score does not depend on the scale of weights, but tiny ones would be taken for rounding.
        self._learn(y, s, w if w is None or not w.any() else w / w.mean(), m)
        return self

    @abstractmethod
    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        """Set the attributes that ``predict`` needs; arguments as ``checked`` returns them."""

    @abstractmethod
    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""


def at_least(scores: ArrayLike, thresholds: Any) -> Booleans:
    """Where scores (n, c) reach the threshold, or that of their label."""
    s = checked_scores(scores)
    if np.ndim(thresholds) and s.shape[1] != len(thresholds):
        raise InputError(f"scores have {s.shape[1]} labels: the rule was fitted on {len(thresholds)}")
    return np.asarray(s >= rounded_like(thresholds, scores))


def checked_scores(scores: ArrayLike) -> Floats:
    """Scores (n, c) as float64, none NaN."""
    s = as_array("scores", scores)
    if s.ndim != 2:
        raise InputError(f"scores have shape {s.shape}: they must be a matrix (examples, labels)")
    if np.isnan(s).any():
        raise InputError("scores contain NaN: they must be numbers")
    return np.asarray(s.astype(np.float64, copy=False))


def check_probabilities(rule: Rule, scores: Floats, mask: Booleans | None = None) -> None:
    """Refuse scores outside [0, 1]."""
    seen = scores if mask is None else scores[mask]
    if seen.size and not (seen.min() >= 0 and seen.max() <= 1):
        raise InputError(
            f"scores lie outside [0, 1]: {rule!r} needs probabilities, which scoreloss.calibrate makes of scores"
        )


def check_below_inf(scores: Floats, mask: Booleans | None) -> None:
    """Refuse scores of inf: no threshold lies above them."""
    if np.isposinf(scores if mask is None else scores[mask]).any():
        raise InputError("scores contain inf: no threshold lies above it")


def fitted(rule: Rule, attribute: str) -> Any:
    """What a rule has learned."""
    if not hasattr(rule, attribute):
        raise InputError(f"{rule!r} is not fitted: call fit(targets, scores) first")
    return getattr(rule, attribute)
