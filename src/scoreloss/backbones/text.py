"""Texts through a frozen encoder of sentence-transformers, the longest first, so that each batch is of one length.

A model that is no sentence encoder (DistilBERT) gives the mean over its tokens.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones import weights
from scoreloss.backbones.cache import Digests, Indices, digest_of
from scoreloss.backbones.encoder import Batches
from scoreloss.checks import InputError, reason_of

VERSION = 1
"""Rises when the same model would give other features."""

BATCH = 64
CPU_BATCH = 8
"""A few long texts stay in a processor's cache, and short ones cost no more than in larger batches."""


class TextEncoder:
    """A text model over some texts."""

    def __init__(self, name: str, inputs: Sequence[str], *, batch_size: int | None = None) -> None:
        repositories = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
        self._texts = texts_of(inputs)
        self._folder = weights.find(name, repositories)
        self._batch_size = batch_size
        self._load = cache(lambda: _loaded(name, str(self._folder)))
        self.recipe: Mapping[str, Any] = {
            "backbone": "text",
            "weights": weights.checksum(self._folder),
            "version": VERSION,
        }
        self.problems: dict[int, str] = {}

    def digests(self) -> Digests:
        """Of the texts."""
        return digests(self._texts)

    def sizes(self) -> NDArray[np.int64]:
        """Their length, at least that of a short sentence."""
        return np.array([max(len(text), 32) for text in self._texts])

    def encode(self, rows: Indices) -> Batches:
        """A batch at a time."""
        model = self._load()
        size = self._batch_size or (CPU_BATCH if model.device.type == "cpu" else BATCH)
        for some in np.split(rows, range(size, len(rows), size)):
            texts = [self._texts[row] for row in some]
            yield some, model.encode(texts, batch_size=size, show_progress_bar=False)

    def over(self, inputs: Sequence[str]) -> Self:
        """The same model over other texts."""
        other = copy.copy(self)
        other._texts, other.problems = texts_of(inputs), {}
        return other


def texts_of(inputs: Sequence[str]) -> list[str]:
    """Inputs that are texts indeed."""
    texts = list(inputs)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"inputs[{row}] is a {type(text).__name__}: a text backbone takes texts")
    return texts


def digests(texts: Sequence[str]) -> Digests:
    """A digest of every text."""
    content = b"".join(digest_of(text.encode("utf-8", "surrogatepass")) for text in texts)
    return np.frombuffer(content, np.uint64).reshape(-1, 2)


def _loaded(name: str, folder: str) -> Any:
    try:
        import sentence_transformers
    except ImportError:
        raise ImportError(
            "text backbones need sentence-transformers: pip install 'scoreloss[text]'"
        ) from None
    from transformers.utils import logging as transformers_logging

    logger = logging.getLogger("sentence_transformers")
    level, bars = logger.level, transformers_logging.is_progress_bar_enabled()
    logger.setLevel(
        logging.ERROR
    )  # it would warn that it takes the mean over tokens, which is what is wanted
    transformers_logging.disable_progress_bar()
    try:
        model = sentence_transformers.SentenceTransformer(
            folder, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
    except Exception as problem:  # a folder may be wrong in many ways
        raise InputError(
            f"backbone {name} cannot be loaded as a text encoder: {reason_of(problem)}"
        ) from problem
    finally:
        logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()
    if "text" not in getattr(model, "modalities", ["text"]):
        raise InputError(f"backbone {name} takes no text: it is a model for other inputs")
    return model
