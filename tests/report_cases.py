"""Results made up for the tests of the report: as many losses, labels and datasets as one likes, and nothing trained."""

import numpy as np

from scoreloss.bench import decide
from scoreloss.bench.contenders import contenders
from scoreloss.bench.plan import Cell, Settings
from scoreloss.bench.results import Labelled, sum_up
from scoreloss.bench.splits import Split
from scoreloss.torch import LOSSES


def made_up(
    name="made up", *, losses=("bce", "focal", "sigmoid_f1"), labels=4, n=60, seeds=2, cells=None, seed=0
):
    """Results of scores that are the targets with noise, less of it for each loss; ``cells`` changes what was planned."""
    rng = np.random.default_rng(seed)
    names = tuple(labels) if not isinstance(labels, int) else tuple(f"label {k}" for k in range(labels))
    targets = rng.random((n, len(names))) < 0.3
    third = n // 3
    split = Split(np.arange(third), np.arange(third, 2 * third), np.arange(2 * third, n))
    data = Labelled(name, names, targets, (), "0" * 64, ("train", "test"))
    planned = cells or [
        Cell(name, data.content_hash, contender, s, Settings())
        for contender in contenders(losses)
        for s in range(seeds)
    ]
    order = list(dict.fromkeys(cell.name for cell in planned))
    found = {cell: result_of(rng, cell, targets, split, order.index(cell.name)) for cell in planned}
    return sum_up(data, planned, found, dict.fromkeys(range(seeds), split))


def result_of(rng, cell, targets, split, place):
    scores = np.clip(0.6 * targets + rng.random(targets.shape) * (0.9 - 0.02 * place), 0, 1)
    validation, test = ((targets[rows], scores[rows]) for rows in (split.validation, split.test))
    of_rule = {
        rule: {"config": 0, "epoch": 1, "validation_weighted_f1": 0.5, **decide.judge(rule, validation, test)}
        for rule in decide.rules_for(LOSSES[cell.loss].for_targets(targets))
    }
    on_chances = decide.judge_on_chances(validation, test, decide.halves(validation[0], cell.seed))
    of_rule |= {rule: {"config": 0, "epoch": 1, **judged} for rule, judged in on_chances.items()}
    return {
        "rules": of_rule,
        "threshold_curves": decide.threshold_curves(*validation),
        "diverged": False,
        "tried": {rule: [rng.random() for _ in cell.contender.configs] for rule in decide.RULES_ON_SCORES},
        "seconds": 1.5,
        "curve": {"epoch": [1, 2, 3], **{rule: [0.2, None, 0.5] for rule in decide.RULES_ON_SCORES}},
    }
