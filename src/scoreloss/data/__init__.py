"""Datasets: one small file for each format, all of which give a ``Dataset``.

The formats are imported when something is loaded, so that ``import scoreloss`` does without them.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scoreloss.checks import InputError, number_from, one_of
from scoreloss.data.dataset import Dataset

if TYPE_CHECKING:
    from scoreloss.data.formats import Reader

__all__ = ["Dataset", "load"]


def load(spec: str | Path, *, min_count: int = 0, **options: Any) -> Dataset:
    """A dataset by its name, as FORMAT:PATH, or from a file of one's own.

    ``min_count``: labels of fewer examples are left out. The other options are those of the format (``None`` is as
    if not given): ``years`` of arxiv, ``difficult`` of voc, ``level`` of cancer_hallmarks and chemical_exposure, and
    ``text``, ``image``, ``labels``, ``ids``, ``split`` and ``sep`` of a table of one's own.
    """
    from scoreloss.data.reading import Problems

    number_from("min_count", min_count, 0)
    name, read = _reader(str(spec))
    given = {option: value for option, value in options.items() if value is not None}
    known = [p.name for p in inspect.signature(read).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in given:
        if option not in known:
            raise InputError(f"{option} is given: {spec} takes {', '.join([*known, 'min_count'])}")
    problems = Problems()
    parts = {"name": name, **read(problems, **given)}
    dataset = Dataset(**parts, problems=problems.lines())
    return without_rare(dataset, min_count) if min_count else dataset


def _reader(spec: str) -> tuple[str, Reader]:
    """The name of a dataset, and what reads it."""
    from scoreloss.data.formats import EMBEDDED, FORMATS, OWN
    from scoreloss.data.reading import without_compression

    path = Path(spec)
    plain = without_compression(path)
    word, colon, rest = spec.partition(":")
    if colon and (word in FORMATS or plain.suffix not in OWN):
        one_of("format", word, FORMATS)
        return word, partial(FORMATS[word].read, Path(rest).expanduser())
    if plain.suffix in OWN:
        return plain.stem, partial(OWN[plain.suffix], path)
    one_of(
        "dataset", spec, [*EMBEDDED, *(f"{word}:PATH" for word in FORMATS), *(f"FILE{end}" for end in OWN)]
    )
    return spec, EMBEDDED[spec].read


def without_rare(dataset: Dataset, min_count: int) -> Dataset:
    """The dataset with those labels alone that so many examples have."""
    counts = dataset.targets.sum(axis=0)
    kept = counts >= min_count
    if not kept.any():
        raise InputError(f"min_count is {min_count}: the most frequent label has {counts.max()} examples")
    rare = ", ".join(f"{dataset.labels[k]} ({counts[k]})" for k in np.flatnonzero(~kept))
    note = f"{(~kept).sum()} of {len(kept)} labels, seen in fewer than {min_count} examples, are left out: {rare}."
    return replace(
        dataset,
        targets=dataset.targets[:, kept],
        labels=tuple(dataset.labels[k] for k in np.flatnonzero(kept)),
        notes=dataset.notes if kept.all() else (*dataset.notes, note),
    )
