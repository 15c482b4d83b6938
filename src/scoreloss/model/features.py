"""The backbone of a fitted model, over whatever inputs come: a matrix as it is, or texts or images by an encoder."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones import encoder_of
from scoreloss.backbones.encoder import Encoder
from scoreloss.checks import InputError, as_array, one_of
from scoreloss.data.dataset import KINDS, Dataset

DEFAULTS = {"matrix": "identity", "text": "tfidf"}
"""The backbone for a kind of inputs; for images one must be named."""

BLOCKS = {"matrix": 4096, "text": 1024, "image": 256}
"""So many inputs are computed together, and fewer where rows are wide."""

NUMBERS_AT_ONCE = 2**22


class Features:
    """Inputs of one kind to features of one width; safe for several threads at once."""

    def __init__(
        self,
        kind: str,
        backbone: str,
        recipe: Mapping[str, Any],
        width: int,
        encoder: Encoder | None = None,
        found_as: str | None = None,
    ) -> None:
        one_of("kind", kind, KINDS)
        if (kind == "matrix") != (backbone == "identity"):
            raise InputError(f"backbone is {backbone!r}: it is none for inputs of kind {kind}")
        self.kind, self.backbone, self.width = kind, backbone, width
        self.recipe = dict(recipe)
        self._found_as = found_as or backbone
        self._encoder = encoder
        self._lock = threading.Lock()

    def block(self, labels: int) -> int:
        """How many inputs are computed together; the same for every run of the same model."""
        widest = max(self.width if self.kind == "matrix" else 1, labels, 1)
        return max(1, min(BLOCKS[self.kind], NUMBERS_AT_ONCE // widest))

    def checked(self, inputs: Any) -> Any:
        """Inputs of the right kind: a matrix (n, d) of finite floats, texts, or paths."""
        if self.kind == "matrix":
            matrix = as_array("inputs", inputs)
            if matrix.ndim != 2 or matrix.shape[1] != self.width:
                raise InputError(
                    f"inputs have shape {matrix.shape}: the model takes a matrix of {self.width} features"
                )
            finite = np.isfinite(matrix).all(axis=1)
            if not finite.all():
                raise InputError(
                    f"inputs[{np.argmin(finite)}] holds NaN or infinity: features must be finite"
                )
            return matrix
        if isinstance(inputs, (str, Path)):
            raise InputError(f"inputs are one {type(inputs).__name__}: give a list of them")
        found = list(inputs)
        for row, value in enumerate(found):
            if not isinstance(value, (str, Path) if self.kind == "image" else str):
                wanted = "a path" if self.kind == "image" else "a text"
                raise InputError(f"inputs[{row}] is a {type(value).__name__}: the model takes {wanted} here")
        return [Path(value) for value in found] if self.kind == "image" else list(map(_whole_text, found))

    def of(self, inputs: Any) -> tuple[NDArray[np.intp], Any, dict[int, str]]:
        """Which of the checked inputs could be read, their features (dense or sparse), and why the others could not."""
        if self.kind == "matrix":
            return np.arange(len(inputs)), inputs, {}
        over = self.encoder().over(inputs)
        if self.backbone == "tfidf":
            return np.arange(len(inputs)), over.sparse(), {}  # type: ignore[attr-defined]
        with self._lock:  # tokenizers and networks are shared
            parts = list(over.encode(np.arange(len(inputs))))
        if not parts:
            return np.zeros(0, np.intp), np.zeros((0, self.width)), over.problems
        rows = np.concatenate([rows for rows, _ in parts])
        values = np.concatenate([values for _, values in parts])
        if values.shape[1] != self.width:
            raise InputError(
                f"backbone {self.backbone} gives {values.shape[1]} features: the model was fitted on {self.width}"
            )
        order = np.argsort(rows)
        return rows[order], values[order], over.problems

    def encoder(self) -> Encoder:
        """The encoder, found and compared with the one that the model was fitted with."""
        with self._lock:
            if self._encoder is None:
                self._encoder = _found(self.kind, self._found_as, self.recipe)
        return self._encoder


def _whole_text(text: str) -> str:
    """A text without halves of surrogate pairs, which tokenizers refuse."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def default_backbone(kind: str) -> str:
    """The backbone where none is named."""
    if kind not in DEFAULTS:
        raise InputError("backbone is None: for images name one, such as mobilenet_v2 (docs/backbones.md)")
    return DEFAULTS[kind]


def _found(kind: str, backbone: str, recipe: Mapping[str, Any]) -> Encoder:
    nothing: Sequence[Any] = ("",) if kind == "text" else (Path(),)
    data = Dataset("inputs", nothing, np.zeros((1, 1), bool), ("none",))
    encoder = encoder_of(data, backbone)
    if dict(encoder.recipe) != dict(recipe):
        raise InputError(
            f"backbone {backbone} is not the one that the model was fitted with: its weights or settings differ"
        )
    return encoder
