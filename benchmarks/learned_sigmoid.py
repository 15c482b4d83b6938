"""What a sigmoid gains that learns its own slope and offset, and whether it runs away.

    python benchmarks/learned_sigmoid.py [--smoke]

sigmoid_f1 on yeast, five seeds, linear head: weighted F1 on the test part at the loss's own boundary, the offsets and
slopes it ends with, and how far the offset and the bias of the head have come apart since the start.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from scoreloss.bench.decide import weighted_f1
from scoreloss.bench.splits import split_for
from scoreloss.bench.train import Pack, Run
from scoreloss.data import load
from scoreloss.torch import SigmoidF1

KINDS = {
    "fixed": {},
    "offset, one": {"learnable": "offset"},
    "offset, one a label": {"learnable": "offset", "offset": [0.0] * 14},
    "slope, one": {"learnable": "slope"},
    "slope, one a label": {"learnable": "slope", "slope": [1.0] * 14},
    "both, one a label": {"learnable": ("slope", "offset"), "slope": [1.0] * 14, "offset": [0.0] * 14},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one seed and two epochs")
    smoke = parser.parse_args().smoke
    seeds = range(1 if smoke else 5)
    data = load("yeast")
    splits = [split_for(data, seed) for seed in seeds]
    rows = torch.as_tensor(np.stack([split.test for split in splits]))
    print(
        f"{'':>20} {'epochs':>6} {'weighted F1':>12} {'offset':>16} {'slope':>14} {'bias - offset moved':>20}"
    )
    for epochs in [2] if smoke else [60, 600]:
        for name, options in KINDS.items():
            loss = SigmoidF1(**options, runs=len(seeds))
            pack = Pack(
                data.inputs, data.targets, splits, [Run(loss, 0.003)], seeds, head="linear", batch_size=256
            )
            before = pack.layers[-1].detach()[:, 0, :, -1].clone()
            pack.train(epochs)
            predicted = loss.scores(pack.logits(rows)[0]).numpy() >= 0.5
            scores = [
                100 * weighted_f1(data.targets[s.test], p) for s, p in zip(splits, predicted, strict=True)
            ]
            knobs = {
                k: v.detach()
                for k, v in loss._options().items()
                if k in ("slope", "offset") and hasattr(v, "shape")
            }
            bias = pack.layers[-1].detach()[:, 0, :, -1] - before
            moved = (bias - knobs["offset"]).abs().max().item() if "offset, one a" in name else None
            print(
                f"{name:>20} {epochs:6} {np.mean(scores):6.1f} ±{np.std(scores, ddof=min(1, len(scores) - 1)):4.1f} "
                + " ".join(
                    f"{v.min().item():7.2f} to {v.max().item():4.1f}" if v is not None else f"{'':15}"
                    for v in (knobs.get("offset"), knobs.get("slope"))
                )
                + (f"{moved:14.1e}" if moved is not None else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
