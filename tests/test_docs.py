"""What the documentation shows runs, and what it measures has a command that runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import scoreloss as sl

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


def what_a_reader_has():
    """The names that the snippets take for granted."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y_train = rng.random((64, 3)) < 0.3
    x = torch.randn(64, 5)
    model = nn.Sequential()
    model.head = nn.Linear(5, 3)
    return {
        "sl": sl,
        "model": model,
        "optimiser": torch.optim.Adam(model.parameters()),
        "loader": [(x, torch.as_tensor(y_train).float())],
        "x_new": torch.randn(4, 5),
        "y_train": y_train,
        "y_validation": y_train,
        "scores_validation": rng.random((64, 3)),
        "y_test": y_train,
        "scores_test": rng.random((64, 3)),
    }


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page):
    names = what_a_reader_has()
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        exec(compile(snippet, page, "exec"), names)
    if page == "README.md":
        assert names["labels"].shape == (64, 3)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loss_step", "stacked"])
def test_benchmarks_run(name):
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", "--smoke"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "[" in done.stdout.splitlines()[-1]
