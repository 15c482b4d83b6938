"""The losses in Keras, with each of its backends, and what importing a framework loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.test_package import loaded_by

ROOT = Path(__file__).parent.parent


def run(*command, **environment):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_keras(backend):
    """Keras takes its backend from the environment, before it is imported."""
    for framework in ("keras", backend):
        needs(framework)
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/keras_checks.py", KERAS_BACKEND=backend)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.slow
def test_the_bench_says_what_trained_its_heads(tmp_path):
    import json

    needs("keras")
    options = [
        "--epochs",
        "1",
        "--seeds",
        "1",
        "--head",
        "linear",
        "--framework",
        "keras",
        "--out",
        str(tmp_path),
    ]
    done = run("-m", "scoreloss", "bench", "yeast", "--losses", "bce,deep_f", *options, KERAS_BACKEND="torch")
    assert done.returncode == 0, done.stderr
    cells = [json.loads(path.read_text()) for path in (tmp_path / "cells").iterdir()]
    assert {cell["cell"]["settings"]["framework"] for cell in cells} == {"keras"}
    assert {cell["result"]["versions"]["keras_backend"] for cell in cells} == {"torch"}
    assert "trained with keras" in (tmp_path / "report.html").read_text()
    done = run("-m", "scoreloss", "bench", "yeast", "--losses", "mfc", *options, KERAS_BACKEND="torch")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(
        "loss is 'mfc': it has parameters of its own, which the bench trains in torch alone\n"
    )


@pytest.mark.slow
def test_torch_and_jax_load_no_other_framework():
    needs("jax")
    assert loaded_by("import scoreloss.jax") == ["jax"]
    assert loaded_by("import scoreloss.torch") == ["torch"]


@pytest.mark.slow
def test_keras_with_tensorflow_loads_no_torch():
    needs("tensorflow")
    loaded = loaded_by("import os; os.environ['KERAS_BACKEND'] = 'tensorflow'; import scoreloss.keras")
    assert "tensorflow" in loaded
    assert "torch" not in loaded


@pytest.mark.parametrize("framework", ["keras", "jax"])
def test_a_missing_framework_is_one_clear_line(framework):
    done = run("-c", f"import sys; sys.modules['{framework}'] = None; import scoreloss.{framework}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: scoreloss.{framework} needs")
    assert f"pip install 'scoreloss[{framework}]'" in last


def test_a_framework_that_is_missing_skips_its_tests_but_not_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="is not installed"):
        needs("no_such_framework")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="would be skipped in CI"):
        needs("no_such_framework")
