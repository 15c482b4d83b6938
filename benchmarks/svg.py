"""Log-log lines as a small SVG, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

COLOURS = ("#4c8bf5", "#e8710a", "#1e9e63", "#d0417e", "#8e63ce", "#a8821a", "#12a4b6", "#888888")
WIDTH, HEIGHT, LEFT, TOP, GAP, KEY = 270, 190, 62, 34, 78, 150
STYLE = (
    "text{font:11px sans-serif;fill:#333}.axis{stroke:#999;stroke-width:.5;fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#777}}"
)


class Panel(NamedTuple):
    """One plot: its title, its sizes, and the cost of each contender at each of them."""

    title: str
    sizes: Sequence[int]
    costs: Mapping[str, Sequence[float]]
    unit: str


def drawn(panels: Sequence[Panel]) -> str:
    """Panels two abreast with one key; a proportional cost rises as the dashed diagonals do."""
    names = list(panels[0].costs)
    rows = math.ceil(len(panels) / 2)
    width, height = 2 * (LEFT + WIDTH) + KEY, rows * (HEIGHT + GAP)
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'><style>{STYLE}</style>"]
    for place, panel in enumerate(panels):
        x, y = LEFT + place % 2 * (LEFT + WIDTH), TOP + place // 2 * (HEIGHT + GAP)
        parts += [f"<g transform='translate({x} {y})'>", *_panel(panel), "</g>"]
    for place, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        y = TOP + 18 * place + 10
        x = width - KEY + 14
        parts.append(f"<path d='M{x} {y}h18' stroke='{colour}' stroke-width='2'/>")
        parts.append(f"<text x='{x + 24}' y='{y + 4}'>{name}</text>")
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel) -> list[str]:
    values = [cost for costs in panel.costs.values() for cost in costs]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(panel.sizes[0]), math.log10(panel.sizes[-1])

    def at(size: float, cost: float) -> str:
        right = WIDTH * (math.log10(size) - first) / (last - first)
        up = HEIGHT * (math.log10(cost) - low) / (high - low)
        return f"{right:.1f} {HEIGHT - up:.1f}"

    parts = [f"<path class='axis' d='M0 0V{HEIGHT}H{WIDTH}'/><text x='0' y='-10'>{panel.title}</text>"]
    for power in range(low, high + 1):
        y = HEIGHT * (1 - (power - low) / (high - low))
        parts.append(f"<text x='-6' y='{y + 4:.1f}' text-anchor='end'>{_number(power)} {panel.unit}</text>")
        reach = min(10 ** (high - power), panel.sizes[-1] / panel.sizes[0])
        if reach > 1:
            ends = at(panel.sizes[0], 10.0**power), at(panel.sizes[0] * reach, 10.0**power * reach)
            parts.append(f"<path class='axis' stroke-dasharray='2 4' d='M{ends[0]}L{ends[1]}'/>")
    for size in panel.sizes:
        x = at(size, 10.0**low).split()[0]
        parts.append(f"<text x='{x}' y='{HEIGHT + 16}' text-anchor='middle'>{size}</text>")
    for costs, colour in zip(panel.costs.values(), COLOURS, strict=False):
        line = "L".join(at(size, cost) for size, cost in zip(panel.sizes, costs, strict=True))
        parts.append(f"<path d='M{line}' fill='none' stroke='{colour}' stroke-width='1.6'/>")
    return parts


def _number(power: int) -> str:
    return f"{10**power}" if power >= 0 else f"{10.0**power:g}"
