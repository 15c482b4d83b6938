"""Runs trained as one program against the same runs one after another.

    python benchmarks/stacked.py [--smoke] [--large]

25 yeast runs: "alone" is this project's own program with one run in it; "plain" is nn.Linear, torch.optim.Adam and a
loop. All three train the same batches from the same start. Prints seconds for the stack, and ratios.

With --large, random data of the sizes of Pascal VOC by MobileNetV2 (5,000 x 1,280, 20 labels, 25 runs) and of arXiv by a
sentence encoder (26,558 x 384, 145 labels, 10 runs), sigmoid_f1 with two and five learning rates x five seeds, a linear
head. "of peak" is the rate of the two matrix products of a step (4 n d c operations an epoch and run), all else
included in the time, over that of one large product, which takes its turn in every round.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from scoreloss.bench.contenders import PAPER_LOSSES
from scoreloss.bench.plan import HEADS
from scoreloss.bench.splits import Split, split_for
from scoreloss.bench.train import Pack, Run, standardised
from scoreloss.data import Dataset, load
from scoreloss.metrics import label_frequencies
from scoreloss.torch import LOSSES, Loss, SigmoidF1, start_at_priors
from timing import medians, ratio, shown

SEEDS = range(5)
BATCH = 256
RATES = (0.001, 0.002, 0.004, 0.008, 0.016)
LARGE = {"VOC by MobileNetV2": (5_000, 1_280, 20, RATES), "arXiv by MiniLM": (26_558, 384, 145, RATES[:2])}
SQUARE = 2_048


def stacked(
    data: Dataset,
    inputs: torch.Tensor,
    splits: Sequence[Split],
    runs: Sequence[Run],
    seeds: Sequence[int],
    head: str,
    epochs: int,
) -> None:
    """Set up and train runs x seeds on inputs that are standardised already."""
    used, x = [splits[s] for s in seeds], inputs[seeds[0] : seeds[-1] + 1]
    Pack(x, data.targets, used, runs, seeds, head=head, batch_size=BATCH).train(epochs)


def plain(
    x: torch.Tensor, y: torch.Tensor, frequencies, loss: Loss, rate: float, seed: int, head: str, epochs: int
) -> None:
    """One run as one would write it by hand, on features that are standardised already."""
    torch.manual_seed(seed)
    widths = [x.shape[1], *HEADS[head], y.shape[1]]
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    start_at_priors(layers[-1], frequencies, loss, seed=seed)
    model = nn.Sequential(layers[0], *[m for layer in layers[1:] for m in (nn.ReLU(), layer)])
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=order).split(BATCH):
            optimiser.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            optimiser.step()


def yeast(smoke: bool) -> None:
    """25 runs on few examples, where small operations count."""
    epochs, rounds = (2, 1) if smoke else (60, 9)
    data = load("yeast")
    splits = [split_for(data, seed) for seed in SEEDS]
    inputs = standardised([data.inputs] * len(splits), splits, head="linear")
    prepared = []
    for split in splits:
        x = (data.inputs - data.inputs[split.train].mean(0)) / data.inputs[split.train].std(0)
        y = data.targets[split.train]
        prepared.append(
            (torch.as_tensor(x[split.train]).float(), torch.as_tensor(y).float(), label_frequencies(y))
        )
    shared = SigmoidF1()
    grids = {
        "5 losses": [Run(LOSSES[name](), 0.003) for name in PAPER_LOSSES],
        "5 learning rates": [Run(shared, rate) for rate in RATES],
    }
    print(f"{epochs} epochs of {BATCH}")
    print(f"{'25 runs':>26} {'head':>7} {'stacked s':>10}  {'alone / stacked':>19}  {'plain / stacked':>19}")
    for head, (name, runs) in itertools.product(("linear", "mlp"), grids.items()):

        def one_after_another(runs=runs, head=head):
            for run, seed in itertools.product(runs, SEEDS):
                stacked(data, inputs, splits, [run], [seed], head, epochs)

        def by_hand(runs=runs, head=head):
            for run, seed in itertools.product(runs, SEEDS):
                plain(*prepared[seed], run.loss, run.learning_rate, seed, head, epochs)

        turns = rounds if head == "linear" else min(rounds, 3)
        seconds = medians(
            {
                "stacked": lambda runs=runs, head=head: stacked(
                    data, inputs, splits, runs, SEEDS, head, epochs
                ),
                "alone": one_after_another,
                "plain": by_hand,
            },
            turns,
        )
        print(
            f"{name + ' x 5 seeds':>26} {head:>7} {sorted(seconds['stacked'])[turns // 2]:10.2f}  "
            f"{shown(ratio(seconds['alone'], seconds['stacked'])):>19}  "
            f"{shown(ratio(seconds['plain'], seconds['stacked'])):>19}",
            flush=True,
        )


def large(smoke: bool) -> None:
    """Runs whose matrix products are most of the work."""
    rng = np.random.default_rng(0)
    epochs, rounds = (1, 1) if smoke else (2, 7)
    a = torch.randn(SQUARE, SQUARE)
    print(f"{epochs} epochs of {BATCH}")
    print(
        f"{'':>20} {'runs':>5} {'stacked s':>10}  {'alone / stacked':>19}  {'plain / stacked':>19}  {'of peak':>19}"
    )
    for name, (n, d, c, rates) in LARGE.items():
        n = n // 20 if smoke else n
        data = Dataset(
            "random",
            rng.normal(size=(n, d)).astype(np.float32),
            rng.random((n, c)) < 0.05,
            tuple(map(str, range(c))),
        )
        everything = np.arange(n)
        splits = [Split(everything, everything[:1], everything[:1]) for _ in SEEDS]
        loss = SigmoidF1()
        runs = [Run(loss, rate) for rate in rates]
        x = torch.as_tensor(data.inputs)
        y = torch.as_tensor(data.targets).float()
        frequencies = label_frequencies(data.targets)

        inputs = standardised([data.inputs] * len(splits), splits, head="linear")

        def whole(runs=runs, data=data, inputs=inputs, splits=splits):
            stacked(data, inputs, splits, runs, SEEDS, "linear", epochs)

        def alone(runs=runs, data=data, inputs=inputs, splits=splits):
            for run, seed in itertools.product(runs, SEEDS):
                stacked(data, inputs, splits, [run], [seed], "linear", epochs)

        def by_hand(runs=runs, x=x, y=y, frequencies=frequencies):
            for run, seed in itertools.product(runs, SEEDS):
                plain(x, y, frequencies, run.loss, run.learning_rate, seed, "linear", epochs)

        pack = Pack(inputs, data.targets, splits, runs, SEEDS, head="linear", batch_size=BATCH)
        seconds = medians(
            {
                "stacked": whole,
                "alone": alone,
                "plain": by_hand,
                "epochs": lambda pack=pack: pack.train(epochs),
                "product": lambda: a @ a,
            },
            rounds,
        )
        operations = 4 * n * d * c * len(runs) * len(SEEDS) * epochs
        rates_of = [operations / s for s in seconds["epochs"]]
        peaks = [2 * SQUARE**3 / s for s in seconds["product"]]
        print(
            f"{name:>20} {len(runs) * len(SEEDS):>5} {sorted(seconds['stacked'])[rounds // 2]:10.2f}  "
            f"{shown(ratio(seconds['alone'], seconds['stacked'])):>19}  "
            f"{shown(ratio(seconds['plain'], seconds['stacked'])):>19}  "
            f"{shown(ratio(rates_of, peaks)):>19}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round of few epochs")
    parser.add_argument("--large", action="store_true", help="the large sizes alone")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    if not options.large:
        yeast(options.smoke)
    if options.large or options.smoke:
        large(options.smoke)


if __name__ == "__main__":
    main()
