"""Predictions of a file of any size: block by block to parts, each written whole, and at the end to one file.

A run that is killed leaves whole parts beside the output, which itself is there in full or not at all; ``resume`` goes
on behind the last part. Blocks are cut at the same places in every run, so that the file is the same to the byte.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.files import lock, write_whole
from scoreloss.model.fitted import Model, Prediction
from scoreloss.model.inputs import Columns, Source
from scoreloss.model.outputs import Format, format_of
from scoreloss.say import Say, silent

PART_BYTES = 1 << 22
PART_SECONDS = 5.0
"""A part is closed at so many bytes, or after so long: what a run loses that is killed."""

SHOWN = 20
"""So many inputs that were left out are told; all are counted."""


@dataclass
class Done:
    """How a run went."""

    rows: int = 0
    left_out: int = 0
    kept: int = 0
    """Inputs whose rows an earlier run had made."""


def predict_file(
    model: Model,
    source: Path,
    out: Path,
    *,
    identity: str = "",
    columns: Columns | None = None,
    resume: bool = False,
    force: bool = False,
    say: Say = silent,
) -> Done:
    """Write the predictions for all inputs of a file or folder. ``identity`` tells one model from another."""
    columns = columns or Columns()
    given = Source(source, model.kind, model.features.width, columns)
    form = format_of(out, model.labels)
    parts = _Parts(out, form)
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file")
    if resume and out.exists() and not parts.there():
        say(f"{out} is there, and complete")
        return Done()
    if out.exists() and not force and not parts.there():
        raise InputError(f"{out} is there already: --force writes it anew")
    run = {
        "model": identity,
        "input": given.identity(),
        "columns": asdict(columns),
        "block": model.block,
        "labels": len(model.labels),
    }
    with parts.claimed(run, resume=resume, force=force):
        done = Done(kept=parts.inputs)
        if done.kept:
            say(f"going on behind {done.kept:,} inputs")
        _predict(model, given, form, parts, done, say)
        parts.finish()
    for line in given.problems.lines()[:SHOWN]:
        say(line)
    return done


def _predict(model: Model, given: Source, form: Format, parts: _Parts, done: Done, say: Say) -> None:
    progress = _Progress(given.total(), parts.inputs, say)
    for ids, inputs in given.blocks(model.block, parts.inputs):
        ids_of, prediction, left_out = _block(model, given, ids, inputs)
        done.rows += len(ids_of)
        for line in left_out:
            done.left_out += 1
            if done.left_out <= SHOWN:
                say(line)
        parts.add(len(ids), form.block(ids_of, prediction) if ids_of else b"")
        progress.count(len(ids))


def _block(
    model: Model, given: Source, ids: list[str], inputs: Any
) -> tuple[list[str], Prediction, list[str]]:
    """The rows of one block, and what is said of inputs that have none."""
    left_out = []
    if model.kind == "matrix":
        sound = ~np.isnan(np.asarray(inputs, np.float64)).any(axis=1)
        left_out = [f"{given.path}: {ids[k]} holds NaN or infinity, left out" for k in np.flatnonzero(~sound)]
        inputs, ids = inputs[sound], [ids[k] for k in np.flatnonzero(sound)]
    rows, prediction, problems = model.predict_readable(inputs)
    left_out += [f"{inputs[k]}: {why}, left out" for k, why in sorted(problems.items())]
    return [ids[k] for k in rows], prediction, left_out


class _Parts:
    """The folder beside the output: ``START-END`` of the inputs of each part, and of which run they are."""

    def __init__(self, out: Path, form: Format) -> None:
        self.out, self.form = out, form
        self.folder = out.with_name(f"{out.name}.parts")
        self.inputs = 0
        self._files: list[Path] = []
        self._waiting: list[bytes] = []
        self._size, self._end, self._began = 0, 0, time.monotonic()

    def there(self) -> bool:
        """Whether an earlier run left some."""
        return (self.folder / "run.json").is_file()

    @contextmanager
    def claimed(self, run: dict[str, Any], *, resume: bool, force: bool) -> Iterator[None]:
        """While this lasts no other process writes here."""
        if self.there() and not (resume or force):
            raise InputError(
                f"{self.folder} holds what a run made that was stopped: --resume goes on, --force begins anew"
            )
        try:
            self.folder.mkdir(parents=False, exist_ok=True)
            handle = (self.folder / "lock").open("a")
        except OSError as problem:
            raise InputError(f"{self.out} cannot be written: {problem.strerror or problem}") from problem
        with handle:
            if not lock(handle.fileno()):
                raise InputError(f"{self.out} is being written by another process")
            try:
                self._begin(run, resume=resume)
                yield
            except BaseException:
                if self._fruitless():
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise

    def _fruitless(self) -> bool:
        """Whether nothing was made yet that would be lost."""
        return not any(self.folder.glob("*.part"))

    def _begin(self, run: dict[str, Any], *, resume: bool) -> None:
        if resume and self.there():
            try:
                before = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError):
                before = None
            if before != run:
                raise InputError(
                    f"{self.folder} was made by another model, of another input or with other columns: "
                    "--force begins anew"
                )
        found = sorted(self.folder.glob("*-*.part")) if resume else []
        for path in found:
            start, _, end = path.stem.partition("-")
            if not (start.isdigit() and end.isdigit()) or int(start) != self.inputs:
                break
            self._files.append(path)
            self.inputs = int(end)
        for path in self.folder.iterdir():
            if path not in self._files and path.name not in ("lock", "run.json"):
                path.unlink()
        write_whole(self.folder / "run.json", json.dumps(run) + "\n")
        self._end = self.inputs

    def add(self, inputs: int, rows: bytes) -> None:
        """The rows of so many inputs."""
        self._end += inputs
        if rows:
            self._waiting.append(rows)
            self._size += len(rows)
        if self._size >= PART_BYTES or time.monotonic() - self._began >= PART_SECONDS:
            self._close()

    def _close(self) -> None:
        if self._waiting:
            path = self.folder / f"{self.inputs:015d}-{self._end:015d}.part"
            write_whole(path, self.form.together(self._waiting))
            self._files.append(path)
            self.inputs = self._end
        self._waiting, self._size, self._began = [], 0, time.monotonic()

    def finish(self) -> None:
        """All parts as one file, which takes its name when it is whole; the parts go."""
        self._close()
        handle, name = tempfile.mkstemp(dir=self.folder, prefix="whole.")
        with os.fdopen(handle, "wb") as file:
            self.form.assemble(self._files, file)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, self.out)
        shutil.rmtree(self.folder, ignore_errors=True)


class _Progress:
    """How far and how fast, at most once a second."""

    def __init__(self, total: int | None, kept: int, say: Say) -> None:
        self._total, self._kept, self._done, self._say = total, kept, 0, say
        self._start = self._last = time.monotonic()

    def count(self, inputs: int) -> None:
        """These are done."""
        self._done += inputs
        now = time.monotonic()
        if now - self._last < 1:
            return
        self._last = now
        rate = self._done / (now - self._start)
        at = self._kept + self._done
        of_all, left = "", ""
        if self._total is not None:
            of_all, left = f" of {self._total:,}", f", {(self._total - at) / rate:.0f} s left"
        self._say(f"{at:,}{of_all} inputs, {rate:,.0f} a second{left}", counting=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
