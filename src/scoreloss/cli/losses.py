"""``scoreloss losses``: the table of losses."""

from __future__ import annotations

import argparse

from scoreloss import catalogue
from scoreloss.cli.progress import Commands


def add(commands: Commands) -> None:
    """The command and its options."""
    losses = commands.add_parser(
        "losses",
        help="the table of losses",
        description="The table of losses: name, paper, what it optimises, where its own boundary is, knobs.",
    )
    losses.add_argument("--markdown", action="store_true", help="as the documentation shows it")
    losses.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    print(catalogue.markdown() if options.markdown else catalogue.text())
    return 0
