"""What is released: a wheel and a source distribution that work where numpy is all there is."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import scoreloss
from tests.conftest import needs

ROOT = Path(__file__).parent.parent


def run(*command, **options):
    """What a command says on standard output; it must succeed, and is not told where this checkout is."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, the wheel built from the latter, as an index would get them."""
    for package in ("build", "hatchling"):
        needs(package)
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """The interpreter of an environment with the wheel and numpy, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    site = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    files = metadata.files("numpy") or []
    for name in {file.parts[0] for file in files if file.parts[0] != ".."}:
        (site / name).symlink_to(Path(str(metadata.distribution("numpy").locate_file(name))))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", str(built[0]))  # finds that numpy is there
    run(*pip, "check")
    return python


@pytest.mark.slow
def test_the_wheel_works_with_numpy_alone(bare, tmp_path):
    found = run(
        str(bare),
        "-c",
        "import importlib.metadata as m, pathlib, scoreloss as sl\n"
        "print(*sorted(d.metadata['Name'] for d in m.distributions()))\n"
        "print(pathlib.Path(sl.__file__).parent)\n"
        "print(sl.evaluate([[1, 0], [1, 1]], [[0.9, 0.2], [0.8, 0.4]])['micro_f1'])\n"
        "print(sl.PerLabel().fit([[1], [0]], [[0.9], [0.1]]).predict([[0.9]]).tolist())",
        cwd=tmp_path,
    ).splitlines()
    assert found[0] == "numpy scoreloss"
    assert not Path(found[1]).is_relative_to(ROOT)
    assert found[2:] == ["0.8", "[[True]]"]
    said = run(str(bare.with_name("scoreloss")), "--version", cwd=tmp_path)
    assert said == f"scoreloss {scoreloss.__version__}\n"
    assert "sigmoid_f1" in run(str(bare.with_name("scoreloss")), "losses", cwd=tmp_path)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_all_its_data(built):
    """Every file of the package that git knows, and nothing besides."""
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
        info = next(name for name in names if name.endswith("/METADATA"))
        described = wheel.read(info).decode()
    ours = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert ours == {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/scoreloss").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for file in ("py.typed", "bench/published.json", "bench/report/page.css", "bench/report/page.js"):
        assert f"scoreloss/{file}" in ours
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert f"\nVersion: {scoreloss.__version__}\n" in described
    required = [
        line for line in described.splitlines() if line.startswith("Requires-Dist") and ";" not in line
    ]
    assert required == ["Requires-Dist: numpy>=2.0"]


@pytest.mark.slow
def test_the_source_distribution_can_be_tested(built):
    with tarfile.open(built[1]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    for file in (
        "pyproject.toml",
        "constraints.txt",
        "Makefile",
        "mkdocs.yml",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "tests/test_release.py",
        "docs/index.md",
        "docs/tables.py",
        "examples/keras_fit.py",
        "src/scoreloss/py.typed",
    ):
        assert file in names
    assert not [name for name in names if name.startswith(("runs/", "site/", ".venv/"))]


TORCH = """AUCPR BCE BPMLL LOSSES MFC OPS ZLPR Asymmetric DeepF DoubleSoftF1 Focal Hill HingeF1 LabelCount LabelPowerset
LambdaLoss Loss MetricLoss Mix PickAllLabels Poly1 PrecisionAtRecall RecallAtK RecallAtPrecision SigmoidF1 SmoothAccuracy
SmoothNPV SmoothPrecision SmoothRecall SmoothSpecificity SoftF1 StackedLinear TwoWay UnboundedF1 fused_linear_loss
large_batch_step start_at_priors warm_up"""

KERAS = """BCE BPMLL LOSSES OPS ZLPR Asymmetric DeepF DoubleSoftF1 Focal Hill HingeF1 LambdaLoss Loss MetricLoss PickAllLabels
Poly1 PriorBias RecallAtK Score SigmoidF1 SmoothAccuracy SmoothNPV SmoothPrecision SmoothRecall SmoothSpecificity SoftF1
TwoWay UnboundedF1"""

JAX = """OPS start_at_priors asymmetric aucpr bce bp_mll deep_f double_soft_f1 focal hill hinge_f1 lambda_loss metric_loss mfc
pick_all_labels poly1 precision_at_recall recall_at_k recall_at_precision sigmoid_f1 smooth_accuracy smooth_npv
smooth_precision smooth_recall smooth_specificity soft_f1 two_way unbounded_f1 zlpr"""

SKLEARN = "ThresholdTunedClassifier TorchMultilabelClassifier"


@pytest.mark.parametrize(
    ("module", "names", "framework"),
    [
        ("torch", TORCH, "torch"),
        pytest.param("keras", KERAS, "keras", marks=pytest.mark.slow),
        pytest.param("jax", JAX, "jax", marks=pytest.mark.slow),
        pytest.param("sklearn", SKLEARN, "sklearn", marks=pytest.mark.slow),
    ],
)
def test_exported_names(module, names, framework):
    """In a process of its own: Keras takes its backend once."""
    needs(framework)
    code = f"import scoreloss.{module} as m; print(*sorted(m.__all__)); assert all(hasattr(m, n) for n in m.__all__)"
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(names.split())
