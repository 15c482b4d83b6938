"""One forward and backward of SigmoidF1 against torch's BCE with logits and the paper's listing.

    python benchmarks/loss_step.py [--smoke]

Prints the milliseconds of BCE, and ratios: ours to BCE, and the listing to ours, eager and compiled with fullgraph.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor

from scoreloss.torch import SigmoidF1
from timing import medians, ratio, shown

SHAPES = {(256, 20): 200, (256, 155): 200, (4096, 80): 60, (65536, 80): 15, (8192, 4096): 7}
SMOKE = {(256, 20): 2, (64, 3): 2}


def listing(logits: Tensor, targets: Tensor) -> Tensor:
    """The four soft counts of every label as the paper's listing sums them, then F1 and the mean."""
    s = 1 / (1 + torch.exp(-1.0 * (logits + 0.0)))
    tp = torch.sum(s * targets, dim=0)
    fp = torch.sum(s * (1 - targets), dim=0)
    fn = torch.sum((1 - s) * targets, dim=0)
    f1 = 2 * tp / (2 * tp + fn + fp + 1e-16)
    return torch.mean(1 - f1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two rounds on small shapes")
    shapes = SMOKE if parser.parse_args().smoke else SHAPES
    losses = {"bce": F.binary_cross_entropy_with_logits, "ours": SigmoidF1(), "listing": listing}
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; median [quartiles] of ratios")
    print(f"{'shape':>14} {'mode':>9} {'BCE ms':>8}  {'ours / BCE':>19}  {'listing / ours':>19}")
    for mode in ("eager", "compiled"):
        for (n, c), rounds in shapes.items():
            torch._dynamo.reset()
            logits = torch.randn(n, c, requires_grad=True)
            targets = (torch.rand(n, c) < 0.1).float()

            def step(loss, logits=logits, targets=targets):
                (gradient,) = torch.autograd.grad(loss(logits, targets), logits)
                return gradient

            calls = {
                name: torch.compile(loss, fullgraph=True) if mode == "compiled" else loss
                for name, loss in losses.items()
            }
            seconds = medians({name: lambda call=call: step(call) for name, call in calls.items()}, rounds)
            print(
                f"{n:>8} x {c:<4} {mode:>8} {1e3 * sorted(seconds['bce'])[rounds // 2]:8.3f}  "
                f"{shown(ratio(seconds['ours'], seconds['bce'])):>19}  "
                f"{shown(ratio(seconds['listing'], seconds['ours'])):>19}",
                flush=True,
            )


if __name__ == "__main__":
    main()
