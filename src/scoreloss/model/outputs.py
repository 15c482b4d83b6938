"""Predictions as rows of a file: CSV, JSON lines or Parquet. A format knows blocks of rows, and nothing of models."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from scoreloss.checks import one_of
from scoreloss.model.fitted import Prediction

GROUP = 65_536
"""Rows of a row group of Parquet."""


class Format(Protocol):
    """How a block of rows is written, and how blocks become a file."""

    def block(self, ids: Sequence[str], prediction: Prediction) -> bytes:
        """Whole rows."""

    def together(self, blocks: Iterable[bytes]) -> bytes:
        """Several blocks as one."""

    def assemble(self, parts: Sequence[Path], file: IO[bytes]) -> None:
        """The file of all parts."""


def format_of(path: Path, labels: Sequence[str]) -> Format:
    """By the ending of a file."""
    one_of("the ending of the output", path.suffix, FORMATS)
    form: Format = FORMATS[path.suffix](labels)
    return form


class Csv:
    """A row an example: id, labels with | between them (a JSON list where a name holds one), expected F1, scores."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels
        self.plain = not any("|" in label or label != label.strip() or label[:1] == "[" for label in labels)
        self._numbers = ",%.7g" * (1 + len(labels)) + "\n"

    def block(self, ids: Sequence[str], prediction: Prediction) -> bytes:
        """Whole lines."""
        names = map(self._names, prediction.labels)
        numbers = zip(prediction.expected_f1.tolist(), prediction.rated.tolist(), strict=True)
        lines = (
            f"{_field(name)},{_field(found)}{self._numbers % (expected, *scores)}"
            for name, found, (expected, scores) in zip(ids, names, numbers, strict=True)
        )
        return "".join(lines).encode(errors="replace")

    def together(self, blocks: Iterable[bytes]) -> bytes:
        """One after the other."""
        return b"".join(blocks)

    def assemble(self, parts: Sequence[Path], file: IO[bytes]) -> None:
        """A line of names, and all lines."""
        names = ["id", "labels", "expected_f1", *(f"score_{label}" for label in self.labels)]
        file.write((",".join(map(_field, names)) + "\n").encode(errors="replace"))
        _copy(parts, file)

    def _names(self, found: list[str]) -> str:
        return "|".join(found) if self.plain else json.dumps(found, ensure_ascii=False)


class JsonLines:
    """An object an example: id, labels, expected_f1, and scores by label."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels

    def block(self, ids: Sequence[str], prediction: Prediction) -> bytes:
        """Whole lines."""
        rows = zip(
            ids, prediction.labels, prediction.expected_f1.tolist(), prediction.rated.tolist(), strict=True
        )
        encode = json.JSONEncoder(ensure_ascii=False).encode
        lines = [
            encode(
                {
                    "id": name,
                    "labels": found,
                    "expected_f1": _short(expected),
                    "scores": dict(zip(self.labels, map(_short, scores), strict=True)),
                }
            )
            for name, found, expected, scores in rows
        ]
        return "".join(f"{line}\n" for line in lines).encode(errors="replace")

    def together(self, blocks: Iterable[bytes]) -> bytes:
        """One after the other."""
        return b"".join(blocks)

    def assemble(self, parts: Sequence[Path], file: IO[bytes]) -> None:
        """All lines."""
        _copy(parts, file)


class Parquet:
    """Columns id, labels (a list), expected_f1, and a score for each label; row groups of one size."""

    def __init__(self, labels: Sequence[str]) -> None:
        try:
            import pyarrow
        except ImportError:
            raise ImportError("a Parquet file needs pyarrow: pip install 'scoreloss[bench]'") from None
        self.labels = labels
        fields = [
            ("id", pyarrow.string()),
            ("labels", pyarrow.list_(pyarrow.string())),
            ("expected_f1", pyarrow.float64()),
            *((f"score_{_clean(label)}", pyarrow.float64()) for label in labels),
        ]
        self.schema = pyarrow.schema(fields)

    def block(self, ids: Sequence[str], prediction: Prediction) -> bytes:
        """A Parquet file of its own."""
        import pyarrow

        columns: list[Any] = [
            [_clean(name) for name in ids],
            [[_clean(name) for name in found] for found in prediction.labels],
            prediction.expected_f1,
            *prediction.rated.T,
        ]
        arrays = [pyarrow.array(c, field.type) for c, field in zip(columns, self.schema, strict=True)]
        return self._written(pyarrow.Table.from_arrays(arrays, schema=self.schema))

    def together(self, blocks: Iterable[bytes]) -> bytes:
        """As one Parquet file."""
        import pyarrow
        from pyarrow import parquet

        tables = [parquet.read_table(io.BytesIO(block), use_threads=False) for block in blocks]
        return self._written(pyarrow.concat_tables(tables))

    def assemble(self, parts: Sequence[Path], file: IO[bytes]) -> None:
        """Row groups of one size, wherever the parts end."""
        import pyarrow
        from pyarrow import parquet

        with parquet.ParquetWriter(file, self.schema) as writer:
            waiting = self.schema.empty_table()
            for part in parts:
                waiting = pyarrow.concat_tables([waiting, parquet.read_table(part, use_threads=False)])
                while len(waiting) >= GROUP:
                    writer.write_table(waiting.slice(0, GROUP).combine_chunks())
                    waiting = waiting.slice(GROUP)
            if len(waiting):
                writer.write_table(waiting.combine_chunks())

    def _written(self, table: Any) -> bytes:
        from pyarrow import parquet

        stream = io.BytesIO()
        parquet.write_table(table, stream)
        return stream.getvalue()


FORMATS: dict[str, Any] = {".csv": Csv, ".jsonl": JsonLines, ".parquet": Parquet}


def _copy(parts: Sequence[Path], file: IO[bytes]) -> None:
    for part in parts:
        with part.open("rb") as lines:
            shutil.copyfileobj(lines, file, 1 << 20)


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def _field(text: str) -> str:
    """A field of CSV, in quotes where it has to be."""
    if any(sign in text for sign in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _clean(text: str) -> str:
    """Text that is UTF-8."""
    return text if text.isascii() else text.encode(errors="replace").decode()
