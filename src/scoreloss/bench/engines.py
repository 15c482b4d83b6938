"""Where packs are trained: in this process, or on the nodes of a Ray cluster. The cells and their files are the same."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Pack
from scoreloss.bench.search import Result, train_pack
from scoreloss.checks import InputError, reason_of
from scoreloss.say import Say

Trained = dict[Cell, tuple[Result, float]]

CLAIMS = 500
"""Each is an open file, of which a process may have about a thousand."""

RETRIES = 10
"""So often a pack is trained again whose node or worker died."""

VERSION = importlib.metadata.version("scoreloss")

PATIENCE = 5
"""Seconds to wait for a cluster that does not answer."""

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How HTTP/2 begins, which Ray speaks: the preface and settings that are empty. The answer is settings, type 4."""


class Engine(Protocol):
    """Trains packs."""

    at_once: int
    """So many packs are taken at a time; the others are left to other processes."""

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""

    def close(self) -> None:
        """Stop what was started."""


class Here:
    """In this process, one pack after another."""

    at_once = 1

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""
        for pack in packs:
            yield pack, train_pack(material, pack, say)

    def close(self) -> None:
        """There is nothing to stop."""


class OnRay:
    """On a Ray cluster: one pack on one core. A node that dies costs its running packs, which are trained elsewhere.

    ``address`` is that of the cluster; without one, a cluster of this machine alone is started when there is something to
    train, and ``close`` stops it.
    """

    at_once = CLAIMS

    def __init__(self, address: str | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ImportError("--engine ray needs ray: pip install 'scoreloss[ray]'")
        if address is not None:
            _reach(address)
        self._address = address
        self._connected = False

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""
        self._connect()
        import ray

        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_on_one_core)
        features = {id(x): np.asarray(x) for x in material.features.values()}
        inputs = {seed: features[id(x)] for seed, x in material.features.items()}
        shared = ray.put(Material(material.targets, inputs, material.splits))
        running = {task.remote(VERSION, shared, pack): pack for pack in packs}
        cores = sum(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
        say(f"{len(packs)} packs for a cluster of {cores:g} cores")
        while running:
            (done,), _ = ray.wait(list(running), num_returns=1)
            pack = running.pop(done)
            yield pack, _result(done)
            say(f"{len(packs) - len(running)} of {len(packs)} packs done", counting=True)

    def close(self) -> None:
        """Stop the cluster that was started, or leave the one that was given."""
        if self._connected:
            import ray

            ray.shutdown()
            self._connected = False

    def _connect(self) -> None:
        if self._connected:
            return
        where: dict[str, Any] = {"address": self._address}
        if self._address is None:
            # read when ray is imported: a cluster of one machine, and off the network
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
            where = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
        import ray

        try:
            ray.init(**where, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            raise InputError(
                f"--engine ray cannot use {self._address or 'this machine'}: {reason_of(problem)}"
            ) from problem
        self._connected = True


def _reach(address: str) -> None:
    """Refuse an address where no cluster answers, at once: Ray itself would try for minutes."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.path:
        raise InputError(f"address is {address!r}: it must be the HOST:PORT of a Ray cluster's head")
    try:
        if host in ("localhost", "127.0.0.1", "::1"):
            host = _as_ray_has_it()
        with socket.create_connection((host, port), timeout=PATIENCE) as line:
            line.sendall(HELLO)
            answer = line.recv(4)
    except OSError as problem:
        reason = problem.strerror or reason_of(problem)
        raise InputError(f"address is {address!r}: no Ray cluster answers there ({reason})") from None
    if answer[3:] != b"\x04":
        raise InputError(f"address is {address!r}: what answers there is no Ray cluster")


def _as_ray_has_it() -> str:
    """The address of this machine: Ray takes it in the place of localhost."""
    import ray

    return str(ray.util.get_node_ip_address())


def _result(done: Any) -> Trained:
    import ray

    try:
        found: Trained = ray.get(done)
    except ray.exceptions.RayTaskError as problem:
        if isinstance(problem.cause, InputError):
            raise problem.cause from None
        raise
    except ray.exceptions.RayError as problem:
        raise InputError(f"--engine ray: {reason_of(problem)}") from problem
    return found


def _on_one_core(version: str, material: Material, pack: Pack) -> Trained:
    import torch

    if version != VERSION:
        raise InputError(
            f"--engine ray: a node of the cluster has scoreloss {VERSION}, and this machine {version}: they must be the same"
        )
    torch.set_num_threads(1)
    # torch warns of arrays that cannot be written to, as those out of the object store
    return train_pack(replace(material, targets=material.targets.copy()), pack)
