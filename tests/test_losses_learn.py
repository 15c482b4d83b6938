"""What training on each loss reaches: its own score on a problem that can be solved, constraints on new data, memory."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import scoreloss as sl
from scoreloss.torch import LOSSES, PrecisionAtRecall, RecallAtPrecision, start_at_priors


def clusters():
    """Five clusters on a ring, each with its own label and the next one's: a linear head can tell them apart."""
    rng = np.random.default_rng(1)
    sets = np.array([[j in (i, (i + 1) % 5) for j in range(5)] for i in range(5)])
    centres = rng.normal(size=(5, 16))
    which = np.repeat(np.arange(5), 40)
    return centres[which] + 0.05 * rng.normal(size=(200, 16)), sets[which]


def trained(loss, x, y, *, steps, rate):
    """A linear head from the start at the priors, and what it says."""
    outputs = loss.outputs(y.shape[1])
    head = nn.Linear(x.shape[1], int(np.prod(outputs)))
    start_at_priors(head, sl.label_frequencies(y), loss)
    optimiser = torch.optim.Adam([*head.parameters(), *loss.parameters()], lr=rate)
    features, targets = torch.tensor(x).float(), torch.tensor(y).float()
    for _ in range(steps):
        optimiser.zero_grad()
        loss(head(features).unflatten(-1, outputs), targets).backward()
        optimiser.step()
    return lambda new: loss.scores(head(torch.tensor(new).float()).unflatten(-1, outputs)).detach().numpy()


RATE = {"recall_at_k": 0.002}
"""Its ranks have no gradient once labels are far apart: at 0.02 it is left at an F1 of 0.91."""

OWN_SCORE = {
    "smooth_accuracy": "accuracy",
    "smooth_precision": "precision",
    "smooth_npv": "npv",
    "smooth_recall": "recall",
    "smooth_specificity": "specificity",
    "precision_at_recall": "precision",
    "recall_at_precision": "recall",
}


def score_of_labels(name, y, predicted):
    """The mean over labels of a score, by counting."""
    tp, fp = (y & predicted).sum(0), (~y & predicted).sum(0)
    fn, tn = (y & ~predicted).sum(0), (~y & ~predicted).sum(0)
    values = sl.SCORES[name](tp, fp, fn, tn, lambda num, den, power=1: num / np.maximum(den, 1e-9) ** power)
    return np.mean(values)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_learns_its_own_score(name):
    """At its own boundary where it has one, under one threshold for all where it only ranks."""
    x, y = clusters()
    loss = LOSSES[name].for_targets(y)
    scores = trained(loss, x, y, steps=300, rate=RATE.get(name, 0.02))(x)
    rule = sl.Global("f1", "micro").fit(y, scores) if loss.only_ranks else sl.Fixed(0.5)
    reached = score_of_labels(OWN_SCORE.get(name, "f1"), y, rule.predict(scores))
    assert reached >= 0.95, reached


def noisy(seed, n=4000):
    """Three labels whose chances depend on the features: no head gets all of them right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    z = x @ np.random.default_rng(7).normal(size=(6, 3)) * 1.2 - [0.5, 1.0, 1.5]
    return x, rng.random((n, 3)) < 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(
    ("kind", "knob", "least"),
    [
        (PrecisionAtRecall, "recall", 0.7),
        (PrecisionAtRecall, "recall", 0.85),
        (RecallAtPrecision, "precision", 0.8),
        (RecallAtPrecision, "precision", 0.85),
    ],
)
def test_a_constraint_is_met_on_new_data(kind, knob, least):
    torch.manual_seed(0)
    loss = kind(3, **{knob: least})
    says = trained(loss, *noisy(0), steps=1500, rate=0.03)
    x, y = noisy(1)
    metrics = sl.evaluate(y, says(x), per_label=True)["per_label"]
    plain = sl.evaluate(y, trained(LOSSES["bce"](), *noisy(0), steps=500, rate=0.03)(x), per_label=True)
    assert (metrics[knob] >= least - 0.02).all(), metrics[knob]
    assert (plain["per_label"][knob] < least - 0.02).any(), (
        "the constraint must be one that plain training breaks"
    )
    assert (metrics["precision" if knob == "recall" else "recall"] > 0.05).all()


PEAK = """
import resource, torch
from scoreloss.torch import LOSSES
z = torch.randn(256, 400, requires_grad=True)
y = (torch.rand(256, 400) < 0.02).float()
before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
LOSSES["{name}"]()(z, y).backward()
print((1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**30)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recall_at_k", "lambda_loss"])
def test_losses_of_pairs_of_labels_fit_into_memory(name):
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(name=name)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 2, f"{done.stdout} GiB"
    print(done.stdout)
