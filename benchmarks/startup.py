"""What importing scoreloss costs beyond importing numpy, and how long the command line takes to say what it can do.

    python benchmarks/startup.py [--smoke]

Each start is a new process; the contenders take turns. "processor" is the time spent computing, which busy neighbours
change less than the time on the clock. The bounds are 50 ms and 0.5 s.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

STARTS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import scoreloss": ["-c", "import scoreloss"],
    "import torch": ["-c", "import torch"],
    "import scoreloss.torch": ["-c", "import scoreloss.torch"],
    "scoreloss --help": ["-m", "scoreloss", "--help"],
    "scoreloss losses": ["-m", "scoreloss", "losses"],
}


def start(arguments: list[str]) -> tuple[float, float]:
    """The seconds on the clock, and those of the processor, of a new Python."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, clock = spent(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - clock, spent() - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round, without torch")
    smoke = parser.parse_args().smoke

    names = [name for name in STARTS if not (smoke and "torch" in name)]
    rounds = 1 if smoke else 7
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names:
            times = start(STARTS[name])
            if turn:
                found[name].append(times)
    best = {name: tuple(1e3 * min(column) for column in zip(*of, strict=True)) for name, of in found.items()}
    print(f"Python {sys.version.split()[0]}, {rounds} rounds, milliseconds")
    print(f"{'':>22} {'clock: median':>14} {'best':>6} {'processor: best':>16}")
    for name, of in found.items():
        median = 1e3 * statistics.median(clock for clock, _ in of)
        print(f"{name:>22} {median:14.0f} {best[name][0]:6.0f} {best[name][1]:16.0f}")
    for name, base in (("import scoreloss", "import numpy"), ("import scoreloss.torch", "import torch")):
        if name in best:
            clock, processor = (a - b for a, b in zip(best[name], best[base], strict=True))
            print(
                f"{name} beyond {base.removeprefix('import ')}: {clock:.0f} ms on the clock, {processor:.0f} of the processor"
            )


if __name__ == "__main__":
    main()
