"""How many requests ``scoreloss serve`` answers, how fast, and whether each answer is that of ``predict``.

    python benchmarks/serve_load.py [--smoke] [--clients N] [--seconds N] [--head linear|mlp]

A model of film titles (tfidf) in a process of its own, and clients in this one that keep their connections open and ask
again as soon as they are answered: one to eight titles a request. Every answer is compared with what ``predict`` of the
Python API says of the same titles, in all digits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import scoreloss as sl
from scoreloss.data import load

PATIENCE = 300.0
"""Seconds for the server to start, and for an answer."""


@dataclass
class Found:
    """What all clients found."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    errors: list[str] = field(default_factory=list)


def requests(classifier: sl.Classifier, titles: list[str], number: int) -> list[tuple[bytes, Any]]:
    """Requests as they are sent, and the answers they must get."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(number):
        some = [titles[k] for k in rng.integers(0, len(titles), rng.integers(1, 9))]
        body = json.dumps({"inputs": some}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        said = classifier.predict_all(some)
        rows = zip(said.labels, said.expected_f1.tolist(), said.rated.tolist(), strict=True)
        answer = [
            {"labels": labels, "expected_f1": f1, "scores": dict(zip(said.label_names, scores, strict=True))}
            for labels, f1, scores in rows
        ]
        found.append((head.encode() + b"\r\n\r\n" + body, {"predictions": answer}))
    return found


async def client(port: int, place: int, wanted: list[tuple[bytes, Any]], until: float, found: Found) -> None:
    """Ask one after the other on one connection, and compare."""
    rng = np.random.default_rng(place)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            content, answer = wanted[rng.integers(len(wanted))]
            start = time.perf_counter()
            writer.write(content)
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                body = await reader.readexactly(length)
            found.seconds.append(time.perf_counter() - start)
            if not head.startswith(b"HTTP/1.1 200"):
                found.errors.append(head.split(b"\r\n")[0].decode())
            elif json.loads(body) != answer:
                found.wrong += 1
        writer.close()
    except Exception as problem:
        found.errors.append(repr(problem))


async def load_of(port: int, clients: int, seconds: float, wanted: list[tuple[bytes, Any]]) -> Found:
    """What so many clients find in so many seconds."""
    found = Found()
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, k, wanted, until, found) for k in range(clients)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="a small model, and a few seconds")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--head", default="linear")
    options = parser.parse_args()
    examples, number, seconds = (500, 50, 3.0) if options.smoke else (10_000, 1000, options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        data = load("movies")
        titles = [str(title) for title in data.inputs[:examples]]
        classifier = sl.Classifier(
            loss="bce", rule="per_label", head=options.head, budget=1, epochs=3, cache=folder
        )
        classifier.fit(titles, data.targets[:examples], label_names=data.labels)
        classifier.save(Path(folder) / "m")
        wanted = requests(sl.Classifier.load(Path(folder) / "m"), titles, number)
        server = subprocess.Popen(
            [sys.executable, "-m", "scoreloss", "serve", str(Path(folder) / "m"), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2])
            asyncio.run(load_of(port, 1, 0.5, wanted))  # until the model is loaded
            start = time.perf_counter()
            found = asyncio.run(load_of(port, options.clients, seconds, wanted))
            took = time.perf_counter() - start
            cpu = sum(map(int, Path(f"/proc/{server.pid}/stat").read_text().split()[13:15])) / 100
        finally:
            server.terminate()
            status = server.wait(PATIENCE)
    p50, p95, p99, most = 1000 * np.quantile(found.seconds, [0.5, 0.95, 0.99, 1])
    done = len(found.seconds)
    print(f"server: {cpu:.1f} s of a processor, exit status {status}")
    print(f"latency in ms: median {p50:.0f}, 95 % {p95:.0f}, 99 % {p99:.0f}, longest {most:.0f}")
    print(
        f"{options.clients} clients, {took:.1f} s: {done:,} requests, {done / took:,.0f} a second, "
        f"{found.wrong} wrong, {len(found.errors)} errors"
    )
    for line in sorted(set(found.errors))[:5]:
        print(line, file=sys.stderr)
    return int(bool(found.wrong or found.errors or status))


if __name__ == "__main__":
    sys.exit(main())
