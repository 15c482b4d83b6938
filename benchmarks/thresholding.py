"""Which thresholds to use: which data to fit them on, which rule, what overfits, and whether it depends on the loss.

    python benchmarks/thresholding.py [--data DIR] [--smoke]

Trains five losses with five seeds on yeast and, out of DIR (Mulan's ARFF files), emotions, scene and enron, and decides
with every rule. A seed draws the validation part (a fifth of the training part). One model a loss and seed serves all
rules: the epoch with the best mean average precision on the validation part. Rules on probabilities (Lipton,
ExpectedF1, TopK) see scores calibrated by Platt's sigmoid on the data they are fitted on. F1 in percent, of the test part.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

import scoreloss as sl
from scoreloss.data import load
from scoreloss.thresholds import Rule
from scoreloss.torch import LOSSES, start_at_priors

LOSS_NAMES = ("bce", "focal", "asymmetric", "unbounded_f1", "sigmoid_f1")
RULES: dict[str, Callable[[], Rule]] = {
    "Fixed(0.5)": lambda: sl.Fixed(0.5),
    "Global": sl.Global,
    "PerLabel": sl.PerLabel,
    "PerLabel, 5 positives": lambda: sl.PerLabel(min_positives=5),
    "PerLabel, cv=5": lambda: sl.PerLabel(cv=5),
    "Averaging": sl.Averaging,
    "Lipton": sl.Lipton,
    "TopK": lambda: sl.TopK("count"),
    "ExpectedF1": sl.ExpectedF1,
}
ON_CHANCES = ("Lipton", "TopK", "ExpectedF1")
PARTS = ("training", "validation", "both", "test")
METRICS = {"macro_f1": "macro F1", "micro_f1": "micro F1", "samples_f1": "samples F1"}
EPOCHS, EVERY, HIDDEN, RATE, BATCH = 60, 3, 256, 0.003, 256

Part = tuple[np.ndarray, np.ndarray]
Key = tuple[str, str, str, str, str]
"""Dataset, loss, rule, the part it was fitted on, and "metric on part"."""


def datasets(folder: Path | None) -> Iterator[tuple[str, Part, Part]]:
    """Name, training part and test part of each."""
    for spec in (
        "yeast",
        *(f"mulan:{folder / name}" for name in (("emotions", "scene", "enron") if folder else ())),
    ):
        data = load(spec)
        train, test = ((data.inputs[data.splits[p]], data.targets[data.splits[p]]) for p in ("train", "test"))
        yield data.name if spec == "yeast" else Path(spec).name, train, test


def trained(loss_name: str, seed: int, train: Part, parts: Sequence[Part], epochs: int) -> list[np.ndarray]:
    """Scores of the parts (the second one is the validation part) at the epoch that ranks that one best."""
    torch.manual_seed(seed)
    x, y = train
    mean, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1)
    inputs = [torch.as_tensor((part - mean) / scale).float() for part, _ in (train, *parts)]
    targets = torch.as_tensor(y).float()
    loss = LOSSES[loss_name].for_targets(y)
    model = nn.Sequential(nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, y.shape[1]))
    start_at_priors(model[2], sl.label_frequencies(y), loss, seed=seed)
    optimiser = torch.optim.Adam([*model.parameters(), *loss.parameters()], lr=RATE)
    best, scores = -1.0, []
    for epoch in range(1, epochs + 1):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimiser.zero_grad()
            loss(model(inputs[0][rows]), targets[rows]).backward()
            optimiser.step()
        if epoch % EVERY == 0:
            with torch.no_grad():
                now = [loss.scores(model(part).double()).numpy() for part in inputs[1:]]
            ranked = sl.evaluate(parts[1][1], now[1])["average_precision"]
            if ranked > best:
                best, scores = ranked, now
    return scores


def judged(parts: dict[str, Part]) -> Iterator[tuple[str, str, str, float]]:
    """(rule, part it was fitted on, "metric on part", value)."""
    for rule_name, make in RULES.items():
        for fitted_on in PARTS if rule_name in ("Global", "PerLabel") else ("validation",):
            y, scores = parts[fitted_on]
            shown = {part: parts[part][1] for part in (fitted_on, "test")}
            if rule_name in ON_CHANCES:
                calibrated = sl.calibrate(y, sl.logits_from(scores))
                shown = {part: calibrated.predict(sl.logits_from(s)) for part, s in shown.items()}
            rule = make().fit(y, shown[fitted_on])
            for part, s in shown.items():
                metrics = sl.evaluate(parts[part][0], rule.predict(s).astype(float))
                for metric in METRICS:
                    yield rule_name, fitted_on, f"{metric} on {part}", 100 * metrics[metric]


def measured(folder: Path | None, losses: Sequence[str], seeds: int, epochs: int) -> dict[Key, list[float]]:
    """Every number, a list over seeds."""
    results: dict[Key, list[float]] = {}
    for name, (x, y), test in datasets(folder):
        for seed in range(seeds):
            rows, held_out = sl.stratified_split(y, [0.8, 0.2], seed=seed)
            train, validation = (x[rows], y[rows]), (x[held_out], y[held_out])
            for loss in losses:
                scores = trained(loss, seed, train, (train, validation, test), epochs)
                parts = {
                    part: (of[1], s)
                    for part, of, s in zip(
                        ("training", "validation", "test"), (train, validation, test), scores, strict=True
                    )
                }
                both = zip(parts["training"], parts["validation"], strict=True)
                parts["both"] = tuple(np.concatenate(pair) for pair in both)
                for rule, fitted_on, metric, value in judged(parts):
                    results.setdefault((name, loss, rule, fitted_on, metric), []).append(value)
        print(f"{name} done", flush=True)
    return results


def report(results: dict[Key, list[float]]) -> None:
    names, losses = (list(dict.fromkeys(key[place] for key in results)) for place in (0, 1))

    def mean(
        metric: str, rule: str, part: str = "validation", data: str | None = None, loss: str | None = None
    ) -> float:
        found = [
            np.mean(values)
            for (d, o, r, p, m), values in results.items()
            if (r, p, m) == (rule, part, metric) and data in (None, d) and loss in (None, o)
        ]
        return float(np.mean(found))

    def spread(metric: str, rule: str, data: str) -> float:
        """The standard deviation over seeds of the mean over losses."""
        by_loss = [results[data, loss, rule, "validation", metric] for loss in losses]
        return float(np.mean(by_loss, axis=0).std(ddof=1)) if len(by_loss[0]) > 1 else 0.0

    print("\n## Fitted on which part: macro F1 on the test part\n")
    table(
        ["rule, fitted on", *names],
        [
            [f"{rule}, {part}", *(f"{mean('macro_f1 on test', rule, part, d):.1f}" for d in names)]
            for rule in ("Global", "PerLabel")
            for part in PARTS
        ]
        + [
            [f"{rule}, validation", *(f"{mean('macro_f1 on test', rule, data=d):.1f}" for d in names)]
            for rule in ("PerLabel, 5 positives", "PerLabel, cv=5")
        ],
    )
    for metric, title in METRICS.items():
        print(f"\n## Which rule: {title} on the test part\n")
        table(
            ["rule", *names],
            [
                [
                    rule,
                    *(
                        f"{mean(f'{metric} on test', rule, data=d):.1f} ± {spread(f'{metric} on test', rule, d):.1f}"
                        for d in names
                    ),
                ]
                for rule in RULES
            ],
        )
    for metric in ("macro_f1", "samples_f1"):
        print(
            f"\n## What overfits: {METRICS[metric]} on the validation part, where fitted, less that on the test part\n"
        )
        table(
            ["rule", *names],
            [
                [
                    rule,
                    *(
                        f"{mean(f'{metric} on validation', rule, data=d) - mean(f'{metric} on test', rule, data=d):+.1f}"
                        for d in names
                    ),
                ]
                for rule in RULES
            ],
        )
    for metric in ("macro_f1", "samples_f1"):
        print(f"\n## By loss: {METRICS[metric]} on the test part, mean over datasets\n")
        table(
            ["rule", *losses],
            [
                [rule, *(f"{mean(f'{metric} on test', rule, loss=loss):.1f}" for loss in losses)]
                for rule in RULES
            ],
        )


def table(header: list[str], rows: list[list[str]]) -> None:
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mulan"), help="Mulan's ARFF files")
    parser.add_argument("--smoke", action="store_true", help="yeast, two losses, two seeds, three epochs")
    given = parser.parse_args()
    if given.smoke:
        results = measured(None, ("bce", "sigmoid_f1"), 2, 3)
    else:
        results = measured(given.data, LOSS_NAMES, 5, EPOCHS)
    report(results)


if __name__ == "__main__":
    main()
