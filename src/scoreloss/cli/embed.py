"""``scoreloss embed DATASET --backbone B``: the features of a dataset, made once."""

from __future__ import annotations

import argparse
import time

from scoreloss.cli.datasets import add_backbone, add_dataset, dataset_from
from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    embed = commands.add_parser(
        "embed",
        help="compute the features of a dataset by a frozen backbone",
        description="Compute the features of a dataset by a frozen backbone and keep them: they are found again by "
        "every command that asks for the same. A run that is stopped goes on where it was.",
    )
    add_dataset(embed)
    add_backbone(embed)
    embed.add_argument(
        "--batch-size", type=int, metavar="N", help="examples a step (default: the backbone's)"
    )
    embed.add_argument(
        "--check",
        action="store_true",
        help="compare all that is found with its checksums; make again what is damaged",
    )
    embed.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and say what is there."""
    from scoreloss.backbones import features

    start = time.perf_counter()
    dataset = dataset_from(options)
    progress = Progress()
    try:
        found = features(
            dataset,
            options.backbone,
            cache=options.cache,
            dtype=options.dtype,
            batch_size=options.batch_size,
            check=options.check,
            say=progress.say,
        )
    finally:
        progress.end()
    n, width = found.shape
    path = getattr(found, "filename", None)
    where = f", {path}" if path else ""
    print(f"{dataset.name} by {options.backbone}: {n:,} x {width:,} {found.dtype}{where}")
    print(f"{time.perf_counter() - start:.1f} s")
    return 0
