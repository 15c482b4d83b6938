"""The losses in Keras. ``tests/test_keras.py`` runs this file once a backend, in a process of its own."""

import keras
import numpy as np
import pytest
import sklearn.metrics

import scoreloss as sl
from scoreloss import losses as functions
from scoreloss.checks import InputError
from scoreloss.keras import (
    BCE,
    LOSSES,
    OPS,
    ZLPR,
    DeepF,
    LambdaLoss,
    MetricLoss,
    PriorBias,
    RecallAtK,
    Score,
    SigmoidF1,
)
from scoreloss.torch import LOSSES as TORCH
from tests.framework_cases import (
    IDS,
    LOSS_OPTIONS,
    MOST,
    PARAMETERS,
    assert_agree,
    cases_for,
    inputs_for,
    torch_says,
)

BACKEND = keras.backend.backend()


def value_and_gradients(function, *leaves):
    """Of a function of tensors, by the backend's own means."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        leaves = [tf.constant(leaf) for leaf in leaves]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            value = function(*leaves)
            total = tf.reduce_sum(value)
        gradients = tape.gradient(total, leaves)
    elif BACKEND == "jax":
        import jax

        def total(*leaves):
            value = function(*leaves)
            return value.sum(), value

        gradient = jax.value_and_grad(total, argnums=tuple(range(len(leaves))), has_aux=True)
        (_, value), gradients = gradient(*leaves)
    else:
        import torch

        leaves = [torch.tensor(leaf).requires_grad_() for leaf in leaves]
        value = function(*leaves)
        gradients = torch.autograd.grad(value.sum(), leaves)
        value = value.detach()
    return np.asarray(value), [np.asarray(gradient) for gradient in gradients]


def made(name, options=()):
    kind = {"metric_loss": MetricLoss, **LOSSES}[name]
    return kind(**({"most": MOST} if name == "deep_f" else {}), **dict(options))


@pytest.mark.parametrize(("name", "options"), LOSS_OPTIONS, ids=IDS)
def test_a_loss_is_torchs(name, options):
    own = PARAMETERS.get(name, {})
    cases = cases_for(options)
    if BACKEND == "jax":  # test_jax.py compares JAX on all of them
        cases = ["masked and weighed"]
    for case in cases:
        inputs = inputs_for(name, case)
        if inputs is None:
            continue
        z, y, mask, weight = inputs
        if own:

            def call(z, *parameters, y=y, mask=mask, weight=weight):
                mine = dict(zip(own, parameters, strict=True))
                return getattr(functions, name)(OPS, z, y, mask=mask, weight=weight, **mine)

        else:
            loss = made(name, options)

            def call(z, y=y, mask=mask, weight=weight, loss=loss):
                return loss(y, z, sample_weight=weight, mask=mask)

        actual = value_and_gradients(call, z, *own.values())
        assert_agree(name, actual, torch_says(name, options, inputs), case)


def test_all_losses_without_parameters_are_there_under_their_names():
    assert list(LOSSES) == [name for name in TORCH if name not in PARAMETERS]
    assert all(kind.__name__ == TORCH[name].__name__ for name, kind in LOSSES.items())


@pytest.mark.parametrize("name", LOSSES)
def test_boundary_and_scores_are_torchs(name):
    import torch

    z = inputs_for(name, "random")[0]
    ours = made(name)
    theirs = TORCH[name](**({"most": MOST} if name == "deep_f" else {}))
    assert ours.boundary == theirs.boundary
    scores = keras.ops.convert_to_numpy(ours.scores(z))
    np.testing.assert_allclose(scores, theirs.scores(torch.tensor(z)).numpy(), rtol=1e-5)
    assert ours.outputs(5) == theirs.outputs(5)


@pytest.mark.parametrize(
    "loss",
    [
        *(made(name) for name in LOSSES),
        SigmoidF1(slope=[1.0, 2.0], offset=np.array([0.5, -1.0]), name="mine"),
        MetricLoss("mcc", surrogate="cdf", prior="raised_cosine", average="samples"),
        MetricLoss(__import__("functools").partial(sl.SCORES["fbeta"], beta=2.0)),
    ],
    ids=repr,
)
def test_a_loss_survives_its_config(loss):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    z, y, *_ = inputs_for("deep_f" if isinstance(loss, DeepF) else "bce", "random")
    if "mine" in loss.name:
        z, y = z[:, :2], y[:, :2]
    assert float(again(y, z)) == float(loss(y, z))


@keras.saving.register_keras_serializable(package="tests")
def strict_jaccard(tp, fp, fn, tn, div):
    return div(tp, tp + 2 * fp + fn)


def test_a_score_of_ones_own_is_saved_when_registered():
    loss = MetricLoss(strict_jaccard)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.options["score"] is strict_jaccard
    with pytest.raises(InputError, match="register_keras_serializable"):
        MetricLoss(lambda tp, fp, fn, tn, div: div(tp, tp + fn)).get_config()


def data(n=200, features=8, labels=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features)).astype(np.float32)
    y = x @ rng.normal(size=(features, labels)) > 0.7
    return x, y


def model_for(loss, y, features=8, **options):
    frequencies = sl.label_frequencies(y)
    outputs = loss.outputs(y.shape[1])
    head = keras.layers.Dense(
        int(np.prod(outputs)),
        kernel_initializer=keras.initializers.VarianceScaling(0.01 / 3, "fan_in", "uniform", seed=0),
        bias_initializer=PriorBias(frequencies, loss),
    )
    layers = [keras.Input((features,)), head]
    if len(outputs) > 1:
        layers.append(keras.layers.Reshape(outputs))
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.05), loss=loss, **options)
    return model


@pytest.mark.parametrize("name", ["sigmoid_f1", "deep_f"])
def test_a_model_trains_is_saved_loaded_and_goes_on(name, tmp_path):
    """On the last batch of an epoch too, which is smaller."""
    x, y = data()
    loss = LOSSES[name](most=4) if name == "deep_f" else LOSSES[name]()
    metrics = [Score("f1", loss=loss), Score("jaccard", average="samples", loss=loss)]
    model = model_for(loss, y, metrics=metrics)
    history = model.fit(x, y, batch_size=64, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    scores = keras.ops.convert_to_numpy(loss.scores(model.predict(x, verbose=0)))
    found = model.evaluate(x, y, batch_size=64, verbose=0, return_dict=True)
    expected = sl.evaluate(y, scores)
    assert found["macro_f1"] == pytest.approx(expected["macro_f1"], abs=1e-6)
    assert found["samples_jaccard"] == pytest.approx(expected["samples_jaccard"], abs=1e-6)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.loss.get_config() == loss.get_config()
    assert again.evaluate(x, y, batch_size=64, verbose=0, return_dict=True) == pytest.approx(found, abs=1e-6)
    more = [
        m.fit(x, y, batch_size=200, epochs=1, verbose=0, shuffle=False).history["loss"]
        for m in (model, again)
    ]
    assert more[0] == pytest.approx(more[1], rel=1e-5)
    after = [m.predict(x, verbose=0) for m in (model, again)]
    np.testing.assert_allclose(after[0], after[1], rtol=1e-4, atol=1e-5)


def test_compiled_and_in_mixed_precision():
    x, y = data()
    loss = SigmoidF1()
    losses = {}
    for policy in ("float32", "mixed_float16"):
        keras.config.set_dtype_policy(policy)
        try:
            model = model_for(loss, y, jit_compile=BACKEND != "torch")
            history = model.fit(x, y, batch_size=100, epochs=3, verbose=0, shuffle=False).history["loss"]
            losses[policy] = history
            logits = model.predict(x, verbose=0)
            assert logits.dtype == {"float32": np.float32, "mixed_float16": np.float16}[policy]
        finally:
            keras.config.set_dtype_policy("float32")
    assert losses["float32"][-1] < losses["float32"][0]
    np.testing.assert_allclose(losses["mixed_float16"], losses["float32"], rtol=0.02)


@pytest.mark.parametrize("fill", [-50.0, 1e4])
def test_compiled_gradients_are_finite(fill):
    """Of a score whose denominator gets small, at logits far off, as ``fit`` compiles them."""
    x, y = data(n=12)
    y[:, 0] = False
    bias = keras.initializers.Constant(fill)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, bias_initializer=bias)])
    model.compile(keras.optimizers.SGD(1.0), loss=MetricLoss("precision"), jit_compile=BACKEND != "torch")
    assert np.isfinite(model.train_on_batch(x, y))
    assert all(np.isfinite(weights).all() for weights in model.get_weights())


def test_sample_weight_goes_into_the_sums_and_not_over_them():
    x, y = data(n=60)
    z = (x[:, :4] * 2).astype(np.float32)
    times = np.arange(60) % 3
    for loss in (SigmoidF1(), ZLPR(), BCE()):
        expected = float(loss(np.repeat(y, times, axis=0), np.repeat(z, times, axis=0)))
        for weight in (times, times[:, None], np.repeat(times[:, None], 4, axis=1)):
            assert float(loss(y, z, sample_weight=weight)) == pytest.approx(expected, rel=1e-5)
        if not isinstance(loss, SigmoidF1):
            continue
        model = keras.Sequential([keras.Input((4,)), keras.layers.Activation("linear")])
        model.compile(loss=loss)
        seen = model.evaluate(z, y, sample_weight=times, batch_size=60, verbose=0)
        assert seen == pytest.approx(expected, rel=1e-5)


AVERAGES = ["macro", "micro", "samples", "weighted", None]


def streamed(metric, y, z, weight=None, size=7):
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        metric.update_state(y[part], z[part], None if weight is None else weight[part])
    return keras.ops.convert_to_numpy(metric.result())


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("weighed", [False, True])
def test_a_streamed_score_is_scikit_learns_on_the_whole(average, weighed):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(50, 5)).astype(np.float32)
    y = rng.random((50, 5)) < [0.0, 0.1, 0.3, 0.6, 1.0]
    weight = rng.uniform(0, 3, 50).astype(np.float32) if weighed else None
    for score in ("f1", "precision", "recall", "jaccard"):
        metric = Score(score, average=average)
        function = getattr(sklearn.metrics, f"{score}_score")
        expected = function(y, z >= 0, average=average, sample_weight=weight, zero_division=0)
        np.testing.assert_allclose(streamed(metric, y, z, weight), expected, rtol=1e-6, atol=1e-7)
        metric.reset_state()
        np.testing.assert_allclose(streamed(metric, y, z, weight, size=50), expected, rtol=1e-6, atol=1e-7)
    if average == "macro":
        metric = Score("mcc")
        of_labels = [
            sklearn.metrics.matthews_corrcoef(y[:, j], z[:, j] >= 0, sample_weight=weight) for j in range(5)
        ]
        np.testing.assert_allclose(streamed(metric, y, z, weight), np.mean(of_labels), rtol=1e-4, atol=1e-6)


def test_a_score_decides_as_a_rule_does_on_the_scores_of_the_loss():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(80, 3)).astype(np.float32)
    y = rng.random((80, 3)) < 0.4
    loss = SigmoidF1(slope=2.0, offset=[0.5, -0.5, 0.0])
    scores = keras.ops.convert_to_numpy(loss.scores(z))
    rule = sl.PerLabel("f1").fit(y, scores)
    metric = Score("f1", thresholds=rule.thresholds_, loss=loss)
    expected = sl.evaluate(y, scores, rule.thresholds_)["macro_f1"]
    assert float(streamed(metric, y, z)) == pytest.approx(expected, abs=1e-6)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert float(streamed(again, y, z)) == pytest.approx(expected, abs=1e-6)
    assert float(Score("f1").result()) == 0


def test_entries_without_weight_leave_a_score():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(40, 4)).astype(np.float32)
    y = rng.random((40, 4)) < 0.4
    mask = rng.random((40, 4)) < 0.6
    mask[:, 1] = False
    for average in ("macro", "micro", "samples", "weighted"):
        found = streamed(Score("f1", average=average), y, z, mask.astype(np.float32))
        expected = sl.evaluate(y, z, 0.0, mask=mask)[f"{average}_f1"]
        assert float(found) == pytest.approx(expected, abs=1e-6), average


def test_the_prior_bias_says_the_frequencies():
    frequencies = np.array([0.02, 0.3, 0.9])
    for loss in (
        None,
        BCE(),
        SigmoidF1(slope=3.0, offset=[1.0, 0.0, -1.0]),
        MetricLoss(surrogate="amplify"),
        DeepF(4),
    ):
        initializer = PriorBias(frequencies, loss)
        shape = (3,) if loss is None else (int(np.prod(loss.outputs(3))),)
        bias = initializer(shape)
        if isinstance(loss, DeepF):
            says = loss.scores(keras.ops.reshape(bias, (1, 3, 5)))
        elif loss is None:
            says = keras.ops.sigmoid(bias)
        else:
            says = getattr(loss, "surrogate", loss.scores)(bias[None])
        np.testing.assert_allclose(np.ravel(keras.ops.convert_to_numpy(says)), frequencies, rtol=1e-4)
        again = keras.initializers.deserialize(keras.initializers.serialize(initializer))
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(again(shape)), keras.ops.convert_to_numpy(bias)
        )


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_the_bench_trains_the_same_heads_as_with_torch(head, monkeypatch):
    """Without the epsilon, which Keras's Adam adds before its correction of the first steps."""
    from scoreloss.bench import train, train_keras
    from scoreloss.bench.splits import Split
    from scoreloss.bench.train import Pack, Run
    from scoreloss.bench.train_keras import KerasPack

    monkeypatch.setattr(train, "EPS", 1e-12)
    monkeypatch.setattr(train_keras, "EPS", 1e-12)
    x, y = data(n=100)
    orders = [np.random.default_rng(seed).permutation(100) for seed in range(2)]
    splits = [Split(order[:70], order[70:85], order[85:]) for order in orders]
    names = ["sigmoid_f1", "bce"]
    runs = [Run(TORCH[name](), 0.01, weight_decay=0.1 * i) for i, name in enumerate(names)]
    given, options = (x, y, splits, runs, [0, 1]), {"head": head, "batch_size": 32}
    expected = Pack(*given, **options)
    start = [layer.detach().clone() for layer in expected.layers]
    actual = KerasPack(*given, losses=[LOSSES[name]() for name in names], **options)
    for pack in (expected, actual):
        pack.train(3)
    for before, ours, theirs in zip(start, actual.layers, expected.layers, strict=True):
        moved = (theirs - before).abs().max().item()
        assert (ours - theirs).abs().max().item() < 0.005 * moved


def ones(*shape):
    return np.ones(shape, np.float32)


BAD = [
    (lambda: SigmoidF1(slope=-1.0), "slope is -1"),
    (lambda: SigmoidF1(slop=1.0), "option is 'slop': did you mean slope"),
    (lambda: MetricLoss("jacard"), "did you mean jaccard"),
    (lambda: DeepF(0), "most is 0"),
    (lambda: BCE()(ones(3, 2), ones(3, 2), sample_weight=2.0), "sample_weight is one number"),
    (lambda: BCE()(ones(3, 2), ones(3, 2), sample_weight=ones(4)), r"weight has shape \(4, 1\)"),
    (lambda: LambdaLoss()(ones(3, 2), ones(3, 2), sample_weight=ones(3, 2)), r"those of examples, \(3, 1\)"),
    (lambda: RecallAtK(k=[]), "k is"),
    (lambda: BCE()(ones(3, 3), ones(3, 2)), r"targets have shape \(3, 3\)"),
    (lambda: BCE()(ones(3, 2), ones(3, 2).astype(int)), "must be floating-point"),
    (lambda: SigmoidF1(slope=[1.0, 2.0])(ones(4, 3), ones(4, 3)), "slope has 2 numbers: the logits have 3"),
    (lambda: DeepF(3)(ones(5, 2), ones(5, 2)), r"they must have \(..., examples, labels, 4\)"),
    (lambda: PriorBias([0.5, 0.0]), "label_frequencies"),
    (lambda: PriorBias([0.5, 0.5])((3,)), r"the bias has shape \(3,\)"),
    (lambda: PriorBias([0.5], loss="bce"), "it must be a loss of scoreloss.keras"),
    (lambda: Score("f1", average="macr"), "did you mean macro"),
    (lambda: Score(thresholds=np.nan), "thresholds are nan"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
