"""Estimators for scikit-learn on yeast: thresholds tuned around a classifier, a head trained with F1, and its file.

python examples/sklearn_pipeline.py [EPOCHS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scoreloss as sl
from scoreloss.data import load
from scoreloss.sklearn import ThresholdTunedClassifier, TorchMultilabelClassifier


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    data = load("yeast")
    train, test = data.splits["train"], data.splits["test"]
    x, y = data.inputs, data.targets.astype(int)

    def heads(loss: str) -> Any:
        head = TorchMultilabelClassifier(loss, epochs=epochs, random_state=0)
        return make_pipeline(StandardScaler(), head)

    ridge = make_pipeline(StandardScaler(), RidgeClassifier())
    rule = sl.PerLabel("f1", min_positives=5)
    classifiers = {
        "ridge": ridge,
        "ridge, tuned": ThresholdTunedClassifier(ridge, rule=rule, random_state=0),
        "bce": heads("bce"),
        "sigmoid_f1": heads("sigmoid_f1"),
        "bce, tuned": ThresholdTunedClassifier(heads("bce"), rule=rule, random_state=0),
    }
    for name, classifier in classifiers.items():
        predicted = classifier.fit(x[train], y[train]).predict(x[test])
        weighted = f1_score(y[test], predicted, average="weighted", zero_division=0)
        print(f"{name:12} weighted F1 {100 * weighted:.1f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bce.safetensors"
        classifiers["bce, tuned"].save(path)
        again = ThresholdTunedClassifier.load(path)
        same = (again.predict(x[test]) == classifiers["bce, tuned"].predict(x[test])).all()
        print(f"saved in {path.stat().st_size:,} bytes, and predicts the same: {same}")


if __name__ == "__main__":
    main()
