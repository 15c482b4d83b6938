"""The command line, one file a command. What is wrong is said in one line."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from scoreloss import __version__
from scoreloss.checks import InputError
from scoreloss.cli import (
    bench,
    data,
    embed,
    evaluate,
    fit,
    losses,
    predict,
    report,
    reproduce,
    serve,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0, or 2 where the input was wrong."""
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # read when torch is imported, which no command has done yet
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
        print("\nscoreloss: stopped; what was written is kept, the rest is done next time", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scoreloss",
        description="Train on the score you report: losses made of scores, and what they are worth.",
    )
    parser.add_argument("--version", action="version", version=f"scoreloss {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (bench, data, embed, evaluate, fit, losses, predict, report, reproduce, serve):
        command.add(commands)
    return parser
