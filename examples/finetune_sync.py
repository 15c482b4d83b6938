"""Backbone and head trained end to end on several processes, head first, then blocks from the top (gradual unfreezing).

python examples/finetune_sync.py [EPOCHS]
torchrun --standalone --nproc-per-node 2 examples/finetune_sync.py [EPOCHS]

A DistilBERT reads texts and a MobileNetV2 looks at images, both small, with random weights and made-up data, so that nothing
is downloaded; yours come from ``from_pretrained``. Any number of processes prints the same losses, gradients and scores.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from transformers import DistilBertConfig, DistilBertModel, MobileNetV2Config, MobileNetV2Model

import scoreloss as sl
from scoreloss.torch import SigmoidF1, start_at_priors

EXAMPLES, TRAIN, BATCH, LABELS = 240, 192, 32, 3
TOGETHER = "RANK" in os.environ  # torchrun says so


class Texts(nn.Module):
    """DistilBERT: token ids to the mean of its last layer."""

    def __init__(self, words: int) -> None:
        super().__init__()
        # Dropout draws other numbers in each process: without it, one process and two can be compared.
        sizes = DistilBertConfig(
            vocab_size=words, dim=64, n_layers=3, n_heads=4, hidden_dim=128, dropout=0, attention_dropout=0
        )
        self.model = DistilBertModel(sizes)
        self.standard = nn.BatchNorm1d(64, affine=False, momentum=None)
        self.head = nn.Linear(64, LABELS)
        self.blocks = [*reversed(self.model.transformer.layer), self.model.embeddings]

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the labels."""
        return self.head(self.standard(self.model(tokens).last_hidden_state.mean(1)))


class Images(nn.Module):
    """MobileNetV2: pixels to its pooled features."""

    def __init__(self) -> None:
        super().__init__()
        self.model = MobileNetV2Model(
            MobileNetV2Config(depth_multiplier=0.35, image_size=32, initializer_range=0.2)
        )
        self.standard = nn.BatchNorm1d(1280, affine=False, momentum=None)
        self.head = nn.Linear(1280, LABELS)
        layers = self.model.layer
        self.blocks = [
            self.model.conv_1x1,
            layers[10:],
            layers[:10],
            self.model.conv_stem,
        ]

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of the labels."""
        return self.head(self.standard(self.model(pixels).pooler_output))


def made_up_texts() -> tuple[Tensor, Tensor]:
    """Sixteen words: some of each topic that is there, and others that say nothing."""
    y = torch.rand(EXAMPLES, LABELS) < 0.3
    tokens = torch.randint(5 * LABELS, 60, (EXAMPLES, 16))
    for topic in range(LABELS):
        places = (torch.rand(tokens.shape) < 0.2) & y[:, [topic]]
        tokens[places] = torch.randint(5 * topic, 5 * topic + 5, (int(places.sum()),))
    return tokens, y.to(torch.get_default_dtype())


def made_up_images() -> tuple[Tensor, Tensor]:
    """Grey noise, and more red, green or blue for each label that is there."""
    y = torch.rand(EXAMPLES, LABELS) < 0.3
    pixels = 0.5 * torch.randn(EXAMPLES, 3, 32, 32) + 2 * y[:, :, None, None]
    return pixels, y.to(pixels.dtype)


def fine_tune(name: str, network: nn.Module, x: Tensor, y: Tensor, rate: float, epochs: int) -> None:
    """Train the head, then with each stage one more block; every stage goes on where the last one ended."""
    rank, world = (dist.get_rank(), dist.get_world_size()) if TOGETHER else (0, 1)
    loss = SigmoidF1(sync=True)
    network.train()
    with torch.no_grad():
        network(x[:TRAIN])  # means and variances for the normalisations
    network.eval()  # which they keep: those of a shard would not be those of the batch
    network.requires_grad_(False)
    start_at_priors(network.head, sl.label_frequencies(y[:TRAIN]), loss)
    for stage, part in enumerate([network.head, *network.blocks]):
        part.requires_grad_(True)
        # DDP and the optimiser see the parameters that are trained when they are made: so anew for each stage.
        model = DistributedDataParallel(network) if TOGETHER else network
        blocks = [p for block in network.blocks[:stage] for p in block.parameters()]
        optimiser = torch.optim.Adam(
            [{"params": network.head.parameters()}, {"params": blocks, "lr": rate / 10}], lr=rate
        )
        first = None
        for _ in range(epochs):
            total = 0.0
            batches = torch.randperm(TRAIN).split(BATCH)
            for batch in batches:
                rows = batch[rank::world]  # this process's shard
                optimiser.zero_grad()
                value = loss(model(x[rows]), y[rows])  # of the whole batch, in every process
                value.backward()
                if first is None:
                    first = gradient_norm(network)
                optimiser.step()
                total += value.item() / len(batches)
        if rank == 0:
            print(f"{name}, {stage} blocks: first gradient {first:.5f}, last loss {total:.4f}", flush=True)
    if rank == 0:
        with torch.no_grad():
            metrics = sl.evaluate(y[TRAIN:], loss.scores(network(x[TRAIN:])))
        print(f"{name}: macro F1 {metrics['macro_f1']:.4f}", flush=True)


def gradient_norm(network: nn.Module) -> float:
    return sum(float(p.grad.square().sum()) for p in network.parameters() if p.grad is not None) ** 0.5


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    if TOGETHER:
        dist.init_process_group("gloo")
    torch.set_default_dtype(torch.float64)  # so that rounding grows to nothing one sees; not for yours
    torch.manual_seed(0)  # the same data, start and order everywhere
    fine_tune("DistilBERT", Texts(words=60), *made_up_texts(), 0.005, epochs)
    fine_tune("MobileNetV2", Images(), *made_up_images(), 0.0003, epochs)
    if TOGETHER:
        dist.barrier()  # nobody leaves before all has been said
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
