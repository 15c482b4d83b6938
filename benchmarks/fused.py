"""Head and metric loss by slices of labels, against the three matrix products that no head can do without.

    python benchmarks/fused.py [--smoke]

131,072 labels, 768 features, 1,024 examples, float32, forward and backward, boolean and sparse targets. Time is a
ratio to the bare products (logits, and the gradients of features and weights, from logits that are there); memory is
the peak beside features, targets, weights and their gradients.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch
from scipy import sparse

from memory import changes
from scoreloss.torch import SigmoidF1, fused_linear_loss
from timing import medians, ratio, shown

LABELS, FEATURES, EXAMPLES = 131072, 768, 1024
SMOKE = 2048, 16, 64


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round on a small head")
    parser.add_argument("--labels", type=int, default=LABELS)
    parser.add_argument("--chunk", type=int, help="labels in a slice")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    labels, features, examples = SMOKE if options.smoke else (options.labels, FEATURES, EXAMPLES)
    torch.manual_seed(0)
    x = torch.randn(examples, features, requires_grad=True)
    weight = (0.02 * torch.randn(labels, features)).requires_grad_()
    bias = torch.zeros(labels, requires_grad=True)
    positives = np.random.default_rng(0).integers(0, labels, (examples, 5)).ravel()
    rows = np.repeat(np.arange(examples), 5)
    targets = sparse.csr_matrix((np.ones(len(rows), bool), (rows, positives)), shape=(examples, labels))
    dense = torch.from_numpy(targets.toarray())

    def bare() -> None:
        with torch.no_grad():
            logits = x @ weight.mT
            _ = logits @ weight, logits.mT @ x

    def fused(average: str, y: object) -> None:
        loss = fused_linear_loss(x, weight, bias, y, SigmoidF1(average=average), chunk=options.chunk)
        torch.autograd.grad(loss, [x, weight, bias])

    def whole() -> None:
        loss = SigmoidF1()(torch.nn.functional.linear(x, weight, bias), dense)
        torch.autograd.grad(loss, [x, weight, bias])

    contenders = {
        "three products": bare,
        "macro": lambda: fused("macro", dense),
        "macro, sparse targets": lambda: fused("macro", targets),
        "micro": lambda: fused("micro", dense),
        "macro, all logits at once": whole,
    }
    seconds = medians(contenders, 1 if options.smoke else options.rounds)
    gradients = 4 * (x.numel() + weight.numel() + bias.numel())
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {examples} x {features} x {labels}")
    print(f"{'':>26} {'seconds':>8}  {'/ three products':>19}  {'peak beside, MB':>15}")
    for name, run in contenders.items():
        peak = float(np.cumsum(changes(run)[0]).max()) - gradients
        print(
            f"{name:>26} {np.median(seconds[name]):8.2f}  "
            f"{shown(ratio(seconds[name], seconds['three products'])):>19}  {peak / 1e6:15.0f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
