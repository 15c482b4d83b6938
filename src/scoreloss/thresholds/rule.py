"""What every rule can do, and what its arguments are checked for. Knows no particular rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.blocks import Blocks, Scores, Targets, row_slices
from scoreloss.checks import Booleans, Floats, InputError, as_array, rounded_like


class Rule(ABC):
    """Learns from held-out data, then turns scores into labels."""

    def fit(
        self,
        targets: Targets,
        scores: Scores,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Learn from held-out targets (n, c) and scores (n, c); returns the rule.

        ``sample_weight`` is (n,); ``mask`` broadcasts against the targets and is False where a label is missing.
        As in ``evaluate``, targets may be sparse, and scores a function of a slice of rows and a slice of labels.
        """
        data = Blocks(targets, scores, sample_weight, mask)
        if data.weight is not None and data.weight.any():
            # A score does not depend on the scale of weights, but tiny ones would be taken for rounding.
            data.weight = data.weight / data.weight.mean()
        self._learn(data)
        return self

    @abstractmethod
    def _learn(self, data: Blocks) -> None:
        """Set the attributes that ``predict`` needs, and look at every block, since that is what checks it."""

    @abstractmethod
    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""


def at_least(scores: ArrayLike, thresholds: Any) -> Booleans:
    """Where scores (n, c) reach the threshold, or that of their label."""
    s = score_matrix(scores)
    if np.ndim(thresholds) and s.shape[1] != len(thresholds):
        raise InputError(f"scores have {s.shape[1]} labels: the rule was fitted on {len(thresholds)}")
    t = rounded_like(thresholds, s.dtype)
    predicted = np.empty(s.shape, bool)
    for rows, block in score_blocks(s):
        predicted[rows] = block >= t
    return predicted


def score_matrix(scores: ArrayLike) -> NDArray[Any]:
    """Scores (n, c) as they came."""
    if callable(scores):
        raise InputError(
            "scores are a function: predict takes a matrix (examples, labels), so some rows at a time"
        )
    s = as_array("scores", scores)
    if s.ndim != 2:
        raise InputError(f"scores have shape {s.shape}: they must be a matrix (examples, labels)")
    return s


def score_blocks(scores: NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
    """Scores as float64, none NaN, some rows at a time."""
    for rows in row_slices(scores.shape):
        yield rows, checked_scores(scores[rows])


def checked_scores(scores: ArrayLike) -> Floats:
    """Scores (n, c) as float64, none NaN."""
    s = score_matrix(scores)
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


def check_all_probabilities(rule: Rule, data: Blocks) -> None:
    """The same of all blocks."""
    for block in data.of_examples():
        check_probabilities(rule, block.scores, block.mask)


def check_below_inf(scores: Floats, mask: Booleans | None) -> None:
    """Refuse scores of inf: no threshold lies above them."""
    if np.isposinf(scores if mask is None else scores[mask]).any():
        raise InputError("scores contain inf: no threshold lies above it")


def fitted(rule: Rule, attribute: str) -> Any:
    """What a rule has learned."""
    if not hasattr(rule, attribute):
        raise InputError(f"{rule!r} is not fitted: call fit(targets, scores) first")
    return getattr(rule, attribute)
