"""A benchmark from end to end: what is missing is trained, everything is summed up, the report is written."""

from __future__ import annotations

import copy
import importlib.metadata
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scoreloss.backbones import features
from scoreloss.bench import decide, report
from scoreloss.bench.plan import Cell, Settings, Split, cells, packs, split_for, split_record
from scoreloss.bench.results import Labelled, Results, sum_up
from scoreloss.bench.store import Damaged, Store
from scoreloss.bench.train import Layers, Pack, Run
from scoreloss.checks import Floats, InputError
from scoreloss.data import Dataset
from scoreloss.say import Say, silent
from scoreloss.torch import LOSSES, Loss

CHECKPOINTS = 25
"""At most so many epochs of a run are looked at on validation data."""


@dataclass(frozen=True)
class Outcome:
    """What a benchmark found, and where it put it."""

    results: Results
    report: Path
    trained: int
    kept: int


def bench(
    dataset: Dataset,
    losses: Sequence[str],
    seeds: int,
    settings: Settings,
    folder: Path,
    *,
    backbone: str = "identity",
    cache: Path | None = None,
    dtype: str = "float32",
    force: bool = False,
    say: Say = silent,
) -> Outcome:
    """Compare losses and threshold rules on a dataset. Cells whose results are there are not trained again.

    ``cache`` is where the features of the ``backbone`` are kept, ``dtype`` how (``scoreloss.backbones.features``).
    """
    splits = {seed: split_for(dataset, seed) for seed in range(seeds)}
    inputs = {
        seed: features(dataset, backbone, cache=cache, dtype=dtype, fit_on=split.pool, say=say)
        for seed, split in splits.items()
    }
    planned = cells(
        dataset, losses, seeds, settings, backbone if dtype == "float32" else f"{backbone} as {dtype}"
    )
    store = Store(folder)
    store.open()
    store.check_free(planned)
    store.write_splits(split_record(dataset, splits))
    data = Labelled.of(dataset)
    results, missing = ({}, planned) if force else _kept(store, planned, say)
    kept = len(results)
    shapes = {}
    for cell in missing:
        pool = dataset.targets[splits[cell.seed].pool]
        outputs = LOSSES[cell.loss].for_targets(pool).outputs(pool.shape[1])
        shapes[cell] = (inputs[cell.seed].shape[1], *outputs)
    record = {"data": data.record(), "cells": [cell.describe() for cell in planned]}
    if not missing:
        store.write_bench(record)
    for pack in packs(missing, shapes):
        trained = train_pack(dataset, inputs, pack, splits, say)
        store.write_bench(record)  # not before: until then the report is that of the benchmark before
        for cell, result in trained.items():
            store.write(cell, result)
            results[cell] = result
    diverged = [cell for cell in planned if results[cell]["diverged"]]
    for cell in diverged:
        say(f"{cell.loss} with seed {cell.seed} diverged and is left out: a lower learning rate may help")
    if len(diverged) == len(planned):
        raise InputError("all runs diverged: a lower learning rate may help")
    summed = sum_up(data, planned, {cell: results[cell] for cell in planned}, splits)
    return Outcome(summed, report.write(folder, [summed]), len(missing), kept)


def train_pack(
    dataset: Dataset,
    inputs: Mapping[int, NDArray[Any]],
    pack: Sequence[Sequence[Cell]],
    splits: Mapping[int, Split],
    say: Say = silent,
) -> dict[Cell, dict[str, Any]]:
    """Train cells [seed][loss] as one program, and judge each under every rule. ``inputs`` are features by seed.

    Each rule takes the epoch at which it scored best on validation data.
    """
    start = time.perf_counter()
    seeds = [row[0].seed for row in pack]
    settings = pack[0][0].settings
    pool = dataset.targets[splits[seeds[0]].pool]
    runs = [
        Run(
            LOSSES[cell.loss].for_targets(pool, runs=len(seeds)),
            settings.learning_rate,
            settings.weight_decay,
            settings.init,
        )
        for cell in pack[0]
    ]
    used = [splits[seed] for seed in seeds]
    given = ([inputs[seed] for seed in seeds], dataset.targets, used, runs, seeds)
    options: Mapping[str, Any] = {"head": settings.head, "batch_size": settings.batch_size}
    if settings.framework == "keras":
        from scoreloss import keras
        from scoreloss.bench.train_keras import KerasPack

        losses = [keras.LOSSES[cell.loss].for_targets(pool) for cell in pack[0]]
        program: Pack = KerasPack(*given, losses=losses, **options)
    else:
        program = Pack(*given, **options)
    count = len(seeds) * len(runs)
    say(f"{count} runs as one program, losses x seeds: {len(runs)} x {len(seeds)}")
    search = _Search(dataset, program, used, seeds)
    looked_at = set(np.linspace(settings.epochs, 1, min(CHECKPOINTS, settings.epochs)).round())

    def after_epoch(epoch: int) -> None:
        if epoch in looked_at:
            search.look(epoch)
            passed = time.perf_counter() - start
            left = passed / epoch * (settings.epochs - epoch)
            say(f"epoch {epoch}/{settings.epochs}, {left:.0f} s left", counting=True)

    program.train(settings.epochs, after_epoch)
    judged = search.judge()
    seconds = (time.perf_counter() - start) / count
    return {
        cell: {**judged[s][r], "seconds": seconds, "versions": _versions(settings.framework)}
        for s, row in enumerate(pack)
        for r, cell in enumerate(row)
    }


class _Search:
    """For each seed, run and rule, the heads of the epoch that did best on validation data.

    A run whose scores are no numbers at an epoch is not looked at there; one that never has any diverged.
    """

    def __init__(
        self, dataset: Dataset, program: Pack, splits: Sequence[Split], seeds: Sequence[int]
    ) -> None:
        self.targets = dataset.targets
        self.program = program
        self.splits = splits
        self.halves = [
            decide.halves(dataset.targets[split.validation], seed)
            for split, seed in zip(splits, seeds, strict=True)
        ]
        shape = (len(splits), len(program.runs))
        rules = decide.RULES_ON_SCORES
        self.best = {rule: np.full(shape, -1.0) for rule in rules}
        self.epoch = {rule: np.zeros(shape, int) for rule in rules}
        self.layers = {rule: [layer.detach().clone() for layer in program.layers] for rule in rules}
        self.losses = {rule: [copy.deepcopy(run.loss) for run in program.runs] for rule in rules}
        self.curves: list[tuple[int, dict[str, Any]]] = []

    def look(self, epoch: int) -> None:
        """Score every run on validation data under every rule, and keep what is better than before."""
        scores = self._scores("validation", self.program.layers, [run.loss for run in self.program.runs])
        seen = {rule: np.full(best.shape, np.nan) for rule, best in self.best.items()}
        for s, split in enumerate(self.splits):
            y = self.targets[split.validation]
            for r in range(len(self.program.runs)):
                if np.isnan(scores[r][s]).any():
                    continue
                for rule in decide.rules_for(self.program.runs[r].loss):
                    best = self.best[rule]
                    value = decide.validation_score(rule, y, scores[r][s], self.halves[s])
                    seen[rule][s, r] = value
                    if value > best[s, r]:
                        best[s, r] = value
                        self.epoch[rule][s, r] = epoch
                        self._keep(rule, s, r)
        self.curves.append((epoch, seen))

    @torch.no_grad()
    def _keep(self, rule: str, s: int, r: int) -> None:
        for kept, layer in zip(self.layers[rule], self.program.layers, strict=True):
            kept[s, r] = layer[s, r]
        own = self.program.runs[r].loss.parameters()
        for kept, parameter in zip(self.losses[rule][r].parameters(), own, strict=True):
            kept[s] = parameter[s]

    def judge(self) -> list[list[dict[str, Any]]]:
        """Results as [seed][run]: each rule with its own heads, on the test part."""
        results: list[list[dict[str, Any]]] = [[{} for _ in self.program.runs] for _ in self.splits]
        for rule in decide.RULES_ON_SCORES:
            validation = self._scores("validation", self.layers[rule], self.losses[rule])
            test = self._scores("test", self.layers[rule], self.losses[rule])
            for s, split in enumerate(self.splits):
                y = self.targets
                for r, result in enumerate(results[s]):
                    if self.best[rule][s, r] < 0:
                        continue
                    held_out = y[split.validation], validation[r][s]
                    unseen = y[split.test], test[r][s]
                    epoch = {"epoch": int(self.epoch[rule][s, r])}
                    found = result.setdefault("rules", {})
                    found[rule] = {
                        **epoch,
                        "validation_weighted_f1": float(self.best[rule][s, r]),
                        **decide.judge(rule, held_out, unseen),
                    }
                    if rule == decide.EPOCH_OF_CHANCES:
                        on_chances = decide.judge_on_chances(held_out, unseen, self.halves[s])
                        found.update({name: {**epoch, **judged} for name, judged in on_chances.items()})
                    if "threshold_curves" not in result:
                        result["threshold_curves"] = decide.threshold_curves(
                            y[split.validation], validation[r][s]
                        )
        for s, row in enumerate(results):
            for r, result in enumerate(row):
                result["diverged"] = not result
                result["curve"] = {
                    "epoch": [epoch for epoch, _ in self.curves],
                    **{rule: [float(seen[rule][s, r]) for _, seen in self.curves] for rule in self.best},
                }
        return results

    def _scores(self, part: str, layers: Layers, losses: Sequence[Loss]) -> list[list[Floats]]:
        """Scores as [run][seed] of (examples, labels), in float64 so that ranks survive the sigmoid."""
        rows = torch.as_tensor(np.stack([getattr(split, part) for split in self.splits]))
        logits = self.program.logits(rows, layers).double()
        return [[seed.numpy() for seed in loss.scores(z)] for loss, z in zip(losses, logits, strict=True)]


def _kept(store: Store, planned: Sequence[Cell], say: Say) -> tuple[dict[Cell, dict[str, Any]], list[Cell]]:
    results: dict[Cell, dict[str, Any]] = {}
    missing = []
    for cell in planned:
        try:
            result = store.read(cell)
        except Damaged as damage:
            say(f"damaged, trained again: {damage}")
            result = None
        if result is None:
            missing.append(cell)
        else:
            results[cell] = result
    return results, missing


def _versions(framework: str) -> dict[str, str]:
    packages = dict.fromkeys(("scoreloss", "torch", "numpy", framework))
    versions = {name: importlib.metadata.version(name) for name in packages}
    if framework == "keras":
        import keras

        versions["keras_backend"] = keras.backend.backend()
    return versions
