"""What the report calls things, and the order it shows them in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scoreloss.bench.contenders import Config
from scoreloss.bench.decide import RULES
from scoreloss.bench.plan import Cell, Settings
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
    "Precision is weighted by positives (the paper's is macro), mAP interpolated as in the paper."
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
    runs = sum(len(cell.contender.configs) for cell in results.found)
    gone = [f"{cell.name} with seed {cell.seed}" for cell in results.diverged]
    return [
        f"Data: {n:,} examples, {c:,} labels, {data.targets.sum(1).mean():.2f} labels an example; "
        f"{len(split.train):,} for training, {len(split.validation):,} for validation, {len(split.test):,} for the test.",
        *data.notes,
        f"A seed draws {_drawn(data.parts)}the batch order and the weights.",
        f"Heads: {settings.head}, trained with {settings.framework} on standardised features ({cell.backbone}); Adam, up to "
        f"{settings.epochs} epochs{_stopping(settings)}.",
        *_tuning(results),
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
        f"{runs} runs took {seconds:.0f} s of training and judging in all; "
        f"data hash {data.content_hash[:12]}.",
    ]


def _stopping(settings: Settings) -> str:
    if settings.patience is None:
        return ""
    return (
        f", and no further after {settings.patience} without getting better on validation data under any rule"
    )


def _tuning(results: Results) -> list[str]:
    """How the losses were trained, and what could be chosen."""
    contenders = {cell.name: cell.contender for cell in results.found}
    tried = {name: len(contender.configs) for name, contender in contenders.items()}
    first = {contender.configs[0] for contender in contenders.values()}
    if set(tried.values()) == {1} and len({replace(config, options=()) for config in first}) == 1:
        options = "".join(
            f" {name}: {described}."
            for name, c in contenders.items()
            if (described := option_text(c.configs[0]))
        )
        return [
            f"All losses: {text_of(replace(next(iter(first)), options=()))}. The settings are the same for all losses and "
            f"were not tuned for each.{options}"
        ]
    budgets = sorted(set(tried.values()))
    said = (
        f"Each loss was trained in {budgets[0]} ways"
        if len(budgets) == 1
        else f"Losses were trained in {', '.join(f'{n} ({name})' for name, n in tried.items())} ways"
    )
    return [
        f"{said}: learning rates, then knobs of its own, then weight decays. For each seed and rule the way with the best "
        "weighted F1 on validation data under that rule was taken; what was taken stands below.",
    ]


def text_of(config: Config) -> str:
    """A configuration in words."""
    start = {"priors": "started at the label priors", "default": "started as nn.Linear starts"}[config.init]
    batch = "the whole training part" if config.batch_size is None else f"batches of {config.batch_size}"
    decay = f"weight decay {config.weight_decay:g}"
    if config.epoch_decay:
        decay = f"weight decay {config.epoch_decay:g} an epoch"
    parts = [f"learning rate {config.learning_rate:g}", decay, batch, start]
    return ", ".join([*parts, *filter(None, [option_text(config)])])


def option_text(config: Config) -> str:
    """What of a configuration is the loss's own, and how it is mixed with bce; nothing where all is as by default."""
    parts = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in config.options
    ]
    parts += [f"{config.bce:g} of bce"] if config.bce else []
    parts += [f"warmed up on bce for {100 * config.warm_up:g} % of the steps"] if config.warm_up else []
    return ", ".join(parts)


def chosen(results: Results, rule: str) -> dict[str, str]:
    """Loss -> which of its configurations were taken under a rule, and by how many seeds; of those that had a choice."""
    said = {}
    for loss in results.losses:
        configs = next(cell.contender.configs for cell in results.found if cell.name == loss)
        taken = Counter(judged["config"] for judged in results.under(rule, loss).values())
        if len(configs) > 1 and taken:
            said[loss] = "; ".join(
                f"{times} x {_brief(configs[index], configs)}" for index, times in taken.most_common()
            )
    return said


def _brief(config: Config, configs: Sequence[Config]) -> str:
    """What of a configuration is not the same in all."""
    parts = [
        f"{title} {getattr(config, name):g}"
        for name, title in (
            ("learning_rate", "learning rate"),
            ("weight_decay", "weight decay"),
            ("epoch_decay", "decay an epoch"),
        )
        if len({getattr(other, name) for other in configs}) > 1
    ]
    if len({config.batch_size for config in configs}) > 1:
        parts.append("whole batches" if config.batch_size is None else f"batches of {config.batch_size}")
    return ", ".join([*parts, *filter(None, [option_text(config)])])


def _drawn(parts: Sequence[str]) -> str:
    """What of the split is not the dataset's own."""
    drawn = [part for part in ("test", "validation") if part not in parts]
    return "".join(f"the {part} part (stratified), " for part in drawn)


def titles(results: Sequence[Results]) -> list[str]:
    """What tells the tables apart: the dataset, and backbone and head where it stands there with several."""
    first = [next(iter(found.found)) for found in results]

    def parts_of(cell: Cell) -> tuple[str, ...]:
        return (cell.backbone.rstrip("/").rpartition("/")[2], cell.settings.head)

    return [
        ", ".join(
            [
                cell.dataset,
                *(
                    part
                    for place, part in enumerate(parts_of(cell))
                    if len({parts_of(other)[place] for other in first if other.dataset == cell.dataset}) > 1
                ),
            ]
        )
        for cell in first
    ]


def rules() -> list[str]:
    """The rules, in the order of the columns."""
    return list(RULES)
