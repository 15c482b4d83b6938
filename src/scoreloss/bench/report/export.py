"""The report for other programs: Markdown, LaTeX (booktabs) and Parquet."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scoreloss.bench.report.names import (
    COLUMNS,
    MAIN,
    RULE_NAMES,
    RULE_TITLES,
    best,
    best_of_rule,
    chosen,
    notes,
    of_rule,
    only_ranking,
    rules,
    table,
    titles,
)
from scoreloss.bench.report.published import published
from scoreloss.bench.report.text import headline
from scoreloss.bench.results import Results
from scoreloss.bench.stats import Row

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def markdown(results: Sequence[Results]) -> str:
    """Every table, in Markdown."""
    named = zip(titles(results), results, strict=True)
    return "\n".join(line for title, found in named for line in _markdown(title, found))


def _markdown(title: str, results: Results) -> list[str]:
    rows = results.rows
    lines = [f"# {_plain(title)}", "", _plain(headline(rows)), ""]
    lines += [
        "Weighted F1 in percent, mean ± standard deviation over seeds; the best of each rule is bold, ≈ is"
    ]
    lines += ["within noise of the best of all. Floors are in italics.", ""]
    paper = published(results.data.name)
    columns = paper.columns if paper else {}
    titles = [*(RULE_NAMES[rule] for rule in rules()), *columns]
    lines += [_line(["loss", *titles]), _line(["---", *(["---:"] * len(titles))])]
    highest = {rule: best_of_rule(rows, rule)[MAIN] for rule in rules()}
    for name, by_rule in table(rows).items():
        floor = next(iter(by_rule.values())).is_floor
        cells = [_figure(by_rule.get(rule), MAIN, highest[rule]) for rule in rules()]
        printed = [_percent(scores.get(name, {}).get(MAIN)) for scores in columns.values()]
        lines.append(_line([f"*{name}*" if floor else f"`{name}`", *cells, *printed]))
    for rule in rules():
        lines += ["", f"## {RULE_TITLES[rule]}", "", _line(["loss", *COLUMNS.values()])]
        lines.append(_line(["---", *(["---:"] * len(COLUMNS))]))
        of_metric = best_of_rule(rows, rule)
        for row in of_rule(rows, rule):
            cells = [_figure(row, metric, of_metric[metric]) for metric in COLUMNS]
            lines.append(_line([f"*{row.name}*" if row.is_floor else f"`{row.name}`", *cells]))
        lines += [_line([f"`{name}`", *["–"] * len(COLUMNS)]) for name in only_ranking(rows, rule)]
    for rule in rules():
        if taken := chosen(results, rule):
            lines += [
                "",
                f"## What was chosen: {RULE_NAMES[rule]}",
                "",
                _line(["loss", "seeds x what they took"]),
            ]
            lines += [_line(["---", "---"]), *(_line([f"`{loss}`", words]) for loss, words in taken.items())]
    said = [*notes(results), *([paper.note] if paper else [])]
    return [*lines, "", "## How to read it", "", *(f"- {_plain(note)}" for note in said), ""]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _figure(row: Row | None, metric: str, highest: Row) -> str:
    if row is None:
        return "–"
    near = "≈ " if row.within_noise(metric) else ""
    mean = f"{100 * row.mean[metric]:.1f}"
    return f"{near}{f'**{mean}**' if row is highest else mean} ± {100 * row.std[metric]:.1f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _plain(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def tex(results: Sequence[Results]) -> str:
    """Losses x rules by weighted F1, a table a dataset, for LaTeX with booktabs."""
    return "\n".join(_tex(title, found) for title, found in zip(titles(results), results, strict=True))


def _tex(title: str, results: Results) -> str:
    rows = results.rows
    highest = {rule: best_of_rule(rows, rule)[MAIN] for rule in rules()}
    top = best(rows)
    body: dict[bool, list[str]] = {False: [], True: []}
    for name, by_rule in table(rows).items():
        floor = next(iter(by_rule.values())).is_floor
        cells = []
        for rule in rules():
            row = by_rule.get(rule)
            if row is None:
                cells.append("--")
                continue
            mean = f"{100 * row.mean[MAIN]:.1f}"
            mark = "^{\\ast}" if row.within_noise(MAIN) or row is top else ""
            bold = f"\\mathbf{{{mean}}}" if row is highest[rule] else mean
            cells.append(f"${bold}{mark} \\pm {100 * row.std[MAIN]:.1f}$")
        label = f"\\textit{{{_latex(name)}}}" if floor else f"\\texttt{{{_latex(name)}}}"
        body[floor].append(f"{label} & {' & '.join(cells)} \\\\")
    head = " & ".join(["loss", *(_latex(RULE_NAMES[rule]) for rule in rules())])
    runs = max(len(row.seeds) for row in rows)
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{Weighted F1 on {_latex(title)} in percent, mean $\\pm$ standard deviation over {runs} "
            "seeds. Bold: the best of a rule; $\\ast$: the best of all, or within noise of it "
            "(paired bootstrap, 95\\,\\%). Italics: floors.}",
            f"\\begin{{tabular}}{{l{'r' * len(rules())}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
            *body[False],
            "\\midrule",
            *body[True],
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def _latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)


def parquet(results: Sequence[Results]) -> bytes:
    """A row for each cell and rule: what was trained, and every metric. A run that diverged has one row and no rule."""
    try:
        import pyarrow
        from pyarrow.parquet import write_table
    except ImportError as problem:
        raise ImportError("cells.parquet needs pyarrow: pip install 'scoreloss[bench]'") from problem
    records = [record for found in results for record in _records(found)]
    columns = dict.fromkeys(name for record in records for name in record)
    sink = io.BytesIO()
    write_table(pyarrow.table({name: [record.get(name) for record in records] for name in columns}), sink)
    return sink.getvalue()


def _records(results: Results) -> list[Mapping[str, Any]]:
    records: list[Mapping[str, Any]] = []
    for cell, result in results.found.items():
        described = cell.describe()
        settings, configs = described.pop("settings"), described.pop("configs")
        shared = {
            **described,
            **settings,
            "tried": len(configs),
            "diverged": result["diverged"],
            "seconds": result["seconds"],
        }
        judged = result.get("rules", {})
        for rule, under_rule in judged.items() if judged else [(None, {"test": {}})]:
            taken = dict(configs[under_rule["config"]] if rule else dict.fromkeys(configs[0]))
            options = {"options": json.dumps(dict(taken.pop("options") or ()))}
            picked = {name: under_rule.get(name) for name in ("epoch", "validation_weighted_f1")}
            records.append({**shared, "rule": rule, **taken, **options, **picked, **under_rule["test"]})
    return records
