"""What a fitted model is worth on a dataset: the numbers of ``scoreloss.evaluate``, and a page with them.

The page is one file that needs nothing else: plain HTML and SVG, no script, and a policy that forbids to fetch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from scoreloss.bench import decide
from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.data import Dataset
from scoreloss.metrics import decision_metrics, ranking_metrics
from scoreloss.model.choose import measured
from scoreloss.model.fitted import Model
from scoreloss.say import Say, silent

PARTS = ("all", "train", "validation", "test")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MAIN = ("weighted_f1", "micro_f1", "macro_f1", "samples_f1")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A model's predictions beside the truth, for the labels that both know."""

    name: str
    part: str
    labels: tuple[str, ...]
    targets: Booleans
    decided: Booleans
    rated: Floats
    on: str
    thresholds: Floats | None
    expected_f1: Floats
    notes: tuple[str, ...]
    metrics: Mapping[str, float]
    intervals: Mapping[str, Sequence[float]]
    per_label: Mapping[str, Floats]


def evaluate(model: Model, dataset: Dataset, part: str | None = None, say: Say = silent) -> Evaluation:
    """Predict a part of a dataset (None: its official test part, or all of it), and compare."""
    one_of("part", part, (None, *PARTS))
    if dataset.kind != model.kind:
        raise InputError(f"{dataset.name} is of kind {dataset.kind}: the model takes {model.kind}")
    part = part or ("test" if "test" in dataset.splits else "all")
    if part != "all" and part not in dataset.splits:
        raise InputError(
            f"part is {part!r}: {dataset.name} has {', '.join(dataset.splits) or 'no official parts'}"
        )
    rows = np.arange(len(dataset.targets)) if part == "all" else np.sort(np.asarray(dataset.splits[part]))
    both = [label for label in model.labels if label in set(dataset.labels)]
    if not both:
        raise InputError(f"{dataset.name} has none of the labels of the model, such as {model.labels[0]!a}")
    notes = list(_notes(model, dataset, part, both))
    of_model = [model.labels.index(label) for label in both]
    of_data = [dataset.labels.index(label) for label in both]
    inputs = dataset.inputs
    parts = []
    for start in range(0, len(rows), model.block):
        some = rows[start : start + model.block]
        taken = inputs[some] if isinstance(inputs, np.ndarray) else [inputs[row] for row in some]
        parts.append(model.predict(taken))
        say(f"{start + len(some):,} of {len(rows):,} inputs", counting=True)
    targets = dataset.targets[rows][:, of_data]
    decided = np.concatenate([p.decided for p in parts])[:, of_model]
    rated = np.concatenate([p.rated for p in parts])[:, of_model]
    found = measured(targets, decided, rated)
    of_labels = {
        **decision_metrics(targets, decided, per_label=True)["per_label"],
        **ranking_metrics(targets, rated, per_label=True)["per_label"],
        "predicted": decided.sum(axis=0).astype(np.float64),
    }
    thresholds = model.thresholds
    return Evaluation(
        dataset.name,
        part,
        tuple(both),
        targets,
        decided,
        rated,
        model.decision.on,
        None if thresholds is None else thresholds[of_model],
        np.concatenate([p.expected_f1 for p in parts]),
        tuple(notes),
        found["scores"],
        found["intervals"],
        of_labels,
    )


def _notes(model: Model, dataset: Dataset, part: str, both: Sequence[str]) -> Sequence[str]:
    notes = []
    if part != "test" and model.record.get("data", {}).get("hash") == dataset.content_hash:
        notes.append("These are the data that the model was trained on: the numbers say nothing of new data.")
    if missing := [label for label in model.labels if label not in both]:
        notes.append(
            f"{len(missing)} labels of the model are not in the data and not judged: {_some(missing)}."
        )
    if unknown := [label for label in dataset.labels if label not in both]:
        notes.append(f"{len(unknown)} labels of the data are unknown to the model: {_some(unknown)}.")
    return notes


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(plain, names[:5])) + (", ..." if len(names) > 5 else "")


def text(found: Evaluation) -> str:
    """For a terminal: every metric, the average F1s with their intervals."""
    lines = [
        f"{plain(found.name)}, {_of_part(found)}: {len(found.targets):,} examples, {len(found.labels)} labels"
    ]
    width = max(map(len, found.metrics))
    for name, value in found.metrics.items():
        interval = found.intervals.get(name)
        beside = f"  ({interval[0]:.4f} to {interval[1]:.4f})" if interval else ""
        lines.append(f"  {name:{width}}  {value:.4f}{beside}")
    lines.append(f"  {'expected_f1':{width}}  {found.expected_f1.mean():.4f}  (what the model expected)")
    return "\n".join([*lines, *found.notes])


def plain(label: str) -> str:
    """A name for a terminal: no sign that would steer it."""
    return "".join(sign if sign.isprintable() else "?" for sign in label)


def _of_part(found: Evaluation) -> str:
    return "all of it" if found.part == "all" else f"{found.part} part"


def page(found: Evaluation, record: Mapping[str, Any]) -> str:
    """The report."""
    title = escape(f"scoreloss evaluate: {found.name}")
    main = found.metrics["weighted_f1"]
    headline = (
        f"{found.name}, {_of_part(found)}: weighted F1 {100 * main:.1f}, micro {100 * found.metrics['micro_f1']:.1f}, "
        f"macro {100 * found.metrics['macro_f1']:.1f}"
    )
    facts = {
        "examples": f"{len(found.targets):,}",
        "labels": f"{len(found.labels):,}",
        "loss": record["loss"]["tried_as"],
        "rule": record["rule"]["name"],
        "backbone": record["backbone"]["name"],
    }
    listed = "".join(f"<li>{name} <b>{escape(value)}</b></li>" for name, value in facts.items())
    notes = "".join(f'<p class="small">{escape(note)}</p>' for note in found.notes)
    style = (files("scoreloss.bench.report") / "page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}{STYLE}</style>
<main>
<header><p class="kicker">scoreloss evaluate</p><h1>{escape(headline)}</h1><ul class="facts">{listed}</ul>{notes}</header>
<div class="card"><h2>Scores</h2>{_scores(found)}</div>
<div class="card"><h2>F1 at each threshold</h2>{_curves(found)}</div>
<div class="card"><h2>Labels</h2>{_labels(found)}</div>
<footer>scoreloss {escape(record["versions"]["scoreloss"])}. This page fetches nothing: it can be kept, mailed and read offline.</footer>
</main>
</html>
"""


STYLE = """
.curves { width: 100%; max-width: 44rem; height: auto; } .curves path { fill: none; stroke-width: 2; }
.curves text { fill: var(--faint); font-size: 12px; } .curves .grid { stroke: var(--line); }
.weighted { stroke: var(--accent); } .micro { stroke: #c2410c; } .macro { stroke: #15803d; }
.curves .own { stroke: var(--faint); stroke-dasharray: 4 3; }
"""


def _scores(found: Evaluation) -> str:
    rows = []
    for name, value in found.metrics.items():
        interval = found.intervals.get(name)
        beside = f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval else ""
        shown = f"{value:.3f}" if name == "coverage_error" else f"{100 * value:.1f}"
        rows.append(f'<tr><th scope="row">{name}</th><td>{shown}</td><td>{beside}</td></tr>')
    return (
        '<p class="small">In percent (coverage_error in labels); intervals of 95 % over draws of examples. The names are '
        f"scikit-learn's. The model itself expected an F1 of {100 * found.expected_f1.mean():.1f} an example.</p>"
        '<div class="scroll"><table><thead><tr><th>score</th><th></th><th>interval</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _labels(found: Evaluation) -> str:
    columns = ("f1", "precision", "recall", "average_precision")
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in columns)
    rows = []
    order = np.argsort(-found.per_label["support"], kind="stable")
    for k in order:
        threshold = "" if found.thresholds is None else f"{found.thresholds[k]:.4f}"
        figures = "".join(f"<td>{100 * found.per_label[name][k]:.1f}</td>" for name in columns)
        rows.append(
            f'<tr><th scope="row">{escape(found.labels[k])}</th><td>{found.per_label["support"][k]:,.0f}</td>'
            f"<td>{found.per_label['predicted'][k]:,.0f}</td><td>{threshold}</td>{figures}</tr>"
        )
    return (
        '<div class="scroll"><table><thead><tr><th>label</th><th>there</th><th>predicted</th><th>threshold</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _curves(found: Evaluation) -> str:
    """F1 at one threshold for all labels, as SVG."""
    curves = decide.threshold_curves(found.targets, found.rated)
    left, top, width, height = 40, 10, 600, 240

    def line(values: Sequence[float]) -> str:
        points = (
            f"{left + width * t:.1f},{top + height * (1 - v):.1f}"
            for t, v in zip(decide.GRID, values, strict=True)
        )
        return "M" + " L".join(points)

    parts = []
    for tenth in range(0, 11, 2):
        x, y = left + width * tenth / 10, top + height * (1 - tenth / 10)
        parts.append(f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{10 * tenth}</text>')
        parts.append(f'<text x="{x}" y="{top + height + 18}" text-anchor="middle">{tenth / 10:g}</text>')
    own = found.thresholds
    if own is not None and np.isfinite(own).all() and len(np.unique(own)) == 1 and 0 <= own[0] <= 1:
        x = left + width * own[0]
        parts.append(f'<line class="own" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}"/>')
    for place, (name, values) in enumerate(curves.items()):
        best = int(np.argmax(values))
        parts.append(f'<path class="{name}" d="{line(values)}"/>')
        parts.append(
            f'<line class="{name}" x1="{left + width + 14}" x2="{left + width + 34}" y1="{top + 20 + 22 * place}" '
            f'y2="{top + 20 + 22 * place}" stroke-width="2"/><text x="{left + width + 40}" y="{top + 24 + 22 * place}">'
            f"{name}, best {100 * values[best]:.1f} at {decide.GRID[best]:g}</text>"
        )
    side = "the scores of the loss" if found.on == "scores" else "calibrated probabilities"
    return (
        f'<p class="small">If one threshold on {side} were used for all labels. The best of a curve was picked on these '
        "very examples: it is a ceiling, no promise.</p>"
        f'<svg class="curves" viewBox="0 0 {left + width + 220} {top + height + 30}" role="img" '
        f'aria-label="F1 at each threshold">{"".join(parts)}</svg>'
    )
