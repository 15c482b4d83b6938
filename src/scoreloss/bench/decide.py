"""Thresholds and judgement: a rule learns on validation data alone, and is judged on the test part once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.bench.packed import pack
from scoreloss.bench.splits import Split
from scoreloss.calibrate import calibrate
from scoreloss.checks import Booleans, Floats
from scoreloss.counts import Counts, from_sums
from scoreloss.hard import DIV, hard_counts
from scoreloss.metrics import decision_metrics, label_frequencies, ranking_metrics
from scoreloss.ops import logits_from
from scoreloss.scores import f1
from scoreloss.split import stratified_split
from scoreloss.thresholds import Averaging, ExpectedF1, Fixed, Global, Lipton, PerLabel, Rule, TopK
from scoreloss.torch import Loss

if TYPE_CHECKING:
    from torch import Tensor

Judged = tuple[Booleans, Floats]
"""Targets, and the scores that are judged by them."""

Halves = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Of the validation part, for cross-fitting."""

AVERAGES = ("micro", "macro", "weighted", "samples")

RULES_ON_SCORES: dict[str, Callable[[], Rule]] = {
    "fixed_0.5": lambda: Fixed(0.5),
    "fixed_0.05": lambda: Fixed(0.05),
    "global": lambda: Global("f1", "weighted"),
    "per_label": lambda: PerLabel("f1", min_positives=5),
    "averaging": Averaging,
}
"""On ``loss.scores``, so that 0.5 is each loss's own boundary. Each has its own epoch."""

RULES_ON_CHANCES: dict[str, Callable[[], Rule]] = {
    "lipton": Lipton,
    "expected_f1": ExpectedF1,
    "top_k": lambda: TopK("count"),
}
"""On probabilities: the scores of every loss alike, calibrated by Platt's sigmoid on validation data."""

PAPER_RULES: dict[str, Callable[[], Rule]] = {
    "fixed_0.5": RULES_ON_SCORES["fixed_0.5"],
    "fixed_0.05": RULES_ON_SCORES["fixed_0.05"],
    "fixed_0.8": lambda: Fixed(0.8),
    "averaging": Averaging,
    "sigmoid_0.5": lambda: Fixed(0.5),
    "sigmoid_0.05": lambda: Fixed(0.05),
    "sigmoid_0.8": lambda: Fixed(0.8),
    "sigmoid_averaging": Averaging,
}
"""The paper's, on ``loss.scores``, and on sigmoid(z), where the paper put them whatever the loss's own boundary."""

EPOCH_OF_CHANCES = "per_label"
"""Rules on probabilities take the epoch of this rule: to calibrate at every epoch takes far longer than to train."""

RULES = {**RULES_ON_SCORES, **RULES_ON_CHANCES}

CHOOSING: dict[str, dict[str, Callable[[], Rule]]] = {"bench": RULES_ON_SCORES, "paper": PAPER_RULES}
"""How a cell is judged (``Settings.judged``) -> the rules by which epochs and configurations are chosen."""

JUDGING = {"bench": list(RULES), "paper": list(PAPER_RULES)}
"""The same -> the names of all rules that judge, in the order of tables."""

BOUNDARY_RULES = ("fixed_0.5", "fixed_0.05", "fixed_0.8")
"""They say nothing of a loss that only ranks."""

GRID = np.concatenate([[0.001, 0.002, 0.005], np.arange(1, 100) / 100, [0.995, 0.998, 0.999]])
"""The thresholds at which the curves of a cell are kept."""

CURVES = ("micro", "macro", "weighted")

FLOORS = ("all positive", "none positive", "label priors")


def rules_for(loss: Loss, judged: str = "bench") -> list[str]:
    """The rules on scores that fit a loss."""
    return [rule for rule in CHOOSING[judged] if not (loss.only_ranks and rule in BOUNDARY_RULES)]


def put_on(rule: str) -> str:
    """What a rule takes: the "scores" of the loss, or "sigmoid" for sigmoid(z)."""
    return "sigmoid" if rule.startswith("sigmoid_") else "scores"


def scores_for(rule: str, loss: Loss, logits: Tensor) -> Floats:
    """The same, of logits."""
    scores = logits.sigmoid() if put_on(rule) == "sigmoid" else loss.scores(logits)
    return np.asarray(scores.numpy())


def halves(targets: Booleans, seed: int) -> Halves:
    """Two stratified halves of the validation part, for cross-fitting."""
    n = len(targets)
    first, second = stratified_split(targets, [n - n // 2, n // 2], seed=seed)
    return first, second


def rule_on_scores(rule: str, average: str = "weighted") -> Rule:
    """A rule that is to do well by F1 under an average."""
    return Global("f1", average) if rule == "global" else {**RULES_ON_SCORES, **PAPER_RULES}[rule]()


def validation_score(
    rule: str, targets: Booleans, scores: Floats, parts: Halves, average: str = "weighted"
) -> float:
    """F1 on validation data, where a rule that learns never judges the half it learned on."""
    return averaged_f1(targets, crossed(rule, targets, scores, parts, average), average)


def crossed(
    rule: str, targets: Booleans, scores: Floats, parts: Halves, average: str = "weighted"
) -> Booleans:
    """What a rule on scores predicts for each half when it learns on the other."""
    predicted = np.empty_like(targets)
    for fitted_on, judged_on in (parts, parts[::-1]):
        fitted = rule_on_scores(rule, average).fit(targets[fitted_on], scores[fitted_on])
        predicted[judged_on] = fitted.predict(scores[judged_on])
    return predicted


def crossed_chances(targets: Booleans, logits: Floats, parts: Halves) -> Floats:
    """The probabilities of each half, calibrated on the other."""
    chances = np.empty_like(logits)
    for fitted_on, judged_on in (parts, parts[::-1]):
        half = calibrate(targets[fitted_on], logits[fitted_on])
        chances[judged_on] = half.predict(logits[judged_on])
    return chances


def weighted_f1(targets: Booleans, predicted: Booleans) -> float:
    """F1 of each label, averaged by its positives."""
    return averaged_f1(targets, predicted)


def averaged_f1(targets: Booleans, predicted: Booleans, average: str = "weighted") -> float:
    """F1 of each label, averaged by its positives or otherwise (``AVERAGES``)."""
    counts = hard_counts(targets, predicted, None, None, axis=1 if average == "samples" else 0)
    if average == "micro":
        return float(f1(*Counts(*(count.sum() for count in counts)), DIV))
    if average != "weighted":
        return float(f1(*counts, DIV).mean())
    support = counts.tp + counts.fn
    return float(DIV(f1(*counts, DIV) @ support, support.sum()))


def judge(rule: str, validation: Judged, test: Judged) -> dict[str, Any]:
    """A rule on scores, fitted on all validation data, and every metric of what it predicts on the test part."""
    fitted = rule_on_scores(rule).fit(*validation)
    targets, scores = test
    return {"fitted": _learned(fitted), **_metrics(targets, fitted.predict(scores), scores)}


def judge_on_chances(validation: Judged, test: Judged, parts: Halves) -> dict[str, dict[str, Any]]:
    """The same for each rule on probabilities, with its weighted F1 on validation data.

    These rules learn nothing from targets, so it is the calibration that is cross-fitted for that.
    """
    targets, scores = validation
    logits, test_logits = logits_from(scores), logits_from(test[1])
    unseen = crossed_chances(targets, logits, parts)
    whole = calibrate(targets, logits)
    chances, test_chances = whole.predict(logits), whole.predict(test_logits)
    results = {}
    for name, rule in RULES_ON_CHANCES.items():
        fitted = rule().fit(targets, chances)
        results[name] = {
            "validation_weighted_f1": averaged_f1(targets, rule().fit(targets, unseen).predict(unseen)),
            "fitted": {**{key: value.tolist() for key, value in vars(whole).items()}, **_learned(fitted)},
            **_metrics(test[0], fitted.predict(test_chances), test_chances),
        }
    return results


def _learned(rule: Rule) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in vars(rule).items() if name.endswith("_")}


def threshold_curves(targets: Booleans, scores: Floats) -> dict[str, list[float]]:
    """Average -> F1 at each threshold of ``GRID``, the same for all labels: what a report draws."""
    labels = targets.shape[1]
    cell = np.searchsorted(GRID, scores, side="right") * labels + np.arange(labels)
    size = (len(GRID) + 1) * labels

    def at_or_above(entries: NDArray[np.intp]) -> Floats:
        counts = np.bincount(entries, minlength=size).reshape(-1, labels)
        return np.asarray(counts[:0:-1].cumsum(axis=0)[::-1], np.float64)

    true = targets.sum(axis=0)
    counts = from_sums(at_or_above(cell[targets]), at_or_above(cell.ravel()), true, len(targets))
    of_labels = f1(*counts, DIV)
    curves = {
        "micro": f1(*Counts(*(count.sum(axis=1) for count in counts)), DIV),
        "macro": of_labels.mean(axis=1),
        "weighted": DIV(of_labels @ true, true.sum()),
    }
    return {average: curves[average].round(5).tolist() for average in CURVES}


def floors(targets: Booleans, split: Split, judged: str = "bench") -> dict[str, dict[str, Any]]:
    """What needs no features: floor -> rule -> result. The first two know no threshold."""
    frequencies = label_frequencies(targets[split.train])
    y_test = targets[split.test]
    results: dict[str, dict[str, Any]] = {}
    for name, prediction in (("all positive", True), ("none positive", False)):
        predicted = np.full_like(y_test, prediction)
        found = _metrics(y_test, predicted, predicted.astype(np.float64))
        results[name] = dict.fromkeys(JUDGING[judged], found)

    def constant(rows: NDArray[np.intp]) -> Judged:
        return targets[rows], np.tile(frequencies, (len(rows), 1))

    validation, test = constant(split.validation), constant(split.test)
    priors = {rule: judge(rule, validation, test) for rule in CHOOSING[judged]}
    if EPOCH_OF_CHANCES in priors:
        priors |= judge_on_chances(validation, test, halves(targets[split.validation], 0))
    results["label priors"] = priors
    return results


def _metrics(targets: Booleans, predicted: Booleans, scores: Floats) -> dict[str, Any]:
    decided = decision_metrics(targets, predicted, per_label=True)
    per_label: Mapping[str, Floats] = decided.pop("per_label")
    return {
        "test": {**decided, **ranking_metrics(targets, scores)},
        "per_label_f1": per_label["f1"].tolist(),
        "predicted": pack(predicted),
    }
