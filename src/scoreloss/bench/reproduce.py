"""The paper's tables on data that are given: its losses with its settings, judged by its thresholds at the last epoch.

What is trained are cells of a benchmark like any others, in a folder for each dataset: ``main`` holds the losses, ``grid``
the slopes and offsets. Nothing is tuned.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scoreloss.bench.contenders import AS_CODED, PAPER_LOSSES, Config, Contender
from scoreloss.bench.estimate import estimate
from scoreloss.bench.plan import Settings
from scoreloss.bench.report.export import parquet
from scoreloss.bench.report.paper import NEEDS, Reproduced, markdown
from scoreloss.bench.report.published import DATASETS, Setting, setting
from scoreloss.bench.results import Results
from scoreloss.bench.run import Bench, Outcome, run
from scoreloss.checks import InputError, number_from, one_of
from scoreloss.data import Dataset, load, without_rare
from scoreloss.files import write_whole
from scoreloss.say import Say, silent

BACKBONES = {
    "MobileNetV2": "mobilenet_v2",
    "TResNet-M-21K": "timm:tresnet_m.miil_in21k",
    "DistilBERT": "distilbert-base-uncased",
}
"""The paper's backbone -> its name on the hub."""

SLOPES = (1.0, 3.0, 10.0, 30.0)
OFFSETS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""The grid of the sensitivity, over the ranges that the paper gives."""

PAGE = "reproduce.md"


@dataclass(frozen=True)
class Request:
    """What of the paper's settings is asked for, or changed."""

    backbones: Mapping[str, str] = field(default_factory=dict)
    """Kind of inputs ("text" or "image") -> another backbone than the paper's."""
    dtype: str = "float32"
    min_counts: Mapping[str, int] = field(default_factory=dict)
    """Dataset -> another number than the paper's; "" is that of all."""
    years: str | None = None
    """Of arxiv."""
    seeds: int | None = None
    epochs: int | None = None
    learning_rate: float = Config.learning_rate
    init: str = "default"
    """Of the heads, of which the paper says nothing."""
    as_coded: bool = False
    """Whether S is also run on sigmoid(z), as the paper's code has it."""
    sensitivity: bool = True
    """Whether the grid of slopes and offsets is run."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be run on one dataset."""

    dataset: str
    main: Bench
    grid: Bench | None
    folder: Path
    min_count: int

    @property
    def parts(self) -> dict[str, Bench]:
        """Folder -> what is trained in it."""
        benches = {"main": self.main, "grid": self.grid}
        return {name: bench for name, bench in benches.items() if bench is not None}


def plans(specs: Sequence[str], request: Request, folder: Path) -> list[Plan]:
    """What is to be run; all datasets are read."""
    if not specs:
        raise InputError(f"no dataset is given: name some of {', '.join(_places())}")
    words = [_word(spec) for spec in specs]
    for word in words:
        if words.count(word) > 1:
            raise InputError(f"{word} is given {words.count(word)} times: each dataset may be given once")
    for word, count in request.min_counts.items():
        if word:
            one_of("dataset of min_count", word, words)
        number_from("min_count", count, 0)
    if request.years is not None and "arxiv" not in words:
        raise InputError(f"years is {request.years}: it is an option of arxiv, which is not given")
    return [_plan(word, spec, request, folder) for word, spec in zip(words, specs, strict=True)]


def _places() -> list[str]:
    return [f"{name}:{NEEDS.get(name, 'DIR')}" for name in DATASETS]


def _word(spec: str) -> str:
    word, colon, _ = spec.partition(":")
    if not colon or word not in DATASETS:
        raise InputError(f"dataset is {spec!r}: the paper's are {', '.join(_places())}")
    return word


def _plan(word: str, spec: str, request: Request, folder: Path) -> Plan:
    paper = setting(word)
    min_count = request.min_counts.get(word, request.min_counts.get("", paper.min_count))
    years = request.years if word == "arxiv" else None
    dataset = _frequent(load(spec, years=years), paper, min_count)
    epochs = paper.epochs if request.epochs is None else request.epochs
    settings = Settings(head="relu", epochs=epochs, judged="paper")
    base = Config(learning_rate=request.learning_rate, batch_size=paper.batch_size, init=request.init)
    seeds = paper.seeds if request.seeds is None else request.seeds
    backbone = request.backbones.get(paper.kind, BACKBONES[paper.backbone])

    def bench(contenders: Sequence[Contender]) -> Bench:
        return Bench(dataset, contenders, seeds, settings, backbone, request.dtype)

    main = bench(_losses(base, paper, request.as_coded))
    main.cells()  # what is wrong with them is said before anything is trained
    grid = bench(_grid(base, request.as_coded)) if request.sensitivity else None
    return Plan(word, main, grid, folder / word, min_count)


def _frequent(dataset: Dataset, paper: Setting, min_count: int) -> Dataset:
    """The labels that the paper would keep."""
    most = int(dataset.targets.sum(axis=0).max())
    if most < min_count:
        as_there = ", as in the paper" if min_count == paper.min_count else ""
        raise InputError(
            f"min_count is {min_count}{as_there}: the most frequent label of {dataset.name} has {most} examples, so none is "
            f"left; for a sample --min-count {dataset.name}=N names another number"
        )
    return without_rare(dataset, min_count) if min_count else dataset


def slope_and_offset(paper: Setting) -> dict[str, float]:
    """The paper's optimum with a slope that rises: its code has 1 / (1 + exp(beta (u + eta)))."""
    return {"slope": abs(paper.beta), "offset": paper.eta}


def _losses(base: Config, paper: Setting, as_coded: bool) -> list[Contender]:
    optimum = replace(base, options=tuple(slope_and_offset(paper).items()))
    found = [Contender(loss, loss, (optimum if loss == "sigmoid_f1" else base,)) for loss in PAPER_LOSSES]
    return [*found, Contender("sigmoid_f1 as coded", AS_CODED, (optimum,))] if as_coded else found


def _grid(base: Config, as_coded: bool) -> list[Contender]:
    configs = tuple(
        replace(base, options=(("slope", slope), ("offset", offset)))
        for slope, offset in itertools.product(SLOPES, OFFSETS)
    )
    found = [Contender("sigmoid_f1", "sigmoid_f1", configs)]
    return [*found, Contender("sigmoid_f1 as coded", AS_CODED, configs)] if as_coded else found


def reproduce(
    planned: Sequence[Plan],
    folder: Path,
    *,
    cache: Path | None = None,
    force: bool = False,
    say: Say = silent,
) -> tuple[list[Reproduced], list[Outcome]]:
    """Train what is not there yet, and write the page with all tables into the folder."""
    found: list[Reproduced] = []
    outcomes: list[Outcome] = []
    for plan in planned:
        done: dict[str, Outcome] = {}
        for name, bench in plan.parts.items():
            where = plan.folder / name
            say(f"{plan.dataset}: {'the losses' if name == 'main' else 'slopes x offsets'}, to {where}")
            done[name] = run(bench, where, cache=cache, force=force, say=say, write=_cells)
        outcomes += done.values()
        grid = done["grid"].results if "grid" in done else None
        found.append(Reproduced(plan.dataset, done["main"].results, grid, plan.min_count))
    write_whole(folder / PAGE, markdown(found))
    return found, outcomes


def _cells(folder: Path, results: Sequence[Results]) -> Path:
    path = folder / "cells.parquet"
    write_whole(path, parquet(results))
    return path


def estimates(planned: Sequence[Plan], *, cache: Path | None = None, force: bool = False) -> list[str]:
    """How many cells each dataset has, and how long they take."""
    return [
        f"{name}: {estimate(bench, plan.folder / name, cache=cache, force=force)}"
        for plan in planned
        for name, bench in plan.parts.items()
    ]
