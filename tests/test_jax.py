"""The losses in JAX: as torch's, under jit, grad, vmap and sharding."""

import os
import subprocess
import sys

import numpy as np
import pytest

from scoreloss.checks import InputError
from scoreloss.torch import LOSSES
from tests.conftest import needs
from tests.framework_cases import (
    CASES,
    IDS,
    LOSS_OPTIONS,
    PARAMETERS,
    assert_agree,
    cases_for,
    inputs_for,
    torch_says,
)

needs("jax", module=True)

import jax
import jax.numpy as jnp

from scoreloss import jax as losses


def values_and_gradients(name, options, wrap=lambda function: function):
    """(logits, targets, mask, weight) -> value and gradients."""
    loss = getattr(losses, name)
    own = PARAMETERS.get(name, {})

    def total(z, own, y, mask, weight):
        value = loss(z, y, mask=mask, weight=weight, **options, **own)
        return value.sum(), value

    gradient = wrap(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))

    def call(z, y, mask, weight):
        (_, value), (of_logits, of_own) = gradient(z, own, y, mask, weight)
        return np.asarray(value), [np.asarray(of_logits), *(np.asarray(of_own[key]) for key in own)]

    return call


def assert_torch_agrees(name, options, call, which):
    for case in which:
        inputs = inputs_for(name, case)
        if inputs is not None:
            assert_agree(name, call(*inputs), torch_says(name, options, inputs), case)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), LOSS_OPTIONS, ids=IDS)
def test_a_loss_is_torchs(name, options):
    assert_torch_agrees(name, options, values_and_gradients(name, options), cases_for(options))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_compiled_loss_is_torchs(name):
    plain = [case for case, parts in CASES.items() if parts[2] is parts[3] is None and case != "one example"]
    if name == "recall_at_k":  # 1e4 / .01 has no digits left for what the compiler rounds otherwise
        plain.remove("far")
    assert_torch_agrees(name, {}, values_and_gradients(name, {}, jax.jit), plain)


def sharded():
    """What two devices say of batches and labels that lie on them in halves, against one device."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    rng = np.random.default_rng(0)
    z = rng.normal(size=(8, 6)).astype(np.float32)
    y = (rng.random((8, 6)) < 0.4).astype(np.float32)
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    assert mesh.size == 2
    for name in ("sigmoid_f1", "two_way"):
        gradient = jax.jit(jax.value_and_grad(getattr(losses, name)))
        expected = gradient(z, y)
        for spec in (PartitionSpec("devices"), PartitionSpec(None, "devices")):
            here = NamedSharding(mesh, spec)
            value, of_logits = gradient(jax.device_put(z, here), jax.device_put(y, here))
            assert len(of_logits.sharding.device_set) == 2
            np.testing.assert_allclose(value, expected[0], rtol=1e-6)
            np.testing.assert_allclose(of_logits, expected[1], rtol=1e-5, atol=1e-8)


def pooled():
    """What two devices say that hold halves of the examples and pool their sums, against one device."""
    from dataclasses import replace
    from functools import partial

    from jax.sharding import Mesh, PartitionSpec

    from scoreloss import losses as functions

    ops = replace(
        losses.OPS,
        pool=lambda *sums: jax.lax.psum(sums, "devices"),
        pool_max=lambda most: jax.lax.pmax(most, "devices"),
    )
    rng = np.random.default_rng(0)
    z = rng.normal(size=(8, 6)).astype(np.float32)
    y = (rng.random((8, 6)) < 0.4).astype(np.float32)
    weight = rng.random((8, 1)).astype(np.float32)
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    assert mesh.size == 2
    halves = PartitionSpec("devices")
    cases = [(functions.metric_loss, {"average": average}) for average in ("macro", "micro", "samples")]
    cases += [(getattr(functions, name), {}) for name in ("two_way", "hinge_f1", "precision_at_recall")]
    for function, options in cases:

        def loss(ops, z, y, weight, function=function, options=options):
            return function(ops, z, y, weight=weight, **options)

        expected = jax.value_and_grad(partial(loss, losses.OPS))(z, y, weight)
        shards = partial(jax.shard_map, mesh=mesh, in_specs=(halves,) * 3)
        within = shards(jax.value_and_grad(partial(loss, ops)), out_specs=(PartitionSpec(), halves))
        around = jax.value_and_grad(shards(partial(loss, ops), out_specs=PartitionSpec()))
        for gradient in (within, around):
            for found, number in zip(jax.jit(gradient)(z, y, weight), expected, strict=True):
                np.testing.assert_allclose(found, number, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("check", ["sharded", "pooled"])
def test_shards_give_the_loss_of_the_whole_batch(check):
    """Two devices are made before JAX starts, so in a process of their own."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    code = f"from tests.test_jax import {check}; {check}()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def batch(seed=0, runs=()):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*runs, 6, 4)).astype(np.float32), (rng.random((6, 4)) < 0.4).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sigmoid_f1"])
def test_vmap_is_one_run_after_another_and_so_are_leading_axes(name):
    z, y = batch(runs=(3,))
    loss = getattr(losses, name)
    alone = [float(loss(run, y)) for run in z]
    np.testing.assert_allclose(jax.vmap(loss, in_axes=(0, None))(z, y), alone, rtol=1e-6)
    np.testing.assert_allclose(loss(z, y), alone, rtol=1e-6)


@pytest.mark.slow
def test_options_may_be_learned():
    z, y = batch()

    def of(offset):
        return losses.sigmoid_f1(z, y, slope=2.0, offset=offset)

    offset = jnp.array([0.1, -0.2, 0.3, 0.0])
    gradient = jax.jit(jax.grad(of))(offset)
    near = 1e-2
    for j in range(4):
        step = near * jnp.eye(4)[j]
        found = float(of(offset + step) - of(offset - step)) / (2 * near)
        assert abs(found - float(gradient[j])) < 1e-4


@pytest.mark.parametrize("surrogate", [{}, {"slope": 3.0, "offset": 1.0}, {"surrogate": "hinge"}])
def test_a_head_starts_at_the_priors(surrogate):
    frequencies = [0.02, 0.3, 0.9]
    weights, bias = losses.start_at_priors(jax.random.key(0), 64, frequencies, **surrogate)
    assert weights.shape == (64, 3)
    assert 0 < np.abs(weights).max() <= 0.1 / 8
    z = np.asarray(bias, float)
    slope, offset = surrogate.get("slope", 1.0), surrogate.get("offset", 0.0)
    says = 1 / (1 + np.exp(-slope * (z + offset)))
    if "surrogate" in surrogate:
        says = (np.minimum(1, z) + np.maximum(0, 1 + z)) / 2
    np.testing.assert_allclose(says, frequencies, rtol=1e-5)


BAD = [
    (lambda z, y: losses.bce(z, y[:, :2]), r"targets have shape \(6, 2\): logits of \(6, 4\)"),
    (lambda z, y: losses.bce(z.astype(int), y), "logits are int.*floating-point"),
    (lambda z, y: losses.focal(z, y, gama=1.0), "option is 'gama': did you mean gamma"),
    (lambda z, y: losses.focal(z, y, gamma=-1.0), "gamma is -1.0"),
    (lambda z, y: losses.metric_loss(z, y, score="jacard"), "did you mean jaccard"),
    (lambda z, y: losses.metric_loss(z, y, slop=1.0), "slop is not a knob of the sigmoid surrogate"),
    (lambda z, y: losses.sigmoid_f1(z, y, slope=-1.0), "slope is -1"),
    (lambda z, y: losses.aucpr(z, y), "multiplier is missing: aucpr is given the parameters it learns"),
    (lambda z, y: losses.lambda_loss(z, y, weight=y), r"weights are those of examples, \(6, 1\)"),
    (lambda z, y: losses.deep_f(z, y), r"they must have \(..., examples, labels, counts\)"),
    (lambda z, y: losses.start_at_priors(None, 3, [0.0]), "label_frequencies"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call(*batch())
    assert "\n" not in str(caught.value)


def test_the_names_are_those_of_torch():
    assert set(LOSSES) <= set(losses.__all__)
    assert all(hasattr(losses, name) for name in losses.__all__)
    assert losses.deep_f.__name__ == "deep_f"
