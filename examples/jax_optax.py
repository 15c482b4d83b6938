"""Yeast with JAX and optax: start at the priors, and train on the score that is reported.

python examples/jax_optax.py [EPOCHS]
"""

from __future__ import annotations

import sys

import jax
import numpy as np
import optax

import scoreloss as sl
from scoreloss.data import load
from scoreloss.jax import sigmoid_f1, start_at_priors


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    data = load("yeast")
    train, test = data.splits["train"], data.splits["test"]
    x = ((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).astype("float32")
    y = data.targets.astype("float32")

    head = start_at_priors(jax.random.key(0), x.shape[1], sl.label_frequencies(data.targets[train]))
    optimiser = optax.adam(0.01)

    @jax.jit
    def step(head, state):
        gradient = jax.grad(lambda h: sigmoid_f1(x[train] @ h[0] + h[1], y[train]))(head)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(head, updates), state

    state = optimiser.init(head)
    for _ in range(epochs):
        head, state = step(head, state)

    scores = np.asarray(jax.nn.sigmoid(x[test] @ head[0] + head[1]))
    metrics = sl.evaluate(data.targets[test], scores)
    print(f"macro F1 {100 * metrics['macro_f1']:.1f}  weighted F1 {100 * metrics['weighted_f1']:.1f}")


if __name__ == "__main__":
    main()
