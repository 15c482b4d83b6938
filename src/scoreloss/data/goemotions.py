"""GoEmotions: ``train.tsv``, ``dev.tsv`` and ``test.tsv`` with text, label numbers and id, and a file of label names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import PARTS, Examples
from scoreloss.data.reading import Problems, lines, text_of

FOLDERS = ("data/original", "data", ".")
NAMES = ("labels.txt", "emotions.txt")


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``; dev is the validation part."""
    folder = next((path / f for f in FOLDERS if (path / f / "train.tsv").is_file()), None)
    if folder is None:
        raise InputError(f"{path} has no train.tsv, nor has its folder data or data/original")
    names = next((folder / name for name in NAMES if (folder / name).is_file()), folder / NAMES[0])
    labels = text_of(names, problems).split()
    examples = Examples(problems)
    for part in ("train", "dev", "test"):
        file = folder / f"{part}.tsv"
        for number, line in lines(file, problems):
            fields = line.rstrip("\r\n").split("\t")
            try:
                text, numbers, name = fields
                found = [labels[_index(item)] for item in numbers.split(",")]
            except (ValueError, IndexError):
                problems.add(f"{file}:{number}", "not a text, label numbers and an id, skipped")
                continue
            examples.add(f"{file}:{number}", name, text, found, PARTS[part])
    return examples.parts(folder, labels)


def _index(number: str) -> int:
    if not number.isdecimal():
        raise ValueError(number)
    return int(number)
