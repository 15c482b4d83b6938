"""The losses in JAX: pure functions of logits (..., n, c) and targets, under ``jit``, ``grad``, ``vmap`` and sharding.

    loss, gradient = jax.value_and_grad(lambda w: sigmoid_f1(x @ w, y))(weights)

Every function returns a scalar; with leading axes, one loss a run. ``mask`` and ``weight`` broadcast against the
targets. Options are keyword-only, and those that are numbers may be arrays that are learned. Losses with
parameters of their own, such as ``recall_at_precision``, take them as arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scoreloss.checks import InputError
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.losses.options import KNOBS
from scoreloss.ops import Ops, scaled_divide, static_size
from scoreloss.start import checked_frequencies, start_of_surrogate, weight_bounds
from scoreloss.surrogates import knobs_of

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    raise ImportError("scoreloss.jax needs JAX: pip install 'scoreloss[jax]'") from missing

OPS = Ops(
    widen=lambda x: jnp.asarray(x, jnp.float64 if x.dtype == jnp.float64 else jnp.float32),
    cast=lambda x, like: jnp.asarray(x, like.dtype),
    sum=lambda x, axis, keepdims=False: jnp.sum(x, axis, keepdims=keepdims),
    max=lambda x, axis, keepdims=False: jnp.max(x, axis, keepdims=keepdims),
    size=static_size,
    divide=scaled_divide(jnp.where, jax.lax.stop_gradient),
    where=jnp.where,
    clip=jnp.clip,
    epsilon=lambda x: float(np.finfo(x.dtype).eps),
    ones_like=jnp.ones_like,
    stop_gradient=jax.lax.stop_gradient,
    sigmoid=jax.nn.sigmoid,
    softplus=jax.nn.softplus,
    exp=jnp.exp,
    log=jnp.log,
    sqrt=jnp.sqrt,
    abs=jnp.abs,
    sin=jnp.sin,
)
"""What the losses of ``scoreloss.losses`` need of JAX."""

Loss = Callable[..., jax.Array]
"""loss(logits, targets, *, mask=None, weight=None, **options)"""


def _loss(name: str, doc: str = "") -> Loss:
    definition = DEFINITIONS[name]

    def loss(
        logits: ArrayLike,
        targets: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        **options: Any,
    ) -> jax.Array:
        z, y = jnp.asarray(logits), jnp.asarray(targets)
        given = {"mask": mask, "weight": weight}
        extra = {name: jnp.asarray(part) for name, part in given.items() if part is not None}
        if not jnp.issubdtype(z.dtype, jnp.floating):
            raise InputError(f"logits are {z.dtype}: they must be floating-point")
        definition.check_arguments(z.shape, y.shape, **{name: part.shape for name, part in extra.items()})
        parameters = {name: options.pop(name, default) for name, default in definition.parameters.items()}
        for parameter, default in parameters.items():
            if default is inspect.Parameter.empty:
                raise InputError(f"{parameter} is missing: {name} is given the parameters it learns")
        traced = {option for option, value in options.items() if isinstance(value, jax.Array)}
        chosen = definition.checked(options, unknown=traced) | parameters
        for option in KNOBS:
            if isinstance(chosen.get(option), (list, tuple, np.ndarray)):
                chosen[option] = OPS.cast(chosen[option], OPS.widen(z))
        result: jax.Array = definition.function(OPS, z, y, **extra, **definition.fixed, **chosen)
        return result

    kinds = inspect.Parameter
    parameters = [kinds(part, kinds.POSITIONAL_OR_KEYWORD) for part in ("logits", "targets")]
    for option, default in {
        **definition.options,
        **definition.parameters,
        "mask": None,
        "weight": None,
    }.items():
        parameters.append(kinds(option, kinds.KEYWORD_ONLY, default=default))
    if name == "metric_loss":
        parameters.append(kinds("knobs", kinds.VAR_KEYWORD))
    loss.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = doc or definition.function.__doc__
    return loss


bce = _loss("bce")
focal = _loss("focal")
asymmetric = _loss("asymmetric")
poly1 = _loss("poly1")
hill = _loss("hill")
metric_loss = _loss("metric_loss")
sigmoid_f1 = _loss("sigmoid_f1", "1 - F1 on counts of sigmoid(slope (z + offset)): the paper's loss.")
unbounded_f1 = _loss("unbounded_f1", "1 - F1 with the logit itself for 'predicted positive'; it may diverge.")
smooth_accuracy = _loss("smooth_accuracy", "1 - (tp + tn) / n on sigmoid counts.")
smooth_precision = _loss("smooth_precision", "1 - tp / (tp + fp) on sigmoid counts.")
smooth_npv = _loss("smooth_npv", "1 - tn / (tn + fn) on sigmoid counts.")
smooth_recall = _loss("smooth_recall", "1 - tp / (tp + fn) on sigmoid counts.")
smooth_specificity = _loss("smooth_specificity", "1 - tn / (tn + fp) on sigmoid counts.")
soft_f1 = _loss("soft_f1", "1 - F1 on counts of sigmoid(z).")
double_soft_f1 = _loss("double_soft_f1", "1 - the mean of the soft F1 of the positives and of the negatives.")
mfc = _loss("mfc")
hinge_f1 = _loss("hinge_f1")
precision_at_recall = _loss("precision_at_recall")
recall_at_precision = _loss("recall_at_precision")
aucpr = _loss("aucpr")
pick_all_labels = _loss("pick_all_labels")
bp_mll = _loss("bp_mll")
zlpr = _loss("zlpr")
two_way = _loss("two_way")
recall_at_k = _loss("recall_at_k")
lambda_loss = _loss("lambda_loss")
deep_f = _loss("deep_f")


def start_at_priors(
    key: jax.Array, features: int, frequencies: ArrayLike, *, surrogate: str = "sigmoid", **knobs: Any
) -> tuple[jax.Array, jax.Array]:
    """Weights (features, c) and bias (c,) of a head that predicts each label's frequency.

    The surrogate with its ``knobs``, named as for ``metric_loss``, says the frequencies at the bias; the default says
    sigmoid(bias), which suits the losses without one. The weights are drawn at a tenth of the usual scale.
    ``scoreloss.label_frequencies(targets)`` gives frequencies that are never 0 or 1.
    """
    all_knobs = {
        name: np.asarray(knob, np.float64) if name in KNOBS else knob
        for name, knob in knobs_of(surrogate, knobs).items()
    }
    bias, steepness = start_of_surrogate(checked_frequencies(frequencies), surrogate, all_knobs)
    weights = jax.random.uniform(key, (features, *bias.shape), minval=-1.0)
    return weights * weight_bounds(steepness, features).astype(np.float32), jnp.asarray(bias, jnp.float32)


__all__ = [
    "OPS",
    "asymmetric",
    "aucpr",
    "bce",
    "bp_mll",
    "deep_f",
    "double_soft_f1",
    "focal",
    "hill",
    "hinge_f1",
    "lambda_loss",
    "metric_loss",
    "mfc",
    "pick_all_labels",
    "poly1",
    "precision_at_recall",
    "recall_at_k",
    "recall_at_precision",
    "sigmoid_f1",
    "smooth_accuracy",
    "smooth_npv",
    "smooth_precision",
    "smooth_recall",
    "smooth_specificity",
    "soft_f1",
    "start_at_priors",
    "two_way",
    "unbounded_f1",
    "zlpr",
]
