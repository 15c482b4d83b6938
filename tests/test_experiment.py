"""What is tried of each loss, what is chosen of it, and how a person asks for it: flags, or one TOML file."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch import nn

from scoreloss.bench import decide
from scoreloss.bench.contenders import (
    OWN_KNOBS,
    PAPER_LOSSES,
    RECIPES,
    TRAINABLE,
    Config,
    Contender,
    contenders,
    given,
    tuned,
)
from scoreloss.bench.material import Material
from scoreloss.bench.plan import Cell, Settings
from scoreloss.bench.search import checkpoints, train_pack
from scoreloss.bench.splits import Split
from scoreloss.checks import InputError
from scoreloss.cli import main
from scoreloss.losses.definitions import DEFINITIONS
from scoreloss.metrics import label_frequencies
from scoreloss.torch import BCE, LOSSES, Mix, SigmoidF1, start_at_priors, warm_up


@pytest.mark.parametrize("budget", [1, 2, 6, 13])
def test_every_loss_has_the_same_number_of_different_configurations(budget):
    for contender in contenders([*LOSSES, *RECIPES], budget):
        assert len(set(contender.configs)) == budget == len(contender.configs)
        assert contender.configs[0].learning_rate == 0.003
        assert contender.configs[0].options == ()


def test_the_budget_goes_to_learning_rates_then_to_knobs_then_to_weight_decay():
    focal, hill = contenders(["focal", "hill"], 6)
    assert [c.learning_rate for c in focal.configs] == [0.003, 0.009, 0.001, 0.03, 0.003, 0.009]
    assert [dict(c.options) for c in focal.configs] == [{}] * 4 + [OWN_KNOBS["focal"][0]] * 2
    assert [c.weight_decay for c in hill.configs] == [0] * 4 + [0.01] * 2
    every = len(contenders(["bce"])) * 4 * (1 + len(OWN_KNOBS["bce"]))
    assert {c.weight_decay for c in tuned("bce", every, Config())} == {0}
    assert [c.weight_decay for c in tuned("bce", every + 1, Config())][-1] == 0.01


def test_own_knobs_are_options_of_their_losses_and_lie_in_the_papers_grid():
    assert set(OWN_KNOBS) <= set(DEFINITIONS)
    for loss, several in OWN_KNOBS.items():
        assert len({tuple(own.items()) for own in several}) == len(several)
        for own in several:
            assert set(own) <= set(DEFINITIONS[loss].options)
    for own in OWN_KNOBS["sigmoid_f1"]:
        assert 1 <= own.get("slope", 1) <= 30
        assert 0 <= own.get("offset", 0) <= 2


def test_a_table_of_a_loss_is_the_product_of_its_lists():
    found = given(
        {
            "name": "mine",
            "loss": "sigmoid_f1",
            "slope": [1, 2],
            "learning_rate": [0.1, 0.2],
            "batch_size": "all",
        },
        5,
        Config(weight_decay=0.5),
    )
    assert found.name == "mine"
    assert {(c.learning_rate, dict(c.options)["slope"]) for c in found.configs} == set(
        itertools.product([0.1, 0.2], [1, 2])
    )
    assert {(c.batch_size, c.weight_decay) for c in found.configs} == {(None, 0.5)}
    one = given({"loss": "hill", "init": "default"}, 3, Config())
    assert (one.name, [c.learning_rate for c in one.configs]) == ("hill", [0.003, 0.009, 0.001])
    assert {c.init for c in one.configs} == {"default"}
    mcc = given({"loss": "metric_loss", "score": "mcc", "surrogate": "amplify"}, 1, Config())
    assert dict(mcc.configs[0].options) == {"score": "mcc", "surrogate": "amplify"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"loss": "sigmoid_f2"}, "loss is 'sigmoid_f2': did you mean sigmoid_f1"),
        ({"loss": "sigmoid_f1", "slop": 1}, "option of sigmoid_f1 is 'slop': did you mean slope"),
        ({"loss": "sigmoid_f1", "slope": -1}, "slope is -1"),
        ({"loss": "metric_loss", "score": "f2"}, "score is 'f2'"),
        ({"loss": "bce", "learning_rate": 0}, "learning_rate is 0"),
        ({"loss": "bce", "batch_size": 0}, "batch_size is 0: it must be at least 1, or all"),
        ({"loss": "bce", "warm_up": 1.5}, "warm_up is 1.5: it must lie below 1"),
        ({"loss": "bce", "warm_up": 0.1, "bce": 0.1}, "bce and warm_up are both given"),
        ({}, "loss is None"),
    ],
)
def test_a_table_of_a_loss_that_cannot_be_is_one_line(record, message):
    with pytest.raises(InputError) as problem:
        given(record, 1, Config())
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_configuration_mixes_as_it_says():
    y = np.eye(3, dtype=bool)
    assert type(Config().loss("sigmoid_f1", y)) is SigmoidF1
    mixed = Config(bce=0.25, options=(("slope", 2.0),)).loss("sigmoid_f1", y)
    z, t = torch.tensor([[0.5, -1.0, 2.0]] * 3), torch.eye(3)
    assert torch.equal(mixed(z, t), Mix(BCE(), SigmoidF1(slope=2.0), weight=0.25)(z, t))
    warming = Config(warm_up=0.5).loss("sigmoid_f1", y, steps=8)
    expected = Mix(BCE(), SigmoidF1(), weight=warm_up(4))
    for _ in range(6):
        assert torch.equal(warming(z, t), expected(z, t))
    assert torch.equal(warming(z, t), SigmoidF1()(z, t))


def small_data(n=90, features=5, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features))
    y = x @ rng.normal(size=(features, labels)) > rng.normal(size=labels) + rng.normal(size=(n, labels))
    orders = [np.random.default_rng(s).permutation(n) for s in range(2)]
    splits = {s: Split(o[:50], o[50:70], o[70:]) for s, o in enumerate(orders)}
    return Material(y, dict.fromkeys(splits, x), splits)


def trained_alone(material, seed, config, epochs):
    """One configuration as one would train it by hand: scores of all examples at each epoch that is looked at."""
    split = material.splits[seed]
    x = material.features[seed]
    x = torch.as_tensor((x - x[split.train].mean(0)) / x[split.train].std(0)).float()
    y = torch.as_tensor(material.targets).float()
    loss = SigmoidF1(**dict(config.options))
    torch.manual_seed(seed)
    head = nn.Linear(x.shape[1], y.shape[1])
    start_at_priors(head, label_frequencies(material.targets[split.train]), loss, seed=seed)
    adam = torch.optim.Adam(head.parameters(), lr=config.learning_rate)
    order = torch.Generator().manual_seed(seed)
    found = {}
    for epoch in range(1, epochs + 1):
        for rows in torch.as_tensor(split.train)[torch.randperm(len(split.train), generator=order)].split(16):
            adam.zero_grad()
            loss(head(x[rows]), y[rows]).backward()
            adam.step()
        if epoch in checkpoints(Settings(epochs=epochs)):
            found[epoch] = loss.scores(head(x)).detach().double().numpy()
    return found


def test_validation_data_choose_configuration_and_epoch_and_the_test_part_judges():
    """Against every configuration trained by hand, and scikit-learn's F1."""
    material, epochs = small_data(), 12
    base = Config(batch_size=16)
    configs = tuple(
        replace(base, learning_rate=rate, options=options)
        for rate, options in itertools.product((0.0005, 0.3, 0.02), ((), (("slope", 3.0), ("offset", 1.0))))
    )
    contender = Contender("mine", "sigmoid_f1", configs)
    settings = Settings(head="linear", epochs=epochs)
    pack = [[Cell("d", "h", contender, seed, settings)] for seed in (0, 1)]
    results = train_pack(material, pack)
    for (cell,) in pack:
        result, _ = results[cell]
        split = material.splits[cell.seed]
        values = {}
        for place, config in enumerate(configs):
            for epoch, scores in trained_alone(material, cell.seed, config, epochs).items():
                y, s = material.targets[split.validation], scores[split.validation]
                values[place, epoch] = (
                    f1_score(y, s >= 0.5, average="weighted", zero_division=0),
                    scores[split.test] >= 0.5,
                )
        best = max(value for value, _ in values.values())
        judged = result["rules"]["fixed_0.5"]
        taken = judged["config"], judged["epoch"]
        assert values[taken][0] == pytest.approx(best)
        assert judged["validation_weighted_f1"] == pytest.approx(best)
        expected = f1_score(
            material.targets[split.test], values[taken][1], average="weighted", zero_division=0
        )
        assert judged["test"]["weighted_f1"] == pytest.approx(expected)
        for place in range(len(configs)):
            top = max(value for (p, _), (value, _) in values.items() if p == place)
            assert result["tried"]["fixed_0.5"][place] == pytest.approx(top)


def test_runs_of_other_batch_sizes_compete_too():
    material = small_data()
    configs = tuple(Config(batch_size=size, learning_rate=rate) for size in (8, None) for rate in (0.01, 0.1))
    contender = Contender("mine", "bce", configs)
    settings = Settings(head="relu", epochs=3)
    cell = Cell("d", "h", contender, 0, settings)
    result, _ = train_pack(material, [[cell]])[cell]
    for place, config in enumerate(configs):
        alone = Cell("d", "h", Contender("mine", "bce", (config,)), 0, settings)
        single, _ = train_pack(material, [[alone]])[alone]
        for rule in decide.RULES_ON_SCORES:
            assert result["tried"][rule][place] == pytest.approx(single["tried"][rule][0], abs=1e-6)


def test_the_papers_head_takes_no_negative_feature():
    material = small_data()
    material.features[0][:] = -np.abs(material.features[0])
    cell = Cell("d", "h", *contenders(["bce"]), 0, Settings(head="relu", epochs=2))
    result, _ = train_pack(material, [[cell]])[cell]
    positives = material.targets[material.splits[0].test].sum(0)
    assert result["rules"]["fixed_0.5"]["test"]["ranking_loss"] >= 0
    assert result["rules"]["fixed_0.5"]["test"]["average_precision"] == pytest.approx(
        np.mean(positives / len(material.splits[0].test)), abs=1e-6
    ), "features that are all 0 tell nothing apart"


def test_a_run_that_no_longer_gets_better_stops_and_changes_nothing_in_the_others():
    material = small_data()
    wild, calm = Config(learning_rate=1.0), Config(learning_rate=0.002)

    def curves(configs, patience):
        contender = Contender("mine", "bce", configs)
        settings = Settings(head="linear", epochs=40, patience=patience)
        cell = Cell("d", "h", contender, 0, settings)
        return train_pack(material, [[cell]])[cell][0]

    stopped, whole = curves((wild,), 4), curves((wild,), None)
    known = [value for value in stopped["curve"]["fixed_0.5"] if not np.isnan(value)]
    assert 0 < len(known) < len(whole["curve"]["fixed_0.5"])
    assert known == whole["curve"]["fixed_0.5"][: len(known)]
    epochs = stopped["curve"]["epoch"][: len(known)]
    best_at = {
        rule: epochs[int(np.argmax(stopped["curve"][rule][: len(known)]))] for rule in decide.RULES_ON_SCORES
    }
    assert epochs[-1] - max(best_at.values()) >= 4
    together, alone = curves((wild, calm), 4), curves((calm,), 4)
    for rule in decide.RULES_ON_SCORES:
        assert together["tried"][rule][1] == pytest.approx(alone["tried"][rule][0], abs=1e-6)


TOML = """
losses = ["bce", "recommended"]
seeds = 2
head = ["linear", "mlp"]
epochs = 2
batch_size = "all"
dataset = ["yeast", {path = "$HERE/own.npz", min_count = 5, epochs = 1}]

[[loss]]
name = "steep"
loss = "sigmoid_f1"
slope = [2.0, 5.0]
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4))
    np.savez(tmp_path / "own.npz", features=x, targets=x @ rng.normal(size=(4, 3)) > 0)
    monkeypatch.setenv("HERE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(TOML)
    return tmp_path / "plan.toml"


@pytest.mark.slow
def test_one_file_asks_for_several_tables_and_gets_one_report(file, capsys):
    assert main(["bench", str(file), "--dry-run"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in told] == [
        "yeast: 6 cells",
        "yeast: 6 cells",
        "own: 6 cells",
        "own: 6 cells",
    ]
    assert all("0 of them done; 8 runs to train in 1 packs, roughly" in line for line in told)
    assert not (file.parent / "runs").exists()
    assert main(["bench", str(file)]) == 0
    out, _ = capsys.readouterr()
    assert "24 cells trained, 0 kept" in out
    root = file.parent / "runs" / "plan"
    assert sorted(p.name for p in root.iterdir() if p.is_dir()) == [
        "own-linear",
        "own-mlp",
        "yeast-linear",
        "yeast-mlp",
    ]
    cells = [json.loads(p.read_text())["cell"] for p in (root / "own-mlp" / "cells").iterdir()]
    assert {(c["name"], c["seed"]) for c in cells} == set(
        itertools.product(["bce", "recommended", "steep"], range(2))
    )
    assert {c["settings"]["epochs"] for c in cells} == {1}
    sizes = {(c["name"], config["batch_size"]) for c in cells for config in c["configs"]}
    assert sizes == {("bce", None), ("steep", None), ("recommended", RECIPES["recommended"][1]["batch_size"])}
    page = (root / "report.html").read_text()
    for title in ("yeast, linear", "own, mlp"):
        assert title in page
    assert main(["bench", str(file), "--dry-run"]) == 0
    assert "6 cells, 6 of them done; 0 runs to train" in capsys.readouterr().out
    assert main(["report", str(root / "own-mlp"), str(root / "own-linear"), "--out", str(root / "own")]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = ", "plan.toml: Invalid value (at end of document)"),
        ("sedes = 2\ndataset = 'yeast'", "plan.toml: a key is 'sedes': did you mean seeds"),
        ("seeds = 2", "dataset must name one"),
        ("dataset = [{path = 'yeast', epoch = 2}]", "a key of a dataset is 'epoch': did you mean epochs"),
        ("dataset = 'voc:$NOWHERE/x'", "names a variable of the environment that is not set"),
        ("dataset = 'yeast'\nlosses = 'bce'", "losses is 'bce': it must be a list of names"),
        ("dataset = 'yeast'\nloss = ['bce']", "a loss is 'bce': it must be a table, [[loss]]"),
        ("dataset = ['yeast', 'yeast']", "2 datasets are yeast: each needs a name of its own"),
        ("dataset = 'yeast'\nlosses = ['bce']\n[[loss]]\nloss = 'bce'", "bce names 2 losses"),
        ("dataset = 'yeast'\nbatch_size = 'some'", "batch_size is 'some': it must be a whole number, or all"),
        ("dataset = 'yeast'\nbudget = 1000\nlosses = ['hill']", "budget is 1000: of hill there are 20"),
    ],
)
def test_a_file_that_cannot_be_is_one_line(file, capsys, text, message):
    file.write_text(text)
    assert main(["bench", str(file), "--dry-run"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_what_a_file_says_is_not_said_twice(file, capsys):
    assert main(["bench", str(file), "--seeds", "3"]) == 2
    assert "--seeds is given beside" in capsys.readouterr().err
    assert main(["bench", "nowhere.toml"]) == 2
    assert "nowhere.toml: there is no such file" in capsys.readouterr().err
    assert main(["bench", "yeast", "--address", "127.0.0.1:1"]) == 2
    assert "it is that of a Ray cluster, for --engine ray" in capsys.readouterr().err
    assert main(["bench", "yeast", "--engine", "rai"]) == 2
    assert "engine is 'rai': did you mean ray" in capsys.readouterr().err


def test_what_only_torch_trains_is_not_given_to_keras():
    keras = Settings(framework="keras")
    from scoreloss.bench.plan import cells
    from scoreloss.data import load

    yeast = load("yeast")
    with pytest.raises(InputError, match="trains in torch alone"):
        cells(yeast, contenders(["mfc"]), 1, keras)
    with pytest.raises(InputError, match="mixed with bce, which the bench trains in torch alone"):
        cells(yeast, [Contender("mine", "hill", (Config(bce=0.5),))], 1, keras)
    assert cells(yeast, contenders(PAPER_LOSSES), 1, keras)
    assert {*LOSSES, "metric_loss"} <= set(TRAINABLE)
