"""The paper's tables with what was measured beside what it printed, in Markdown and for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scoreloss.bench.decide import put_on
from scoreloss.bench.report.figures import heat_map
from scoreloss.bench.report.names import of_rule, only_ranking, text_of
from scoreloss.bench.report.published import DATASETS, Setting, has, printed, published, setting
from scoreloss.bench.results import Results
from scoreloss.bench.stats import Row

METRICS = {
    "weighted_f1": "weightedF1",
    "micro_f1": "macroF1",
    "macro_f1": "microF1",
    "macro_precision": "precision",
    "map": "mAP",
}
"""Metric -> the paper's name for it in its main table and that of threshold averaging."""

UNSWAPPED = {**METRICS, "micro_f1": "microF1", "macro_f1": "macroF1"}
"""The same in the table of single runs, where the two are not swapped, by their sizes."""

TITLES = {
    "weighted_f1": "weighted F1",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "macro_precision": "precision",
    "map": "mAP",
}

BESIDE = {"voc": 0.8}
"""A second threshold of the paper."""

OWN_BOUNDARY = 0.5

NEEDS = {"arxiv": "FILE"}
"""What stands after the colon, where it is no folder."""


@dataclass(frozen=True, eq=False)
class Reproduced:
    """What was found on one of the paper's datasets."""

    dataset: str
    """Its format here."""
    main: Results
    grid: Results | None
    """Slopes x offsets."""
    min_count: int

    @property
    def setting(self) -> Setting:
        """The paper's."""
        return setting(self.dataset)

    @property
    def thresholds(self) -> list[float]:
        """The paper's, and the boundary of each loss."""
        beside = [BESIDE[self.dataset]] if self.dataset in BESIDE else []
        return list(dict.fromkeys([self.setting.threshold, *beside, OWN_BOUNDARY]))

    @property
    def section(self) -> str:
        """Which of the paper's tables it stands in."""
        return "main_results" if has("main_results", self.dataset) else "additional_results"


@dataclass(frozen=True)
class Sheet:
    """A table with a title and what must be said of it."""

    title: str
    head: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    level: int = 2
    italic: frozenset[str] = field(default_factory=frozenset)
    """The names of lines that are floors."""

    def markdown(self) -> list[str]:
        """The lines of Markdown."""
        said = [f"{'#' * self.level} {self.title}", ""]
        if self.head:
            names = [
                f"*{line[0]}*" if line[0] in self.italic else f"`{line[0]}`" if self.italic else line[0]
                for line in self.lines
            ]
            said += [f"| {' | '.join(self.head)} |", f"|---|{'---:|' * (len(self.head) - 1)}"]
            said += [
                f"| {' | '.join([name, *line[1:]])} |" for name, line in zip(names, self.lines, strict=True)
            ]
            said.append("")
        return said + ([*(f"- {note}" for note in self.notes), ""] if self.notes else [])

    def text(self) -> list[str]:
        """The lines for a terminal."""
        said = ["", self.title if self.level > 2 else self.title.upper()]
        if self.head:
            shown = [
                list(self.head),
                *([f"({line[0]})" if line[0] in self.italic else line[0], *line[1:]] for line in self.lines),
            ]
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            said += [
                "  ".join(
                    [
                        line[0].ljust(widths[0]),
                        *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
                    ]
                ).rstrip()
                for line in shown
            ]
        return said + [note.replace("`", "") for note in self.notes]


def sheets(found: Sequence[Reproduced]) -> list[Sheet]:
    """All tables of the paper, in its order: those of the datasets that were given, and which were not run."""
    return [
        Sheet("The paper's tables, run again", notes=_about(found), level=1),
        *_scores("Main results", "main_results", found),
        *_averaging(found),
        *_scores("Additional experiments", "additional_results", found),
        *_sensitivity(found),
        *_time(found),
    ]


def markdown(found: Sequence[Reproduced]) -> str:
    """The page."""
    return "\n".join(line for sheet in sheets(found) for line in sheet.markdown())


def text(found: Sequence[Reproduced]) -> str:
    """The tables for a terminal."""
    return "\n".join(line for sheet in sheets(found) for line in [*sheet.text()[1:], ""])


def _about(found: Sequence[Reproduced]) -> list[str]:
    cell = next(iter(found[0].main.found))
    config = cell.contender.configs[0]
    seeds = len({cell.seed for cell in found[0].main.found})
    said = [
        "In percent, mean ± standard deviation over seeds; `paper` is what it printed. Rows in italics are floors, which have "
        "seen no features.",
        f"{seeds} seeds. Adam, {text_of(config)}. The paper says batches of 256 and Adam, and nothing of a learning rate, a "
        "weight decay or the start of a head.",
        f"The head is the paper's ({cell.settings.head}: ReLU, then linear), on standardised features of a frozen backbone; the "
        "paper trained the backbone too.",
        "Nothing is tuned and no epoch is chosen: the last one is judged. The paper gives a fixed number of epochs for each "
        "dataset, and its published code keeps the last weights.",
        "The paper compares sigmoid(z) with its threshold, whatever boundary a loss was trained with. `loss.scores` stand "
        "beside: there 0.5 is the loss's own boundary. For `bce`, `focal` and `asymmetric` the two are the same.",
        "Micro and macro are scikit-learn's; the paper's main tables swap them, and both names stand in the columns. Precision "
        "is macro, mAP interpolated.",
    ]
    for one in found:
        said += _of_dataset(one)
    coded = [c for one in found for c in one.main.found if c.loss.endswith("as_coded")]
    if coded:
        said.append(
            f"`{coded[0].name}`: S(sigmoid(z)) = 1 / (1 + exp(-slope (sigmoid(z) + offset))), with the slope and offset of "
            "`sigmoid_f1`. It lies above 1/2 for every z where the offset is not negative, so it has no boundary: only sigmoid(z) "
            "is compared with thresholds."
        )
    gone = [f"{c.name} with seed {c.seed} on {one.dataset}" for one in found for c in one.main.diverged]
    return said + ([f"Left out, since they diverged: {', '.join(gone)}."] if gone else [])


def _of_dataset(one: Reproduced) -> Iterator[str]:
    paper, data = one.setting, one.main.data
    cell = next(iter(one.main.found))
    n, c = data.targets.shape
    split = next(iter(one.main.splits.values()))
    counted = f"labels of {one.min_count:,} examples and more" if one.min_count else "all labels"
    yield (
        f"{one.dataset}: {n:,} examples, {c:,} labels ({counted}), {data.targets.sum(1).mean():.2f} labels an example; the paper's "
        f"{paper.name} has {paper.examples:,} and {paper.labels:,}. {len(split.train):,} for training, "
        f"{len(split.validation):,} for validation (which threshold averaging learns on), {len(split.test):,} for the test. "
        f"{cell.settings.epochs} epochs; features by {_short(cell.backbone)}, the paper's backbone is {paper.backbone}."
    )
    slope, offset = _slope_and_offset(one)
    if paper.beta < 0:
        why = (
            "the paper's code has 1 / (1 + exp(beta (u + eta))), which rises where beta is negative; here a slope is "
            "above 0"
        )
    else:
        why = "as the paper's formula reads; under the sign of its code, beta 1 would fall"
    yield (
        f"{one.dataset}: `sigmoid_f1` with the paper's {{beta {paper.beta:g}, eta {paper.eta:g}}} is run as slope {slope:g}, "
        f"offset {offset:g} ({why}). Its own boundary is z = {-offset:g}."
    )


def _short(backbone: str) -> str:
    return backbone.rstrip("/").rpartition("/")[2]


def _slope_and_offset(one: Reproduced) -> tuple[float, float]:
    cell = next(cell for cell in one.main.found if cell.loss == "sigmoid_f1")
    options = dict(cell.contender.configs[0].options)
    return options["slope"], options["offset"]


def _scores(title: str, section: str, found: Sequence[Reproduced]) -> Iterator[Sheet]:
    notes = [*_not_run(section, found), *_all_positive(section)]
    if section == "additional_results":
        notes.append("The paper's are single runs; here it does not swap micro and macro, by their sizes.")
    yield Sheet(title, notes=notes)
    for one in found:
        if one.section != section:
            continue
        for threshold in one.thresholds:
            beside = printed(section, one.dataset) if threshold == one.setting.threshold else {}
            yield _beside(one, f"sigmoid_{threshold:g}", f"sigmoid(z) >= {threshold:g}", section, beside)
            own = " (the loss's own boundary)" if threshold == OWN_BOUNDARY else ""
            yield _beside(one, f"fixed_{threshold:g}", f"loss.scores >= {threshold:g}{own}", section, {})


def _averaging(found: Sequence[Reproduced]) -> Iterator[Sheet]:
    section = "threshold_averaging"
    told = "The threshold is the mean of each example's best one on validation data. The paper has this table for arXiv2020."
    yield Sheet("Threshold averaging", notes=[told, *_not_run(section, found)])
    for one in found:
        beside = printed(section, one.dataset)
        yield _beside(one, "sigmoid_averaging", "averaged thresholds on sigmoid(z)", section, beside)
        yield _beside(one, "averaging", "averaged thresholds on loss.scores", section, {})


def _beside(
    one: Reproduced, rule: str, title: str, section: str, beside: Mapping[str, Mapping[str, float]]
) -> Sheet:
    """Losses and floors under one rule, and what the paper printed."""
    rows = of_rule(one.main.rows, rule)
    names = UNSWAPPED if section == "additional_results" else METRICS
    head = ["loss"]
    for metric, theirs in names.items():
        head.append(_both_names(metric, theirs))
        head += ["paper"] if beside else []
    lines = []
    for row in rows:
        line = [row.name]
        for metric, theirs in names.items():
            line.append(f"{100 * row.mean[metric]:.2f} ± {100 * row.std[metric]:.2f}")
            value = beside.get(_plain(row.name), {}).get(theirs)
            line += ["–" if value is None else f"{value:g}"] if beside else []
        lines.append(line)
    lines += [[name, *["–"] * (len(head) - 1)] for name in only_ranking(one.main.rows, rule)]
    floors = frozenset(row.name for row in rows if row.is_floor)
    return Sheet(
        f"{one.dataset}: {title}", head, lines, [*_is_a_floor(rows, put_on(rule))], level=3, italic=floors
    )


def _both_names(metric: str, theirs: str) -> str:
    if metric not in ("micro_f1", "macro_f1"):
        return TITLES[metric]
    return f"{TITLES[metric]} (the paper's {theirs.removesuffix('F1')} F1)"


def _plain(name: str) -> str:
    """The loss that the paper printed, of one that is run in two ways."""
    return name.partition(" ")[0]


def _is_a_floor(rows: Sequence[Row], of: str) -> Iterator[str]:
    """Losses that say of every example what a floor says."""
    for floor in (row for row in rows if row.is_floor and row.name != "label priors"):
        metrics = ("weighted_f1", "micro_f1", "macro_f1", "macro_precision", "micro_recall")
        same = [
            f"`{row.name}`"
            for row in rows
            if not row.is_floor
            and all(f"{100 * row.mean[m]:.2f}" == f"{100 * floor.mean[m]:.2f}" for m in metrics)
        ]
        if same:
            on = "sigmoid(z)" if of == "sigmoid" else "loss.scores"
            yield f"To the digit the floor *{floor.name}*: {', '.join(same)} on {on}."


def _all_positive(section: str) -> Iterator[str]:
    """Rows of the paper that are what predicting everything gives.

    It has recall 1, so its micro F1 is 2p / (1 + p), with p its precision, which is the same micro and macro.
    """
    micro = (UNSWAPPED if section == "additional_results" else METRICS)["micro_f1"]
    for dataset, name in DATASETS.items():
        for loss, scores in printed(section, dataset).items():
            p = scores["precision"]
            if p and scores[micro] == round(200 * p / (100 + p), 2):
                yield (
                    f"The paper's `{loss}` on {name} is all positive to the digit: with recall 1, its precision of {p:g} makes a "
                    f"micro F1 of 2p / (1 + p) = {200 * p / (100 + p):.2f}, and it printed {scores[micro]:g} (as {micro})."
                )


def _not_run(section: str, found: Sequence[Reproduced]) -> Iterator[str]:
    given = [one.dataset for one in found]
    left = [d for d in DATASETS if d not in given and (section == "sensitivity" or has(section, d))]
    if left:
        names = ", ".join(f"{setting(d).name} ({d}:{NEEDS.get(d, 'DIR')})" for d in left)
        yield f"Not run, since not given: {names}."


def _sensitivity(found: Sequence[Reproduced]) -> Iterator[Sheet]:
    notes = [
        "Weighted F1 on validation data at the last epoch, mean over seeds, by slope (across) and offset (down): the grid spans "
        "the paper's, slopes from 1 to 30 and offsets from 0 to 2. What it reports as best for images, offset 10.25, and for text, "
        "offset 9, lies outside of it; those are in the tables above.",
        *_not_run("sensitivity", found),
    ]
    if not any(one.grid for one in found):
        notes.append("Left out of this run.")
    yield Sheet("Sensitivity: slope x offset", notes=notes)
    for one in found:
        if one.grid is None:
            continue
        for threshold in dict.fromkeys([one.setting.threshold, OWN_BOUNDARY]):
            for rule, on in (
                (f"sigmoid_{threshold:g}", "sigmoid(z)"),
                (f"fixed_{threshold:g}", "loss.scores"),
            ):
                for loss, drawn in (heat_map(one.grid, rule) or {}).items():
                    lines = [
                        [f"{offset:g}", *("–" if value is None else f"{value:.1f}" for value in values)]
                        for offset, values in zip(drawn["offsets"], drawn["values"], strict=True)
                    ]
                    head = ["offset", *(f"slope {slope:g}" for slope in drawn["slopes"])]
                    yield Sheet(f"{one.dataset}: {loss}, {on} >= {threshold:g}", head, lines, level=3)


def _time(found: Sequence[Reproduced]) -> Iterator[Sheet]:
    lines = []
    for one in found:
        paper = published(one.dataset)
        minutes = paper.minutes if paper else {}
        seconds: dict[str, list[float]] = {}
        for cell, result in one.main.found.items():
            seconds.setdefault(cell.name, []).append(result["seconds"])
        for loss, took in seconds.items():
            theirs = minutes.get(_plain(loss))
            lines.append(
                [
                    f"{one.dataset}, {loss}",
                    f"{sum(took) / len(took):.1f} s",
                    "–" if theirs is None else f"{theirs:g} min",
                ]
            )
        every = [s for took in seconds.values() for s in took]
        lines.append([f"{one.dataset}, all {len(every)} runs", f"{sum(every):.1f} s", "–"])
    notes = [
        "Losses and seeds are trained side by side as one program, and a run's time is its share: training and judging, without "
        "the features. The paper's is a run on up to four GPUs (AWS g4dn.12xlarge), with the backbone in it.",
        *_not_run("training_minutes", found),
    ]
    yield Sheet("Compute time", ["run", "measured", "the paper"], lines, notes)
