"""Results on disk: one JSON file a cell, written whole, with a checksum, so that a run can be stopped and go on.

Packs that were begun are kept in a list, and trained again as they were: a number may depend in its last digit on what
was trained beside it. Who trains a pack holds a lock, so that several processes may work on one folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from scoreloss.bench.plan import Cell, Pack
from scoreloss.checks import InputError
from scoreloss.files import lock, remove_half_written, write_whole
from scoreloss.say import Say

Names = list[list[str]]
"""A pack as the list has it: the files of its cells, as [seed][loss]."""


class Damaged(Exception):
    """A file that is there but cannot be trusted; the text says why."""


REPORTS = ("report.html", "report.md", "table.tex", "cells.parquet")
RECORDS = ("bench.json", "splits.json", "packs.json")


class Store:
    """The folder of a benchmark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> None:
        """Make the folder, and refuse one that cannot be written before anything is trained."""
        try:
            (self.folder / "cells").mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder / "cells"):
                pass
        except OSError as problem:
            raise InputError(
                f"--out {self.folder}: cannot write there ({problem.strerror or problem})"
            ) from problem

    def check_free(self, planned: Sequence[Cell]) -> None:
        """Refuse folders in the places of files, before anything is trained."""
        for path in (*(self.folder / name for name in (*REPORTS, *RECORDS)), *map(self.path, planned)):
            if path.is_dir():
                raise InputError(f"{path} is a folder where a file belongs: move it away")

    def path(self, cell: Cell) -> Path:
        """Where the result of a cell is kept."""
        return self.folder / "cells" / f"{cell.file}.json"

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell; None where there is none yet, ``Damaged`` where it cannot be trusted."""
        path = self.path(cell)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError, RecursionError) as problem:
            raise Damaged(f"{path}: {problem}") from problem
        if not isinstance(record, dict) or record.get("cell") != cell.describe():
            raise Damaged(f"{path}: it does not hold this cell")
        result = record.get("result")
        if not isinstance(result, dict) or record.get("sha256") != _checksum(result):
            raise Damaged(f"{path}: its checksum does not fit its content")
        return {**result, "seconds": record.get("seconds", 0.0)}

    def has(self, cell: Cell) -> bool:
        """Whether the result of a cell is there and can be trusted."""
        try:
            return self.read(cell) is not None
        except Damaged:
            return False

    @contextmanager
    def alone(self, say: Say) -> Iterator[None]:
        """While this lasts no other process plans or reports in this folder."""
        with self._lock_file("plan").open("a") as handle:
            lock(handle.fileno(), wait=lambda: say("another process plans or reports here: waiting for it"))
            yield

    def claim(self, pack: Pack) -> IO[str] | None:
        """A handle that keeps other processes from this pack until it is closed; None where one of them has it."""
        path = self._lock_file(_id(_names(pack)))
        while True:
            handle = path.open("a")
            if not lock(handle.fileno()):
                handle.close()
                return None
            if _is_there(handle, path):
                return handle
            handle.close()  # another process was done with the pack, and took the file away meanwhile

    def _lock_file(self, name: str) -> Path:
        folder = self.folder / ".locks"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.lock"

    def tidy(self, missing: Sequence[Cell]) -> None:
        """Remove what processes that were killed left behind: half-written files, and packs on the list that are done."""
        for name in (*REPORTS, *RECORDS, "cells/*.json"):
            remove_half_written(self.folder / name)
        names = {cell.file for cell in missing}

        def done(name: str) -> bool:
            return name not in names and (self.folder / "cells" / f"{name}.json").exists()

        self._forget([pack for pack in self._listed() if all(done(name) for row in pack for name in row)])

    def begun(self, planned: Sequence[Cell], missing: Sequence[Cell]) -> list[Pack]:
        """The packs of the list that lack a result, as far as they are planned."""
        cells = {cell.file: cell for cell in planned}
        names = {cell.file for cell in missing}
        return [
            [[cells[name] for name in row] for row in pack]
            for pack in self._listed()
            if all(name in cells for row in pack for name in row)
            and any(name in names for row in pack for name in row)
        ]

    def list_packs(self, packs: Sequence[Pack]) -> None:
        """Add packs to the list, unless they are in it."""
        listed = self._listed()
        self._write_list([*listed, *(pack for pack in map(_names, packs) if pack not in listed)])

    def forget(self, pack: Pack) -> None:
        """Take a pack off the list: it is done."""
        self._forget([_names(pack)])

    def _forget(self, packs: Sequence[Names]) -> None:
        for pack in packs:
            with suppress(PermissionError):  # on Windows: a process has it open
                self._lock_file(_id(pack)).unlink(missing_ok=True)
        self._write_list([pack for pack in self._listed() if pack not in packs])

    def _listed(self) -> list[Names]:
        try:
            listed = json.loads((self.folder / "packs.json").read_text(encoding="utf-8"))
            return [[[str(name) for name in row] for row in pack] for pack in listed]
        except (ValueError, OSError, RecursionError, TypeError):
            return []  # none, or none that can be trusted: the missing cells are planned anew

    def _write_list(self, listed: list[Names]) -> None:
        path = self.folder / "packs.json"
        if listed:
            write_whole(path, json.dumps(listed, indent=1) + "\n")
        else:
            path.unlink(missing_ok=True)

    def write_splits(self, record: dict[str, Any]) -> None:
        """Keep the splits, beside those of other seeds of the same data."""
        path = self.folder / "splits.json"
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            if before["data_hash"] == record["data_hash"]:
                record = {**record, "seeds": {**before["seeds"], **record["seeds"]}}
        except (ValueError, OSError, RecursionError, KeyError, TypeError):
            pass  # none yet, or none that can be trusted: they follow from the seeds
        write_whole(path, json.dumps(record) + "\n")

    def read_splits(self, data_hash: str) -> dict[str, Any]:
        """The splits of these data."""
        record = self._read_record("splits.json")
        if record.get("data_hash") != data_hash:
            raise InputError(f"{self.folder / 'splits.json'} is of other data: scoreloss bench writes it")
        return record

    def write_bench(self, record: dict[str, Any]) -> None:
        """Keep what a report has to know beside the cells and splits: the data, and which cells were planned."""
        write_whole(self.folder / "bench.json", json.dumps(record) + "\n")

    def read_bench(self) -> dict[str, Any]:
        """The record of the last benchmark."""
        return self._read_record("bench.json")

    def _read_record(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{self.folder} is no folder of a benchmark: there is no {name}") from None
        except (ValueError, RecursionError) as problem:
            raise InputError(f"{path} is damaged ({problem}): scoreloss bench writes it") from None
        if not isinstance(record, dict):
            raise InputError(f"{path} is damaged (no record): scoreloss bench writes it")
        return record

    def write(self, cell: Cell, result: dict[str, Any], seconds: float = 0.0) -> None:
        """Keep the result of a cell, and the time it took, which alone is another one each time."""
        result = _storable(result)
        record = {
            "cell": cell.describe(),
            "result": result,
            "sha256": _checksum(result),
            "seconds": round(seconds, 3),
        }
        write_whole(self.path(cell), json.dumps(record, indent=1, allow_nan=False) + "\n")


def _names(pack: Pack) -> Names:
    return [[cell.file for cell in row] for row in pack]


def _id(names: Names) -> str:
    return hashlib.sha256("\n".join(name for row in names for name in row).encode()).hexdigest()[:16]


def _is_there(handle: IO[str], path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _storable(value: Any) -> Any:
    """JSON knows no infinity: a threshold above all scores is kept as "inf", what is not a number as null."""
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _checksum(result: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()
