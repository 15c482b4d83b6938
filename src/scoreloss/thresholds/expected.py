"""Rules for probabilities: what they predict is best on average if the probabilities are true.

Scores are calibrated on held-out data first (``scoreloss.calibrate``), whatever the loss.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.blocks import Block, Blocks, Scores, Targets
from scoreloss.checks import Booleans, Floats, InputError, as_array, number_from, one_of
from scoreloss.decode import best_sets, best_sets_jointly
from scoreloss.hard import DIV
from scoreloss.thresholds.rule import (
    Rule,
    at_least,
    check_all_probabilities,
    check_probabilities,
    checked_scores,
    fitted,
    score_blocks,
    score_matrix,
)

AVERAGES = ("macro", "micro")


class Lipton(Rule):
    """Half the F1 that is expected at best: the threshold that reaches it on calibrated probabilities (Lipton 2014).

    The best expected F1 of probabilities p is F* = max over k of 2 sum(top k) / (k + sum p), from the scores alone:
    the targets are checked and not used. "macro" gives each label its threshold, "micro" one to all. Where all
    probabilities are 0 it is inf.

    >>> Lipton("macro").fit([[1], [0]], [[0.9], [0.3]]).thresholds_.round(3).tolist()
    [0.409]
    """

    thresholds_: Floats
    """One a label under "macro"; a number under "micro", as ``threshold_``."""
    threshold_: float

    def __init__(self, average: str = "macro") -> None:
        one_of("average", average, AVERAGES)
        self.average = average

    def _learn(self, data: Blocks) -> None:
        if self.average == "micro":
            self.threshold_ = self._half_of_pooled(data)
        else:
            self.thresholds_ = np.concatenate([self._halves(block) for block in data.of_labels()])

    def predict(self, scores: ArrayLike) -> Booleans:
        """Probabilities (n, c) to booleans."""
        thresholds = fitted(self, "threshold_" if self.average == "micro" else "thresholds_")
        s = score_matrix(scores)
        for _, block in score_blocks(s):
            check_probabilities(self, block)
        return at_least(s, thresholds)

    def _halves(self, block: Block) -> Floats:
        """Of each label max over k of sum(top k) / (k + sum of all), weighted."""
        chances, weights = self._chances_and_weights(block)
        order = np.argsort(-chances, axis=0)
        weights = np.take_along_axis(weights, order, 0)
        sums = np.cumsum(np.take_along_axis(chances, order, 0) * weights, axis=0)
        halves = DIV(sums, np.cumsum(weights, axis=0) + sums[-1]).max(axis=0)
        return np.where(halves > 0, halves, np.inf)

    def _half_of_pooled(self, data: Blocks) -> float:
        """The same of all entries at once, without a sort of them.

        The best set for a half is what is at or above it, and the half of the best set is no lower: so they climb, from
        all entries, and the last is the highest there is (Dinkelbach). A handful of rounds, each a look at all blocks.
        """
        half, whole = 0.0, 0.0
        while True:
            hits = size = 0.0
            for block in data.of_examples():
                chances, weights = self._chances_and_weights(block)
                taken = np.where(chances >= half, weights, 0.0)
                hits += float((taken * chances).sum())
                size += float(taken.sum())
            whole = hits if half == 0 else whole  # at first, all are taken
            if not whole:
                return np.inf
            higher = hits / (size + whole)
            if higher <= half:
                return half
            half = higher

    def _chances_and_weights(self, block: Block) -> tuple[Floats, Floats]:
        """What is masked is last in order, and counts for nothing."""
        check_probabilities(self, block.scores, block.mask)
        shape = block.scores.shape
        weights = np.ones(shape) if block.weight is None else np.tile(block.weight[:, None], shape[1])
        if block.mask is None:
            return block.scores, weights
        return np.where(block.mask, block.scores, 0.0), weights * block.mask

    def __repr__(self) -> str:
        return f"Lipton({self.average!r})"


class ExpectedF1(Rule):
    """Each example gets the label set of highest expected F1, or F-beta; the empty set is a candidate.

    Scores are the probabilities of labels that are taken as independent (Ye et al. 2012). With ``joint`` they are
    joint[n, i, s - 1], the chance that label i is there and s labels are, for s = 1 ... m: what ``DeepF.joint``
    estimates, and which assumes no independence (GFM). There is nothing to learn.

    >>> ExpectedF1().predict([[0.9, 0.4, 0.1], [0.2, 0.1, 0.1]]).tolist()
    [[True, False, False], [False, False, False]]
    """

    def __init__(self, *, beta: float = 1.0, joint: bool = False) -> None:
        number_from("beta", beta, 0, strict=True)
        self.beta = beta
        self.joint = joint

    def fit(
        self,
        targets: Targets,
        scores: Scores,
        *,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Nothing to learn; the arguments are checked like any rule's."""
        if not self.joint:
            return super().fit(targets, scores, sample_weight=sample_weight, mask=mask)
        Blocks(targets, self._checked_joint(scores).sum(axis=-1), sample_weight, mask).check()
        return self

    def _learn(self, data: Blocks) -> None:
        check_all_probabilities(self, data)

    def predict(self, scores: ArrayLike) -> Booleans:
        """Probabilities (n, c), or joint ones (n, c, m), to booleans (n, c)."""
        if self.joint:
            return best_sets_jointly(self._checked_joint(scores), self.beta)
        chances = checked_scores(scores)
        check_probabilities(self, chances)
        return best_sets(chances, self.beta)

    def _checked_joint(self, joint: Any) -> Floats:
        chances = as_array("joint", joint).astype(np.float64, copy=False)
        if chances.ndim != 3:
            raise InputError(f"joint has shape {chances.shape}: it must be (examples, labels, counts)")
        if np.isnan(chances).any():
            raise InputError("joint contains NaN: it must hold chances")
        if chances.size and not (chances.min() >= 0 and chances.sum(axis=-1).max() <= 1 + 1e-6):
            raise InputError("joint holds no chances: none may be below 0, nor their sum over counts above 1")
        return chances

    def __repr__(self) -> str:
        return f"ExpectedF1(beta={self.beta:g}, joint={self.joint})"
