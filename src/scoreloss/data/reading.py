"""Files as people have them: compressed or not, in UTF-8 or not quite, damaged here and there.

What is wrong is said with file and line, and counted; the rest is read. Knows nothing of datasets.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

from scoreloss.checks import InputError

SHOWN = 100
"""So many problems of a kind are told one by one; all are counted."""

OPENERS: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""What reading a damaged file can raise."""


class Problems:
    """What was found wrong while reading."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, where: str | Path, kind: str, detail: str = "") -> None:
        """One problem: ``where`` is a file, or a file and a line; ``kind`` is what is counted."""
        self._counts[kind] += 1
        if self._counts[kind] <= SHOWN:
            self._told.append(f"{where}: {kind} ({detail})" if detail else f"{where}: {kind}")

    def lines(self) -> tuple[str, ...]:
        """The problems as lines, and how many there are of each kind."""
        return *self._told, *(f"{count:,} in all: {kind}" for kind, count in self._counts.items())


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, decompressed where its name ends in .gz, .bz2 or .xz."""
    opener: Callable[[Path, str], IO[bytes]] = OPENERS.get(path.suffix, open)
    return opener(path, "rb")


def without_compression(path: Path) -> Path:
    """The name that a compressed file has when it is not."""
    return path.with_suffix("") if path.suffix in OPENERS else path


def lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, read one at a time."""
    number = 0
    with opened(path) as stream:
        while True:
            where = f"{path}:{number + 1}"
            try:
                raw = stream.readline()
            except DAMAGE as problem:
                if not number:
                    raise InputError(f"{path} cannot be read: {problem}") from problem
                problems.add(where, "damaged or cut short here, the rest is lost", str(problem))
                return
            if not raw:
                return
            number += 1
            if number == 1:
                raw = _without_mark(path, raw)
            yield number, _decoded(raw, where, problems)


def text_of(path: Path, problems: Problems) -> str:
    """A whole text file, its lines ended alike."""
    return "\n".join(line.rstrip("\r\n") for _, line in lines(path, problems))


def bytes_of(path: Path) -> bytes:
    """A whole file, decompressed."""
    try:
        with opened(path) as stream:
            return stream.read()
    except FileNotFoundError:
        raise
    except DAMAGE as problem:
        raise InputError(f"{path} cannot be read: {problem}") from problem


def json_object(text: str, where: str, problems: Problems) -> dict[str, Any] | None:
    """What a JSON line holds; None where it is no object, which is reported."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        problems.add(where, "not a whole line of JSON, skipped", str(problem))
        return None
    if not isinstance(value, dict):
        problems.add(where, "JSON without names, skipped", type(value).__name__)
        return None
    return value


def inside(folder: Path, name: str) -> Path | None:
    """A path in a folder; None for a name that leads out of it."""
    path = os.path.normpath(folder / name)
    base = os.path.normpath(folder)
    return Path(path) if "\0" not in name and Path(path).is_relative_to(base) and path != base else None


def image_in(folder: Path, name: str, where: str | Path, problems: Problems) -> Path | None:
    """An image file of a folder; None where there is none that can be taken, which is reported."""
    path = inside(folder, name)
    if path is None:
        problems.add(where, "a path that leads out of its folder, refused", name)
    elif not path.is_file():
        problems.add(where, "no such image, skipped", str(path))
    elif not path.stat().st_size:
        problems.add(where, "an empty image file, skipped", str(path))
    else:
        return path
    return None


def xml_of(path: Path) -> ElementTree.Element:
    """The root of an XML file. One that declares a document type is refused: that is where entity bombs live."""
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data

    def refuse(*declared: object) -> None:
        raise InputError(f"{path}:{parser.CurrentLineNumber}: XML with a document type, refused")

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(path.read_bytes(), True)
    except (expat.ExpatError, ValueError, LookupError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{path}:{parser.CurrentLineNumber}: not XML, {problem}") from problem
    return builder.close()


def _without_mark(path: Path, raw: bytes) -> bytes:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is in UTF-16: save it as UTF-8")
    return raw.removeprefix(codecs.BOM_UTF8)


def _decoded(raw: bytes, where: str, problems: Problems) -> str:
    if b"\0" in raw:
        problems.add(where, "NUL bytes, left out")
        raw = raw.replace(b"\0", b"")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        problems.add(where, "not UTF-8, read as Latin-1")
        return raw.decode("latin-1")
