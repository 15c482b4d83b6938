"""What the report calls things, and the order it shows them in."""

from __future__ import annotations

from collections.abc import Sequence

from scoreloss.bench.decide import RULES
from scoreloss.bench.results import Results
from scoreloss.bench.stats import RESAMPLES, Row

COLUMNS = {
    "weighted_f1": "weighted F1",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "samples_f1": "samples F1",
    "weighted_precision": "precision",
    "map": "mAP",
}
MAIN = "weighted_f1"
"""What epochs were chosen by, and what the report leads with."""

OWN = "fixed_0.5"
"""The rule that tunes nothing."""

RULE_NAMES = {
    "fixed_0.5": "own boundary",
    "fixed_0.05": "Fixed(0.05)",
    "global": "Global",
    "per_label": "PerLabel",
    "averaging": "Averaging",
    "lipton": "Lipton",
    "expected_f1": "ExpectedF1",
    "top_k": "TopK",
}
RULE_TITLES = {
    "fixed_0.5": "Own boundary: Fixed(0.5), nothing tuned",
    "fixed_0.05": "Fixed(0.05)",
    "global": "Global: one threshold, fitted on validation data",
    "per_label": "PerLabel: a threshold for each label, fitted on validation data",
    "averaging": "Averaging: the mean of each example's best threshold, on validation data",
    "lipton": "Lipton: half the best F1 expected of a label, on calibrated scores",
    "expected_f1": "ExpectedF1: the label set of highest expected F1 for each example, on calibrated scores",
    "top_k": "TopK: as many labels as are expected of each example, on calibrated scores",
}
NAMES_NOTE = (
    "Names are scikit-learn's; the paper swaps two: what it calls macro F1 is micro F1 here, and the reverse. "
    "Precision is weighted by positives, mAP interpolated as in the paper."
)
NOISE_NOTE = (
    "Within noise of the best: the difference to the highest mean, over all losses, floors and rules, has a 95 % "
    f"interval that reaches 0. The interval is that of {RESAMPLES:,} paired draws of test examples and seeds together; "
    "no correction for many comparisons. mAP depends on scores, of which no draws are made."
)


def of_rule(rows: Sequence[Row], rule: str, metric: str = MAIN) -> list[Row]:
    """The rows of a rule, the floors last, from the best down."""
    return sorted(
        (row for row in rows if row.rule == rule), key=lambda row: (row.is_floor, -row.mean[metric])
    )


def only_ranking(rows: Sequence[Row], rule: str) -> list[str]:
    """Losses that were trained, and have no boundary for this rule to speak of."""
    seen = {row.name for row in rows if row.rule == rule}
    return [name for name in dict.fromkeys(row.name for row in rows) if name not in seen]


def best_of_rule(rows: Sequence[Row], rule: str) -> dict[str, Row]:
    """Metric -> the best row of a rule."""
    among = [row for row in rows if row.rule == rule]
    return {metric: max(among, key=lambda row: row.mean[metric]) for metric in COLUMNS}


def best(rows: Sequence[Row], metric: str = MAIN) -> Row:
    """The best of all rows."""
    return max(rows, key=lambda row: row.mean[metric])


def table(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Name -> rule -> row, from the best down as it stands with nothing tuned; what only ranks by its best rule."""
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, {})[row.rule] = row

    def height(name: str) -> tuple[bool, float]:
        of_name = by_name[name]
        own = of_name.get(OWN)
        return own is not None, (own or best(list(of_name.values()))).mean[MAIN]

    return {name: by_name[name] for name in sorted(by_name, key=height, reverse=True)}


def notes(results: Results) -> list[str]:
    """What a reader has to know, a sentence or two each."""
    data = results.data
    cell = next(iter(results.found))
    settings = cell.settings
    n, c = data.targets.shape
    split = next(iter(results.splits.values()))
    seconds = sum(result["seconds"] for result in results.found.values())
    start = {
        "priors": "started at the label priors",
        "default": "started as nn.Linear starts",
    }[settings.init]
    gone = [f"{cell.loss} with seed {cell.seed}" for cell in results.diverged]
    return [
        f"Data: {n:,} examples, {c:,} labels, {data.targets.sum(1).mean():.2f} labels an example; "
        f"{len(split.train):,} for training, {len(split.validation):,} for validation, {len(split.test):,} for the test.",
        *data.notes,
        f"A seed draws {_drawn(data.parts)}the batch order and the weights.",
        f"Heads: {settings.head}, trained with {settings.framework}, {start}, on standardised features ({cell.backbone}); Adam, learning rate "
        f"{settings.learning_rate:g}, weight decay {settings.weight_decay:g}, batches of {settings.batch_size}, up to "
        f"{settings.epochs} epochs. The settings are the same for all losses and were not tuned for each.",
        "Each loss is judged under each rule at the epoch where that rule scored the best weighted F1 on validation "
        "data. Rules that learn are cross-fitted for this choice and then fitted on all of the validation part; "
        "the test part is used for the figures here alone.",
        "Lipton, ExpectedF1 and TopK need probabilities: the scores of every loss are calibrated by Platt's sigmoid on "
        "the validation part, at the epoch of PerLabel, since to calibrate at every epoch takes longer than to train.",
        "Fixed(0.5) is applied to loss.scores, where 0.5 is the boundary the loss itself was trained with; a loss that "
        "only ranks has none, which a dash says.",
        "Floors have seen no features: they say everything, nothing, or each label's frequency.",
        NOISE_NOTE,
        NAMES_NOTE,
        *([f"Left out, since they diverged: {', '.join(gone)}."] if gone else []),
        *([f"{results.missing} runs of the plan are not there yet."] if results.missing else []),
        f"{len(results.found)} runs took {seconds:.0f} s of training and judging in all; "
        f"data hash {data.content_hash[:12]}.",
    ]


def _drawn(parts: Sequence[str]) -> str:
    """What of the split is not the dataset's own."""
    drawn = [part for part in ("test", "validation") if part not in parts]
    return "".join(f"the {part} part (stratified), " for part in drawn)


def rules() -> list[str]:
    """The rules, in the order of the columns."""
    return list(RULES)
