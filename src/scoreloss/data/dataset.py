"""What every loader returns: inputs with their labels. It knows no format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError, checked_targets, one_of

KINDS = ("matrix", "text", "image")
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs with their labels, and the splits that stand for everyone.

    ``inputs`` are a matrix of features, texts, or paths of images. ``splits`` maps "train" and "test", and
    "validation" where there is one, to indices of examples; it is empty where no split is official. ``notes`` say
    what a reader of results on these data has to know, ``problems`` what was skipped or mended while reading.
    """

    name: str
    inputs: NDArray[Any] | Sequence[str] | Sequence[Path]
    targets: NDArray[np.bool_]
    labels: tuple[str, ...]
    splits: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", checked_targets(self.targets))
        n = len(self.targets)
        if not self.ids:
            object.__setattr__(self, "ids", tuple(map(str, range(n))))
        if len(self.inputs) != n:
            raise InputError(f"inputs have {len(self.inputs)} examples: the targets have {n}")
        if self.targets.shape[1] != len(self.labels):
            raise InputError(
                f"labels are {len(self.labels)} names: the targets have {self.targets.shape[1]} columns"
            )
        for name, values, wanted in (("labels", self.labels, len(self.labels)), ("ids", self.ids, n)):
            if len(set(values)) != wanted:
                raise InputError(f"{name} are {len(set(values))} different ones: there must be {wanted}")
        _check_inputs(self.inputs)
        _check_splits(self.splits, n)

    @property
    def kind(self) -> str:
        """What the inputs are: "matrix", "text" or "image"."""
        if isinstance(self.inputs, np.ndarray):
            return "matrix"
        return "text" if isinstance(self.inputs[0], str) else "image"

    @cached_property
    def content_hash(self) -> str:
        """A hash of all that decides a result: inputs (of images the bytes of the files), labels, targets, splits."""
        digest = hashlib.sha256()
        for part in self._content():
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.hexdigest()

    def _content(self) -> Iterator[bytes]:
        yield from (label.encode() for label in self.labels)
        if isinstance(self.inputs, np.ndarray):
            yield from _array_content(self.inputs)
        else:
            yield from (
                value.encode(errors="surrogatepass") if isinstance(value, str) else file_digest(value)
                for value in self.inputs
            )
        yield from _array_content(self.targets)
        for part in sorted(self.splits):
            yield part.encode()
            yield from _array_content(np.asarray(self.splits[part], np.int64))


def file_digest(path: Path) -> bytes:
    """A hash of the bytes of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _array_content(array: NDArray[Any]) -> Iterator[bytes]:
    yield repr((array.dtype.str, array.shape)).encode()
    yield np.ascontiguousarray(array).tobytes()


def _check_inputs(inputs: NDArray[Any] | Sequence[str] | Sequence[Path]) -> None:
    if not isinstance(inputs, np.ndarray):
        if not (all(isinstance(i, str) for i in inputs) or all(isinstance(i, Path) for i in inputs)):
            raise InputError("inputs must be a matrix, or all texts, or all paths of images")
        return
    if inputs.ndim != 2 or inputs.dtype.kind != "f":
        raise InputError(
            f"inputs have shape {inputs.shape} and type {inputs.dtype}: they must be a matrix of floats"
        )
    if not np.isfinite(inputs).all():
        row, column = np.argwhere(~np.isfinite(inputs))[0]
        raise InputError(f"inputs[{row}, {column}] is {inputs[row, column]}")


def _check_splits(splits: Mapping[str, NDArray[np.intp]], n: int) -> None:
    for part, rows in splits.items():
        one_of("splits", part, SPLITS)
        if not len(rows) or np.min(rows) < 0 or np.max(rows) >= n:
            raise InputError(f"splits[{part!r}] must hold indices from 0 to {n - 1}")
    if splits and not {"train", "test"} <= set(splits):
        raise InputError(f"splits are {', '.join(splits)}: there must be train and test, or none")
    together = np.concatenate([np.zeros(0, np.intp), *splits.values()])
    if len(np.unique(together)) != len(together):
        raise InputError("splits overlap: an example may be in one part")
