"""Datasets: one small file for each format, all of which return a ``Dataset``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError, checked_targets, one_of
from scoreloss.data import yeast


@dataclass(frozen=True)
class Dataset:
    """Inputs with their labels, and the splits that stand for everyone.

    ``splits`` maps "train" and "test" to indices of examples. ``notes`` say what a reader of results on these
    data has to know.
    """

    name: str
    inputs: NDArray[Any]
    targets: NDArray[np.bool_]
    labels: tuple[str, ...]
    splits: Mapping[str, NDArray[np.intp]]
    notes: tuple[str, ...] = ()
    content_hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", checked_targets(self.targets))
        n = len(self.targets)
        if len(self.inputs) != n:
            raise InputError(f"inputs have {len(self.inputs)} examples: the targets have {n}")
        if self.targets.shape[1] != len(self.labels):
            raise InputError(
                f"labels are {len(self.labels)} names: the targets have {self.targets.shape[1]} columns"
            )
        if self.inputs.dtype.kind == "f" and not np.isfinite(self.inputs).all():
            row, column = np.argwhere(~np.isfinite(self.inputs))[0]
            raise InputError(f"inputs[{row}, {column}] is {self.inputs[row, column]}")
        object.__setattr__(self, "content_hash", self._hash())

    def _hash(self) -> str:
        digest = hashlib.sha256("\0".join(self.labels).encode())
        for part in (self.inputs, self.targets, *(self.splits[k] for k in sorted(self.splits))):
            digest.update(repr((part.dtype.str, part.shape)).encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


EMBEDDED: dict[str, Callable[[], Mapping[str, Any]]] = {"yeast": yeast.read}
"""Datasets that come inside a package, by name."""


def load(name: str) -> Dataset:
    """A dataset by its name."""
    one_of("dataset", name, EMBEDDED)
    return Dataset(name=name, **EMBEDDED[name]())
