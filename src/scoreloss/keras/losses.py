"""The losses as classes for ``model.compile``; what each computes stands in ``scoreloss.losses``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import Floats, InputError
from scoreloss.keras.base import Loss, score_config, score_from
from scoreloss.keras.ops import OPS, cast, widen
from scoreloss.losses.metric import across_examples
from scoreloss.losses.options import check_whole
from scoreloss.losses.rankings import deep_f_scores
from scoreloss.ops import Array
from scoreloss.scores import Score
from scoreloss.start import largest_count, shared_among_counts
from scoreloss.surrogates import SURROGATES


class BCE(Loss, of="bce"):
    """Binary cross-entropy with logits; ``pos_weight`` (a number or one a label) weighs the positives."""


class Focal(Loss, of="focal"):
    """Focal loss: cross-entropy in which entries that are nearly right count less."""


class Asymmetric(Loss, of="asymmetric"):
    """ASL: focal weights that differ between the sides and carry no gradient; easy negatives are dropped."""


class Poly1(Loss, of="poly1"):
    """The focal loss (cross-entropy at ``gamma`` 0 and ``alpha`` None, the defaults) + epsilon (1 - p_t)^(gamma + 1)."""


class Hill(Loss, of="hill"):
    """Hill loss: a negative that looks positive is taken for a label somebody forgot, and spared."""


class OfCounts(Loss):
    """A loss made of a score of soft counts."""

    @property
    def surrogate_name(self) -> str:
        """The name of the surrogate."""
        name: str = {**self.definition.fixed, **self.options}["surrogate"]
        return name

    def plain_knobs(self) -> dict[str, Any]:
        """The knobs of the surrogate."""
        options = {**self.definition.fixed, **self.options}
        return {name: options[name] for name in SURROGATES[self.surrogate_name].knobs}

    @property
    def boundary(self) -> Any:
        """The logit where the surrogate says 1/2: a number, or one a label."""
        return SURROGATES[self.surrogate_name].boundary(**self.plain_knobs())

    def surrogate(self, logits: Array) -> Array:
        """What stands in for "predicted positive" (``hinge``: the mean of its two sides)."""
        z = widen(logits)
        knobs = {
            name: across_examples(cast(knob, z)) if isinstance(knob, np.ndarray) else knob
            for name, knob in self.plain_knobs().items()
        }
        on_positives, on_negatives = SURROGATES[self.surrogate_name].stand_in(OPS, z, **knobs)
        return (on_positives + on_negatives) / 2


class MetricLoss(OfCounts, of="metric_loss"):
    """1 - score of soft counts: any score x surrogate x average.

    ``score`` is a name in ``scoreloss.SCORES`` or a function of (tp, fp, fn, tn, div). ``average`` is
    "macro", "micro", "samples", "weighted" or None (a vector). ``empty`` says what a label (a row, for
    "samples") without a positive counts as, where the score has tp as a factor: "zero", "skip" or "one".
    ``smoothing`` is added to numerator and denominator. ``knobs`` belong to the surrogate: ``slope`` and ``offset``
    (numbers or one a label) to "sigmoid", ``scale`` to "amplify", ``prior``, ``mu`` and ``delta`` to "cdf".
    """

    def __init__(
        self,
        score: str | Score = "f1",
        *,
        surrogate: str = "sigmoid",
        average: str | None = "macro",
        empty: str = "zero",
        smoothing: float = 0.0,
        name: str | None = None,
        **knobs: Any,
    ) -> None:
        super().__init__(
            score=score,
            surrogate=surrogate,
            average=average,
            empty=empty,
            smoothing=smoothing,
            name=name,
            **knobs,
        )

    def get_config(self) -> dict[str, Any]:
        """The name and the options, as JSON can hold them."""
        return {**super().get_config(), "score": score_config(self.options["score"])}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The loss that ``get_config`` describes."""
        return cls(**{**config, "score": score_from(config["score"])})


class SigmoidF1(OfCounts, of="sigmoid_f1"):
    """1 - F1 on counts of S(z) = sigmoid(slope (z + offset)): the paper's loss.

    ``slope`` and ``offset`` are numbers, or have one for each label.
    """


class SmoothAccuracy(OfCounts, of="smooth_accuracy"):
    """1 - (tp + tn) / n on sigmoid counts."""


class SmoothPrecision(OfCounts, of="smooth_precision"):
    """1 - tp / (tp + fp) on sigmoid counts."""


class SmoothNPV(OfCounts, of="smooth_npv"):
    """1 - tn / (tn + fn) on sigmoid counts."""


class SmoothRecall(OfCounts, of="smooth_recall"):
    """1 - tp / (tp + fn) on sigmoid counts."""


class SmoothSpecificity(OfCounts, of="smooth_specificity"):
    """1 - tn / (tn + fp) on sigmoid counts."""


class UnboundedF1(OfCounts, of="unbounded_f1"):
    """1 - F1 with the logit itself in place of "predicted positive". It has no minimum, and may diverge."""


class SoftF1(OfCounts, of="soft_f1"):
    """1 - F1 on counts of sigmoid(z): ``SigmoidF1`` at slope 1 and offset 0."""


class DoubleSoftF1(OfCounts, of="double_soft_f1"):
    """1 - the mean of the soft F1 of the positives and that of the negatives."""


class HingeF1(Loss, of="hinge_f1"):
    """A bound on 1 - micro F1: (fn + fp) / (P + max(P - fn, 0)), fn and fp bounded by the hinge."""


class PickAllLabels(Loss, of="pick_all_labels"):
    """Softmax cross-entropy over a row's labels, summed over its positives; ``normalised`` divides by their number."""


class BPMLL(Loss, of="bp_mll"):
    """BP-MLL: the mean over a row's pairs of exp(-(t_k - t_l)), t = tanh z. It only ranks."""


class ZLPR(Loss, of="zlpr"):
    """log(1 + sum over negatives of e^z) + log(1 + sum over positives of e^-z): ranks all labels against a zero."""


class TwoWay(Loss, of="two_way"):
    """Two-way loss: hardest positives against hardest negatives, in each label and in each row. It only ranks."""


class RecallAtK(Loss, of="recall_at_k"):
    """RS@k: 1 - a smooth recall among a row's k best labels, averaged over ``k``. It only ranks."""

    def logits_of(self, label_logits: Floats) -> Floats:
        """In units of the temperature: the ranks of labels further apart have no gradient."""
        return np.asarray(label_logits * self.options["rank_temperature"])


class LambdaLoss(Loss, of="lambda_loss"):
    """NDCG-Loss2++: log losses of a row's pairs, weighed by what their order means to the NDCG. It only ranks."""


class DeepF(Loss, of="deep_f"):
    """The joint chance of each label and of the number of labels, from logits (..., n, c, most + 1)."""

    def __init__(self, most: int, *, reduction: str = "mean", name: str | None = None) -> None:
        check_whole("most", most)
        super().__init__(reduction=reduction, name=name)
        self.most = most

    @classmethod
    def for_targets(cls, targets: NDArray[np.bool_], **options: Any) -> Self:
        """With the largest label count of the targets."""
        return cls(largest_count(targets), **options)

    def outputs(self, labels: int) -> tuple[int, ...]:
        """A class for "not there", and one for each count."""
        return labels, self.most + 1

    def logits_of(self, label_logits: Floats) -> Floats:
        """0 for "not there"; the counts share the rest alike."""
        return shared_among_counts(label_logits, self.most)

    def scores(self, logits: Array) -> Array:
        """The chance of each label: 1 less the softmax of "not there"."""
        return deep_f_scores(OPS, widen(logits))

    def get_config(self) -> dict[str, Any]:
        """The name and the options, as JSON can hold them."""
        return {**super().get_config(), "most": self.most}

    def _check(self, *shapes: Any) -> None:
        if len(shapes[0]) < 3 or shapes[0][-1] != self.most + 1:
            raise InputError(
                f"logits have shape {shapes[0]}: they must have (..., examples, labels, {self.most + 1})"
            )
        super()._check(*shapes)


LOSSES: dict[str, type[Loss]] = {
    "bce": BCE,
    "focal": Focal,
    "asymmetric": Asymmetric,
    "poly1": Poly1,
    "hill": Hill,
    "sigmoid_f1": SigmoidF1,
    "unbounded_f1": UnboundedF1,
    "smooth_accuracy": SmoothAccuracy,
    "smooth_precision": SmoothPrecision,
    "smooth_npv": SmoothNPV,
    "smooth_recall": SmoothRecall,
    "smooth_specificity": SmoothSpecificity,
    "soft_f1": SoftF1,
    "double_soft_f1": DoubleSoftF1,
    "hinge_f1": HingeF1,
    "pick_all_labels": PickAllLabels,
    "bp_mll": BPMLL,
    "zlpr": ZLPR,
    "two_way": TwoWay,
    "recall_at_k": RecallAtK,
    "lambda_loss": LambdaLoss,
    "deep_f": DeepF,
}
"""The losses by their names; those with parameters of their own are not among them."""
