"""``evaluate`` and the rules on more labels than scores fit: sparse targets, and scores computed by blocks.

    python benchmarks/many_labels.py [--smoke]

20,000 examples x 131,072 labels, five labels an example, frequencies falling as 1/rank. Scores are sigmoid(x w) in float32
of 16 features, computed where they are asked for; all of them would be 10.5 GB. Each line is a process of its own:
seconds, and the peak of memory beyond the start. Then, in one process and on 4,096 of the labels, which fit: blocks
over dense arrays, as a ratio.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

import scoreloss as sl
from scoreloss.blocks import Blocks
from timing import medians, ratio, shown

EXAMPLES, LABELS, FEW = 20_000, 131_072, 4_096
SMOKE = 300, 2_000, 200

LOOKS: dict[str, Callable[..., object]] = {
    "a pass over the scores": lambda y, s: Blocks(y, s).check(),
    "evaluate": sl.evaluate,
    "PerLabel": lambda y, s: sl.PerLabel().fit(y, s),
    "Global macro": lambda y, s: sl.Global("f1", "macro").fit(y, s),
}


def made(n: int, c: int) -> tuple[sparse.csr_array, Callable[[slice, slice], np.ndarray]]:
    """Targets that the scores know something of."""
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal((count, 16), np.float32) for count in (n, c))
    share = 1 / np.arange(1, c + 1)
    labels = rng.choice(c, (n, 5), p=share / share.sum())
    rows = np.repeat(np.arange(n), 5)
    for k in range(5):  # each example leans towards its labels
        x += 0.5 * weight[labels[:, k]]
    y = sparse.csr_array((np.ones(len(rows)), (rows, labels.ravel())), shape=(n, c)) != 0
    return y, lambda rows, labels: 1 / (1 + np.exp(4 - x[rows] @ weight[labels].T))


def cost(name: str, n: int, c: int) -> tuple[float, float]:
    """The seconds of a look, and the megabytes by which it raises the peak of its process."""
    y, scores = made(n, c)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    LOOKS[name](y, scores)
    seconds = time.perf_counter() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="few labels")
    n, c, few = SMOKE if parser.parse_args().smoke else (EXAMPLES, LABELS, FEW)
    print(f"numpy {np.__version__}, {n:,} x {c:,}; all as booleans: {n * c / 1e6:,.0f} MB")
    print(f"{'':>24} {'seconds':>8} {'peak, MB':>9}", flush=True)
    for name in LOOKS:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            seconds, peak = alone.apply(cost, (name, n, c))
        print(f"{name:>24} {seconds:8.1f} {peak:9.0f}", flush=True)
    y, scores = made(n, few)
    dense, all_scores = y.toarray(), scores(slice(0, n), slice(0, few))
    print(f"{n:,} x {few:,}, sparse and computed over dense and given:")
    for name in ("evaluate", "PerLabel", "Global macro"):
        look = LOOKS[name]
        seconds = medians(
            {"blocks": lambda look=look: look(y, scores), "dense": lambda look=look: look(dense, all_scores)},
            1 if few < FEW else 3,
        )
        print(f"{name:>24} {shown(ratio(seconds['blocks'], seconds['dense']))}", flush=True)


if __name__ == "__main__":
    main()
