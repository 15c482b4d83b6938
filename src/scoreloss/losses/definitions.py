"""What every framework has to know of a loss: its function, what may be chosen, and what is fixed by its name.

The classes and functions of ``scoreloss.torch``, ``scoreloss.keras`` and ``scoreloss.jax`` are made of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scoreloss.checks import InputError, one_of
from scoreloss.losses import bounds, entries, metric, rankings
from scoreloss.losses.options import PARAMETERS, check_options
from scoreloss.ops import Array
from scoreloss.surrogates import SURROGATES

CALLED_WITH = ("ops", "logits", "targets", "mask", "weight", "carry", "knobs")


@dataclass(frozen=True)
class Definition:
    """One loss."""

    function: Callable[..., Array]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Options that its name decides."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that may be chosen, with their defaults."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arrays that are learned, counted or drawn, with their defaults."""
    only_ranks: bool = False
    """Whether it says nothing of where "positive" begins, and so has no boundary."""
    weighs_examples_only: bool = False
    """Whether it ranks whole labels, which have no weight of their own."""
    counts_labels: bool = False
    """Whether its logits are (..., n, c, counts), and a row with a label missing has no count."""

    def checked(self, options: Mapping[str, Any], unknown: Collection[str] = ()) -> dict[str, Any]:
        """All options, those given and the defaults of the others, checked.

        Of the ``unknown`` the values cannot be looked at: tensors that are learned, or traced.
        """
        for name in options:
            if "score" not in self.options:  # metric_loss also takes the knobs of its surrogate
                one_of("option", name, self.options)
        chosen = {**self.options, **options}
        known = {name: value for name, value in chosen.items() if name not in unknown}
        if self.function is not metric.metric_loss:
            check_options(known)
            return chosen
        known = {**self.fixed, **known}
        named = {name: known.pop(name) for name in ("score", "surrogate", *METRIC_OPTIONS)}
        knobs = metric.check_metric(**named, knobs=known)
        return {name: value for name, value in {**knobs, **chosen}.items() if name not in self.fixed}

    def check_arguments(
        self,
        shape: Sequence[int | None],
        targets: Sequence[int | None],
        mask: Sequence[int | None] | None = None,
        weight: Sequence[int | None] | None = None,
    ) -> None:
        """Refuse logits of a ``shape``, and shapes of targets, mask and weight, that do not fit each other."""
        if self.counts_labels:
            if len(shape) < 3:
                raise InputError(
                    f"logits have shape {tuple(shape)}: they must have (..., examples, labels, counts)"
                )
            shape = shape[:-1]
        check_shapes(shape, targets, mask, weight)
        if self.weighs_examples_only and weight is not None and tuple(weight[-1:]) != (1,):
            raise InputError(
                f"weight has shape {tuple(weight)}: this loss ranks whole labels, so weights are those of examples, "
                f"({shape[-2]}, 1)"
            )
        if self.counts_labels and mask is not None and tuple(mask[-1:]) != (1,):
            raise InputError(
                f"mask has shape {tuple(mask)}: the label count of an example with a label missing is not "
                f"known, so a mask hides whole examples, ({shape[-2]}, 1)"
            )


def check_shapes(
    shape: Sequence[int | None],
    targets: Sequence[int | None],
    mask: Sequence[int | None] | None = None,
    weight: Sequence[int | None] | None = None,
) -> None:
    """Refuse targets, mask and weight that do not fit logits of a shape (..., n, c). None fits all."""
    if len(shape) < 2:
        raise InputError(f"logits have shape {tuple(shape)}: they must have (..., examples, labels)")
    if len(targets) < 2 or len(targets) > len(shape) or not _fit(targets, shape, ()):
        raise InputError(
            f"targets have shape {tuple(targets)}: logits of {tuple(shape)} need {tuple(shape[-2:])} or their own"
        )
    for name, extra in (("mask", mask), ("weight", weight)):
        if extra is not None and (len(extra) > len(shape) or not _fit(extra, shape, (1,))):
            raise InputError(f"{name} has shape {tuple(extra)}: it must broadcast against {tuple(shape)}")


def _fit(given: Sequence[int | None], full: Sequence[int | None], besides: tuple[int, ...]) -> bool:
    return all(
        a == b or a is None or b is None or a in besides
        for a, b in zip(reversed(given), reversed(full), strict=False)
    )


METRIC_OPTIONS = {"average": "macro", "empty": "zero", "smoothing": 0.0}
SIGMOID_OPTIONS = {**SURROGATES["sigmoid"].knobs, **METRIC_OPTIONS}


def _of(function: Callable[..., Array], **kinds: Any) -> Definition:
    """The definition of a function, whose signature holds its options."""
    signature = inspect.signature(function).parameters.values()
    options = {p.name: p.default for p in signature if p.name not in (*CALLED_WITH, *PARAMETERS)}
    parameters = {p.name: p.default for p in signature if p.name in PARAMETERS}
    return Definition(function, options=options, parameters=parameters, **kinds)


def _smooth(score: str) -> Definition:
    return Definition(metric.metric_loss, {"score": score, "surrogate": "sigmoid"}, SIGMOID_OPTIONS)


DEFINITIONS: dict[str, Definition] = {
    "bce": _of(entries.bce),
    "focal": _of(entries.focal),
    "asymmetric": _of(entries.asymmetric),
    "poly1": _of(entries.poly1),
    "hill": _of(entries.hill),
    "metric_loss": _of(metric.metric_loss),
    "sigmoid_f1": _smooth("f1"),
    "unbounded_f1": Definition(metric.metric_loss, {"score": "f1", "surrogate": "linear"}, METRIC_OPTIONS),
    "smooth_accuracy": _smooth("accuracy"),
    "smooth_precision": _smooth("precision"),
    "smooth_npv": _smooth("npv"),
    "smooth_recall": _smooth("recall"),
    "smooth_specificity": _smooth("specificity"),
    "soft_f1": Definition(
        metric.metric_loss,
        {"score": "f1", "surrogate": "sigmoid", "slope": 1.0, "offset": 0.0},
        METRIC_OPTIONS,
    ),
    "double_soft_f1": Definition(
        metric.metric_loss,
        {"score": metric.double_f1, "surrogate": "sigmoid", "slope": 1.0, "offset": 0.0, "empty": "zero"},
        {"average": "macro", "smoothing": 0.0},
    ),
    "mfc": _of(metric.mfc),
    "hinge_f1": _of(bounds.hinge_f1),
    "precision_at_recall": _of(bounds.precision_at_recall),
    "recall_at_precision": _of(bounds.recall_at_precision),
    "aucpr": _of(bounds.aucpr, only_ranks=True),
    "pick_all_labels": _of(rankings.pick_all_labels, only_ranks=True),
    "bp_mll": _of(rankings.bp_mll, only_ranks=True),
    "zlpr": _of(rankings.zlpr),
    "two_way": _of(rankings.two_way, only_ranks=True),
    "recall_at_k": _of(rankings.recall_at_k, only_ranks=True, weighs_examples_only=True),
    "lambda_loss": _of(rankings.lambda_loss, only_ranks=True, weighs_examples_only=True),
    "deep_f": _of(rankings.deep_f, counts_labels=True),
}
"""The losses by their names, and ``metric_loss``, of which some are names."""
