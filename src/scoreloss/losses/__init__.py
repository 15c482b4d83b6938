"""Every loss, once, as a pure function of logits and targets over ``Ops``.

``logits`` have shape (..., n, c): n examples, c labels, leading axes independent runs. ``targets`` are in
[0, 1] and have that shape or (n, c). ``mask`` (False where a label is missing) and ``weight`` broadcast
against them: (n, 1) weighs examples, (c,) labels, (n, c) entries. A weight of 2 counts like two of the
same (``two_way``, which compares examples, weighs what it sums).
"""

from collections.abc import Callable
from functools import partial

from scoreloss.losses.bounds import aucpr, hinge_f1, precision_at_recall, recall_at_precision
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.entries import asymmetric, bce, focal, hill, poly1
from scoreloss.losses.metric import double_f1, metric_loss, mfc
from scoreloss.losses.rankings import (
    bp_mll,
    deep_f,
    label_count,
    lambda_loss,
    pick_all_labels,
    recall_at_k,
    two_way,
    zlpr,
)
from scoreloss.ops import Array


def _named(name: str) -> Callable[..., Array]:
    """The metric loss of a name, over ``ops`` like any other."""
    return partial(metric_loss, **DEFINITIONS[name].fixed)


sigmoid_f1 = _named("sigmoid_f1")
"""1 - F1 on counts of sigmoid(slope (z + offset)): the paper's loss."""
unbounded_f1 = _named("unbounded_f1")
"""1 - F1 with the logit itself for "predicted positive"; it may diverge."""
smooth_accuracy = _named("smooth_accuracy")
"""1 - (tp + tn) / n on sigmoid counts."""
smooth_precision = _named("smooth_precision")
"""1 - tp / (tp + fp) on sigmoid counts."""
smooth_npv = _named("smooth_npv")
"""1 - tn / (tn + fn) on sigmoid counts."""
smooth_recall = _named("smooth_recall")
"""1 - tp / (tp + fn) on sigmoid counts."""
smooth_specificity = _named("smooth_specificity")
"""1 - tn / (tn + fp) on sigmoid counts."""
soft_f1 = _named("soft_f1")
"""1 - F1 on counts of sigmoid(z)."""
double_soft_f1 = _named("double_soft_f1")
"""1 - the mean of the soft F1 of the positives and of the negatives."""

__all__ = [
    "asymmetric",
    "aucpr",
    "bce",
    "bp_mll",
    "deep_f",
    "double_f1",
    "double_soft_f1",
    "focal",
    "hill",
    "hinge_f1",
    "label_count",
    "lambda_loss",
    "metric_loss",
    "mfc",
    "pick_all_labels",
    "poly1",
    "precision_at_recall",
    "recall_at_k",
    "recall_at_precision",
    "sigmoid_f1",
    "smooth_accuracy",
    "smooth_npv",
    "smooth_precision",
    "smooth_recall",
    "smooth_specificity",
    "soft_f1",
    "two_way",
    "unbounded_f1",
    "zlpr",
]
