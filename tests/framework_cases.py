"""What the frameworks are compared on: losses with their options, inputs, and what torch says of them."""

import numpy as np
import torch

from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.torch import LOSSES, OPS, MetricLoss

N, C, MOST = 7, 5, 3
ROUNDING = 1.2e-7
EXAMPLES_ONLY = ("recall_at_k", "lambda_loss", "deep_f")

OWNERS = {
    "mfc": {"offset": (C,)},
    "precision_at_recall": {"multiplier": (C,)},
    "recall_at_precision": {"multiplier": (C,)},
    "aucpr": {"multiplier": (4, C), "bias": (4, C)},
}
"""Losses with parameters of their own, and the shapes of these."""

RNG = np.random.default_rng(7)
PARAMETERS = {
    name: {key: RNG.uniform(0.3, 1.7, shape).astype(np.float32) for key, shape in shapes.items()}
    for name, shapes in OWNERS.items()
}

OPTIONS = {
    "bce": {"pos_weight": [1.0, 2.0, 0.5, 3.0, 1.0]},
    "focal": {"gamma": [0.5, 1.0, 2.0, 3.0, 2.5], "alpha": None},
    "asymmetric": {"gamma_neg": 2.5, "gamma_pos": 0.5, "clip": 0.0, "reduction": "sum"},
    "poly1": {"epsilon": -0.5, "gamma": 2.0, "reduction": "none"},
    "sigmoid_f1": {
        "slope": [0.5, 1.0, 2.0, 3.0, 4.0],
        "offset": np.array([0.3, -1, 0, 2, 1]),
        "average": None,
    },
    "pick_all_labels": {"normalised": True, "reduction": "none"},
    "two_way": {"temperature": 2.0},
    "recall_at_k": {"k": [1, 3], "rank_temperature": 0.5, "reduction": "sum"},
}
METRICS = [
    *({"score": score, "slope": 1.5, "offset": -0.3} for score in ("fbeta", "mcc", "gmean", "markedness")),
    *({"score": "mcc", "average": average} for average in ("samples", None)),
    *({"average": average, "empty": "skip"} for average in ("micro", "weighted")),
    {"empty": "one", "average": "weighted"},
    {"smoothing": 1.0, "average": "weighted"},
    {"surrogate": "linear"},
    {"surrogate": "hinge", "score": "jaccard"},
    {"surrogate": "amplify", "scale": 7.0},
    {"surrogate": "cdf"},
    {"surrogate": "cdf", "prior": "raised_cosine", "delta": 0.45},
    {"score": lambda tp, fp, fn, tn, div: div(tp, tp + 2 * fp + fn)},
]
LOSS_OPTIONS = [
    *((name, {}) for name in LOSSES),
    *OPTIONS.items(),
    *(("metric_loss", options) for options in METRICS),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(LOSS_OPTIONS)]


def cases():
    """Name -> logits, targets, mask and weight in float32; away from kinks."""
    rng = np.random.default_rng(11)
    z = rng.normal(0, 1.5, (N, C))
    y = rng.random((N, C)) < 0.4
    y[0], y[1], y[:, 0] = False, True, rng.permutation(N) < 3
    signs = np.where(rng.random((N, C)) < 0.5, 1, -1)
    far = rng.normal(0, 0.3, (N, C))
    mask = rng.random((N, C)) < 0.7
    mask[:, 3] = False
    example_weight = rng.uniform(0, 3, (N, 1))
    example_weight[2] = 0
    weight = rng.uniform(0.1, 3, (N, C))
    inputs = {
        "random": (z, y, None, None),
        "no positive": (z, 0 * y, None, None),
        "all positive": (z, 0 * y + 1, None, None),
        "soft": (z, rng.random((N, C)), None, None),
        "far": (1e4 * signs + far, y, None, None),
        "far, no positive": (1e4 * signs + far, 0 * y, None, None),
        "all below": (far - 50, y, None, None),
        "all above": (far + 50, y, None, None),
        "one example": (z[1:2], y[2:3], None, None),
        "masked": (np.where(mask, z, np.nan), y, mask, None),
        "weights of examples": (z, y, None, example_weight),
        "masked and weighed": (z, y, mask, weight),
    }
    return {
        name: tuple(None if part is None else np.asarray(part, np.float32) for part in parts)
        for name, parts in inputs.items()
    }


CASES = cases()


def cases_for(options):
    """All of them for a loss as it is; some for one with options."""
    return ["far", "masked and weighed"] if options else list(CASES)


def inputs_for(name, case):
    """A case as a loss takes it, or None where it does not."""
    z, y, mask, weight = CASES[case]
    if case == "soft" and name in ("lambda_loss", "deep_f"):
        return None
    if name in EXAMPLES_ONLY and weight is not None:
        weight = weight[:, :1]
    if name == "deep_f":
        z = z[..., None] * np.linspace(-1.0, 1.5, MOST + 1, dtype=np.float32) + np.sin(z)[..., None]
        mask = None if mask is None else mask[:, :1]
        z = z if mask is None else np.nan_to_num(z)
    return z, y, mask, weight


def torch_says(name, options, inputs):
    """The value and the gradients (of the logits, and of the parameters of a loss that owns some)."""
    z, *others = (None if part is None else torch.tensor(part) for part in inputs)
    y, mask, weight = others
    own = {key: torch.tensor(value).requires_grad_() for key, value in PARAMETERS.get(name, {}).items()}
    z.requires_grad_()
    if own:
        definition = DEFINITIONS[name]
        value = definition.function(OPS, z, y, mask=mask, weight=weight, **own)
    else:
        kind = {"metric_loss": MetricLoss, **LOSSES}[name]
        most = {"most": MOST} if name == "deep_f" else {}
        value = kind(**most, **options)(z, y, mask, weight)
    gradients = torch.autograd.grad(value.sum(), [z, *own.values()])
    return value.detach().numpy(), [gradient.numpy() for gradient in gradients]


def assert_agree(name, actual, expected, context):
    """To 1e-5 of the largest entry (1e-3 for a temperature of .01), and finite.

    A gradient of 0 may be what rounding leaves of terms that cancel: no more than the rounding of 1.
    """
    tolerance = 1e-3 if name == "recall_at_k" else 1e-5
    values = zip(
        ["value", "gradient", "of parameters", "of parameters"],
        [actual[0], *actual[1]],
        [expected[0], *expected[1]],
        strict=False,
    )
    assert len(actual[1]) == len(expected[1])
    for what, a, e in values:
        a = np.asarray(a)
        assert a.dtype == np.float32, (context, what, a.dtype)
        assert a.shape == e.shape, (context, what)
        assert np.isfinite(a).all(), (context, what)
        assert np.abs(a - e).max() <= max(tolerance * np.abs(e).max(), ROUNDING), (context, what, a, e)
