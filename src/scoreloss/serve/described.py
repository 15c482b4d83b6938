"""What OpenAPI says of the answers, and the page that shows it: plain HTML, no script, nothing fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

ERROR = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {"error": {"type": "string", "description": "one line"}},
}
ERRORS = {
    400: "The request is no valid HTTP, or the body is no JSON",
    401: "A token is needed",
    408: "The request took too long to arrive",
    413: "The body is too large",
    415: "The content type is another",
    421: "The host is another",
    422: "The inputs are not what the model takes",
    500: "Something went wrong in the service",
    503: "Too much waits: come again after Retry-After seconds",
}
SHOWN = 100
"""So many labels are written out in the schema."""

SCORES = {"type": ["object", "null"], "description": "scores, and their 95 % intervals"}

Responses = dict[int | str, dict[str, Any]]


def predictions(labels: Sequence[str]) -> Responses:
    """Of POST /predict."""
    scores: dict[str, Any] = {
        "type": "object",
        "description": "of every label: what the rule compares with its thresholds",
        "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
    }
    if len(labels) <= SHOWN:
        scores["required"] = list(labels)
    one = {
        "type": "object",
        "required": ["labels", "expected_f1", "scores"],
        "additionalProperties": False,
        "properties": {
            "labels": {"type": "array", "items": {"type": "string"}},
            "expected_f1": {"type": "number", "minimum": 0, "maximum": 1.000001},
            "scores": scores,
        },
    }
    found = {
        "type": "object",
        "required": ["predictions"],
        "additionalProperties": False,
        "properties": {"predictions": {"type": "array", "items": one, "description": "one an input"}},
    }
    return {200: _json("The predictions", found), **_errors(*ERRORS)}


def about() -> Responses:
    """Of GET /model."""
    limits = {"inputs": {"type": "integer"}, "bytes": {"type": "integer"}}
    properties = {
        "kind": {"enum": ["matrix", "text", "image"]},
        "labels": {"type": "array", "items": {"type": "string"}},
        "thresholds": {
            "description": "one a label; inf predicts nothing; null where the rule has none",
            "type": ["array", "null"],
            "items": {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]},
        },
        "rule": {"type": "object"},
        "loss": {"type": "object"},
        "backbone": {"type": "object"},
        "validation": SCORES,
        "test": SCORES,
        "data": {"type": "object"},
        "versions": {"type": "object"},
        "limits": {"type": "object", "properties": limits},
    }
    model = {"type": "object", "required": list(properties), "properties": properties}
    return {200: _json("The model", model), **_errors(401, 421)}


def health() -> Responses:
    """Of GET /health."""
    ready = {"type": "object", "required": ["ready"], "properties": {"ready": {"type": "boolean"}}}
    return {
        200: _json("The model answers", ready),
        503: _json("The model is being loaded", ready),
        **_errors(421),
    }


def metrics(kind: str) -> Responses:
    """Of GET /metrics."""
    counts = {"description": "The counts", "content": {kind: {"schema": {"type": "string"}}}}
    return {200: counts, **_errors(401, 421)}


def _json(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(*statuses: int) -> Responses:
    return {status: _json(ERRORS[status], ERROR) for status in statuses}


def page(schema: Mapping[str, Any]) -> str:
    """The endpoints, for a person."""
    parts = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f'<div class="card"><h2>{method.upper()} {escape(path)}</h2><p>{escape(operation["summary"])}</p>'
                f"{_body(operation)}{_answers(operation)}</div>"
            )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<title>scoreloss serve: endpoints</title>
<main><header><p class="kicker">scoreloss serve</p><h1>Endpoints</h1>
<p class="small">For programs: <a href="openapi.json">openapi.json</a>. To try it: <a href="./">the page</a>.</p></header>
{"".join(parts)}</main>
</html>
"""


def _body(operation: Mapping[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return "".join(
        f"<details><summary>body, {escape(kind)}</summary>{_pretty(said['schema'])}</details>"
        for kind, said in content.items()
    )


def _answers(operation: Mapping[str, Any]) -> str:
    found = ""
    for status, said in sorted(operation["responses"].items()):
        schema = next(iter(said.get("content", {"": {}}).values())).get("schema", {})
        found += f"<details><summary>{escape(status)}: {escape(said['description'])}</summary>{_pretty(schema)}</details>"
    return found


def _pretty(schema: Any) -> str:
    return f"<pre>{escape(json.dumps(schema, indent=2, ensure_ascii=False))}</pre>"
