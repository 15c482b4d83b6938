"""One batch on several processes: the same training, to rounding, on one process and on two.

python examples/ddp_sync.py [EPOCHS]
torchrun --standalone --nproc-per-node 2 examples/ddp_sync.py [EPOCHS]
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import scoreloss as sl
from scoreloss.data import load
from scoreloss.torch import SigmoidF1, start_at_priors

BATCH = 64


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    together = "RANK" in os.environ  # torchrun says so
    if together:
        dist.init_process_group("gloo")
    rank, world = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)

    data = load("yeast")
    train, test = (torch.as_tensor(data.splits[part]) for part in ("train", "test"))
    x = torch.tensor((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).float()
    y = torch.tensor(data.targets).float()

    torch.manual_seed(0)  # the same start everywhere
    loss = SigmoidF1(sync=True)
    network = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, y.shape[1]))
    start_at_priors(network[-1], sl.label_frequencies(data.targets[train]), loss)
    model = DistributedDataParallel(network) if together else network
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)

    for epoch in range(1, epochs + 1):
        total = 0.0
        batches = train[torch.randperm(len(train))].split(BATCH)
        for batch in batches:
            rows = batch[rank::world]  # this process's shard; shards need not be of one size
            optimiser.zero_grad()
            value = loss(model(x[rows]), y[rows])  # of the whole batch, in every process
            value.backward()
            optimiser.step()
            total += value.item() / len(batches)
        if rank == 0:
            print(f"epoch {epoch}: loss {total:.4f}", flush=True)

    if rank == 0:
        with torch.no_grad():
            metrics = sl.evaluate(data.targets[test], loss.scores(network(x[test])).numpy())
        print(f"test: macro F1 {metrics['macro_f1']:.4f}", flush=True)
    if together:
        dist.barrier()  # nobody leaves before all has been said
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
