"""The bench on a Ray cluster: the same cells and numbers as in one process, whatever happens to a node."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from scoreloss.cli import main
from tests.bench_runs import CELLS, MANY_PACKS, SOON, numbers, start, whole
from tests.conftest import needs

pytestmark = pytest.mark.slow

OF_ONE_MACHINE = {
    **os.environ,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "error:The given NumPy array is not writable:UserWarning",
}
"""A cluster that stays on 127.0.0.1, and whose workers fail where torch would warn of arrays that cannot be written to."""

CLUSTER = """
import sys, time
from ray.cluster_utils import Cluster
small = dict(num_cpus=1, node_ip_address="127.0.0.1", object_store_memory=80_000_000, include_dashboard=False)
cluster = Cluster(initialize_head=True, head_node_args=small)
node = cluster.add_node(**small)
print(cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(node, allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
"""


@pytest.fixture
def cluster():
    """A cluster of two nodes, in a process of its own: its address comes out, and a line in kills the second node."""
    needs("ray")
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=OF_ONE_MACHINE,
    )
    process.address = process.stdout.readline().strip()
    yield process
    process.communicate(timeout=SOON)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The numbers of one process with one thread."""
    folder = tmp_path_factory.mktemp("here")
    whole(folder, env=OF_ONE_MACHINE)
    return numbers(folder)


OURS = re.compile(r"\d+ packs for a cluster of \d+ cores|\d+ of \d+ packs done|scoreloss: .*|")


def test_a_node_that_dies_costs_only_its_packs(tmp_path, here, cluster):
    said = []
    with start(tmp_path, "--engine", "ray", "--address", cluster.address, env=OF_ONE_MACHINE) as process:
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            if said[-1] == f"1 of {CELLS} packs done":
                cluster.stdin.write("\n")
                cluster.stdin.flush()
                assert cluster.stdout.readline() == "removed\n"
        out = process.stdout.read()
        assert process.wait(SOON) == 0, said
    assert said[0] == f"{CELLS} packs for a cluster of 2 cores"
    assert said[-1] == f"{CELLS} of {CELLS} packs done"
    assert [line for line in said if not OURS.fullmatch(line)] == []
    assert f"{CELLS} cells trained" in out
    assert numbers(tmp_path) == here


def test_without_an_address_a_cluster_starts_and_stops(tmp_path, here):
    needs("ray")
    out, err = whole(tmp_path, "--engine", "ray", env=OF_ONE_MACHINE)
    assert f"{CELLS} cells trained" in out
    assert [line for line in err.splitlines() if not OURS.fullmatch(line)] == []
    assert numbers(tmp_path) == here


def test_stopping_by_hand_is_one_line_on_ray_too(tmp_path):
    """As a terminal does it: the signal goes to all processes of the group."""
    needs("ray")
    process = start(tmp_path, "--engine", "ray", "--epochs", "100000", env=OF_ONE_MACHINE)
    assert "packs for a cluster" in process.stderr.readline()
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert err.strip() == "scoreloss: stopped; what was written is kept, the rest is done next time"
    assert out == ""


def test_what_is_wrong_in_a_worker_is_one_line(tmp_path):
    """A version that is not that of the nodes is refused by the nodes."""
    needs("ray")
    code = "from scoreloss.bench import engines; engines.VERSION = '0.0'; " + MANY_PACKS
    done = subprocess.run(
        [sys.executable, "-c", code, "bench", "yeast", "--engine", "ray", "--epochs", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=OF_ONE_MACHINE,
        timeout=SOON,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(
        "scoreloss: --engine ray: a node of the cluster has scoreloss "
    )
    assert done.stderr.splitlines()[-1].endswith("and this machine 0.0: they must be the same")
    assert "Traceback" not in done.stderr


def test_a_wrong_address_is_one_line_at_once(tmp_path, capsys, monkeypatch):
    needs("ray")
    monkeypatch.setattr("scoreloss.bench.engines._as_ray_has_it", lambda: "127.0.0.1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        taken = silent.getsockname()[1]
        wrong = {
            f"127.0.0.1:{taken}": "no Ray cluster answers there",
            "nonsense": "it must be the HOST:PORT of a Ray cluster's head",
            "127.0.0.1:port": "it must be the HOST:PORT of a Ray cluster's head",
        }
        for address, reason in wrong.items():
            began = time.perf_counter()
            command = ["bench", "yeast", "--engine", "ray", "--address", address, "--out", str(tmp_path)]
            assert main(command) == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert err.startswith(f"scoreloss: address is {address!r}: {reason}")
            assert err.count("\n") == 1
            assert time.perf_counter() - began < 30


def test_what_answers_and_is_no_cluster_is_said(tmp_path, capsys, monkeypatch):
    needs("ray")
    monkeypatch.setattr("scoreloss.bench.engines._as_ray_has_it", lambda: "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            line, _ = server.accept()
            with line:
                line.recv(100)
                line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["bench", "yeast", "--engine", "ray", "--address", address, "--out", str(tmp_path)]) == 2
        thread.join()
    err = capsys.readouterr().err
    assert err == f"scoreloss: address is {address!r}: what answers there is no Ray cluster\n"


def test_ray_that_is_missing_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["bench", "yeast", "--engine", "ray", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "scoreloss: --engine ray needs ray: pip install 'scoreloss[ray]'\n"
