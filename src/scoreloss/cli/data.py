"""``scoreloss data list`` and ``scoreloss data check DATASET``: what there is to be read, and what was read."""

from __future__ import annotations

import argparse
import json
from typing import Any

from scoreloss.cli.datasets import add_dataset, dataset_from
from scoreloss.cli.progress import Commands

TITLES = {
    "examples": "examples",
    "labels": "labels",
    "cardinality": "labels an example",
    "density": "their share of all labels",
    "empty": "examples without a label",
    "duplicates": "inputs that come again",
}


def add(commands: Commands) -> None:
    """The command and its options."""
    data = commands.add_parser("data", help="what datasets there are, and what is in one")
    actions = data.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = actions.add_parser("list", help="every format: what it needs, and where it is to be had")
    listing.set_defaults(run=run_list)
    check = actions.add_parser(
        "check",
        help="read a dataset and count",
        description="Read a dataset, and print its statistics, what was skipped or mended, and what the paper says.",
    )
    add_dataset(check)
    check.add_argument("--json", action="store_true", help="as JSON")
    check.set_defaults(run=run_check)


def run_list(options: argparse.Namespace) -> int:
    """Print every format."""
    from scoreloss.data.formats import EMBEDDED, FORMATS, OWN

    for name, form in {**EMBEDDED, **{f"{name}:PATH": form for name, form in FORMATS.items()}}.items():
        print(f"{name} ({form.kind})\n    needs {form.needs}\n    from  {form.source}")
    print(f"a file of your own: {' '.join(OWN)} (also .gz, .bz2, .xz)")
    print("    needs a column of texts or of paths of images, and labels (scoreloss data check --help);")
    print("    .npz: features (examples, features) and targets (examples, labels)")
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Print the statistics of one."""
    from scoreloss.data.statistics import PAPER, statistics

    dataset = dataset_from(options)
    found = statistics(dataset)
    paper = PAPER.get(options.dataset.partition(":")[0])
    splits = {part: len(rows) for part, rows in dataset.splits.items()}
    if options.json:
        record = {
            "name": dataset.name,
            "kind": dataset.kind,
            **found,
            "splits": splits,
            "paper": paper,
            "notes": dataset.notes,
            "problems": dataset.problems,
        }
        print(json.dumps(record, indent=1))
        return 0
    print(f"{f'{dataset.name} ({dataset.kind})':40}" + (f"{'the paper':>12}" if paper else ""))
    for key, title in TITLES.items():
        beside = _figure(paper[key]) if paper and key in paper else ""
        print(f"  {title:28}{_figure(found[key]):>10}{beside:>12}".rstrip())
    rare = [f"{label} ({count})" for label, count in found["rare"].items()]
    print(f"  {'labels of fewer than 10':28}{len(rare):>10}" + (f"   {_cut(rare)}" if rare else ""))
    for part, count in splits.items():
        print(f"  {part:28}{count:>10,}")
    for line in (*dataset.notes, *dataset.problems):
        print(line)
    return 0


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _cut(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
