"""What the documentation shows runs, and what it measures has a command that runs."""

import ast
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import scoreloss as sl
from scoreloss import catalogue
from scoreloss.bench.contenders import RECIPES
from scoreloss.cli import main
from scoreloss.torch import LOSSES, MetricLoss
from tests.conftest import needs

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]

OWN_PROCESS = {
    "docs/adding.md": ("torch",),
    "docs/frameworks.md": ("keras", "jax", "optax"),
    "docs/integrations.md": ("transformers", "accelerate", "lightning", "onnxscript", "onnxruntime"),
}
"""Pages whose snippets change what others would see, and what they need: a backend of Keras, a name for a score."""


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
        "x_validation": x,
        "y_test": y_train,
        "x_test": x,
    }


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OWN_PROCESS])
def test_snippets_run(page):
    run_snippets(page, what_a_reader_has())


def test_the_benches_that_are_shown_can_be_run(tmp_path, monkeypatch, capsys):
    """Every file and command of the page on the experiment, but for the training."""
    page = (ROOT / "docs/bench.md").read_text()
    (file,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("experiment.toml").write_text(file)
    rows = [f"word{i % 7} word{i % 5} word{i % 3},{'a|b' if i % 2 else 'b'}\n" for i in range(60)]
    Path("papers.csv").write_text("".join(["abstract,topics\n", *rows]))
    commands = re.findall(r"^scoreloss (bench .*)$", page, flags=re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        if "--engine ray" in command:
            needs("ray")
        tables = 4 if "experiment.toml" in command else 1
        assert main([*command.split(), "--dry-run", "--cache", "cache"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert len(out) == tables
        assert all(re.search(r"\d+ cells, 0 of them done; \d+ runs to train", line) for line in out)
    assert not Path("runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", OWN_PROCESS)
def test_snippets_run_in_a_process_of_their_own(page):
    """Keras is set to one of its backends before it is imported."""
    for package in OWN_PROCESS[page]:
        needs(package)
    code = f"from tests.test_docs import run_snippets; run_snippets({page!r}, {{}})"
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def run_snippets(page, names):
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        exec(compile(snippet, page, "exec"), names)
    if page == "README.md":
        assert names["labels"].shape == (64, 3)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "decisions",
        "embedding",
        "fused",
        "growth",
        "learned_sigmoid",
        "loss_step",
        "many_labels",
        "memory",
        "noise",
        "peers",
        "rankings",
        "serve_load",
        "small_batches",
        "stacked",
        "startup",
        "thresholding",
        "whole_table",
    ],
)
def test_benchmarks_run(name):
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", "--smoke"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout.splitlines()[-1])


def test_every_benchmark_is_run_and_named_where_it_is_summed_up():
    (run,) = (mark.args[1] for mark in test_benchmarks_run.pytestmark if mark.name == "parametrize")
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"svg", "timing", "results"}
    assert scripts == set(run)
    page = (ROOT / "docs/performance.md").read_text()
    assert scripts == set(re.findall(r"`(\w+)\.py`", page.split("## One step")[0]))


def test_tables_are_what_the_code_says():
    """``python docs/tables.py`` writes them."""
    for page in {page for page, _ in tables().TABLES.values()}:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert tables().filled(page, text) == text, page


def test_an_old_table_would_be_noticed():
    text = (ROOT / "docs/names.md").read_text(encoding="utf-8")
    assert tables().filled("names.md", text.replace("`gmean`", "`g`")) == text
    with pytest.raises(SystemExit, match="no place for the table"):
        tables().filled("names.md", text.replace("tables.py scores", ""))


def test_the_same_metrics_in_scikit_learn():
    """Each expression of the table gives the number that ``evaluate`` gives."""
    import sklearn.metrics

    rng = np.random.default_rng(0)
    t = rng.random((60, 5)) < 0.4
    t[:5] |= np.eye(5, dtype=bool)  # no label and no row without a positive, where scikit-learn would warn
    t[np.arange(60), rng.integers(0, 5, 60)] = True
    s = np.round(np.clip(0.4 * t + 0.6 * rng.random((60, 5)), 0, 1), 2)  # with ties
    s[np.arange(60), rng.integers(0, 5, 60)] = 0.9
    metrics = sl.evaluate(t, s)
    names = {**vars(sklearn.metrics), "t": t.astype(int), "p": (s >= 0.5).astype(int), "s": s}
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| `([^`]+)` \|", tables().metrics(), flags=re.MULTILINE)
    assert len(rows) == 23
    for name, expression in rows:
        assert metrics[name] == pytest.approx(eval(expression, names)), expression


def tables():
    """The module ``docs/tables.py``."""
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs/tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_site_is_built_strictly_and_asks_nobody_for_anything(tmp_path):
    """Every page stands in it; the reference holds every public name; no page loads anything from elsewhere."""
    needs("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for page in PAGES[1:]:
        name = page.removeprefix("docs/").removesuffix(".md").removesuffix("index").rstrip("/")
        assert (tmp_path / name / "index.html").is_file(), page
    loaded = (
        r"<(?:script|img|iframe|source)[^>]* src=[\"']?(?:https?:)?//|<link[^>]* href=[\"']?(?:https?:)?//"
    )
    assert re.search(loaded, '<link rel="stylesheet" href="https://fonts.example/css">')  # it can be found
    for path in tmp_path.rglob("*.html"):
        assert not re.search(loaded, path.read_text(encoding="utf-8")), path
    for path in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", path.read_text(encoding="utf-8")), path
    for module in ("", "torch", "keras", "sklearn", "losses"):
        text = (tmp_path / "api" / (module or "core") / "index.html").read_text(encoding="utf-8")
        for name in names_of(ROOT / "src/scoreloss" / module / "__init__.py") - {"__version__"}:
            full = ".".join(filter(None, ("scoreloss", module, name)))
            # a function may be named like the module that it comes from
            assert f'id="{full}"' in text or f'id="{full}.{name}"' in text, full


def names_of(path):
    """What a module exports, without importing it: Keras takes its backend once."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{path} exports nothing")


@pytest.mark.slow
def test_growth_is_drawn(tmp_path):
    path = tmp_path / "growth.svg"
    script = [sys.executable, "benchmarks/growth.py", "--smoke", "--svg", str(path)]
    subprocess.run(script, cwd=ROOT, capture_output=True, check=True)
    lines = ElementTree.parse(path).getroot().findall(".//{*}g/{*}path[@stroke-width]")
    assert len(lines) == 4 * 8
    points = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", lines[8].get("d")), float)
    assert len(points) == 3
    assert np.all(np.diff(points, axis=0) * [1, -1] > 0)  # the memory of bce: further right is higher up


def test_the_table_of_losses_is_the_catalogue():
    page = (ROOT / "docs/losses.md").read_text()
    shown = re.search(r"<!-- scoreloss losses --markdown -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)[1]
    assert shown == catalogue.markdown()


def test_the_catalogue_says_what_the_modules_are(capsys):
    assert [entry.name for entry in catalogue.CATALOGUE] == list(LOSSES)
    for entry in catalogue.CATALOGUE:
        kind = LOSSES[entry.name]
        loss = kind.for_targets(np.ones((2, 3), bool))
        boundary = {"ranks only": None, "1/2": 0.5}.get(entry.boundary, 0)
        assert loss.boundary is None if boundary is None else np.all(np.asarray(loss.boundary) == boundary)
        assert (entry.boundary == "-offset") == any(
            knob.startswith("offset") for knob in entry.knobs
        ) or entry.name == "mfc"
        parameters = inspect.signature(kind).parameters
        if "options" in parameters:
            parameters = {**parameters, **inspect.signature(MetricLoss).parameters}
        for knob in entry.knobs:
            name, _, default = knob.partition(" ")
            value = parameters[name].default
            if name == "offset":
                continue
            if isinstance(value, tuple):
                assert default == " ".join(map(str, value))
            elif default:
                assert value == (default if isinstance(value, str) else float(default)), (entry.name, knob)
    assert main(["losses"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("bce")
    assert main(["losses", "--markdown"]) == 0
    assert capsys.readouterr().out.rstrip() == catalogue.markdown()


@pytest.mark.slow
def test_what_a_loss_is_said_to_be_weak_at_is_what_the_bench_measures(tmp_path):
    """To a point, since another processor rounds otherwise."""
    assert main(["bench", "yeast", "--losses", "all", "--out", str(tmp_path)]) == 0
    tests = {}
    for path in (tmp_path / "cells").iterdir():
        cell = json.loads(path.read_text())
        for rule, result in cell["result"]["rules"].items():
            tests.setdefault((cell["cell"]["loss"], rule), []).append(result["test"])
    measured = {
        loss: {
            100 * np.mean([t[metric] for t in of])
            for (name, _), of in tests.items()
            if name == loss
            for metric in of[0]
        }
        for loss in LOSSES
    }
    measured["all positive"] = {59.6}
    for entry in catalogue.CATALOGUE:
        for number in map(float, re.findall(r"\d\d\.\d", entry.weak)):
            known = measured[entry.name] | measured["bce"] | measured["all positive"]
            assert min(abs(number - value) for value in known) < 1, (entry.name, number)


@pytest.mark.parametrize(
    ("example", "framework"),
    [
        pytest.param("label_count", "torch", marks=pytest.mark.slow),
        pytest.param("sklearn_pipeline", "torch", marks=pytest.mark.slow),
        pytest.param("ddp_sync", "torch", marks=pytest.mark.slow),
        pytest.param("finetune_sync", "transformers", marks=pytest.mark.slow),
        pytest.param("keras_fit", "keras", marks=pytest.mark.slow),
        pytest.param("jax_optax", "jax", marks=pytest.mark.slow),
        pytest.param("hf_trainer", "accelerate", marks=pytest.mark.slow),
        pytest.param("lightning_fit", "lightning", marks=pytest.mark.slow),
        pytest.param("onnx_export", "onnxruntime", marks=pytest.mark.slow),
    ],
)
def test_examples_run(example, framework):
    needs(framework)
    done = subprocess.run(
        [sys.executable, f"examples/{example}.py", "2"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"F1 \d", done.stdout)


def test_every_example_is_run():
    marks = {mark.name: mark for mark in test_examples_run.pytestmark}
    examples = {getattr(given, "values", given)[0] for given in marks["parametrize"].args[1]}
    assert examples == {path.stem for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.slow
def test_memory_of_a_step_stays_within_what_is_promised():
    """Of the surrogates with one sigmoid or none, whatever the score and the average."""
    done = subprocess.run(
        [sys.executable, "benchmarks/memory.py", "--smoke"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = {line[:28].strip(): float(line.split()[-4]) for line in done.stdout.splitlines()[2:]}
    assert peaks["torch's own bce"] == pytest.approx(2, abs=0.1)
    promised = [name for name in peaks if name.startswith("smooth_")]
    promised += [
        "sigmoid_f1",
        "unbounded_f1",
        "soft_f1",
        "mfc",
        "jaccard micro",
        "fbeta samples",
        "f1 2.0 -1.0",
    ]
    assert len(promised) == 12
    assert max(peaks[name] for name in promised) <= 3.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "numbers", "rounding"), [("ddp_sync", 3, 2e-3), ("finetune_sync", 22, 2e-5)]
)
def test_two_processes_train_as_one_does(example, numbers, rounding):
    """Losses, gradients and F1 that the example prints, to the rounding of sums in another order.

    How the processes end is not asked: now and then a thread of gloo aborts one that has done and said everything.
    """
    if example == "finetune_sync":
        needs("transformers")
    path = str(ROOT / f"examples/{example}.py")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    outputs = [
        subprocess.run(
            [sys.executable, *start, path, "2"], capture_output=True, text=True, check=not start
        ).stdout
        for start in ([], torchrun)
    ]
    alone, together = (np.array(re.findall(r"\d\.\d+", output), float) for output in outputs)
    assert len(alone) == numbers
    np.testing.assert_allclose(together, alone, rtol=0, atol=rounding)


def test_the_page_of_results_is_made_of_the_files_in_results():
    done = subprocess.run(
        [sys.executable, "-c", "import results; print(results.page(), end='')"],
        cwd=ROOT / "benchmarks",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "docs/results.md").read_text()


def test_the_recommended_setting_is_what_validation_chose():
    """On the page, and in the package: the variant with the highest mean validation score."""
    code = (
        "import json, results; from pyarrow.parquet import read_table\n"
        "cells = read_table(results.KEPT / 'ablation.parquet').to_pylist()\n"
        "print(results.best_variant(results._means(cells, 'validation'), results._sets_of(cells)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    plan = tomllib.loads((ROOT / "results/ablation.toml").read_text())
    (chosen,) = (loss for loss in plan["loss"] if loss["name"] == done.stdout.strip())
    loss, recipe = RECIPES["recommended"]
    assert {**recipe, "loss": loss, "name": done.stdout.strip()} == chosen
