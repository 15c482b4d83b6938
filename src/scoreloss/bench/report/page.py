"""The report as one HTML page that needs nothing else: no network, no file beside it.

The leaderboard is plain HTML and reads without a script. What is drawn, and Plotly itself, is carried deflated and
unpacked by the browser when it is needed. A content security policy forbids the page to fetch anything.
"""

from __future__ import annotations

import base64
import gzip
import importlib.metadata
import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from scoreloss.bench.report.figures import across_datasets, payload, rank_diagram
from scoreloss.bench.report.names import (
    COLUMNS,
    OWN,
    RULE_NAMES,
    RULE_TITLES,
    best,
    best_of_rule,
    chosen,
    notes,
    rules,
    table,
    titles,
)
from scoreloss.bench.report.published import Published, published
from scoreloss.bench.report.text import headline, headline_across
from scoreloss.bench.results import Results
from scoreloss.bench.stats import Row

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def html(results: Sequence[Results]) -> str:
    """The whole report as one page: a section for each dataset, and ranks across them where there are several."""
    names = titles(results)
    title = escape(f"scoreloss bench: {', '.join(names)}")
    title_tag = "h1" if len(results) == 1 else "h2"
    sections = "".join(
        _section(place, name, found, title_tag)
        for place, (name, found) in enumerate(zip(names, results, strict=True))
    )
    data = {
        "metrics": COLUMNS,
        "rules": {rule: RULE_NAMES[rule] for rule in rules()},
        "datasets": [payload(found) for found in results],
    }
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{_asset("page.css")}</style>
<main>
{_across(results)}{_datasets(names)}{sections}
<footer>scoreloss {importlib.metadata.version("scoreloss")}. This page fetches nothing: it can be kept, mailed and read offline.</footer>
</main>
<script type="text/plain" id="data">{_deflated(json.dumps(data, separators=(",", ":")).encode())}</script>
<script type="text/plain" id="plotly">{_plotly()}</script>
<script>{_asset("page.js")}</script>
</html>
"""


def _section(place: int, name: str, results: Results, title_tag: str) -> str:
    data, rows = results.data, results.rows
    paper = published(data.name)
    n, c = data.targets.shape
    runs = max(len(row.seeds) for row in rows)
    facts = [
        (f"{n:,}", "examples"),
        (f"{c:,}", "labels"),
        (f"{data.targets.sum(1).mean():.1f}", "labels an example"),
        (f"{len(results.losses)}", "losses"),
        (f"{len(rules())}", "threshold rules"),
        (f"{runs}", "seeds" if runs > 1 else "seed"),
    ]
    strip = "".join(f"<li><b>{value}</b> {name}</li>" for value, name in facts)
    boards = "".join(_board(rows, metric, paper) for metric in COLUMNS)
    said = [*notes(results), *([paper.note] if paper else [])]
    return f"""<section class="dataset" data-place="{place}">
<header><p class="kicker">scoreloss bench {escape(name)}</p>
<{title_tag}>{escape(headline(rows))}</{title_tag}>
<ul class="facts">{strip}</ul></header>
<div class="card board"><h2>Leaderboard</h2>
<p class="small">Test part, in percent: mean ± standard deviation over {runs} seed{"s" if runs > 1 else ""}. A click on a column sorts.
<span class="key"><b>bold</b> the best of a rule</span> <span class="key"><mark class="top">★</mark> the best of all</span>
<span class="key"><mark class="near">≈</mark> within noise of it</span> <span class="key floor">grey: a floor, it has seen no features</span></p>
<div class="pills" role="group" aria-label="Metric"></div>
{boards}</div>
<div class="figures"><div class="card time"><h2>Compute time</h2>{_times(results, paper)}</div></div>
{_chosen(results)}<div class="card notes"><h2>How to read it</h2><ul>{"".join(f"<li>{escape(note)}</li>" for note in said)}</ul></div>
</section>
"""


def _board(rows: Sequence[Row], metric: str, paper: Published | None) -> str:
    """Losses x rules by one metric."""
    printed = {
        title: values
        for title, scores in (paper.columns if paper else {}).items()
        if (values := {loss: of_loss[metric] for loss, of_loss in scores.items() if metric in of_loss})
    }
    top = best(rows, metric)
    means = [row.mean[metric] for row in rows]
    low, high = sorted(means)[len(means) // 5], top.mean[metric]
    highest = {rule: best_of_rule(rows, rule)[metric] for rule in rules()}
    head = "".join(
        f'<th scope="col"{attributes}><button type="button" title="{escape(about)}">{escape(name)}</button></th>'
        for name, about, attributes in [
            ("loss", "by name", ""),
            *(
                (RULE_NAMES[rule], RULE_TITLES[rule], ' aria-sort="descending"' if rule == OWN else "")
                for rule in rules()
            ),
            *((title, "as published", ' class="paper"') for title in printed),
        ]
    )
    body = ""
    for name, by_rule in table(rows).items():
        floor = next(iter(by_rule.values())).is_floor
        cells = "".join(
            _figure(by_rule.get(rule), metric, highest[rule], top, (low, high)) for rule in rules()
        )
        for values in printed.values():
            value = values.get(name)
            cells += (
                '<td class="paper">–</td>'
                if value is None
                else f'<td class="paper" data-value="{value}">{value:.1f}</td>'
            )
        body += f'<tr{" class=floor" if floor else ""}><th scope="row">{escape(name)}</th>{cells}</tr>\n'
    return (
        f'<div class="scroll metric" data-metric="{metric}" tabindex="0" role="region" aria-label="{COLUMNS[metric]}">'
        f"<table><caption>{COLUMNS[metric]}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )


def _figure(row: Row | None, metric: str, highest: Row, top: Row, span: tuple[float, float]) -> str:
    if row is None:
        return "<td>–</td>"
    mean, std = row.mean[metric], row.std[metric]
    near = row.within_noise(metric)
    kind = "top" if row is top else "near" if near else ""
    mark = "★" if row is top else "≈" if near else ""
    low, high = span
    length = 100 * min(max((mean - low) / ((high - low) or 1), 0), 1)
    first, median, third = (100 * value for value in row.quartiles(metric))
    about = f"median {median:.1f}, quartiles {first:.1f} and {third:.1f}"
    if gap := row.gaps.get(metric):
        about += f"; {100 * gap.mean:.1f} behind the best, 95 % interval {100 * gap.low:.1f} to {100 * gap.high:.1f}"
    shown = f"{100 * mean:.1f}"
    return (
        f'<td class="{kind}" data-value="{100 * mean:.6f}" style="--v:{length:.0f}%" title="{about}">'
        f"<span>{mark}</span>{f'<b>{shown}</b>' if row is highest else shown}<small>±{100 * std:.1f}</small></td>"
    )


def _times(results: Results, paper: Published | None) -> str:
    minutes = paper.minutes if paper else {}
    head = "<th>loss</th><th>runs</th><th>seconds a run</th><th>seconds in all</th>"
    head += "<th>the paper, minutes a run</th>" if minutes else ""
    body = ""
    for loss in results.losses:
        of_loss = {cell: result for cell, result in results.found.items() if cell.name == loss}
        runs = sum(len(cell.contender.configs) for cell in of_loss)
        seconds = sum(result["seconds"] for result in of_loss.values())
        published_time = f"<td>{minutes.get(loss, '–')}</td>" if minutes else ""
        body += (
            f'<tr><th scope="row">{escape(loss)}</th><td>{runs}</td><td>{seconds / runs:.2f}</td>'
            f"<td>{seconds:.1f}</td>{published_time}</tr>"
        )
    return (
        '<p class="small">Training and judging. Runs that were trained together as one program share its time evenly.</p>'
        f'<div class="scroll low" tabindex="0" role="region" aria-label="Compute time">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _chosen(results: Results) -> str:
    """What was taken of what was tried, for the rules where it differs most: none tuned, and a threshold a label."""
    tables = ""
    for rule in (OWN, "per_label"):
        rows = "".join(
            f'<tr><th scope="row">{escape(loss)}</th><td class="words">{escape(words)}</td></tr>'
            for loss, words in chosen(results, rule).items()
        )
        if rows:
            tables += (
                f'<div class="scroll" tabindex="0" role="region" aria-label="Chosen under {RULE_NAMES[rule]}">'
                f'<table><thead><tr><th>loss</th><th class="words">{RULE_NAMES[rule]}: seeds x what they took</th>'
                "</tr></thead>"
                f"<tbody>{rows}</tbody></table></div>"
            )
    if not tables:
        return ""
    return f'<div class="card"><h2>What was chosen</h2><p class="small">By weighted F1 on validation data.</p>{tables}</div>'


def _datasets(names: Sequence[str]) -> str:
    if len(names) == 1:
        return ""
    buttons = "".join(
        f'<button type="button" data-place="{place}">{escape(name)}</button>'
        for place, name in enumerate(names)
    )
    return f'<nav class="pills datasets" aria-label="Dataset">{buttons}</nav>'


def _across(results: Sequence[Results]) -> str:
    if len(results) == 1:
        return ""
    tables = across_datasets(results)
    diagrams = "".join(
        f"<details{' open' if rule == next(iter(tables)) else ''}><summary>{escape(RULE_TITLES[rule])}</summary>"
        f"{rank_diagram(rule, losses, scores)}</details>"
        for rule, (losses, scores) in tables.items()
    )
    ranks = f'<div class="card"><h2>Ranks across datasets</h2>{diagrams}</div>' if diagrams else ""
    return (
        f'<header><p class="kicker">scoreloss bench, {len(results)} datasets</p>'
        f"<h1>{escape(headline_across(results))}</h1></header>{ranks}"
    )


def _asset(name: str) -> str:
    return (files("scoreloss.bench.report") / name).read_text(encoding="utf-8")


def _deflated(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


@cache
def _plotly() -> str:
    """Plotly's own script: the package carries one bundle, the whole, of 4.8 MB; 2.0 MB as it stands in the page."""
    found: Any = importlib.util.find_spec("plotly")
    if found is None:
        raise ImportError("the report needs plotly: pip install 'scoreloss[bench]'")
    return _deflated((Path(found.origin).parent / "package_data" / "plotly.min.js").read_bytes())
