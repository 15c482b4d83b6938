"""One's own table: a column of texts or of paths of images, and a column of labels or a column a label."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import PARTS, Examples
from scoreloss.data.reading import Problems, image_in, without_compression
from scoreloss.data.rows import Rows, csv_rows, json_rows, parquet_rows

READERS: dict[str, Callable[[Path, Problems], Rows]] = {
    ".csv": csv_rows,
    ".tsv": lambda path, problems: csv_rows(path, problems, delimiter="\t"),
    ".jsonl": json_rows,
    ".parquet": parquet_rows,
}
YES, NO = ("1", "1.0", "true"), ("0", "0.0", "false", "")


def read(
    path: Path,
    problems: Problems,
    *,
    text: str | None = None,
    image: str | None = None,
    labels: str = "labels",
    ids: str | None = None,
    split: str | None = None,
    sep: str = "|",
) -> dict[str, Any]:
    """The parts of a ``Dataset``. The options are names of columns.

    ``labels`` names a column of lists, or of texts with ``sep`` between the labels; or several columns of 0 and 1,
    with commas between them, where * stands for anything. Without ``ids`` rows are numbered from 0; ``split`` has
    train, validation or test. Paths of images start at the folder of the table.
    """
    if not sep:
        raise InputError("sep is empty: it must be what stands between the labels of a cell")
    rows = READERS[without_compression(path).suffix](path, problems)
    column, is_image = _input_column(path, rows.columns, text, image)
    for option, name in (("ids", ids), ("split", split)):
        if name is not None:
            _among(path, option, name, rows.columns)
    columns = [labels] if labels in rows.columns else _matching(path, labels, rows.columns)
    examples = Examples(problems)
    unseparated = 0
    for number, (where, row) in enumerate(rows.items):
        value = _written(row.get(column))
        if not value.strip():
            problems.add(where, f"nothing in column {column}, skipped")
            continue
        example = image_in(path.parent, value.strip(), where, problems) if is_image else value
        if example is None:
            continue
        try:
            found = labels_in(row.get(labels), sep) if columns == [labels] else _marked(row, columns)
            part = None if split is None else _part(row.get(split))
        except ValueError as problem:
            problems.add(where, "labels or a split that cannot be read, skipped", str(problem))
            continue
        name = str(number) if ids is None else str(row.get(ids))
        unseparated += len(found) == 1 and any(other in found[0] for other in ";,|" if other != sep)
        examples.add(where, name, example, found, part)
    parts = examples.parts(path, None if columns == [labels] else columns)
    if split is not None and not parts["splits"]:
        raise InputError(f"split is {split!r}: that column of {path} has not both train and test")
    if 2 * unseparated > len(examples):
        problems.add(path, f"most labels hold ; or , or | but no {sep!r}: is sep another one?")
    return parts


def labels_in(value: Any, sep: str) -> list[str]:
    """The labels of a cell: a list, a list written as text, or labels with ``sep`` between them."""
    if isinstance(value, str):
        value = value.strip()
        value = _listed(value) if value.startswith("[") and value.endswith("]") else value.split(sep)
    if value is None or isinstance(value, (bool, int, float)):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{type(value).__name__} instead of labels")
    return list(dict.fromkeys(label for item in value if (label := _written(item).strip())))


def _written(value: Any) -> str:
    """A value as text; what is missing, or NaN as pandas marks it, as none."""
    return "" if value is None or value != value else str(value)


def _listed(text: str) -> Any:
    """JSON, or Python as pandas writes lists."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("a list that does not end as it should") from None


def _marked(row: Mapping[str, Any], columns: Iterable[str]) -> list[str]:
    found = []
    for column in columns:
        value = _written(row.get(column)).strip().lower()
        if value not in YES + NO:
            raise ValueError(f"{column} is {value}: it must be 0 or 1")
        if value in YES:
            found.append(column)
    return found


def _part(value: Any) -> str:
    part = PARTS.get(str(value).strip().lower())
    if part is None:
        raise ValueError(f"split is {value!r}: it must be train, validation or test")
    return part


def _input_column(
    path: Path, columns: Sequence[str], text: str | None, image: str | None
) -> tuple[str, bool]:
    if text is not None and image is not None:
        raise InputError("text and image are both given: name one column")
    if text is None and image is None:
        text, image = ("text", None) if "text" in columns else (None, "image")
    name = text if text is not None else image
    _among(path, "image" if text is None else "text", str(name), columns)
    return str(name), text is None


def _matching(path: Path, patterns: str, columns: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        matches = [column for column in columns if fnmatchcase(column, pattern)]
        if not matches:
            _among(path, "labels", pattern, columns)
        found.update(dict.fromkeys(matches))
    if not found:
        raise InputError("labels is empty: name a column")
    return list(found)


def _among(path: Path, option: str, name: str, columns: Sequence[str]) -> None:
    if name not in columns:
        raise InputError(f"{option} is {name!r}: {path} has the columns {', '.join(columns)}")
