"""A head for the number of labels beside a head for the labels, on yeast: does TopK with its counts beat a threshold?

python examples/label_count.py [EPOCHS]
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import scoreloss as sl
from scoreloss.data import load
from scoreloss.torch import BCE, LabelCount, start_at_priors


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    torch.manual_seed(0)
    data = load("yeast")
    train, test = data.splits["train"], data.splits["test"]
    x = torch.tensor((data.inputs - data.inputs[train].mean(0)) / data.inputs[train].std(0)).float()
    y = torch.tensor(data.targets).float()

    loss = BCE()
    head = nn.Linear(x.shape[1], y.shape[1])
    count = LabelCount(x.shape[1], most=int(y[train].sum(1).max()))
    start_at_priors(head, sl.label_frequencies(data.targets[train]), loss)
    optimiser = torch.optim.Adam([*head.parameters(), *count.parameters()], lr=0.01, weight_decay=1e-3)
    for _ in range(epochs):
        optimiser.zero_grad()
        (loss(head(x[train]), y[train]) + count.loss(x[train], y[train])).backward()
        optimiser.step()

    with torch.no_grad():
        scores = loss.scores(head(x[test])).numpy()
        predictions = {
            "scores >= 0.5": sl.Fixed(0.5).predict(scores),
            "TopK, LabelCount": sl.TopK(count.predict(x[test]).numpy()).predict(scores),
            "TopK, sum of scores": sl.TopK("count").predict(scores),
        }
    for name, predicted in predictions.items():
        metrics = sl.evaluate(data.targets[test], predicted)
        print(
            f"{name:20} samples F1 {100 * metrics['samples_f1']:.1f}  micro F1 {100 * metrics['micro_f1']:.1f}  "
            f"macro F1 {100 * metrics['macro_f1']:.1f}"
        )


if __name__ == "__main__":
    main()
