"""MEKA: one ARFF file, whose relation says with ``-C n`` that the first n columns are labels (-n: the last n)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.arff import read_table
from scoreloss.data.reading import Problems, without_compression


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``."""
    table = read_table(path, problems)
    option = re.search(r"-C\s+(-?\d+)", table.relation)
    names = [attribute.name for attribute in table.attributes]
    count = int(option[1]) if option else 0
    if not 0 < abs(count) <= len(names):
        raise InputError(
            f"{path}: the relation is {table.relation!r}: it must have -C n for its {len(names)} columns"
        )
    labels = names[:count] if count > 0 else names[count:]
    return {"name": without_compression(path).stem, **table.parted(labels)}
