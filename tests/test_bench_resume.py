"""A bench that is stopped goes on, and several share a folder: in the end the files are those of an undisturbed run."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from scoreloss.bench.contenders import contenders
from scoreloss.bench.plan import Cell, Settings
from scoreloss.bench.store import Store
from scoreloss.files import lock, write_whole
from tests import bench_runs
from tests.bench_runs import CELLS, SOON, left_behind, results, start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    out, err = bench_runs.whole(folder)
    assert trained(out) == CELLS
    assert f"pack {CELLS} of {CELLS}" in err
    assert not left_behind(folder)
    return folder


def trained(out):
    """How many cells a process says that it trained."""
    return int(re.search(r"(\d+) cells trained", out)[1])


def until(process, words):
    """Wait for a line on standard error with these words."""
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it never said {words!r}")


@pytest.mark.slow
def test_twenty_kills_leave_the_files_of_an_undisturbed_run(tmp_path, undisturbed):
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench_runs", str(tmp_path), "20", "0"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "damaged" not in done.stderr
    expected = results(undisturbed)
    for name in done.stdout.split():
        assert results(tmp_path / name) == expected, name
        assert not left_behind(tmp_path / name), name


@pytest.mark.slow
def test_two_processes_share_a_folder(tmp_path, undisturbed):
    both = [start(tmp_path), start(tmp_path)]
    said = [process.communicate(timeout=SOON) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    counts = [trained(out) for out, _ in said]
    assert sum(counts) == CELLS
    assert min(counts) > 0
    tables = [out[: out.index("cells trained")].rsplit("\n", 1)[0] for out, _ in said]
    assert tables[0] == tables[1]
    assert results(tmp_path) == results(undisturbed)
    assert not left_behind(tmp_path)


@pytest.mark.slow
def test_a_pack_is_taken_over_from_a_process_that_is_killed(tmp_path, undisturbed):
    first = start(tmp_path)
    until(first, "pack 2 of")
    first.send_signal(signal.SIGSTOP)
    second = start(tmp_path)
    until(second, "other processes train what is left: waiting for them")
    assert second.poll() is None
    time.sleep(1)
    assert len(list((tmp_path / "cells").glob("*.json"))) == CELLS - 1
    first.kill()
    out, err = second.communicate(timeout=SOON)
    assert second.returncode == 0, err
    first.communicate()
    assert trained(out) == CELLS - 1
    assert results(tmp_path) == results(undisturbed)
    assert not left_behind(tmp_path)


@pytest.mark.slow
def test_another_plan_in_the_same_folder_at_the_same_time_harms_nothing(tmp_path, undisturbed):
    other = ["--losses", "focal,bce", "--seeds", "1"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    bench_runs.whole(alone, *other)
    both = [start(shared), start(shared, *other)]
    said = [process.communicate(timeout=SOON) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    there = results(shared)
    for folder in (undisturbed, alone):
        of_one = results(folder)
        cells = {name for name in of_one if name.endswith(".json")} - {"bench.json", "splits.json"}
        assert {name: there[name] for name in cells} == {name: of_one[name] for name in cells}
    last = {name: there[name] for name in ("bench.json", "table.tex", "cells.parquet")}
    assert last in [{name: results(folder)[name] for name in last} for folder in (undisturbed, alone)]
    assert not left_behind(shared)


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path)
    opened.open()
    return opened


def pack():
    (bce,) = contenders(["bce"])
    return [[Cell("d", "h", bce, seed, Settings())] for seed in (0, 1)]


def test_a_lock_that_was_taken_away_is_not_held_twice(store, monkeypatch):
    """A process opens the lock of a pack; before it locks it the holder is done with the pack, and a third takes it."""
    held = store.claim(pack())
    assert store.claim(pack()) is None
    thirds = []

    def meanwhile(handle):
        monkeypatch.undo()
        store.forget(pack())
        held.close()
        thirds.append(store.claim(pack()))
        return lock(handle)

    monkeypatch.setattr("scoreloss.bench.store.lock", meanwhile)
    assert store.claim(pack()) is None
    (third,) = thirds
    third.close()


def test_what_is_half_written_is_removed_and_what_others_write_is_written_again(store, monkeypatch):
    cell = pack()[0][0]
    mine = store.folder / ".notes.part"
    stale = [store.folder / ".report.html.abc.part", store.folder / "cells" / ".bce-seed0.json.x1.part"]
    for path in (mine, *stale):
        path.write_text("half")
    replace = os.replace

    def tidied_first(source, target):
        monkeypatch.setattr(os, "replace", replace)
        store.tidy([])
        replace(source, target)

    monkeypatch.setattr(os, "replace", tidied_first)
    write_whole(store.path(cell), "whole")
    assert store.path(cell).read_text() == "whole"
    assert mine.exists()
    assert not any(path.exists() for path in stale)
    assert [path.name for path in (store.folder / "cells").iterdir()] == [store.path(cell).name]


def test_packs_that_are_done_are_taken_off_the_list(store):
    done, begun = pack(), pack()[:1]
    store.list_packs([done, begun])
    store.write(begun[0][0], {})
    store.tidy([done[1][0]])
    assert store.begun([cell for row in done for cell in row], [done[1][0]]) == [done]
    store.write(done[1][0], {})
    store.tidy([])
    assert not (store.folder / "packs.json").exists()
