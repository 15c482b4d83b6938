"""Results of many seeds in two numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Row:
    """One line of the table: what was trained, how it decided, and each metric's mean and spread over seeds."""

    name: str
    rule: str
    mean: Mapping[str, float]
    std: Mapping[str, float]
    seeds: int
    is_floor: bool = False


def summarise(name: str, rule: str, results: Sequence[Mapping[str, Any]], *, is_floor: bool = False) -> Row:
    """Mean and sample standard deviation (0 for one seed) of the test metrics of a rule."""
    tests = [result[rule]["test"] for result in results]
    table = {metric: np.array([test[metric] for test in tests], float) for metric in tests[0]}
    return Row(
        name,
        rule,
        {metric: float(values.mean()) for metric, values in table.items()},
        {metric: float(values.std(ddof=1)) if len(values) > 1 else 0.0 for metric, values in table.items()},
        len(tests),
        is_floor,
    )
