"""How the losses of rows grow: bp_mll with the number of labels, and the memory of those that compare all pairs.

    python benchmarks/rankings.py [--smoke]

Prints the time of one forward and backward of bp_mll at ten times the labels over that at one time (10 is linear),
and the peak memory, beyond the inputs, of recall_at_k and lambda_loss.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import torch

from scoreloss.torch import BPMLL
from timing import medians, ratio, shown

PEAK = """
import resource, torch
from scoreloss.torch import LOSSES
z = torch.randn({n}, {c}, requires_grad=True)
y = (torch.rand({n}, {c}) < 0.02).float()
before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
LOSSES["{name}"]()(z, y).backward()
print((1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**30)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two rounds, small shapes")
    smoke = parser.parse_args().smoke
    loss = BPMLL()

    def step(c: int) -> object:
        z, y = inputs[c]
        return torch.autograd.grad(loss(z, y), z)

    rounds, few = (2, 100) if smoke else (30, 1000)
    inputs = {
        c: (torch.randn(256, c, requires_grad=True), (torch.rand(256, c) < 0.02).float())
        for c in (few, 10 * few)
    }
    seconds = medians({str(c): lambda c=c: step(c) for c in inputs}, rounds)
    print(
        f"bp_mll, 256 examples, {10 * few:,} labels over {few:,}: {shown(ratio(seconds[str(10 * few)], seconds[str(few)]))}"
    )
    n, c = (16, 50) if smoke else (256, 400)
    for name in ("recall_at_k", "lambda_loss"):
        done = subprocess.run(
            [sys.executable, "-c", PEAK.format(name=name, n=n, c=c)],
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"{name}, {n} x {c}: {float(done.stdout):.2f} GiB at its peak")


if __name__ == "__main__":
    main()
