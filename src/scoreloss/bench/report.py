"""The table on the terminal, and as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from scoreloss.bench.decide import RULES
from scoreloss.bench.plan import TEST_SHARE, Cell
from scoreloss.bench.stats import Row
from scoreloss.data import Dataset

COLUMNS = {
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "weighted_f1": "weighted F1",
    "samples_f1": "samples F1",
    "weighted_precision": "precision",
    "map": "mAP",
}
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


def text(rows: Sequence[Row]) -> str:
    """The table for a terminal, in percent: mean and standard deviation over seeds, * the best of a rule."""
    lines = []
    names = {row: f"({row.name})" if row.is_floor else row.name for row in rows}
    width = max(map(len, names.values()))
    header = "  ".join(f"{title:>12}" for title in COLUMNS.values())
    for rule in RULES:
        lines += ["", RULE_TITLES[rule], f"  {'':{width}}{header}"]
        for row in _sorted(rows, rule):
            best = _best(rows, rule)
            figures = "  ".join(
                f"{100 * row.mean[m]:6.1f} ±{100 * row.std[m]:3.1f}{'*' if row is best[m] else ' '}"
                for m in COLUMNS
            )
            lines.append(f"  {names[row]:{width}}{figures}".rstrip())
        for name in _only_ranking(rows, rule):
            lines.append(f"  {name:{width}}" + "  ".join(f"{'-':>6}{'':6}" for _ in COLUMNS).rstrip())
    return "\n".join([*lines[1:], "", NAMES_NOTE])


def headline(rows: Sequence[Row]) -> str:
    """What the table says in one sentence."""
    own = _sorted([row for row in rows if not row.is_floor], "fixed_0.5")
    tuned = max(
        (row for row in rows if not row.is_floor and row.rule != "fixed_0.5"),
        key=lambda row: row.mean["weighted_f1"],
    )
    best_tuned = f"{tuned.name} under {RULE_NAMES[tuned.rule]}, {100 * tuned.mean['weighted_f1']:.1f}."
    if not own:
        return f"The best weighted F1 is that of {best_tuned}"
    return (
        f"With no threshold tuned, {own[0].name} reaches a weighted F1 of {100 * own[0].mean['weighted_f1']:.1f}; "
        f"the best with another rule is {best_tuned}"
    )


def html(
    dataset: Dataset,
    rows: Sequence[Row],
    planned: Sequence[Cell],
    results: Mapping[Cell, Mapping[str, Any]],
) -> str:
    """The whole report as one page."""
    tables = "".join(_table(rows, rule) for rule in RULES)
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(dataset, rows, planned, results))
    diverged = [f"{cell.loss} with seed {cell.seed}" for cell in planned if results[cell]["diverged"]]
    lost = escape(f" Left out, since they diverged: {', '.join(diverged)}.") if diverged else ""
    title = escape(f"scoreloss bench {dataset.name}")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
<main>
<h1>{title}</h1>
<p class="lead">{escape(headline(rows))}</p>
{_chart(rows)}
<p>In percent, mean ± standard deviation over {max(row.seeds for row in rows)} seeds; the best of each rule is bold.
Grey rows are floors: they have seen no features.{lost}</p>
{tables}
<h2>How to read it</h2>
<ul>{notes}</ul>
</main>
</html>
"""


def _notes(
    dataset: Dataset,
    rows: Sequence[Row],
    planned: Sequence[Cell],
    results: Mapping[Cell, Mapping[str, Any]],
) -> list[str]:
    settings = planned[0].settings
    n, c = dataset.targets.shape
    seconds = sum(results[cell]["seconds"] for cell in planned)
    start = {
        "priors": "started at the label priors",
        "default": "started as nn.Linear starts",
    }[settings.init]
    return [
        f"Data: {n:,} examples, {c} labels, {dataset.targets.sum(1).mean():.2f} labels an example; {_parts(dataset)}.",
        *dataset.notes,
        f"A seed draws {_drawn(dataset)}the batch order and the weights.",
        f"Heads: {settings.head}, trained with {settings.framework}, {start}, on standardised features; Adam, learning rate {settings.learning_rate:g}, "
        f"weight decay {settings.weight_decay:g}, batches of {settings.batch_size}, up to {settings.epochs} epochs. "
        "The settings are the same for all losses and were not tuned for each.",
        "Each loss is judged under each rule at the epoch where that rule scored the best weighted F1 on validation "
        "data. Rules that learn are cross-fitted for this choice and then fitted on all of the validation part; "
        "the test part is used for the figures here alone.",
        "Lipton, ExpectedF1 and TopK need probabilities: the scores of every loss are calibrated by Platt's sigmoid on "
        "the validation part, at the epoch of PerLabel, since to calibrate at every epoch takes longer than to train.",
        "Fixed(0.5) is applied to loss.scores, where 0.5 is the boundary the loss itself was trained with; a loss that "
        "only ranks has none, which a dash says.",
        NAMES_NOTE,
        f"{len(planned)} runs took {seconds:.0f} s of training and judging in all; "
        f"data hash {dataset.content_hash[:12]}.",
    ]


def _parts(dataset: Dataset) -> str:
    n = len(dataset.targets)
    sizes = {part: len(rows) for part, rows in dataset.splits.items()}
    if "validation" in sizes:
        return f"{sizes['train']:,} for training, {sizes['validation']:,} for validation, {sizes['test']:,} for the test"
    test = sizes.get("test", round(TEST_SHARE * n))
    return f"{sizes.get('train', n - test):,} for training and validation, {test:,} for the test"


def _drawn(dataset: Dataset) -> str:
    """What of the split is not the dataset's own."""
    test = "" if "test" in dataset.splits else "the test part (a fifth, stratified), "
    if "validation" in dataset.splits:
        return test
    return f"{test}the validation part (a fifth of the training part, stratified), "


def _table(rows: Sequence[Row], rule: str) -> str:
    best = _best(rows, rule)
    head = "".join(f"<th>{escape(title)}</th>" for title in COLUMNS.values())
    body = ""
    for row in _sorted(rows, rule):
        cells = "".join(
            f'<td class="{"best" if row is best[m] else ""}">{100 * row.mean[m]:.1f}'
            f"<small> ± {100 * row.std[m]:.1f}</small></td>"
            for m in COLUMNS
        )
        kind = "floor" if row.is_floor else ""
        body += f'<tr class="{kind}"><th scope="row">{escape(row.name)}</th>{cells}</tr>\n'
    dashes = "<td>–</td>" * len(COLUMNS)
    for name in _only_ranking(rows, rule):
        body += f'<tr><th scope="row">{escape(name)}</th>{dashes}</tr>\n'
    return (
        f"<h2>{escape(RULE_TITLES[rule])}</h2>\n<div class='scroll'><table><thead><tr><th></th>{head}</tr></thead>"
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _chart(rows: Sequence[Row]) -> str:
    """Weighted F1 of every loss under every rule, and the highest floor, as SVG."""
    trained = [row for row in rows if not row.is_floor]
    floor = max(row.mean["weighted_f1"] for row in rows if row.is_floor)
    low = min(floor, *(row.mean["weighted_f1"] - row.std["weighted_f1"] for row in trained))
    high = max(row.mean["weighted_f1"] + row.std["weighted_f1"] for row in trained)
    span = (high - low) or 1.0
    left, width, line, gap = 150, 520, 20, 34

    def across(value: float) -> float:
        return left + 20 + (width - 40) * (value - low) / span

    parts = ['<text class="rule" x="0" y="12">Weighted F1 on the test part</text>']
    y = 12
    for rule in RULES:
        y += gap
        parts.append(f'<text class="rule" x="0" y="{y}">{escape(RULE_NAMES[rule])}</text>')
        for row in _sorted(trained, rule):
            name = row.name
            mean, std = row.mean["weighted_f1"], row.std["weighted_f1"]
            y += line
            parts.append(
                f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
                f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>'
                f'<line class="spread" x1="{across(mean - std):.1f}" x2="{across(mean + std):.1f}" y1="{y}" y2="{y}"/>'
                f'<circle cx="{across(mean):.1f}" cy="{y}" r="5"/>'
                f'<text x="{left + width + 8}" y="{y + 4}">{100 * mean:.1f}</text>'
            )
    parts.append(
        f'<line class="floor-line" x1="{across(floor):.1f}" x2="{across(floor):.1f}" y1="26" y2="{y + 10}"/>'
        f'<text class="floor-name" x="{across(floor):.1f}" y="{y + 26}" text-anchor="middle">'
        f"the highest floor {100 * floor:.1f}</text>"
    )
    return (
        f'<div class="scroll"><svg viewBox="0 0 {left + width + 50} {y + 32}" role="img" '
        f'aria-label="Weighted F1 of each loss under each rule">{"".join(parts)}</svg></div>'
    )


def _sorted(rows: Sequence[Row], rule: str) -> list[Row]:
    """The rows of a rule, the floors last, by weighted F1."""
    return sorted(
        (row for row in rows if row.rule == rule),
        key=lambda row: (row.is_floor, -row.mean["weighted_f1"]),
    )


def _only_ranking(rows: Sequence[Row], rule: str) -> list[str]:
    """Losses that were trained, and have no boundary for this rule to speak of."""
    seen = {row.name for row in rows if row.rule == rule}
    return [name for name in dict.fromkeys(row.name for row in rows) if name not in seen]


def _best(rows: Sequence[Row], rule: str) -> dict[str, Row]:
    of_rule = [row for row in rows if row.rule == rule]
    return {m: max(of_rule, key=lambda row: row.mean[m]) for m in COLUMNS}


STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #8a929c; --line: #dde1e6; --paper: #fff; --mark: #0b66c3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --faint: #8d96a1; --line: #333a42; --paper: #14171a; --mark: #6fb3ff; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .4rem; }
.lead { font-size: 1.15rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 500; } th[scope=row] { text-align: left; } td small { color: var(--faint); }
.best { font-weight: 700; } .floor { color: var(--faint); }
svg { width: 100%; min-width: 36rem; height: auto; font: 12px system-ui, sans-serif; fill: var(--ink); }
svg circle { fill: var(--mark); } svg .spread { stroke: var(--mark); stroke-width: 3; opacity: .45; }
svg .floor-line { stroke: var(--faint); stroke-dasharray: 4 4; } svg .floor-name { fill: var(--faint); }
svg .grid { stroke: var(--line); } svg .rule { font-weight: 600; }
"""
