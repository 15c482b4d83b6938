"""Frozen backbones: inputs to features, once.

``features`` is all a caller needs. A backbone is ``identity`` (a matrix as it is), ``tfidf``, the name or folder of a
text encoder or of an image model, or ``timm:NAME``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.backbones import identity
from scoreloss.backbones.cache import DTYPES, Damaged, Entry, Indices, Work, default_folder
from scoreloss.backbones.encoder import Encoder
from scoreloss.checks import InputError, one_of
from scoreloss.say import Say, silent

TAKES = {
    "matrix": "identity",
    "text": "tfidf, the name or folder of a text encoder",
    "image": "the name or folder of an image model, timm:NAME",
}
"""Kinds of inputs, and the backbones for them."""

SHOWN = 3
"""So many unreadable files are named in the error; ``say`` names all of them."""


class Data(Protocol):
    """What is asked of a dataset."""

    @property
    def name(self) -> str:
        """For the person."""

    @property
    def kind(self) -> str:
        """What the inputs are: matrix, text or image."""

    @property
    def inputs(self) -> Any:
        """A matrix, texts, or paths of images."""

    @property
    def splits(self) -> Mapping[str, Any]:
        """The examples for training, under "train"."""

    @property
    def content_hash(self) -> str:
        """Another one for other inputs; an ``OSError`` where one cannot be read."""


def features(
    dataset: Data,
    backbone: str,
    *,
    cache: str | Path | None = None,
    dtype: str = "float32",
    batch_size: int | None = None,
    fit_on: ArrayLike | None = None,
    check: bool = False,
    say: Say = silent,
) -> NDArray[Any]:
    """Features (examples, width) of a dataset, mapped read-only from the cache; made first if they are not there.

    ``cache`` is a folder (default: ``SCORELOSS_CACHE``, or ``~/.cache/scoreloss``). ``dtype`` is float32, or float16 for
    half the disk. ``fit_on`` are the examples that ``tfidf`` learns from (default: the training part). ``check`` compares
    all that is found with its checksums. Images that cannot be read are an ``InputError`` once all others are done and
    kept. ``identity`` returns the inputs themselves.
    """
    _check(dataset, backbone, dtype, batch_size)
    if backbone == "identity":
        return identity.features(dataset.inputs)
    encoder = _encoder(dataset, backbone, batch_size, fit_on)
    entry = _entry(dataset, backbone, encoder, cache, dtype)
    try:
        found = entry.open(check=check)
    except Damaged:
        found = None
    if found is not None:
        return found
    with entry.alone(say):
        try:
            found = entry.open(check=check)
        except Damaged as damage:
            say(f"damaged, made again: {damage}")
        return _made(entry, encoder, dataset, say) if found is None else found


def kept_features(
    dataset: Data,
    backbone: str,
    *,
    cache: str | Path | None = None,
    dtype: str = "float32",
    fit_on: ArrayLike | None = None,
) -> NDArray[Any] | None:
    """The ``features`` if they are in the cache; None where they would have to be made."""
    _check(dataset, backbone, dtype, None)
    if backbone == "identity":
        return identity.features(dataset.inputs)
    try:
        return _entry(dataset, backbone, _encoder(dataset, backbone, None, fit_on), cache, dtype).open(
            check=False
        )
    except Damaged:
        return None


def encoder_of(dataset: Data, backbone: str, *, fit_on: ArrayLike | None = None) -> Encoder:
    """The backbone itself, over the inputs of a dataset of texts or images; ``over`` gives it others."""
    _check(dataset, backbone, DTYPES[0], None)
    return _encoder(dataset, backbone, None, fit_on)


def _check(dataset: Data, backbone: str, dtype: str, batch_size: int | None) -> None:
    one_of("dtype", dtype, DTYPES)
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size is {batch_size}: it must be at least 1")
    one_of("the kind of dataset", dataset.kind, TAKES)
    if (
        (backbone == "identity") != (dataset.kind == "matrix")
        or (dataset.kind != "text" and backbone == "tfidf")
        or (dataset.kind != "image" and backbone.startswith("timm:"))
    ):
        raise InputError(
            f"backbone is {backbone!r}: {dataset.name} is of kind {dataset.kind}, for which it may be {TAKES[dataset.kind]}"
        )


def _entry(data: Data, backbone: str, encoder: Encoder, cache: str | Path | None, dtype: str) -> Entry:
    folder = default_folder() if cache is None else Path(cache).expanduser()
    return Entry(
        folder,
        encoder.recipe,
        _data_key(data, encoder),
        len(data.inputs),
        dtype=dtype,
        name=f"{data.name} by {backbone}",
    )


def _data_key(data: Data, encoder: Encoder) -> str:
    """The hash of the data; where a file cannot be read, one of all that can be, so that they are made nevertheless."""
    try:
        return data.content_hash
    except OSError:
        return hashlib.sha256(encoder.digests().tobytes()).hexdigest()


def _encoder(data: Data, backbone: str, batch_size: int | None, fit_on: ArrayLike | None) -> Encoder:
    if data.kind == "text":
        from scoreloss.backbones import text, tfidf

        if backbone != "tfidf":
            return text.TextEncoder(backbone, data.inputs, batch_size=batch_size)
        if fit_on is None and "train" not in data.splits:
            raise InputError(
                f"backbone tfidf learns its words on a training part, and {data.name} has no official one: scoreloss bench "
                "draws one for each seed, and in Python fit_on= says which examples"
            )
        rows = np.asarray(data.splits["train"] if fit_on is None else fit_on)
        return tfidf.Tfidf(data.inputs, np.flatnonzero(rows) if rows.dtype == bool else rows)
    if backbone.startswith("timm:"):
        from scoreloss.backbones.timm import timm_model

        return timm_model(backbone.removeprefix("timm:"), data.inputs, batch_size=batch_size)
    from scoreloss.backbones.image import transformers_model

    return transformers_model(backbone, data.inputs, batch_size=batch_size)


def _made(entry: Entry, encoder: Encoder, data: Data, say: Say) -> NDArray[Any]:
    """All rows that are not there yet, the rest of the entry from disk."""
    work = entry.begin(encoder.digests())
    told = _tell_problems(encoder, data, set(), say)
    pending = work.pending()
    sizes = encoder.sizes()
    order = pending[np.argsort(-sizes[pending], kind="stable")]
    if len(order):
        kept = int(work.done.sum())
        say(
            f"{entry.name}: {len(order):,} to make"
            + (f", {kept:,} of {len(data.inputs):,} are there" if kept else "")
        )
        progress = _Progress(sizes, order, say)
        for rows, values in encoder.encode(order):
            work.put(rows, values)
            told = _tell_problems(encoder, data, told, say)
            progress.count(rows)
    for row in np.flatnonzero(~work.done):  # also what has the content of a file that failed
        encoder.problems.setdefault(int(row), encoder.problems[int(work.first[row])])
    _tell_problems(encoder, data, told, say)
    if encoder.problems:
        raise InputError(_unreadable(encoder.problems, data, work))
    return entry.finish(work)


class _Progress:
    """How far, how fast, and how long still: by the size of what is done, since long texts come first."""

    def __init__(self, sizes: NDArray[np.int64], order: Indices, say: Say) -> None:
        self._sizes, self._say = sizes, say
        self._total, self._work = len(order), int(sizes[order].sum())
        self._done, self._worked, self._shown = 0, 0, 0
        self._start: tuple[float, int, int] | None = None
        self._last = 0.0

    def count(self, rows: Indices) -> None:
        """These are done; say so once a second, and at most two hundred times. The first come with the loading."""
        self._done += len(rows)
        self._worked += int(self._sizes[rows].sum())
        now = time.perf_counter()
        if self._start is None:
            self._start, self._last = (now, self._done, self._worked), now
        if now - self._last < 1 or self._worked - self._shown < self._work / 200:
            return
        self._last, self._shown = now, self._worked
        start, done, worked = self._start
        rate = (self._done - done) / (now - start)
        left = (self._work - self._worked) * (now - start) / (self._worked - worked)
        self._say(
            f"{self._done:,} of {self._total:,}, {rate:.{0 if rate > 10 else 1}f} a second, {_clock(left)} left",
            counting=True,
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tell_problems(encoder: Encoder, data: Data, told: set[int], say: Say) -> set[int]:
    for row in sorted(set(encoder.problems) - told):
        say(f"{data.inputs[row]}: {encoder.problems[row]}")
    return set(encoder.problems)


def _unreadable(problems: Mapping[int, str], data: Data, work: Work) -> str:
    rows = sorted(problems)
    named = "; ".join(f"{data.inputs[row]}: {problems[row]}" for row in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return (
        f"{len(rows):,} of {len(data.inputs):,} images cannot be read: {named}{more}. Repair them or take them out of the "
        f"data; the features of the other {int(work.done.sum()):,} are kept"
    )
