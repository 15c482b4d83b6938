"""Posters of films by genre: ``MovieGenre.csv`` (imdbId, Title, Genre as A|B|C) and ``posters/imdbId.jpg``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import Examples
from scoreloss.data.reading import Problems, image_in
from scoreloss.data.rows import csv_rows
from scoreloss.data.table import labels_in

ID, GENRE = "imdbId", "Genre"


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``: films with a genre and a poster."""
    table, posters = path / "MovieGenre.csv", path / "posters"
    rows = csv_rows(table, problems)
    if not {ID, GENRE} <= set(rows.columns):
        raise InputError(f"{table} has the columns {', '.join(rows.columns)}: {ID} and {GENRE} are needed")
    examples = Examples(problems)
    seen = set()
    for where, row in rows.items:
        name, genres = row[ID].strip(), labels_in(row[GENRE], "|")
        seen.add(f"{name}.jpg")
        if not genres:
            problems.add(where, "a film without a genre, skipped", name)
        elif (poster := image_in(posters, f"{name}.jpg", where, problems)) is not None:
            examples.add(where, name, poster, genres)
    for poster in sorted(posters.glob("*.jpg")) if posters.is_dir() else ():
        if poster.name not in seen:
            problems.add(poster, "a poster without a line in MovieGenre.csv, skipped")
    return examples.parts(path)
