"""Files that are written whole, files that are locked, and arrays on disk with a description in safetensors.

Nothing is ever unpickled. What a description means is the business of whoever wrote it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from scoreloss.checks import InputError

VERSION = 1
"""Rises when a file of the same kind would be read otherwise."""

HEADER = "scoreloss"
HALF_WRITTEN = ".part"
"""How the names of files end that are being written, or were when their process was killed."""

Arrays = dict[str, NDArray[Any]]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there in full or not at all."""
    encoded = content.encode() if isinstance(content, str) else content
    while not _written(path, encoded):
        pass  # another process took what was half written for a leftover


def _written(path: Path, content: bytes) -> bool:
    """Write a file beside its place, then put it there; False where it is gone before it is put there."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=HALF_WRITTEN)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except FileNotFoundError:
        return False
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return True


def remove_half_written(path: Path) -> None:
    """Remove what processes that were killed left of a file; one that is alive writes it again. The name may have a ``*``."""
    for leftover in path.parent.glob(f".{path.name}.*{HALF_WRITTEN}"):
        with contextlib.suppress(PermissionError):  # on Windows: it is being written
            leftover.unlink(missing_ok=True)


def lock(handle: int, *, wait: Callable[[], None] | None = None) -> bool:
    """Lock an open file until it is closed; the system does so too when the process dies.

    Where another process holds it: False, or ``wait`` is called and then waited.
    """
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if wait is None:
                    return False
                wait()
                time.sleep(1)
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if wait is None:
            return False
        wait()
        fcntl.flock(handle, fcntl.LOCK_EX)
    return True


def write_arrays(path: str | Path, kind: str, description: Mapping[str, Any], arrays: Arrays) -> None:
    """Keep arrays by their names, and what JSON can say of them, in one file of a ``kind``."""
    _need_safetensors()
    from safetensors.numpy import save

    path = Path(path)
    arrays = {name: array.copy(order="C") for name, array in arrays.items()}
    record = {"kind": kind, "version": VERSION, "description": description}
    record["sha256"] = _checksum(record, arrays)
    content = save(arrays, metadata={HEADER: json.dumps(record, allow_nan=False)})
    try:
        write_whole(path, content)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror or problem}") from problem


def read_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], Arrays]:
    """The description and the arrays of a file of this kind; an ``InputError`` where it cannot be trusted."""
    _need_safetensors()
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    try:
        with path.open("rb"), safe_open(path, framework="numpy") as file:
            record = json.loads((file.metadata() or {})[HEADER], parse_constant=_no_constant)
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        found, version, checksum = record["kind"], record["version"], record.pop("sha256")
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(f"{path} is damaged, or no file of scoreloss") from problem
    if found != kind:
        raise InputError(f"{path} holds {found!r}: {kind!r} is needed")
    if version != VERSION:
        raise InputError(f"{path} has version {version!r}: this release reads version {VERSION}")
    if checksum != _checksum(record, arrays):
        raise InputError(f"{path} is damaged: its checksum does not fit its content")
    return record["description"], arrays


def _checksum(record: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].dtype.str, arrays[name].shape)).encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _need_safetensors() -> None:
    if importlib.util.find_spec("safetensors") is None:
        raise ImportError("files of scoreloss need safetensors: pip install 'scoreloss[sklearn]'")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
