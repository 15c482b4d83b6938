"""Losses of a batch in shards, in real processes, against the loss of the whole batch."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from scoreloss import losses
from scoreloss.ops import NUMPY
from scoreloss.torch import SigmoidF1
from scoreloss.torch.ops import OPS
from scoreloss.torch.sync import ops_for
from tests import processes
from tests.oracles import assert_close


def in_shards(function, parts):
    """What a function of losses gives each of several threads, whose sums are pooled as processes would."""
    barrier = threading.Barrier(len(parts))
    shared, results = [None] * len(parts), [None] * len(parts)

    def pooled_by(place, join):
        def pool(*sums):
            shared[place] = sums
            barrier.wait()
            joined = tuple(
                join(np.asarray(part) for part in several) for several in zip(*shared, strict=True)
            )
            barrier.wait()
            return joined

        return pool

    def work(place):
        most = pooled_by(place, lambda arrays: np.max(list(arrays), axis=0))
        ops = replace(NUMPY, pool=pooled_by(place, sum), pool_max=lambda x: most(x)[0])
        results[place] = function(ops, *parts[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


OF_A_BATCH = {
    **{
        f"metric {average} {empty}": lambda *args, average=average, empty=empty, **given: losses.metric_loss(
            *args, average=average, empty=empty, **given
        )
        for average in ("macro", "micro", "samples", "weighted", None)
        for empty in ("zero", "skip")
    },
    "hinge_f1": losses.hinge_f1,
    "precision_at_recall": losses.precision_at_recall,
    "recall_at_precision": losses.recall_at_precision,
    "two_way": losses.two_way,
}


@pytest.mark.parametrize("extra", processes.EXTRAS)
@pytest.mark.parametrize("name", OF_A_BATCH)
def test_any_framework_can_pool_the_sums_of_shards(name, extra):
    x, y, given = processes.batch(extra)
    z, y, given = (
        x[:, : processes.C].numpy(),
        y.numpy(),
        {key: part.numpy() for key, part in given.items()},
    )
    expected = OF_A_BATCH[name](NUMPY, z, y, **given)
    parts = [
        (z[a:b], y[a:b], processes.rows_of(given, slice(a, b))) for a, b in ((0, 0), (0, 1), (1, 4), (4, 13))
    ]
    for found in in_shards(lambda ops, z, y, given: OF_A_BATCH[name](ops, z, y, **given), parts):
        assert_close(found, expected)


def test_sync_costs_nothing_without_processes():
    assert ops_for(sync=True) is ops_for(sync=False) is OPS
    x, y, _ = processes.batch()
    z = x[:, : processes.C]
    assert torch.equal(SigmoidF1(sync=True)(z, y), SigmoidF1()(z, y))


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3, 4])
def test_ddp_with_uneven_shards_is_the_whole_batch(world):
    ddp, own, large, fused = processes.run(
        world, "with_ddp", "with_logits", "with_micro_batches", "with_slices"
    )
    for name, extra in processes.cases(world):
        for key, expected in processes.whole(name, extra).items():
            for found in ddp:
                assert_close(found[f"{name}/{extra}/{key}"], expected, 1e-9)
    for key, expected in processes.whole().items():
        for found in large:
            assert_close(found[key], expected[0] if key == "values" else expected, 1e-9)
    for average in ("macro", "micro", "weighted"):
        expected = processes.whole(f"f1 sigmoid {average} zero")["head.weight"]
        for found in fused:
            assert_close(found[average], expected, 1e-9)
    x, y, _ = processes.batch()
    logits = processes.Trained(SigmoidF1()).head(x).detach().requires_grad_()
    SigmoidF1()(logits, y).backward()
    parts = [part["gradient"] for part in sorted(own, key=lambda part: part["start"])]
    assert_close(np.concatenate(parts) / world, logits.grad.numpy(), 1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
def test_fsdp_and_the_compiler():
    fsdp, compiled = processes.run(2, "with_fsdp", "with_compiler")
    for key, expected in processes.whole().items():
        for found in fsdp:
            assert_close(found[key], expected[0] if key == "values" else expected, 1e-9)
    for found in compiled:
        assert len(found) == 3
        assert max(found.values()) < 1e-12
