"""The command line: ``scoreloss bench DATASET``, ``scoreloss losses``. What is wrong is said in one line."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scoreloss import __version__, catalogue
from scoreloss.checks import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0, or 2 where the input was wrong."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = int(options.run(options))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except (InputError, ImportError) as problem:
        print(f"scoreloss: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        print(f"scoreloss: {where}{problem.strerror or problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nscoreloss: stopped; what was written is kept, the rest is trained next time", file=sys.stderr
        )
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scoreloss",
        description="Train on the score you report: losses made of scores, and what they are worth.",
    )
    parser.add_argument("--version", action="version", version=f"scoreloss {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "bench",
        help="compare losses and threshold rules on a dataset",
        description="Compare losses and threshold rules on a dataset: every loss with every seed, trained together, "
        "judged under every rule. Writes one JSON file a cell and report.html; what is there is not trained again.",
    )
    bench.add_argument("dataset", metavar="DATASET", help="yeast")
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
        "--out", type=Path, metavar="DIR", help="folder of the results (default: runs/DATASET)"
    )
    bench.add_argument("--force", action="store_true", help="train again what is there")
    bench.set_defaults(run=_bench)
    losses = commands.add_parser(
        "losses",
        help="the table of losses",
        description="The table of losses: name, paper, what it optimises, where its own boundary is, knobs.",
    )
    losses.add_argument("--markdown", action="store_true", help="as the documentation shows it")
    losses.set_defaults(run=_losses)
    return parser


def _losses(options: argparse.Namespace) -> int:
    print(catalogue.markdown() if options.markdown else catalogue.text())
    return 0


def _bench(options: argparse.Namespace) -> int:
    from scoreloss.bench import report
    from scoreloss.bench.plan import PAPER_LOSSES, Settings
    from scoreloss.bench.run import bench
    from scoreloss.data import load
    from scoreloss.torch import LOSSES

    start = time.perf_counter()
    settings = Settings(
        head=options.head,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.lr,
        weight_decay=options.weight_decay,
        init=options.init,
    )
    dataset = load(options.dataset)
    losses = PAPER_LOSSES if options.losses is None else _names(options.losses)
    if losses == ["all"]:
        losses = list(LOSSES)
    progress = _Progress()
    outcome = bench(
        dataset,
        losses,
        options.seeds,
        settings,
        options.out or Path("runs") / dataset.name,
        force=options.force,
        say=progress.say,
    )
    progress.end()
    print(report.text(outcome.rows))
    for note in dataset.notes:
        print(note)
    print(f"\n{report.headline(outcome.rows)}")
    print(
        f"{outcome.trained} runs trained, {outcome.kept} kept, "
        f"{time.perf_counter() - start:.0f} s. Report: {outcome.report}"
    )
    return 0


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


class _Progress:
    """Lines on standard error; on a terminal, what counts up stays on one line."""

    def __init__(self) -> None:
        self._open_line = False

    def say(self, line: str, *, counting: bool = False) -> None:
        if counting and sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
            self._open_line = True
            return
        self.end()
        print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._open_line:
            print(file=sys.stderr)
        self._open_line = False
