"""The table on the terminal, and what it says in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from scoreloss.bench.decide import RULES
from scoreloss.bench.report.names import (
    COLUMNS,
    MAIN,
    NAMES_NOTE,
    OWN,
    RULE_NAMES,
    RULE_TITLES,
    best,
    best_of_rule,
    of_rule,
    only_ranking,
)
from scoreloss.bench.results import Results
from scoreloss.bench.stats import Row

LEGEND = "* the best of a rule; ~ within noise of the best of all rules. Rows in brackets are floors."


def text(rows: Sequence[Row]) -> str:
    """The table for a terminal, in percent: mean and standard deviation over seeds."""
    lines = []
    names = {row: f"({row.name})" if row.is_floor else row.name for row in rows}
    width = max(map(len, names.values()))
    header = "  ".join(f"{title:>13}" for title in COLUMNS.values())
    for rule in RULES:
        lines += ["", RULE_TITLES[rule], f"  {'':{width}}{header}"]
        highest = best_of_rule(rows, rule)
        for row in of_rule(rows, rule):
            figures = "  ".join(
                f"{100 * row.mean[m]:6.1f} ±{100 * row.std[m]:3.1f}"
                f"{'*' if row is highest[m] else ' '}{'~' if row.within_noise(m) else ' '}"
                for m in COLUMNS
            )
            lines.append(f"  {names[row]:{width}}{figures}".rstrip())
        for name in only_ranking(rows, rule):
            lines.append(f"  {name:{width}}" + "  ".join(f"{'-':>6}{'':7}" for _ in COLUMNS).rstrip())
    return "\n".join([*lines[1:], "", LEGEND, NAMES_NOTE])


def headline(rows: Sequence[Row]) -> str:
    """What the table says in one sentence."""
    trained = [row for row in rows if not row.is_floor]
    own = next(iter(of_rule(trained, OWN)), None)
    top = best(rows)
    if top.is_floor:
        nearest = best(trained)
        return (
            f"No loss beats a floor: {top.name} has a weighted F1 of {100 * top.mean[MAIN]:.1f}, {nearest.name} under "
            f"{RULE_NAMES[nearest.rule]} {100 * nearest.mean[MAIN]:.1f}."
        )
    tuned = max((row for row in trained if row.rule != OWN), key=lambda row: row.mean[MAIN])
    best_tuned = f"{tuned.name} under {RULE_NAMES[tuned.rule]}, {100 * tuned.mean[MAIN]:.1f}"
    if own is None:
        return f"The best weighted F1 is that of {best_tuned}."
    reached = f"With no threshold tuned, {own.name} reaches a weighted F1 of {100 * own.mean[MAIN]:.1f}"
    if own.mean[MAIN] >= tuned.mean[MAIN]:
        return f"{reached}, the best of all; the best with another rule is {best_tuned}."
    if own.within_noise(MAIN):
        return f"{reached}, within noise of the best of all: {best_tuned}."
    return f"{reached}; the best with another rule is {best_tuned}."


def headline_across(results: Sequence[Results]) -> str:
    """What the tables of several datasets say in one sentence."""
    reached: dict[str, int] = {}
    for found in results:
        top = best(found.rows)
        for row in found.rows:
            if row.rule == OWN and not row.is_floor:
                reached.setdefault(row.name, 0)
                reached[row.name] += row is top or row.within_noise(MAIN)
    most = max(reached.values(), default=0)
    if not most:
        return (
            f"With no threshold tuned, no loss is within noise of the best on any of {len(results)} datasets."
        )
    first = [name for name, times in reached.items() if times == most]
    names = f"{', '.join(first[:-1])} and {first[-1]} are each" if len(first) > 1 else f"{first[0]} is"
    return (
        f"With no threshold tuned, {names} best or within noise of the best of all losses and rules on {most} of "
        f"{len(results)} datasets."
    )
