"""The whole table for a dataset of Pascal VOC's size, from cached features: how long the command takes.

    python benchmarks/whole_table.py [--smoke]

10,000 x 1,280 made-up features and 20 labels, half of the examples for the test as in VOC 2007; the paper's five losses, five
seeds, 60 epochs, batches of 256, its head and no tuning, judged under eight rules, and the report. The paper gives 108 to 116
minutes for one run on VOC, backbone included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="a fiftieth of the examples, two epochs")
    smoke = parser.parse_args().smoke
    n, epochs = (200, 2) if smoke else (10_000, 60)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1_280)).astype(np.float32)
    z = x @ rng.normal(size=(1_280, 20)) / 36 + 0.5 * rng.normal(size=(n, 20))
    half = np.arange(n // 2)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "large.npz"
        np.savez(data, features=x, targets=z > 1.6, train=half, test=half + n // 2)
        command = [sys.executable, "-m", "scoreloss", "bench", str(data), "--head", "relu"]
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--epochs", str(epochs), "--out", f"{folder}/out"], capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(done.stderr)
        print(done.stdout.splitlines()[-1].partition(" Report")[0])
    print(f"{n:,} x 1,280, 20 labels, 5 losses x 5 seeds, {epochs} epochs: {seconds:.0f} s")


if __name__ == "__main__":
    main()
