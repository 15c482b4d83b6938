"""Yeast with Keras: start at the priors, train on the score that is reported, and watch it over whole epochs.

python examples/keras_fit.py [EPOCHS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import keras

import scoreloss as sl
from scoreloss.data import load
from scoreloss.keras import PriorBias, Score, SigmoidF1


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    keras.utils.set_random_seed(0)
    data = load("yeast")
    train, test = data.splits["train"], data.splits["test"]
    x = ((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).astype("float32")
    y = data.targets.astype("float32")

    loss = SigmoidF1()
    head = keras.layers.Dense(
        y.shape[1],
        kernel_initializer=keras.initializers.VarianceScaling(0.01 / 3, "fan_in", "uniform"),
        bias_initializer=PriorBias(sl.label_frequencies(data.targets[train]), loss),
    )
    model = keras.Sequential([keras.Input(x.shape[1:]), head])
    model.compile(keras.optimizers.Adam(0.003), loss=loss, metrics=[Score("f1", average="macro", loss=loss)])
    model.fit(x[train], y[train], batch_size=256, epochs=epochs, verbose=0)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        model = keras.saving.load_model(path)
    seen = model.evaluate(x[test], y[test], verbose=0, return_dict=True)
    scores = keras.ops.convert_to_numpy(model.loss.scores(model.predict(x[test], verbose=0)))
    metrics = sl.evaluate(data.targets[test], scores)
    print(
        f"macro F1 while streaming {100 * seen['macro_f1']:.1f}, of the whole {100 * metrics['macro_f1']:.1f}"
    )
    print(f"weighted F1 {100 * metrics['weighted_f1']:.1f}")


if __name__ == "__main__":
    main()
