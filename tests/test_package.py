"""What importing costs, which way imports point, and which names are there."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import scoreloss

ROOT = Path(scoreloss.__file__).parent
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "scipy", "river", "pandas", "transformers")

LAYERS = [
    ["scores", "counts", "catalogue"],
    ["checks", "say"],
    ["ops", "files", "blocks"],
    ["hard", "surrogates"],
    ["losses.shared", "split"],
    ["losses.entries", "losses.rankings", "losses.metric", "losses.bounds"],
    ["losses.options", "start"],
    ["losses.definitions"],
    ["losses"],
    ["jax"],
    ["keras.ops"],
    ["keras.base"],
    ["keras.losses"],
    ["keras.score", "keras.start"],
    ["keras"],
    ["torch.ops"],
    ["torch.sync"],
    ["torch.base"],
    ["torch.entries", "torch.metric", "torch.rankings", "torch.bounds", "torch.mix", "torch.reductions"],
    ["torch.start", "torch.large_batch", "torch.fused"],
    ["torch"],
    ["data.dataset", "data.reading", "data.inert"],
    ["data.examples", "data.rows", "data.arff", "data.statistics"],
    ["data.table", "data.npz", "data.yeast", "data.movies", "data.mulan", "data.meka"],
    ["data.movie_posters", "data.arxiv", "data.voc", "data.coco", "data.sentence_labels", "data.goemotions"],
    ["data.formats"],
    ["data"],
    ["thresholds.rule", "decode", "calibrate"],
    ["thresholds.given", "thresholds.searched", "thresholds.expected"],
    ["backbones.cache", "backbones.weights", "backbones.identity"],
    ["backbones.encoder"],
    ["backbones.text", "backbones.image"],
    ["backbones.tfidf", "backbones.timm"],
    ["backbones"],
    ["thresholds"],
    ["metrics"],
    ["bench.as_coded"],
    ["bench.contenders", "bench.splits"],
    ["bench.plan"],
    ["bench.packed", "bench.across"],
    ["bench.train", "bench.decide", "bench.store", "bench.stats"],
    ["bench.train_keras", "bench.material"],
    ["bench.search"],
    ["bench.engines", "bench.results"],
    ["bench.report.names", "bench.report.published"],
    ["bench.report.text", "bench.report.figures"],
    ["bench.report.export", "bench.report.page", "bench.report.paper"],
    ["bench.report"],
    ["bench.run"],
    ["bench.experiment", "bench.estimate"],
    ["bench.reproduce"],
    ["bench"],
    ["sklearn.targets", "sklearn.saved", "sklearn.training"],
    ["sklearn.head"],
    ["sklearn.tuned"],
    ["sklearn"],
    ["model.schema", "model.features", "model.numbers", "model.card"],
    ["model.fitted"],
    ["model.choose", "model.folder", "model.inputs", "model.outputs"],
    ["model.classifier", "model.stream", "model.evaluation"],
    ["model"],
    ["__init__"],
    ["serve.limits", "serve.batches", "serve.metrics", "serve.described", "serve.answers", "serve.bodies"],
    ["serve.guard", "serve.protocol"],
    ["serve.app"],
    ["serve.run"],
    ["serve"],
    ["cli.progress", "cli.datasets"],
    [
        "cli.bench",
        "cli.data",
        "cli.embed",
        "cli.losses",
        "cli.report",
        "cli.reproduce",
        "cli.fit",
        "cli.predict",
        "cli.evaluate",
        "cli.serve",
    ],
    ["cli"],
    ["__main__"],
]
"""A module may import from lines above its own, never from its own line or below."""


def loaded_by(statement):
    """The frameworks that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*[f for f in {FRAMEWORKS} if f in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_no_framework():
    assert loaded_by("import scoreloss") == []


def test_reading_yeast_loads_no_framework():
    assert loaded_by("import scoreloss.data; scoreloss.data.load('yeast')") == []


def test_the_classifier_is_there_when_it_is_asked_for():
    assert loaded_by("import scoreloss; scoreloss.Classifier()") == []
    with pytest.raises(AttributeError, match="no attribute 'Classfier'"):
        _ = scoreloss.Classfier


def test_metrics_and_rules_load_no_framework():
    """Scipy is for those who pass a matrix of it, and have it loaded."""
    use = "y, s = [[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]]; sl.evaluate(y, s); sl.PerLabel().fit(y, s).predict(s)"
    assert loaded_by(f"import scoreloss as sl; {use}") == []


def test_that_a_framework_would_be_noticed():
    assert loaded_by("import scoreloss.torch") == ["torch"]


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[-1] == "__init__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)


def imports_of(path):
    """The modules of this package that a file imports to run (not those for type checking alone)."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scoreloss":
            base = node.module.partition(".")[2]
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                known = {module_name(p) for p in ROOT.rglob("*.py")}
                yield inner if inner in known else base or "__init__"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=module_name)
def test_imports_point_backwards_only(path):
    place = {name: row for row, names in enumerate(LAYERS) for name in names}
    name = module_name(path)
    assert name in place, f"put {name} into LAYERS"
    for imported in imports_of(path):
        assert place[imported] < place[name], f"{name} imports {imported}"


def test_exported_names():
    assert sorted(scoreloss.__all__) == sorted(
        [
            "SCORES",
            "Averaging",
            "Classifier",
            "Dataset",
            "ExpectedF1",
            "Fixed",
            "Global",
            "Lipton",
            "PerLabel",
            "TopK",
            "__version__",
            "calibrate",
            "evaluate",
            "label_frequencies",
            "logits_from",
            "reliability",
            "stratified_split",
        ]
    )
    assert all(hasattr(scoreloss, name) for name in scoreloss.__all__)


def test_a_missing_framework_is_one_clear_line():
    code = "import sys; sys.modules['torch'] = None\nfrom scoreloss.cli import main\nsys.exit(main(['bench', 'yeast']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "scoreloss: scoreloss.torch needs PyTorch: pip install 'scoreloss[torch]'\n"


def test_the_command_line_lets_idle_threads_sleep_unless_told_otherwise():
    """The policy has to be set before torch is imported."""
    code = (
        "import os, sys\nfrom scoreloss.cli import main\nassert 'torch' not in sys.modules\n"
        "main(['losses'])\nprint(os.environ['OMP_WAIT_POLICY'])"
    )
    for given, policy in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | given
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.splitlines()[-1] == policy
