"""Features on disk: made once, found again afterwards, there in full or not at all.

An entry is a folder, ``RECIPE/DATA``, with ``features.npy``, ``rows.npy`` and ``entry.json``; while it is made its name
ends in ``.part``. ``rows.npy`` has two digests for each row: of the input it belongs to, and of its own bytes. A row
is there if its bytes fit its digest. This one rule lets a run that was killed at any moment go on, finds damage, and
lets an entry take over rows that another one has. Knows nothing of models, nor of what the inputs are.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError
from scoreloss.files import lock
from scoreloss.say import Say

LAYOUT = 1
"""Rises when files of an older layout cannot be read any more."""

WAITING = "another process makes these features: waiting for it"

ROW = np.dtype([("input", "u8", (2,)), ("content", "u8")])
DTYPES = ("float16", "float32")

Indices = NDArray[np.intp]
Digests = NDArray[np.uint64]


class Damaged(Exception):
    """An entry that is there but cannot be trusted; the text says why."""


def default_folder() -> Path:
    """``SCORELOSS_CACHE``, or else where the system keeps what can be made again."""
    if given := os.environ.get("SCORELOSS_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "scoreloss"


def digest_of(content: bytes | memoryview) -> bytes:
    """128 bits that stand for the content of one input."""
    return hashlib.blake2b(content, digest_size=16).digest()


class Entry:
    """The features of one dataset by one recipe, which says all that decides a row except its input."""

    def __init__(
        self, folder: Path, recipe: Mapping[str, Any], data: str, examples: int, *, dtype: str, name: str
    ) -> None:
        self.recipe = {**recipe, "dtype": dtype, "layout": LAYOUT}
        self.examples = examples
        self.dtype = np.dtype(dtype)
        self.name = name
        content = json.dumps(self.recipe, sort_keys=True).encode()
        self.home = folder / f"{recipe['backbone']}-{hashlib.sha256(content).hexdigest()[:16]}"
        self.path = self.home / data[:32]
        self.work = self.home / f"{data[:32]}.part"

    def open(self, *, check: bool = False) -> NDArray[Any] | None:
        """The features, mapped from the disk; None where there are none, ``Damaged`` where they cannot be trusted.

        Every row is compared with its digest if ``check``, or if the file changed since that was last done.
        """
        if not self.path.exists():
            return None
        try:
            record = json.loads((self.path / "entry.json").read_text(encoding="utf-8"))
            shape, checked = (record["examples"], record["width"]), record["checked"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise Damaged(f"{self.path / 'entry.json'}: {problem}") from problem
        features = self._mapped(self.path)
        if features is None or features.shape != shape or len(features) != self.examples:
            raise Damaged(f"{self.path / 'features.npy'}: not the file that was written")
        changed = (self.path / "features.npy").stat().st_mtime_ns
        if check or changed != checked:
            rows = _mapped(self.path / "rows.npy", ROW)
            lost = self.examples if rows is None else int((~intact(features, rows)).sum())
            if lost:
                raise Damaged(f"{self.path / 'features.npy'}: {lost:,} of {self.examples:,} rows are damaged")
            with contextlib.suppress(OSError):  # a cache may be read-only
                self._record(self.path, features.shape[1])
        return features

    @contextlib.contextmanager
    def alone(self, say: Say) -> Iterator[None]:
        """While this lasts no other process makes the same entry."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / f"{self.path.name}.lock").open("a") as handle:
            try:
                lock(handle.fileno(), wait=lambda: say(WAITING))
            except OSError as problem:
                raise InputError(
                    f"cache folder {self.home} cannot be locked ({problem.strerror or problem}): "
                    "name one on a local disk, by --cache or SCORELOSS_CACHE"
                ) from problem
            yield

    def begin(self, inputs: Digests) -> Work:
        """The entry in the making, with all rows that are on disk somewhere; only for who is ``alone``."""
        if self.path.exists():
            shutil.rmtree(self.work, ignore_errors=True)
            self.path.rename(self.work)
        work = Work(self.work, inputs, self.dtype)
        work.resume(self._mapped(self.work), _mapped(self.work / "rows.npy", ROW))
        for folder in sorted(self.home.iterdir()) if not work.done.all() else ():
            if folder.is_dir() and folder != self.work:
                work.take_over(self._mapped(folder), _mapped(folder / "rows.npy", ROW))
        return work

    def finish(self, work: Work) -> NDArray[Any]:
        """The entry that has been made gets its name."""
        assert work.done.all()
        width = work.close()
        self._record(self.work, width)
        self.work.rename(self.path)
        _to_disk(self.home)
        features = self.open()
        assert features is not None
        return features

    def _mapped(self, folder: Path) -> NDArray[Any] | None:
        return _mapped(folder / "features.npy", self.dtype)

    def _record(self, folder: Path, width: int) -> None:
        record = {
            "name": self.name,
            "recipe": self.recipe,
            "examples": self.examples,
            "width": width,
            "checked": (folder / "features.npy").stat().st_mtime_ns,
        }
        temporary = folder / f"entry.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        _to_disk(temporary)
        temporary.replace(folder / "entry.json")


class Work:
    """Features in the making: rows come in any order, and are on disk as soon as they are there."""

    def __init__(self, folder: Path, inputs: Digests, dtype: np.dtype[Any]) -> None:
        self.folder = folder
        self.inputs = inputs
        self.dtype = dtype
        self.features: np.memmap[Any, Any] | None = None
        self.done = np.zeros(len(inputs), bool)
        _, first, group = np.unique(inputs, axis=0, return_index=True, return_inverse=True)
        self._group = group.reshape(-1)
        self.first = first[self._group]
        self._repeated = (np.bincount(self._group) > 1)[self._group]

    def resume(self, features: NDArray[Any] | None, rows: NDArray[Any] | None) -> None:
        """Go on with what an earlier run left, if it can be used."""
        if features is None or rows is None or not len(features) == len(rows) == len(self.inputs):
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        self.done = intact(features, rows) & (rows["input"] == self.inputs).all(axis=1)
        self._open()

    def take_over(self, features: NDArray[Any] | None, rows: NDArray[Any] | None) -> None:
        """Rows of the same inputs that another entry has."""
        if features is None or rows is None or len(features) != len(rows):
            return
        if self.features is not None and features.shape[1] != self.features.shape[1]:
            return
        place = {key: row for row, key in enumerate(_keys(rows["input"]))}
        keys = _keys(self.inputs)
        pairs = np.array([(row, place[keys[row]]) for row in self.pending() if keys[row] in place], np.intp)
        for some in np.array_split(pairs, len(pairs) // 1024 + 1) if len(pairs) else ():
            sound = some[intact(features[some[:, 1]], rows[some[:, 1]])]
            if len(sound):
                self.put(sound[:, 0], features[sound[:, 1]])

    def pending(self) -> Indices:
        """The rows still to be made, one for each different input."""
        return np.unique(self.first[~self.done])

    def put(self, rows: Indices, features: NDArray[Any]) -> None:
        """Keep rows, here and wherever else their inputs stand."""
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(features, self.dtype)
        if not np.isfinite(values).all():
            at, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"the backbone gives {features[at, column]} for example {rows[at]}, which {self.dtype} cannot hold"
            )
        if self.features is None:
            self._allocate(values.shape[1])
        assert self.features is not None
        content = [_content(value) for value in values]
        for row, value, digest in zip(rows, values, content, strict=True):
            same = np.flatnonzero(self._group == self._group[row]) if self._repeated[row] else row
            self.features[same] = value
            self._rows["input"][same] = self.inputs[row]
            self._rows["content"][same] = digest
            self.done[same] = True

    def close(self) -> int:
        """Bring all of it to the disk; the width of a row."""
        assert self.features is not None
        width = int(self.features.shape[1])
        for array in (self.features, self._rows):
            array.flush()
        self.features = None
        for name in ("features.npy", "rows.npy"):
            _to_disk(self.folder / name)
        return width

    def _allocate(self, width: int) -> None:
        """Files of full size, so that a disk too small is known now."""
        self.folder.mkdir(parents=True)
        for name, dtype, shape in (
            ("rows.npy", ROW, (len(self.inputs),)),
            ("features.npy", self.dtype, (len(self.inputs), width)),
        ):
            with (self.folder / name).open("wb") as file:
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_2_0(file, header)
                file.flush()
                size = file.tell() + int(np.prod(shape)) * dtype.itemsize
                file.truncate(size)
                _reserve(file.fileno(), size, self.folder)
        self._open()

    def _open(self) -> None:
        self.features, self._rows = (
            np.load(self.folder / name, mmap_mode="r+") for name in ("features.npy", "rows.npy")
        )


def intact(features: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have the bytes that they were written with."""
    made = np.flatnonzero(rows["content"])
    sound = np.zeros(len(rows), bool)
    sound[made] = [_content(features[row]) == rows["content"][row] for row in made]
    return sound


def _content(row: NDArray[Any]) -> int:
    """A digest of a row's bytes; never 0, which says that there is no row."""
    return int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little") | 1


def _keys(digests: Digests) -> list[bytes]:
    content = np.ascontiguousarray(digests).tobytes()
    return [content[at : at + 16] for at in range(0, len(content), 16)]


def _mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """An array on disk, read-only; None if there is none of that type, whole."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if isinstance(array, np.ndarray) and array.dtype == dtype else None


def _reserve(handle: int, size: int, folder: Path) -> None:
    """Take the room on the disk, where the file system can."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise InputError(
                f"cache folder {folder}: {problem.strerror}, {size / 1e9:.1f} GB are needed"
            ) from problem


def _to_disk(path: Path) -> None:
    """Wait until a file or folder is on the disk; not every system can do so for a folder."""
    with contextlib.suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
