"""The cache of features, as its users meet it: killed, damaged, shared between processes, asked again."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scoreloss.backbones.cache import DTYPES, Damaged, Entry, default_folder, digest_of
from scoreloss.checks import InputError
from scoreloss.say import silent

WIDTH = 16
RECIPE = {"backbone": "toy", "version": 1}


def digests(texts):
    return np.frombuffer(b"".join(digest_of(text.encode()) for text in texts), np.uint64).reshape(-1, 2)


def expected(texts):
    """Features of the toy backbone: noise drawn from each text alone."""
    return np.array(
        [np.random.default_rng(list(text.encode())).standard_normal(WIDTH) for text in texts], np.float32
    )


def entry_of(folder, texts, recipe=RECIPE, dtype="float32"):
    data = digest_of("\n".join(texts).encode()).hex()
    return Entry(folder, recipe, data, len(texts), dtype=dtype, name="toy")


def make(folder, texts, *, made=None, stop_after=None, **options):
    """Features by the toy backbone, five at a time; the rows it had to compute go to ``made``."""
    entry = entry_of(folder, texts, **options)
    with entry.alone(silent):
        work = entry.begin(digests(texts))
        pending = work.pending()
        for at in range(0, len(pending), 5):
            if stop_after is not None and at >= stop_after:
                return None
            rows = pending[at : at + 5]
            work.put(rows, expected([texts[row] for row in rows]))
            if made is not None:
                made.extend(rows.tolist())
        return entry.finish(work)


@pytest.fixture
def texts():
    return [f"text {i}" for i in range(23)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_was_made_is_found_again(tmp_path, texts, dtype):
    assert entry_of(tmp_path, texts, dtype=dtype).open() is None
    made = make(tmp_path, texts, dtype=dtype)
    found = entry_of(tmp_path, texts, dtype=dtype).open(check=True)
    assert found.dtype == dtype
    assert np.array_equal(found, expected(texts).astype(dtype))
    assert np.array_equal(made, found)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1


def test_another_recipe_another_type_and_other_data_are_other_entries(tmp_path, texts):
    make(tmp_path, texts)
    assert entry_of(tmp_path, texts, {**RECIPE, "version": 2}).open() is None
    assert entry_of(tmp_path, texts, dtype="float16").open() is None
    assert entry_of(tmp_path, texts[::-1]).open() is None


def test_a_run_that_stopped_goes_on(tmp_path, texts):
    first, second = [], []
    assert make(tmp_path, texts, made=first, stop_after=10) is None
    assert entry_of(tmp_path, texts).open() is None
    assert np.array_equal(make(tmp_path, texts, made=second), expected(texts))
    assert (len(first), len(second)) == (10, 13)
    assert sorted(first + second) == list(range(23))


def test_rows_of_the_same_inputs_are_taken_over_and_made_once(tmp_path, texts):
    """A dataset that grew, lost examples, came into another order, and has some twice."""
    make(tmp_path, texts)
    others = ["new", *texts[:3:-1], "new", texts[5]]
    made = []
    assert np.array_equal(make(tmp_path, others, made=made), expected(others))
    assert made == [0]


def test_rows_of_a_run_that_stopped_are_taken_over(tmp_path, texts):
    make(tmp_path, texts, stop_after=10)
    made = []
    assert np.array_equal(make(tmp_path, texts[2:], made=made), expected(texts[2:]))
    assert len(made) == 13


def test_rows_whose_inputs_changed_under_the_same_key_are_not_kept(tmp_path, texts):
    """Files may be replaced between two runs."""
    others = [*texts[:2], "replaced", *texts[3:]]
    for inputs, stop_after in ((texts, 10), (others, None)):
        entry = Entry(tmp_path, RECIPE, "same", 23, dtype="float32", name="toy")
        with entry.alone(silent):
            work = entry.begin(digests(inputs))
            pending = work.pending()[:stop_after]
            work.put(pending, expected([inputs[row] for row in pending]))
            if stop_after is None:
                assert np.array_equal(entry.finish(work), expected(others))
    assert sorted(pending) == [2, *range(10, 23)]


def test_a_damaged_row_is_not_taken_over(tmp_path, texts):
    make(tmp_path, texts)
    overwrite(entry_of(tmp_path, texts).path / "features.npy", -2, b"xx")
    made = []
    assert np.array_equal(make(tmp_path, texts[::-1], made=made), expected(texts[::-1]))
    assert made == [0]


def overwrite(path, at, content):
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        file.write(content)


def test_a_damaged_row_is_found_and_it_alone_made_again(tmp_path, texts):
    make(tmp_path, texts)
    entry = entry_of(tmp_path, texts)
    path = entry.path / "features.npy"
    before = path.stat().st_mtime_ns
    overwrite(path, -2, b"xx")
    os.utime(path, ns=(before + 10**9, before + 10**9))
    with pytest.raises(Damaged, match=r"features\.npy: 1 of 23 rows"):
        entry.open()
    made = []
    assert np.array_equal(make(tmp_path, texts, made=made), expected(texts))
    assert made == [22]
    assert np.array_equal(entry.open(check=True), expected(texts))


def test_damage_that_left_the_time_of_the_file_is_found_by_check(tmp_path, texts):
    make(tmp_path, texts)
    entry = entry_of(tmp_path, texts)
    path = entry.path / "features.npy"
    before = path.stat()
    overwrite(path, -2, b"xx")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert entry.open() is not None
    with pytest.raises(Damaged):
        entry.open(check=True)


def test_a_copied_entry_is_checked_once(tmp_path, texts):
    make(tmp_path, texts)
    entry = entry_of(tmp_path, texts)
    os.utime(entry.path / "features.npy", ns=(1, 1))
    assert entry.open() is not None
    assert json.loads((entry.path / "entry.json").read_text())["checked"] == 1


@pytest.mark.parametrize("name", ["features.npy", "rows.npy", "entry.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "empty", "noise"])
def test_any_damaged_file_is_noticed_and_made_again(tmp_path, texts, name, damage):
    make(tmp_path, texts)
    entry = entry_of(tmp_path, texts)
    path = entry.path / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"cut": content[:-9], "empty": b"", "noise": os.urandom(len(content))}[damage])
    with pytest.raises(Damaged):
        entry.open(check=True)
    assert np.array_equal(make(tmp_path, texts), expected(texts))
    assert np.array_equal(entry.open(check=True), expected(texts))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no numpy file at all"])
@pytest.mark.parametrize("name", ["features.npy", "rows.npy"])
def test_an_unusable_beginning_is_begun_anew(tmp_path, texts, name, content):
    make(tmp_path, texts, stop_after=10)
    (entry_of(tmp_path, texts).work / name).write_bytes(content)
    assert np.array_equal(make(tmp_path, texts), expected(texts))


def test_what_the_type_cannot_hold_is_an_error(tmp_path):
    for dtype, value in (("float16", 70000.0), ("float32", np.nan)):
        entry = entry_of(tmp_path, ["a", "b"], dtype=dtype)
        with (
            entry.alone(silent),
            pytest.raises(InputError, match=f"gives {value} for example 1, which {dtype} cannot hold"),
        ):
            entry.begin(digests(["a", "b"])).put(np.array([0, 1]), np.array([[1.0], [value]]))


def test_a_disk_too_small_is_said_before_anything_is_computed(tmp_path, texts, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=r"No space left on device, 0\.0 GB are needed"):
        make(tmp_path, texts)
    monkeypatch.undo()
    assert np.array_equal(make(tmp_path, texts), expected(texts))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("SCORELOSS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "scoreloss"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "scoreloss"
    monkeypatch.setenv("SCORELOSS_CACHE", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_opening_many_features_takes_milliseconds_and_no_memory(tmp_path):
    n, width = 100_000, 2_048
    entry = Entry(tmp_path, RECIPE, "big", n, dtype="float32", name="big")
    entry.path.mkdir(parents=True)
    path = entry.path / "features.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, width))
    record = {"examples": n, "width": width, "checked": path.stat().st_mtime_ns}
    (entry.path / "entry.json").write_text(json.dumps(record))
    seconds, before = [], resident()
    for _ in range(20):
        start = time.perf_counter()
        features = entry.open()
        seconds.append(time.perf_counter() - start)
    assert features.shape == (n, width)
    assert min(seconds) < 0.01
    assert resident() - before < 4e6


PROGRAM = """
import sys, time
from pathlib import Path
from tests.test_cache import entry_of, digests, expected
folder, seconds, count = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
texts = [f"text {i}" for i in range(count)]
entry = entry_of(folder, texts)
print("ready", flush=True)
with entry.alone(lambda line, counting=False: print(line, flush=True)):
    if entry.open() is None:
        work = entry.begin(digests(texts))
        for row in work.pending():
            work.put(work.pending()[:1], expected([texts[row]]))
            print("row", flush=True)
            time.sleep(seconds)
        entry.finish(work)
print("done", flush=True)
"""


def start(folder, seconds, count):
    root = os.path.dirname(os.path.dirname(__file__))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(seconds), str(count)],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_processes_do_the_work_once(tmp_path):
    first = start(tmp_path, 0.2, 10)
    assert [first.stdout.readline() for _ in range(2)] == ["ready\n", "row\n"]
    second = start(tmp_path, 0.2, 10)
    lines = [process.communicate(timeout=60)[0].splitlines() for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert lines[0].count("row") == 9
    assert lines[1] == ["ready", "another process makes these features: waiting for it", "done"]


@pytest.mark.slow
def test_killed_at_random_moments_the_cache_stays_correct_and_goes_on(tmp_path):
    """Twenty kills; what a killed process had done is not done again."""
    count, rows, kills = 60, 0, 0
    moments = random.Random(0)
    texts = [f"text {i}" for i in range(count)]
    while kills < 20:
        process = start(tmp_path, 0.005, count)
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(timeout=moments.uniform(0, 0.04))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        rows += process.communicate()[0].split().count("row")
        found = entry_of(tmp_path, texts).open(check=True)
        if found is not None:
            assert np.array_equal(found, expected(texts))
    assert start(tmp_path, 0, count).communicate(timeout=60)[0].endswith("done\n")
    assert np.array_equal(entry_of(tmp_path, texts).open(check=True), expected(texts))
    assert rows <= count
