"""Yeast with Lightning: a LightningModule that starts at the priors and reports the score of the whole epoch.

python examples/lightning_fit.py [EPOCHS]
"""

from __future__ import annotations

import sys

import lightning
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import scoreloss as sl
from scoreloss.data import load
from scoreloss.torch import SigmoidF1, start_at_priors


class Labels(lightning.LightningModule):
    """A network with one hidden layer, trained on the macro F1 it is judged by."""

    def __init__(self, features: int, frequencies: np.ndarray) -> None:
        super().__init__()
        self.loss = SigmoidF1(sync=True)  # with several devices, of the batch of all of them
        self.network = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, len(frequencies)))
        start_at_priors(self.network[-1], frequencies, self.loss)
        self.seen: list[tuple[Tensor, Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        x, y = batch
        return self.loss(self(x), y)

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        x, y = batch
        self.seen.append((y, self.loss.scores(self(x))))

    def on_validation_epoch_end(self) -> None:  # Lightning would log the mean over batches, which is no F1
        y, scores = (torch.cat(parts) for parts in zip(*self.seen, strict=True))
        self.seen.clear()
        metrics = sl.evaluate(y, scores)
        self.log_dict({name: metrics[name] for name in ("macro_f1", "weighted_f1")})

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.003)


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    lightning.seed_everything(0, verbose=False)
    data = load("yeast")
    train, test = data.splits["train"], data.splits["test"]
    x = torch.tensor((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).float()
    y = torch.tensor(data.targets).float()

    model = Labels(x.shape[1], sl.label_frequencies(data.targets[train]))
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(TensorDataset(x[train], y[train]), batch_size=256, shuffle=True))
    (metrics,) = trainer.validate(
        model, DataLoader(TensorDataset(x[test], y[test]), batch_size=256), verbose=False
    )
    print(f"macro F1 {100 * metrics['macro_f1']:.1f}  weighted F1 {100 * metrics['weighted_f1']:.1f}")


if __name__ == "__main__":
    main()
