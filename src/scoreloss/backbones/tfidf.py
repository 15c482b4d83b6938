"""Words as features, by scikit-learn: no download, a second for ten thousand texts.

The training of heads is dense, so the features are too: the ``WORDS`` commonest words of the training texts, a column
each. Words and their rarity are learned on the texts that the caller says, which ought to be the training part.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoreloss.backbones.cache import Digests, Indices
from scoreloss.backbones.encoder import Batches
from scoreloss.backbones.text import digests, texts_of
from scoreloss.checks import InputError

WORDS = 2000
SETTINGS = {"max_features": WORDS, "min_df": 2, "sublinear_tf": True, "strip_accents": "unicode"}
BLOCK = 1024


class Tfidf:
    """TF-IDF of texts, with words and rarities from some of them."""

    def __init__(self, inputs: Sequence[str], fit_on: Indices) -> None:
        try:
            version = importlib.metadata.version("scikit-learn")
        except importlib.metadata.PackageNotFoundError:
            raise ImportError("backbone tfidf needs scikit-learn: pip install 'scoreloss[text]'") from None
        self._texts = texts_of(inputs)
        self._digests = digests(self._texts)
        self._fit_on = np.unique(fit_on)
        if not len(self._fit_on):
            raise InputError("fit_on is empty: backbone tfidf learns its words on the training texts")
        learned_from = hashlib.sha256(self._digests[self._fit_on].tobytes()).hexdigest()
        self.recipe: Mapping[str, Any] = {
            "backbone": "tfidf",
            "settings": SETTINGS,
            "texts": learned_from,
            "scikit-learn": version,
        }
        self.problems: dict[int, str] = {}

    def digests(self) -> Digests:
        """Of the texts."""
        return self._digests

    def sizes(self) -> NDArray[np.int64]:
        """All alike: their order is kept."""
        return np.ones(len(self._texts), np.int64)

    def encode(self, rows: Indices) -> Batches:
        """Dense rows, a block at a time."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        settings: dict[str, Any] = {**SETTINGS, "dtype": np.float32}
        vectorizer = TfidfVectorizer(**settings)
        try:
            vectorizer.fit(self._texts[row] for row in self._fit_on)
        except ValueError as problem:
            raise InputError(
                f"backbone tfidf: no word stands in two of the {len(self._fit_on)} training texts"
            ) from problem
        for block in np.split(rows, range(BLOCK, len(rows), BLOCK)):
            yield block, vectorizer.transform([self._texts[row] for row in block]).toarray()
