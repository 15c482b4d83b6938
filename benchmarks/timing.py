"""Contenders in one process, taking turns, compared as ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def medians(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each contender in each round, after a round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(slower: list[float], faster: list[float]) -> tuple[float, float, float]:
    """Median and quartiles of the round-by-round ratio."""
    ratios = [a / b for a, b in zip(slower, faster, strict=True)]
    if len(ratios) < 2:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, low, high


def shown(of: tuple[float, float, float]) -> str:
    """A ratio with its quartiles in brackets."""
    return f"{of[0]:5.2f} [{of[1]:.2f}, {of[2]:.2f}]"
