"""Targets and scores, looked at a block at a time: all examples of some labels, or all labels of some examples.

What is said of a label needs its column, what is said of an example its row, and nothing needs all of the matrix. So
targets may be sparse, and scores may be computed where they are asked for. Whoever looks says in which order; what is
wrong with an argument is said here. Knows no metric, no rule and no framework, scipy included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.checks import Booleans, Floats, InputError, as_array, as_booleans, check_matrix

ENTRIES = 1 << 20
"""How many entries a block has, unless a single row or column has more: 8 MB of scores."""

Indices = NDArray[np.intp]


class SparseMatrix(Protocol):
    """A CSR or CSC matrix or array of scipy."""

    format: str
    shape: tuple[int, ...]
    indptr: Any
    indices: Any
    data: Any

    def tocsr(self) -> Any:
        """The same by rows."""


Targets = ArrayLike | SparseMatrix
Scores = ArrayLike | Callable[[slice, slice], ArrayLike]
"""A matrix, or a function of a slice of rows and a slice of labels that gives the scores there."""


class Block(NamedTuple):
    """Targets as booleans, False where masked; scores and weights as float64; the mask in full."""

    targets: Booleans
    scores: Floats
    weight: Floats | None
    """One for each row of the block."""
    mask: Booleans | None
    rows: slice
    labels: slice


class Blocks:
    """Targets (n, c) of 0 and 1, scores (n, c), weights (n,) and a mask that broadcasts, checked; or an ``InputError``.

    Targets may be CSR or CSC, and scores a function; both are then made dense block by block, and checked there.
    """

    def __init__(
        self,
        targets: Targets,
        scores: Scores,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> None:
        self._targets = _as_targets(targets, None if mask is None else _as_mask(mask))
        self.shape, self.mask = self._targets.shape, self._targets.mask
        self._scores: _Given | _Computed = (
            _Computed(scores) if callable(scores) else _Given(as_array("scores", scores), self.shape)
        )
        self.dtype = self._scores.dtype
        self.weight = None if sample_weight is None else _as_weight(sample_weight, self.shape[0])

    @property
    def computed(self) -> bool:
        """Whether scores are a function, so that all of them at once are too many."""
        return isinstance(self._scores, _Computed)

    def of_labels(self) -> Iterator[Block]:
        """All examples of some labels, then of the next; columns lie together in memory."""
        n, c = self.shape
        return (self._block(slice(0, n), labels, "F") for labels in _slices(c, n))

    def of_examples(self) -> Iterator[Block]:
        """All labels of some examples, then of the next."""
        n, c = self.shape
        return (self._block(rows, slice(0, c)) for rows in _slices(n, c))

    def check(self) -> None:
        """Look at every entry."""
        for _ in self.of_examples():
            pass

    def whole(self) -> Block:
        """Everything as one block."""
        return self._block(slice(0, self.shape[0]), slice(0, self.shape[1]))

    def all_targets(self) -> Booleans:
        """The targets alone, dense."""
        return self._targets.at(slice(0, self.shape[0]), slice(0, self.shape[1]))

    def _block(self, rows: slice, labels: slice, order: Literal["C", "F"] = "C") -> Block:
        m = None if self.mask is None else self.mask[rows, labels]
        y = np.asarray(self._targets.at(rows, labels), order=order)
        s = self._scores.at(rows, labels).astype(np.float64, order=order, copy=False)
        unknown = np.isnan(s) if m is None else np.isnan(s) & m
        if unknown.any():
            row, label = np.argwhere(unknown)[0] + (rows.start, labels.start)
            raise InputError(f"scores[{row}, {label}] is NaN: scores must be numbers")
        weight = None if self.weight is None else self.weight[rows]
        return Block(y, s, weight, m, rows, labels)


def checked(
    targets: Targets,
    scores: Scores,
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> tuple[Booleans, Floats, Floats | None, Booleans | None]:
    """Everything at once: targets, scores, weights and mask, for those who cannot go block by block."""
    whole = Blocks(targets, scores, sample_weight, mask).whole()
    return whole.targets, whole.scores, whole.weight, whole.mask


def positives_of_labels(targets: Targets) -> tuple[int, Indices]:
    """The number of examples, and how many of them each label has."""
    y = _as_targets(targets, None)
    n, c = y.shape
    counts = [np.count_nonzero(y.at(slice(0, n), labels), axis=0) for labels in _slices(c, n)]
    return n, np.concatenate(counts)


def row_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """The rows of the blocks of a matrix, in order."""
    return _slices(shape[0], shape[1])


def _slices(count: int, other: int) -> Iterator[slice]:
    """Slices of so many rows or labels, of which each has ``other`` entries."""
    step = max(1, ENTRIES // max(1, other))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


class _Dense:
    def __init__(self, targets: NDArray[Any], mask: NDArray[Any] | None) -> None:
        check_matrix(targets.shape, targets.dtype)
        self.targets, self.shape = targets, targets.shape
        self.mask = None if mask is None else _broadcast(mask, self.shape)

    def at(self, rows: slice, labels: slice) -> Booleans:
        mask = None if self.mask is None else self.mask[rows, labels]
        return as_booleans(self.targets[rows, labels], mask, (rows.start, labels.start))


class _Sparse:
    """The places of the positives, by row and by label."""

    def __init__(
        self,
        rows: Indices,
        labels: Indices,
        values: NDArray[Any],
        shape: tuple[int, ...],
        mask: NDArray[Any] | None,
    ) -> None:
        check_matrix(shape, values.dtype)
        self.shape = shape
        self.mask = None if mask is None else _broadcast(mask, shape)
        kept = values != 0 if self.mask is None else (values != 0) & self.mask[rows, labels]
        rows, labels, values = rows[kept], labels[kept], values[kept]
        order = np.lexsort((labels, rows))
        self.rows, self.labels = rows[order], labels[order]
        again = np.append(False, (np.diff(self.rows) == 0) & (np.diff(self.labels) == 0))
        self._refuse(values[order] != 1, lambda k: f"{values[order][k]}: targets must be 0 or 1")
        self._refuse(again, lambda k: "there twice: a place of sparse targets may have one 1")
        self.by_label = np.argsort(self.labels, kind="stable")
        self.row_starts = np.searchsorted(self.rows, np.arange(shape[0] + 1))
        self.label_starts = np.searchsorted(self.labels[self.by_label], np.arange(shape[1] + 1))

    def at(self, rows: slice, labels: slice) -> Booleans:
        """A block of all labels, or of all rows."""
        if labels.stop - labels.start == self.shape[1]:
            here: Any = slice(self.row_starts[rows.start], self.row_starts[rows.stop])
        else:
            here = self.by_label[self.label_starts[labels.start] : self.label_starts[labels.stop]]
        dense = np.zeros((rows.stop - rows.start, labels.stop - labels.start), bool)
        dense[self.rows[here] - rows.start, self.labels[here] - labels.start] = True
        return dense

    def _refuse(self, wrong: Booleans, what: Callable[[int], str]) -> None:
        for k in np.flatnonzero(wrong)[:1]:
            raise InputError(f"targets[{self.rows[k]}, {self.labels[k]}] is {what(k)}")


class _Given:
    def __init__(self, scores: NDArray[Any], shape: tuple[int, ...]) -> None:
        if scores.shape != shape:
            raise InputError(f"scores have shape {scores.shape}: the targets have {shape}")
        self.scores, self.dtype = scores, scores.dtype

    def at(self, rows: slice, labels: slice) -> NDArray[Any]:
        return self.scores[rows, labels]


class _Computed:
    def __init__(self, function: Callable[[slice, slice], ArrayLike]) -> None:
        self.function = function
        self.dtype = self.at(slice(0, 1), slice(0, 1)).dtype

    def at(self, rows: slice, labels: slice) -> NDArray[Any]:
        found = as_array("scores", self.function(rows, labels))
        wanted = (rows.stop - rows.start, labels.stop - labels.start)
        if found.shape != wanted:
            asked = f"[{rows.start}:{rows.stop}, {labels.start}:{labels.stop}]"
            raise InputError(
                f"scores give shape {found.shape} for {asked}: a function of rows and labels must give {wanted}"
            )
        return found


def _as_targets(targets: Any, mask: NDArray[Any] | None) -> _Dense | _Sparse:
    if str(getattr(targets, "layout", "")) == "torch.sparse_csr":
        kind, parts = "csr", (targets.crow_indices(), targets.col_indices(), targets.values())
        starts, inner, values = (np.asarray(part.detach().cpu()) for part in parts)
    elif hasattr(targets, "tocsr"):
        kind = targets.format
        if kind not in ("csr", "csc"):
            raise InputError(
                f"targets are a {type(targets).__name__}: sparse targets must be CSR or CSC, as .tocsr() gives"
            )
        starts, inner, values = targets.indptr, targets.indices, as_array("targets", targets.data)
    else:
        return _Dense(as_array("targets", targets), mask)
    lengths = np.diff(starts)
    outer, inner = np.repeat(np.arange(len(lengths)), lengths), inner.astype(np.intp)
    rows, labels = (outer, inner) if kind == "csr" else (inner, outer)
    return _Sparse(rows, labels, values, tuple(targets.shape), mask)


def _as_mask(mask: ArrayLike) -> NDArray[Any]:
    m = as_array("mask", mask)
    if not (m.dtype == bool or (m.dtype.kind in "fiu" and ((m == 0) | (m == 1)).all())):
        raise InputError("mask must hold True and False, and holds something else")
    return m.astype(bool, copy=False)


def _broadcast(mask: NDArray[Any], shape: tuple[int, ...]) -> Booleans:
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise InputError(f"mask has shape {mask.shape}: it must broadcast against {shape}") from None


def _as_weight(sample_weight: ArrayLike, n: int) -> Floats:
    w = as_array("sample_weight", sample_weight).astype(np.float64)
    if w.shape != (n,):
        raise InputError(f"sample_weight has shape {w.shape}: it must have ({n},)")
    if not (np.isfinite(w) & (w >= 0)).all():
        raise InputError("sample_weight must be finite and at least 0")
    return w
