"""From a dataset to a fitted model, by the experiment's protocol: validation data choose, then all of it trains.

Losses with a budget each are trained together (``bench.search``); the loss, its configuration, the epoch and the rule
with the best cross-fitted F1 on validation data are taken. The head is then trained anew on training and validation
part together, for as many epochs; thresholds and calibration are those that were fitted on the validation part. An
official test part is looked at once, at the end.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scoreloss.backbones import encoder_of, features
from scoreloss.bench import decide, train
from scoreloss.bench.contenders import RECIPES, TRAINABLE, Config, Contender, contenders
from scoreloss.bench.material import Material
from scoreloss.bench.packed import pack
from scoreloss.bench.plan import HEADS, Cell, Settings
from scoreloss.bench.search import Search, searched
from scoreloss.bench.splits import Split
from scoreloss.bench.stats import Resamples
from scoreloss.calibrate import Platt, calibrate
from scoreloss.checks import Booleans, Floats, InputError, one_of
from scoreloss.data import Dataset
from scoreloss.metrics import decision_metrics, ranking_metrics
from scoreloss.model.features import Features, default_backbone
from scoreloss.model.fitted import Model
from scoreloss.model.numbers import Decision, Head
from scoreloss.ops import logits_from
from scoreloss.say import Say, silent
from scoreloss.split import stratified_split
from scoreloss.torch import Loss

AUTO = "auto"

CANDIDATES = ("recommended", "sigmoid_f1", "bce", "asymmetric")
"""The losses that are tried where none is named; of equals the first is taken."""

SCORES = tuple(f"{average}_f1" for average in decide.AVERAGES)

VALIDATION_SHARE = 0.2
PATIENCE = 15
LONGEST = 10_000
"""Characters of the name of a label."""

RESAMPLES = 1000
DRAWS = 2**26
"""Of the bootstrap: examples times resamples, for memory."""


@dataclass(frozen=True)
class Choice:
    """How a model is chosen."""

    backbone: str | None = None
    """None: ``identity`` for a matrix, ``tfidf`` for texts."""
    loss: str = AUTO
    rule: str = AUTO
    score: str = "weighted_f1"
    head: str | None = None
    """None: ``mlp`` for a matrix, ``linear`` on features of a backbone."""
    budget: int = 4
    epochs: int = 60
    refit: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("loss", self.loss, (AUTO, *RECIPES, *(n for n in TRAINABLE if n != "metric_loss")))
        one_of("rule", self.rule, (AUTO, *decide.RULES))
        one_of("score", self.score, SCORES)
        one_of("head", self.head, (None, *HEADS))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed is {self.seed!r}: it must be a whole number from 0")
        contenders(self.names, self.budget)
        Settings(epochs=self.epochs)

    @property
    def names(self) -> tuple[str, ...]:
        """The losses that are tried."""
        return CANDIDATES if self.loss == AUTO else (self.loss,)


def fit(
    dataset: Dataset, choice: Choice | None = None, *, cache: Path | None = None, say: Say = silent
) -> Model:
    """Choose and train a model. ``cache`` is where features of a backbone are kept."""
    choice = choice or Choice()
    for place, label in enumerate(dataset.labels):
        if not _is_text(label):
            raise InputError(
                f"labels[{place}] is {label[:40]!a}: it must be text, and no longer than {LONGEST}"
            )
    backbone = choice.backbone or default_backbone(dataset.kind)
    split = split_of(dataset, choice.seed)
    found = features(dataset, backbone, cache=cache, fit_on=split.pool, say=say)
    material = Material(dataset.targets, {choice.seed: found}, {choice.seed: split})
    head = choice.head or ("mlp" if dataset.kind == "matrix" else "linear")
    settings = Settings(head=head, epochs=choice.epochs, patience=PATIENCE)
    cells = [
        Cell(dataset.name, dataset.content_hash, contender, choice.seed, settings, backbone)
        for contender in contenders(choice.names, choice.budget)
    ]
    search = searched(material, [cells], choice.score.partition("_")[0], say)
    best, tried = _best(search, choice)
    say(
        f"chosen: {best.contender.name} under {best.rule}, epoch {best.epoch}, "
        f"{choice.score} {100 * best.value:.1f} on validation data"
    )
    if choice.refit:
        trained = _trained_again(material, best, settings, choice.seed, len(split.train), say)
    else:
        trained = best.layers, best.trained
    standardised_on = split.pool if choice.refit else split.train
    labels = dataset.targets.shape[1]
    numbers = _head(head, found[standardised_on], *trained, labels)
    whole = Model(
        dataset.labels,
        _features(dataset, backbone, found.shape[1], split.pool),
        numbers,
        best.calibration,
        best.decision,
        {},
    )
    record = {
        "loss": {
            "name": best.contender.loss,
            "tried_as": best.contender.name,
            **asdict(best.config),
            "options": dict(best.config.options),
            "epoch": best.epoch,
        },
        "rule": {"name": best.rule, "kind": best.decision.kind, "on": best.decision.on},
        "head": {"form": head, "widths": [numbers.width, *map(len, numbers.weights)]},
        "selection": {
            **asdict(choice),
            "losses": list(choice.names),
            "refitted": choice.refit,
            "tried": tried,
        },
        "validation": measured(dataset.targets[split.validation], best.crossed, best.crossed_rated),
        "test": _tested(dataset, split, whole, found),
        "data": {
            "name": dataset.name,
            "hash": dataset.content_hash,
            "examples": {part: len(getattr(split, part)) for part in ("train", "validation", "test")},
            "positives": dataset.targets[split.pool].sum(axis=0).tolist(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("scoreloss", "numpy", "torch")},
        },
    }
    return Model(whole.labels, whole.features, numbers, best.calibration, best.decision, record)


def _is_text(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return len(label) <= LONGEST


def split_of(dataset: Dataset, seed: int) -> Split:
    """The official parts where there are some; without an official test part, everything is for the model."""
    test = np.asarray(dataset.splits.get("test", np.zeros(0, np.intp)))
    pool = np.asarray(dataset.splits.get("train", np.arange(len(dataset.targets))))
    if "validation" in dataset.splits:
        parts = pool, np.asarray(dataset.splits["validation"])
    else:
        size = round(VALIDATION_SHARE * len(pool))
        if not 2 <= size < len(pool):
            raise InputError(
                f"dataset {dataset.name} has {len(pool)} examples to learn from: that is too few"
            )
        rest, part = stratified_split(dataset.targets[pool], [len(pool) - size, size], seed=seed)
        parts = pool[rest], pool[part]
    for name, rows in zip(("training", "validation"), parts, strict=True):
        if not dataset.targets[rows].any():
            raise InputError(
                f"dataset {dataset.name} has no label in its {name} part: there is nothing to learn"
            )
    return Split(*parts, test)


@dataclass(frozen=True, eq=False)
class _Best:
    """What validation data chose, and what was fitted on them."""

    contender: Contender
    config: Config
    epoch: int
    rule: str
    value: float
    layers: list[torch.Tensor]
    trained: Loss
    decision: Decision
    calibration: Platt
    crossed: Booleans
    """What was predicted of each half of the validation part by the rule as fitted on the other."""
    crossed_rated: Floats


def _best(search: Search, choice: Choice) -> tuple[_Best, list[dict[str, Any]]]:
    """Of every loss and every rule that fits; and the F1 that each of them reached."""
    average = search.average
    y = search.material.targets[search.splits[0].validation]
    wanted = list(decide.RULES) if choice.rule == AUTO else [choice.rule]
    tried: list[dict[str, Any]] = []
    top: tuple[float, int, str] | None = None
    for k, cell in enumerate(search.pack[0]):
        for rule, value in _values(search, k, y, wanted):
            tried.append({"loss": cell.name, "rule": rule, "value": round(value, 6)})
            if top is None or value > top[0]:
                top = value, k, rule
    if top is None:
        if all((best < 0).all() for best in search.best.values()):
            raise InputError("all runs diverged: scale the features, or name another loss")
        raise InputError(f"rule is {choice.rule!r}: {choice.loss} only ranks, and has no boundary of its own")
    value, k, rule = top
    at = _epoch_rule(rule)
    scores = search.scores("validation", at)[0, k]
    column = int(search.chosen[at][0, k])
    calibration = calibrate(y, logits_from(scores))
    assert isinstance(calibration, Platt)
    parts = search.halves[0]
    if rule in decide.RULES_ON_SCORES:
        crossed, rated = decide.crossed(rule, y, scores, parts, average), scores
    else:
        rated = decide.crossed_chances(y, logits_from(scores), parts)
        crossed = decide.RULES_ON_CHANCES[rule]().fit(y, rated).predict(rated)
    best = _Best(
        search.pack[0][k].contender,
        search.configs[column][1],
        int(search.epoch[at][0, k]),
        rule,
        value,
        [layer[:1, k : k + 1] for layer in search.layers[at]],
        search.losses[at][column],
        _decision(rule, average, y, scores, calibration),
        calibration,
        crossed,
        rated,
    )
    return best, tried


def _epoch_rule(rule: str) -> str:
    """The rule whose heads are taken: rules on probabilities take those of another."""
    return rule if rule in decide.RULES_ON_SCORES else decide.EPOCH_OF_CHANCES


def _values(search: Search, k: int, y: Booleans, wanted: Iterable[str]) -> Iterable[tuple[str, float]]:
    """The rules that fit a loss, and the cross-fitted F1 of each."""
    chances: Floats | None = None
    for rule in wanted:
        at = _epoch_rule(rule)
        if at not in search.layers or search.best[at][0, k] < 0:
            continue
        if rule in decide.RULES_ON_SCORES:
            yield rule, float(search.best[rule][0, k])
            continue
        if chances is None:
            logits = logits_from(search.scores("validation", at)[0, k])
            chances = decide.crossed_chances(y, logits, search.halves[0])
        fitted = decide.RULES_ON_CHANCES[rule]().fit(y, chances)
        yield rule, decide.averaged_f1(y, fitted.predict(chances), search.average)


def _decision(rule: str, average: str, y: Booleans, scores: Floats, calibration: Platt) -> Decision:
    """The rule as fitted on all of the validation part."""
    if rule in decide.RULES_ON_SCORES:
        fitted, on = decide.rule_on_scores(rule, average).fit(y, scores), "scores"
    else:
        chances = calibration.predict(logits_from(scores))
        fitted, on = decide.RULES_ON_CHANCES[rule]().fit(y, chances), "probabilities"
    for name in ("thresholds_", "threshold_", "threshold"):
        if hasattr(fitted, name):
            thresholds = np.broadcast_to(np.asarray(getattr(fitted, name), np.float64), (y.shape[1],))
            return Decision("thresholds", on, thresholds.copy())
    return Decision(rule, on)


def _trained_again(
    material: Material, best: _Best, settings: Settings, seed: int, examples: int, say: Say
) -> tuple[list[torch.Tensor], Loss]:
    """The chosen configuration on training and validation part together, for as many epochs."""
    split = material.splits[seed]
    whole = Split(split.pool, split.validation, split.test)
    say(f"training again on all {len(whole.train):,} examples, {best.epoch} epochs")
    targets = material.targets[whole.train]
    steps = best.config.steps(len(whole.train), settings.epochs)
    loss = best.config.loss(best.contender.loss, targets, runs=1, steps=steps)
    run = train.Run(loss, best.config.learning_rate, best.config.weight_decay, best.config.init)
    program = train.Pack(
        np.asarray(material.features[seed]),
        material.targets,
        [whole],
        [run],
        [seed],
        head=settings.head,
        batch_size=best.config.batch_size,
    )
    program.train(best.epoch)
    if not all(torch.isfinite(layer).all() for layer in program.layers):
        raise InputError("the head diverged when it was trained on all examples: name another loss")
    return [layer.detach() for layer in program.layers], loss


def _head(form: str, features: NDArray[Any], layers: list[torch.Tensor], loss: Loss, labels: int) -> Head:
    """Layers (1, 1, outputs, inputs + 1), for features standardised as in training, as arrays."""
    x = features.astype(np.promote_types(features.dtype, np.float32), copy=False)
    x = np.maximum(x, 0) if form == "relu" else x
    mean, spread = x.mean(0), x.std(0)
    scale = np.divide(1, spread, where=spread > 0, out=np.zeros_like(spread))
    arrays = [layer[0, 0].double().numpy() for layer in layers]
    boundary: Any = loss.boundary
    if isinstance(boundary, torch.Tensor):
        boundary = boundary.detach().double().numpy()
    boundary = np.zeros(labels) if boundary is None else np.asarray(boundary, np.float64).reshape(-1)
    return Head(
        form,
        mean.astype(np.float64),
        scale.astype(np.float64),
        tuple(layer[:, :-1].copy() for layer in arrays),
        tuple(layer[:, -1].copy() for layer in arrays),
        np.broadcast_to(boundary, (labels,)).copy(),
    )


def _features(dataset: Dataset, backbone: str, width: int, learned_from: NDArray[np.intp]) -> Features:
    if backbone == "identity":
        return Features(dataset.kind, backbone, {"backbone": backbone}, width)
    encoder = encoder_of(dataset, backbone, fit_on=learned_from)
    return Features(dataset.kind, backbone, encoder.recipe, width, encoder)


def measured(y: Booleans, predicted: Booleans, rated: Floats) -> dict[str, Any]:
    """All metrics of a prediction, and the interval of each average F1 over draws of examples."""
    values = {**decision_metrics(y, predicted), **ranking_metrics(y, rated)}
    draws = max(100, min(RESAMPLES, DRAWS // len(y)))
    resamples = Resamples({0: y}, {0: np.arange(len(y))}, resamples=draws)
    (drawn,) = resamples.metrics([{0: pack(predicted)}], SCORES)
    intervals = {}
    for name in SCORES:
        low, high = np.quantile(drawn[name][:, 0], [0.025, 0.975])
        intervals[name] = [float(low), float(high)]
    return {
        "examples": len(y),
        "scores": {name: value for name, value in values.items() if np.isfinite(value)},
        "intervals": intervals,
    }


def _tested(dataset: Dataset, split: Split, model: Model, found: NDArray[Any]) -> Mapping[str, Any] | None:
    """What the finished model reaches on the official test part, if there is one."""
    if not len(split.test):
        return None
    parts = [
        model.judged(model.head.scores(np.asarray(found[rows])))
        for rows in np.array_split(split.test, -(-len(split.test) // 4096))
    ]
    decided = np.concatenate([part.decided for part in parts])
    rated = np.concatenate([part.rated for part in parts])
    return measured(dataset.targets[split.test], decided, rated)
