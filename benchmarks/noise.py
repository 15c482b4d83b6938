"""How long it takes to say what is within noise of the best, for a leaderboard of many losses, rules and seeds.

python benchmarks/noise.py [--smoke]
"""

import sys
import time

import numpy as np

from scoreloss.bench.packed import pack
from scoreloss.bench.results import RESAMPLED
from scoreloss.bench.stats import RESAMPLES, Resamples, Row, with_gaps

ROWS, SEEDS = 26 * 8, 5
SIZES = {"yeast, 917 x 14": (917, 14), "VOC 2012, 2,510 x 20": (2510, 20), "5,000 x 114": (5000, 114)}


def seconds(examples: int, labels: int, rows: int, seeds: int, resamples: int) -> float:
    rng = np.random.default_rng(0)
    targets = rng.random((examples, labels)) < 0.1
    by_seed = dict.fromkeys(range(seeds), targets)
    predicted = [
        {seed: pack(targets ^ (rng.random(targets.shape) < 0.1)) for seed in by_seed} for _ in range(rows)
    ]
    table = [
        Row(str(k), "rule", tuple(by_seed), {name: rng.random(seeds) for name in RESAMPLED})
        for k in range(rows)
    ]
    start = time.perf_counter()
    draws = Resamples(by_seed, dict.fromkeys(by_seed, np.arange(examples)), resamples=resamples)
    with_gaps(table, predicted, draws, RESAMPLED)
    return time.perf_counter() - start


def main() -> None:
    smoke = "--smoke" in sys.argv
    rows, resamples = (4, 20) if smoke else (ROWS, RESAMPLES)
    for name, size in list(SIZES.items())[: 1 if smoke else None]:
        taken = seconds(*size, rows, SEEDS, resamples)
        print(f"{name}: {rows} rows x {SEEDS} seeds, {resamples} resamples, 5 metrics: {taken:.1f} s")


if __name__ == "__main__":
    main()
