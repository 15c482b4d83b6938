"""Features of one's own in an ``.npz`` file: arrays ``features`` (n, d) and ``targets`` (n, c).

It may also hold ``labels`` (c names), ``ids`` (n), and indices ``train``, ``validation`` and ``test``.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError, checked_targets
from scoreloss.data.dataset import SPLITS
from scoreloss.data.reading import Problems, bytes_of, opened


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``. Nothing is unpickled."""
    source = opened(path) if path.suffix == ".npz" else io.BytesIO(bytes_of(path))
    try:
        with source, np.load(source, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as problem:
        if "pickle" in str(problem):
            raise InputError(
                f"{path} holds pickled objects, which are never opened: save plain arrays"
            ) from problem
        raise InputError(f"{path} cannot be read as .npz: {problem}") from problem
    for name in ("features", "targets"):
        if name not in arrays:
            raise InputError(f"{path} has no array {name}: it has {', '.join(arrays) or 'none'}")
    features, targets = arrays["features"], checked_targets(arrays["targets"])
    return {
        "inputs": features.astype(np.float64) if features.dtype.kind in "iub" else features,
        "targets": targets,
        "labels": _names(arrays, "labels", targets.shape[1]),
        "ids": _names(arrays, "ids", len(targets)),
        "splits": {part: arrays[part].astype(np.intp) for part in SPLITS if part in arrays},
    }


def _names(arrays: dict[str, Any], name: str, count: int) -> tuple[str, ...]:
    return tuple(map(str, arrays[name].tolist() if name in arrays else range(count)))
