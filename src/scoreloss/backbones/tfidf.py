"""Words as features, by scikit-learn: no download, a second for ten thousand texts.

The training of heads is dense, so the features are too: the ``WORDS`` commonest words of the training texts, a column
each. Words and their rarity are learned on the texts that the caller says, which ought to be the training part.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

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
        version = _version()
        self._texts = texts_of(inputs)
        self._digests = digests(self._texts)
        fit_on = np.unique(fit_on)
        if not len(fit_on):
            raise InputError("fit_on is empty: backbone tfidf learns its words on the training texts")
        learned_from = hashlib.sha256(self._digests[fit_on].tobytes()).hexdigest()
        self.recipe: Mapping[str, Any] = {
            "backbone": "tfidf",
            "settings": SETTINGS,
            "texts": learned_from,
            "scikit-learn": version,
        }
        self.problems: dict[int, str] = {}
        texts = self._texts
        self._vectorizer = cache(lambda: _learned([texts[row] for row in fit_on]))

    @classmethod
    def restored(cls, words: Sequence[str], rarities: NDArray[np.float32]) -> Self:
        """Over no texts yet, with the words and rarities that another one ``learned``."""
        _version()
        other = cls.__new__(cls)
        other._texts, other._digests = [], digests([])
        other.recipe, other.problems = {"backbone": "tfidf", "settings": SETTINGS}, {}
        other._vectorizer = cache(lambda: _restored(words, rarities))
        return other

    def learned(self) -> tuple[list[str], NDArray[np.float32]]:
        """The words in the order of the columns, and how rare each is."""
        vectorizer = self._vectorizer()
        words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
        return words, np.asarray(vectorizer.idf_, np.float32)

    def digests(self) -> Digests:
        """Of the texts."""
        return self._digests

    def sizes(self) -> NDArray[np.int64]:
        """All alike: their order is kept."""
        return np.ones(len(self._texts), np.int64)

    def encode(self, rows: Indices) -> Batches:
        """Dense rows, a block at a time."""
        for block in np.split(rows, range(BLOCK, len(rows), BLOCK)):
            yield block, self._vectorizer().transform([self._texts[row] for row in block]).toarray()

    def over(self, inputs: Sequence[str]) -> Self:
        """The same words over other texts."""
        other = copy.copy(self)
        other._texts = texts_of(inputs)
        other._digests, other.problems = digests(other._texts), {}
        return other

    def sparse(self) -> Any:
        """All rows at once as a sparse matrix of scipy (CSR)."""
        return self._vectorizer().transform(self._texts)


def _version() -> str:
    try:
        return importlib.metadata.version("scikit-learn")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError("backbone tfidf needs scikit-learn: pip install 'scoreloss[text]'") from None


def _learned(texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings: dict[str, Any] = {**SETTINGS, "dtype": np.float32}
    try:
        return TfidfVectorizer(**settings).fit(texts)
    except ValueError as problem:
        raise InputError(
            f"backbone tfidf: no word stands in two of the {len(texts)} training texts"
        ) from problem


def _restored(words: Sequence[str], rarities: NDArray[np.float32]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings: dict[str, Any] = {**SETTINGS, "dtype": np.float32}
    vectorizer = TfidfVectorizer(**settings, vocabulary={word: k for k, word in enumerate(words)})
    vectorizer.idf_ = rarities
    return vectorizer
