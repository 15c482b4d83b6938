"""What small batches cost a batch score, and what exact batches and running counts bring back.

    python benchmarks/small_batches.py [DATASET] [--smoke]

sigmoid_f1 (macro), linear head, five seeds, F1 in percent on the test part at the loss's own boundary, "rare" over the
third of the labels with the fewest positives in training. Learning rate and epoch are those with the best macro F1 on
validation data, from four rates; "last epoch" is the macro F1 after all 30 with that rate.

"devices": 64 examples a step on so many devices, the mean of their losses, as DDP gives it without sync; one device
is what sync=True gives on any number. "momentum": so many examples a step on one device.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import Tensor

from scoreloss.bench.splits import split_for
from scoreloss.bench.train import Pack, Run
from scoreloss.data import load
from scoreloss.torch import BCE, Loss, SigmoidF1

RATES = (0.001, 0.003, 0.01, 0.03)
TOGETHER, EPOCHS = 64, 30


class Devices(Loss):
    """The mean of a loss over shards of so many examples each, as of so many devices."""

    def __init__(self, loss: Loss, size: int) -> None:
        super().__init__()
        self.loss, self.size = loss, size

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of logits (..., n, c); a last shard that is not full is left out."""
        size = min(self.size, logits.shape[-2])
        n = logits.shape[-2] // size * size
        parts = (part[..., :n, :].unflatten(-2, (-1, size)) for part in (logits, targets))
        mean: Tensor = self.loss(*parts).mean(-1)
        return mean


def contenders() -> dict[str, tuple[Loss, int]]:
    """Name -> the loss, and how many examples a step takes."""
    found: dict[str, tuple[Loss, int]] = {"bce": (BCE(), TOGETHER)}
    for devices in (1, 8, 16, 32, 64):
        loss = SigmoidF1() if devices == 1 else Devices(SigmoidF1(), TOGETHER // devices)
        found[f"{devices} x {TOGETHER // devices}"] = (loss, TOGETHER)
    for size in (16, 4, 1):
        for momentum in (0.0, 0.9, 0.99):
            found[f"{size} momentum {momentum:g}"] = (SigmoidF1(momentum=momentum), size)
    return found


def f1_of_labels(targets: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """F1 of each label, 0 where there is nothing."""
    both = (targets & predicted).sum(-2)
    either = targets.sum(-2) + predicted.sum(-2)
    return 2 * both / np.maximum(either, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="?", default="yeast")
    parser.add_argument("--smoke", action="store_true", help="one seed and one epoch, large batches")
    options = parser.parse_args()
    seeds, epochs = (range(1), 1) if options.smoke else (range(5), EPOCHS)
    data = load(options.dataset)
    splits = [split_for(data, seed) for seed in seeds]
    rows = {part: np.stack([getattr(split, part) for split in splits]) for part in ("validation", "test")}
    positives = data.targets[splits[0].train].sum(0)
    rare = np.argsort(positives, kind="stable")[: len(positives) // 3]
    support = data.targets[rows["test"][0]].sum(0)
    print(
        f"{data.name}: {len(splits[0].train)} training examples, {len(positives)} labels, "
        f"of which {len(rare)} have {positives[rare].min()} to {positives[rare].max()} positives"
    )
    print(f"{'examples a step':>18} {'macro F1':>12} {'last epoch':>12} {'rare':>12} {'weighted F1':>12}")
    for name, (loss, size) in contenders().items():
        if options.smoke and size < TOGETHER:
            continue
        runs = [Run(loss, rate) for rate in RATES]
        pack = Pack(data.inputs, data.targets, splits, runs, seeds, head="linear", batch_size=size)
        found: dict[str, list[np.ndarray]] = {part: [] for part in rows}
        for _ in range(epochs):
            pack.epoch()
            for part, of in rows.items():
                predicted = pack.logits(torch.as_tensor(of)).numpy() >= 0
                found[part].append(f1_of_labels(data.targets[of], predicted))
        f1 = {part: np.stack(of) for part, of in found.items()}  # (epochs, rates, seeds, labels)
        best = f1["validation"].mean((-2, -1))
        epoch, rate = np.unravel_index(best.argmax(), best.shape)
        chosen = f1["test"][epoch, rate]
        columns = {
            "macro": chosen.mean(-1),
            "last": f1["test"][-1, rate].mean(-1),
            "rare": chosen[:, rare].mean(-1),
            "weighted": chosen @ support / support.sum(),
        }
        shown = (
            f"{100 * v.mean():6.1f} ±{100 * v.std(ddof=min(1, len(v) - 1)):4.1f}" for v in columns.values()
        )
        print(f"{name:>18} " + " ".join(f"{s:>12}" for s in shown), flush=True)


if __name__ == "__main__":
    main()
