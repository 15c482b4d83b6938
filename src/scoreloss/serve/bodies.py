"""What a request says, as inputs of a model; what is wrong with it is a ``Refused`` in one line."""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from scoreloss.model import Model

LARGEST_NUMBER = 1e100
"""Of features: beyond, products overflow."""

PIXELS, JPEG_PIXELS = 1 << 26, 1 << 27
"""Of an image; a JPEG may have more, since it is read at a smaller scale."""

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""Of images. Others of Pillow's many decoders are not let near what strangers send."""

JSON, MULTIPART = "application/json", "multipart/form-data"

_TEXTS = TypeAdapter(list[str])
_ROWS = TypeAdapter(
    list[list[Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]]]
)


class Refused(Exception):
    """A request that is answered with a status and one line."""

    def __init__(self, status: int, said: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(said)
        self.status, self.said, self.headers = status, said, headers


def schema_of(model: Model, most: int) -> dict[str, Any]:
    """The body of POST /predict for OpenAPI."""
    forms: dict[str, dict[str, Any]] = {
        "text": {"type": "string"},
        "image": {"type": "string", "contentEncoding": "base64", "description": "an image file in base64"},
        "matrix": {
            "type": "array",
            "items": {"type": "number", "minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER},
            "minItems": model.features.width,
            "maxItems": model.features.width,
        },
    }
    one = forms[model.kind]
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    body = {
        "type": "object",
        "required": ["inputs"],
        "additionalProperties": False,
        "properties": {"inputs": {"description": "one input, or several", "anyOf": [one, many]}},
    }
    content: dict[str, Any] = {JSON: {"schema": body}}
    if model.kind == "image":
        files = {"type": "array", "items": {"type": "string", "format": "binary"}, "maxItems": most}
        form = {"type": "object", "required": ["inputs"], "properties": {"inputs": files}}
        content[MULTIPART] = {"schema": {**form, "additionalProperties": False}}
    return {"required": True, "content": content}


async def inputs_of(request: Request, model: Model, most: int) -> Any:
    """The inputs of a request: a matrix, a list of texts, or a list of images as bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == MULTIPART and model.kind == "image":
        images = await _files(request, most)
    elif kind == JSON:
        found = _inputs(await request.body())
        if model.kind == "text":
            return _texts(found, most)
        if model.kind == "matrix":
            return _matrix(found, model.features.width, most)
        images = [_decoded(row, text) for row, text in enumerate(_texts(found, most))]
    else:
        takes = f"{JSON} or {MULTIPART}" if model.kind == "image" else JSON
        raise Refused(415, f"the content type is {kind[:80]!r}: {takes} is needed")
    for row, image in enumerate(images):
        check_image(row, image)
    return images


def _inputs(body: bytes) -> Any:
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError as problem:
        raise Refused(400, f"the body is no JSON: {_line(problem)}") from None
    if not isinstance(found, dict):
        raise Refused(422, 'the body must be an object: {"inputs": ...}')
    for name in found:
        if name != "inputs":
            raise Refused(422, f"the field {json.dumps(name[:80])} is unknown: inputs is the only one")
    if "inputs" not in found:
        raise Refused(422, "the field inputs is missing")
    return found["inputs"]


def _texts(found: Any, most: int) -> list[str]:
    many = [found] if isinstance(found, str) else found
    _check_many(many, most, "a text or a list of texts")
    found_texts: list[str] = _valid(_TEXTS, many)
    return found_texts


def _matrix(found: Any, width: int, most: int) -> Any:
    one = isinstance(found, list) and bool(found) and not isinstance(found[0], list)
    many = [found] if one else found
    _check_many(many, most, f"a list of {width} numbers, or a list of such lists")
    rows = _valid(_ROWS, many)
    for row, values in enumerate(rows):
        if len(values) != width:
            raise Refused(422, f"inputs[{row}] has {len(values)} numbers: the model takes {width}")
    return np.array(rows, np.float64)


def _check_many(many: Any, most: int, wanted: str) -> None:
    if not isinstance(many, list) or not many:
        raise Refused(422, f"inputs must be {wanted}")
    if len(many) > most:
        raise Refused(422, f"inputs are {len(many)}: a request may have {most}")


def _valid(adapter: TypeAdapter[Any], found: Any) -> Any:
    try:
        return adapter.validate_python(found, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f"[{part}]" for part in first["loc"])
        raise Refused(422, f"inputs{place}: {_line(first['msg'])}") from None


def _decoded(row: int, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(422, f"inputs[{row}] is no base64") from None


async def _files(request: Request, most: int) -> list[bytes]:
    try:
        async with request.form(max_files=most, max_fields=0) as form:
            images = []
            for name, value in form.multi_items():
                if name != "inputs" or not isinstance(value, UploadFile):
                    raise Refused(422, f"the part {json.dumps(name[:80])} is unknown: inputs are files")
                images.append(await value.read())
    except HTTPException as problem:
        raise Refused(422, f"the form cannot be read: {_line(problem.detail)}") from None
    if not images:
        raise Refused(422, "the form has no files: inputs is missing")
    return images


def check_image(row: int, content: bytes) -> None:
    """Refuse what is no image, or has too many pixels, by its first bytes."""
    from PIL import Image
    from PIL.JpegImagePlugin import JpegImageFile

    is_jpeg, file = content[:3] == b"\xff\xd8\xff", io.BytesIO(content)
    most = JPEG_PIXELS if is_jpeg else PIXELS
    try:
        with JpegImageFile(file) if is_jpeg else Image.open(file, formats=FORMATS) as image:
            pixels = image.width * image.height
    except Image.DecompressionBombError:
        pixels = most + 1
    except Exception:  # a damaged file fails in as many ways as there are decoders
        raise Refused(422, f"inputs[{row}] is no image that can be read") from None
    if pixels > most:
        raise Refused(422, f"inputs[{row}] has too many pixels: {most:,} may be")


def _line(problem: object) -> str:
    said = " ".join(str(problem).split())
    return said[:200]
