"""``scoreloss bench DATASET``: compare losses and threshold rules."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from scoreloss.cli.datasets import add_backbone, add_dataset, dataset_from
from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    bench = commands.add_parser(
        "bench",
        help="compare losses and threshold rules on a dataset",
        description="Compare losses and threshold rules on a dataset: every loss with every seed, trained together, "
        "judged under every rule. Writes one JSON file a cell, and a report; what is there is not trained again.",
    )
    add_dataset(bench)
    add_backbone(bench, default="identity")
    bench.add_argument(
        "--losses", metavar="A,B,...", help="names of losses, or all (default: the paper's five)"
    )
    bench.add_argument("--seeds", type=int, default=5, metavar="N", help="how many (default: %(default)s)")
    bench.add_argument(
        "--head",
        default="mlp",
        metavar="HEAD",
        help="linear, or mlp with 256 hidden units (default: %(default)s)",
    )
    bench.add_argument(
        "--epochs", type=int, default=60, metavar="N", help="at most so many (default: %(default)s)"
    )
    bench.add_argument(
        "--batch-size", type=int, default=256, metavar="N", help="examples a step (default: %(default)s)"
    )
    bench.add_argument(
        "--lr", type=float, default=0.003, metavar="X", help="learning rate (default: %(default)s)"
    )
    bench.add_argument(
        "--weight-decay", type=float, default=0.0, metavar="X", help="decoupled (default: %(default)s)"
    )
    bench.add_argument(
        "--init",
        default="priors",
        metavar="WAY",
        help="start of the heads: priors, or default for torch's own (default: %(default)s)",
    )
    bench.add_argument(
        "--framework",
        default="torch",
        metavar="NAME",
        help="what trains the heads: torch, or keras with the backend it is set to (default: %(default)s)",
    )
    bench.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the results (default: runs/DATASET)"
    )
    bench.add_argument("--force", action="store_true", help="train again what is there")
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and print the table."""
    from scoreloss.bench import report
    from scoreloss.bench.plan import PAPER_LOSSES, Settings, losses_in
    from scoreloss.bench.run import bench

    start = time.perf_counter()
    progress = Progress()
    if options.framework == "keras":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # what TensorFlow says of itself is no news here
    settings = Settings(
        head=options.head,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.lr,
        weight_decay=options.weight_decay,
        init=options.init,
        framework=options.framework,
    )
    dataset = dataset_from(options)
    losses = PAPER_LOSSES if options.losses is None else _names(options.losses)
    if "all" in losses:
        losses = losses_in(settings.framework)
        if left := [name for name in losses_in("torch") if name not in losses]:
            progress.say(f"left out, since only torch trains the parameters they have: {', '.join(left)}")
    if dataset.problems:
        progress.say(f"something was skipped or mended while reading: scoreloss data check {options.dataset}")
    outcome = bench(
        dataset,
        losses,
        options.seeds,
        settings,
        options.out or Path("runs") / dataset.name,
        backbone=options.backbone,
        cache=options.cache,
        dtype=options.dtype,
        force=options.force,
        say=progress.say,
    )
    progress.end()
    print(report.text(outcome.results.rows))
    for note in dataset.notes:
        print(note)
    print(f"\n{report.headline(outcome.results.rows)}")
    print(
        f"{outcome.trained} runs trained, {outcome.kept} kept, "
        f"{time.perf_counter() - start:.0f} s. Report: {outcome.report}"
    )
    return 0


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]
