"""What the page draws: the numbers behind each figure, small enough to be carried in it, and the diagram of ranks.

Shares are kept in thousandths: a figure shows no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import torch

from scoreloss.bench.across import LEVEL, critical_difference, friedman, groups, wilcoxon_holm
from scoreloss.bench.contenders import DEFINED
from scoreloss.bench.decide import CURVES, GRID, RULES_ON_SCORES
from scoreloss.bench.report.names import COLUMNS, MAIN, OWN, RULE_NAMES, best, rules, table
from scoreloss.bench.results import Results
from scoreloss.checks import Floats
from scoreloss.torch import MetricLoss, Mix

REACH = 8.0
"""Surrogates are drawn for logits from minus this to this."""


def payload(results: Results) -> dict[str, Any]:
    """All that the page's script draws of one dataset."""
    data = results.data
    trained = [row for row in results.rows if not row.is_floor]
    top = best(trained)
    floors = [row for row in results.rows if row.is_floor]
    return {
        "name": data.name,
        "labels": list(data.labels),
        "share": data.targets.mean(axis=0).round(6).tolist(),
        "losses": [name for name, by_rule in table(results.rows).items() if name in results.losses],
        "best": [top.name, top.rule],
        "values": _nested((row.rule, row.name, _by_metric(row.values)) for row in trained),
        "floor": {metric: 100 * max(row.mean[metric] for row in floors) for metric in COLUMNS},
        "floorName": {metric: best(floors, metric).name for metric in COLUMNS},
        "curves": _learning_curves(results),
        "perLabel": _nested(
            (rule, loss, _thousandths(np.mean([r["per_label_f1"] for r in by_seed.values()], axis=0)))
            for rule in rules()
            for loss in results.losses
            if (by_seed := results.under(rule, loss))
        ),
        "grid": GRID.tolist(),
        "thresholds": _threshold_curves(results),
        "surrogates": _surrogates(results),
        "heat": heat_map(results),
    }


def _nested(triples: Any) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for outer, inner, value in triples:
        nested.setdefault(outer, {})[inner] = value
    return nested


def _by_metric(values: Mapping[str, Floats]) -> dict[str, list[float]]:
    return {metric: (100 * values[metric]).round(3).tolist() for metric in COLUMNS}


def _thousandths(values: Floats) -> list[int]:
    return np.asarray(1000 * values).round().astype(int).tolist()  # type: ignore[no-any-return]


def _finished(results: Results, loss: str) -> list[Mapping[str, Any]]:
    return [result for cell, result in results.found.items() if cell.name == loss and not result["diverged"]]


def _learning_curves(results: Results) -> dict[str, Any]:
    """Epochs, and rule -> loss -> validation weighted F1 in thousandths: the mean over seeds, None where there is none."""
    finished = {loss: [result["curve"] for result in _finished(results, loss)] for loss in results.losses}
    epochs = sorted({epoch for of_loss in finished.values() for curve in of_loss for epoch in curve["epoch"]})
    curves: dict[str, dict[str, list[int | None]]] = {}
    for rule in RULES_ON_SCORES:
        for loss, of_loss in finished.items():
            if not results.under(rule, loss):
                continue
            seen = [dict(zip(curve["epoch"], curve[rule], strict=True)) for curve in of_loss]
            values = np.array([[curve.get(epoch) for epoch in epochs] for curve in seen], float)
            known = ~np.isnan(values)
            total = np.where(known, values, 0).sum(axis=0)
            curves.setdefault(rule, {})[loss] = [
                round(1000 * t / k) if k else None for t, k in zip(total, known.sum(axis=0), strict=True)
            ]
    return {"epoch": epochs, "rules": curves}


def _threshold_curves(results: Results) -> dict[str, Any]:
    """Metric -> loss -> validation F1 in thousandths at each threshold of the grid, the mean over seeds."""
    return _nested(
        (f"{average}_f1", loss, _thousandths(np.mean([r["threshold_curves"][average] for r in seen], axis=0)))
        for average in CURVES
        for loss in results.losses
        if (seen := _finished(results, loss))
    )


def _surrogates(results: Results) -> dict[str, Any]:
    """Logits, and loss -> what stands in for "predicted positive" there, as the loss starts, for the first label."""
    logits = torch.linspace(-REACH, REACH, 161, dtype=torch.float64)
    columns = logits.unsqueeze(1).expand(-1, results.data.targets.shape[1])
    contenders = {cell.name: cell.contender for cell in results.found}
    curves = {}
    for name in table(results.rows):
        if name not in contenders:
            continue
        loss = contenders[name].configs[0].loss(contenders[name].loss, results.data.targets)
        if isinstance(loss, Mix):
            loss = loss.b
        if isinstance(loss, MetricLoss):
            with torch.no_grad():
                curves[name] = loss.surrogate(columns)[:, 0].numpy().round(4).tolist()
    return {"z": logits.numpy().round(2).tolist(), "losses": curves}


def heat_map(results: Results, rule: str = OWN) -> dict[str, Any] | None:
    """Loss -> slopes, offsets and weighted F1; None where no loss was tried with several of both.

    The F1 is that on validation data under a rule, the own boundary unless another is named: of the best configuration with such a slope and offset, the
    mean over seeds.
    """
    drawn = {}
    for loss in results.losses:
        by_place: dict[tuple[float, float], list[float]] = {}
        for cell, result in results.found.items():
            if cell.name != loss or result["diverged"]:
                continue
            best: dict[tuple[float, float], float] = {}
            for config, value in zip(cell.contender.configs, result["tried"][rule], strict=True):
                options = {**DEFINED[cell.loss].options, **dict(config.options)}
                slope, offset = options.get("slope"), options.get("offset")
                if isinstance(slope, int | float) and isinstance(offset, int | float) and value is not None:
                    place = (float(slope), float(offset))
                    best[place] = max(best.get(place, 0.0), value)
            for place, value in best.items():
                by_place.setdefault(place, []).append(value)
        slopes, offsets = (sorted({place[axis] for place in by_place}) for axis in (0, 1))
        if len(slopes) > 1 and len(offsets) > 1:
            means = {place: round(100 * float(np.mean(values)), 2) for place, values in by_place.items()}
            drawn[loss] = {
                "slopes": slopes,
                "offsets": offsets,
                "values": [[means.get((slope, offset)) for slope in slopes] for offset in offsets],
            }
    return drawn or None


def across_datasets(results: Sequence[Results]) -> dict[str, tuple[list[str], Floats]]:
    """Rule -> losses that were trained on every dataset, and their weighted F1 (datasets, losses)."""
    tables = {}
    for rule in rules():
        means = [
            {row.name: row.mean[MAIN] for row in found.rows if row.rule == rule and not row.is_floor}
            for found in results
        ]
        losses = [loss for loss in means[0] if all(loss in of_dataset for of_dataset in means)]
        if len(losses) > 2 and len(results) > 1:
            tables[rule] = losses, np.array([[of_dataset[loss] for loss in losses] for of_dataset in means])
    return tables


def rank_diagram(rule: str, losses: Sequence[str], scores: Floats) -> str:
    """The critical-difference diagram as SVG, with what Friedman, Nemenyi and Wilcoxon say under it."""
    test = friedman(scores)
    ranks = test.ranks
    n, k = scores.shape
    difference = critical_difference(n, k)
    alike = np.abs(ranks[:, None] - ranks) <= difference
    order = np.argsort(ranks, kind="stable")
    left_side, width, line = 170, 360, 20
    half = (k + 1) // 2
    bars = groups(ranks, alike)
    low = 78 + 9 * len(bars)

    def across(rank: float) -> float:
        return float(left_side + width * (rank - 1) / (k - 1))

    end = across(min(1 + difference, k))
    wider = "" if 1 + difference <= k else " (wider than the axis)"
    parts = [
        f'<line x1="{across(1):.1f}" x2="{end:.1f}" y1="24" y2="24" class="cd"/>',
        f'<text x="{across(1):.1f}" y="16">critical difference {difference:.2f}{wider}</text>',
        f'<line x1="{across(1):.1f}" x2="{across(k):.1f}" y1="56" y2="56" class="axis"/>',
    ]
    step = max(1, (k - 1) // 8)
    for rank in range(1, k + 1, step):
        parts.append(f'<line x1="{across(rank):.1f}" x2="{across(rank):.1f}" y1="50" y2="56" class="axis"/>')
        parts.append(f'<text x="{across(rank):.1f}" y="45" text-anchor="middle">{rank}</text>')
    for place, bar in enumerate(bars):
        y = 68 + 9 * place
        a, b = across(ranks[bar].min()) - 4, across(ranks[bar].max()) + 4
        parts.append(f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" class="alike"/>')
    for place, index in enumerate(order):
        on_left = place < half
        y = low + line * (place if on_left else k - 1 - place) + 12
        x = across(ranks[index])
        edge, anchor = (left_side - 12, "end") if on_left else (left_side + width + 12, "start")
        words = f"{escape(losses[index])} {ranks[index]:.2f}"
        parts.append(f'<polyline points="{x:.1f},56 {x:.1f},{y} {edge},{y}" class="lead-line"/>')
        parts.append(
            f'<text x="{edge + (-6 if on_left else 6)}" y="{y + 4}" text-anchor="{anchor}">{words}</text>'
        )
    height = low + line * half + 16
    svg = (
        f'<svg viewBox="0 0 {2 * left_side + width} {height}" role="img" '
        f'aria-label="Average ranks under {escape(RULE_NAMES[rule])}">{"".join(parts)}</svg>'
    )
    first = order[0]
    p = wilcoxon_holm(scores)[first]
    differ = [losses[j] for j in order[1:] if p[j] < LEVEL]
    told = f"differs from {', '.join(differ)}" if differ else "differs from no other loss"
    return (
        f'<div class="scroll">{svg}</div><p class="small">Average ranks over {n} datasets by weighted F1, 1 the best; '
        f"bars join what Nemenyi's test cannot tell apart at 5 %. Friedman: χ² = {test.statistic:.2f}, "
        f"p = {test.p:.2g}. By Wilcoxon's signed-rank tests of all pairs with Holm's correction, "
        f"{escape(losses[first])} {escape(told)}.</p>"
    )
