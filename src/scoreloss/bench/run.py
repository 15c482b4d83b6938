"""A benchmark from end to end: what is missing is trained, everything is summed up, the report is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

from scoreloss.backbones import features
from scoreloss.bench import report
from scoreloss.bench.contenders import Contender
from scoreloss.bench.engines import Engine, Here, Trained
from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Pack, Settings, cells, packs
from scoreloss.bench.results import Labelled, Results, sum_up
from scoreloss.bench.splits import split_for, split_record
from scoreloss.bench.store import Damaged, Store
from scoreloss.checks import InputError
from scoreloss.data import Dataset
from scoreloss.say import Say, silent


@dataclass(frozen=True, eq=False)
class Bench:
    """What is asked for: one table of losses x seeds, on one dataset by one backbone with one head."""

    dataset: Dataset
    contenders: Sequence[Contender]
    seeds: int
    settings: Settings
    backbone: str = "identity"
    dtype: str = "float32"

    def cells(self) -> list[Cell]:
        """All cells."""
        backbone = self.backbone if self.dtype == "float32" else f"{self.backbone} as {self.dtype}"
        return cells(self.dataset, self.contenders, self.seeds, self.settings, backbone)

    def material(self, cache: Path | None = None, say: Say = silent) -> Material:
        """What they are trained on; ``cache`` is where the features of the backbone are kept."""
        splits = {seed: split_for(self.dataset, seed) for seed in range(self.seeds)}
        by_fit = {}
        for seed, split in splits.items():
            fit = seed if self.backbone == "tfidf" else 0
            if fit not in by_fit:
                by_fit[fit] = features(
                    self.dataset, self.backbone, cache=cache, dtype=self.dtype, fit_on=split.pool, say=say
                )
        inputs = {seed: by_fit[seed if self.backbone == "tfidf" else 0] for seed in splits}
        return Material(self.dataset.targets, inputs, splits)


@dataclass(frozen=True)
class Outcome:
    """What a benchmark found, and where it put it."""

    results: Results
    report: Path
    trained: int
    kept: int


def run(
    bench: Bench,
    folder: Path,
    *,
    cache: Path | None = None,
    force: bool = False,
    engine: Engine | None = None,
    say: Say = silent,
    write: Callable[[Path, Sequence[Results]], Path] = report.write,
) -> Outcome:
    """Train what is not in the folder yet, and write the report. Other processes may do so at the same time."""
    planned = bench.cells()
    store = Store(folder)
    store.open()
    store.check_free(planned)
    material = bench.material(cache, say)
    data = Labelled.of(bench.dataset)
    record = {"data": data.record(), "cells": [cell.describe() for cell in planned]}
    with store.alone(say):
        store.write_splits(split_record(bench.dataset, material.splits))
        missing = planned if force else _missing(store, planned, say)
        begun = [] if force else store.begun(planned)
        listed = {cell for pack in begun for row in pack for cell in row}
        rest = [cell for cell in missing if cell not in listed]
        examples = len(material.splits[0].train)
        todo = [*begun, *packs(rest, {cell: material.shape(cell) for cell in rest}, examples)]
        store.list_packs(todo)
    trained = 0
    if not missing:
        store.write_bench(record)
    for pack, results in _worked_off(store, todo, material, engine or Here(), force, say):
        store.write_bench(record)  # not before: until then the report is that of the benchmark before
        for cell, (result, seconds) in results.items():
            if force or not store.has(cell):
                store.write(cell, result, seconds)
                trained += 1
        with store.alone(say):
            store.forget_packs([pack])
    read = {cell: store.read(cell) for cell in planned}
    found = {cell: result for cell, result in read.items() if result is not None}
    diverged = [cell for cell in found if found[cell]["diverged"]]
    for cell in diverged:
        say(f"{cell.name} with seed {cell.seed} diverged and is left out: a lower learning rate may help")
    if len(diverged) == len(planned):
        raise InputError("all runs diverged: a lower learning rate may help")
    summed = sum_up(data, planned, found, material.splits)
    return Outcome(summed, write(folder, [summed]), trained, len(planned) - trained)


def _worked_off(
    store: Store, todo: Sequence[Pack], material: Material, engine: Engine, force: bool, say: Say
) -> Iterator[tuple[Pack, Trained]]:
    """Train the packs that no other process has, then wait for those of others, and train what these left undone."""
    left = list(todo)
    while left:
        with ExitStack() as claims:
            mine: list[Pack] = []
            for pack in left:
                if len(mine) == engine.at_once:
                    break
                if (claim := store.claim(pack)) is not None:
                    claims.enter_context(claim)
                    mine.append(pack)
            if not mine:
                say(f"other processes train the last {len(left)} packs: waiting for them")
                claims.enter_context(store.claim(left[0], wait=lambda: None) or nullcontext())
                mine.append(left[0])
            left = [pack for pack in left if pack not in mine]
            undone = [
                pack for pack in mine if force or not all(store.has(cell) for row in pack for cell in row)
            ]
            if len(todo) > 1 and undone:
                names = dict.fromkeys(cell.name for cell in undone[0][0])
                say(f"pack {len(todo) - len(left)} of {len(todo)}: {', '.join(names)}")
            yield from engine.train(material, undone, say)


def _missing(store: Store, planned: Sequence[Cell], say: Say) -> list[Cell]:
    missing = []
    for cell in planned:
        try:
            if store.read(cell) is None:
                missing.append(cell)
        except Damaged as damage:
            say(f"damaged, trained again: {damage}")
            missing.append(cell)
    return missing
