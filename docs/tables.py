"""The tables of the documentation that are made from the code: python docs/tables.py writes them into their pages.

A table stands between the two comments that name it; the table of losses is ``scoreloss losses --markdown``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import scoreloss as sl
from scoreloss import thresholds
from scoreloss.checks import InputError
from scoreloss.data.formats import EMBEDDED, FORMATS, OWN
from scoreloss.metrics import AVERAGED, ECE_BINS, PRECISION_AT
from scoreloss.scores import has_tp_factor, is_rational
from scoreloss.surrogates import HINGE_BOUNDS

DOCS = Path(__file__).parent

AVERAGES = {
    "micro": "of the counts of all labels together",
    "macro": "of each label, then the mean",
    "weighted": "of each label, then the mean by positives",
    "samples": "of each row, then the mean",
}

METRICS = {
    "hamming_loss": ("the share of entries that are wrong", "hamming_loss(t, p)"),
    "subset_accuracy": ("the share of rows without a wrong entry", "accuracy_score(t, p)"),
    "map": ("average precision of each label, interpolated, then the mean", ""),
    "average_precision": ("average precision of each label, then the mean", "average_precision_score(t, s)"),
    "lrap": (
        "of each positive the precision down to it among the row's labels, then the mean",
        "label_ranking_average_precision_score(t, s)",
    ),
    "coverage_error": ("how far down a row all its positives are found", "coverage_error(t, s)"),
    "ranking_loss": ("the share of a row's pairs in the wrong order", "label_ranking_loss(t, s)"),
    **{
        f"precision_at_{k}": (f"the share of positives among the best {k} of a row's labels", "")
        for k in PRECISION_AT
    },
    "brier": ("the mean squared error of all entries", "brier_score_loss(t.ravel(), s.ravel())"),
    "ece": (f"how far probabilities are from frequencies, in {ECE_BINS} equal bins of all entries", ""),
}
"""Of those without an average: what it is, and the same in scikit-learn."""

PAPER = {
    "micro_f1": "macro F1",
    "macro_f1": "micro F1",
    "weighted_f1": "weighted F1, but for a division",
    "map": "mAP",
}


def metrics() -> str:
    """What ``evaluate`` gives."""
    rows = []
    for name in sl.evaluate([[1, 0]], [[0.9, 0.2]]):
        average, _, score = name.partition("_")
        if average in AVERAGES and score in AVERAGED:
            what, same = f"{score} {AVERAGES[average]}", f'{score}_score(t, p, average="{average}")'
        else:
            what, same = METRICS[name]
        rows.append((_code(name), what, _code(same), PAPER.get(name, "")))
    return _table(("metric", "what it is", "scikit-learn", "the paper"), rows)


def scores() -> str:
    """Every confusion-matrix score."""
    rows = [
        (
            _code(name),
            _first(score),
            ", ".join(_code(option) for option in _options(score)),
            "yes" if has_tp_factor(score) else "",
            ", ".join(
                surrogate
                for surrogate, takes in (("linear", is_rational(score)), ("hinge", score in HINGE_BOUNDS))
                if takes
            ),
        )
        for name, score in sl.SCORES.items()
    ]
    return _table(("score", "formula", "options", "empty", "unbounded surrogates"), rows)


def formats() -> str:
    """What a dataset may be."""
    named = {**EMBEDDED, **{f"{name}:PATH": form for name, form in FORMATS.items()}}
    rows = [
        (
            _code(name),
            form.kind,
            form.needs if ":" in name else form.source,
            _flags(form.read),
            f"<{form.source}>" if ":" in name else form.needs,
        )
        for name, form in named.items()
    ]
    return _table(("DATASET", "inputs", "what it is", "options", "where it is to be had"), rows)


def endings() -> str:
    """Files of one's own: endings that are read alike, and the options."""
    alike: dict[Callable[..., Any], list[str]] = {}
    for ending, read in OWN.items():
        alike.setdefault(read, []).append(_code(ending))
    rows = [(" ".join(names), _flags(read)) for read, names in alike.items()]
    return _table(("file", "options"), rows)


def rules() -> str:
    """Threshold rules, tried on a few scores to see what they learn from."""
    rows = []
    for name in thresholds.__all__:
        kind = getattr(thresholds, name)
        if kind is not thresholds.Rule:
            rows.append((_code(name + _arguments(kind)), _first(kind), _learns_from(kind), _takes(kind)))
    return _table(("rule", "what it does", "learns from", "takes"), rows)


def _arguments(kind: Any) -> str:
    """What it is called with, and the defaults."""
    parameters = inspect.signature(kind).parameters.values()
    named = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    return f"({', '.join(named)})"


def _made(kind: Any) -> thresholds.Rule:
    return kind(1) if kind is thresholds.TopK else kind()


def _learns_from(kind: Any) -> str:
    """Whether the targets it is fitted on make a difference, or the scores."""

    def learned(targets: Any, scores: Any) -> list[Any]:
        rule = _made(kind).fit(targets, scores)
        return [np.asarray(v).tolist() for k, v in sorted(vars(rule).items()) if k.endswith("_")]

    one, other = np.array([[1, 0], [1, 1], [0, 1], [0, 0]]), np.array([[0, 1], [1, 0], [1, 1], [1, 0]])
    given = np.array([[0.9, 0.1], [0.8, 0.7], [0.3, 0.6], [0.2, 0.4]])
    if learned(one, given) != learned(other, given):
        return "targets and scores"
    return "scores" if learned(one, given) != learned(one, given / 2) else "nothing"


def _takes(kind: Any) -> str:
    try:
        _made(kind).fit([[1, 0], [0, 1]], [[7.0, -3.0], [2.0, 1.0]])
    except InputError:
        return "probabilities"
    return "any scores"


def _first(thing: Any) -> str:
    """The first paragraph of a docstring, in one line, without the full stop."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".").replace("``", "`")


def _options(function: Callable[..., Any]) -> list[str]:
    """Keyword-only arguments with their defaults."""
    return [
        f"{p.name}={p.default}" if p.default is not None else p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    ]


def _flags(read: Callable[..., Any]) -> str:
    """The options of a reader, as the command line has them."""
    return ", ".join(_code(f"--{option.partition('=')[0]}") for option in _options(read))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES = {
    "metrics": ("names.md", metrics),
    "scores": ("names.md", scores),
    "formats": ("data.md", formats),
    "endings": ("data.md", endings),
    "rules": ("thresholds.md", rules),
}
"""By name: the page it stands in, and what makes it."""


def filled(page: str, text: str) -> str:
    """A page with its tables as the code has them now."""
    for name, (place, make) in TABLES.items():
        if place == page:
            begin, end = f"<!-- python docs/tables.py {name} -->", "<!-- end -->"
            before, _, rest = text.partition(begin)
            if not rest:
                raise SystemExit(f"{page} has no place for the table {name}: {begin}")
            text = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    for page in sorted({page for page, _ in TABLES.values()}):
        path = DOCS / page
        text = path.read_text(encoding="utf-8")
        if (now := filled(page, text)) != text:
            path.write_text(now, encoding="utf-8")
            print(f"{path.name} changed", file=sys.stderr)


if __name__ == "__main__":
    main()
