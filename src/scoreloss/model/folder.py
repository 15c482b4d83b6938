"""A fitted model as a folder: ``head.safetensors``, ``model.json`` and ``README.md``, written whole, read with mistrust.

Nothing is unpickled, and no code is run. What a folder says is compared with the schema, with the checksum of the
arrays, and with their shapes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from scoreloss.backbones.tfidf import Tfidf
from scoreloss.checks import Floats, InputError
from scoreloss.files import read_arrays, write_arrays, write_whole
from scoreloss.model import schema
from scoreloss.model.card import card
from scoreloss.model.features import Features
from scoreloss.model.fitted import Model
from scoreloss.model.numbers import Arrays, Decision, Head, array_of, calibration_of

FORMAT = 1
HEAD, RECORD, CARD = "head.safetensors", "model.json", "README.md"
KIND = "Model"
LARGEST_RECORD = 1 << 28
"""Bytes. Ten million labels take about so many."""


def check_free(folder: str | Path, *, force: bool = False) -> Path:
    """Refuse a folder that may not be written, before anything is trained."""
    path = Path(folder)
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InputError(f"{path} is there and is no folder: name another")
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise InputError(f"{path} is there already: --force (force=True) writes it anew")
        if not (path / RECORD).is_file():
            raise InputError(
                f"{path} is there and holds no {RECORD}: only the folder of a model is written anew"
            )
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.absolute().parent}")
    return path


def save(model: Model, folder: str | Path, *, force: bool = False) -> None:
    """Write the folder so that it is there in full or not at all. One that is there is an ``InputError``, unless ``force``."""
    path = check_free(folder, force=force)
    try:
        new = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}."))
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror or problem}") from problem
    try:
        description, arrays = _described(model)
        write_arrays(new / HEAD, KIND, description, arrays)
        record = record_of(model, new / HEAD)
        schema.check(record)
        write_whole(new / RECORD, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        write_whole(new / CARD, card(record))
        _into_place(new, path)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _into_place(new: Path, path: Path) -> None:
    os.chmod(new, 0o777 & ~_umask())
    old = None
    if path.exists():
        old = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}.")) / path.name
        path.rename(old)
    try:
        new.rename(path)
    except OSError:
        if old is not None:
            old.rename(path)
        raise
    if old is not None:
        shutil.rmtree(old.parent, ignore_errors=True)


def _described(model: Model) -> tuple[dict[str, Any], Arrays]:
    arrays = {
        **model.head.arrays(),
        "platt.slopes": model.calibration.slopes,
        "platt.intercepts": model.calibration.intercepts,
    }
    if model.decision.thresholds is not None:
        arrays["thresholds"] = model.decision.thresholds
    description: dict[str, Any] = {}
    if model.features.backbone == "tfidf":
        encoder = model.features.encoder()
        assert isinstance(encoder, Tfidf)
        description["words"], arrays["rarities"] = encoder.learned()
    return description, arrays


def record_of(model: Model, head: Path) -> dict[str, Any]:
    """What ``model.json`` says of a model whose arrays are in this file."""
    recipe = model.features.recipe
    thresholds = model.thresholds
    with head.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "format": FORMAT,
        "kind": model.kind,
        "backbone": {
            "name": model.features.backbone,
            "revision": recipe.get("weights") or recipe.get("texts"),
            "recipe": recipe,
            "width": model.features.width,
        },
        "labels": list(model.labels),
        "thresholds": None if thresholds is None else [_storable(t) for t in thresholds.tolist()],
        **model.record,
        "head": {
            **model.record["head"],
            "file": HEAD,
            "sha256": checksum,
            "bytes": head.stat().st_size,
        },
    }


def load(folder: str | Path, *, backbone: str | None = None) -> Model:
    """Read what ``save`` wrote; a folder that was changed or does not fit together is an ``InputError``.

    ``backbone`` says where its backbone is now, by another name or folder; its weights must be the same.
    """
    path = Path(folder)
    record = _record(path)
    try:
        schema.check(record)
        _check_head_file(path / HEAD, record["head"])
        description, arrays = read_arrays(path / HEAD, KIND)
        return _model(record, description, arrays, backbone)
    except InputError as problem:
        said = str(problem)
        raise InputError(said if said.startswith(str(path)) else f"{path / RECORD}: {said}") from problem
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, MemoryError) as problem:
        raise InputError(f"{path} does not hold a whole model: {type(problem).__name__}") from problem


def _record(path: Path) -> Any:
    try:
        if (path / RECORD).stat().st_size > LARGEST_RECORD:
            raise InputError(f"{path / RECORD} is too large for the record of a model")
        content = (path / RECORD).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path} is no folder of a model: there is no {RECORD} (scoreloss fit writes it)"
        ) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{path / RECORD} cannot be read: {getattr(problem, 'strerror', None) or 'not UTF-8'}"
        ) from problem
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{path / RECORD} is damaged: it is no JSON") from problem


def _check_head_file(path: Path, head: Mapping[str, Any]) -> None:
    """The file is the one that was written, before any of it is looked into."""
    try:
        size = path.stat().st_size
        if size != head["bytes"]:
            raise InputError(f"{path} has {size:,} bytes: {head['bytes']:,} were written")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if found != head["sha256"]:
        raise InputError(f"{path} was changed after it was written: its checksum is another one")


def _model(
    record: dict[str, Any], description: Mapping[str, Any], arrays: Arrays, found_as: str | None
) -> Model:
    labels = tuple(record["labels"])
    rule, backbone = record["rule"], record["backbone"]
    head = Head.of(record["head"]["form"], arrays, len(labels))
    widths = [head.width, *map(len, head.weights)]
    if record["head"]["widths"] != widths or backbone["width"] != head.width:
        raise InputError(f"head.widths are {record['head']['widths']}: the arrays have {widths}")
    decision = Decision.of(rule["kind"], rule["on"], arrays, len(labels))
    _check_thresholds(record["thresholds"], decision.thresholds)
    encoder = None
    if backbone["name"] == "tfidf":
        words = description["words"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InputError("words are no list of texts")
        if len(words) != head.width or len(set(words)) != head.width:
            raise InputError(f"words are {len(set(words))} different ones: the head takes {head.width}")
        rarities = array_of(arrays, "rarities", (head.width,)).astype(np.float32)
        encoder = Tfidf.restored(words, rarities)
    if found_as is not None and (encoder is not None or record["kind"] == "matrix"):
        raise InputError(f"backbone is {found_as!r}: the model has its own, {backbone['name']}")
    features = Features(record["kind"], backbone["name"], backbone["recipe"], head.width, encoder, found_as)
    of_training = {
        key: record[key] for key in ("loss", "rule", "selection", "validation", "test", "data", "versions")
    }
    of_training["head"] = {key: record["head"][key] for key in ("form", "widths")}
    return Model(labels, features, head, calibration_of(arrays, len(labels)), decision, of_training)


def _check_thresholds(said: list[Any] | None, thresholds: Floats | None) -> None:
    """Those that a person reads are those that decide."""
    same = (said is None) == (thresholds is None)
    if said is not None and thresholds is not None:
        same = len(said) == len(thresholds) and [float(t) for t in said] == thresholds.tolist()
    if not same:
        raise InputError(f"thresholds are not those of {HEAD}: one of the two was changed")


def _storable(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
