"""The service: right answers whoever else asks, an error in JSON for all that is wrong, and an end without loss."""

import asyncio
import base64
import dataclasses
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import scoreloss as sl
from scoreloss.checks import InputError
from scoreloss.model.numbers import Decision
from scoreloss.serve import Limits, serve
from scoreloss.serve.answers import encoded, together
from scoreloss.serve.app import Service
from scoreloss.serve.batches import Batches, Full
from tests.model_cases import matrix, texts
from tests.serving import STARTS, Server, line_of, read_response, refused, served, started

ROOT = Path(__file__).parent.parent
QUICK = {"epochs": 3, "budget": 1, "loss": "bce"}
MARKUP = {"war": "<img src=x onerror=document.title='hit'>", "love": "<b>love</b>", "space": '"&amp;'}
DECISIONS = {
    "thresholds": Decision("thresholds", "scores", np.full(4, 0.3)),
    "expected_f1": Decision("expected_f1", "probabilities"),
    "top_k": Decision("top_k", "probabilities"),
}


@pytest.fixture(autouse=True, scope="module")
def _a_cache_of_its_own(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCORELOSS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def of_texts():
    """A model of texts; its labels are markup."""
    some, labels = texts()
    named = [[MARKUP[label] for label in found] for found in labels]
    return sl.Classifier(rule="per_label", **QUICK).fit(some, named)


@pytest.fixture(scope="module")
def of_rows():
    return sl.Classifier(rule="expected_f1", **QUICK).fit_dataset(matrix(width=37))


@pytest.fixture(scope="module")
def folders(of_texts, of_rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    of_texts.save(folder / "texts")
    of_rows.save(folder / "rows")
    return folder


def said(found):
    """A prediction of the Python API as an answer says it."""
    return [
        {
            "labels": labels,
            "expected_f1": float(f1),
            "scores": dict(zip(found.label_names, map(float, r), strict=True)),
        }
        for labels, f1, r in zip(found.labels, found.expected_f1, found.rated, strict=True)
    ]


def requests_of(inputs, rng, number):
    """Some of the inputs, as requests of one to nine."""
    chosen = [rng.choice(len(inputs), rng.integers(1, 10)) for _ in range(number)]
    return [inputs[k] if isinstance(inputs, np.ndarray) else [inputs[j] for j in k] for k in chosen]


# Answers, without a server


@pytest.mark.parametrize("rule", list(DECISIONS))
@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("kind", ["matrix", "text"])
def test_company_changes_no_digit(kind, head, rule, rng):
    if kind == "matrix":
        inputs = matrix(width=37).inputs
        model = sl.Classifier(head=head, **QUICK).fit_dataset(matrix(width=37)).model_
        decision = DECISIONS[rule]
    else:
        inputs, labels = texts()
        model = sl.Classifier(head=head, **QUICK).fit(inputs, labels).model_
        decision = DECISIONS[rule]
        if rule == "thresholds":
            decision = dataclasses.replace(decision, thresholds=np.full(3, 0.3))
    model = dataclasses.replace(model, decision=decision)
    requests = requests_of(inputs, rng, 60)
    for found, request in zip(together(model, requests), requests, strict=True):
        alone = model.predict(request)
        for name in ("decided", "scores", "probabilities", "expected_f1", "rated"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
        assert json.loads(encoded(found)) == {"predictions": said(alone)}


def test_one_bad_request_spoils_no_other(of_rows):
    x = matrix(width=37).inputs
    found = together(of_rows.model_, [x[:2], np.full((1, 37), np.nan), x[2:5]])
    assert isinstance(found[1], InputError)
    np.testing.assert_array_equal(found[0].scores, of_rows.scores(x[:2]))
    np.testing.assert_array_equal(found[2].scores, of_rows.scores(x[2:5]))


def run_batches(jobs, work, **options):
    """What becomes of jobs that are all put at once."""
    sizes = []
    settings = {"batch": 4, "wait": 0.0, "queue": 1000, **options}
    batches = Batches(work, seen=lambda number, size: sizes.append((number, size)), **settings)

    async def run():
        waiting = [asyncio.ensure_future(batches.do(job, size)) for job, size in jobs]
        await asyncio.sleep(0)
        batches.start(lambda: None, lambda problem: None)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.to_thread(batches.end)
        return found

    return asyncio.run(run()), sizes


def test_batches_are_as_large_as_they_may_be_and_in_order():
    done = []
    found, sizes = run_batches(
        [(k, size) for k, size in enumerate((1, 1, 2, 1, 9, 1))],
        lambda jobs: [done.append(job) or 10 * job for job in jobs],
    )
    assert found == [0, 10, 20, 30, 40, 50]
    assert done == list(range(6))
    assert sizes == [(3, 4), (1, 1), (1, 9), (1, 1)]


def test_what_fails_is_raised_where_it_was_asked():
    found, _ = run_batches([(1, 1), (0, 1)], lambda jobs: [1 / job if job else KeyError("x") for job in jobs])
    assert found[0] == 1
    assert isinstance(found[1], KeyError)
    found, _ = run_batches([(1, 3), (0, 3)], lambda jobs: [1 / job for job in jobs])
    assert found[0] == 1
    assert isinstance(found[1], ZeroDivisionError)


def test_a_queue_is_bounded_but_takes_what_is_larger_than_itself():
    found, _ = run_batches([(1, 5), (2, 1)], list, queue=3)
    assert found[0] == 1
    assert isinstance(found[1], Full)


def test_the_end_does_what_waits_and_takes_no_more():
    batches = Batches(list, batch=2, wait=60, queue=100)

    async def run():
        waiting = [asyncio.ensure_future(batches.do(k, 1)) for k in range(7)]
        await asyncio.sleep(0)
        batches.start(lambda: None, lambda problem: None)
        await asyncio.to_thread(batches.end)
        found = await asyncio.gather(*waiting)
        with pytest.raises(Full):
            await batches.do(0, 1)
        return found

    assert asyncio.run(run()) == list(range(7))


def test_what_fails_before_the_first_job_is_told():
    problems = []
    batches = Batches(list, batch=1, wait=0, queue=1)
    batches.start(lambda: [][0], problems.append)
    batches.end()
    assert isinstance(problems[0], IndexError)
    assert not batches.ready


def test_it_is_not_ready_before_the_model_is_loaded(of_rows):
    service, said_of = Service(of_rows.model_, limits=Limits()), []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        said_of.append(message)

    scope = {"type": "http", "method": "GET", "path": "/health", "headers": [(b"host", b"localhost")]}
    asyncio.run(service.app({**scope, "query_string": b""}, receive, send))
    assert said_of[0]["status"] == 503
    assert said_of[1]["body"] == b'{"ready":false}'


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"port": -1}, "port is -1: it must be a number from 0 to 65535"),
        ({"host": "no.such.host.invalid"}, "host is 'no.such.host.invalid': there is no such address"),
        ({"host": "0.0.0.0"}, "host 0.0.0.0 can be reached from elsewhere, which needs a token"),
        ({"host": "::"}, "host :: can be reached from elsewhere, which needs a token"),
        ({"host": "0.0.0.0", "token": ""}, "the token must be printable ASCII without spaces, and not empty"),
        ({"token": "é"}, "the token must be printable ASCII"),
    ],
)
def test_wrong_arguments(folders, options, line):
    with pytest.raises(InputError, match=re.escape(line)):
        serve(folders / "rows", **options)


@pytest.mark.parametrize("name", ["body", "inputs", "queue", "batch", "wait", "body_seconds"])
def test_wrong_limits(name):
    for value in (-1, None, True, "x"):
        with pytest.raises(InputError, match=f"^{name} is "):
            Limits(**{name: value})


def test_answers_stay_small_where_there_are_many_labels():
    assert Limits().of_request(10) == 256
    assert Limits().of_request(1 << 20) == 2
    assert Limits().of_request(1 << 30) == 1


# A server of texts, asked as a client would


@pytest.fixture(scope="module")
def server(folders):
    with served(folders / "texts", quiet=False) as found:
        yield found


slow = pytest.mark.slow


@slow
def test_answers_are_those_of_predict(server, folders, of_texts):
    some, _ = texts(seed=5)
    loaded = sl.Classifier.load(folders / "texts")
    assert server.predict(some) == said(loaded.predict_all(some)) == said(of_texts.predict_all(some))
    assert server.predict(some[0]) == said(loaded.predict_all(some[:1]))
    assert server.predict([""]) == said(loaded.predict_all([""]))


@slow
def test_many_at_once_each_get_their_own(server, of_texts, rng):
    some, _ = texts(seed=6)
    requests = requests_of(some, rng, 150)
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(server.predict, requests))
    for answer, request in zip(answers, requests, strict=True):
        assert answer == said(of_texts.predict_all(request))
    assert server.metric("scoreloss_batch_requests_sum") > server.metric("scoreloss_batch_requests_count")


@slow
def test_the_model_is_described(server, of_texts):
    status, _, body = server.ask("/model")
    found = json.loads(body)
    assert status == 200
    assert found["labels"] == sorted(MARKUP.values())
    assert [float(t) for t in found["thresholds"]] == of_texts.model_.thresholds.tolist()
    assert found["kind"] == "text"
    assert found["rule"]["name"] == "per_label"
    assert found["backbone"]["name"] == "tfidf"
    assert found["validation"]["scores"]["weighted_f1"] > 0
    assert found["limits"] == {"inputs": 256, "bytes": 16 << 20}


JSON = {"Content-Type": "application/json"}
BAD = {
    "nothing": (b"", JSON, 400, "the body is no JSON"),
    "no JSON": (b"inputs", JSON, 400, "the body is no JSON"),
    "half": (b'{"inputs": ["a"', JSON, 400, "the body is no JSON"),
    "not UTF-8": (b'{"inputs": "\xff"}', JSON, 400, "the body is no JSON"),
    "half a sign": (b'{"inputs": "\\ud800"}', JSON, 400, "the body is no JSON"),
    "NaN": (b'{"inputs": NaN}', JSON, 400, "the body is no JSON"),
    "deep": (b"[" * 100_000, JSON, 400, "the body is no JSON"),
    "a list": (b'["a"]', JSON, 422, "the body must be an object"),
    "unknown": (b'{"inputs": "a", "<b>": 1}', JSON, 422, 'the field "<b>" is unknown'),
    "missing": (b"{}", JSON, 422, "the field inputs is missing"),
    "null": (b'{"inputs": null}', JSON, 422, "inputs must be a text or a list of texts"),
    "empty": (b'{"inputs": []}', JSON, 422, "inputs must be a text or a list of texts"),
    "a number": (b'{"inputs": ["a", 3]}', JSON, 422, "inputs[1]: Input should be a valid string"),
    "too many": (json.dumps({"inputs": ["a"] * 257}), JSON, 422, "inputs are 257: a request may have 256"),
    "a form": (b"a=b", {"Content-Type": "text/plain"}, 415, "the content type is 'text/plain'"),
    "no type": (b"{}", {"Content-Type": ""}, 415, "the content type is ''"),
}


@slow
@pytest.mark.parametrize("case", list(BAD))
def test_bad_bodies(server, case):
    body, headers, status, line = BAD[case]
    found = server.error("/predict", body, headers, method="POST")
    assert found[0] == status
    assert line in found[1]


@slow
def test_other_paths_and_methods(server):
    assert server.error("/nothing") == (404, "Not Found")
    assert server.error("/predict") == (405, "Method Not Allowed")
    assert server.error("/model", b"{}", JSON) == (405, "Method Not Allowed")
    status, line = server.error("/model", headers={"Host": "elsewhere.example:8000"})
    assert status == 421
    assert "localhost" in line
    for host in ("localhost:1234", "127.0.0.1", "127.0.0.3:80", "[::1]:80", "[::1]"):
        assert server.ask("/health", headers={"Host": host})[0] == 200


@slow
@pytest.mark.parametrize("chunked", [False, True])
def test_fifty_megabytes_are_refused(server, chunked):
    large = b'{"inputs": "' + b"x" * 50_000_000 + b'"}'
    body = (large[k : k + 65536] for k in range(0, len(large), 65536)) if chunked else large
    status, line = server.error("/predict", body, JSON, method="POST")
    assert status == 413
    assert line == "the body is too large: 16,777,216 bytes may be"
    assert server.predict("the war")


@slow
def test_a_body_that_says_it_is_large_is_refused_before_it_comes(server):
    head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    for length in (50_000_000, 10**18):
        with server.raw(head.format(length).encode()) as client:
            status, headers, body = read_response(client)
        assert status == 413
        assert "too large" in line_of(headers, body)


@slow
@pytest.mark.parametrize(
    "content",
    [
        b"garbage\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
    ],
    ids=["garbage", "length", "chunk", "header"],
)
def test_what_is_no_http_is_told_so_in_json(server, content):
    with server.raw(content) as client:
        status, headers, body = read_response(client)
    assert status == 400
    assert line_of(headers, body) == "this is no valid HTTP request"


@slow
def test_clients_that_go_away_disturb_nobody(server):
    for _ in range(20):
        server.raw(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf").close()
    body = json.dumps({"inputs": ["a"] * 200}).encode()
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for _ in range(20):
        server.raw(head % len(body) + body).close()
    server.wait_for(lambda: server.metric("scoreloss_requests_in_progress ") == 1)
    assert server.predict("the war")


@slow
def test_metrics_are_there(server):
    before = server.metric('scoreloss_requests_total{path="/predict",status="200"}')
    server.predict(["a", "b", "c"])
    assert server.metric('scoreloss_requests_total{path="/predict",status="200"}') == before + 1
    status, headers, body = server.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    for name in (
        'scoreloss_request_seconds_bucket{le="0.005",path="/predict"}',
        'scoreloss_batch_inputs_bucket{le="64.0"}',
        "scoreloss_queue_inputs 0.0",
        "scoreloss_ready 1.0",
    ):
        assert name in body.decode()


@slow
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_fetch_nothing_from_elsewhere(server, path):
    status, headers, body = server.ask(path)
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not re.search(rb"(src|href)=\"?(https?:)?//", body)
    assert b"<script>" not in body
    if path == "/docs":
        assert b"POST /predict" in body


# Other servers


@slow
def test_rows_of_numbers(folders, of_rows, rng):
    x = matrix(width=37).inputs
    with served(folders / "rows") as server:
        for request in requests_of(x, rng, 20):
            assert server.predict(request.tolist()) == said(of_rows.predict_all(request))
        assert server.predict(x[0].tolist()) == said(of_rows.predict_all(x[:1]))
        whole = np.arange(37)
        assert server.predict(whole.tolist()) == said(of_rows.predict_all(whole[None]))
        row = ["1"] * 37
        for wrong, line in (
            ([*row[1:], "NaN"], "the body is no JSON"),
            ([*row[1:], "1e999"], "inputs[0][36]: Input should be"),
            ([*row[1:], "1e101"], "inputs[0][36]: Input should be"),
            ([*row[1:], "1" + "0" * 400], "inputs[0][36]: Input should be"),
            ([*row[1:], '"1"'], "inputs[0][36]: Input should be a valid number"),
            ([*row[1:], "true"], "inputs[0][36]: Input should be a valid number"),
            ([*row[1:], "null"], "inputs[0][36]: Input should be a valid number"),
            (row[1:], "inputs[0] has 36 numbers: the model takes 37"),
            (["[1]", "2"], "inputs[1]: Input should be a valid list"),
            (["[]"], "inputs[0] has 0 numbers"),
            ([], "inputs must be a list of 37 numbers, or a list of such lists"),
        ):
            status, found = server.error("/predict", f'{{"inputs": [{",".join(wrong)}]}}', JSON)
            assert status in (400, 422)
            assert line in found


@slow
def test_a_token_is_needed_where_there_is_one(folders):
    environment = {"SCORELOSS_TOKEN": "secret"}
    with served(folders / "rows", "--host", "0.0.0.0", environment=environment) as server:
        for path in ("/model", "/metrics", "/docs", "/openapi.json", "/nothing"):
            for given in (None, "Bearer", "Bearer secre", "Bearer secret2", "Basic secret", "Bearer \xe9"):
                headers = {} if given is None else {"Authorization": given}
                status, line = server.error(path, headers=headers)
                assert status == 401
                assert "secret" not in line
        assert server.ask("/predict", {"inputs": [0] * 37})[1]["WWW-Authenticate"] == "Bearer"
        assert b"labels" not in server.ask("/health")[2]
        assert server.ask("/")[0] == 200
        server.token = "secret"
        assert server.ask("/model", headers={"Host": "elsewhere.example"})[0] == 200
        assert server.predict([0] * 37)


@slow
def test_what_cannot_start_says_why_in_one_line(folders, server, tmp_path):
    rows = folders / "rows"
    assert "needs a token: --token, or SCORELOSS_TOKEN" in refused([rows, "--host", "0.0.0.0"])
    assert f"port {server.port} of 127.0.0.1 cannot be used" in refused([rows, "--port", server.port])
    assert "is no folder of a model" in refused([tmp_path])
    shutil.copytree(rows, tmp_path / "m")
    (tmp_path / "m" / "head.safetensors").write_bytes(b"\x80\x04.")
    assert "head.safetensors has 3 bytes" in refused([tmp_path / "m"])


def test_without_the_extra_it_says_what_is_missing(folders):
    code = "import sys; sys.modules['fastapi'] = None\nfrom scoreloss.cli import main\nsys.exit(main(['serve', 'm']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "scoreloss: scoreloss serve needs fastapi: pip install 'scoreloss[serve]'\n"


def in_the_background(call, number):
    """Ask so often at once; the answers, when they are wanted."""
    pool = ThreadPoolExecutor(number)
    futures = [pool.submit(call, k) for k in range(number)]
    pool.shutdown(wait=False)
    return lambda: [future.result() for future in futures]


@slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_all_that_began_is_answered(folders, of_texts, number):
    """Twenty requests wait in the queue for company, and one is half sent."""
    some, _ = texts(seed=7)
    with served(folders / "texts", "--wait", "600000", "--batch", "1000") as server:
        answers = in_the_background(lambda k: server.predict(some[k : k + 3]), 20)
        body = json.dumps({"inputs": some[0]}).encode()
        head = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        half = server.raw(f"POST /predict HTTP/1.1\r\n{head}\r\n\r\n".encode() + body[:5])
        server.wait_for(lambda: server.metric("scoreloss_queue_inputs") == 60)
        server.wait_for(lambda: server.metric("scoreloss_requests_in_progress") == 22)
        server.process.send_signal(number)
        time.sleep(0.5)
        half.sendall(body[5:])
        assert read_response(half)[0] == 200
        half.close()
        for k, answer in enumerate(answers()):
            assert answer == said(of_texts.predict_all(some[k : k + 3]))
        assert server.process.wait(60) == 0


@slow
def test_who_comes_when_too_much_waits_is_told_to_come_again(folders):
    with served(folders / "texts", "--wait", "3000", "--batch", "100", "--queue", "5") as server:
        answers = in_the_background(lambda k: server.predict(["a"] * 3), 1)
        server.wait_for(lambda: server.metric("scoreloss_queue_inputs") == 3)
        status, headers, body = server.ask("/predict", {"inputs": ["a"] * 3})
        assert status == 503
        assert headers["Retry-After"] == "1"
        assert line_of(headers, body) == "too many inputs wait: come again"
        assert len(answers()[0]) == 3


@slow
def test_slow_clients_and_too_many_of_them(folders):
    limits = {"head_seconds": 1, "body_seconds": 1, "idle_seconds": 1, "connections": 5, "bodies": 1000}
    with served(folders / "texts", limits=limits) as server:
        post = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for sent, line in (
            (b"", "the head of the request took too long to arrive"),
            (b"GET / HTTP/1.1\r\nHo", "the head of the request took too long to arrive"),
            (post + b"Content-Length: 99\r\n\r\n{", "the body took too long to arrive"),
        ):
            with server.raw(sent) as client:
                status, headers, body = read_response(client)
                assert status == 408
                assert line_of(headers, body) == line
        status, line = server.error("/predict", {"inputs": "a" * 2000})
        assert (status, line) == (503, "too much is being sent at once")
        silent = [server.raw(b"") for _ in range(5)]
        with server.raw(b"") as client:
            status, headers, body = read_response(client)
            assert status == 503
            assert line_of(headers, body) == "too many connections are open"
        for client in silent:
            client.close()
        server.wait_for(lambda: server.ask("/health")[0] == 200)


@slow
def test_who_reads_nothing_is_cut_off(folders):
    """Two thousand answers do not fit between server and client: the first that is stuck ends it."""
    seen = []

    def left_alone():
        done = server.metric('scoreloss_requests_total{path="/docs"')
        alone = server.metric("scoreloss_requests_in_progress ") == 1  # the one that asks
        if not alone or seen[-1:] != [done]:
            seen.clear()
        seen.append(done)
        return alone and done > 0 and len(seen) > 5

    asked = b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000
    with served(folders / "texts", limits={"body_seconds": 1}) as server, server.raw(asked):
        server.wait_for(left_alone)
        assert 0 < seen[-1] < 2000


# Images


@pytest.fixture(scope="module")
def of_images(tmp_path_factory):
    """A network of a few thousand weights that was never trained, and a head on it."""
    import torch
    from PIL import Image
    from transformers import ResNetConfig, ResNetModel

    from tests.test_backbones_models import write_preprocessor

    folder = tmp_path_factory.mktemp("images")
    (folder / "net").mkdir()
    torch.manual_seed(0)
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    ResNetModel(config).save_pretrained(folder / "net")
    write_preprocessor(folder / "net", "ConvNextImageProcessor", size={"shortest_edge": 32}, crop_pct=0.875)
    rng, paths = np.random.default_rng(0), []
    for k in range(40):
        pixels = rng.integers(0, 120, (40, 40, 3)).astype(np.uint8)
        pixels[..., k % 2] += 120
        paths.append(folder / f"{k}.png")
        Image.fromarray(pixels).save(paths[-1])
    classifier = sl.Classifier(backbone=str(folder / "net"), **QUICK)
    classifier.fit(paths, [["red"] if k % 2 == 0 else ["green"] for k in range(40)])
    classifier.save(folder / "m")
    return classifier, folder / "m", paths


def form(parts, name="inputs", filename='; filename="x.png"'):
    """Files as a browser sends them."""
    line = b'--xx\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n' % (name.encode(), filename.encode())
    content = b"".join(line + part + b"\r\n" for part in parts) + b"--xx--\r\n"
    return content, {"Content-Type": "multipart/form-data; boundary=xx"}


@slow
def test_images(of_images):
    from PIL import Image

    classifier, folder, paths = of_images
    files = [path.read_bytes() for path in paths[:6]]
    coded = [base64.b64encode(content).decode() for content in files]
    large = io.BytesIO()
    Image.new("1", (9_000, 9_000)).save(large, "PNG")
    larger = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(larger, "PNG")
    with served(folder) as server:
        for first, last in ((0, 1), (1, 6)):
            wanted = said(classifier.predict_all(paths[first:last]))
            status, _, body = server.ask("/predict", *form(files[first:last]))
            assert status == 200
            for found in (json.loads(body)["predictions"], server.predict(coded[first:last])):
                assert [one["labels"] for one in found] == [one["labels"] for one in wanted]
                for one, other in zip(found, wanted, strict=True):
                    assert one["scores"] == pytest.approx(other["scores"], rel=1e-5)
        assert len(server.predict(coded[0])) == 1
        for body, headers, line in (
            (*form([b"no image"]), "inputs[0] is no image that can be read"),
            (*form([files[0], b"%!PS-Adobe-3.0 EPSF-3.0\n"]), "inputs[1] is no image that can be read"),
            (*form([large.getvalue()]), "inputs[0] has too many pixels: 67,108,864 may be"),
            (*form([files[0], larger.getvalue()]), "inputs[1] has too many pixels"),
            (*form([files[0][:200]]), "inputs[0] cannot be read: "),
            (*form([files[0]], name="image"), 'the part "image" is unknown'),
            (*form([b"x"], filename=""), "the form cannot be read"),
            (*form([]), "the form"),
            (b"nonsense", form([])[1], "the form"),
            (json.dumps({"inputs": "*"}), JSON, "inputs[0] is no base64"),
            (json.dumps({"inputs": ""}), JSON, "inputs[0] is no image that can be read"),
        ):
            status, found = server.error("/predict", body, headers)
            assert status == 422, found
            assert line in found
            assert "/tmp" not in found


@slow
def test_a_backbone_that_is_gone_ends_it_in_one_line(of_images, tmp_path):
    _, folder, paths = of_images
    shutil.copytree(folder, tmp_path / "m")
    record = json.loads((tmp_path / "m" / "model.json").read_text())
    record["backbone"]["name"] = str(tmp_path / "gone")
    (tmp_path / "m" / "model.json").write_text(json.dumps(record))
    process = started(["-m", "scoreloss", "serve", tmp_path / "m", "--port", "0"])
    out, said_then = process.communicate(timeout=STARTS)
    assert process.returncode == 2
    assert out.startswith("Serving ")
    assert said_then.count("\n") == 1
    assert "gone" in said_then
    with served(tmp_path / "m", "--backbone", str(folder.parent / "net")) as server:
        assert json.loads(server.ask("/model")[2])["backbone"]["name"] == "gone"
        assert server.ask("/predict", *form([paths[0].read_bytes()]))[0] == 200


# As others use it


@slow
@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_it_does_what_its_schema_says(folders, kind):
    """A few hundred requests made up from the schema, right ones and wrong ones."""
    with served(folders / kind, quiet=False) as server:
        command = ["run", f"{server.address}/openapi.json", "--checks", "all", "--max-examples", "40"]
        done = subprocess.run(
            [
                shutil.which("st", path=str(Path(sys.executable).parent)),
                *command,
                "--seed",
                "1",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-5000:]


@slow
def test_two_hundred_clients_get_right_answers():
    """The short form of the benchmark."""
    done = subprocess.run(
        [sys.executable, "benchmarks/serve_load.py", "--smoke"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"200 clients.* 0 wrong, 0 errors", done.stdout)


def test_a_server_in_a_thread_answers(folders, of_rows):
    """From Python, in a thread of a daemon: no signal is touched."""
    addresses, there = [], threading.Event()

    def listening(address):
        addresses.append(address)
        there.set()

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(
        target=serve, args=(folders / "rows",), kwargs={"port": 0, "listening": listening}, daemon=True
    ).start()
    assert there.wait(60)
    server = Server(None, addresses[0])
    assert server.predict([0.0] * 37) == said(of_rows.predict_all(np.zeros((1, 37))))
    assert signal.getsignal(signal.SIGTERM) is before
