"""The options that say which data and which features: the same for every command that reads a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoreloss.data import Dataset

DATASET = "yeast or movies; FORMAT:PATH (scoreloss data list); or a .csv, .tsv, .jsonl, .parquet or .npz file"
OPTIONS = ("text", "image", "labels", "ids", "split", "sep", "years", "level", "difficult", "min_count")


def add_dataset(parser: argparse.ArgumentParser, about: str = DATASET) -> None:
    """Add them to a command."""
    parser.add_argument("dataset", metavar="DATASET", help=about)
    group = parser.add_argument_group("data")
    for flag, metavar, what in (
        ("--text", "COLUMN", "column of the texts of a table of your own (default: text)"),
        ("--image", "COLUMN", "column of paths of images, from the folder of the table (default: image)"),
        (
            "--labels",
            "COLUMN",
            "column of lists of labels, or columns of 0 and 1: a,b,c or topic_* (default: labels)",
        ),
        ("--ids", "COLUMN", "column of ids (default: rows are numbered)"),
        ("--split", "COLUMN", "column with train, validation or test (default: a split is drawn)"),
        ("--sep", "TEXT", "between the labels of a cell (default: |)"),
        ("--years", "YEARS", "of arxiv: when papers were first sent, such as 2020 or 2018-2020"),
        (
            "--level",
            "LEVEL",
            "of a hierarchy of labels: all with those above, given, or a depth from 1 (default: all)",
        ),
    ):
        group.add_argument(flag, metavar=metavar, help=what)
    group.add_argument(
        "--difficult", action="store_true", default=None, help="of voc: count objects marked difficult"
    )
    group.add_argument(
        "--min-count",
        type=int,
        default=0,
        metavar="N",
        help="leave out labels of fewer examples (default: %(default)s)",
    )


def add_backbone(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add what turns inputs into features; it must be given where there is no default."""
    said = f" (default: {default})" if default else ""
    parser.add_argument(
        "--backbone",
        required=default is None,
        default=default,
        metavar="B",
        help=f"identity, tfidf, the name or folder of a text or image model, or timm:NAME{said}",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder of the features (default: SCORELOSS_CACHE, or ~/.cache/scoreloss)",
    )
    parser.add_argument(
        "--dtype",
        default="float32",
        metavar="TYPE",
        help="float32, or float16 for half the disk (default: %(default)s)",
    )


def dataset_from(options: argparse.Namespace) -> Dataset:
    """The dataset that they say."""
    from scoreloss.data import load

    return load(options.dataset, **options_of(options))


def options_of(options: argparse.Namespace) -> dict[str, Any]:
    """What was said of the data."""
    return {name: getattr(options, name) for name in OPTIONS}
