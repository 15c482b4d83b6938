"""``scoreloss serve MODEL``: a fitted model over HTTP, and a page to try it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from scoreloss.checks import InputError
from scoreloss.cli.progress import Commands

TOKEN = "SCORELOSS_TOKEN"


def add(commands: Commands) -> None:
    """The command and its options."""
    serve = commands.add_parser(
        "serve",
        help="answer by HTTP with a model, and show a page to try it",
        description="Answer by HTTP with a model: POST /predict, GET /model, /health, /metrics and /docs, and a page at / to "
        "try it. Requests that come together are computed together. SIGTERM ends it when all that has begun is answered.",
    )
    serve.add_argument("model", metavar="MODEL", type=Path, help="folder that scoreloss fit wrote")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to answer at (default: %(default)s); one that others can reach needs a token",
    )
    serve.add_argument(
        "--port", type=int, default=8000, metavar="N", help="0 is any free one (default: %(default)s)"
    )
    serve.add_argument(
        "--token",
        help=f"what clients must send as Authorization: Bearer TOKEN (default: {TOKEN}, which others on the machine "
        "cannot see)",
    )
    serve.add_argument(
        "--backbone", metavar="B", help="where the model's backbone is now, if its folder was moved"
    )
    group = serve.add_argument_group("limits")
    for flag, value, metavar, what in (
        ("--max-body", 16, "MB", "size of a request"),
        ("--max-inputs", 256, "N", "inputs of a request"),
        ("--queue", 1024, "N", "inputs that wait; beyond, requests get 503 and Retry-After"),
        ("--batch", 64, "N", "inputs that are computed together"),
    ):
        group.add_argument(
            flag, type=int, default=value, metavar=metavar, help=f"{what} (default: %(default)s)"
        )
    group.add_argument(
        "--wait",
        type=float,
        default=2.0,
        metavar="MS",
        help="how long a request waits for company (default: %(default)s)",
    )
    serve.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    try:
        from scoreloss.serve import Limits, serve
    except ModuleNotFoundError as problem:
        if (problem.name or "").startswith("scoreloss"):
            raise
        raise ImportError(f"scoreloss serve needs {problem.name}: pip install 'scoreloss[serve]'") from None

    if options.max_body < 1:
        raise InputError(f"--max-body is {options.max_body}: it must be a whole number from 1")
    limits = Limits(
        body=options.max_body << 20,
        inputs=options.max_inputs,
        queue=options.queue,
        batch=options.batch,
        wait=options.wait / 1000,
    )
    serve(
        options.model,
        host=options.host,
        port=options.port,
        token=options.token if options.token is not None else os.environ.get(TOKEN),
        limits=limits,
        backbone=options.backbone,
        listening=lambda address: print(f"Serving {options.model} at {address}", flush=True),
    )
    return 0
