"""Mulan: ``NAME.xml`` names the label columns of ``NAME-train.arff`` and ``NAME-test.arff``, or of ``NAME.arff``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.data.arff import read_table
from scoreloss.data.reading import Problems, without_compression, xml_of


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``, from a folder, or from one ARFF file beside its XML."""
    if (plain := without_compression(path)).suffix == ".arff":
        stem = plain.stem.removesuffix("-train").removesuffix("-test")
        headers = (plain.with_suffix(".xml"), plain.with_name(f"{stem}.xml"))
        header = next((file for file in headers if file.is_file()), None)
        files = [path]
    else:
        header = next(iter(sorted(path.glob("*.xml"))), None)
        files = [] if header is None else _files(header)
    if header is None:
        raise InputError(f"{path} has no XML file with the names of the labels")
    labels = [str(label.get("name")) for label in xml_of(header).iter("label")]
    tables = [read_table(file, problems) for file in files]
    if tables[0].attributes != tables[-1].attributes:
        raise InputError(f"{path}: {files[0].name} has other attributes than {files[-1].name}")
    found = [table.parted(labels) for table in tables]
    sizes = [len(part["inputs"]) for part in found]
    rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes[:-1]))
    return {
        "name": header.stem,
        "inputs": np.concatenate([part["inputs"] for part in found]),
        "targets": np.concatenate([part["targets"] for part in found]),
        "labels": tuple(labels),
        "splits": dict(zip(("train", "test"), rows, strict=True)) if len(found) == 2 else {},
    }


def _files(header: Path) -> list[Path]:
    parts = [header.with_name(f"{header.stem}-{part}.arff") for part in ("train", "test")]
    return parts if all(part.is_file() for part in parts) else [header.with_suffix(".arff")]
