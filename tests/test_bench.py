"""The benchmark as a person runs it: on the command line, in a folder, again and again."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import scoreloss as sl
from scoreloss import data
from scoreloss.bench import decide
from scoreloss.bench.contenders import PAPER_LOSSES, contenders
from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Settings, cells
from scoreloss.bench.search import train_pack
from scoreloss.bench.splits import split_for
from scoreloss.bench.store import Damaged, Store, write_whole
from scoreloss.cli import main

QUICK = ["--epochs", "2", "--seeds", "2", "--losses", "bce,sigmoid_f1", "--head", "linear"]


@pytest.fixture(scope="module")
def yeast():
    return data.load("yeast")


def bench(capsys, folder, *options):
    """Exit status, standard output and standard error of ``scoreloss bench yeast``."""
    status = main(["bench", "yeast", "--out", str(folder), *QUICK, *options])
    out, err = capsys.readouterr()
    return status, out, err


def test_yeast_is_the_classic_data(yeast):
    assert yeast.inputs.shape == (2417, 103)
    assert yeast.targets.shape == (2417, 14)
    assert yeast.targets.sum() / 2417 == pytest.approx(4.237, abs=5e-4)
    assert yeast.targets.sum(0).tolist()[:4] == [762, 1038, 983, 862]
    assert [len(yeast.splits[part]) for part in ("train", "test")] == [1500, 917]
    assert not set(yeast.splits["train"]) & set(yeast.splits["test"])


def test_a_seed_draws_the_validation_part_and_never_touches_the_test_part(yeast):
    first, second = split_for(yeast, 0), split_for(yeast, 1)
    assert np.array_equal(first.test, second.test)
    assert not np.array_equal(first.validation, second.validation)
    for split in (first, second):
        whole = np.concatenate([split.train, split.validation, split.test])
        assert sorted(whole) == list(range(2417))
        assert len(split.validation) == 300


def test_test_labels_decide_nothing(yeast):
    """Thresholds and chosen epochs stay the same when the test labels are poisoned."""
    poisoned = yeast.targets.copy()
    poisoned[yeast.splits["test"]] ^= True
    other = data.Dataset("yeast", yeast.inputs, poisoned, yeast.labels, yeast.splits)
    found = []
    for dataset in (yeast, other):
        planned = cells(dataset, contenders(["sigmoid_f1"], 3), 1, Settings(head="linear", epochs=3))
        material = Material(dataset.targets, {0: dataset.inputs}, {0: split_for(dataset, 0)})
        result, _ = train_pack(material, [planned])[planned[0]]
        found.append(
            {
                rule: (r["fitted"], r["epoch"], r["config"], r["validation_weighted_f1"])
                for rule, r in result["rules"].items()
            }
        )
        found[-1]["test"] = result["rules"]["fixed_0.5"]["test"]["micro_f1"]
    assert found[0].pop("test") != found[1].pop("test")
    assert found[0] == found[1]


@pytest.mark.slow
def test_what_is_there_is_not_trained_again(tmp_path, capsys):
    status, out, _ = bench(capsys, tmp_path)
    assert status == 0
    assert "4 cells trained, 0 kept" in out
    files = sorted((tmp_path / "cells").iterdir())
    assert len(files) == 4
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    _, again, _ = bench(capsys, tmp_path)
    assert "0 cells trained, 4 kept" in again
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files} == before
    assert _table(again) == _table(out)
    files[0].unlink()
    assert "1 cells trained, 3 kept" in bench(capsys, tmp_path)[1]
    assert "4 cells trained, 0 kept" in bench(capsys, tmp_path, "--force")[1]
    assert "4 cells trained, 0 kept" in bench(capsys, tmp_path, "--init", "default")[1]
    assert len(list((tmp_path / "cells").iterdir())) == 8


def _table(out):
    return out[: out.index("cells trained")].rsplit("\n", 1)[0]


def test_the_same_seed_gives_the_same_numbers(tmp_path, capsys):
    results = []
    for name in ("a", "b"):
        bench(capsys, tmp_path / name)
        cells = [json.loads(p.read_text()) for p in sorted((tmp_path / name / "cells").iterdir())]
        for cell in cells:
            cell.pop("seconds")
        results.append([(cell["cell"], cell["result"]) for cell in cells])
    assert results[0] == results[1]


@pytest.mark.parametrize("damage", ["", "{", "[]", "[" * 200_000, "half", "digit", "binary"])
def test_a_damaged_cell_is_said_and_trained_again(tmp_path, capsys, damage):
    bench(capsys, tmp_path)
    path = sorted((tmp_path / "cells").iterdir())[1]
    good = path.read_text()
    if damage == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    else:
        text = {
            "half": good[: len(good) // 2],
            "digit": re.sub(r'"epoch": (\d)', r'"epoch": 9\1', good, count=1),
        }
        path.write_text(text.get(damage, damage))
    status, out, err = bench(capsys, tmp_path)
    assert f"damaged, trained again: {path}" in err
    assert "Traceback" not in err
    assert status == 0
    assert "1 cells trained, 3 kept" in out
    assert json.loads(path.read_text())["cell"] == json.loads(good)["cell"]


def test_a_folder_in_the_place_of_a_cell_is_said_before_anything_is_trained(tmp_path, capsys):
    bench(capsys, tmp_path)
    path = sorted((tmp_path / "cells").iterdir())[1]
    path.unlink()
    path.mkdir()
    status, out, err = bench(capsys, tmp_path, "--force")
    assert (status, out) == (2, "")
    assert err == f"scoreloss: {path} is a folder where a file belongs: move it away\n"


def test_a_run_that_diverges_is_left_out_and_said(tmp_path, capsys):
    wild = ["--lr", "1e17", "--head", "mlp"]
    status, out, err = bench(capsys, tmp_path, "--losses", "bce,unbounded_f1", *wild)
    assert status == 0
    assert "unbounded_f1 with seed 1 diverged and is left out: a lower learning rate may help" in err
    assert "unbounded_f1" not in out
    assert "unbounded_f1 with seed 0" in (tmp_path / "report.html").read_text()
    assert len(list((tmp_path / "cells").iterdir())) == 4
    status, out, err = bench(capsys, tmp_path, "--losses", "unbounded_f1", *wild)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == "scoreloss: all runs diverged: a lower learning rate may help"


@pytest.mark.slow
def test_output_that_cannot_show_a_sign_or_is_cut_short_is_no_traceback(tmp_path):
    bench_done = run_command(tmp_path, *QUICK)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(bench_done, capture_output=True, text=True, env=environment)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "weighted F1" in done.stdout
    cut = subprocess.run(f"{shlex.join(bench_done)} | head -1", shell=True, capture_output=True, text=True)
    assert cut.stderr == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["bench", "yest"], "dataset is 'yest': did you mean yeast?"),
        (["bench", "yeast", "--losses", "sigmoid_f2"], "did you mean sigmoid_f1"),
        (["bench", "yeast", "--losses", ","], "losses is empty"),
        (["bench", "yeast", "--seeds", "0"], "seeds is 0: it must be at least 1"),
        (["bench", "yeast", "--epochs", "-1"], "epochs is -1"),
        (["bench", "yeast", "--batch-size", "0"], "batch_size is 0"),
        (["bench", "yeast", "--lr", "nan"], "learning_rate is nan"),
        (["bench", "yeast", "--weight-decay", "-1"], "weight_decay is -1"),
        (["bench", "yeast", "--init", "prior"], "init is 'prior': did you mean priors"),
        (["bench", "yeast", "--head", "liner"], "head is 'liner': did you mean linear"),
        (["bench", "yeast", "--out", "/dev/null/x"], "cannot write there"),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scoreloss: ")
    assert err.count("\n") == 1
    assert message in err


def test_data_that_cannot_be_are_refused(yeast):
    def dataset(**changes):
        parts = {
            "name": "d",
            "inputs": np.zeros((2, 1)),
            "targets": np.eye(2),
            "labels": ("a", "b"),
            "splits": {},
        }
        return data.Dataset(**{**parts, **changes})

    assert dataset().targets.dtype == bool
    with pytest.raises(ValueError, match=r"targets\[0, 0\] is 2"):
        dataset(targets=[[2, 0], [0, 1]])
    with pytest.raises(ValueError, match=r"inputs\[1, 0\] is nan"):
        dataset(inputs=np.array([[0.0], [np.nan]]))
    with pytest.raises(ValueError, match="labels are 1 names"):
        dataset(labels=("a",))
    with pytest.raises(ValueError, match="inputs have 3 examples"):
        dataset(inputs=np.zeros((3, 1)))
    assert dataset().content_hash != dataset(targets=1 - np.eye(2)).content_hash


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path, capsys):
    bench(capsys, tmp_path)
    page = (tmp_path / "report.html").read_text()
    shown = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href|url)\s*[=(]|@import", shown)
    assert "default-src 'none'" in shown
    for word in ("sigmoid_f1", "all positive", "label priors", "the paper swaps", "917", "PerLabel"):
        assert word in page
    splits = json.loads((tmp_path / "splits.json").read_text())
    for part, size in (("test", 917), ("validation", 300)):
        assert [len(s[part]) for s in splits["seeds"].values()] == [size, size]


def test_floors_are_what_they_say(yeast):
    split = split_for(yeast, 0)
    floors = decide.floors(yeast.targets, split)
    y = yeast.targets[split.test]
    everything = sl.evaluate(y, np.ones(y.shape))
    assert floors["all positive"]["fixed_0.5"]["test"]["micro_f1"] == pytest.approx(everything["micro_f1"])
    assert floors["none positive"]["global"]["test"]["macro_f1"] == 0
    priors = floors["label priors"]["fixed_0.05"]["test"]
    frequent = sl.label_frequencies(yeast.targets[split.train]) >= 0.05
    assert priors["macro_f1"] == pytest.approx(sl.evaluate(y, np.tile(frequent, (917, 1)))["macro_f1"])


def test_cross_fitting_never_judges_what_it_learned_on():
    """On noise, a threshold a label fitted and judged on the same data looks better than chance."""
    rng = np.random.default_rng(0)
    y, s = rng.random((60, 30)) < 0.15, rng.random((60, 30))
    parts = decide.halves(y, 0)
    honest = decide.validation_score("per_label", y, s, parts)
    flattered = decide.weighted_f1(y, sl.PerLabel(min_positives=5).fit(y, s).predict(s))
    assert honest < flattered - 0.02
    fixed = decide.validation_score("fixed_0.5", y, s, parts)
    assert fixed == pytest.approx(sl.evaluate(y, s)["weighted_f1"])


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "f.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_infinite_thresholds_are_kept(tmp_path):
    store = Store(tmp_path)
    (bce,) = contenders(["bce"])
    cell, other = (Cell("d", "h", bce, seed, Settings()) for seed in (0, 1))
    store.open()
    assert store.read(cell) is None
    store.write(cell, {"thresholds": [0.5, float("inf")], "ece": float("nan")})
    assert store.read(cell) == {"thresholds": [0.5, "inf"], "ece": None, "seconds": 0}
    store.path(cell).rename(store.path(other))
    with pytest.raises(Damaged, match="does not hold this cell"):
        store.read(other)


def run_command(folder, *options):
    return [sys.executable, "-m", "scoreloss", "bench", "yeast", "--out", str(folder), *options]


@pytest.mark.slow
def test_stopping_by_hand_is_one_line(tmp_path):
    process = subprocess.Popen(
        run_command(tmp_path, "--epochs", "10000"), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while "epoch" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.rstrip().endswith("stopped; what was written is kept, the rest is done next time")
    assert out == ""


@pytest.mark.slow
def test_the_demo_shows_what_the_paper_claims(tmp_path):
    """At its own boundary sigmoid_f1 beats bce at 0.5 on micro, macro and weighted F1 of yeast."""
    start = time.perf_counter()
    done = subprocess.run(run_command(tmp_path), capture_output=True, text=True, check=True)
    assert "25 cells trained" in done.stdout
    print(f"the demo took {time.perf_counter() - start:.0f} s")
    cells = [json.loads(p.read_text()) for p in (tmp_path / "cells").iterdir()]
    assert len(cells) == len(PAPER_LOSSES) * 5
    means = {
        loss: {
            metric: np.mean(
                [
                    c["result"]["rules"]["fixed_0.5"]["test"][metric]
                    for c in cells
                    if c["cell"]["loss"] == loss
                ]
            )
            for metric in ("micro_f1", "macro_f1", "weighted_f1")
        }
        for loss in PAPER_LOSSES
    }
    for metric in ("micro_f1", "macro_f1", "weighted_f1"):
        assert means["sigmoid_f1"][metric] > means["bce"][metric] + 0.01, means
