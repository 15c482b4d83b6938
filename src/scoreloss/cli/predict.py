"""``scoreloss predict MODEL INPUT -o FILE``: labels, scores and expected F1 of any number of inputs."""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path

from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    predict = commands.add_parser(
        "predict",
        help="predict the labels of a file of any size",
        description="Predict the labels of a file of any size, in flat memory. A run that is stopped keeps what it made "
        "beside the output, and --resume goes on there.",
    )
    predict.add_argument("model", metavar="MODEL", type=Path, help="folder that scoreloss fit wrote")
    predict.add_argument(
        "input",
        metavar="INPUT",
        type=Path,
        help="texts (.txt with one a line), a table (.csv, .tsv, .jsonl, .parquet), a matrix (.npz with features, .npy) "
        "or a folder of images; files may end in .gz, .bz2 or .xz",
    )
    predict.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="a .csv, .jsonl or .parquet file"
    )
    predict.add_argument("--resume", action="store_true", help="go on where an earlier run was stopped")
    predict.add_argument("--force", action="store_true", help="write an output anew that is there")
    group = predict.add_argument_group("columns of a table")
    for flag, metavar, what in (
        ("--text", "COLUMN", "texts (default: text)"),
        ("--image", "COLUMN", "paths of images, from the folder of the table (default: image)"),
        ("--features", "COLUMNS", "numbers: a,b,c or x_* (default: all but that of --ids)"),
        ("--ids", "COLUMN", "ids (default: rows are numbered from 0)"),
    ):
        group.add_argument(flag, metavar=metavar, help=what)
    predict.add_argument(
        "--backbone", metavar="B", help="where the model's backbone is now, if its folder was moved"
    )
    predict.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and say how many rows there are."""
    from scoreloss.model.folder import RECORD, load
    from scoreloss.model.inputs import Columns
    from scoreloss.model.stream import predict_file

    start = time.perf_counter()
    model = load(options.model, backbone=options.backbone)
    identity = hashlib.sha256((options.model / RECORD).read_bytes()).hexdigest()
    progress = Progress()
    try:
        done = predict_file(
            model,
            options.input,
            options.out,
            identity=identity,
            columns=Columns(options.text, options.image, options.features, options.ids),
            resume=options.resume,
            force=options.force,
            say=progress.say,
        )
    finally:
        progress.end()
    kept = f" behind {done.kept:,} inputs that were done" if done.kept else ""
    print(
        f"{done.rows:,} rows{kept}, {done.left_out:,} inputs left out, {time.perf_counter() - start:.1f} s. "
        f"Output: {options.out}"
    )
    return 0
