"""The metadata snapshot of arXiv: a line of JSON a paper; its text is title and abstract, its labels the categories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import Examples
from scoreloss.data.reading import Problems, json_object, lines


def read(path: Path, problems: Problems, *, years: str | int | None = None) -> dict[str, Any]:
    """The parts of a ``Dataset``. ``years``, such as 2020 or 2018-2020, are those of a paper's first version."""
    wanted = None if years is None else years_of(years)
    examples = Examples(problems)
    for number, line in lines(path, problems):
        where = f"{path}:{number}"
        if not line.strip() or (paper := json_object(line, where, problems)) is None:
            continue
        try:
            if wanted is not None and _year(paper) not in wanted:
                continue
            text = " ".join(f"{paper['title']}\n{paper['abstract']}".split())
            examples.add(where, str(paper["id"]), text, paper["categories"].split())
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
            problems.add(where, "not a paper as arXiv describes it, skipped", repr(problem))
    return examples.parts(path)


def years_of(years: str | int) -> set[int]:
    """2020, or 2018-2020, or both with commas between them."""
    found: set[int] = set()
    for item in str(years).split(","):
        match = re.fullmatch(r"\s*(\d{4})\s*(?:-\s*(\d{4})\s*)?", item)
        if match is None or (match[2] and match[2] < match[1]):
            raise InputError(f"years is {years!r}: it may be a year, or some as 2018-2020 or 2018,2020")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def _year(paper: Mapping[str, Any]) -> int:
    """Of "Mon, 2 Apr 2007 19:18:42 GMT", when the first version was sent."""
    match = re.search(r"\b(\d{4}) \d\d:", paper["versions"][0]["created"])
    if match is None:
        raise ValueError("versions[0].created has no year")
    return int(match[1])
