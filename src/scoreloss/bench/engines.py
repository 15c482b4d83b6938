"""Where packs are trained: in this process, or on the nodes of a Ray cluster. The cells and their files are the same."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Pack
from scoreloss.bench.search import Result, train_pack
from scoreloss.checks import InputError, reason_of
from scoreloss.say import Say

Trained = dict[Cell, tuple[Result, float]]


class Engine(Protocol):
    """Trains packs."""

    at_once: int
    """So many packs are taken at a time; the others are left to other processes."""

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""


class Here:
    """In this process, one pack after another."""

    at_once = 1

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""
        for pack in packs:
            yield pack, train_pack(material, pack, say)


class OnRay:
    """On a Ray cluster: one pack on one core. A node that dies costs its running packs, which are trained elsewhere.

    ``address`` is that of the cluster; without one, a cluster of this machine alone is started, and ends with it.
    """

    at_once = 2**31

    def __init__(self, address: str | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ImportError("--engine ray needs ray: pip install 'scoreloss[ray]'")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray

        if not ray.is_initialized():
            here: dict[str, Any] = {"address": address} if address else {"_node_ip_address": "127.0.0.1"}
            try:
                ray.init(**here, include_dashboard=False if not address else None, log_to_driver=False)
            except (ConnectionError, ValueError, RuntimeError) as problem:
                raise InputError(f"--address {address}: {reason_of(problem)}") from problem

    def train(self, material: Material, packs: Sequence[Pack], say: Say) -> Iterator[tuple[Pack, Trained]]:
        """Each pack as soon as it is done."""
        import ray

        task = ray.remote(num_cpus=1, max_retries=-1)(_on_one_core)
        features = {id(x): np.asarray(x) for x in material.features.values()}
        sent = Material(
            material.targets,
            {seed: features[id(x)] for seed, x in material.features.items()},
            material.splits,
        )
        shared = ray.put(sent)
        running = {task.remote(shared, pack): pack for pack in packs}
        say(
            f"{len(packs)} packs for a cluster of {sum(node['Resources'].get('CPU', 0) for node in ray.nodes() if node['Alive']):g} cores"
        )
        while running:
            (done,), _ = ray.wait(list(running), num_returns=1)
            pack = running.pop(done)
            yield pack, ray.get(done)
            say(f"{len(packs) - len(running)} of {len(packs)} packs done", counting=True)


def _on_one_core(material: Material, pack: Pack) -> Trained:
    import torch

    torch.set_num_threads(1)
    # torch warns of arrays that cannot be written to, as those out of the object store
    return train_pack(replace(material, targets=material.targets.copy()), pack)
