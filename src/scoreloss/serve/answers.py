"""Several requests through a model at once, each answered as if it were alone.

A matrix product of many rows rounds otherwise than one of few. So the features of all requests are made together, and
the head is applied to each request by itself where its product is dense: every answer equals ``Model.predict`` of that
request to the last bit. Networks of backbones round by batches too; there the last digits depend on the company.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scoreloss.checks import InputError
from scoreloss.model import Model, Prediction

Answer = Prediction | Exception


def together(model: Model, requests: Sequence[Any]) -> list[Answer]:
    """The prediction for each request: a matrix, texts, or images as bytes; or what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="scoreloss-") as folder:
        if model.kind == "image":
            requests = [_written(images, Path(folder) / str(k)) for k, images in enumerate(requests)]
        if len(requests) > 1 and all(len(inputs) <= model.block for inputs in requests):
            try:
                return _together(model, requests)
            except Exception:  # each alone says whose fault it is
                pass
        return [_alone(model, inputs) for inputs in requests]


def _written(images: Sequence[bytes], folder: Path) -> list[Path]:
    """Images as files, which is what backbones read."""
    folder.mkdir()
    paths = [folder / str(k) for k in range(len(images))]
    for path, content in zip(paths, images, strict=True):
        path.write_bytes(content)
    return paths


def _together(model: Model, requests: Sequence[Any]) -> list[Answer]:
    joined = np.concatenate(requests) if model.kind == "matrix" else [x for some in requests for x in some]
    rows, features, problems = model.features.of(model.features.checked(joined))
    ends = np.cumsum([0, *map(len, requests)])
    exact = not isinstance(features, np.ndarray) and len(model.head.weights) == 1
    whole = (
        model.judged(model.head.scores(features)) if exact and model.decision.kind != "expected_f1" else None
    )
    answers: list[Answer] = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        bad = [row for row in problems if start <= row < end]
        if bad:
            answers.append(_unreadable(min(bad) - start, problems[min(bad)]))
            continue
        part = slice(*np.searchsorted(rows, (start, end)).tolist())
        answers.append(
            model.judged(model.head.scores(features[part])) if whole is None else _rows(whole, part)
        )
    return answers


def _alone(model: Model, inputs: Any) -> Answer:
    try:
        if model.kind != "image":
            return model.predict(inputs)
        parts = []
        for start in range(0, len(inputs), model.block):
            _, part, problems = model.predict_readable(inputs[start : start + model.block])
            for row, why in sorted(problems.items()):
                return _unreadable(start + row, why)
            parts.append(part)
        return _whole(parts)
    except Exception as problem:
        return problem


def _unreadable(row: int, why: str) -> InputError:
    return InputError(f"inputs[{row}] cannot be read: {why}")


def _rows(found: Prediction, part: slice) -> Prediction:
    return Prediction(
        found.label_names,
        found.decided[part],
        found.scores[part],
        found.probabilities[part],
        found.expected_f1[part],
        found.on,
    )


def _whole(parts: Sequence[Prediction]) -> Prediction:
    first = parts[0]
    if len(parts) == 1:
        return first
    return Prediction(
        first.label_names,
        np.concatenate([part.decided for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
        np.concatenate([part.expected_f1 for part in parts]),
        first.on,
    )


def encoded(found: Prediction) -> bytes:
    """A prediction as the JSON of an answer: rows of what ``scoreloss predict`` writes, with all digits."""
    rows = zip(found.labels, found.expected_f1.tolist(), found.rated.tolist(), strict=True)
    predictions = [
        {
            "labels": labels,
            "expected_f1": expected,
            "scores": dict(zip(found.label_names, rated, strict=True)),
        }
        for labels, expected, rated in rows
    ]
    return json.dumps({"predictions": predictions}, allow_nan=False).encode()
