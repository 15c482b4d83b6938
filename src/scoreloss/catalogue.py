"""The table of losses that ``scoreloss losses`` prints and the documentation shows. It needs no framework.

``weak`` says what a loss is bad at, with weighted F1 and other scores on the test part of yeast in percent, as
``scoreloss bench yeast --losses all`` measures them; "with thresholds" is the column of ``PerLabel``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ORIGIN = "Bénédict et al. 2022"
METRIC_KNOBS = ("slope 1", "offset 0", "average macro", "empty zero", "smoothing 0", "learnable", "init")


@dataclass(frozen=True)
class Entry:
    """One loss."""

    name: str
    paper: str
    optimises: str
    knobs: tuple[str, ...]
    boundary: str
    weak: str


CATALOGUE = (
    Entry(
        "bce",
        "Cox 1958",
        "the likelihood of each entry",
        ("pos_weight",),
        "0",
        "knows no score: 59.4 at its boundary, 64.4 with thresholds",
    ),
    Entry(
        "focal",
        "Lin et al. 2017",
        "bce, entries that are nearly right count less",
        ("alpha 0.25", "gamma 2"),
        "0",
        "alpha 0.25 holds positives back: 56.9 at its boundary, 64.0 with thresholds",
    ),
    Entry(
        "asymmetric",
        "Ridnik et al. 2021",
        "bce without the easy negatives",
        ("gamma_neg 4", "gamma_pos 1", "clip 0.05"),
        "0",
        "predicts too much: precision 52.2 where bce has 63.3; its scores are no probabilities",
    ),
    Entry(
        "poly1",
        "Leng et al. 2022",
        "bce or focal plus its first polynomial term",
        ("epsilon 1", "alpha", "gamma 0"),
        "0",
        "knows no score, like bce: 59.9 at its boundary, 64.5 with thresholds",
    ),
    Entry(
        "hill",
        "Zhang et al. 2021",
        "bce that spares negatives somebody may have forgotten",
        (),
        "0",
        "ranks less well: mAP 46.1 where bce has 49.3",
    ),
    Entry(
        "sigmoid_f1",
        ORIGIN,
        "F1 of soft counts",
        METRIC_KNOBS,
        "-offset",
        "ranks less well: mAP 45.5 where bce has 49.3; thresholds add half a point to its 63.9",
    ),
    Entry(
        "unbounded_f1",
        ORIGIN,
        "F1 of the logits themselves",
        ("average macro", "empty zero", "smoothing 0"),
        "1/2",
        "has no minimum, so it leaves what it has learned: 61.9, mAP 41.6",
    ),
    Entry(
        "smooth_accuracy",
        ORIGIN,
        "accuracy of soft counts",
        METRIC_KNOBS,
        "-offset",
        "gives rare labels up: 46.5, macro F1 24.6",
    ),
    Entry(
        "smooth_precision",
        ORIGIN,
        "precision of soft counts",
        METRIC_KNOBS,
        "-offset",
        "predicts only what is certain: 44.8",
    ),
    Entry(
        "smooth_npv",
        ORIGIN,
        "precision of the negatives, of soft counts",
        METRIC_KNOBS,
        "-offset",
        "leaves out only what is certain: 60.4, next to the 59.6 of all labels always",
    ),
    Entry(
        "smooth_recall",
        ORIGIN,
        "recall of soft counts",
        METRIC_KNOBS,
        "-offset",
        "predicts all labels always: 59.6, that floor itself",
    ),
    Entry(
        "smooth_specificity",
        ORIGIN,
        "recall of the negatives, of soft counts",
        METRIC_KNOBS,
        "-offset",
        "predicts next to nothing: 16.6",
    ),
    Entry(
        "soft_f1",
        "Maiza 2019",
        "F1 of soft counts: sigmoid_f1 as it is by default",
        ("average macro", "empty zero", "smoothing 0"),
        "0",
        "as sigmoid_f1: 63.9, mAP 45.5",
    ),
    Entry(
        "double_soft_f1",
        "Maiza 2019",
        "the mean of F1 and of F1 on the negatives",
        ("average macro", "smoothing 0"),
        "0",
        "half of it looks after negatives: 60.2 at its boundary, 64.4 with thresholds",
    ),
    Entry(
        "mfc",
        "after " + ORIGIN,
        "micro F1 of soft counts, an offset learned for each label",
        ("slope 1",),
        "-offset",
        "gives rare labels up: micro F1 66.2, macro F1 41.4",
    ),
    Entry(
        "hinge_f1",
        "Eban et al. 2017",
        "a bound on micro F1",
        (),
        "0",
        "gives rare labels up: micro F1 66.1, macro F1 43.8",
    ),
    Entry(
        "precision_at_recall",
        "Eban et al. 2017",
        "precision of each label at a given recall",
        ("recall 0.8", "bound log"),
        "0",
        "its bound is loose, so it may stop above the recall it was asked for: 60.0",
    ),
    Entry(
        "recall_at_precision",
        "Eban et al. 2017",
        "recall of each label at a given precision",
        ("precision 0.8", "bound log"),
        "0",
        "asks the same of labels that cannot give it: precision 61.9 where 80 was asked for",
    ),
    Entry(
        "aucpr",
        "Eban et al. 2017",
        "the area under the curve of precision and recall",
        ("anchors 20", "bound log"),
        "ranks only",
        "costs a pass for each anchor and ranks no better: mAP 48.7 where bce has 49.3",
    ),
    Entry(
        "pick_all_labels",
        "Menon et al. 2019",
        "the rank of a row's positives, by softmax",
        ("normalised", "pick_one"),
        "ranks only",
        "knows nothing of how many labels a row has: macro F1 45.4 under one threshold, bce 46.9",
    ),
    Entry(
        "bp_mll",
        "Zhang and Zhou 2006",
        "pairs of a row in the right order",
        (),
        "ranks only",
        "tanh goes flat: mAP 47.0 where bce has 49.3",
    ),
    Entry(
        "zlpr",
        "Su et al. 2022",
        "positives above a zero, negatives below, the worst of each first",
        (),
        "0",
        "knows no score: 59.0 at its boundary, 63.9 with thresholds",
    ),
    Entry(
        "two_way",
        "Kobayashi 2023",
        "positives above negatives, in each row and in each label",
        ("temperature 4",),
        "ranks only",
        "has no boundary; with thresholds 64.3, mAP 49.3",
    ),
    Entry(
        "recall_at_k",
        "Patel et al. 2022",
        "recall among a row's k best labels",
        ("k 1 2 4 8 16", "rank_temperature 0.01", "top_temperature 1"),
        "ranks only",
        "ranks further apart than its temperature have no gradient: mAP 44.6 where bce has 49.3",
    ),
    Entry(
        "lambda_loss",
        "Wang et al. 2018",
        "NDCG of a row",
        (),
        "ranks only",
        "compares all pairs, so memory grows with their number: mAP 47.0 where bce has 49.3",
    ),
    Entry(
        "deep_f",
        "Decubber et al. 2018",
        "the joint chance of a label and of the number of labels",
        ("most",),
        "0",
        "needs most + 1 logits a label, and a decoder to gain from them: 58.3 at its boundary",
    ),
)


def text(entries: Iterable[Entry] = CATALOGUE) -> str:
    """The table for a terminal."""
    titles = ("loss", "paper", "optimises", "boundary", "knobs")
    rows = [(e.name, e.paper, e.optimises, e.boundary, ", ".join(e.knobs) or "-") for e in entries]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return "\n".join(_line(row, widths) for row in (titles, *rows))


def markdown(entries: Iterable[Entry] = CATALOGUE) -> str:
    """The table for the documentation."""
    lines = ["| loss | paper | optimises | boundary | knobs | weak at |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{e.name}` | {e.paper} | {e.optimises} | {e.boundary} | {', '.join(e.knobs) or '-'} | {e.weak} |"
        for e in entries
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
