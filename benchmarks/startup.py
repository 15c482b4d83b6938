"""What importing scoreloss costs beyond importing numpy, and how long the command line takes to say what it can do.

    python benchmarks/startup.py [--smoke]

Each start is a new process; the contenders take turns. The bounds are 50 ms and 0.5 s.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from timing import medians

STARTS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import scoreloss": ["-c", "import scoreloss"],
    "import torch": ["-c", "import torch"],
    "import scoreloss.torch": ["-c", "import scoreloss.torch"],
    "scoreloss --help": ["-m", "scoreloss", "--help"],
    "scoreloss losses": ["-m", "scoreloss", "losses"],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round, without torch")
    smoke = parser.parse_args().smoke

    def start(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    contenders = {
        name: lambda arguments=arguments: start(arguments)
        for name, arguments in STARTS.items()
        if not (smoke and "torch" in name)
    }
    seconds = medians(contenders, 1 if smoke else 7)
    print(f"Python {sys.version.split()[0]}; milliseconds, median and best of {len(seconds['python'])}")
    for name, of in seconds.items():
        print(f"{name:>24} {1e3 * statistics.median(of):8.0f} {1e3 * min(of):8.0f}")
    for name, base in (("import scoreloss", "import numpy"), ("import scoreloss.torch", "import torch")):
        if name in seconds:
            more = [a - b for a, b in zip(seconds[name], seconds[base], strict=True)]
            print(
                f"{name} beyond {base.removeprefix('import ')}: {1e3 * statistics.median(more):.0f} ms "
                f"(best against best {1e3 * (min(seconds[name]) - min(seconds[base])):.0f})"
            )


if __name__ == "__main__":
    main()
