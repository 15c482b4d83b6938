"""``scoreloss bench DATASET`` or ``scoreloss bench FILE.toml``: compare losses and threshold rules."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from scoreloss.checks import InputError
from scoreloss.cli.datasets import DATASET, add_backbone, add_dataset, options_of
from scoreloss.cli.progress import Commands, Progress

if TYPE_CHECKING:
    from scoreloss.bench.engines import Engine
    from scoreloss.bench.experiment import Experiment

ENGINES = ("here", "ray")


def add(commands: Commands) -> None:
    """The command and its options."""
    bench = commands.add_parser(
        "bench",
        help="compare losses and threshold rules on a dataset",
        description="Compare losses and threshold rules on a dataset: every loss with every seed, trained together, "
        "judged under every rule. Writes one JSON file a cell, and a report; what is there is not trained again, and "
        "several processes may work on one folder.",
    )
    add_dataset(bench, f"{DATASET}; or a .toml file, which says all that the options below say")
    add_backbone(bench, default="identity")
    bench.add_argument(
        "--losses",
        metavar="A,B,...",
        help="names of losses, recommended, or all (default: the paper's five)",
    )
    bench.add_argument("--seeds", type=int, metavar="N", help="how many (default: 5)")
    bench.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="configurations tried of each loss: learning rates, its own knobs, weight decays (default: 1)",
    )
    bench.add_argument(
        "--head",
        metavar="HEAD",
        help="linear, relu (the paper's: ReLU, then linear), or mlp with 256 hidden units (default: mlp)",
    )
    bench.add_argument("--epochs", type=int, metavar="N", help="at most so many (default: 60)")
    bench.add_argument(
        "--patience",
        type=int,
        metavar="N",
        help="stop after N epochs in which nothing got better (default: never)",
    )
    bench.add_argument(
        "--batch-size", metavar="N", help="examples a step, or all for the whole training part (default: 256)"
    )
    bench.add_argument("--lr", type=float, metavar="X", help="learning rate (default: 0.003)")
    bench.add_argument("--weight-decay", type=float, metavar="X", help="decoupled (default: 0)")
    bench.add_argument(
        "--init",
        metavar="WAY",
        help="start of the heads: priors, or default for torch's own (default: priors)",
    )
    bench.add_argument(
        "--framework",
        metavar="NAME",
        help="what trains the heads: torch, or keras with the backend it is set to (default: torch)",
    )
    bench.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the results (default: runs/DATASET)"
    )
    bench.add_argument("--force", action="store_true", help="train again what is there")
    bench.add_argument(
        "--dry-run", action="store_true", help="say how many cells there are and roughly how long they take"
    )
    bench.add_argument(
        "--engine",
        default="here",
        metavar="NAME",
        help="here, or ray for a Ray cluster (default: %(default)s)",
    )
    bench.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of the Ray cluster (default: one on this machine, for this run)",
    )
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and print the table."""
    from scoreloss.bench import report
    from scoreloss.bench.run import run as run_bench

    start = time.perf_counter()
    progress = Progress()
    experiment = _experiment(options)
    if experiment.framework == "keras":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # what TensorFlow says of itself is no news here
    for line in experiment.notes:
        progress.say(line)
    outcomes = []
    with closing(_engine(options)) as engine:
        tables = experiment.tables()
        for table in tables:
            bench = table.bench()
            if bench.dataset.problems:
                progress.say(
                    f"something was skipped or mended while reading: scoreloss data check {table.dataset}"
                )
            if options.dry_run:
                from scoreloss.bench.estimate import estimate

                print(estimate(bench, table.folder, cache=options.cache, force=options.force))
                continue
            if len(tables) > 1:
                progress.say(f"{table.title}, to {table.folder}")
            outcome = run_bench(
                bench,
                table.folder,
                cache=options.cache,
                force=options.force,
                engine=engine,
                say=progress.say,
            )
            outcomes.append(outcome)
            progress.end()
            if len(tables) == 1:
                print(report.text(outcome.results.rows))
                for note in bench.dataset.notes:
                    print(note)
                print()
            print(f"{f'{table.title}: ' if len(tables) > 1 else ''}{report.headline(outcome.results.rows)}")
    if not outcomes:
        return 0
    page = outcomes[0].report
    if len(outcomes) > 1:
        page = report.write(experiment.together, [outcome.results for outcome in outcomes])
    print(
        f"{sum(outcome.trained for outcome in outcomes)} cells trained, "
        f"{sum(outcome.kept for outcome in outcomes)} kept, "
        f"{time.perf_counter() - start:.0f} s. Report: {page}"
    )
    return 0


def _engine(options: argparse.Namespace) -> Engine:
    from scoreloss.bench.engines import Here, OnRay
    from scoreloss.checks import one_of

    one_of("engine", options.engine, ENGINES)
    if options.engine == "ray":
        return OnRay(options.address)
    if options.address:
        raise InputError(f"--address {options.address}: it is that of a Ray cluster, for --engine ray")
    return Here()


def _experiment(options: argparse.Namespace) -> Experiment:
    from scoreloss.bench.experiment import from_file, from_flags

    flags = {
        "losses": options.losses and [name.strip() for name in options.losses.split(",") if name.strip()],
        "seeds": options.seeds,
        "budget": options.budget,
        "head": options.head,
        "epochs": options.epochs,
        "patience": options.patience,
        "batch_size": options.batch_size,
        "learning_rate": options.lr,
        "weight_decay": options.weight_decay,
        "init": options.init,
        "framework": options.framework,
    }
    said = {name: value for name, value in flags.items() if value is not None}
    of_data = {name: value for name, value in options_of(options).items() if value}
    if not options.dataset.endswith(".toml"):
        return from_flags(
            {
                **said,
                "dataset": [
                    {"path": options.dataset, "backbone": options.backbone, "dtype": options.dtype, **of_data}
                ],
            },
            options.out,
        )
    if said or of_data or options.backbone != "identity":
        first = next(iter((*said, *of_data, "backbone")))
        raise InputError(
            f"--{first.replace('_', '-')} is given beside {options.dataset}: the file says it all"
        )
    return from_file(Path(options.dataset), options.out)
