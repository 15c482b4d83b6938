"""Pascal VOC of any year: ``JPEGImages``, ``Annotations`` and ``ImageSets/Main``; the labels are the classes of the objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import Examples
from scoreloss.data.reading import Problems, image_in, inside, lines, xml_of

VAL_IS_TEST = "The test part is the official val part: the labels of the official test part are not there."


def read(path: Path, problems: Problems, *, difficult: bool = False) -> dict[str, Any]:
    """The parts of a ``Dataset``; ``difficult`` counts objects that are marked so, which the challenge ignores."""
    folder = _year_folder(path)
    sets = {part: _image_names(folder, part, problems) for part in ("train", "val", "test")}
    annotated = any((folder / "Annotations" / f"{name}.xml").is_file() for name, _ in sets["test"])
    names = {"train": "train", "val": "validation" if annotated else "test", "test": "test"}
    examples = Examples(problems)
    for part, images in sets.items():
        if part == "test" and not annotated:
            continue
        for name, where in images:
            annotation = inside(folder / "Annotations", f"{name}.xml")
            image = image_in(folder / "JPEGImages", f"{name}.jpg", where, problems)
            if image is None or annotation is None:
                continue
            classes = _classes(annotation, where, problems, difficult)
            if classes is not None:
                examples.add(where, name, image, classes, names[part])
    parts = examples.parts(folder)
    return {**parts, "notes": (VAL_IS_TEST,) if parts["splits"] and not annotated else ()}


def _year_folder(path: Path) -> Path:
    if (path / "ImageSets").is_dir():
        return path
    years = sorted(folder for folder in path.glob("VOC*") if (folder / "ImageSets").is_dir())
    if len(years) == 1:
        return years[0]
    if years:
        raise InputError(f"{path} holds {', '.join(y.name for y in years)}: name one, as {years[0]}")
    raise InputError(f"{path} is no VOCdevkit: it has no VOC*/ImageSets")


def _image_names(folder: Path, part: str, problems: Problems) -> list[tuple[str, str]]:
    path = folder / "ImageSets" / "Main" / f"{part}.txt"
    if not path.is_file():
        return []
    return [(line.strip(), f"{path}:{n}") for n, line in lines(path, problems) if line.strip()]


def _classes(path: Path, where: str, problems: Problems, difficult: bool) -> list[str] | None:
    """The classes of the objects; None where they cannot be told, which is reported."""
    try:
        objects = xml_of(path).findall("object")
    except FileNotFoundError:
        problems.add(where, "an image without its annotation, skipped", str(path))
        return None
    except InputError as problem:
        problems.add(where, "an annotation that cannot be read, skipped", str(problem))
        return None
    counted = [o for o in objects if difficult or (o.findtext("difficult") or "0").strip() != "1"]
    return [name.strip() for o in counted if (name := o.findtext("name"))]
