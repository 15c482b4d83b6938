"""A model in daily use: fitted, saved, loaded, and asked; on disk it is distrusted."""

import json
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import scoreloss as sl
from scoreloss.bench import decide, train
from scoreloss.bench.splits import Split
from scoreloss.checks import InputError
from scoreloss.data import Dataset
from scoreloss.decode import expected_f1
from scoreloss.files import read_arrays, write_arrays
from scoreloss.model import choose, folder, schema
from scoreloss.model.numbers import Head
from scoreloss.torch import LOSSES
from tests.model_cases import NAMES, by_hand, expected_f1_of_sets, matrix, texts

QUICK = {"epochs": 4, "budget": 1}


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("SCORELOSS_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def data():
    return matrix()


@pytest.fixture(scope="module")
def fitted(data):
    return sl.Classifier(**QUICK).fit_dataset(data)


@pytest.fixture(scope="module")
def kept(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "model"
    fitted.save(path)
    return path


@pytest.fixture
def copied(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "copy")


# What it computes


@pytest.mark.parametrize("rule", list(decide.RULES))
@pytest.mark.parametrize("head", ["mlp", "relu"])
def test_it_computes_what_its_files_say(data, tmp_path, rule, head):
    classifier = sl.Classifier(loss="sigmoid_f1", rule=rule, head=head, **QUICK).fit_dataset(data)
    classifier.save(tmp_path / "m")
    x = np.maximum(data.inputs, 0) if head == "relu" else data.inputs
    scores, chances, decided, expected = by_hand(tmp_path / "m", x)
    for asked in (classifier, sl.Classifier.load(tmp_path / "m")):
        found = asked.predict_all(data.inputs)
        np.testing.assert_allclose(found.scores, scores, atol=1e-9)
        np.testing.assert_allclose(found.probabilities, chances, atol=1e-7)
        np.testing.assert_array_equal(found.decided, decided)
        np.testing.assert_allclose(found.expected_f1, expected, atol=1e-7)
        assert asked.predict(data.inputs[:5]) == [
            [NAMES[k] for k in np.flatnonzero(row)] for row in decided[:5]
        ]
        np.testing.assert_array_equal(asked.predict_proba(data.inputs), found.probabilities)
        np.testing.assert_array_equal(asked.scores(data.inputs), found.scores)
        assert found.rated is (found.scores if rule in decide.RULES_ON_SCORES else found.probabilities)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "unbounded_f1"])
def test_scores_are_those_of_the_loss(name, data):
    """The head in numpy against the same head in torch, judged by the loss itself."""
    split = Split(np.arange(100), np.arange(100, 150), np.arange(150, 180))
    loss = LOSSES[name].for_targets(data.targets, runs=1)
    run = train.Run(loss, 0.01)
    program = train.Pack(
        data.inputs, data.targets, [split], [run], [0], head="linear", batch_size=50, dtype=torch.float64
    )
    program.train(2)
    rows = torch.arange(180)[None]
    with torch.no_grad():
        wanted = loss.scores(program.logits(rows)[0])[0].numpy()
    head = choose._head("linear", data.inputs[:100], [x.detach() for x in program.layers], loss, 4)
    np.testing.assert_allclose(head.scores(data.inputs[:180]), wanted, atol=1e-9)


def test_a_sparse_row_scores_as_a_dense_one(rng):
    from scipy.sparse import csr_matrix

    x = rng.random((9, 5)) * (rng.random((9, 5)) < 0.3)
    arrays = [rng.normal(size=shape) for shape in ((5,), (5,), (8, 5), (4, 8), (8,), (4,), (4,))]
    for form in ("mlp", "relu"):
        weights, biases = (tuple(arrays[2:4]), tuple(arrays[4:6]))
        if form == "relu":
            weights, biases = (arrays[2][:4],), (arrays[5],)
        head = Head(form, arrays[0], arrays[1], weights, biases, arrays[6])
        np.testing.assert_allclose(head.scores(csr_matrix(x)), head.scores(x), atol=1e-12)


def test_expected_f1_is_the_mean_over_all_truths(rng):
    chances, chosen = rng.random((40, 6)), rng.random((40, 6)) < 0.4
    chosen[0] = False
    chances[1:3] = [[0.0] * 6, [1.0] * 6]
    sets = np.array([[bool(k >> j & 1) for j in range(6)] for k in range(64)])
    of_all = expected_f1_of_sets(chances, sets)
    place = (chosen[:, None] == sets).all(axis=2).argmax(axis=1)
    np.testing.assert_allclose(expected_f1(chances, chosen), of_all[np.arange(40), place], atol=1e-12)


def test_expected_f1_of_many_labels_by_drawing(rng):
    chances = rng.random((1, 600)) * 0.2
    chosen = chances > 0.1
    truths = rng.random((40_000, 600)) < chances
    tp, size = (truths & chosen).sum(axis=1), truths.sum(axis=1) + chosen.sum()
    assert expected_f1(chances, chosen)[0] == pytest.approx((2 * tp / size).mean(), abs=2e-3)


def test_a_batch_decides_nothing(fitted, data):
    """Each row alone gets what it gets among others, and threads do not disturb each other."""
    whole = fitted.predict_all(data.inputs)
    with ThreadPoolExecutor(8) as pool:
        alone = list(pool.map(lambda row: fitted.predict_all(row[None]), data.inputs))
    for k, one in enumerate(alone):
        np.testing.assert_allclose(one.scores[0], whole.scores[k], rtol=1e-12)
        np.testing.assert_array_equal(one.decided[0], whole.decided[k])
        assert one.expected_f1[0] == pytest.approx(whole.expected_f1[k])


def test_nothing_in_is_nothing_out(fitted):
    assert fitted.predict(np.zeros((0, 6))) == []
    assert fitted.model_.head.scores(np.zeros((0, 6))).shape == (0, 4)
    assert fitted.predict_proba(np.zeros((0, 6))).shape == (0, 4)


# How it is chosen


def test_the_best_on_validation_data_is_taken(fitted):
    record = fitted.model_.record
    tried = record["selection"]["tried"]
    losses = {"recommended", "sigmoid_f1", "bce", "asymmetric"}
    assert {(t["loss"], t["rule"]) for t in tried} == {
        (loss, rule) for loss in losses for rule in decide.RULES
    }
    best = max(tried, key=lambda t: t["value"])
    assert (record["loss"]["tried_as"], record["rule"]["name"]) == (best["loss"], best["rule"])
    assert record["validation"]["scores"]["weighted_f1"] == pytest.approx(best["value"], abs=1e-6)
    assert record["data"]["examples"] == {"train": 144, "validation": 36, "test": 60}
    for part in ("validation", "test"):
        for name, (low, high) in record[part]["intervals"].items():
            assert low < record[part]["scores"][name] < high


@pytest.mark.parametrize("score", choose.SCORES)
def test_the_score_that_is_asked_for_chooses(data, score):
    record = sl.Classifier(loss="bce", score=score, **QUICK).fit_dataset(data).model_.record
    best = max(t["value"] for t in record["selection"]["tried"])
    assert record["validation"]["scores"][score] == pytest.approx(best, abs=1e-6)


def test_averages_are_those_of_evaluate(rng):
    y, s = rng.random((50, 5)) < 0.4, rng.random((50, 5))
    wanted = sl.evaluate(y, s)
    for average in decide.AVERAGES:
        assert decide.averaged_f1(y, s >= 0.5, average) == pytest.approx(wanted[f"{average}_f1"])


def test_test_labels_decide_nothing(data, fitted):
    poisoned = data.targets.copy()
    poisoned[data.splits["test"]] ^= True
    other = sl.Classifier(**QUICK).fit_dataset(
        Dataset(data.name, data.inputs, poisoned, data.labels, data.splits)
    )
    np.testing.assert_array_equal(other.scores(data.inputs), fitted.scores(data.inputs))
    assert other.predict(data.inputs) == fitted.predict(data.inputs)
    mine, theirs = (dict(c.model_.record) for c in (fitted, other))
    assert mine.pop("test") != theirs.pop("test")
    assert mine.pop("data") != theirs.pop("data")
    assert mine == theirs


def test_reported_numbers_are_those_of_evaluate_on_the_test_part(data, fitted):
    test = data.splits["test"]
    found = fitted.predict_all(data.inputs[test])
    wanted = sl.evaluate(data.targets[test], found.rated, fitted.model_.thresholds)
    for name, value in fitted.model_.record["test"]["scores"].items():
        assert value == pytest.approx(wanted[name], abs=1e-12), name


def test_training_again_takes_all_examples_and_keeps_the_thresholds(data):
    with_, without = (
        sl.Classifier(loss="bce", rule="per_label", head="linear", refit=refit, **QUICK).fit_dataset(data)
        for refit in (True, False)
    )
    pool = data.splits["train"]
    np.testing.assert_allclose(with_.model_.head.mean, data.inputs[pool].mean(axis=0))
    assert abs(without.model_.head.mean - data.inputs[pool].mean(axis=0))[0] > 1e-3
    np.testing.assert_array_equal(with_.model_.thresholds, without.model_.thresholds)
    assert not np.array_equal(with_.scores(data.inputs), without.scores(data.inputs))


def test_without_an_official_test_part_all_examples_are_for_the_model():
    record = sl.Classifier(loss="bce", **QUICK).fit_dataset(matrix(splits=False)).model_.record
    assert record["data"]["examples"] == {"train": 192, "validation": 48, "test": 0}
    assert record["test"] is None


def test_an_official_validation_part_chooses(data):
    parts = {"train": np.arange(100), "validation": np.arange(100, 150), "test": np.arange(150, 240)}
    record = (
        sl.Classifier(loss="bce", **QUICK)
        .fit_dataset(Dataset("d", data.inputs, data.targets, data.labels, parts))
        .model_.record
    )
    assert record["data"]["examples"] == {"train": 100, "validation": 50, "test": 90}


def test_the_same_seed_gives_the_same_folder(data, fitted, kept, tmp_path):
    sl.Classifier(**QUICK).fit_dataset(data).save(tmp_path / "again")
    for path in kept.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


@pytest.mark.parametrize("loss", ["two_way", "deep_f", "mfc", "recommended"])
def test_any_loss_makes_a_model(data, tmp_path, loss):
    sl.Classifier(loss=loss, **QUICK).fit_dataset(data).save(tmp_path / "m")
    np.testing.assert_allclose(
        sl.Classifier.load(tmp_path / "m").scores(data.inputs),
        by_hand(tmp_path / "m", data.inputs)[0],
        atol=1e-9,
    )


# What Python gives it


def test_texts_in_and_names_out(tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer

    from scoreloss.backbones.tfidf import SETTINGS

    found, labels = texts()
    classifier = sl.Classifier(loss="bce", epochs=20).fit(found, labels)
    assert classifier.labels_ == ("love", "space", "war")
    assert classifier.predict(["A SOLDIER in a tank", "the wedding on the moon: a kiss, an alien"]) == [
        ["war"],
        ["love", "space"],
    ]
    classifier.save(tmp_path / "m")
    again = sl.Classifier.load(tmp_path / "m")
    unseen = ["tänk battle, unheard words", "", "moon moon MOON kiss", "\ud800"]
    words = TfidfVectorizer(**SETTINGS).fit(found)
    x = words.transform(unseen).toarray()
    np.testing.assert_allclose(again.scores(unseen), by_hand(tmp_path / "m", x)[0], atol=1e-6)
    np.testing.assert_allclose(again.scores(unseen), classifier.scores(unseen), atol=1e-12)


def test_a_matrix_with_names_of_its_columns(data):
    options = {"loss": "bce", "head": "linear", **QUICK}
    y = data.targets.astype(int)
    by_matrix = sl.Classifier(**options).fit(data.inputs, y, label_names=NAMES)
    names = [[NAMES[k] for k in np.flatnonzero(row)] for row in y]
    by_names = sl.Classifier(**options).fit(data.inputs.tolist(), names, label_names=NAMES)
    assert by_matrix.predict(data.inputs) == by_names.predict(data.inputs)
    assert sl.Classifier(**options).fit(data.inputs, names).labels_ == tuple(sorted(NAMES))


@pytest.mark.parametrize(
    ("options", "inputs", "labels", "more", "said"),
    [
        ({}, "a text", [["a"]], {}, "inputs are one str"),
        ({}, ["a", 1], [["a"], []], {}, r"inputs\[1\] is a int"),
        ({}, ["a"] * 20, ["war"] * 20, {}, r"labels\[0\] is 'war': it must be a list of names"),
        ({}, ["a"] * 20, [[]] * 20, {}, "labels are all empty"),
        ({}, ["a"] * 20, [["x"]] * 20, {"label_names": ["y"]}, "labels hold 'x'"),
        ({}, ["a"] * 20, [["x"]] * 19, {}, "inputs have 20 examples: the targets have 19"),
        ({}, [[1.0]] * 20, [[1]] * 20, {}, "label_names is None"),
        ({}, [[1.0]] * 20, [[2]] * 20, {"label_names": ["x"]}, r"targets\[0, 0\] is 2"),
        ({}, [[1.0]] * 20, [["x"]] * 20, {"label_names": "x"}, "label_names are 'x'"),
        ({}, [[1.0]] * 5, [["x"]] * 5, {}, "has 5 examples to learn from: that is too few"),
        ({}, [[1.0]] * 20, [["x"]] + [[]] * 19, {}, "has no label in its"),
        ({}, [[np.nan]] * 20, [["x"]] * 20, {}, r"inputs\[0, 0\] is nan"),
        ({}, [[1.0]] * 20, [["\ud800"]] * 20, {}, r"labels\[0\] is '\\ud800': it must be text"),
        ({}, [[1.0]] * 20, [["x" * 20_000]] * 20, {}, r"labels\[0\] is 'x+': it must be text"),
        ({"kind": "film"}, ["a"] * 20, [["x"]] * 20, {}, "kind is 'film'"),
        ({"kind": "image"}, ["a"] * 20, [["x"]] * 20, {}, "backbone is None: for images name one"),
        ({"loss": "magic"}, [[1.0]] * 20, [["x"]] * 20, {}, "loss is 'magic'"),
        ({"loss": "metric_loss"}, [[1.0]] * 20, [["x"]] * 20, {}, "loss is 'metric_loss'"),
        ({"rule": "magic"}, [[1.0]] * 20, [["x"]] * 20, {}, "rule is 'magic'"),
        ({"score": "f1"}, [[1.0]] * 20, [["x"]] * 20, {}, "score is 'f1'"),
        ({"head": "deep"}, [[1.0]] * 20, [["x"]] * 20, {}, "head is 'deep'"),
        ({"budget": 0}, [[1.0]] * 20, [["x"]] * 20, {}, "budget is 0"),
        ({"epochs": 0}, [[1.0]] * 20, [["x"]] * 20, {}, "epochs is 0"),
        ({"seed": -1}, [[1.0]] * 20, [["x"]] * 20, {}, "seed is -1"),
        ({"backbone": "tfidf"}, [[1.0]] * 20, [["x"]] * 20, {}, "backbone is 'tfidf'"),
        ({"loss": "two_way", "rule": "fixed_0.5"}, [[1.0]] * 20, [["x"], []] * 10, {}, "rule is 'fixed_0.5'"),
    ],
)
def test_a_wrong_argument_is_said_in_one_line(options, inputs, labels, more, said):
    with pytest.raises(InputError, match=said) as raised:
        sl.Classifier(**{**QUICK, **options}).fit(inputs, labels, **more)
    assert "\n" not in str(raised.value)


def test_wrong_inputs_to_a_fitted_one(fitted):
    for given, said in (
        (np.zeros((2, 5)), r"inputs have shape \(2, 5\): the model takes a matrix of 6 features"),
        (np.full((2, 6), np.inf), r"inputs\[0\] holds NaN or infinity"),
        (["text"], "inputs must hold numbers"),
    ):
        with pytest.raises(InputError, match=said):
            fitted.predict(given)
    with pytest.raises(InputError, match="the classifier is not fitted"):
        sl.Classifier().predict([[1.0]])


# On disk


def test_the_record_is_what_the_schema_says(kept):
    record = json.loads((kept / "model.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    jsonschema.validate(record, schema.schema())
    schema.check(record)
    assert record["labels"] == list(NAMES)
    assert record["thresholds"] == load_file(kept / "head.safetensors")["thresholds"].tolist()
    assert sorted(path.name for path in kept.iterdir()) == ["README.md", "head.safetensors", "model.json"]


def refusal(function, *arguments):
    """What a function says in one line where it refuses its arguments; None where it does not."""
    try:
        function(*arguments)
    except InputError as problem:
        said = str(problem)
    else:
        return None
    assert "\n" not in said
    return said


def places_of(record, path=()):
    yield path
    items = (
        record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    )
    for key, value in items:
        yield from places_of(value, (*path, key))


def changed_at(record, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(record))
    *inner, last = path
    place = copy
    for key in inner:
        place = place[key]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return copy


ODD = [None, True, -1, 1e300, 0.5, "", "inf", "x" * 20_000, [], [[]], {}, {"x": 1}, KeyError]


def test_our_check_and_jsonschema_agree(kept):
    """Whatever stands at whatever place of the record."""
    record = json.loads((kept / "model.json").read_text())
    record["selection"]["tried"] = record["selection"]["tried"][:1]
    validator = jsonschema.Draft202012Validator(schema.schema())
    refused = 0
    for path in places_of(record):
        for value in ODD:
            if not path and value is KeyError:
                continue
            odd = changed_at(record, path, value)
            problem = refusal(schema.check, odd)
            assert (problem is None) == validator.is_valid(odd), (path, value)
            assert len(problem or "") < 500
            refused += problem is not None
    assert refused > 300


def test_a_record_that_was_changed_is_refused_or_harmless(kept, copied, data):
    """Each place of it in turn: an error in one line, or a model that still answers."""
    record = json.loads((kept / "model.json").read_text())
    record["selection"]["tried"] = record["selection"]["tried"][:1]
    for path in places_of(record):
        for value in (None, -1, "x", [], {}, KeyError):
            if not path and value is KeyError:
                continue
            (copied / "model.json").write_text(json.dumps(changed_at(record, path, value)))
            if (problem := refusal(folder.load, copied)) is not None:
                assert problem.startswith(str(copied))
            else:
                assert folder.load(copied).predict(data.inputs[:2]).scores.shape == (2, 4)


def test_every_byte_of_the_head_counts(kept, copied):
    whole = (kept / "head.safetensors").read_bytes()
    places = range(0, len(whole), max(1, len(whole) // 150))
    broken = [whole[:cut] for cut in places]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        broken.append(bytes(flipped))
    for content in [*broken, whole + b"\0", b"", b"\x80\x04]\x94.", struct.pack("<Q", 1 << 60)]:
        (copied / "head.safetensors").write_bytes(content)
        with pytest.raises(InputError, match=r"bytes: .* were written|was changed") as raised:
            folder.load(copied)
        assert "\n" not in str(raised.value)


def rewritten(path, change):
    """The arrays changed, and written with a checksum that fits, so that what they hold must be looked at."""
    description, arrays = read_arrays(path / "head.safetensors", "Model")
    record = json.loads((path / "model.json").read_text())
    change(description, arrays, record)
    write_arrays(path / "head.safetensors", "Model", description, arrays)
    record["head"] |= {
        key: value
        for key, value in signed(path / "head.safetensors").items()
        if record["head"].get(key) != "kept"
    }
    (path / "model.json").write_text(json.dumps(record))


def signed(path):
    import hashlib

    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}


def array(name, change):
    def apply(description, arrays, record):
        arrays[name] = change(arrays[name])

    return apply


def missing(name):
    return lambda description, arrays, record: arrays.pop(name)


def said(*keys, value):
    def apply(description, arrays, record):
        *path, last = keys
        for key in path:
            record = record[key]
        record[last] = value

    return apply


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (array("weight.0", lambda a: a * np.nan), r"weight\.0 holds NaN or infinity"),
        (array("weight.1", lambda a: a[:3]), r"bias\.1 has shape \(4,\)"),
        (array("weight.0", lambda a: a[:, :5]), r"weight\.0 has shape \(256, 5\)"),
        (array("weight.0", lambda a: a.astype(int)), r"weight\.0 has shape \(256, 6\) and type int64"),
        (array("weight.0", lambda a: a[None]), r"weight\.0 has shape"),
        (array("mean", lambda a: np.zeros(0)), r"mean has shape \(0,\)"),
        (array("scale", lambda a: a + np.inf), "scale holds NaN or infinity"),
        (array("boundary", lambda a: a[:2]), r"boundary has shape \(2,\)"),
        (array("platt.slopes", lambda a: a * np.nan), r"platt\.slopes holds NaN"),
        (array("thresholds", lambda a: a * np.nan), "thresholds holds NaN"),
        (array("thresholds", lambda a: a + 0.1), "thresholds are not those of"),
        (missing("weight.1"), "the head has 1 layers"),
        (missing("bias.0"), r"bias\.0 is missing"),
        (missing("thresholds"), "thresholds is missing"),
        (missing("platt.intercepts"), r"platt\.intercepts is missing"),
        (said("labels", value=["a", "b", "c"]), r"boundary has shape \(4,\)"),
        (said("labels", value=["a", "a", "b", "c"]), "labels holds 'a' twice"),
        (said("thresholds", value=None), "thresholds are not those of"),
        (said("thresholds", value=["inf"] * 4), "thresholds are not those of"),
        (said("head", "widths", value=[6, 4]), r"head\.widths are"),
        (said("head", "form", value="linear"), "the head has 2 layers"),
        (said("backbone", "width", value=7), r"head\.widths are"),
        (said("backbone", "width", value=10**12), r"backbone\.width is 1000000000000"),
        (said("backbone", "name", value="tfidf"), "backbone is|does not hold a whole model"),
        (said("kind", value="text"), "backbone is 'identity'"),
        (said("rule", "kind", value="expected_f1"), r"rule\.on is 'scores'|thresholds are not"),
        (said("rule", "on", value="moods"), r"rule\.on is 'moods'"),
        (said("format", value=2), "format is 2: it must be 1"),
    ],
)
def test_a_folder_that_does_not_fit_together_is_refused(data, copied, change, told):
    sl.Classifier(loss="bce", rule="per_label", **QUICK).fit_dataset(data).save(copied, force=True)
    rewritten(copied, change)
    with pytest.raises(InputError, match=told) as raised:
        folder.load(copied)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "[" * 200_000, '{"a": NaN}', "\xff", '{"format": 1}', '"x"'],
    ids=lambda content: ascii(content)[:12],
)
def test_a_record_that_is_none(copied, content):
    (copied / "model.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as raised:
        folder.load(copied)
    assert str(raised.value).startswith(str(copied / "model.json"))
    assert "\n" not in str(raised.value)


def test_a_record_of_absurd_size_is_not_read(copied):
    with (copied / "model.json").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="is too large for the record of a model"):
        folder.load(copied)


def test_folders_that_are_none(tmp_path, kept):
    for path in (tmp_path, tmp_path / "none", kept / "model.json"):
        with pytest.raises(InputError, match=r"is no folder of a model: there is no model\.json"):
            folder.load(path)


def test_words_that_were_changed_are_refused(tmp_path):
    found, labels = texts()
    sl.Classifier(loss="bce", **QUICK).fit(found, labels).save(tmp_path / "m")
    whole = shutil.copytree(tmp_path / "m", tmp_path / "whole")
    for words in (None, "words", [1], [], ["one"] * 30):

        def change(description, arrays, record, words=words):
            description["words"] = words

        shutil.rmtree(tmp_path / "m")
        shutil.copytree(whole, tmp_path / "m")
        rewritten(tmp_path / "m", change)
        with pytest.raises(InputError, match="words are"):
            folder.load(tmp_path / "m")


MARKUP = ("<script>alert(1)</script>", "[x](javascript:alert(1))", "a|b`*\n\x1b[31m", "=1+1", "\u202eabc")


def test_labels_that_are_markup_are_shown_harmlessly(tmp_path):
    data = matrix(names=MARKUP)
    sl.Classifier(loss="bce", **QUICK).fit_dataset(data).save(tmp_path / "m")
    assert folder.load(tmp_path / "m").labels == MARKUP
    card = (tmp_path / "m" / "README.md").read_text()
    assert "<script" not in card
    assert "](javascript" not in card
    assert "\x1b" not in card
    assert "\u202e" not in card
    table = [line for line in card.splitlines() if line.startswith("| ") and line.endswith(" |")]
    assert len({line.count("|") for line in table if "script" in line or "abc" in line}) == 1


def test_a_folder_is_never_overwritten_unasked(fitted, kept, tmp_path):
    fitted.save(tmp_path / "m")
    (tmp_path / "m" / "mine.txt").write_text("kept?")
    with pytest.raises(InputError, match="is there already: --force"):
        fitted.save(tmp_path / "m")
    fitted.save(tmp_path / "m", force=True)
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "README.md",
        "head.safetensors",
        "model.json",
    ]
    (tmp_path / "other").mkdir()
    fitted.save(tmp_path / "other")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match=r"holds no model\.json: only the folder of a model"):
        fitted.save(tmp_path / "papers", force=True)
    for path, told in (
        (tmp_path / "papers" / "thesis.txt", "is no folder"),
        (tmp_path / "no" / "m", "there is no folder"),
    ):
        with pytest.raises(InputError, match=told):
            fitted.save(path, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "other", "papers"]


def test_a_folder_is_written_whole_or_not_at_all(fitted, kept, copied, monkeypatch):
    before = {path.name: path.read_bytes() for path in copied.iterdir()}

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scoreloss.model.folder.write_whole", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        fitted.save(copied, force=True)
    assert {path.name: path.read_bytes() for path in copied.iterdir()} == before
    assert [path.name for path in copied.parent.iterdir()] == ["copy"]
