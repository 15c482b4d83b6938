"""What a benchmark found on one dataset: the cells, the splits, and the table that follows from them.

It can be read back from the folder of a benchmark, which keeps the targets but no inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from scoreloss.bench import decide
from scoreloss.bench.packed import pack, unpack
from scoreloss.bench.plan import Cell
from scoreloss.bench.splits import Split, splits_of
from scoreloss.bench.stats import Resamples, Row, summarise, with_gaps
from scoreloss.bench.store import Damaged, Store
from scoreloss.checks import Booleans, InputError
from scoreloss.data import Dataset

RESAMPLED = ("micro_f1", "macro_f1", "weighted_f1", "samples_f1", "weighted_precision")
"""The metrics that follow from predicted label sets, so that noise can be told from them."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A dataset without its inputs."""

    name: str
    labels: tuple[str, ...]
    targets: Booleans
    notes: tuple[str, ...]
    content_hash: str
    parts: tuple[str, ...]
    """Those of the splits that are the dataset's own."""

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """What a report has to know of a dataset."""
        parts = tuple(dataset.splits)
        return cls(dataset.name, dataset.labels, dataset.targets, dataset.notes, dataset.content_hash, parts)

    def record(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "name": self.name,
            "labels": list(self.labels),
            "examples": len(self.targets),
            "targets": pack(self.targets),
            "notes": list(self.notes),
            "data_hash": self.content_hash,
            "parts": list(self.parts),
        }

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> Self:
        """The dataset of a record."""
        return cls(
            record["name"],
            tuple(record["labels"]),
            unpack(record["targets"], (record["examples"], len(record["labels"]))),
            tuple(record["notes"]),
            record["data_hash"],
            tuple(record["parts"]),
        )


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a report shows of one dataset."""

    data: Labelled
    splits: Mapping[int, Split]
    found: Mapping[Cell, Mapping[str, Any]]
    """The cells that were trained; one that diverged says so."""
    missing: int
    """How many cells of the plan are not there."""
    rows: list[Row]
    """Every loss and every floor under every rule, in the order of the rules."""

    @property
    def losses(self) -> list[str]:
        """The losses that were trained, in the order of the plan."""
        return list(dict.fromkeys(cell.name for cell in self.found))

    @property
    def diverged(self) -> list[Cell]:
        """The cells that gave no numbers."""
        return [cell for cell, result in self.found.items() if result["diverged"]]

    def under(self, rule: str, loss: str) -> dict[int, Mapping[str, Any]]:
        """Seed -> what a loss gave under a rule."""
        return {
            cell.seed: result["rules"][rule]
            for cell, result in self.found.items()
            if cell.name == loss and rule in result.get("rules", ())
        }


def sum_up(
    data: Labelled,
    planned: Sequence[Cell],
    found: Mapping[Cell, Mapping[str, Any]],
    splits: Mapping[int, Split],
) -> Results:
    """The table, and how far each row is behind the best."""
    seeds = sorted({cell.seed for cell in planned})
    results = Results(data, splits, found, len(planned) - len(found), [])
    judged = planned[0].settings.judged
    floors = {seed: decide.floors(data.targets, splits[seed], judged) for seed in seeds}
    rows: list[Row] = []
    predicted: list[dict[int, str]] = []
    for rule in decide.JUDGING[judged]:
        for loss in results.losses:
            if by_seed := results.under(rule, loss):
                rows.append(summarise(loss, rule, by_seed))
                predicted.append({seed: result["predicted"] for seed, result in by_seed.items()})
        for name in decide.FLOORS:
            by_seed = {seed: floor[name][rule] for seed, floor in floors.items()}
            rows.append(summarise(name, rule, by_seed, is_floor=True))
            predicted.append({seed: result["predicted"] for seed, result in by_seed.items()})
    tests = {seed: splits[seed].test for seed in seeds}
    resamples = Resamples({seed: data.targets[rows] for seed, rows in tests.items()}, tests)
    results.rows.extend(with_gaps(rows, predicted, resamples, RESAMPLED))
    return results


def read(store: Store, say: Callable[[str], None] = lambda line: None) -> Results:
    """The results that the last benchmark left in a folder, as far as they are there."""
    record = store.read_bench()
    try:
        data = Labelled.recorded(record["data"])
        planned = [Cell.described(cell) for cell in record["cells"]]
        splits = splits_of(store.read_splits(data.content_hash))
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"{store.folder}: its records cannot be read ({problem!r}): scoreloss bench writes them"
        ) from problem
    found = {}
    for cell in planned:
        try:
            result = store.read(cell)
        except Damaged as damage:
            say(f"damaged, left out: {damage}")
            continue
        if result is not None:
            found[cell] = result
    if not any(not result["diverged"] for result in found.values()):
        raise InputError(f"{store.folder} holds no finished runs: scoreloss bench makes them")
    return sum_up(data, planned, found, splits)
