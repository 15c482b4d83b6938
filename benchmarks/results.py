"""The results on nine sets: what a benchmark left, kept as small files, and the page that is made of them.

    python benchmarks/results.py keep TABLE ABLATION    # folders of the two benchmarks -> results/
    python benchmarks/results.py page                   # results/ -> docs/results.md

TABLE and ABLATION are what `scoreloss bench results/table.toml --out TABLE` and `scoreloss bench results/ablation.toml
--out ABLATION` wrote. Every number of the page comes from results/.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import torch
from pyarrow.parquet import read_table, write_table

from scoreloss.bench import decide, results
from scoreloss.bench.across import average_ranks
from scoreloss.bench.contenders import RECIPES
from scoreloss.bench.report.names import RULE_NAMES, chosen
from scoreloss.bench.results import Results
from scoreloss.bench.stats import Resamples
from scoreloss.bench.store import Store

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"

OWN, TUNED = "fixed_0.5", "per_label"
METRICS = ("weighted_f1", "micro_f1", "macro_f1", "samples_f1", "map")
RECOMMENDED = "recommended"
PLAIN = "sigmoid_f1"
COMPARED = (
    ((RECOMMENDED, OWN), ("bce", OWN)),
    ((RECOMMENDED, OWN), ("bce", TUNED)),
    ((RECOMMENDED, OWN), (PLAIN, OWN)),
    ((PLAIN, OWN), ("bce", OWN)),
    ((PLAIN, OWN), ("bce", TUNED)),
)
SHOWN = {
    "yeast": "yeast",
    "emotions": "emotions",
    "scene": "scene",
    "enron": "enron",
    "cancer_hallmarks": "hallmarks",
    "movie_posters": "posters",
    "voc": "VOC 2012",
    "goemotions": "goemotions",
    "arxiv": "arXiv 2019",
}
"""In the order of the columns."""


def keep(table: Path, ablation: Path) -> None:
    """Small files of all that the page says."""
    found = {r.data.name: r for r in _read(table)}
    sets = [found[name] for name in SHOWN if name in found]
    write_table(_table(_cells(sets)), KEPT / "table.parquet")
    write_table(_table(_rows(sets)), KEPT / "rows.parquet")
    write_table(_table(_cells(list(_read(ablation)))), KEPT / "ablation.parquet")
    about = {
        "machine": f"two cores of an {_processor()}, torch {torch.__version__.partition('+')[0]}, {platform.system()}",
        "recommended": {"loss": RECIPES[RECOMMENDED][0], **RECIPES[RECOMMENDED][1]},
        "datasets": {r.data.name: _about(r) for r in sets},
        "comparisons": [comparison for r in sets for comparison in _comparisons(r)],
        "chosen": {r.data.name: chosen(r, OWN) for r in sets},
    }
    (KEPT / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def _read(folder: Path) -> Iterator[Results]:
    for path in sorted(folder.glob("*/bench.json")):
        print(f"reading {path.parent}", flush=True)
        yield results.read(Store(path.parent))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _table(records: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    names = dict.fromkeys(name for record in records for name in record)
    return pyarrow.table({name: [record.get(name) for record in records] for name in names})


def _cells(sets: Sequence[Results]) -> list[dict[str, Any]]:
    """One line for each loss, seed and rule."""
    return [
        {
            "dataset": found.data.name,
            "name": cell.name,
            "seed": cell.seed,
            "rule": rule,
            "tried": len(cell.contender.configs),
            "seconds": result["seconds"],
            "epoch": judged["epoch"],
            "validation": judged["validation_weighted_f1"],
            **{metric: judged["test"][metric] for metric in METRICS},
        }
        for found in sets
        for cell, result in found.found.items()
        for rule, judged in result.get("rules", {}).items()
    ]


def _rows(sets: Sequence[Results]) -> list[dict[str, Any]]:
    """One line for each loss or floor and rule: means over seeds, and how far behind the best."""
    lines = []
    for found in sets:
        for row in found.rows:
            gap = row.gaps.get("weighted_f1")
            lines.append(
                {
                    "dataset": found.data.name,
                    "name": row.name,
                    "rule": row.rule,
                    "floor": row.is_floor,
                    "within_noise": row.within_noise("weighted_f1"),
                    "behind": gap.mean if gap else 0.0,
                    "low": gap.low if gap else 0.0,
                    "high": gap.high if gap else 0.0,
                    **{f"{metric}_mean": row.mean[metric] for metric in METRICS},
                    **{f"{metric}_std": row.std[metric] for metric in METRICS},
                }
            )
    return lines


def _about(found: Results) -> dict[str, Any]:
    split = next(iter(found.splits.values()))
    cell = next(iter(found.found))
    return {
        "examples": len(found.data.targets),
        "labels": len(found.data.labels),
        "cardinality": float(found.data.targets.sum(1).mean()),
        "train": len(split.train),
        "validation": len(split.validation),
        "test": len(split.test),
        "backbone": cell.backbone.rstrip("/").rpartition("/")[2],
        "epochs": cell.settings.epochs,
        "seconds": sum(result["seconds"] for result in found.found.values()),
        "runs": sum(len(cell.contender.configs) for cell in found.found),
    }


def _comparisons(found: Results) -> Iterator[dict[str, Any]]:
    """Differences in weighted F1 with their intervals, by the same draws as the report's."""
    tests = {seed: split.test for seed, split in found.splits.items()}
    resamples = Resamples({seed: found.data.targets[rows] for seed, rows in tests.items()}, tests)
    for first, second in COMPARED:
        both = [found.under(rule, name) for name, rule in (first, second)]
        if not all(both):
            continue
        packed = [{seed: judged["predicted"] for seed, judged in of.items()} for of in both]
        draws = [table["weighted_f1"] for table in resamples.metrics(packed, ["weighted_f1"])]
        means = [np.mean([judged["test"]["weighted_f1"] for judged in of.values()]) for of in both]
        low, high = resamples.gap(*draws)
        yield {
            "dataset": found.data.name,
            "first": list(first),
            "second": list(second),
            "difference": float(means[0] - means[1]),
            "low": low,
            "high": high,
        }


def page() -> str:
    """docs/results.md."""
    rows = read_table(KEPT / "rows.parquet").to_pylist()
    ablation = read_table(KEPT / "ablation.parquet").to_pylist()
    about = json.loads((KEPT / "about.json").read_text())
    text = (ROOT / "benchmarks" / "results.md.in").read_text()
    parts = {
        "own": _by_set(rows, OWN),
        "tuned": _by_set(rows, TUNED),
        "best": _best(rows),
        "where": _where(rows),
        "compared": _compared(about["comparisons"]),
        "rules": _by_rule(rows),
        "micro": _by_set(rows, OWN, "micro_f1"),
        "macro": _by_set(rows, OWN, "macro_f1"),
        "map": _by_set(rows, OWN, "map"),
        "sets": _sets(about["datasets"]),
        "validation": _ablation(ablation, "validation"),
        "test": _ablation(ablation, "weighted_f1"),
        "choice": _choice(ablation),
        "chosen": _chosen(about["chosen"]),
        "recommended": _in_words(about["recommended"]),
        "machine": about["machine"],
        "minutes": f"{sum(d['seconds'] for d in about['datasets'].values()) / 60:.0f}",
        "ablation_minutes": f"{_minutes(ablation):.0f}",
    }
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    assert "{{" not in text, text[text.index("{{") :][:40]
    return text


def _minutes(cells: Sequence[Mapping[str, Any]]) -> float:
    return sum({(c["dataset"], c["name"], c["seed"]): c["seconds"] for c in cells}.values()) / 60


def _sets_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    seen = {line["dataset"] for line in lines}
    return [name for name in SHOWN if name in seen]


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *map(list, body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_set(rows: Sequence[Mapping[str, Any]], rule: str, metric: str = "weighted_f1") -> str:
    """Losses and floors x sets, from the best down on average; those near the best row of all are marked."""
    sets = _sets_of(rows)
    of = {(row["name"], row["dataset"]): row for row in rows if row["rule"] == rule}
    names = list(dict.fromkeys(name for name, _ in of))
    best = {
        d: max((n for n in names if (n, d) in of), key=lambda n, d=d: of[n, d][f"{metric}_mean"])
        for d in sets
    }
    top = {d: max(row["weighted_f1_mean"] for row in rows if row["dataset"] == d) for d in sets}

    def cell(name: str, d: str) -> str:
        row = of.get((name, d))
        if row is None:
            return "–"
        mean, std = (100 * row[f"{metric}_{part}"] for part in ("mean", "std"))
        near = row["within_noise"] or row["weighted_f1_mean"] == top[d]
        mark = "≈ " if metric == "weighted_f1" and near else ""
        value = f"**{mean:.1f}**" if best[d] == name else f"{mean:.1f}"
        return f"{mark}{value}" if row["floor"] else f"{mark}{value} ± {std:.1f}"

    def height(name: str) -> tuple[bool, float]:
        there = [of[name, d][f"{metric}_mean"] for d in sets if (name, d) in of]
        return of[name, sets[0]]["floor"] if (name, sets[0]) in of else False, -float(np.mean(there))

    body = [
        [f"*{n}*" if of.get((n, sets[0]), {}).get("floor") else f"`{n}`", *(cell(n, d) for d in sets)]
        for n in sorted(names, key=height)
    ]
    return _markdown(["loss", *(SHOWN[d] for d in sets)], body)


def _best(rows: Sequence[Mapping[str, Any]]) -> str:
    """For each set the best row of all, the recommended setting with nothing tuned, and how far it is behind."""
    body = []
    for d in _sets_of(rows):
        of_set = [row for row in rows if row["dataset"] == d]
        top = max(of_set, key=lambda row: row["weighted_f1_mean"])
        (mine,) = (row for row in of_set if (row["name"], row["rule"]) == (RECOMMENDED, OWN))
        floor = max((row for row in of_set if row["floor"]), key=lambda row: row["weighted_f1_mean"])
        said = "is the best" if mine is top else "within noise" if mine["within_noise"] else "behind"
        body.append(
            [
                SHOWN[d],
                f"`{top['name']}`, {RULE_NAMES[top['rule']]}",
                f"{100 * top['weighted_f1_mean']:.1f}",
                f"{100 * mine['weighted_f1_mean']:.1f}",
                f"{100 * mine['behind']:.1f} [{100 * mine['low']:.1f}, {100 * mine['high']:.1f}]",
                said,
                f"{100 * floor['weighted_f1_mean']:.1f} ({floor['name']})",
            ]
        )
    head = [
        "set",
        "best of all losses and rules",
        "its F1",
        "`recommended`, own boundary",
        "behind",
        "",
        "best floor",
    ]
    return _markdown(head, body)


def _where(rows: Sequence[Mapping[str, Any]]) -> str:
    """On how many sets each loss, with nothing tuned, is best or within noise of the best of all."""
    sets = _sets_of(rows)
    top = {d: max(row["weighted_f1_mean"] for row in rows if row["dataset"] == d) for d in sets}
    reached = {row["name"]: [] for row in rows if row["rule"] == OWN and not row["floor"]}
    for row in rows:
        near = row["within_noise"] or row["weighted_f1_mean"] == top[row["dataset"]]
        if row["rule"] == OWN and not row["floor"] and near:
            reached[row["name"]].append(row["dataset"])
    order = sorted(reached, key=lambda name: -len(reached[name]))
    mine = reached[RECOMMENDED]
    not_there = [SHOWN[d] for d in sets if d not in mine]
    others = ", ".join(f"`{name}` on {len(reached[name])}" for name in order if name != RECOMMENDED)
    said = f"`recommended`, at its own boundary and with no threshold tuned, is best or within noise of the best (every loss, every rule) on {len(mine)} of {len(sets)} sets"
    said += f"; not on {', '.join(not_there)}" if not_there else ""
    return f"{said}. The others, judged likewise: {others}. {_ranks(rows)}"


def _ranks(rows: Sequence[Mapping[str, Any]]) -> str:
    """The average rank of each loss with nothing tuned."""
    sets = _sets_of(rows)
    of = {
        (row["name"], row["dataset"]): row["weighted_f1_mean"]
        for row in rows
        if row["rule"] == OWN and not row["floor"]
    }
    names = list(dict.fromkeys(name for name, _ in of))
    ranks = average_ranks(np.array([[of[name, d] for name in names] for d in sets]))
    first, second = np.argsort(ranks)[:2]
    return (
        f"Ranked by weighted F1 at the own boundary, `{names[first]}` is on average at place {ranks[first]:.1f} of "
        f"{len(names)}, `{names[second]}` next at {ranks[second]:.1f}."
    )


def _compared(comparisons: Sequence[Mapping[str, Any]]) -> str:
    sets = _sets_of(comparisons)
    of = {(c["dataset"], *c["first"], *c["second"]): c for c in comparisons}
    body = []
    for first, second in COMPARED:
        cells = []
        for d in sets:
            c = of[d, *first, *second]
            value = f"{100 * c['difference']:+.1f} [{100 * c['low']:.1f}, {100 * c['high']:.1f}]"
            cells.append(f"**{value}**" if c["low"] > 0 or c["high"] < 0 else value)
        body.append(
            [f"`{first[0]}`, {RULE_NAMES[first[1]]} − `{second[0]}`, {RULE_NAMES[second[1]]}", *cells]
        )
    return _markdown(["difference", *(SHOWN[d] for d in sets)], body)


def _by_rule(rows: Sequence[Mapping[str, Any]]) -> str:
    """The mean over losses of each rule."""
    sets = _sets_of(rows)
    body = []
    means = {
        (rule, d): float(
            np.mean(
                [
                    row["weighted_f1_mean"]
                    for row in rows
                    if (row["rule"], row["dataset"]) == (rule, d) and not row["floor"]
                ]
            )
        )
        for rule in decide.RULES
        for d in sets
    }
    best = {d: max(decide.RULES, key=lambda rule, d=d: means[rule, d]) for d in sets}
    for rule in decide.RULES:
        cells = (
            f"**{100 * means[rule, d]:.1f}**" if best[d] == rule else f"{100 * means[rule, d]:.1f}"
            for d in sets
        )
        body.append([RULE_NAMES[rule], *cells])
    return _markdown(["rule", *(SHOWN[d] for d in sets)], body)


def _sets(about: Mapping[str, Mapping[str, Any]]) -> str:
    body = [
        [
            SHOWN[name],
            f"{d['examples']:,}",
            str(d["labels"]),
            f"{d['cardinality']:.1f}",
            f"{d['train']:,} / {d['validation']:,} / {d['test']:,}",
            "as they are" if d["backbone"] == "identity" else d["backbone"],
            str(d["epochs"]),
            f"{d['runs']:,}",
            f"{d['seconds'] / 60:.1f}",
        ]
        for name, d in about.items()
    ]
    head = [
        "set",
        "examples",
        "labels",
        "an example",
        "train / validation / test",
        "features",
        "epochs at most",
        "runs",
        "minutes",
    ]
    return _markdown(head, body)


Values = dict[tuple[str, str], float]


def _means(cells: Sequence[Mapping[str, Any]], column: str) -> Values:
    """(variant, set) -> the mean over seeds at the own boundary."""
    values: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        if cell["rule"] == OWN:
            values.setdefault((cell["name"], cell["dataset"]), []).append(cell[column])
    return {key: float(np.mean(of)) for key, of in values.items()}


def _variants(means: Values) -> list[str]:
    return list(dict.fromkeys(name for name, _ in means))


def _ablation(cells: Sequence[Mapping[str, Any]], column: str) -> str:
    """Variants x sets: the difference to plain sigmoid_f1, which stands above."""
    means, sets = _means(cells, column), _sets_of(cells)
    on_average = {
        name: float(np.mean([means[name, d] - means[PLAIN, d] for d in sets])) for name in _variants(means)
    }
    body = [
        [
            f"`{PLAIN}` as it is",
            *(f"{100 * means[PLAIN, d]:.1f}" for d in sets),
            f"{100 * np.mean([means[PLAIN, d] for d in sets]):.1f}",
        ]
    ]
    for name in sorted(on_average, key=lambda name: -on_average[name]):
        if name != PLAIN:
            differences = [f"{100 * (means[name, d] - means[PLAIN, d]):+.1f}" for d in sets]
            body.append([name, *differences, f"**{100 * on_average[name]:+.2f}**"])
    return _markdown(["variant", *(SHOWN[d] for d in sets), "mean"], body)


def best_variant(means: Values, sets: Sequence[str]) -> str:
    """The variant with the highest mean over these sets."""
    return max(_variants(means), key=lambda name: np.mean([means[name, d] for d in sets]))


def _choice(cells: Sequence[Mapping[str, Any]]) -> str:
    """What is chosen on all sets, and with each of them left out: validation alone chooses, the test part confirms."""
    validation, test, sets = _means(cells, "validation"), _means(cells, "weighted_f1"), _sets_of(cells)
    whole = best_variant(validation, sets)
    body = []
    for d in sets:
        other = best_variant(validation, [s for s in sets if s != d])
        body.append(
            [
                SHOWN[d],
                other,
                f"{100 * test[other, d]:.1f}",
                f"{100 * test[whole, d]:.1f}",
                f"{100 * test[PLAIN, d]:.1f}",
            ]
        )
    table = _markdown(
        [
            "left out",
            "chosen on the other eight",
            "its test F1 there",
            f"{whole}, chosen on all",
            f"`{PLAIN}` as it is",
        ],
        body,
    )
    return f"On all sets together the highest mean validation score is that of **{whole}**.\n\n{table}"


def _chosen(of_sets: Mapping[str, Mapping[str, str]]) -> str:
    losses = ("bce", PLAIN, RECOMMENDED)
    body = [[SHOWN[d], *(of_losses.get(loss, "–") for loss in losses)] for d, of_losses in of_sets.items()]
    return _markdown(["set", *(f"`{loss}`" for loss in losses)], body)


def _in_words(recipe: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{name} {value}" for name, value in recipe.items() if name != "loss")
    return f"`{recipe['loss']}`, started at the label priors, with {rest}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    folders = commands.add_parser("keep")
    folders.add_argument("table", type=Path)
    folders.add_argument("ablation", type=Path)
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "keep":
        keep(options.table, options.ablation)
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
