"""Tables of one's own as rows: CSV, TSV, JSON lines, Parquet. What a column means is for ``table`` to know."""

from __future__ import annotations

import csv
import errno
import io
import os
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scoreloss.checks import InputError
from scoreloss.data.reading import Problems, bytes_of, json_object, lines

LONGEST_CELL = 1 << 24
"""Characters. An open quote swallows at most so much before the row is given up as broken."""

BROKEN = "a broken row, skipped"


class Rows(NamedTuple):
    """The names of the columns, and the rows one at a time, each with its place in the file."""

    columns: list[str]
    items: Iterator[tuple[str, Mapping[str, Any]]]


def csv_rows(path: Path, problems: Problems, *, delimiter: str = ",") -> Rows:
    """Rows of a CSV or TSV file under the names in its first line."""
    records = _records(path, problems, delimiter)
    _, header = next(records, ("", []))
    columns = [name.strip() for name in header]
    if not columns:
        raise InputError(f"{path} is empty")
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise InputError(f"{path}:1: columns have the same name: {', '.join(map(repr, twice))}")
    return Rows(columns, ((where, dict(zip(columns, fields, strict=True))) for where, fields in records))


def json_rows(path: Path, problems: Problems) -> Rows:
    """Rows of a file with a JSON object a line, under the names of the first."""
    items = _json_items(path, problems)
    first = next(items, None)
    if first is None:
        found = problems.lines()
        raise InputError(f"{path} holds no JSON line" + (f": {found[0]}" if found else ""))

    def all_items() -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield first
        yield from items

    return Rows(list(first[1]), all_items())


def parquet_rows(path: Path, problems: Problems) -> Rows:
    """Rows of a Parquet file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as problem:
        raise ImportError("a Parquet file needs pyarrow: pip install 'scoreloss[bench]'") from problem
    source = io.BytesIO(bytes_of(path)) if path.suffix != ".parquet" else path
    try:
        file = parquet.ParquetFile(source)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    except (pyarrow.ArrowException, OSError) as problem:
        raise InputError(f"{path} cannot be read: {problem}") from problem

    def items() -> Iterator[tuple[str, Mapping[str, Any]]]:
        row = 0
        try:
            for batch in file.iter_batches():
                for values in batch.to_pylist():
                    row += 1
                    yield f"{path}:{row}", values
        except (pyarrow.ArrowException, OSError) as problem:
            problems.add(f"{path}:{row + 1}", "damaged or cut short here, the rest is lost", str(problem))

    return Rows(list(file.schema_arrow.names), items())


def _json_items(path: Path, problems: Problems) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in lines(path, problems):
        where = f"{path}:{number}"
        if line.strip() and (value := json_object(line, where, problems)) is not None:
            yield where, value


def _records(path: Path, problems: Problems, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Records of as many fields as the first. After a broken one reading goes on at the very next line.

    In a file of tabs a quote may be a mere quote, so a line that has the right number of tabs is taken as it is.
    """
    source = lines(path, problems)
    again: deque[tuple[int, str]] = deque()
    taken: list[tuple[int, str]] = []

    def feed() -> Iterator[str]:
        while (item := again.popleft() if again else next(source, None)) is not None:
            taken.append(item)
            yield item[1]

    def reader() -> Iterator[list[str]]:
        return csv.reader(feed(), delimiter=delimiter, strict=True)

    limit = csv.field_size_limit(LONGEST_CELL)
    records, width = reader(), 0
    try:
        while True:
            taken.clear()
            try:
                fields, fault = next(records), ""
            except StopIteration:
                return
            except csv.Error as problem:
                fields, fault = [], str(problem)
            number, line = taken[0]
            where = f"{path}:{number}"
            if not line.strip("\r\n "):
                continue
            if fault and not width:
                raise InputError(f"{where}: the names of the columns cannot be read: {fault}")
            width = width or len(fields)
            if len(fields) == width:
                yield where, fields
                continue
            plain = line.rstrip("\r\n").split(delimiter)
            if delimiter == "\t" and len(plain) == width:
                yield where, plain
            else:
                problems.add(where, BROKEN, fault or f"{len(fields)} fields where {width} are due")
            again.extendleft(reversed(taken[1:]))
            records = reader()
    finally:
        csv.field_size_limit(limit)
