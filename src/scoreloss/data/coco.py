"""MS-COCO: ``annotations/instances_*.json`` and a folder of images for each; the labels are the categories of the objects."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from scoreloss.checks import InputError
from scoreloss.data.examples import Examples
from scoreloss.data.reading import Problems, bytes_of, image_in

VAL_IS_TEST = "The test part is the official val part: the labels of the official test part are not public."


def read(path: Path, problems: Problems) -> dict[str, Any]:
    """The parts of a ``Dataset``: train, and val as test. An image without an object has no label."""
    files = sorted((path / "annotations").glob("instances_*.json"))
    if not files:
        raise InputError(f"{path} has no annotations/instances_*.json")
    examples = Examples(problems)
    names: dict[int, str] = {}
    for file in files:
        record = _record(file)
        names |= {category["id"]: category["name"] for category in record["categories"]}
        _add(examples, file, record, names, path / file.stem.removeprefix("instances_"))
    parts = examples.parts(path, [names[number] for number in sorted(names)])
    return {**parts, "notes": (VAL_IS_TEST,) if parts["splits"] else ()}


def _add(examples: Examples, file: Path, record: dict[str, Any], names: dict[int, str], folder: Path) -> None:
    labels: dict[int, set[str]] = defaultdict(set)
    images = {image["id"] for image in record["images"]}
    for index, (image, category) in enumerate(record["annotations"]):
        if image in images and category in names:
            labels[image].add(names[category])
        else:
            what = f"image {image}, category {category}"
            examples.problems.add(
                f"{file}: annotations[{index}]", "an object of nothing known, skipped", what
            )
    part = "train" if folder.name.startswith("train") else "test"
    for index, image in enumerate(record["images"]):
        where = f"{file}: images[{index}]"
        found = image_in(folder, str(image["file_name"]), where, examples.problems)
        if found is not None:
            examples.add(where, str(image["id"]), found, sorted(labels[image["id"]]), part)


def _record(path: Path) -> dict[str, Any]:
    """The file without its polygons, which are most of it and dropped as they are met."""
    try:
        record = json.loads(bytes_of(path), object_hook=_slim)
        whole = all(isinstance(record[key], list) for key in ("images", "annotations", "categories"))
        whole = whole and all({"id", "file_name"} <= image.keys() for image in record["images"])
        whole = whole and all({"id", "name"} <= category.keys() for category in record["categories"])
        whole = whole and all(isinstance(pair, tuple) for pair in record["annotations"])
    except json.JSONDecodeError as problem:
        raise InputError(f"{path}:{problem.lineno}: not whole JSON ({problem.msg})") from problem
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise InputError(f"{path} does not hold images, annotations and categories as COCO has them")
    return dict(record)


def _slim(value: dict[str, Any]) -> Any:
    if "category_id" in value and "image_id" in value:
        return value["image_id"], value["category_id"]
    return (
        {"id": value["id"], "file_name": value["file_name"]}
        if "file_name" in value and "id" in value
        else value
    )
