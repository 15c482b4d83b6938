"""``model.schema.json``, and a check of a record by it: as much of JSON Schema as that file needs, and no more."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from scoreloss.checks import InputError

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


@cache
def schema() -> dict[str, Any]:
    """The schema of ``model.json``."""
    found: dict[str, Any] = json.loads((files("scoreloss") / "model.schema.json").read_text(encoding="utf-8"))
    return found


def check(record: Any, rules: Mapping[str, Any] | None = None, where: str = "") -> None:
    """Refuse a record that the schema does not allow, by the first place where it differs."""
    rules = schema() if rules is None else rules
    place = where or "the record"
    if "$ref" in rules:
        check(record, schema()["$defs"][rules["$ref"].rpartition("/")[2]], where)
    if "anyOf" in rules:
        _any_of(record, rules["anyOf"], where)
    if "const" in rules and (record != rules["const"] or isinstance(record, bool)):
        raise InputError(f"{place} is {_short(record)}: it must be {rules['const']!r}")
    if "enum" in rules and not any(record == allowed for allowed in rules["enum"]):
        raise InputError(f"{place} is {_short(record)}: it may be {', '.join(map(repr, rules['enum']))}")
    if "type" in rules:
        names = rules["type"] if isinstance(rules["type"], list) else [rules["type"]]
        if not any(_is(record, name) for name in names):
            raise InputError(f"{place} is {_short(record)}: it must be of type {' or '.join(names)}")
    if isinstance(record, str):
        _text(record, rules, place)
    elif isinstance(record, dict):
        _object(record, rules, where)
    elif isinstance(record, list):
        _array(record, rules, where)
    elif record is not None and not isinstance(record, bool):
        low, high = rules.get("minimum", -math.inf), rules.get("maximum", math.inf)
        if not low <= record <= high:
            raise InputError(f"{place} is {_short(record)}: it must lie from {low} to {high}")


def _any_of(record: Any, choices: list[Mapping[str, Any]], where: str) -> None:
    said = ""
    for choice in choices:
        try:
            check(record, choice, where)
        except InputError as problem:
            said = str(problem)
        else:
            return
    raise InputError(said)


def _text(record: str, rules: Mapping[str, Any], place: str) -> None:
    if not rules.get("minLength", 0) <= len(record) <= rules.get("maxLength", len(record)):
        raise InputError(f"{place} has {len(record):,} characters: that is too many or too few")
    if "pattern" in rules and not re.search(rules["pattern"], record):
        raise InputError(f"{place} is {_short(record)}: it must fit {rules['pattern']}")


def _object(record: dict[str, Any], rules: Mapping[str, Any], where: str) -> None:
    known, others = rules.get("properties", {}), rules.get("additionalProperties", True)
    for name in rules.get("required", ()):
        if name not in record:
            raise InputError(f"{_inside(where, name)} is missing")
    for name, value in record.items():
        if name in known:
            check(value, known[name], _inside(where, name))
        elif others is False:
            raise InputError(f"{_inside(where, _short(name))} is not known")
        elif others is not True:
            check(value, others, _inside(where, _short(name)))


def _array(record: list[Any], rules: Mapping[str, Any], where: str) -> None:
    if not rules.get("minItems", 0) <= len(record) <= rules.get("maxItems", len(record)):
        raise InputError(f"{where} has {len(record):,} items: that is too many or too few")
    for place, value in enumerate(record):
        if "items" in rules:
            check(value, rules["items"], f"{where}[{place}]")
    if rules.get("uniqueItems") and len(set(record)) < len(record):
        twice = next(value for place, value in enumerate(record) if value in record[:place])
        raise InputError(f"{where} holds {_short(twice)} twice")


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, float) and name == "integer":
        return value.is_integer()
    return isinstance(value, TYPES[name])


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _short(value: Any) -> str:
    """A value on one line, whatever it is."""
    said = ascii(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return said if len(said) <= 60 else f"{said[:57]}..."
