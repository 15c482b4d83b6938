"""Every loss against its slow reference, and what holds for all of them: masks, weights, runs, gradients."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch

from scoreloss import losses
from scoreloss.checks import InputError
from scoreloss.ops import NUMPY
from scoreloss.torch import (
    AUCPR,
    LOSSES,
    MFC,
    OPS,
    Asymmetric,
    DeepF,
    Focal,
    LabelCount,
    LabelPowerset,
    MetricLoss,
    Mix,
    PickAllLabels,
    Poly1,
    PrecisionAtRecall,
    RecallAtK,
    RecallAtPrecision,
    SigmoidF1,
    warm_up,
)
from tests import loss_references as ref
from tests.oracles import assert_close

CASES = {
    **{
        f"random {n} x {c}": ref.random_case(seed, n, c)
        for seed, (n, c) in enumerate([(7, 5), (4, 9), (12, 3)])
    },
    **ref.degenerate_cases(),
}
ELEMENTS = {reference.__name__ for reference in ref.ELEMENTS}
ROWS = {reference.__name__ for reference in ref.ROWS} | {"deep_f"}
EXAMPLES_ONLY = {"recall_at_k", "lambda_loss"}


def tensors(z, y):
    return torch.tensor(np.asarray(z)), torch.tensor(np.asarray(y))


def made(name, labels, most=3, **options):
    """A loss by its name, for so many labels."""
    y = np.zeros((1, labels), bool)
    y[:, : min(most, labels)] = True
    loss = LOSSES[name].for_targets(y, **options)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return loss.double().eval()


def logits_for(loss, z):
    """The logits (n, c) themselves, or for a loss of wider logits some that differ from label to label."""
    outputs = loss.outputs(z.shape[-1])
    if len(outputs) == 1:
        return z
    return z.unsqueeze(-1) * torch.linspace(-1.0, 1.5, outputs[-1]).to(z) + z.unsqueeze(-1).sin()


def mean_of_rows(values):
    kept = [value for value in values if value is not None]
    return float(np.mean(kept)) if kept else 0.0


def expected(name, loss, z, y):
    """What the reference says of a loss as ``made`` makes it."""
    if name == "deep_f":
        return mean_of_rows(ref.deep_f(logits_for(loss, torch.tensor(z)).numpy(), y))
    reference = getattr(ref, name)
    if name in ("precision_at_recall", "recall_at_precision"):
        m = loss.multiplier.detach().abs().numpy()
        return reference(z, y, 0.8, m, np.full(z.shape[1], 0.5))
    if name == "aucpr":
        m, bias = loss.multiplier.detach().abs().numpy().T, loss.bias.detach().numpy().T
        return reference(z, y, m, bias, np.full(z.shape[1], 0.5))
    if name == "mfc":
        return reference(z, y, offsets=loss.offset.detach().numpy())
    values = reference(z, y)
    return mean_of_rows(values) if name in ROWS else float(np.mean(values))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_equals_its_reference(name, case):
    z, y = CASES[case]
    loss = made(name, z.shape[1])
    logits, targets = tensors(z, y)
    logits = logits_for(loss, logits).clone().requires_grad_()
    value = loss(logits, targets)
    assert_close(value.item(), expected(name, loss, z, y), 1e-6)
    (gradient,) = torch.autograd.grad(value, logits)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_finite_differences(name):
    if name == "asymmetric":
        pytest.skip("its weights carry no gradient: test_torch_losses compares it with them held")
    z, y = tensors(*CASES["empty, full and one-positive rows"])
    if name in ("unbounded_f1", "recall_at_k", "lambda_loss"):
        z = z / 50 if name == "recall_at_k" else torch.sigmoid(z)
    loss = made(name, z.shape[-1])
    logits = logits_for(loss, z).clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, y), logits)


OPTIONS = [
    (lambda: Poly1(epsilon=0.5, reduction="none"), lambda z, y: ref.poly1(z, y, epsilon=0.5)),
    (
        lambda: Poly1(
            epsilon=[1.0, -0.5, 2.0], alpha=[0.25, 0.5, 0.75], gamma=[1.0, 2.0, 0.5], reduction="none"
        ),
        lambda z, y: ref.poly1(z, y, [1, -0.5, 2], [0.25, 0.5, 0.75], [1, 2, 0.5]),
    ),
    (
        lambda: Focal(alpha=[0.25, 0.5, 0.75], gamma=[1.0, 2.0, 0.5], reduction="none"),
        lambda z, y: ref.focal(z, y, [0.25, 0.5, 0.75], [1, 2, 0.5]),
    ),
    (
        lambda: Asymmetric(gamma_neg=[1.0, 2.0, 4.0], gamma_pos=[0.0, 1.0, 0.5], clip=0.2, reduction="none"),
        lambda z, y: ref.asymmetric(z, y, [1, 2, 4], [0, 1, 0.5], 0.2),
    ),
    (
        lambda: PickAllLabels(normalised=True, reduction="none"),
        lambda z, y: [v or 0.0 for v in ref.pick_all_labels(z, y, normalised=True)],
    ),
    (
        lambda: RecallAtK(k=[1, 3], rank_temperature=0.5, top_temperature=0.3, reduction="none"),
        lambda z, y: [v or 0.0 for v in ref.recall_at_k(z, y, (1, 3), 0.3, 0.5)],
    ),
    (
        lambda: LOSSES["two_way"](temperature=2.0),
        lambda z, y: ref.two_way(z, y, 2.0),
    ),
]


@pytest.mark.parametrize(("make", "reference"), OPTIONS)
def test_options_mean_what_the_reference_says(make, reference):
    z, y = ref.random_case(8, 9, 3)
    y[2], y[5] = 0, 1
    assert_close(make()(*tensors(z, y)).numpy(), np.array(reference(z, y), float), 1e-9)


@pytest.mark.parametrize("bound", ["log", "hinge"])
def test_the_bounds_of_eban_and_others_equal_their_reference(bound):
    z, y = ref.random_case(5, 8, 3)
    prior = (y.sum(0) + 1) / 10
    for kind, knob, reference in (
        (PrecisionAtRecall, "recall", ref.precision_at_recall),
        (RecallAtPrecision, "precision", ref.recall_at_precision),
    ):
        loss = kind(3, bound=bound, **{knob: 0.7}).double()
        with torch.no_grad():
            loss.multiplier.copy_(torch.tensor([-0.5, 2.0, 0.0]))
        assert_close(loss(*tensors(z, y)).item(), reference(z, y, 0.7, [0.5, 2, 0], prior, bound), 1e-9)
    loss = AUCPR(3, anchors=4, bound=bound).double()
    biases = np.arange(12.0).reshape(3, 4) / 7
    with torch.no_grad():
        loss.bias.copy_(torch.tensor(biases.T))
    assert_close(loss(*tensors(z, y)).item(), ref.aucpr(z, y, np.ones((3, 4)), biases, prior, bound), 1e-9)


def test_the_running_share_of_positives_grows_in_training_alone():
    loss = PrecisionAtRecall(2)
    z, y = torch.zeros(4, 2), torch.tensor([[1, 0], [1, 0], [0, 0], [1, 1]])
    assert loss(z, y).item() == loss(z, y).item()
    assert loss.positives.tolist() == [6, 2]
    assert loss.examples.tolist() == [8, 8]
    loss(z, y, mask=torch.tensor([[True], [False], [True], [False]]), weight=torch.tensor([1.0, 2.0]))
    assert loss.positives.tolist() == [7, 2]
    assert loss.examples.tolist() == [10, 12]
    loss.eval()(z, y)
    assert loss.examples.tolist() == [10, 12]
    assert set(loss.state_dict()) == {"multiplier", "positives", "examples"}


def test_multipliers_rise_where_the_constraint_is_broken_and_fall_where_it_holds():
    """The first label has lost all its positives, the second found them all."""
    y = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    z = torch.where(y > 0, torch.tensor([-9.0, 9.0]), torch.tensor([9.0, -9.0]))
    for loss in (PrecisionAtRecall(2), RecallAtPrecision(2)):
        optimiser = torch.optim.SGD(loss.parameters(), lr=0.1)
        loss(z, y).backward()
        optimiser.step()
        assert loss.multiplier[0] > 1
        assert loss.multiplier[1] < 1


@pytest.mark.parametrize("name", LOSSES)
def test_leading_axes_are_independent_runs(name):
    z = torch.stack([batch(seed=s)[0] for s in range(6)]).view(2, 3, 7, 4)
    y = batch()[1]
    many = torch.stack([batch(seed=s)[1] for s in range(6)]).view(2, 3, 7, 4)
    stacked = made(name, 4, runs=3) if LOSSES[name].learns else made(name, 4)
    wide = logits_for(stacked, z)
    assert stacked(wide, y).shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        alone = made(name, 4)
        with torch.no_grad():
            for own, all_runs in zip(alone.parameters(), stacked.parameters(), strict=True):
                own.copy_(all_runs[j])
        torch.testing.assert_close(stacked(wide, y)[i, j], alone(wide[i, j], y))
        torch.testing.assert_close(stacked(wide, many)[i, j], alone(wide[i, j], many[i, j]))


def batch(n=7, c=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    z = 1.5 * torch.randn(n, c, generator=generator, dtype=dtype)
    return z, (torch.rand(n, c, generator=generator) < 0.4).to(dtype)


@pytest.mark.parametrize("name", LOSSES)
def test_masked_is_sliced(name):
    z, y = batch(8, 5, seed=5)
    rows, labels = [0, 2, 3, 4, 5, 7], [0, 1, 3, 4]
    mask = torch.zeros(8, 5, dtype=torch.bool)
    mask[np.ix_(rows, labels)] = True
    if name == "deep_f":
        mask, labels = mask.any(1, keepdim=True), list(range(5))
    loss, narrow = made(name, 5), made(name, len(labels))
    with torch.no_grad():
        for own, sliced in zip(loss.parameters(), narrow.parameters(), strict=True):
            sliced.copy_(own[..., labels])
    seen = mask.expand(8, 5)
    logits = logits_for(loss, z)
    hidden = ~seen.unsqueeze(-1) if logits.ndim > 2 else ~seen
    leaf = torch.where(hidden, torch.nan, logits).requires_grad_()
    actual = loss(leaf, torch.where(seen, y, torch.nan), mask=mask)
    torch.testing.assert_close(actual, narrow(logits[rows][:, labels], y[rows][:, labels]))
    (gradient,) = torch.autograd.grad(actual, leaf)
    assert torch.isfinite(gradient).all()
    assert (gradient[~seen] == 0).all()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "two_way"])
def test_a_weight_of_two_is_the_example_twice(name):
    z, y = batch(5, 3, seed=2)
    times = torch.tensor([1, 2, 3, 1, 0])
    loss = made(name, 3)
    logits = logits_for(loss, z)
    repeated = loss(logits.repeat_interleave(times, 0), y.repeat_interleave(times, 0))
    weight = times.double().unsqueeze(1)
    torch.testing.assert_close(loss(logits, y, weight=weight), repeated)
    if name not in EXAMPLES_ONLY:
        torch.testing.assert_close(loss(logits, y, weight=weight.expand(5, 3)), repeated)


def test_two_way_weighs_what_it_sums():
    """In a column, and in a row, an entry counts with its weight over their mean, and the column with that mean."""
    z, y = ref.random_case(6, 5, 3)
    w = np.random.default_rng(0).uniform(0.1, 3, (5, 3))

    def side(columns):
        values, units = [], []
        for zs, ys, ws in columns:
            share = ws / ws.mean()
            if ys.any():
                hard = 4 * math.log(
                    sum(s * math.exp(-v / 4) for v, t, s in zip(zs, ys, share, strict=True) if t)
                )
                easy = [s * math.exp(v) for v, t, s in zip(zs, ys, share, strict=True) if not t]
                values.append(ref.softplus(hard + math.log(sum(easy))) if easy else 0.0)
                units.append(ws.mean())
        return np.average(values, weights=units)

    by_label = side(zip(z.T, y.T, w.T, strict=True))
    by_row = side(zip(z, y, w, strict=True))
    actual = LOSSES["two_way"]()(*tensors(z, y), weight=torch.tensor(w))
    assert_close(actual.item(), by_label + by_row, 1e-9)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - EXAMPLES_ONLY))
@pytest.mark.parametrize("shape", [(6, 1), (6, 4)])
def test_the_weight_of_what_is_masked_is_never_seen(name, shape):
    z, y = batch(6, 4, seed=1)
    mask = torch.ones(6, 4, dtype=torch.bool)
    mask[2] = False
    if name != "deep_f" and shape == (6, 4):
        mask[0, 1] = False
    weight = torch.rand(shape, generator=torch.Generator().manual_seed(0)).double() + 0.5
    seen = mask if shape == (6, 4) else mask.any(1, keepdim=True)
    if name == "deep_f":
        mask = mask.any(1, keepdim=True)
    loss = made(name, 4).eval()
    logits = logits_for(loss, z)
    for other in (0.0, 1e6, torch.nan):
        changed = torch.where(seen, weight, other)
        torch.testing.assert_close(
            loss(logits, y, mask=mask, weight=changed), loss(logits, y, mask=mask, weight=weight)
        )


@pytest.mark.parametrize("name", sorted(set(LOSSES) - EXAMPLES_ONLY - {"deep_f"}))
def test_labels_without_weight_are_masked(name):
    z, y = batch(6, 4, seed=1)
    loss = made(name, 4)
    logits = logits_for(loss, z)
    weight = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    torch.testing.assert_close(loss(logits, y, weight=weight), loss(logits, y, mask=weight > 0))


def test_labels_without_weight_still_count_among_the_labels_of_deep_f():
    z, y = batch(6, 4, seed=1)
    logits = logits_for(DeepF(3), z)
    weight = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    classes = (y * y.sum(1, keepdim=True).clamp(max=3)).long()
    entries = -logits.log_softmax(-1).gather(-1, classes.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(DeepF(3)(logits, y, weight=weight), entries[:, [0, 2, 3]].sum(1).mean())


@pytest.mark.parametrize("name", sorted(EXAMPLES_ONLY))
def test_losses_of_ranks_refuse_weights_of_labels(name):
    z, y = batch()
    with pytest.raises(InputError, match=r"ranks whole labels, so weights are those of examples, \(7, 1\)"):
        made(name, 4)(z, y, weight=torch.ones(4))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_reductions_of_rows(name):
    z, y = batch(6, 4, seed=3)
    y[1], y[4] = 0, 1
    each = made(name, 4)
    logits = logits_for(each, z)
    values = {}
    for reduction in ("none", "sum", "mean"):
        loss = DeepF(3, reduction=reduction) if name == "deep_f" else LOSSES[name](reduction=reduction)
        values[reduction] = loss(logits, y)
    assert values["none"].shape == (6,)
    torch.testing.assert_close(values["sum"], values["none"].sum())
    skipped = {"bp_mll": 2, "lambda_loss": 2, "pick_all_labels": 1, "recall_at_k": 1}.get(name, 0)
    torch.testing.assert_close(values["mean"], values["none"].sum() / (6 - skipped))


def test_pick_one_draws_one_positive_and_is_normalised_on_average():
    z, y = batch(6, 4, seed=3)
    torch.manual_seed(0)
    draws = torch.stack([PickAllLabels(pick_one=True, reduction="none")(z, y) for _ in range(4000)])
    single = z.logsumexp(-1, keepdim=True) - z
    for row in range(6):
        allowed = single[row][y[row] > 0]
        if len(allowed):
            assert (draws[:, row, None] - allowed).abs().min(-1).values.max() < 1e-9
    expected = PickAllLabels(normalised=True, reduction="none")(z, y)
    torch.testing.assert_close(draws.mean(0), expected, rtol=0.05, atol=0.02)


def test_special_cases():
    z, y = batch(9, 3)
    offsets = torch.tensor([0.5, -1.0, 2.0])
    frozen = MFC(3, slope=1.5).requires_grad_(False)
    frozen.offset.copy_(offsets)
    torch.testing.assert_close(frozen(z, y), SigmoidF1(slope=1.5, offset=offsets, average="micro")(z, y))
    torch.testing.assert_close(frozen.boundary, -offsets)
    torch.testing.assert_close(Poly1(epsilon=0.0, alpha=0.25, gamma=2.0)(z, y), Focal()(z, y))
    torch.testing.assert_close(LOSSES["soft_f1"]()(z, y), SigmoidF1()(z, y))
    unknown = torch.full((9, 3), 0.3).double()
    torch.testing.assert_close(
        LOSSES["zlpr"]()(z, unknown, weight=2 * torch.ones(9, 1)), LOSSES["zlpr"]()(z, unknown)
    )


@pytest.mark.parametrize(
    "name", sorted(set(LOSSES) - {"mfc", "precision_at_recall", "recall_at_precision", "aucpr"})
)
def test_numpy_is_a_framework_too(name):
    """The functions know nothing but ``Ops``: with numpy's they give what torch gives."""
    z, y = ref.random_case(4, 6, 4)
    loss = made(name, 4)
    logits = logits_for(loss, torch.tensor(z))
    options = loss._options()
    actual = loss.definition.function(NUMPY, logits.numpy(), y, **options)
    assert_close(actual, loss(logits, torch.tensor(y)).item(), 1e-9)


def test_hinge_f1_bounds_what_it_stands_for():
    for z, y in CASES.values():
        hard = MetricLoss("f1", average="micro", slope=1e6)(*tensors(z, y))
        assert LOSSES["hinge_f1"]()(*tensors(z, y)) >= hard - 1e-9


def test_every_function_has_a_module_and_a_name():
    functions = set(losses.__all__) - {"metric_loss", "double_f1", "label_count"}
    assert functions == set(LOSSES)
    z, y = batch(5, 3)
    for name in ("sigmoid_f1", "unbounded_f1", "smooth_npv", "soft_f1", "double_soft_f1"):
        torch.testing.assert_close(getattr(losses, name)(OPS, z, y), LOSSES[name]()(z, y))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_finite_for_whatever_comes(name):
    for fill, n, scale in itertools.product(("zeros", "ones", "mixed"), (1, 6), (0.0, 1.0, 20.0, 80.0, 1e4)):
        z, y = batch(n, 3, dtype=torch.float32)
        loss = made(name, 3).float().train()
        leaf = logits_for(loss, z.sign() * scale).clone().requires_grad_()
        y = {"zeros": torch.zeros_like(y), "ones": torch.ones_like(y), "mixed": y}[fill]
        value = loss(leaf, y)
        gradients = torch.autograd.grad(value, [leaf, *loss.parameters()])
        assert torch.isfinite(value).all(), (fill, n, scale)
        assert all(torch.isfinite(g).all() for g in gradients), (fill, n, scale)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(name, dtype):
    z, y = batch(3000, 3, dtype=torch.float32)
    loss = made(name, 3).float()
    z = logits_for(loss, z).to(dtype)
    expected = loss(z.float(), y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        leaf = z.clone().requires_grad_()
        value = loss(leaf, y)
        (gradient,) = torch.autograd.grad(value, leaf)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", LOSSES)
def test_scores_rise_with_the_logit_and_are_a_half_at_the_boundary(name):
    loss = made(name, 1)
    z = torch.linspace(-8, 8, 65).double().unsqueeze(1)
    scores = loss.scores(torch.as_tensor(loss.logits_of(z.numpy())).double())
    assert scores.shape == z.shape
    assert (scores[1:] > scores[:-1]).all()
    boundary = 0.0 if loss.boundary is None else loss.boundary
    assert ((scores >= 0.5) == (z >= boundary)).all()
    assert (loss.boundary is None) == (
        name in {"bp_mll", "pick_all_labels", "recall_at_k", "lambda_loss", "two_way", "aucpr"}
    )


@pytest.mark.parametrize("name", LOSSES)
def test_losses_can_be_copied_pickled_and_restored(name):
    z, y = batch()
    loss = made(name, 4)
    z = logits_for(loss, z)
    restored = made(name, 4)
    restored.load_state_dict(loss.state_dict())
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), restored):
        torch.testing.assert_close(other(z, y), loss(z, y))


@pytest.mark.parametrize("name", LOSSES)
def test_no_examples_give_no_nan(name):
    z = torch.zeros(0, 3)
    loss = made(name, 3).float()
    assert torch.isfinite(loss(logits_for(loss, z), z)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", LOSSES)
def test_compiles_whole(name):
    torch._dynamo.reset()
    z, y = batch(dtype=torch.float32)
    loss = made(name, 4).float().train()
    z = logits_for(loss, z)
    # What a loss counts while it trains must be the same for both.
    other = copy.deepcopy(loss)
    compiled = torch.compile(other, fullgraph=True)
    leaf, same = z.clone().requires_grad_(), z.clone().requires_grad_()
    expected, actual = loss(leaf, y), compiled(same, y)
    torch.testing.assert_close(actual, expected)
    actual.backward()
    expected.backward()
    torch.testing.assert_close(same.grad, leaf.grad)
    for own, copied in zip(loss.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(copied.grad, own.grad)


VARIANTS = {
    "every option": lambda: Focal(alpha=[0.25, 0.5, 0.5, 0.75], gamma=[1.0, 2.0, 0.5, 3.0]),
    "learned slope and offset": lambda: SigmoidF1(learnable=("slope", "offset"), average="samples"),
    "a root, weighted": lambda: MetricLoss("mcc", surrogate="amplify", average="weighted"),
    "hinge, skipped": lambda: MetricLoss("jaccard", surrogate="hinge", empty="skip"),
    "raised cosine": lambda: MetricLoss(surrogate="cdf", prior="raised_cosine", smoothing=1.0),
    "two at once": lambda: Mix(LOSSES["bce"](), SigmoidF1(), weight=warm_up(10)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_compile_whole_with_mask_and_weight(name):
    torch._dynamo.reset()
    loss = VARIANTS[name]()
    z, y = batch(dtype=torch.float32)
    mask = torch.rand(7, 4, generator=torch.Generator().manual_seed(1)) < 0.7
    weight = torch.rand(7, 1, generator=torch.Generator().manual_seed(2))
    expected = copy.deepcopy(loss)(z, y, mask, weight)
    leaf = z.clone().requires_grad_()
    actual = torch.compile(loss, fullgraph=True)(leaf, y, mask, weight)
    torch.testing.assert_close(actual, expected)
    assert torch.isfinite(torch.autograd.grad(actual, leaf)[0]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
def test_a_draw_and_the_reductions_compile_whole():
    torch._dynamo.reset()
    z, y = batch(dtype=torch.float32)
    assert torch.isfinite(torch.compile(PickAllLabels(pick_one=True), fullgraph=True)(z, y))
    powerset = LabelPowerset(y.numpy())
    wide = torch.randn(7, *powerset.outputs(4), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.compile(powerset, fullgraph=True)(wide, y), powerset(wide, y))
    count = LabelCount(4, 3)
    torch.testing.assert_close(torch.compile(count.loss, fullgraph=True)(z, y), count.loss(z, y))


BAD = [
    (lambda: PrecisionAtRecall(0), "labels is 0: it must be a whole number above 0"),
    (lambda: PrecisionAtRecall(3, recall=1.0), "recall is 1.0: it must lie below 1"),
    (lambda: RecallAtPrecision(3, bound="hing"), "bound is 'hing': did you mean hinge"),
    (lambda: PrecisionAtRecall(3)(torch.zeros(2, 4), torch.zeros(2, 4)), "logits have 4 labels"),
    (lambda: AUCPR(3, anchors=0), "labels is 0"),
    (lambda: MFC(3, slope=-1.0), "slope is -1.0"),
    (lambda: RecallAtK(k=[]), "k is"),
    (lambda: RecallAtK(k=[0]), "it must hold whole numbers above 0"),
    (lambda: RecallAtK(rank_temperature=0), "rank_temperature is 0"),
    (lambda: LOSSES["two_way"](temperature=-1), "temperature is -1"),
    (lambda: DeepF(0), "most is 0"),
    (lambda: DeepF(3)(torch.zeros(5, 2), torch.zeros(5, 2)), r"they must have \(..., examples, labels, 4\)"),
    (
        lambda: DeepF(3)(torch.zeros(5, 2, 4), torch.zeros(5, 2), mask=torch.ones(5, 2)),
        "a mask hides whole examples",
    ),
    (lambda: PickAllLabels(normalised=True, pick_one=True), "normalised and pick_one are both True"),
    (lambda: Poly1(gamma=-1), "gamma is -1"),
    (lambda: Poly1(epsilon=math.nan), "epsilon is nan"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
