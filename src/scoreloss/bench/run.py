"""A benchmark from end to end: what is missing is trained, everything is summed up, the report is written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
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

BETWEEN_TRIES = 0.5
"""Seconds between looks at whether another process is done with a pack, or died."""


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
    material = bench.material(cache, say)
    store = Store(folder)
    store.open()
    store.check_free(planned)
    data = Labelled.of(bench.dataset)
    record = {"data": data.record(), "cells": [cell.describe() for cell in planned]}
    with store.alone(say):
        store.write_splits(split_record(bench.dataset, material.splits))
        missing = planned if force else _missing(store, planned, say)
        store.tidy(missing)
        begun = [] if force else store.begun(planned, missing)
        listed = {cell for pack in begun for row in pack for cell in row}
        rest = [cell for cell in missing if cell not in listed]
        examples = len(material.splits[0].train)
        todo = [*begun, *packs(rest, {cell: material.shape(cell) for cell in rest}, examples)]
        store.list_packs(todo)
    trained = 0
    for pack, results in _worked_off(store, todo, material, engine or Here(), force, say):
        store.write_bench(record)  # not before: until then the report is that of the benchmark before
        for cell, (result, seconds) in results.items():
            if force or not store.has(cell):
                store.write(cell, result, seconds)
                trained += 1
        with store.alone(say):
            store.forget(pack)
    read = {cell: store.read(cell) for cell in planned}
    found = {cell: result for cell, result in read.items() if result is not None}
    diverged = [cell for cell in found if found[cell]["diverged"]]
    for cell in diverged:
        say(f"{cell.name} with seed {cell.seed} diverged and is left out: a lower learning rate may help")
    if len(diverged) == len(planned):
        raise InputError("all runs diverged: a lower learning rate may help")
    summed = sum_up(data, planned, found, material.splits)
    with store.alone(say):  # the record and the report that stay are of one benchmark
        store.write_bench(record)
        page = write(folder, [summed])
    return Outcome(summed, page, trained, len(planned) - trained)


def _worked_off(
    store: Store, todo: Sequence[Pack], material: Material, engine: Engine, force: bool, say: Say
) -> Iterator[tuple[Pack, Trained]]:
    """Train the packs that no other process has, and those that others leave undone; a pack that is done has no results."""
    left = list(todo)
    waiting = False
    while left:
        with ExitStack() as claims:
            mine = list(itertools.islice(_claimed(store, left, claims), engine.at_once))
            if not mine:
                if not waiting:
                    say("other processes train what is left: waiting for them")
                waiting = True
                time.sleep(BETWEEN_TRIES)
                continue
            waiting = False
            left = [pack for pack in left if pack not in mine]
            undone = [
                pack for pack in mine if force or not all(store.has(cell) for row in pack for cell in row)
            ]
            yield from ((pack, {}) for pack in mine if pack not in undone)
            if len(todo) > 1 and len(undone) == 1:
                names = dict.fromkeys(cell.name for cell in undone[0][0])
                say(f"pack {len(todo) - len(left)} of {len(todo)}: {', '.join(names)}")
            if undone:
                yield from engine.train(material, undone, say)


def _claimed(store: Store, packs: Sequence[Pack], claims: ExitStack) -> Iterator[Pack]:
    for pack in packs:
        if (claim := store.claim(pack)) is not None:
            claims.enter_context(claim)
            yield pack


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
