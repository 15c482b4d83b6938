"""What a fitted model computes, written again from the files alone, in plain numpy; and data to fit some on."""

import itertools
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from scoreloss.data import Dataset

NAMES = ("a", "b", "c|d", "<i>e</i>")


def matrix(n=240, width=6, names=NAMES, seed=0, splits=True):
    """Examples whose labels depend on the features, with a test part."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, width)) * 3 + 1
    x[:, -1] = 7  # says nothing, and has no spread
    weight = np.random.default_rng(1).normal(size=(width, len(names)))
    y = (x - 1) @ weight + rng.normal(size=(n, len(names))) > 2
    parts = {"train": np.arange(n - n // 4), "test": np.arange(n - n // 4, n)} if splits else {}
    return Dataset("made up", x, y, tuple(names), parts)


def texts(n=200, seed=0):
    """Texts whose words say the labels, and lists of labels."""
    rng = np.random.default_rng(seed)
    words = {"war": "tank battle soldier", "love": "kiss heart wedding", "space": "rocket moon alien"}
    found, labels = [], []
    for _ in range(n):
        some = [label for label in words if rng.random() < 0.4]
        chosen = [rng.choice(words[label].split()) for label in some for _ in range(2)]
        chosen += list(rng.choice(["the", "film", "of", "a", "long", "day", "in", "old", "town"], 4))
        rng.shuffle(chosen)
        found.append(" ".join(chosen))
        labels.append(some)
    return found, labels


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def by_hand(folder, x):
    """Scores, probabilities, label sets and expected F1 of features (n, d), from the two files."""
    folder = Path(folder)
    arrays = {name: array.astype(float) for name, array in load_file(folder / "head.safetensors").items()}
    record = json.loads((folder / "model.json").read_text())
    z = (x - arrays["mean"]) * arrays["scale"]
    for k in itertools.count():
        if f"weight.{k}" not in arrays:
            break
        z = (np.maximum(z, 0) if k else z) @ arrays[f"weight.{k}"].T + arrays[f"bias.{k}"]
    c = len(record["labels"])
    if z.shape[1] == c:
        scores = sigmoid(z - arrays["boundary"])
    else:
        z = z.reshape(len(z), c, -1)
        scores = 1 - np.exp(z[:, :, 0]) / np.exp(z).sum(axis=2)
    logits = np.log(scores / (1 - scores))
    chances = sigmoid(arrays["platt.slopes"] * logits + arrays["platt.intercepts"])
    rated = scores if record["rule"]["on"] == "scores" else chances
    sets = np.array(list(itertools.product([False, True], repeat=c)))
    expected = expected_f1_of_sets(chances, sets)
    if record["rule"]["kind"] == "thresholds":
        decided = rated >= np.array([float(t) for t in record["thresholds"]])
    elif record["rule"]["kind"] == "expected_f1":
        decided = sets[np.argmax(expected, axis=1)]
    else:
        ranks = np.argsort(np.argsort(-rated, axis=1, kind="stable"), axis=1, kind="stable")
        decided = ranks < np.floor(rated.sum(axis=1) + 0.5)[:, None]
    of_decided = (decided[:, None] == sets).all(axis=2)
    return scores, chances, decided, (expected * of_decided).sum(axis=1)


def expected_f1_of_sets(chances, sets):
    """The mean F1 of every set of labels over all truths, (n, sets)."""
    expected = np.zeros((len(chances), len(sets)))
    for truth in sets:
        chance = np.where(truth, chances, 1 - chances).prod(axis=1)
        tp, size = (sets & truth).sum(axis=1), sets.sum(axis=1) + truth.sum()
        expected += chance[:, None] * np.where(size > 0, 2 * tp / np.maximum(size, 1), 1.0)
    return expected
