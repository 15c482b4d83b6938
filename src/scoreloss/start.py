"""Where a head starts, in numpy: at the logits that say each label's frequency. It knows no framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoreloss.checks import Floats, InputError
from scoreloss.losses.metric import across_examples
from scoreloss.ops import NUMPY
from scoreloss.surrogates import SURROGATES, Surrogate, logits_where

GENTLE = 50.0
"""A surrogate steeper than a sigmoid of this slope would be flat at nearly all logits that weights of a tenth of
the usual scale give: it gets smaller ones, so that no start is without gradient."""

FLAT = 1e-6
ROUNDING = 1e-6


def checked_frequencies(frequencies: ArrayLike) -> Floats:
    """Frequencies (..., c) as float64, or an ``InputError``."""
    f = np.asarray(frequencies, np.float64)
    if not f.ndim or not ((f > 0) & (f < 1)).all():
        raise InputError(
            "frequencies must be one a label, between 0 and 1, exclusive: take scoreloss.label_frequencies(targets)"
        )
    return f


def start_of_scores(frequencies: Floats, boundary: Any) -> tuple[Floats, Floats]:
    """The logits at which ``scores`` say the frequencies, and the slope of a sigmoid that is as steep: 1."""
    boundary = np.asarray(0.0 if boundary is None else boundary, np.float64)
    chance = np.log(frequencies / (1 - frequencies)) + boundary
    return chance, np.ones_like(chance)


def start_of_surrogate(
    frequencies: Floats, surrogate: str, knobs: Mapping[str, Any]
) -> tuple[Floats, Floats]:
    """The logits at which a surrogate says the frequencies, and the slope of the sigmoid that is as steep there.

    Where it cannot say them, or is flat there, the scores say them instead. ``knobs`` are numbers or arrays.
    """
    kind = SURROGATES[surrogate]
    chance, ones = start_of_scores(frequencies, kind.boundary(**knobs))

    def rises(z: Floats) -> Floats:
        return stand_in(kind, z[..., None, :], knobs)[..., 0, :]

    wanted = np.broadcast_to(frequencies, chance.shape)
    z = logits_where(rises, wanted)
    near = 1e-6
    gained = (rises(z + near) - rises(z - near)) / (2 * near)
    steepness = gained / (wanted * (1 - wanted))
    z = np.where(steepness > FLAT, z, chance)
    z = np.where(np.abs(z) > ROUNDING, z, 0.0)
    return z, np.maximum(steepness, FLAT) if kind.bounded else ones


def stand_in(kind: Surrogate, logits: Floats, knobs: Mapping[str, Any]) -> Floats:
    """What stands in for "predicted positive" (``hinge``: the mean of its two sides)."""
    knobs = {name: across_examples(knob) for name, knob in knobs.items()}
    on_positives, on_negatives = kind.stand_in(NUMPY, logits, **knobs)
    return np.asarray((on_positives + on_negatives) / 2)


def weight_bounds(steepness: Floats, features: int) -> Floats:
    """Weights are drawn from plus or minus this: a tenth of ``nn.Linear``'s own scale, less where it is steep."""
    return np.asarray(0.1 * features**-0.5 * np.minimum(1, GENTLE / steepness))


def largest_count(targets: NDArray[np.bool_]) -> int:
    """The largest number of labels of a row, at least 1."""
    return max(1, int(targets.sum(axis=1).max()))


def shared_among_counts(label_logits: Floats, most: int) -> Floats:
    """Logits (..., c, most + 1) of ``deep_f``: 0 for "not there", and the counts share the rest alike."""
    there = np.repeat(label_logits[..., None] - np.log(most), most, axis=-1)
    return np.concatenate([np.zeros_like(label_logits)[..., None], there], axis=-1)
