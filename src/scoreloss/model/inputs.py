"""What a model is to predict, from files of any size: a block at a time, in flat memory, always in the same order.

``blocks`` gives ids with inputs. What is wrong in a file is told to ``problems``, and the rest is read.
"""

from __future__ import annotations

import io
import itertools
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError
from scoreloss.data.reading import Problems, bytes_of, image_in, lines, opened, without_compression
from scoreloss.data.table import READERS

IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm")
TAKES = {
    "text": "a .txt file with a text a line, or a .csv, .tsv, .jsonl or .parquet file",
    "image": "a folder of images, or a .csv, .tsv, .jsonl or .parquet file with paths of images",
    "matrix": "an .npz or .npy file, or a .csv, .tsv, .jsonl or .parquet file",
}
DAMAGED = "numbers that cannot be read, skipped"

Blocks = Iterator[tuple[list[str], Any]]
"""Ids, and so many inputs."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are meant."""

    text: str | None = None
    image: str | None = None
    features: str | None = None
    ids: str | None = None


class Source:
    """A file, or a folder of images, for a model of some kind."""

    def __init__(self, path: Path, kind: str, width: int, columns: Columns) -> None:
        self.path, self.kind, self.width, self.columns = path, kind, width, columns
        self.problems = Problems()
        self.suffix = without_compression(path).suffix.lower()
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        self._check()

    def _check(self) -> None:
        own = {"text": [".txt", *READERS], "image": list(READERS), "matrix": [".npz", ".npy", *READERS]}
        folder = self.path.is_dir()
        if folder != (self.kind == "image" and folder) or not (folder or self.suffix in own[self.kind]):
            raise InputError(f"{self.path}: the model takes {TAKES[self.kind]}")
        table = self.suffix in READERS and not folder
        for option in ("text", "image", "features", "ids"):
            value = getattr(self.columns, option)
            fits = table and (
                option == "ids" or option == self.kind or (option, self.kind) == ("features", "matrix")
            )
            if value is not None and not fits:
                raise InputError(f"{option} is {value!r}: it is no option of {self.path.name} for this model")

    def blocks(self, size: int, skip: int = 0) -> Blocks:
        """Ids and inputs, so many at a time, without the first ones."""
        if self.path.is_dir():
            return _batches(self._images(), size, skip)
        if self.suffix == ".txt":
            return _batches(self._lines(), size, skip)
        if self.kind != "matrix":
            return _batches(self._column(), size, skip)
        if self.suffix == ".npz":
            return self._npz(size, skip)
        if self.suffix == ".npy":
            return self._npy(size, skip)
        if self.suffix == ".parquet":
            return self._parquet(size, skip)
        return self._numbers(size, skip)

    def total(self) -> int | None:
        """How many there are, where that can be told at once."""
        try:
            if self.path.suffix == ".parquet":
                from pyarrow import parquet

                return int(parquet.ParquetFile(self.path).metadata.num_rows)
            if self.path.suffix == ".npz":
                with zipfile.ZipFile(self.path) as archive, archive.open("features.npy") as stream:
                    return _header(stream, self.path).shape[0]
        except Exception:  # it is told again, and better, when the file is read
            return None
        return None

    def identity(self) -> dict[str, Any]:
        """What tells whether a file is still the same."""
        path = self.path.absolute()
        if path.is_dir():
            return {"path": str(path), "files": sum(1 for _ in _files(path))}
        stat = path.stat()
        return {"path": str(path), "bytes": stat.st_size, "changed": stat.st_mtime_ns}

    def _images(self) -> Iterator[tuple[str, Any]]:
        there = False
        for name in _files(self.path):
            there = True
            yield name, self.path / name
        if not there:
            raise InputError(f"{self.path} holds no images: their names end in {', '.join(IMAGES)}")

    def _lines(self) -> Iterator[tuple[str, Any]]:
        for number, line in lines(self.path, self.problems):
            yield str(number - 1), line.rstrip("\r\n")

    def _column(self) -> Iterator[tuple[str, Any]]:
        """Texts, or paths of images, of a table."""
        rows = READERS[self.suffix](self.path, self.problems)
        column = (self.columns.text if self.kind == "text" else self.columns.image) or self.kind
        self._among(self.kind, column, rows.columns)
        for number, (where, row) in enumerate(rows.items):
            value = row.get(column)
            text = "" if value is None or value != value else str(value)
            if self.kind == "image":
                image = image_in(self.path.parent, text.strip(), where, self.problems)
                if image is not None:
                    yield self._id(row, number), image
                continue
            if not text.strip():
                self.problems.add(where, f"nothing in column {column}, predicted as an empty text")
            yield self._id(row, number), text

    def _numbers(self, size: int, skip: int) -> Blocks:
        """Columns of numbers of a table that is text."""
        rows = READERS[self.suffix](self.path, self.problems)
        columns = self._features(rows.columns)

        def items() -> Iterator[tuple[str, Any]]:
            for number, (where, row) in enumerate(rows.items):
                try:
                    yield self._id(row, number), [float(row[column]) for column in columns]
                except (TypeError, ValueError, KeyError) as problem:
                    self.problems.add(where, DAMAGED, str(problem))

        for ids, values in _batches(items(), size, skip):
            yield self._finite(ids, np.array(values, np.float64).reshape(-1, self.width))

    def _parquet(self, size: int, skip: int) -> Blocks:
        if self.path.suffix != ".parquet" or self.path.is_dir():
            yield from self._numbers(size, skip)
            return
        READERS[self.suffix](self.path, self.problems)  # says what is wrong with a file that is none
        import pyarrow
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            columns = self._features(list(file.schema_arrow.names))
            wanted = columns if self.columns.ids is None else [*columns, self.columns.ids]
            done = 0
            try:
                for batch in file.iter_batches(batch_size=size, columns=wanted):
                    start, done = done, done + len(batch)
                    if done <= skip:
                        continue
                    numbers = [
                        np.asarray(batch.column(name).to_numpy(zero_copy_only=False), np.float64)
                        for name in columns
                    ]
                    ids = [str(k) for k in range(start, done)]
                    if self.columns.ids is not None:
                        ids = [str(value) for value in batch.column(self.columns.ids).to_pylist()]
                    yield self._finite(ids, np.stack(numbers, axis=1))
            except (pyarrow.ArrowException, OSError, TypeError, ValueError) as problem:
                raise InputError(
                    f"{self.path}: row {done} and what follows cannot be read: {problem}"
                ) from problem

    def _npz(self, size: int, skip: int) -> Blocks:
        source: Any = self.path if self.path.suffix == ".npz" else io.BytesIO(bytes_of(self.path))
        try:
            with ExitStack() as stack:
                archive = stack.enter_context(zipfile.ZipFile(source))
                names = archive.namelist()
                if "features.npy" not in names:
                    there = ", ".join(name.removesuffix(".npy") for name in names)
                    raise InputError(f"{self.path} has no array features: it has {there or 'none'}")
                stream = stack.enter_context(archive.open("features.npy"))
                of_ids = stack.enter_context(archive.open("ids.npy")) if "ids.npy" in names else None
                yield from self._streamed(stream, of_ids, size, skip)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
            raise InputError(f"{self.path} cannot be read as .npz: {problem}") from problem

    def _npy(self, size: int, skip: int) -> Blocks:
        try:
            with opened(self.path) as stream:
                yield from self._streamed(stream, None, size, skip)
        except (OSError, EOFError, zlib.error) as problem:
            raise InputError(f"{self.path} cannot be read as .npy: {problem}") from problem

    def _streamed(self, stream: IO[bytes], of_ids: IO[bytes] | None, size: int, skip: int) -> Blocks:
        """Rows of an array as it lies in a file, and of the array of ids beside it."""
        rows = _rows(stream, self.path, 2, size)
        names = None if of_ids is None else _rows(of_ids, self.path, 1, size)
        done = 0
        for values in rows:
            if values.shape[1] != self.width:
                raise InputError(
                    f"{self.path} has {values.shape[1]} features: the model was fitted on {self.width}"
                )
            start, done = done, done + len(values)
            if names is None:
                ids = [str(k) for k in range(start, done)]
            else:
                ids = [str(value) for value in next(names, np.zeros(0)).tolist()]
                if len(ids) != len(values):
                    raise InputError(f"{self.path}: ids are fewer than features")
            if done > skip:
                yield self._finite(ids, values)

    def _finite(self, ids: list[str], values: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
        """Rows with NaN or infinity keep their place, as rows of NaN."""
        odd = ~np.isfinite(values).all(axis=1)
        if odd.any():
            values = np.asarray(values, np.float64).copy()
            values[odd] = np.nan
        return ids, values

    def _id(self, row: Mapping[str, Any], number: int) -> str:
        return str(number) if self.columns.ids is None else str(row.get(self.columns.ids))

    def _features(self, columns: Sequence[str]) -> list[str]:
        """The columns of the features, in the order of the table."""
        if self.columns.ids is not None:
            self._among("ids", self.columns.ids, columns)
        if self.columns.features is None:
            found = [column for column in columns if column != self.columns.ids]
        else:
            found = []
            for pattern in filter(None, map(str.strip, self.columns.features.split(","))):
                matches = [column for column in columns if fnmatchcase(column, pattern)]
                if not matches:
                    self._among("features", pattern, columns)
                found += [column for column in matches if column not in found]
        if len(found) != self.width:
            raise InputError(
                f"{self.path} has {len(found)} columns of features: the model was fitted on {self.width} "
                "(features says which columns, ids which is none)"
            )
        return found

    def _among(self, option: str, name: str, columns: Sequence[str]) -> None:
        if name not in columns:
            raise InputError(f"{option} is {name!r}: {self.path} has the columns {', '.join(columns)}")
        if self.columns.ids is not None and self.columns.ids not in columns:
            raise InputError(f"ids is {self.columns.ids!r}: {self.path} has the columns {', '.join(columns)}")


def _batches(items: Iterator[tuple[str, Any]], size: int, skip: int) -> Blocks:
    rest = itertools.islice(items, skip, None)
    while some := list(itertools.islice(rest, size)):
        yield [name for name, _ in some], [value for _, value in some]


def _files(folder: Path) -> Iterator[str]:
    """The images of a folder and of those in it, by name."""
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(IMAGES) and not name.startswith("."):
                yield (Path(at) / name).relative_to(folder).as_posix()


@dataclass(frozen=True)
class _Array:
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def _header(stream: IO[bytes], path: Path) -> _Array:
    """What an array in a file is. Nothing is unpickled."""
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        header = _Array(*read(stream))
    except (ValueError, EOFError, TypeError) as problem:
        raise InputError(f"{path} cannot be read: {str(problem).splitlines()[0]}") from problem
    if header.dtype.hasobject:
        raise InputError(f"{path} holds pickled objects, which are never opened: save plain arrays")
    return header


def _rows(stream: IO[bytes], path: Path, dimensions: int, size: int) -> Iterator[NDArray[Any]]:
    """So many rows at a time. An array that lies column by column is read whole."""
    array = _header(stream, path)
    if len(array.shape) != dimensions or (dimensions == 2 and array.dtype.kind not in "fiub"):
        wanted = "a matrix of numbers" if dimensions == 2 else "a row of names"
        raise InputError(f"{path} holds an array {array.shape} of {array.dtype}: {wanted} is needed")
    of_row = int(np.prod(array.shape[1:], dtype=object)) * array.dtype.itemsize
    if array.by_columns and dimensions == 2:
        content = stream.read()
        if len(content) != of_row * array.shape[0]:
            raise InputError(f"{path} is cut short")
        whole = np.frombuffer(content, array.dtype).reshape(array.shape[::-1]).T
        for start in range(0, array.shape[0], size):
            yield np.ascontiguousarray(whole[start : start + size])
        return
    if of_row > 1 << 30:
        raise InputError(f"{path} has rows of {of_row:,} bytes: that is no matrix of features")
    done = 0
    while done < array.shape[0]:
        count = min(size, array.shape[0] - done)
        content = stream.read(count * of_row)
        if len(content) != count * of_row:
            raise InputError(f"{path} is cut short after {done:,} of {array.shape[0]:,} rows")
        yield np.frombuffer(content, array.dtype).reshape(count, *array.shape[1:])
        done += count
