"""What is compared: a loss under a name, and the configurations that validation data choose from.

Every loss gets the same number of configurations: learning rates first, then its own knobs, then weight decays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoreloss.bench.as_coded import SigmoidF1AsCoded
from scoreloss.checks import InputError, number_from, one_of
from scoreloss.losses.definitions import DEFINITIONS, SIGMOID_OPTIONS
from scoreloss.torch import BCE, LOSSES, Loss, MetricLoss, Mix, warm_up

PAPER_LOSSES = ("bce", "focal", "asymmetric", "unbounded_f1", "sigmoid_f1")
INITS = ("priors", "default")
FRAMEWORKS = ("torch", "keras")

LEARNING_RATES = (1.0, 3.0, 1 / 3, 10.0)
"""What is tried, as multiples of the learning rate that is given."""

DECAYS = {"weight_decay": (0.0, 0.01, 0.1, 1.0, 0.001), "epoch_decay": (0.0, 3.0, 10.0, 30.0, 1.0)}
"""What is tried of a loss that has no knobs of its own left."""

SLOPES_AND_OFFSETS = (
    {"slope": 2.0},
    {"offset": 1.0},
    {"offset": 2.0},
    {"slope": 2.0, "offset": 1.0},
    {"slope": 5.0},
    {"slope": 5.0, "offset": 1.0},
    {"slope": 10.0},
    {"slope": 10.0, "offset": 1.0},
    {"slope": 30.0},
    {"slope": 30.0, "offset": 2.0},
)
"""What is tried of those that have both, within the paper's grid: slopes from 1 to 30, offsets from 0 to 2."""

OWN_KNOBS: dict[str, tuple[dict[str, float], ...]] = {
    "bce": ({"pos_weight": 2.0}, {"pos_weight": 4.0}),
    "focal": (
        {"alpha": 0.5},
        {"alpha": 0.5, "gamma": 1.0},
        {"alpha": 0.75},
        {"gamma": 1.0},
        {"alpha": 0.5, "gamma": 3.0},
    ),
    "asymmetric": (
        {"gamma_neg": 2.0},
        {"gamma_pos": 0.0},
        {"gamma_neg": 2.0, "gamma_pos": 0.0},
        {"gamma_neg": 6.0},
    ),
    "poly1": ({"epsilon": 2.0}, {"epsilon": -0.5}, {"gamma": 1.0}),
    "two_way": ({"temperature": 1.0}, {"temperature": 2.0}, {"temperature": 8.0}),
    "mfc": ({"slope": 2.0}, {"slope": 0.5}, {"slope": 5.0}),
    **dict.fromkeys(
        (name for name, of in DEFINITIONS.items() if of.options == SIGMOID_OPTIONS), SLOPES_AND_OFFSETS
    ),
}
"""The knobs of a loss that are tried after its defaults."""


AS_CODED = "sigmoid_f1_as_coded"

TRAINABLE: dict[str, type[Loss]] = {**LOSSES, "metric_loss": MetricLoss, AS_CODED: SigmoidF1AsCoded}
"""Every loss by its name, any score as one (``metric_loss`` with ``score``), and what the paper's code computes."""

DEFINED = {**DEFINITIONS, AS_CODED: DEFINITIONS["sigmoid_f1"]}
"""The options of each."""

RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "recommended": ("sigmoid_f1", {"bce": 0.05, "batch_size": 64, "epoch_decay": 20.0}),
}
"""Settings with a name of their own: the loss, and what of a configuration is given. See ``docs/results.md``."""


@dataclass(frozen=True)
class Config:
    """One way to train a loss."""

    learning_rate: float = 0.003
    weight_decay: float = 0.0
    """Decoupled, as in AdamW: a step takes learning rate x decay off the weights."""
    epoch_decay: float = 0.0
    """The same for a whole epoch, shared among its steps: one number for small sets and large ones."""
    batch_size: int | None = 256
    """None is the whole training part."""
    init: str = "priors"
    bce: float = 0.0
    """The share of binary cross-entropy in a sum with the loss."""
    warm_up: float = 0.0
    """The share of all steps in which binary cross-entropy goes over into the loss."""
    options: tuple[tuple[str, Any], ...] = ()
    """Of the loss."""

    def __post_init__(self) -> None:
        number_from("learning_rate", self.learning_rate, 0, strict=True)
        number_from("weight_decay", self.weight_decay, 0)
        number_from("epoch_decay", self.epoch_decay, 0)
        if self.weight_decay and self.epoch_decay:
            raise InputError("weight_decay and epoch_decay are both given: weights decay in one way")
        whole = isinstance(self.batch_size, int) and not isinstance(self.batch_size, bool)
        if self.batch_size is not None and not (whole and self.batch_size >= 1):
            raise InputError(f"batch_size is {self.batch_size}: it must be at least 1, or all")
        one_of("init", self.init, INITS)
        for name in ("bce", "warm_up"):
            number_from(name, getattr(self, name), 0)
            if getattr(self, name) >= 1:
                raise InputError(f"{name} is {getattr(self, name)}: it must lie below 1")
        if self.bce and self.warm_up:
            raise InputError("bce and warm_up are both given: a loss is mixed with bce in one way")

    @classmethod
    def described(cls, record: Mapping[str, Any]) -> Self:
        """The configuration of a description."""
        return cls(**{**record, "options": tuple((name, value) for name, value in record["options"])})

    def steps(self, examples: int) -> int:
        """How many steps an epoch has."""
        return math.ceil(examples / (self.batch_size or examples))

    def decay(self, examples: int) -> float:
        """The weight decay of a step."""
        return self.weight_decay + self.epoch_decay / self.steps(examples)

    def loss(self, name: str, targets: NDArray[np.bool_], *, runs: int | None = None, steps: int = 1) -> Loss:
        """The loss for these targets (n, c) and so many runs, to be trained for so many steps."""
        loss = TRAINABLE[name].for_targets(targets, runs=runs, **dict(self.options))
        if self.warm_up:
            return Mix(BCE(), loss, weight=warm_up(self.warm_up * steps))
        return Mix(BCE(), loss, weight=self.bce) if self.bce else loss


@dataclass(frozen=True)
class Contender:
    """A loss under the name that tables show, and its configurations."""

    name: str
    loss: str
    configs: tuple[Config, ...]

    def __post_init__(self) -> None:
        one_of("loss", self.loss, TRAINABLE)
        definition = DEFINED[self.loss]
        small = np.eye(2, dtype=bool)
        for config in self.configs:
            if self.loss != "metric_loss":  # which also takes the knobs of its surrogate
                for name, _ in config.options:
                    one_of(f"option of {self.loss}", name, definition.options)
            config.loss(self.loss, small)

    def check_framework(self, framework: str) -> None:
        """Refuse what this framework does not train."""
        if framework == "torch":
            return
        if self.loss not in losses_in(framework):
            raise InputError(
                f"loss is {self.loss!r}: it has parameters of its own, which the bench trains in torch alone"
            )
        if any(config.bce or config.warm_up for config in self.configs):
            raise InputError(f"{self.name} is mixed with bce, which the bench trains in torch alone")


def losses_in(framework: str) -> list[str]:
    """The losses that the bench trains in a framework: with Keras those without parameters of their own."""
    return [name for name, loss in LOSSES.items() if framework == "torch" or not loss.learns]


def contenders(names: Sequence[str], budget: int = 1, base: Config | None = None) -> list[Contender]:
    """The losses of these names (or ``recommended``), each with so many configurations around the first."""
    if budget < 1:
        raise InputError(f"budget is {budget}: it must be at least 1")
    base = base or Config()
    found = []
    for name in dict.fromkeys(names):
        one_of("loss", name, (*TRAINABLE, *RECIPES))
        loss, recipe = RECIPES.get(name, (name, {}))
        found.append(Contender(name, loss, tuned(loss, budget, replace(base, **recipe), free=name == loss)))
    return found


def tuned(loss: str, budget: int, base: Config, *, free: bool = True) -> tuple[Config, ...]:
    """The first of all learning rates, for the loss as it is, with other knobs (if it is ``free``), and with weight decay."""

    def around() -> Iterator[Config]:
        knobs = OWN_KNOBS.get(loss, ()) if free else ()
        variants = [base, *(replace(base, options=tuple(own.items())) for own in knobs)]
        kind = "epoch_decay" if base.epoch_decay else "weight_decay"
        given = getattr(base, kind)
        decays = [given, *(decay for decay in DECAYS[kind] if decay != given)]
        for decay, variant, times in itertools.product(decays, variants, LEARNING_RATES):
            rate = float(f"{times * base.learning_rate:.3g}")
            yield replace(variant, learning_rate=rate, **{kind: decay})

    found = tuple(itertools.islice(around(), budget))
    if len(found) < budget:
        raise InputError(f"budget is {budget}: of {loss} there are {len(found)} configurations to try")
    return found


def given(record: Mapping[str, Any], budget: int, base: Config) -> Contender:
    """The contender of a table: ``name``, ``loss``, and settings and options, of which lists are all tried.

    Without a learning rate, the budget goes to learning rates as it does for a name alone.
    """
    values = dict(record)
    loss = values.pop("loss", None)
    one_of("loss", loss, (*TRAINABLE, *RECIPES))
    name = values.pop("name", loss)
    loss, recipe = RECIPES.get(loss, (loss, {}))
    base = replace(base, **recipe)
    settings = [field.name for field in fields(Config) if field.name != "options"]
    axes = [
        [(key, value) for value in (values[key] if isinstance(values[key], list) else [values[key]])]
        for key in values
    ]
    configs: list[Config] = []
    for point in itertools.product(*axes):
        chosen: dict[str, Any] = {
            key: None if value == "all" else value for key, value in point if key in settings
        }
        options = dict(base.options) | {key: value for key, value in point if key not in settings}
        config = replace(base, **chosen, options=tuple(options.items()))
        configs += [config] if "learning_rate" in values else tuned(loss, budget, config, free=False)
    return Contender(str(name), loss, tuple(dict.fromkeys(configs)))


def described(contender: Contender) -> dict[str, Any]:
    """As JSON can hold it."""
    return {
        "name": contender.name,
        "loss": contender.loss,
        "configs": [
            {**asdict(config), "options": [list(pair) for pair in config.options]}
            for config in contender.configs
        ],
    }
