"""What a benchmark found, shown: a table for the terminal, one HTML page, Markdown, LaTeX and Parquet.

``names`` says what everything is called, ``text`` is for the terminal, ``export`` for other programs; ``figures``
gathers what the page draws, and ``page`` writes it. Nothing here trains, and nothing reads a file of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scoreloss.bench.report.export import markdown, parquet, tex
from scoreloss.bench.report.page import html
from scoreloss.bench.report.text import headline, text
from scoreloss.bench.results import Results
from scoreloss.checks import InputError
from scoreloss.files import write_whole

__all__ = ["headline", "html", "markdown", "parquet", "tex", "text", "write"]


def write(folder: Path, results: Sequence[Results]) -> Path:
    """Write report.md, table.tex, cells.parquet and report.html, and return the path of the last."""
    for found in results:
        if any(cell.settings.judged != "bench" for cell in found.found):
            raise InputError(
                f"{found.data.name} is judged by the paper's thresholds: scoreloss reproduce writes its tables"
            )
    write_whole(folder / "report.md", markdown(results))
    write_whole(folder / "table.tex", tex(results))
    write_whole(folder / "cells.parquet", parquet(results))
    page = folder / "report.html"
    write_whole(page, html(results))
    return page
