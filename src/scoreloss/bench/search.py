"""A pack from its cells to their results: every configuration is trained, validation data choose, the test part judges.

For each seed, loss and rule the configuration and the epoch are those with the best weighted F1 on validation data.
"""

from __future__ import annotations

import copy
import importlib.metadata
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from scoreloss.bench import decide, plan, train
from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Settings
from scoreloss.bench.train import Layers, Run
from scoreloss.checks import Floats
from scoreloss.say import Say, silent
from scoreloss.torch import Loss

CHECKPOINTS = 25
"""At most so many epochs of a run are looked at on validation data."""

LOGITS_AT_ONCE = 2**26
"""Of a step or a look: runs beyond that are trained one program after another."""

T = TypeVar("T")
Result = dict[str, Any]


def train_pack(material: Material, pack: plan.Pack, say: Say = silent) -> dict[Cell, tuple[Result, float]]:
    """Train cells [seed][loss], judge each under every rule, and say how many seconds each took."""
    start = time.perf_counter()
    search = searched(material, pack, say=say)
    results = search.judge()
    configs = sum(len(cell.contender.configs) for row in pack for cell in row)
    of_one = (time.perf_counter() - start) / configs
    return {cell: (result, of_one * len(cell.contender.configs)) for cell, result in results.items()}


def searched(material: Material, pack: plan.Pack, average: str = "weighted", say: Say = silent) -> Search:
    """The search of a pack, done: every configuration trained and looked at, the test part not touched."""
    search = Search(material, pack, average)
    programs = search.programs()
    epochs = pack[0][0].settings.epochs
    looked_at, told = checkpoints(pack[0][0].settings), evenly(epochs, CHECKPOINTS)
    for number, columns in enumerate(programs, start=1):
        program = search.program(columns)
        runs = f"{len(columns)} x {len(pack)} runs as one program, configurations x seeds"
        say(f"{runs} ({number} of {len(programs)})" if len(programs) > 1 else runs)
        began = time.perf_counter()
        for epoch in range(1, epochs + 1):
            program.epoch()
            if epoch in looked_at:
                search.look(epoch, program, columns)
                stay = [place for place, column in enumerate(columns) if not search.stopped[:, column].all()]
                if not stay:
                    break
                if len(stay) < len(columns):
                    program.keep(stay)
                    columns = [columns[place] for place in stay]
            if epoch in told:
                left = (time.perf_counter() - began) / epoch * (epochs - epoch)
                say(f"epoch {epoch}/{epochs}, {left:.0f} s left at most", counting=True)
    return search


def checkpoints(settings: Settings) -> set[int]:
    """The epochs that are looked at, the last among them; as the paper judges, the last alone."""
    return evenly(settings.epochs, 1 if settings.judged == "paper" else CHECKPOINTS)


def evenly(epochs: int, times: int) -> set[int]:
    """At most so many epochs, the last among them."""
    return set(np.linspace(epochs, 1, min(times, epochs)).round().astype(int).tolist())


class Search:
    """For each seed, loss and rule, the heads of the configuration and epoch that did best on validation data by an F1.

    A run whose scores are no numbers at an epoch is not looked at there; a loss none of whose runs ever has any diverged.
    Runs are numbered over all losses of the pack.
    """

    def __init__(self, material: Material, pack: plan.Pack, average: str = "weighted") -> None:
        self.material, self.pack, self.average = material, pack, average
        self.seeds = [row[0].seed for row in pack]
        self.settings: Settings = pack[0][0].settings
        self.splits = [material.splits[seed] for seed in self.seeds]
        self.halves = [
            decide.halves(material.targets[split.validation], seed)
            for split, seed in zip(self.splits, self.seeds, strict=True)
        ]
        self.configs = [(k, config) for k, cell in enumerate(pack[0]) for config in cell.contender.configs]
        examples = len(self.splits[0].train)
        pool = material.targets[self.splits[0].pool]
        self.runs = list(self._made(pool, examples))
        shape = (len(self.seeds), len(pack[0]))
        self.rules = rules = list(decide.CHOOSING[self.settings.judged])
        self.best = {rule: np.full(shape, -1.0) for rule in rules}
        self.epoch = {rule: np.zeros(shape, int) for rule in rules}
        self.chosen = {rule: np.zeros(shape, int) for rule in rules}
        self.layers: dict[str, Layers] = {}
        self.losses = {rule: [copy.deepcopy(run.loss) for run in self.runs] for rule in rules}
        self.tried = {rule: np.full((len(self.seeds), len(self.runs)), np.nan) for rule in rules}
        self.better_at = np.zeros((len(self.seeds), len(self.runs)), int)
        self.stopped = np.zeros((len(self.seeds), len(self.runs)), bool)
        self.looks: dict[int, dict[str, Floats]] = {}

    def _made(self, pool: NDArray[np.bool_], examples: int) -> Iterator[Run]:
        """Runs that need no loss of their own share it: one call for all."""
        shared: dict[tuple[object, ...], Loss] = {}
        for k, config in self.configs:
            name = self.pack[0][k].contender.loss
            steps = self.settings.epochs * config.steps(examples)
            key = (name, config.options, config.bce, config.warm_up, steps if config.warm_up else 0)
            loss = shared.get(key)
            if loss is None:
                loss = config.loss(name, pool, runs=len(self.seeds), steps=steps)
                if not any(True for _ in loss.parameters()):
                    shared[key] = loss
            yield Run(loss, config.learning_rate, config.decay(examples), config.init)

    def programs(self) -> list[list[int]]:
        """Runs that are trained side by side: of one batch size, and not too many for the memory."""
        examples, looked_at = len(self.splits[0].train), len(self.splits[0].validation)

        def size(run: int) -> int:
            return min(self.configs[run][1].batch_size or examples, examples)

        def order(run: int) -> tuple[int, int]:
            return size(run), next(
                k for k, other in enumerate(self.runs) if other.loss is self.runs[run].loss
            )

        found = []
        outputs = math.prod(self.runs[0].loss.outputs(self.material.targets.shape[1]))
        for batch, same in itertools.groupby(sorted(range(len(self.runs)), key=order), key=size):
            columns = list(same)
            at_once = max(1, LOGITS_AT_ONCE // (max(batch, looked_at) * outputs * len(self.seeds)))
            found += [columns[start : start + at_once] for start in range(0, len(columns), at_once)]
        return found

    def program(self, columns: Sequence[int]) -> train.Pack:
        """The runs of these numbers, at their start."""
        runs = [self.runs[column] for column in columns]
        head = self.settings.head
        given = (
            self.material.inputs(self.seeds, head),
            self.material.targets,
            self.splits,
            runs,
            self.seeds,
        )
        options: Mapping[str, Any] = {
            "head": head,
            "batch_size": self.configs[columns[0]][1].batch_size,
        }
        if self.settings.framework == "torch":
            return train.Pack(*given, **options)
        from scoreloss import keras
        from scoreloss.bench.train_keras import KerasPack

        losses = [
            keras.LOSSES[self.pack[0][k].contender.loss].for_targets(
                self.material.targets[self.splits[0].pool], **dict(config.options)
            )
            for k, config in (self.configs[column] for column in columns)
        ]
        return KerasPack(*given, losses=losses, **options)

    def look(self, epoch: int, program: train.Pack, columns: Sequence[int]) -> None:
        """Score every run on validation data under every rule, and keep what is better than before."""
        losses = [run.loss for run in program.runs]
        logits = program.logits(self._rows("validation"))
        places = [
            (s, place)
            for s, place in itertools.product(range(len(self.seeds)), range(len(columns)))
            if not self.stopped[s, columns[place]]
        ]
        kinds = {decide.put_on(rule): rule for rule in self.rules}
        seen = self.looks.setdefault(
            epoch, {rule: np.full(self.stopped.shape, np.nan) for rule in self.rules}
        )
        scores = [
            {decide.put_on(rule): decide.scores_for(rule, loss, z.double()) for rule in kinds.values()}
            for loss, z in zip(losses, logits, strict=True)
        ]

        def values_of(at: tuple[int, int]) -> dict[str, float]:
            s, place = at
            if any(np.isnan(found[s]).any() for found in scores[place].values()):
                return {}
            y = self.material.targets[self.splits[s].validation]
            return {
                rule: decide.validation_score(
                    rule, y, scores[place][decide.put_on(rule)][s], self.halves[s], self.average
                )
                for rule in decide.rules_for(losses[place], self.settings.judged)
            }

        for (s, place), values in zip(places, _side_by_side(values_of, places), strict=True):
            column = columns[place]
            for rule, value in values.items():
                seen[rule][s, column] = value
                if not value <= self.tried[rule][s, column]:
                    self.tried[rule][s, column] = value
                    self.better_at[s, column] = epoch
                k = self.configs[column][0]
                if value > self.best[rule][s, k]:
                    self.best[rule][s, k] = value
                    self.epoch[rule][s, k] = epoch
                    self.chosen[rule][s, k] = column
                    self._keep(rule, s, column, program, place)
            if self.settings.patience is not None:
                self.stopped[s, column] = epoch - self.better_at[s, column] >= self.settings.patience

    @torch.no_grad()
    def _keep(self, rule: str, s: int, column: int, program: train.Pack, place: int) -> None:
        k = self.configs[column][0]
        if rule not in self.layers:
            self.layers[rule] = [
                torch.zeros(len(self.seeds), len(self.pack[0]), *layer.shape[2:]) for layer in program.layers
            ]
        for kept, layer in zip(self.layers[rule], program.layers, strict=True):
            kept[s, k] = layer[s, place]
        own = program.runs[place].loss.parameters()
        for mine, parameter in zip(self.losses[rule][column].parameters(), own, strict=True):
            mine[s] = parameter[s]
        self._last = program

    def judge(self) -> dict[Cell, Result]:
        """The result of each cell: each rule with its own heads, on the test part."""
        places = list(itertools.product(range(len(self.seeds)), range(len(self.pack[0]))))
        results: dict[tuple[int, int], Result] = {at: {} for at in places}
        for rule in self.layers:
            validation, test = self.scores("validation", rule), self.scores("test", rule)
            there = [(s, k) for s, k in places if self.best[rule][s, k] >= 0]

            def judged(at: tuple[int, int], rule: str = rule, v: Any = validation, t: Any = test) -> Result:
                return self._judged(rule, *at, v[at], t[at])

            for at, found in zip(there, _side_by_side(judged, there), strict=True):
                result = results[at]
                curves = found.pop("threshold_curves")
                result.setdefault("threshold_curves", curves)
                result.setdefault("rules", {}).update(found)
        return {self.pack[s][k]: self._whole(s, k, results[s, k]) for s, k in places}

    def _judged(self, rule: str, s: int, k: int, validation: Floats, test: Floats) -> Result:
        y, split = self.material.targets, self.splits[s]
        held_out, unseen = (y[split.validation], validation), (y[split.test], test)
        first = self._first(k)
        chosen = {
            "config": int(self.chosen[rule][s, k]) - first,
            "epoch": int(self.epoch[rule][s, k]),
        }
        found: Result = {
            rule: {
                **chosen,
                "validation_weighted_f1": float(self.best[rule][s, k]),
                **decide.judge(rule, held_out, unseen),
            }
        }
        if rule == decide.EPOCH_OF_CHANCES:
            on_chances = decide.judge_on_chances(held_out, unseen, self.halves[s])
            found.update({name: {**chosen, **judged} for name, judged in on_chances.items()})
        return {**found, "threshold_curves": decide.threshold_curves(*held_out)}

    def _whole(self, s: int, k: int, result: Result) -> Result:
        """The result with what was tried on the way to it."""
        of_cell = range(self._first(k), self._first(k + 1))
        epochs = sorted(self.looks)
        curve: dict[str, list[Any]] = {"epoch": epochs}
        for rule in self.rules:
            column = int(self.chosen[rule][s, k]) if self.best[rule][s, k] >= 0 else of_cell[0]
            curve[rule] = [float(self.looks[epoch][rule][s, column]) for epoch in epochs]
        return {
            **result,
            "diverged": "rules" not in result,
            "tried": {
                rule: [float(self.tried[rule][s, column]) for column in of_cell] for rule in self.rules
            },
            "curve": curve,
            "versions": _versions(self.settings.framework),
        }

    def _first(self, k: int) -> int:
        return sum(len(cell.contender.configs) for cell in self.pack[0][:k])

    def _rows(self, part: str) -> torch.Tensor:
        return torch.as_tensor(np.stack([getattr(split, part) for split in self.splits]))

    def scores(self, part: str, rule: str) -> dict[tuple[int, int], Floats]:
        """Scores (examples, labels) of each seed and loss, in float64 so that ranks survive the sigmoid."""
        logits = self._last.logits(self._rows(part), self.layers[rule]).double()
        found = {}
        for k, z in enumerate(logits):
            for column in np.unique(self.chosen[rule][:, k]):
                scores = decide.scores_for(rule, self.losses[rule][column], z)
                for s in np.flatnonzero(self.chosen[rule][:, k] == column):
                    found[int(s), k] = scores[s]
        return found


def _side_by_side(function: Callable[[Any], T], arguments: Iterable[Any]) -> list[T]:
    """What numpy computes, on as many cores as torch uses."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return list(pool.map(function, arguments))


def _versions(framework: str) -> dict[str, str]:
    packages = dict.fromkeys(("scoreloss", "torch", "numpy", framework))
    versions = {name: importlib.metadata.version(name) for name in packages}
    if framework == "keras":
        import keras

        versions["keras_backend"] = keras.backend.backend()
    return versions
