"""How the cost of a loss step and of ``evaluate`` grows with examples and with labels, over three decades.

    python benchmarks/growth.py [--smoke] [--svg FILE]

A slope is that of the straight line through the logarithms, of sizes and of costs: 1 means proportional. The slope of
the time is over the sizes from 65,536 entries up, below which a step costs what its calls cost; "fit" is how far the
farthest point lies from its line, as a factor; ``--svg`` draws all of them. Time is that of the processor, one thread,
the best of the rounds: what others do on the machine is not in it. Memory is the exact peak beyond the inputs.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import scoreloss as sl
from memory import changes
from scoreloss.torch import BCE, BPMLL, ZLPR, MetricLoss, SigmoidF1, TwoWay
from svg import Panel, drawn

SIZES = (64, 256, 1024, 4096, 16384, 65536)
FIXED = 64
LINE_FROM = 65_536

LOSSES = {
    "bce": BCE(),
    "sigmoid_f1": SigmoidF1(),
    "sigmoid_f1 micro": SigmoidF1(average="micro"),
    "mcc": MetricLoss("mcc"),
    "bp_mll": BPMLL(),
    "zlpr": ZLPR(),
    "two_way": TwoWay(),
}

Cost = tuple[float, float]
"""Seconds and bytes."""


def of_step(loss: Callable[..., torch.Tensor], n: int, c: int, rounds: int) -> Cost:
    logits = torch.randn(n, c, requires_grad=True)
    targets = (torch.rand(n, c) < 0.1).float()

    def step() -> object:
        return torch.autograd.grad(loss(logits, targets), logits)

    return processor_time(step, rounds), float(np.cumsum(changes(step)[0]).max())


def of_evaluate(n: int, c: int, rounds: int) -> Cost:
    rng = np.random.default_rng(0)
    scores, targets = rng.random((n, c)), rng.random((n, c)) < 0.1
    seconds = processor_time(lambda: sl.evaluate(targets, scores), max(1, rounds // 3))
    tracemalloc.start()
    sl.evaluate(targets, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, float(peak)


def processor_time(run: Callable[[], object], rounds: int) -> float:
    """The least that a run takes, after one that does not count."""
    run()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def line(sizes: list[int], costs: list[float]) -> tuple[float, float]:
    """The slope of the log-log line, and the factor by which the farthest point misses it."""
    x, y = np.log(sizes), np.log(costs)
    slope, start = np.polyfit(x, y, 1)
    return float(slope), float(np.exp(np.abs(y - slope * x - start).max()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round on small sizes")
    parser.add_argument("--svg", type=Path, help="where to draw the lines")
    options = parser.parse_args()
    smoke = options.smoke
    sizes, fixed, rounds, bound = ((8, 32, 128), 8, 1, 0) if smoke else (SIZES, FIXED, 7, LINE_FROM)
    contenders: dict[str, Callable[[int, int], Cost]] = {
        name: lambda n, c, loss=loss: of_step(loss, n, c, rounds) for name, loss in LOSSES.items()
    }
    contenders["evaluate"] = lambda n, c: of_evaluate(n, c, rounds)
    print(f"torch {torch.__version__}; ms of the processor at each size, then the lines")
    torch.set_num_threads(1)
    panels = []
    for grows, shape in (("examples", lambda size: (size, fixed)), ("labels", lambda size: (fixed, size))):
        print(
            f"\n{grows:>16} "
            + " ".join(f"{size:8}" for size in sizes)
            + f" {'time':>5} {'fit':>5} {'memory':>7} {'fit':>5}"
        )
        costs: dict[str, list[Cost]] = {}
        for name, cost in contenders.items():
            costs[name] = found = [cost(*shape(size)) for size in sizes]
            long = [place for place, size in enumerate(sizes) if size * fixed >= bound]
            of_time = line([sizes[i] for i in long], [found[i][0] for i in long])
            of_memory = line(list(sizes), [bytes_ for _, bytes_ in found])
            print(
                f"{name:>16} "
                + " ".join(f"{1e3 * seconds:8.2f}" for seconds, _ in found)
                + f" {of_time[0]:5.2f} {of_time[1]:5.2f} {of_memory[0]:7.2f} {of_memory[1]:5.2f}",
                flush=True,
            )
        beside = f"{grows}, {fixed} {'labels' if grows == 'examples' else 'examples'}"
        milliseconds = {name: [1e3 * seconds for seconds, _ in found] for name, found in costs.items()}
        megabytes = {name: [size / 1e6 for _, size in found] for name, found in costs.items()}
        panels += [
            Panel(f"time against {beside}", sizes, milliseconds, "ms"),
            Panel(f"memory against {beside}", sizes, megabytes, "MB"),
        ]
    if options.svg:
        options.svg.write_text(drawn(panels))


if __name__ == "__main__":
    main()
