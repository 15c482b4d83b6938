"""The model card: what ``model.json`` says, in words and tables, for whoever finds the folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SHOWN = 200
"""So many labels stand in the card; all are in ``model.json``."""

F1 = {
    "weighted_f1": "weighted F1",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "samples_f1": "samples F1",
}


def card(record: Mapping[str, Any]) -> str:
    """Markdown of a record; names are shown as they are, never as markup."""
    loss, rule, data, selection = record["loss"], record["rule"], record["data"], record["selection"]
    examples = data["examples"]
    parts = [
        f"# A model of {_safe(data['name'])}",
        f"Multilabel classification of {_inputs(record)} into {len(record['labels'])} labels, by scoreloss "
        f"{_safe(record['versions'].get('scoreloss', ''))}.",
        "```text\nscoreloss predict FOLDER INPUT -o out.csv\nscoreloss evaluate FOLDER DATA\n```",
        "## What it is",
        f"- Backbone: {_safe(record['backbone']['name'])}, frozen; {record['backbone']['width']:,} features.\n"
        f"- Head: {_head(record)}, trained with {_safe(loss['tried_as'])} for {loss['epoch']} epochs.\n"
        f"- Rule: {_safe(rule['name'])}, on {_on(rule)}.\n"
        f"- Data: {_safe(data['name'])}, {examples['train']:,} examples for training and "
        f"{examples['validation']:,} for validation; hash `{data['hash'][:16]}`.",
        "## How it was chosen",
        f"By {F1[selection['score']]} on the validation part: {len(selection['losses'])} "
        f"{'loss' if len(selection['losses']) == 1 else 'losses'} "
        f"({', '.join(map(_safe, selection['losses']))}), {selection['budget']} configurations of each, "
        f"every rule that fits. {_refit(record)}",
        "## What it reaches",
        _scores(record),
        _note(record),
        "## Labels",
        _labels(record),
        "## Limits",
        "It knows the labels above and no others, and gives its opinion on anything. Where inputs or the frequency of "
        "labels differ from those of the training data, thresholds and probabilities are off. The expected F1 takes "
        "labels as independent.",
    ]
    return "\n\n".join(parts) + "\n"


def _inputs(record: Mapping[str, Any]) -> str:
    return {"matrix": "rows of numbers", "text": "texts", "image": "images"}[record["kind"]]


def _head(record: Mapping[str, Any]) -> str:
    hidden = record["head"]["widths"][1:-1]
    return f"{hidden[0]} hidden units" if hidden else "linear"


def _on(rule: Mapping[str, Any]) -> str:
    return "the scores of the loss" if rule["on"] == "scores" else "calibrated probabilities"


def _refit(record: Mapping[str, Any]) -> str:
    if not record["selection"]["refitted"]:
        return "The head is the one that was chosen; it was not trained again."
    return (
        "The head was then trained again on training and validation part together, for as many epochs; thresholds and "
        "calibration are those fitted on the validation part before."
    )


def _scores(record: Mapping[str, Any]) -> str:
    measured = {"validation": record["validation"], "test": record["test"]}
    measured = {name: found for name, found in measured.items() if found is not None}
    lines = [f"| | {' | '.join(measured)} |", f"|---|{'---|' * len(measured)}"]
    for name, title in F1.items():
        lines.append(f"| {title} | {' | '.join(_figure(found, name) for found in measured.values())} |")
    return "\n".join(lines)


def _figure(found: Mapping[str, Any], name: str) -> str:
    interval = found["intervals"].get(name)
    beside = f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})" if interval else ""
    return f"{100 * found['scores'][name]:.1f}{beside}"


def _note(record: Mapping[str, Any]) -> str:
    said = (
        "In percent, with 95 % intervals over draws of examples. The validation part chose loss, configuration, epoch "
        "and rule, so its numbers are somewhat too high."
    )
    if record["test"] is not None:
        return f"{said} The test part decided nothing."
    return f"{said} There was no official test part: measure on data of your own by `scoreloss evaluate`."


def _labels(record: Mapping[str, Any]) -> str:
    thresholds, positives = record["thresholds"], record["data"]["positives"]
    lines = ["| label | examples | threshold |", "|---|---|---|"]
    for place, label in enumerate(record["labels"][:SHOWN]):
        threshold = "" if thresholds is None else _threshold(thresholds[place])
        count = f"{positives[place]:,}" if place < len(positives) else ""
        lines.append(f"| {_safe(label)} | {count} | {threshold} |")
    left = len(record["labels"]) - SHOWN
    return "\n".join(lines) + (f"\n\nAnd {left:,} more, in `model.json`." if left > 0 else "")


def _threshold(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4f}"


def _safe(text: Any) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    plain = "".join(sign if sign.isprintable() else " " for sign in str(text))
    return re.sub(r"[&<>|`*\[\]\\~]", lambda found: f"&#{ord(found[0])};", plain)
