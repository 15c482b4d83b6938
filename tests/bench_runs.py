"""The bench in processes of its own, in many small packs: what the tests of stopping, sharing and Ray start."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from scoreloss.bench import plan
from scoreloss.cli import main

MANY_PACKS = (
    "import sys; from scoreloss.bench import plan; plan.PACK_WORK = 1.0; "
    "from scoreloss.cli import main; sys.exit(main())"
)
"""The command, but that a pack is one loss with one seed."""

SOON = 1200
"""Seconds; a machine that others use as well is slow."""

LOSSES = ("bce", "sigmoid_f1", "mfc")
QUICK = ("--head", "linear", "--epochs", "3", "--seeds", "2", "--budget", "3", "--losses", ",".join(LOSSES))
CELLS = 2 * len(LOSSES)


def start(folder, *options, **how):
    """A bench of yeast that runs beside the test, in a group of processes of its own."""
    command = [sys.executable, "-c", MANY_PACKS, "bench", "yeast", "--out", str(folder), *QUICK, *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **how
    )


def whole(folder, *options, **how):
    """What such a bench prints that ends."""
    process = start(folder, *options, **how)
    out, err = process.communicate(timeout=SOON)
    assert process.returncode == 0, err
    return out, err


def results(folder):
    """What is in the files, but for times."""
    found = {"table.tex": (folder / "table.tex").read_bytes()}
    for name in ("bench.json", "splits.json"):
        found[name] = (folder / name).read_bytes()
    for path in sorted((folder / "cells").iterdir()):
        lines = path.read_bytes().splitlines(keepends=True)
        found[path.name] = b"".join(line for line in lines if not line.startswith(b' "seconds": '))
        assert len(lines) - found[path.name].count(b"\n") == 1, path.name
    table = pq.read_table(folder / "cells.parquet")
    found["cells.parquet"] = table.drop_columns(["seconds"]).to_pydict()
    return found


def numbers(folder):
    """The results of the cells."""
    return {
        path.name: json.loads(path.read_text())["result"] for path in sorted((folder / "cells").iterdir())
    }


def left_behind(folder):
    """What is in the folder of a bench and does not belong there once it is done."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    files -= {"report.html", "report.md", "table.tex", "cells.parquet", "bench.json", "splits.json"}
    return {name for name in files if not name.startswith("cells/") or "/." in name} - {".locks/plan.lock"}


def kill_often(home, times, seed):
    """Kill benches at random moments, each going on where the one before was stopped, and end the last one.

    A moment is one of the clock, or one between two steps of writing a file. Where a bench ends before its moment, the next
    begins in a folder of its own. The processes are forked of this one, which has imported everything. Returns the folders.
    """
    draw = random.Random(seed)
    began = time.perf_counter()
    assert _forked(home / "0") == 0
    seconds = time.perf_counter() - began
    folders = [home / "0", home / "1"]
    while times:
        by_steps = draw.random() < 0.5
        moment = draw.randrange(STEPS) if by_steps else draw.uniform(0, seconds)
        status = _forked(folders[-1], **{"steps" if by_steps else "seconds": moment})
        if status == -signal.SIGKILL:
            times -= 1
        else:
            assert status == 0
            folders.append(home / str(len(folders)))
    assert _forked(folders[-1]) == 0
    return folders


STEPS = 100
"""A bench takes about so many steps on files."""


def _forked(folder, *, seconds=None, steps=None):
    child = os.fork()
    if child == 0:
        _bench_as_child(folder, steps)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _bench_as_child(folder, steps):
    status = 1
    try:
        plan.PACK_WORK = 1.0
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        if steps is not None:
            _die_after(steps)
        status = main(["bench", "yeast", "--out", str(folder), *QUICK])
    finally:
        os._exit(status)


def _die_after(steps):
    """Kill this process before the step on files that comes after so many others."""
    left = itertools.count(steps, -1)

    def look(event, arguments):
        on_files = event in ("tempfile.mkstemp", "os.chmod", "os.rename", "os.remove")
        if (on_files or (event == "open" and isinstance(arguments[0], int))) and next(left) <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


if __name__ == "__main__":
    import scoreloss.bench.report
    import scoreloss.bench.run  # noqa: F401

    home, times, seed = sys.argv[1:]
    print(*(folder.name for folder in kill_often(Path(home), int(times), int(seed))))
