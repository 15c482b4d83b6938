"""``scoreloss evaluate MODEL DATASET``: what a model is worth on data, in numbers and on a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from scoreloss.checks import InputError
from scoreloss.cli.datasets import add_dataset, dataset_from
from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    evaluate = commands.add_parser(
        "evaluate",
        help="measure a model on a dataset",
        description="Measure a model on a dataset: every metric of scoreloss.evaluate, and a page with a table of the "
        "labels and the F1 at each threshold. Labels are matched by name.",
    )
    evaluate.add_argument("model", metavar="MODEL", type=Path, help="folder that scoreloss fit wrote")
    add_dataset(evaluate)
    evaluate.add_argument(
        "--part", metavar="PART", help="all, train, validation or test (default: test where there is one)"
    )
    evaluate.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="the page (default: evaluation.html in the folder of the model)",
    )
    evaluate.add_argument(
        "--backbone", metavar="B", help="where the model's backbone is now, if its folder was moved"
    )
    evaluate.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the numbers, and write the page."""
    from scoreloss.files import write_whole
    from scoreloss.model.evaluation import evaluate, page, text
    from scoreloss.model.folder import HEAD, load, record_of

    out = options.out or options.model / "evaluation.html"
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file")
    model = load(options.model, backbone=options.backbone)
    progress = Progress()
    try:
        found = evaluate(model, dataset_from(options), options.part, progress.say)
    finally:
        progress.end()
    write_whole(out, page(found, record_of(model, options.model / HEAD)))
    print(text(found))
    print(f"Report: {out}")
    return 0
