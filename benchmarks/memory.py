"""Peak memory of a forward and backward pass of each loss, in units of the logits.

    python benchmarks/memory.py [--smoke]

Eager, float32; beyond logits and targets, the gradient counted. Every allocation and release is recorded by the
profiler of torch, so the numbers are exact. "held" is what the forward pass keeps for the backward pass.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from scoreloss.torch import LOSSES, Loss, MetricLoss

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler says when it starts

SHAPE, SMOKE = (4096, 256), (64, 8)
PAIRS = {"recall_at_k", "lambda_loss"}
"""Losses of pairs of labels, (n, c, c): measured on fewer labels."""


def changes(run: Callable[[], object]) -> tuple[list[int], object]:
    """The bytes allocated (above 0) and released while something runs, in order, and what it returns."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        result = run()
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    return [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())], result


def peak_and_held(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, targets: Tensor
) -> tuple[float, float]:
    """The peak of both passes, and what is held between them, over the size of the logits."""
    forward, value = changes(lambda: loss(logits, targets))
    backward, _ = changes(lambda: torch.autograd.grad(value, logits))
    after = np.cumsum([0, *forward, *backward])
    size = logits.numel() * logits.element_size()
    return float(after.max()) / size, float(after[len(forward)]) / size


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="a small batch")
    n, c = SMOKE if parser.parse_args().smoke else SHAPE
    kinds = {"torch's own bce": lambda targets: F.binary_cross_entropy_with_logits}
    kinds |= {name: kind.for_targets for name, kind in LOSSES.items()}
    for options in (
        {"score": "jaccard", "average": "micro"},
        {"score": "fbeta", "average": "samples"},
        {"score": "mcc"},
        {"score": "f1", "surrogate": "hinge"},
        {"score": "f1", "surrogate": "amplify"},
        {"score": "f1", "surrogate": "cdf", "prior": "raised_cosine"},
        {"score": "f1", "slope": 2.0, "offset": -1.0},
    ):
        name = " ".join(str(value) for value in options.values())
        kinds[name] = lambda targets, options=options: MetricLoss(**options)
    print(f"torch {torch.__version__}, {n} x {c} float32, in units of the logits")
    print(f"{'loss':>28} {'peak':>6} {'held':>6}  {'targets bool: peak':>18} {'held':>6}")
    for name, make in kinds.items():
        torch.manual_seed(0)
        labels = 32 if name in PAIRS else c
        targets = torch.rand(n, labels) < 0.1
        loss = make(targets.numpy())
        shape = loss.outputs(labels) if isinstance(loss, Loss) else (labels,)
        logits = torch.randn(n, *shape, requires_grad=True)
        floats, booleans = (
            "{:6.2f} {:6.2f}".format(*peak_and_held(loss, logits, kind))
            for kind in (targets.float(), targets if isinstance(loss, Loss) else targets.float())
        )
        print(f"{name:>28} {floats}  {booleans:>25}", flush=True)


if __name__ == "__main__":
    main()
