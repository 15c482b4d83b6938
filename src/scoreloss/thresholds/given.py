"""Rules with nothing to learn: a number given, or a number of labels a row."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.thresholds.rule import Rule, at_least, check_probabilities, checked_scores


class Fixed(Rule):
    """One number, given. 0.5 on ``loss.scores`` is the boundary the loss itself was trained with.

    >>> Fixed(0.5).predict([[0.5, 0.4]]).tolist()
    [[True, False]]
    """

    def __init__(self, threshold: float = 0.5) -> None:
        if not isinstance(threshold, Real) or math.isnan(threshold):
            raise InputError(f"threshold is {threshold!r}: it must be a number")
        self.threshold: float = threshold

    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        """Nothing; the arguments were checked like any rule's."""

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        return at_least(scores, self.threshold)

    def __repr__(self) -> str:
        return f"Fixed({self.threshold:g})"


class TopK(Rule):
    """The k best labels of each row, ties by label index.

    ``k`` is a number, one for each row (the prediction of a ``LabelCount``), or "count": the sum of the row's
    probabilities, rounded.

    >>> TopK(1).predict([[0.5, 0.9], [0.4, 0.4]]).tolist()
    [[False, True], [True, False]]
    """

    def __init__(self, k: int | ArrayLike | str) -> None:
        if isinstance(k, str):
            one_of("k", k, ["count"])
        else:
            counts = np.asarray(k)
            if counts.dtype.kind not in "iu" or counts.ndim > 1 or (counts < 0).any():
                raise InputError(
                    f"k is {k!r}: it must be a whole number of at least 0, one for each row, or 'count'"
                )
        self.k = k

    def _learn(self, targets: Booleans, scores: Floats, weight: Floats | None, mask: Booleans | None) -> None:
        if isinstance(self.k, str):
            check_probabilities(self, scores, mask)

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        s = checked_scores(scores)
        if isinstance(self.k, str):
            check_probabilities(self, s)
            counts = np.floor(s.sum(axis=1) + 0.5)
        else:
            counts = np.asarray(self.k)
            if counts.ndim and len(counts) != len(s):
                raise InputError(f"k has {len(counts)} numbers: the scores have {len(s)} rows")
        order = np.argsort(-s, axis=1, kind="stable")
        predicted = np.empty(s.shape, bool)
        first = np.arange(s.shape[1]) < counts.reshape(-1, 1)
        np.put_along_axis(predicted, order, np.broadcast_to(first, s.shape), axis=1)
        return predicted

    def __repr__(self) -> str:
        return f"TopK({self.k!r})"
