"""A head and its thresholds as one ONNX file, and the labels of onnxruntime beside ours, on yeast.

python examples/onnx_export.py [EPOCHS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

import scoreloss as sl
from scoreloss.data import load
from scoreloss.torch import Loss, SigmoidF1, start_at_priors


class Decider(nn.Module):
    """Features to labels and scores. The thresholds are those of logits: no runtime has to round a sigmoid as another."""

    thresholds: Tensor

    def __init__(self, head: nn.Module, loss: Loss, thresholds: np.ndarray) -> None:
        super().__init__()
        self.head = head
        self.loss = loss
        self.register_buffer("thresholds", torch.as_tensor(thresholds, dtype=torch.float32))

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.head(features)
        return logits >= self.thresholds, self.loss.scores(logits)


def export(decider: Decider, features: int, path: Path) -> None:
    """Write it for any number of examples."""
    torch.onnx.export(
        decider.eval(),
        (torch.zeros(2, features),),
        path,
        input_names=["features"],
        output_names=["labels", "scores"],
        dynamic_shapes={"features": {0: torch.export.Dim("examples")}},
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    data = load("yeast")
    train, validation = np.split(data.splits["train"], [len(data.splits["train"]) * 4 // 5])
    test = data.splits["test"]
    x = torch.tensor((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).float()
    y = torch.tensor(data.targets).float()

    loss = SigmoidF1()
    head = nn.Linear(x.shape[1], y.shape[1])
    start_at_priors(head, sl.label_frequencies(data.targets[train]), loss)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(epochs):
        optimiser.zero_grad()
        loss(head(x[train]), y[train]).backward()
        optimiser.step()
    with torch.no_grad():
        rule = sl.PerLabel("f1", min_positives=5).fit(y[validation], head(x[validation]))
        ours = rule.predict(head(x[test]))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "yeast.onnx"
        export(Decider(head, loss, rule.thresholds_), x.shape[1], path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        size = path.stat().st_size
    labels, _ = session.run(None, {"features": x[test].numpy()})
    print(f"{size:,} bytes; {(labels != ours).sum()} of {labels.size:,} labels differ")
    print(f"macro F1 {100 * sl.evaluate(data.targets[test], labels)['macro_f1']:.1f}")


if __name__ == "__main__":
    main()
