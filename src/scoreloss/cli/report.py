"""``scoreloss report DIR``: the report of a benchmark, made again from its cells."""

from __future__ import annotations

import argparse
from pathlib import Path

from scoreloss.checks import InputError
from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    report = commands.add_parser(
        "report",
        help="make the report of a benchmark again",
        description="Make report.html, report.md, table.tex and cells.parquet again from the cells of a benchmark. "
        "Nothing is trained. Several folders make one report, with ranks across their datasets.",
    )
    report.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="folder of a benchmark")
    report.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write it (default: the folder; to be given with several)",
    )
    report.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write it, and say where."""
    if options.out is None and len(options.folders) > 1:
        raise InputError(f"{len(options.folders)} folders are given: --out says where their report belongs")
    from scoreloss.bench import report, results
    from scoreloss.bench.report.names import titles
    from scoreloss.bench.store import Store

    progress = Progress()
    found = [results.read(Store(folder), progress.say) for folder in options.folders]
    names = titles(found)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{names.count(name)} folders hold {name}: a table may be given once")
    out = options.out or options.folders[0]
    out.mkdir(parents=True, exist_ok=True)
    path = report.write(out, found)
    for name, each in zip(names, found, strict=True):
        print(f"{name}: {report.headline(each.rows)}")
        if each.missing:
            print(f"{name}: {each.missing} runs of the plan are not there yet")
    print(f"Report: {path}")
    return 0
