"""Runs trained together get the weights that each gets alone."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from scoreloss.bench import plan
from scoreloss.bench.contenders import PAPER_LOSSES, contenders
from scoreloss.bench.plan import Cell, Settings, packs
from scoreloss.bench.splits import Split
from scoreloss.bench.train import Adam, Pack, Run
from scoreloss.checks import InputError
from scoreloss.metrics import label_frequencies
from scoreloss.torch import BCE, LOSSES, Asymmetric, DeepF, MetricLoss, SigmoidF1, start_at_priors

N, FEATURES, LABELS = 120, 6, 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, FEATURES)) * rng.uniform(0.1, 5, FEATURES) + 3
    y = x @ rng.normal(size=(FEATURES, LABELS)) > rng.normal(size=LABELS)
    splits = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(N)
        splits.append(Split(order[:80], order[80:100], order[100:]))
    return x, y, splits


def runs():
    shared = SigmoidF1()
    return [
        Run(BCE(), 0.01),
        Run(shared, 0.003),
        Run(shared, 0.03, weight_decay=0.1),
        Run(Asymmetric(), 0.01, init="default"),
        Run(MetricLoss("mcc", average="samples"), 0.02),
    ]


def trained(data, runs, which, head, epochs=10):
    x, y, splits = data
    pack = Pack(x, y, [splits[s] for s in which], runs, which, head=head, batch_size=16, dtype=torch.float64)
    pack.train(epochs)
    return pack


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_stack_gives_each_run_the_weights_it_gets_alone(data, head):
    together = trained(data, runs(), [0, 1, 2], head)
    assert together._adam.steps == 50
    starts = {}
    for seed in range(3):
        for r, run in enumerate(runs()):
            alone = trained(data, [run], [seed], head)
            for stacked, single in zip(together.layers, alone.layers, strict=True):
                torch.testing.assert_close(stacked[seed, r], single[0, 0], rtol=1e-9, atol=1e-9)
            starts[seed, r] = alone.layers[-1]
    assert not torch.allclose(starts[0, 0], starts[1, 0], atol=1e-3)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_stacked_as_it_is_alone(data, name):
    y = data[1]

    def run(seeds):
        return [Run(LOSSES[name].for_targets(y, runs=seeds), 0.01)]

    together = trained(data, run(3), [0, 1, 2], "linear", epochs=4)
    for seed in range(3):
        alone = trained(data, run(1), [seed], "linear", epochs=4)
        torch.testing.assert_close(together.layers[0][seed], alone.layers[0][0], rtol=1e-9, atol=1e-9)
        own = zip(together.runs[0].loss.parameters(), alone.runs[0].loss.parameters(), strict=True)
        for stacked, single in own:
            torch.testing.assert_close(stacked[seed], single[0], rtol=1e-9, atol=1e-9)
            assert not torch.equal(stacked[0], stacked[1])


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_run_is_what_a_plain_loop_trains(data, head):
    """The whole of it once more with nn.Linear, torch.optim.AdamW and one loop."""
    x, y, splits = data
    seed, rate, decay = 1, 0.01, 0.05
    train = splits[seed].train
    x = torch.as_tensor((x - x[train].mean(0)) / x[train].std(0))
    targets = torch.as_tensor(y, dtype=torch.float64)
    loss = SigmoidF1(slope=2.0)
    torch.manual_seed(seed)
    widths = [FEATURES, LABELS] if head == "linear" else [FEATURES, 256, LABELS]
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    start_at_priors(layers[-1], label_frequencies(y[train]), loss, seed=seed)
    model = nn.Sequential(layers[0], *[m for layer in layers[1:] for m in (nn.ReLU(), layer)]).double()
    biases = [layer.bias for layer in layers]
    weights = [layer.weight for layer in layers]
    optimiser = torch.optim.AdamW(
        [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}], lr=rate
    )
    order = torch.Generator().manual_seed(seed)
    for _ in range(10):
        for rows in torch.as_tensor(train)[torch.randperm(len(train), generator=order)].split(16):
            optimiser.zero_grad()
            loss(model(x[rows]), targets[rows]).backward()
            optimiser.step()
    ours = trained(data, [Run(SigmoidF1(slope=2.0), rate, decay)], [seed], head)
    for layer, module in zip(ours.layers, layers, strict=True):
        torch.testing.assert_close(layer[0, 0, :, :-1], module.weight.detach(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(layer[0, 0, :, -1], module.bias.detach(), rtol=1e-9, atol=1e-9)
    rows = torch.as_tensor(splits[seed].test)
    torch.testing.assert_close(ours.logits(rows.unsqueeze(0))[0, 0], model(x[rows]).detach())


def test_adam_is_torchs():
    generator = torch.Generator().manual_seed(0)
    layer = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    rates = torch.tensor([0.1, 0.01, 0.5], dtype=torch.float64)
    ours = layer.clone()
    adam = Adam([ours], rate=rates.view(-1, 1, 1))
    theirs = [layer[:, r].clone().requires_grad_() for r in range(3)]
    optimiser = torch.optim.Adam(
        [{"params": [p], "lr": rate.item()} for p, rate in zip(theirs, rates, strict=True)]
    )
    for _ in range(20):
        gradient = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
        adam.step([gradient])
        for r, p in enumerate(theirs):
            p.grad = gradient[:, r].clone()
        optimiser.step()
    torch.testing.assert_close(ours, torch.stack([p.detach() for p in theirs], 1), rtol=1e-12, atol=1e-12)


def test_every_example_is_seen_once_an_epoch(data):
    x, y, splits = data
    pack = Pack(x, y, splits, runs(), [0, 1, 2], head="linear", batch_size=32)
    batches = list(pack.batches())
    assert [b[0].shape[1] for b in batches] == [32, 32, 16]
    for seed, split in enumerate(splits):
        seen = torch.cat([features[seed] for features, _ in batches])
        expected = pack._take(torch.as_tensor(np.stack([s.train for s in splits])))[seed]
        assert torch.equal(seen.sort(0).values, expected.sort(0).values)
        labels = torch.cat([targets[seed] for _, targets in batches])
        assert torch.equal(labels.sum(0), torch.as_tensor(y[split.train].sum(0), dtype=torch.float32))


def test_features_that_do_not_vary_are_no_trouble(data):
    x, y, splits = data
    constant = np.hstack([x, np.full((N, 1), 7.0)])
    pack = Pack(constant, y, splits, runs(), [0, 1, 2], head="linear", batch_size=32)
    pack.train(2)
    assert all(torch.isfinite(layer).all() for layer in pack.layers)


def test_packs_have_the_same_losses_for_each_seed():
    def cell(loss, seed):
        return Cell("d", "h", *contenders([loss]), seed, Settings(head="linear"))

    def sizes(found):
        return sorted([len(row) for row in pack] for pack in found)

    names = ["bce", "focal", "sigmoid_f1", "deep_f"]
    grid = [cell(loss, seed) for loss in names for seed in range(3)]
    shapes = {c: (5, 4, 3) if c.loss == "deep_f" else (5, 4) for c in grid}
    assert sizes(packs(grid, shapes, 100)) == [[1, 1, 1], [3, 3, 3]]
    ragged = [c for c in grid if (c.loss, c.seed) != ("bce", 1)]
    assert sorted(len(row) for pack in packs(ragged, shapes, 100) for row in pack) == [1, 1, 1, 2, 3, 3]
    for pack in packs(ragged, shapes, 100):
        assert len({tuple(c.loss for c in row) for row in pack}) == 1
    assert packs([], shapes, 100) == []
    wider = {**shapes, cell("deep_f", 1): (5, 4, 5)}
    assert sizes(packs(grid, wider, 100)) == [[1], [1, 1], [3, 3, 3]]


def test_a_pack_is_no_larger_than_what_a_person_would_not_mind_to_lose(monkeypatch):
    grid = [
        Cell("d", "h", c, s, Settings(head="linear")) for c in contenders(PAPER_LOSSES, 4) for s in range(3)
    ]
    shapes = dict.fromkeys(grid, (5, 4))
    (whole,) = packs(grid, shapes, 100)
    of_one = plan._work(grid[0], (5, 4), 100)
    for limit, expected in ((of_one * 6.5, [(3, 2), (3, 2), (3, 1)]), (of_one * 2.5, [(2, 1), (1, 1)] * 5)):
        monkeypatch.setattr(plan, "PACK_WORK", limit)
        found = packs(grid, shapes, 100)
        assert [(len(pack), len(pack[0])) for pack in found] == expected
        assert sorted((c.name, c.seed) for p in found for row in p for c in row) == sorted(
            (c.name, c.seed) for row in whole for c in row
        )


def test_losses_of_other_logits_are_not_stacked(data):
    x, y, splits = data
    with pytest.raises(InputError, match="logits of one shape"):
        Pack(x, y, splits[:1], [Run(BCE(), 0.1), Run(DeepF(2), 0.1)], [0], head="linear", batch_size=16)


def test_seeds_of_a_pack_must_train_on_as_many(data):
    x, y, splits = data
    uneven = [splits[0], Split(splits[1].train[:-1], splits[1].validation, splits[1].test)]
    with pytest.raises(InputError, match="training parts of one size"):
        Pack(x, y, uneven, runs(), [0, 1], head="linear", batch_size=16)
