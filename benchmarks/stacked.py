"""25 yeast runs trained as one program against the same one after another.

    python benchmarks/stacked.py [--smoke]

"Alone" is this project's own program with one run in it; "plain" is nn.Linear, torch.optim.Adam and a loop. All
three train the same batches from the same start. Prints seconds for the stack, and ratios.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

import torch
from torch import nn

from scoreloss.bench.contenders import PAPER_LOSSES
from scoreloss.bench.plan import HEADS
from scoreloss.bench.splits import Split, split_for
from scoreloss.bench.train import Pack, Run
from scoreloss.data import Dataset, load
from scoreloss.metrics import label_frequencies
from scoreloss.torch import LOSSES, Loss, SigmoidF1, start_at_priors
from timing import medians, ratio, shown

SEEDS = range(5)
BATCH = 256


def stacked(
    data: Dataset, splits: Sequence[Split], runs: Sequence[Run], seeds: Sequence[int], head: str, epochs: int
) -> None:
    """Set up and train runs x seeds."""
    used = [splits[s] for s in seeds]
    Pack(data.inputs, data.targets, used, runs, seeds, head=head, batch_size=BATCH).train(epochs)


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round of two epochs")
    smoke = parser.parse_args().smoke
    epochs, rounds = (2, 1) if smoke else (60, 9)
    data = load("yeast")
    splits = [split_for(data, seed) for seed in SEEDS]
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
        "5 learning rates": [Run(shared, rate) for rate in (0.001, 0.002, 0.004, 0.008, 0.016)],
    }
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {epochs} epochs of {BATCH}")
    print(f"{'25 runs':>26} {'head':>7} {'stacked s':>10}  {'alone / stacked':>19}  {'plain / stacked':>19}")
    for head, (name, runs) in itertools.product(HEADS, grids.items()):

        def one_after_another(runs=runs, head=head):
            for run, seed in itertools.product(runs, SEEDS):
                stacked(data, splits, [run], [seed], head, epochs)

        def by_hand(runs=runs, head=head):
            for run, seed in itertools.product(runs, SEEDS):
                plain(*prepared[seed], run.loss, run.learning_rate, seed, head, epochs)

        turns = rounds if head == "linear" else min(rounds, 3)
        seconds = medians(
            {
                "stacked": lambda runs=runs, head=head: stacked(data, splits, runs, SEEDS, head, epochs),
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


if __name__ == "__main__":
    main()
