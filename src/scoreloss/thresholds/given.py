"""Rules with nothing to learn: a number given, or a number of labels a row."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.blocks import Blocks
from scoreloss.checks import Booleans, InputError, one_of
from scoreloss.thresholds.rule import (
    Rule,
    at_least,
    check_all_probabilities,
    check_probabilities,
    score_blocks,
    score_matrix,
)


class Fixed(Rule):
    """One number, given. 0.5 on ``loss.scores`` is the boundary the loss itself was trained with.

    >>> Fixed(0.5).predict([[0.5, 0.4]]).tolist()
    [[True, False]]
    """

    def __init__(self, threshold: float = 0.5) -> None:
        if not isinstance(threshold, Real) or math.isnan(threshold):
            raise InputError(f"threshold is {threshold!r}: it must be a number")
        self.threshold: float = threshold

    def _learn(self, data: Blocks) -> None:
        """Nothing; the arguments are checked like any rule's."""
        data.check()

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

    def _learn(self, data: Blocks) -> None:
        if isinstance(self.k, str):
            check_all_probabilities(self, data)
        else:
            data.check()

    def predict(self, scores: ArrayLike) -> Booleans:
        """Scores (n, c) to booleans."""
        s = score_matrix(scores)
        predicted = np.empty(s.shape, bool)
        counts = None if isinstance(self.k, str) else np.asarray(self.k)
        if counts is not None and counts.ndim and len(counts) != len(s):
            raise InputError(f"k has {len(counts)} numbers: the scores have {len(s)} rows")
        for rows, block in score_blocks(s):
            if counts is None:
                check_probabilities(self, block)
                taken = np.floor(block.sum(axis=1) + 0.5)
            else:
                taken = counts[rows] if counts.ndim else counts
            order = np.argsort(-block, axis=1, kind="stable")
            first = np.arange(s.shape[1]) < taken.reshape(-1, 1)
            np.put_along_axis(predicted[rows], order, np.broadcast_to(first, block.shape), axis=1)
        return predicted

    def __repr__(self) -> str:
        return f"TopK({self.k!r})"
