"""The corpora of cancerHallmarks and chemicalExposure: ``text/ID.txt`` with a sentence a line, ``labels/ID.txt``.

Each sentence's labels come after a ``<``, several joined by `` AND``; ``--`` separates the levels of the hierarchy, and
may also end a label that has others below it. A document has the labels of all its sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import Examples
from scoreloss.data.reading import Problems, text_of

NONE = "NULL"
"""Stands where a sentence has no label."""

LEVEL = "--"


def read(path: Path, problems: Problems, *, level: str | int = "all") -> dict[str, Any]:
    """The parts of a ``Dataset``.

    ``level`` says which labels count: "all" (those given, and all above them), "given" (as they stand), or a
    number (1 for the top of the hierarchy; what lies deeper counts as what it lies under).
    """
    depth = _depth(level)
    texts, labels = ({f.name: f for f in sorted((path / d).glob("*.txt"))} for d in ("text", "labels"))
    for name in sorted(labels.keys() - texts.keys()):
        problems.add(labels[name], "labels without their text, skipped")
    examples = Examples(problems)
    spelling: dict[str, str] = {}
    for name, file in texts.items():
        if name not in labels:
            problems.add(file, "a text without its labels, skipped")
            continue
        text = text_of(file, problems).strip()
        if not text:
            problems.add(file, "an empty text, skipped")
            continue
        sentences = text_of(labels[name], problems).split("<")[1:]
        count = sum(bool(line.strip()) for line in text.split("\n"))
        if len(sentences) != count:
            problems.add(
                labels[name], "not as many labelled sentences as the text has", f"{len(sentences)} of {count}"
            )
        given = [path_of(label, spelling) for sentence in sentences for label in sentence.split(" AND")]
        examples.add(file, file.stem, text, _counted(given, level, depth))
    return examples.parts(path)


def path_of(label: str, spelling: dict[str, str]) -> tuple[str, ...]:
    """A label as its levels from the top. Upper and lower case are the same; the first spelling stands."""
    levels = tuple(part for part in map(str.strip, label.split(LEVEL)) if part)
    return () if levels == (NONE,) else tuple(spelling.setdefault(part.lower(), part) for part in levels)


def _counted(given: list[tuple[str, ...]], level: str | int, depth: int | None) -> list[str]:
    if level == "given":
        paths = set(given)
    elif depth is not None:
        paths = {path[:depth] for path in given}
    else:
        paths = {path[:end] for path in given for end in range(1, len(path) + 1)}
    return sorted(LEVEL.join(path) for path in paths if path)


def _depth(level: str | int) -> int | None:
    if level in ("all", "given"):
        return None
    if not str(level).isdigit() or int(level) < 1:
        raise InputError(f"level is {level!r}: it may be all, given, or a number from 1")
    return int(level)
