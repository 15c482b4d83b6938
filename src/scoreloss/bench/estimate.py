"""How long a benchmark will take, told before it: a few steps and one look of each pack, on the real data."""

from __future__ import annotations

import math
import time
from pathlib import Path

from scoreloss.backbones import kept_features
from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Pack, packs
from scoreloss.bench.run import Bench
from scoreloss.bench.search import Search, checkpoints
from scoreloss.bench.splits import split_for
from scoreloss.bench.store import Store

STEPS = 3


def estimate(bench: Bench, folder: Path, *, cache: Path | None = None, force: bool = False) -> str:
    """How many cells there are, how many of them are done, and how long the others take. Nothing is written."""
    planned = bench.cells()
    store = Store(folder)
    left = [cell for cell in planned if force or not store.has(cell)]
    runs = sum(len(cell.contender.configs) for cell in left)
    said = f"{bench.dataset.name}: {len(planned)} cells, {len(planned) - len(left)} of them done; {runs} runs to train"
    if not left:
        return said
    first = split_for(bench.dataset, 0)
    features = kept_features(bench.dataset, bench.backbone, cache=cache, dtype=bench.dtype, fit_on=first.pool)
    if features is None:
        return (
            f"{said}, once the features of {len(bench.dataset.inputs):,} inputs by {bench.backbone} are made: scoreloss "
            "embed makes them and says how long it takes"
        )
    splits = {seed: split_for(bench.dataset, seed) for seed in range(bench.seeds)}
    material = Material(bench.dataset.targets, dict.fromkeys(splits, features), splits)
    todo = packs(left, {cell: material.shape(cell) for cell in left}, len(first.train))
    probed: dict[tuple[object, ...], float] = {}
    judging = 0.0
    total = 0.0
    for pack in todo:
        key = (len(pack), *(cell.contender for cell in pack[0]))
        if key not in probed:
            probed[key], judging = _probed(material, pack, judging)
        total += probed[key] + judging * len(pack) * len(pack[0])
    return f"{said} in {len(todo)} packs, roughly {_time(total)} on this machine as busy as it is"


def _probed(material: Material, pack: Pack, judging: float) -> tuple[float, float]:
    """The seconds that training a pack takes, and those of judging one cell if they are not known."""
    search = Search(material, pack)
    epochs = pack[0][0].settings.epochs
    total = 0.0
    for columns in search.programs():
        program = search.program(columns)
        batches = program.batches()
        x, y = next(batches)
        program.step(x, y)
        start = time.perf_counter()
        for _ in range(STEPS):
            program.step(x, y)
        step = (time.perf_counter() - start) / STEPS
        start = time.perf_counter()
        search.look(1, program, columns)
        look = time.perf_counter() - start
        batch_size = x.shape[1]
        steps = epochs * math.ceil(len(search.splits[0].train) / batch_size)
        total += steps * step + len(checkpoints(search.settings)) * look
    if not judging:
        start = time.perf_counter()
        cells: list[Cell] = list(search.judge())
        judging = (time.perf_counter() - start) / len(cells)
    return total, judging


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
