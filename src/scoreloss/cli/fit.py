"""``scoreloss fit DATASET -o DIR``: a model for daily use, with loss, rule and hyper-parameters chosen on validation data."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from scoreloss.cli.datasets import add_dataset, dataset_from
from scoreloss.cli.progress import Commands, Progress


def add(commands: Commands) -> None:
    """The command and its options."""
    fit = commands.add_parser(
        "fit",
        help="train a model for daily use, and write it to a folder",
        description="Train a model: validation data choose the loss, its configuration, the epoch and the threshold rule, "
        "then the head is trained again on training and validation data together. An official test part is only "
        "reported. Writes a folder that scoreloss predict and scoreloss evaluate take.",
    )
    add_dataset(fit)
    fit.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="folder of the model")
    fit.add_argument("--force", action="store_true", help="write the folder of a model anew")
    fit.add_argument(
        "--backbone",
        metavar="B",
        help="identity, tfidf, the name or folder of a text or image model, or timm:NAME (default: identity for a "
        "matrix, tfidf for texts)",
    )
    fit.add_argument(
        "--loss",
        default="auto",
        metavar="NAME",
        help="a name (scoreloss losses), recommended, or auto (default)",
    )
    fit.add_argument(
        "--rule",
        default="auto",
        metavar="NAME",
        help="fixed_0.5, global, per_label, averaging, lipton, expected_f1, top_k, or auto (default)",
    )
    fit.add_argument(
        "--score",
        default="weighted_f1",
        metavar="F1",
        help="what validation data choose by: weighted_f1, micro_f1, macro_f1 or samples_f1 (default: %(default)s)",
    )
    fit.add_argument(
        "--head", metavar="HEAD", help="linear, relu or mlp (default: mlp for a matrix, else linear)"
    )
    fit.add_argument(
        "--budget",
        type=int,
        default=4,
        metavar="N",
        help="configurations of each loss (default: %(default)s)",
    )
    fit.add_argument(
        "--epochs", type=int, default=60, metavar="N", help="at most so many (default: %(default)s)"
    )
    fit.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the split and the start (default: 0)"
    )
    fit.add_argument(
        "--no-refit",
        action="store_true",
        help="keep the head that was chosen: do not train on validation data",
    )
    fit.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder of the features (default: SCORELOSS_CACHE, or ~/.cache/scoreloss)",
    )
    fit.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and say what was chosen."""
    from scoreloss.model import Classifier
    from scoreloss.model.card import F1
    from scoreloss.model.folder import check_free

    start = time.perf_counter()
    check_free(options.out, force=options.force)
    classifier = Classifier(
        backbone=options.backbone,
        loss=options.loss,
        rule=options.rule,
        score=options.score,
        head=options.head,
        budget=options.budget,
        epochs=options.epochs,
        refit=not options.no_refit,
        seed=options.seed,
        cache=options.cache,
    )
    progress = Progress()
    dataset = dataset_from(options)
    if dataset.problems:
        progress.say(f"something was skipped or mended while reading: scoreloss data check {options.dataset}")
    try:
        classifier.fit_dataset(dataset, say=progress.say)
    finally:
        progress.end()
    classifier.save(options.out, force=options.force)
    record = classifier.model_.record
    for part in ("validation", "test"):
        if record[part] is not None:
            scores = ", ".join(
                f"{title} {100 * record[part]['scores'][name]:.1f}" for name, title in F1.items()
            )
            print(f"{part}: {scores}")
    print(
        f"{record['loss']['tried_as']} under {record['rule']['name']}, {record['loss']['epoch']} epochs, "
        f"{time.perf_counter() - start:.0f} s. Model: {options.out}"
    )
    return 0
