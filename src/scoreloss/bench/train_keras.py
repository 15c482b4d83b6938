"""The same heads trained with Keras: from the same start, on the same batches, by Keras's layers, losses and Adam.

All seeds of a loss are one model, since Adam works element by element. What is kept of them, looked at and judged is
what ``train`` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import torch
from keras import ops
from torch import Tensor

from scoreloss.bench.train import BETAS, EPS, Pack, Run
from scoreloss.keras import Loss
from scoreloss.ops import Array


class KerasPack(Pack):
    """A ``Pack`` whose runs are trained by Keras, each with its loss of ``scoreloss.keras``."""

    def __init__(self, *data: Any, losses: Sequence[Loss], **options: Any) -> None:
        super().__init__(*data, **options)
        self._models = [
            self._model(column, run, loss)
            for column, (run, loss) in enumerate(zip(self.runs, losses, strict=True))
        ]

    def _model(self, column: int, run: Run, loss: Loss) -> keras.Model:
        """The head of one run for all seeds, from features (n, seeds, d) to logits (n, seeds, *outputs)."""
        seeds, _, _, inputs = self.layers[0].shape
        *hidden, last = [layer.shape[2] for layer in self.layers]
        model = keras.Sequential([keras.Input((seeds, inputs - 1))])
        for width in hidden:
            model.add(SideBySide(width))
            model.add(keras.layers.ReLU())
        model.add(SideBySide(last))
        model.add(keras.layers.Reshape((seeds, *self.outputs)))
        for mine, layer in zip(_stacked(model), self.layers, strict=True):
            start = layer[:, column].detach()
            mine.set_weights([start[..., :-1].mT.numpy(), start[..., -1].numpy()])
        adam = keras.optimizers.Adam(
            run.learning_rate, *BETAS, epsilon=EPS, weight_decay=run.weight_decay or None
        )
        adam.exclude_from_weight_decay(var_names=["bias"])
        model.compile(adam, loss=SumOverSeeds(loss))
        return model

    def step(self, x: Tensor, y: Tensor) -> None:
        """One step of every run on its seed's batch."""
        features = x[..., :-1].transpose(0, 1).contiguous().numpy()
        targets = y.transpose(0, 1).contiguous().numpy()
        for model in self._models:
            model.train_on_batch(features, targets)

    def epoch(self) -> None:
        """Every training example once."""
        super().epoch()
        self._take_over()

    def keep(self, columns: Sequence[int]) -> None:
        """Go on with these runs alone."""
        super().keep(columns)
        self._models = [self._models[column] for column in columns]

    @torch.no_grad()
    def _take_over(self) -> None:
        """What Keras has learned, into the layers that are looked at."""
        for column, model in enumerate(self._models):
            for mine, layer in zip(_stacked(model), self.layers, strict=True):
                kernel, bias = (torch.from_numpy(ops.convert_to_numpy(w).copy()) for w in mine.weights)
                layer[:, column] = torch.cat([kernel.mT, bias.unsqueeze(-1)], dim=-1)


class SideBySide(keras.layers.Layer):  # type: ignore[misc]
    """Dense layers side by side, one a seed: (n, seeds, d) to (n, seeds, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def build(self, shape: tuple[int, ...]) -> None:
        """The weights, as ``Dense`` has them."""
        seeds, features = shape[1:]
        self.kernel = self.add_weight(shape=(seeds, features, self.width), name="kernel")
        self.bias = self.add_weight(shape=(seeds, self.width), initializer="zeros", name="bias")

    def call(self, x: Array) -> Array:
        """The outputs of every seed."""
        return ops.einsum("nsd,sdw->nsw", x, self.kernel) + self.bias

    def compute_output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """One axis changes."""
        return (*shape[:-1], self.width)


class SumOverSeeds(keras.losses.Loss):  # type: ignore[misc]
    """The losses of all seeds as one number: the gradient of each is its own."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def call(self, y_true: Array, y_pred: Array) -> Array:
        """Targets (n, seeds, c) and logits (n, seeds, ...)."""
        return ops.sum(self.loss(ops.moveaxis(y_true, 1, 0), ops.moveaxis(y_pred, 1, 0)))


def _stacked(model: keras.Model) -> list[SideBySide]:
    return [layer for layer in model.layers if isinstance(layer, SideBySide)]
