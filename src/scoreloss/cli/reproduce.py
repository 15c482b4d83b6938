"""``scoreloss reproduce FORMAT:PATH ...``: the paper's tables, on those of its datasets that are given."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scoreloss.checks import InputError
from scoreloss.cli.progress import Commands, Progress

if TYPE_CHECKING:
    from scoreloss.bench.reproduce import Request


def add(commands: Commands) -> None:
    """The command and its options."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's tables with its settings",
        description="Run the paper's tables on those of its datasets that are given: main results, threshold averaging, "
        "additional experiments, sensitivity, compute time. Its settings are the default; nothing is tuned. Writes one "
        "JSON file a cell, and reproduce.md; what is there is not trained again.",
    )
    reproduce.add_argument(
        "datasets",
        metavar="FORMAT:PATH",
        nargs="+",
        help="movie_posters:DIR arxiv:FILE voc:DIR coco:DIR cancer_hallmarks:DIR chemical_exposure:DIR, one or more "
        "(scoreloss data list says what has to be there)",
    )
    group = reproduce.add_argument_group("data and features")
    group.add_argument(
        "--backbone-text",
        metavar="B",
        help="the name or folder of a text encoder, or tfidf (default: the paper's DistilBERT, distilbert-base-uncased)",
    )
    group.add_argument(
        "--backbone-image",
        metavar="B",
        help="the name or folder of an image model, or timm:NAME (default: the paper's, timm:tresnet_m.miil_in21k for voc "
        "and coco, mobilenet_v2 for movie_posters)",
    )
    group.add_argument(
        "--min-count",
        metavar="N",
        help="leave out labels of fewer examples; for one dataset as arxiv=N, several with commas (default: the paper's, "
        "1000 for arxiv and movie_posters, 10 for cancer_hallmarks and chemical_exposure)",
    )
    group.add_argument("--years", metavar="YEARS", help="of arxiv: when papers were first sent, such as 2020")
    group.add_argument(
        "--cache", type=Path, metavar="DIR", help="folder of the features (default: as of scoreloss embed)"
    )
    group.add_argument(
        "--dtype",
        default="float32",
        metavar="TYPE",
        help="of the features: float32, or float16 for half the disk (default: %(default)s)",
    )
    reproduce.add_argument("--seeds", type=int, metavar="N", help="how many (default: the paper's 5)")
    reproduce.add_argument(
        "--epochs",
        type=int,
        metavar="N",
        help="for all datasets (default: the paper's: 60 for voc and coco, 100 for arxiv and movie_posters, else 500)",
    )
    reproduce.add_argument(
        "--lr",
        type=float,
        default=0.003,
        metavar="X",
        help="learning rate, which the paper does not say (default: %(default)s)",
    )
    reproduce.add_argument(
        "--init",
        default="default",
        metavar="WAY",
        help="start of the heads, which the paper does not say: default for torch's own, or priors (default: %(default)s)",
    )
    reproduce.add_argument(
        "--as-coded",
        action="store_true",
        help="also run S on sigmoid(z) instead of z, as the paper's code does",
    )
    reproduce.add_argument(
        "--no-sensitivity",
        action="store_true",
        help="leave out the grid of slopes and offsets, which is four fifths of the work",
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("runs/reproduce"),
        metavar="DIR",
        help="folder of the results (default: %(default)s)",
    )
    reproduce.add_argument("--force", action="store_true", help="train again what is there")
    reproduce.add_argument(
        "--dry-run", action="store_true", help="say how many cells there are and roughly how long they take"
    )
    reproduce.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and print the tables."""
    from scoreloss.bench.report.paper import text
    from scoreloss.bench.reproduce import PAGE, estimates, plans, reproduce

    start = time.perf_counter()
    progress = Progress()
    planned = plans(options.datasets, _request(options), options.out)
    for plan, spec in zip(planned, options.datasets, strict=True):
        if plan.main.dataset.problems:
            progress.say(f"something was skipped or mended while reading: scoreloss data check {spec}")
    if options.dry_run:
        for line in estimates(planned, cache=options.cache, force=options.force):
            print(line)
        return 0
    found, outcomes = reproduce(
        planned, options.out, cache=options.cache, force=options.force, say=progress.say
    )
    progress.end()
    print(text(found))
    print(
        f"{sum(outcome.trained for outcome in outcomes)} cells trained, {sum(outcome.kept for outcome in outcomes)} kept, "
        f"{time.perf_counter() - start:.0f} s. Tables: {options.out / PAGE}"
    )
    return 0


def _request(options: argparse.Namespace) -> Request:
    from scoreloss.bench.reproduce import Request

    backbones = {"text": options.backbone_text, "image": options.backbone_image}
    return Request(
        {kind: name for kind, name in backbones.items() if name is not None},
        options.dtype,
        _min_counts(options.min_count),
        options.years,
        options.seeds,
        options.epochs,
        options.lr,
        options.init,
        options.as_coded,
        not options.no_sensitivity,
    )


def _min_counts(said: str | None) -> dict[str, int]:
    """``20``, or ``arxiv=50,movie_posters=20``; the one for all stands under no name."""
    found = {}
    for item in (said or "").split(",") if said is not None else ():
        word, _, number = item.rpartition("=")
        try:
            found[word.strip()] = int(number)
        except ValueError:
            raise InputError(
                f"--min-count {said}: it must be a whole number, or DATASET=N, several with commas"
            ) from None
    return found
