"""Stratified splits of multilabel data: exact sizes, and each label spread like the whole.

Iterative stratification (Sechidis et al. 2011): the rarest label first, its examples go where that label is
most wanted. All examples of a label are placed at once, so the cost is one pass over the labels. Groups, which stay
together, are placed one after another, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.checks import Booleans, InputError, checked_targets

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def stratified_split(
    targets: ArrayLike,
    sizes: Sequence[float],
    *,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> list[Indices]:
    """Sorted indices of parts with the given sizes: whole numbers of examples, or shares that sum to 1.

    ``groups`` names the group of each example, (n,): the patient of an image, the author of a text. A group is never
    divided between parts, so the sizes are then met as nearly as the groups allow (each group goes where it still
    fits, if there is such a part) and no longer exactly.

    >>> [len(part) for part in stratified_split(np.eye(4, dtype=int)[[0, 1] * 5], [0.8, 0.2])]
    [8, 2]
    """
    y = checked_targets(targets)
    room = _whole_sizes(sizes, len(y))
    rng = np.random.default_rng(seed)
    part = _place_examples(y, room, rng) if groups is None else _place_groups(y, room, groups, rng)
    return [np.flatnonzero(part == p) for p in range(len(room))]


def _place_examples(y: Booleans, room: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The part of each example."""
    part = np.full(len(y), -1)
    wanted = np.outer(room / max(len(y), 1), y.sum(axis=0))
    left = y.sum(axis=0).astype(float)
    unplaced = np.ones(len(y), bool)
    while (left > 0).any():
        label = int(np.argmin(np.where(left > 0, left, np.inf)))
        members = rng.permutation(np.flatnonzero(unplaced & y[:, label]))
        taken = _shares(wanted[:, label], room, len(members), rng)
        part[members] = np.repeat(np.arange(len(room)), taken)
        unplaced[members] = False
        room = room - taken
        for p in range(len(room)):
            wanted[p] -= y[members[part[members] == p]].sum(axis=0)
        left -= y[members].sum(axis=0)
    rest = rng.permutation(np.flatnonzero(unplaced))
    part[rest] = np.repeat(np.arange(len(room)), room)
    return part


def _place_groups(
    y: Booleans, room: NDArray[np.int64], groups: ArrayLike, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The part of each example: the largest group first, of equals the one with the rarest label.

    A group goes, among the parts with room for it, where its labels and its examples are most wanted: the share that is
    still missing of what the part shall have of each, times the share of all that the group has.
    """
    names = np.asarray(groups)
    if names.shape != (len(y),):
        raise InputError(f"groups have shape {names.shape}: they must name one for each of {len(y)} examples")
    _, member = np.unique(names, return_inverse=True)
    sizes = np.bincount(member)
    counts = np.stack([np.bincount(member, column) for column in (*y.T, np.ones(len(y)))], axis=1)
    totals = np.maximum(counts.sum(axis=0), 1)
    rarest = np.where(counts > 0, totals, np.inf).min(axis=1)
    missing = np.tile(totals, (len(room), 1))
    left = room.astype(float)
    part = np.empty(len(sizes), np.intp)
    for g in np.lexsort((rng.random(len(sizes)), rarest, -sizes)):
        fits = left >= sizes[g]
        p = np.argmax(np.where(fits, missing @ (counts[g] / totals), -np.inf) if fits.any() else left)
        part[g] = p
        left[p] -= sizes[g]
        missing[p] -= counts[g] * (len(y) / max(room[p], 1))
    return part[member]


def _shares(
    wanted: Floats, room: NDArray[np.int64], members: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many of the members each part takes, each going where most are still wanted and room is."""
    parts = np.repeat(np.arange(len(room)), np.minimum(room, members))
    places = np.concatenate([np.arange(min(r, members)) for r in room])
    wish = wanted[parts] - places
    order = np.lexsort((rng.random(len(parts)), -room[parts], -np.round(wish, 9)))
    return np.bincount(parts[order[:members]], minlength=len(room))


def _whole_sizes(sizes: Sequence[float], n: int) -> NDArray[np.int64]:
    given: NDArray[Any] = np.asarray(sizes)
    if given.ndim != 1 or not given.size or not (given >= 0).all():
        raise InputError(f"sizes are {sizes!r}: they must be a list of sizes, none below 0")
    if given.dtype.kind in "iu":
        if given.sum() != n:
            raise InputError(f"sizes are {sizes!r}: they must sum to the {n} examples")
        return given.astype(np.int64)
    if abs(given.sum() - 1) > 1e-9:
        raise InputError(f"sizes are {sizes!r}: shares must sum to 1")
    ends = np.round(np.cumsum(given) * n).astype(np.int64)
    return np.diff(ends, prepend=0)
