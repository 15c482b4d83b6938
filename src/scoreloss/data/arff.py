"""ARFF, dense and sparse: attributes and rows as a matrix of numbers. What is a label is for ``mulan`` and ``meka`` to know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError, checked_targets
from scoreloss.data.reading import Problems, lines

QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
VALUE = re.compile(rf"\s*({QUOTED}|[^,'\"]*?)\s*(?:,|$)")
PAIR = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^,'\"]*?)\s*(?:,|$)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
NUMBERS = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A column: numeric without ``codes``, else of these values. ``numbered``: the codes are mere places in a list."""

    name: str
    codes: Mapping[str, float] | None = None
    numbered: bool = False

    def code(self, value: str) -> float:
        """A value as a number."""
        return float(value) if self.codes is None else self.codes[value]

    def features(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """The column (n, 1) as features: three or more numbered values become a column each."""
        if not self.numbered or self.codes is None or len(self.codes) < 3:
            return column
        places = np.arange(len(self.codes), dtype=np.float64)
        return np.asarray(column == places, np.float64)


def nominal(name: str, values: Sequence[str]) -> Attribute:
    """An attribute of these values: numbers stand for themselves, others for their place."""
    if all(map(_is_number, values)):
        return Attribute(name, {value: float(value) for value in values})
    return Attribute(name, {value: float(place) for place, value in enumerate(values)}, numbered=True)


@dataclass(frozen=True)
class Table:
    """What an ARFF file holds; ``columns`` are (rows, attributes)."""

    path: Path
    relation: str
    attributes: list[Attribute]
    columns: NDArray[np.float64]

    def parted(self, labels: Sequence[str]) -> dict[str, Any]:
        """The parts of a ``Dataset`` whose labels are the attributes of these names, the rest its features."""
        place = {attribute.name: column for column, attribute in enumerate(self.attributes)}
        missing = [name for name in labels if name not in place]
        if missing or not labels:
            raise InputError(
                f"{self.path} has no attribute {missing[0]!r}" if missing else f"{self.path}: no label"
            )
        chosen = [place[name] for name in labels]
        try:
            targets = checked_targets(self.columns[:, chosen])
        except InputError as problem:
            raise InputError(f"{self.path}: {problem}") from problem
        rest = sorted(set(place.values()) - set(chosen))
        features = [self.attributes[column].features(self.columns[:, [column]]) for column in rest]
        return {
            "inputs": np.hstack([np.zeros((len(self.columns), 0)), *features]),
            "targets": targets,
            "labels": tuple(labels),
        }


def read_table(path: Path, problems: Problems) -> Table:
    """The whole file; a row that cannot be read is reported and skipped."""
    source = lines(path, problems)
    relation, attributes = _header(path, source)
    start = np.array([0.0 if a.codes is None else next(iter(a.codes.values())) for a in attributes])
    rows = []
    for number, line in source:
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        try:
            rows.append(_row(line, attributes, start))
        except (ValueError, KeyError, IndexError) as problem:
            kind = "a row with a value missing, skipped" if "?" in line else "a broken row, skipped"
            problems.add(f"{path}:{number}", kind, str(problem))
    if not rows:
        raise InputError(f"{path} has no row" + "".join(f": {first}" for first in problems.lines()[:1]))
    return Table(path, relation, attributes, np.array(rows))


def unquoted(text: str) -> str:
    """A name or value without its quotes and backslashes."""
    if text[:1] in ("'", '"') and len(text) > 1:
        return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text[1:-1], flags=re.DOTALL)
    return text


def _header(path: Path, source: Iterator[tuple[int, str]]) -> tuple[str, list[Attribute]]:
    relation, attributes = "", []
    for number, line in source:
        line = line.strip()
        keyword = line.split(None, 1)[0].lower() if line else "%"
        if keyword == "@relation":
            relation = unquoted(line[len(keyword) :].strip())
        elif keyword == "@attribute":
            attributes.append(_attribute(f"{path}:{number}", line))
        elif keyword == "@data":
            break
        elif not keyword.startswith("%"):
            raise InputError(
                f"{path}:{number} is {line[:40]!r}: @relation, @attribute or @data belongs there"
            )
    else:
        raise InputError(f"{path} has no @data")
    names = [attribute.name for attribute in attributes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise InputError(f"{path} has " + (f"two attributes {twice[0]!r}" if twice else "no attribute"))
    return relation, attributes


def _attribute(where: str, line: str) -> Attribute:
    match = ATTRIBUTE.fullmatch(line)
    if match is None:
        raise InputError(f"{where} is {line[:40]!r}: a name and a type belong after @attribute")
    name, kind = unquoted(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        try:
            return nominal(name, _values(kind[1:-1]))
        except ValueError as problem:
            raise InputError(f"{where}: the values of {name} cannot be read: {problem}") from problem
    if (kind.split() or [""])[0].lower() not in NUMBERS:
        raise InputError(
            f"{where}: {name} is of type {kind!r}: it may be numeric or have its values in braces"
        )
    return Attribute(name)


def _row(line: str, attributes: Sequence[Attribute], start: NDArray[np.float64]) -> NDArray[np.float64]:
    if line.startswith("{"):
        if not line.endswith("}"):
            raise ValueError("the closing brace is missing")
        row = start.copy()
        for place, value in _pairs(line[1:-1]):
            row[place] = attributes[place].code(value)
    else:
        values = _values(line)
        if len(values) != len(attributes):
            raise ValueError(f"{len(values)} values where {len(attributes)} are due")
        row = np.array([attribute.code(value) for attribute, value in zip(attributes, values, strict=True)])
    if not np.isfinite(row).all():
        raise ValueError("a value is not finite")
    return row


def _values(text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    return [unquoted(match[1]) for match in _matches(VALUE, text)]


def _pairs(text: str) -> Iterator[tuple[int, str]]:
    if not text.strip():
        return
    for match in _matches(PAIR, text):
        yield int(match[1]), unquoted(match[2])


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The items of a list with commas, from its start to its end."""
    position = 0
    while True:
        match = pattern.match(text, position)
        if match is None:
            raise ValueError(f"{text[position : position + 20]!r} is no item of a list")
        yield match
        if not match[0].endswith(","):
            return
        position = match.end()


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
