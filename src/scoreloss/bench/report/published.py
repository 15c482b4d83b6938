"""The numbers that the paper published, under the names that they have here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

DATASETS = {
    "arxiv": "arXiv2020",
    "cancer_hallmarks": "cancerHallmarks",
    "chemical_exposure": "chemicalExposure",
    "coco": "MS-COCO",
    "movie_posters": "moviePosters",
    "voc": "Pascal-VOC",
}
LOSSES = {"asl": "asymmetric"}
PLAIN = {
    "weightedF1": "weighted_f1",
    "microF1": "micro_f1",
    "macroF1": "macro_f1",
    "precision": "macro_precision",
    "mAP": "map",
}
SWAPPED = {**PLAIN, "microF1": "macro_f1", "macroF1": "micro_f1"}
"""The main table and that of threshold averaging swap the two; the single runs do not, by their sizes."""

SECTIONS = {"main_results": SWAPPED, "threshold_averaging": SWAPPED, "additional_results": PLAIN}


@dataclass(frozen=True)
class Published:
    """What the paper printed for one dataset."""

    name: str
    columns: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Title of a column -> loss -> metric -> percent."""
    minutes: Mapping[str, float]
    """Loss -> training time."""
    note: str


@dataclass(frozen=True)
class Setting:
    """How the paper ran one dataset, as far as it says so."""

    name: str
    kind: str
    backbone: str
    epochs: int
    threshold: float
    """On sigmoid(z)."""
    min_count: int
    """Labels of fewer examples were left out."""
    examples: int
    labels: int
    beta: float
    eta: float
    seeds: int
    batch_size: int


def setting(dataset: str) -> Setting:
    """How the paper ran a dataset, by the name it has here."""
    paper, name = _paper(), DATASETS[dataset]
    said, about = paper["settings"], paper["datasets"][name]
    table = paper["main_results"].get(name) or paper["additional_results"][name]
    optimum = said["reported_optimum"][about["type"]]
    return Setting(
        name,
        about["type"],
        table["backbone"],
        said["epochs"][name],
        table["threshold"],
        said["min_label_count"].get(name, 0),
        about["examples"],
        about.get("kept_classes", about["classes"]),
        optimum["beta"],
        optimum["eta"],
        said["seeds"],
        said["batch_size"],
    )


def has(section: str, dataset: str) -> bool:
    """Whether a dataset stands in one of the paper's tables."""
    return DATASETS[dataset] in _paper()[section]


def printed(section: str, dataset: str) -> dict[str, dict[str, float]]:
    """Loss -> metric by the paper's own name -> percent, of one of its tables; empty where it has no such."""
    scores = _paper()[section].get(DATASETS[dataset], {}).get("scores", {})
    return {LOSSES.get(loss, loss): dict(values) for loss, values in scores.items()}


@cache
def _paper() -> dict[str, Any]:
    source = files("scoreloss.bench") / "published.json"
    return dict(json.loads(source.read_text(encoding="utf-8")))


def published(dataset: str) -> Published | None:
    """What the paper has for a dataset, by the name it has here; None where it has nothing."""
    name = DATASETS.get(dataset)
    if name is None:
        return None
    paper = _paper()
    columns, backbones = {}, []
    for section, names in SECTIONS.items():
        printed = paper[section].get(name)
        if printed is None:
            continue
        where = printed.get("rule", f"at {printed.get('threshold')}")
        once = ", one run" if printed.get("runs") == 1 else ""
        columns[f"paper, {where}{once}"] = {
            LOSSES.get(loss, loss): {names[metric]: value for metric, value in scores.items()}
            for loss, scores in printed["scores"].items()
        }
        backbones.append(printed["backbone"])
    about = paper["datasets"][name]
    minutes = paper["training_minutes"].get(name, {})
    return Published(
        name,
        columns,
        {LOSSES.get(loss, loss): value for loss, value in minutes.items()},
        f"The paper's numbers are those of its {name}: {about['examples']:,} examples, "
        f"{about.get('kept_classes', about['classes'])} labels, {backbones[0]} trained as a whole, thresholds on sigmoid(z). "
        "Trained otherwise, and in part on other examples: they stand beside the measured ones, and no test compares them.",
    )
