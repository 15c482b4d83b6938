"""What each process of the tests of ``sync`` does; started with ``run``, which returns what they found."""

import gc
import itertools
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from scoreloss.torch import (
    AUCPR,
    MFC,
    DoubleSoftF1,
    HingeF1,
    MetricLoss,
    PrecisionAtRecall,
    RecallAtPrecision,
    SigmoidF1,
    TwoWay,
    UnboundedF1,
    fused_linear_loss,
    large_batch_step,
)

N, C, D = 13, 4, 6
SHARDS = {1: [13], 2: [3, 10], 3: [6, 1, 6], 4: [0, 1, 5, 7]}
"""How many of the 13 examples each process has."""

METRIC = {
    f"{score} {surrogate} {average} {empty}": {
        "score": score,
        "surrogate": surrogate,
        "average": average,
        "empty": empty,
    }
    for score, surrogate, average, empty in [
        *(("f1", "sigmoid", average, "zero") for average in ("macro", "micro", "samples", "weighted", None)),
        *(("jaccard", "sigmoid", average, "skip") for average in ("macro", "samples", "weighted")),
        ("mcc", "cdf", "macro", "zero"),
        ("npv", "amplify", "micro", "zero"),
        ("f1", "hinge", "weighted", "one"),
    ]
}


def losses():
    """Name -> the loss, given ``sync``."""

    def metric(options):
        return lambda **sync: MetricLoss(**options, **sync)

    return {
        **{name: metric(options) for name, options in METRIC.items()},
        "smoothing": lambda **sync: SigmoidF1(smoothing=1.0, **sync),
        "learned": lambda **sync: SigmoidF1(
            slope=[1.0, 2.0, 0.5, 1.0], learnable=("slope", "offset"), average="micro", **sync
        ),
        "unbounded": lambda **sync: UnboundedF1(**sync),
        "double": lambda **sync: DoubleSoftF1(**sync),
        "mfc": lambda **sync: MFC(C, **sync),
        "momentum": lambda **sync: SigmoidF1(momentum=0.9, **sync),
        "hinge_f1": lambda **sync: HingeF1(**sync),
        "precision_at_recall": lambda **sync: PrecisionAtRecall(C, **sync),
        "recall_at_precision": lambda **sync: RecallAtPrecision(C, bound="hinge", **sync),
        "aucpr": lambda **sync: AUCPR(C, anchors=3, **sync),
        "two_way": lambda **sync: TwoWay(**sync),
    }


LEARNS_BY_STEPS = ("momentum", "precision_at_recall")

EXTRAS = ["plain", "mask", "weights of examples", "weights of labels", "weights of entries", "all"]


def batch(extra="plain"):
    """Features, targets, and mask or weight; the last label has no positive, the first row neither."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N, D, generator=generator, dtype=torch.float64)
    y = (torch.rand(N, C, generator=generator) < 0.4).double()
    y[:, -1] = y[0] = 0
    mask = torch.rand(N, C, generator=generator) < 0.7
    examples = torch.rand(N, 1, generator=generator).double()
    entries = torch.rand(N, C, generator=generator).double()
    given = {
        "plain": {},
        "mask": {"mask": mask},
        "weights of examples": {"weight": examples},
        "weights of labels": {"mask": mask, "weight": entries[0]},
        "weights of entries": {"weight": entries},
        "all": {"mask": mask, "weight": entries},
    }[extra]
    return x, y, given


def rows_of(given, rows):
    """Mask and weight of these rows; weights of labels are those of all rows."""
    return {name: part[rows] if part.ndim > 1 else part for name, part in given.items()}


class Trained(nn.Module):
    """A head and a loss with whatever parameters it has, as DDP wraps them."""

    def __init__(self, loss):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(D, C).double()
        self.loss = loss.double()

    def forward(self, x, y, **given):
        return self.loss(self.head(x), y, **given)


def steps(module, rows=slice(None), extra="plain", number=1):
    """Values and summed gradients of some steps on these rows."""
    x, y, given = batch(extra)
    given = rows_of(given, rows)
    values = []
    for turn in range(number):
        value = module(x[rows] + turn, y[rows], **given)
        value.sum().backward()
        values.append(value.detach().numpy())
    inner = getattr(module, "module", module)
    return {"values": np.stack(values)} | {
        name: parameter.grad.numpy() for name, parameter in inner.named_parameters()
    }


def own_rows():
    ends = np.cumsum([0, *SHARDS[dist.get_world_size()]])
    return slice(ends[dist.get_rank()], ends[dist.get_rank() + 1])


def cases(world):
    """The losses that so many processes try, and how: shared out, since starting processes is slow."""
    extras = {1: EXTRAS, 2: ["all"], 3: ["plain", "weights of labels"], 4: ["mask", "weights of examples"]}[
        world
    ]
    some = [name for name in losses() if world < 4 or "f1 sigmoid" in name or "skip" in name]
    return itertools.product(some, extras)


def with_ddp():
    """Every loss under DDP, with and without mask and weights."""
    found = {}
    for name, extra in cases(dist.get_world_size()):
        module = nn.parallel.DistributedDataParallel(Trained(losses()[name](sync=True)))
        number = 2 if name in LEARNS_BY_STEPS else 1
        for key, value in steps(module, own_rows(), extra, number).items():
            found[f"{name}/{extra}/{key}"] = value
    return found


def with_logits():
    """The gradient that a process gets of its own logits."""
    x, y, _ = batch()
    logits = Trained(SigmoidF1()).head(x[own_rows()]).detach().requires_grad_()
    SigmoidF1(sync=True)(logits, y[own_rows()]).backward()
    return {"gradient": logits.grad.numpy(), "start": np.array(own_rows().start)}


def with_fsdp():
    """A head sharded over the processes."""
    from torch.distributed.fsdp import fully_shard

    module = Trained(SigmoidF1(sync=True))
    fully_shard(module.head)
    fully_shard(module)
    x, y, _ = batch()
    value = module(x[own_rows()], y[own_rows()])
    value.backward()
    return {"values": value.detach().numpy()} | {
        name: parameter.grad.full_tensor().numpy() for name, parameter in module.named_parameters()
    }


def with_compiler():
    """Losses as one graph, the collectives in it."""
    found = {}
    for name in ("f1 sigmoid macro zero", "two_way", "momentum"):
        module = Trained(losses()[name](sync=True))
        eager = Trained(losses()[name](sync=True))
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        x, y, _ = batch()
        for part in (compiled, eager):
            part(x[own_rows()], y[own_rows()]).backward()
        found[name] = (module.head.weight.grad - eager.head.weight.grad).abs().max().numpy()
    return found


def with_slices():
    """A head and a loss by slices of labels, in shards."""
    found = {}
    x, y, _ = batch()
    for average in ("macro", "micro", "weighted"):
        head = Trained(SigmoidF1()).head
        loss = SigmoidF1(average=average, sync=True)
        for chunk in (3, None):
            fused_linear_loss(
                x[own_rows()], head.weight, head.bias, y[own_rows()], loss, chunk=chunk
            ).backward()
        dist.all_reduce(head.weight.grad)
        found[average] = head.weight.grad.numpy() / dist.get_world_size() / 2
    return found


def with_micro_batches():
    """A large batch in shards and in pieces, a loss of all of it."""
    x, y, _ = batch()
    module = nn.parallel.DistributedDataParallel(Trained(SigmoidF1()).head)
    rows = own_rows()
    batches = list(zip(x[rows].split(2), y[rows].split(2), strict=True))
    value = large_batch_step(module, SigmoidF1(sync=True), batches)
    return {"values": value.numpy()} | {
        f"head.{name}": parameter.grad.numpy() for name, parameter in module.module.named_parameters()
    }


def whole(name="f1 sigmoid macro zero", extra="plain"):
    """What one process finds with the whole batch."""
    return steps(Trained(losses()[name]()), extra=extra, number=2 if name in LEARNS_BY_STEPS else 1)


def _worker(rank, world, folder, names):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    for name in names:
        np.savez(f"{folder}/{name}-{rank}.npz", **globals()[name]())
        dist.barrier()
    gc.collect()  # DDP's modules hold the group in cycles
    dist.destroy_process_group()
    os._exit(0)  # a thread of gloo that outlives the interpreter would abort it now and then


def run(world, *names):
    """Of each function by its name what each of so many processes found."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_worker, (world, folder, names), nprocs=world)
        return [
            [dict(np.load(Path(folder) / f"{name}-{rank}.npz")) for rank in range(world)] for name in names
        ]
