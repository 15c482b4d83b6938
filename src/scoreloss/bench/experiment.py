"""What a person asks for, as flags or as one TOML file: datasets x backbones x heads, each a table of losses x seeds."""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from scoreloss.bench.contenders import (
    PAPER_LOSSES,
    Config,
    Contender,
    contenders,
    given,
    losses_in,
)
from scoreloss.bench.plan import Settings
from scoreloss.bench.run import Bench
from scoreloss.checks import InputError, one_of, reason_of
from scoreloss.data import Dataset, load

OF_CONFIG = tuple(field.name for field in fields(Config) if field.name != "options")
OF_SETTINGS = tuple(field.name for field in fields(Settings) if field.name != "judged")
OF_TABLE = ("backbone", "dtype", "seeds", "budget", *OF_SETTINGS, *OF_CONFIG)
"""What may be said for all datasets, or for one."""

OF_DATA = ("text", "image", "labels", "ids", "split", "sep", "years", "level", "difficult", "min_count")
OF_FILE = ("dataset", "losses", "loss", "out", *OF_TABLE)


@dataclass(frozen=True, eq=False)
class Table:
    """One dataset by one backbone with one head."""

    dataset: str
    """As it was named."""
    loaded: Dataset
    values: Mapping[str, Any]
    losses: Sequence[str]
    own: Sequence[Mapping[str, Any]]
    title: str
    folder: Path

    def bench(self) -> Bench:
        """What is to be trained."""
        values = self.values
        base = Config(**{name: values[name] for name in OF_CONFIG if name in values})
        settings = Settings(**{name: values[name] for name in OF_SETTINGS if name in values})
        budget = values.get("budget", 1)
        found: list[Contender] = contenders(self.losses, budget, base)
        found += [given(record, budget, base) for record in self.own]
        return Bench(
            self.loaded,
            found,
            values.get("seeds", 5),
            settings,
            values.get("backbone", "identity"),
            values.get("dtype", "float32"),
        )


@dataclass(frozen=True, eq=False)
class Experiment:
    """All tables, and the folder of what they say together."""

    values: Mapping[str, Any]
    folder: Path | None
    source: str
    """Where it was said."""

    @property
    def framework(self) -> str:
        """What trains the heads."""
        return str(self.values.get("framework", "torch"))

    @cached_property
    def losses(self) -> list[str]:
        """The names of losses, with those that "all" stands for."""
        none = [] if self.values.get("loss") else list(PAPER_LOSSES)
        names = self.values.get("losses", none)
        if not isinstance(names, list):
            raise InputError(f"losses is {names!r}: it must be a list of names")
        every = losses_in(self.framework)
        return list(dict.fromkeys(itertools.chain(*(every if name == "all" else [name] for name in names))))

    @property
    def notes(self) -> list[str]:
        """What a person has to know before it starts."""
        left = [name for name in losses_in("torch") if name not in self.losses]
        if "all" not in self.values.get("losses", ()) or not left:
            return []
        return [f"left out, since only torch trains the parameters they have: {', '.join(left)}"]

    def tables(self) -> list[Table]:
        """Every dataset with every backbone and head that is named for it; all datasets are read."""
        shared = {name: value for name, value in self.values.items() if name in OF_TABLE}
        asked = []
        for record in _datasets(self.values.get("dataset"), self.source):
            values = {**shared, **{name: value for name, value in record.items() if name in OF_TABLE}}
            options = {name: value for name, value in record.items() if name in OF_DATA}
            loaded = load(record["path"], **options)
            axes = [
                [(name, value) for value in _listed(values.get(name, default))]
                for name, default in (("backbone", "identity"), ("head", Settings.head))
            ]
            for point in itertools.product(*axes):
                asked.append((record["path"], loaded, {**values, **dict(point)}))
        tables = []
        for path, loaded, values in asked:
            same = [others for _, other, others in asked if other.name == loaded.name]
            parts = [
                Path(values[name]).name
                for name in ("backbone", "head")
                if len({others[name] for others in same}) > 1
            ]
            title = ", ".join([loaded.name, *parts])
            tables.append(
                Table(
                    path,
                    loaded,
                    values,
                    self.losses,
                    self.values.get("loss", ()),
                    title,
                    self._place(title),
                )
            )
        titles = [table.title for table in tables]
        for title in titles:
            if titles.count(title) > 1:
                raise InputError(f"{titles.count(title)} datasets are {title}: each needs a name of its own")
        return tables

    def _place(self, title: str) -> Path:
        name = title.replace(", ", "-")
        if self.source == "flags":
            return self.folder or Path("runs") / name
        return self.together / name

    @property
    def together(self) -> Path:
        """The folder of the report of all tables."""
        return self.folder or Path(self.values.get("out") or Path("runs") / Path(self.source).stem)


def from_flags(values: Mapping[str, Any], folder: Path | None) -> Experiment:
    """What the flags of the command line say."""
    if values.get("batch_size") is not None:
        values = {**values, "batch_size": _batch_size(values["batch_size"])}
    return Experiment(values, folder, "flags")


def from_file(path: Path, folder: Path | None) -> Experiment:
    """What a TOML file says. ``$NAMES`` in the names of datasets and backbones are those of the environment."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: {reason_of(problem)}") from None
    for name in values:
        one_of(f"{path}: a key", name, OF_FILE)
    records = []
    for record in _datasets(values.get("dataset"), str(path)):
        for name in record:
            one_of(f"{path}: a key of a dataset", name, ("path", *OF_TABLE, *OF_DATA))
        records.append({key: _filled(value, path) for key, value in _sized(record).items()})
    for record in values.get("loss", ()):
        if not isinstance(record, dict):
            raise InputError(f"{path}: a loss is {record!r}: it must be a table, [[loss]]")
    if "backbone" in values:
        values["backbone"] = _filled(values["backbone"], path)
    return Experiment({**_sized(values), "dataset": records}, folder, str(path))


def _datasets(found: Any, source: str) -> list[dict[str, Any]]:
    records = [dict(record) if isinstance(record, dict) else {"path": record} for record in _listed(found)]
    if not records or any(not isinstance(record.get("path"), str) for record in records):
        raise InputError(
            f"{source}: dataset must name one, several in a list, or be tables [[dataset]] with a path"
        )
    return records


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _sized(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _batch_size(value) if name == "batch_size" else value for name, value in values.items()}


def _batch_size(value: Any) -> int | None:
    """A number, or None for "all"."""
    if value == "all":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"batch_size is {value!r}: it must be a whole number, or all") from None


def _filled(value: Any, path: Path) -> Any:
    if isinstance(value, list):
        return [_filled(item, path) for item in value]
    if not isinstance(value, str):
        return value
    filled = os.path.expandvars(value)
    if "$" in filled:
        raise InputError(f"{path}: {value!r} names a variable of the environment that is not set")
    return filled
