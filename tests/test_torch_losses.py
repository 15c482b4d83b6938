"""The losses in PyTorch against the paper's listing, plain loops, and finite differences."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import scoreloss as sl
from scoreloss.checks import InputError
from scoreloss.scores import is_rational
from scoreloss.surrogates import HINGE_BOUNDS
from scoreloss.torch import (
    BCE,
    LOSSES,
    Asymmetric,
    Focal,
    MetricLoss,
    SigmoidF1,
    SmoothAccuracy,
    SmoothNPV,
    SmoothPrecision,
    SmoothRecall,
    SmoothSpecificity,
    StackedLinear,
    UnboundedF1,
    start_at_priors,
)
from tests.oracles import averaged

AVERAGES = ["macro", "micro", "samples", "weighted", None]
SURROGATES = {
    "sigmoid": {"slope": 1.5, "offset": -0.3},
    "linear": {},
    "hinge": {},
    "amplify": {"scale": 7.0},
    "cdf": {"prior": "raised_cosine", "delta": 0.45},
}


def batch(n=7, c=4, seed=0, dtype=torch.float64, spread=1.5):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, c, generator=generator, dtype=dtype)
    targets = (torch.rand(n, c, generator=generator) < 0.4).to(dtype)
    return logits, targets


def allowed():
    """Every score with every surrogate that takes it."""
    pairs = []
    for (name, score), surrogate in itertools.product(sl.SCORES.items(), SURROGATES):
        if surrogate == "hinge" and score not in HINGE_BOUNDS:
            continue
        if surrogate in ("linear", "hinge") and not is_rational(score):
            continue
        pairs.append((name, surrogate))
    return pairs


def paper_listing(y, z, beta=1.0, eta=0.0):
    """The paper's listing: the four soft counts a label, then F1, then the mean over labels."""
    s = 1 / (1 + torch.exp(-beta * (z + eta)))
    tp = (s * y).sum(dim=0)
    fp = (s * (1 - y)).sum(dim=0)
    fn = ((1 - s) * y).sum(dim=0)
    f1 = 2 * tp / (2 * tp + fn + fp + 1e-16)
    return (1 - f1).mean()


@pytest.mark.parametrize(("slope", "offset"), [(1, 0), (2.5, -1), (0.75, 10.25), (1, 9), (30, 2)])
def test_sigmoid_f1_is_the_papers_listing(slope, offset):
    for seed in range(5):
        z, y = batch(64, 9, seed)
        assert SigmoidF1(slope=slope, offset=offset)(z, y).item() == pytest.approx(
            paper_listing(y, z, slope, offset).item(), abs=1e-6
        )


def stand_ins(surrogate, knobs, z):
    """What a logit counts as where the target is 1, and where it is 0."""
    p = 1 / (1 + math.exp(-z))
    if surrogate == "sigmoid":
        return (1 / (1 + math.exp(-knobs["slope"] * (z + knobs["offset"]))),) * 2
    if surrogate == "linear":
        return z, z
    if surrogate == "hinge":
        return min(1, z), max(0, 1 + z)
    if surrogate == "amplify":
        return (1 / (1 + math.exp(-knobs["scale"] * (p - 0.5))),) * 2
    u = min(max((p - 0.5) / knobs["delta"], -1), 1)
    return (0.5 * (1 + u + math.sin(math.pi * u) / math.pi),) * 2


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(("score", "surrogate"), allowed())
def test_a_metric_loss_is_one_minus_the_score_of_summed_stand_ins(score, surrogate, average):
    z, y = batch(6, 3, seed=3)
    knobs = SURROGATES[surrogate]

    def of_cells(cells):
        tp = fp = positives = 0.0
        for i, j in cells:
            on_positive, on_negative = stand_ins(surrogate, knobs, z[i, j].item())
            tp += y[i, j].item() * on_positive
            fp += (1 - y[i, j].item()) * on_negative
            positives += y[i, j].item()
        fn, tn = positives - tp, len(cells) - positives - fp

        def div(num, den, power=1):
            if surrogate in ("linear", "hinge"):
                den = max(den, 1e-7)
            return num / den**power if den else 0.0

        return 1 - sl.SCORES[score](tp, fp, fn, tn, div)

    rows, labels = range(6), range(3)
    by_label = [of_cells([(i, j) for i in rows]) for j in labels]
    support = y.sum(0).numpy()
    expected = {
        "macro": lambda: np.mean(by_label),
        "weighted": lambda: np.average(by_label, weights=support),
        None: lambda: by_label,
        "micro": lambda: of_cells(list(itertools.product(rows, labels))),
        "samples": lambda: np.mean([of_cells([(i, j) for j in labels]) for i in rows]),
    }[average]()
    loss = MetricLoss(score, surrogate=surrogate, average=average, **knobs)
    np.testing.assert_allclose(loss(z, y).numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(("score", "surrogate"), allowed())
def test_gradients_are_those_of_finite_differences(score, surrogate, average):
    z, y = batch(5, 3, seed=1)
    # Away from the kinks of the hinge, and from denominators that are held.
    if surrogate == "hinge":
        z = z.abs().clamp(0.2, 0.8) * torch.where(z > 0, 1.0, -1.0)
    if surrogate == "linear":
        z = torch.sigmoid(z)
    loss = MetricLoss(score, surrogate=surrogate, average=average, **SURROGATES[surrogate])
    assert torch.autograd.gradcheck(lambda x: loss(x, y), z.requires_grad_())


def entry_losses():
    """Name -> our loss, and its definition for one entry."""
    log = math.log

    def p(z):
        return 1 / (1 + math.exp(-z))

    def bce(z, y, w=1.0):
        return -w * y * log(p(z)) - (1 - y) * log(1 - p(z))

    def focal(z, y, a=0.25, g=2.0):
        return -a * y * (1 - p(z)) ** g * log(p(z)) - (1 - a) * (1 - y) * p(z) ** g * log(1 - p(z))

    def asl(z, y, gn=4.0, gp=1.0, clip=0.05):
        q = min(1 - p(z) + clip, 1)
        return -y * (1 - p(z)) ** gp * log(p(z)) - (1 - y) * (1 - q) ** gn * log(q)

    return {
        "bce": (BCE, bce),
        "bce pos_weight": (
            lambda reduction: BCE(pos_weight=3.0, reduction=reduction),
            lambda z, y: bce(z, y, 3),
        ),
        "focal": (Focal, focal),
        "focal gamma .5": (
            lambda reduction: Focal(alpha=None, gamma=0.5, reduction=reduction),
            lambda z, y: 2 * focal(z, y, 0.5, 0.5),
        ),
        "asl": (Asymmetric, asl),
        "asl no clip": (
            lambda reduction: Asymmetric(gamma_neg=2.5, gamma_pos=0, clip=0, reduction=reduction),
            lambda z, y: asl(z, y, 2.5, 0, 0),
        ),
    }


@pytest.mark.parametrize("name", entry_losses())
@pytest.mark.parametrize("soft", [False, True])
def test_entry_losses_equal_their_definition(name, soft):
    make, definition = entry_losses()[name]
    z, y = batch(6, 4, seed=2, spread=3)
    if soft:
        y = torch.rand(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = [[definition(z[i, j].item(), y[i, j].item()) for j in range(4)] for i in range(6)]
    np.testing.assert_allclose(make(reduction="none")(z, y), expected, atol=1e-9)
    assert make(reduction="mean")(z, y).item() == pytest.approx(np.mean(expected), abs=1e-9)
    assert make(reduction="sum")(z, y).item() == pytest.approx(np.sum(expected), abs=1e-9)


def test_special_cases_are_bce():
    z, y = batch(8, 3)
    expected = F.binary_cross_entropy_with_logits(z, y)
    torch.testing.assert_close(BCE()(z, y), expected)
    torch.testing.assert_close(Focal(gamma=0, alpha=None)(z, y), expected)
    torch.testing.assert_close(Asymmetric(gamma_neg=0, gamma_pos=0, clip=0)(z, y), expected)
    weighted = F.binary_cross_entropy_with_logits(z, y, pos_weight=torch.tensor([1.0, 2.0, 5.0]).double())
    torch.testing.assert_close(BCE(pos_weight=[1.0, 2.0, 5.0])(z, y), weighted)


def test_entry_losses_have_their_gradients():
    z, y = batch(5, 3)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: Focal(gamma=[0.5, 1.0, 3.0])(x, y), z)
    assert torch.autograd.gradcheck(lambda x: BCE(pos_weight=2.0)(x, y), z)
    # ASL's focal weights carry no gradient: hold them fixed to compare.
    p = torch.sigmoid(z.detach())
    q = (1 - p + 0.05).clamp(max=1)
    fixed = y * (1 - p), (1 - y) * (1 - q) ** 4

    def held(x):
        log_q = (torch.sigmoid(-x) + 0.05).clamp(max=1).log()
        return -(fixed[0] * F.logsigmoid(x) + fixed[1] * log_q).mean()

    (expected,) = torch.autograd.grad(held(z), z)
    (actual,) = torch.autograd.grad(Asymmetric()(z, y), z)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("score", sl.SCORES)
def test_the_loss_tends_to_one_minus_the_hard_score(score, average):
    z, y = batch(20, 5, seed=4)
    y[:, 0] = 0
    y[:, 1] = 1
    loss = MetricLoss(score, average=average, slope=1e6)
    expected = averaged(
        lambda *counts: sl.SCORES[score](*counts, lambda a, b, power=1: a / b**power if b else 0.0),
        y.bool().numpy(),
        (z >= 0).numpy(),
        average,
    )
    np.testing.assert_allclose(1 - loss(z, y).numpy(), expected, atol=1e-9)


EVERY = {
    f"{score} {surrogate} {average}": (
        lambda score=score, surrogate=surrogate, average=average: MetricLoss(
            score, surrogate=surrogate, average=average
        )
    )
    for score, surrogate in allowed()
    for average in ("macro", "micro", "samples", "weighted")
}


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_finite_for_whatever_comes(name):
    loss = EVERY[name]()
    for fill, n, scale in itertools.product(("zeros", "ones", "mixed"), (1, 6), (0.0, 1.0, 20.0, 80.0, 1e4)):
        z, y = batch(n, 3, dtype=torch.float32)
        z = (z.sign() * scale).requires_grad_()
        y = {"zeros": torch.zeros_like(y), "ones": torch.ones_like(y), "mixed": y}[fill]
        value = loss(z, y)
        (gradient,) = torch.autograd.grad(value, z)
        assert torch.isfinite(value).all(), (fill, n, scale)
        assert torch.isfinite(gradient).all(), (fill, n, scale)


def test_the_loss_has_the_type_of_wide_logits():
    z, y = batch()
    assert SigmoidF1(slope=torch.ones(4))(z, y.int()).dtype == torch.float64
    assert SigmoidF1(slope=torch.ones(4).double())(z.float(), y.bool()).dtype == torch.float32


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("empty", ["zero", "skip", "one"])
def test_masked_is_sliced(average, empty):
    z, y = batch(8, 5, seed=5)
    y[:, 3] = 0
    mask = torch.ones(8, 5, dtype=torch.bool)
    mask[[1, 6]] = False
    mask[:, 2] = False
    rows, labels = [0, 2, 3, 4, 5, 7], [0, 1, 3, 4]
    wide = torch.where(mask, z, torch.nan).requires_grad_()
    loss = MetricLoss("f1", average=average, empty=empty)
    actual = loss(wide, torch.where(mask, y, torch.nan), mask=mask)
    expected = loss(z[rows][:, labels], y[rows][:, labels])
    if average is None:
        actual = actual[labels]
    torch.testing.assert_close(actual, expected)
    (gradient,) = torch.autograd.grad(actual.sum(), wide)
    assert (gradient[~mask] == 0).all()
    assert torch.isfinite(gradient).all()


EVERY_ENTRY = {"bce": BCE, "focal": Focal, "asymmetric": Asymmetric}


@pytest.mark.parametrize("name", EVERY_ENTRY)
def test_masked_entries_leave_the_mean(name):
    z, y = batch(8, 5)
    mask = torch.rand(8, 5, generator=torch.Generator().manual_seed(1)) < 0.5
    entries = EVERY_ENTRY[name](reduction="none")(z, y)
    actual = LOSSES[name]()(z, torch.where(mask, y, torch.nan), mask=mask)
    torch.testing.assert_close(actual, entries[mask].mean())


@pytest.mark.parametrize("loss", [MetricLoss("f1", average=a) for a in AVERAGES] + [BCE(), Focal()])
def test_a_weight_of_two_is_the_example_twice(loss):
    z, y = batch(5, 3)
    times = torch.tensor([1, 2, 3, 1, 0])
    repeated = loss(z.repeat_interleave(times, 0), y.repeat_interleave(times, 0))
    weight = times.double().unsqueeze(1)
    torch.testing.assert_close(loss(z, y, weight=weight), repeated)
    torch.testing.assert_close(loss(z, y, weight=weight.expand(5, 3)), repeated)


@pytest.mark.parametrize("average", AVERAGES)
def test_a_weight_of_two_is_the_example_twice_whatever_is_masked(average):
    z, y = batch(6, 3, seed=9)
    times = torch.tensor([1, 2, 3, 1, 0, 4])
    mask = torch.rand(6, 3, generator=torch.Generator().manual_seed(2)) < 0.6
    loss = MetricLoss("f1", average=average)
    again = [part.repeat_interleave(times, 0) for part in (z, y, mask)]
    weighted = loss(z, y, mask=mask, weight=times.double().unsqueeze(1))
    torch.testing.assert_close(weighted, loss(*again[:2], mask=again[2]))
    hard = sl.evaluate(y, (z > 0).double(), mask=mask, sample_weight=times)
    if average:
        steep = MetricLoss("f1", average=average, slope=1e6)
        soft = 1 - steep(z, y, mask=mask, weight=times.double().unsqueeze(1))
        assert soft.item() == pytest.approx(hard[f"{average}_f1"], abs=1e-9)


@pytest.mark.parametrize("score", sl.SCORES)
@pytest.mark.parametrize("average", AVERAGES)
def test_the_scale_of_weights_does_not_matter(score, average):
    z, y = batch(6, 3, seed=9, dtype=torch.float32)
    weight = torch.rand(6, 3, generator=torch.Generator().manual_seed(1)) + 0.1
    loss = MetricLoss(score, average=average)
    for scale in (1e-9, 1e10):
        torch.testing.assert_close(loss(z, y, weight=scale * weight), loss(z, y, weight=weight))


def test_weights_of_labels_weigh_the_mean_over_labels():
    z, y = batch(6, 3)
    labels = MetricLoss("f1", average=None)(z, y)
    weight = torch.tensor([1.0, 0.0, 3.0]).double()
    actual = MetricLoss("f1")(z, y, weight=weight)
    torch.testing.assert_close(actual, (labels * weight).sum() / weight.sum())


def test_what_a_label_without_a_positive_counts_as():
    z, y = batch(6, 3, seed=7)
    y[:, 1] = 0
    y[0, [0, 2]], y[3] = 1, 0
    others = MetricLoss("f1", average=None)(z, y)[[0, 2]]
    torch.testing.assert_close(MetricLoss("f1")(z, y), (others.sum() + 1) / 3)
    torch.testing.assert_close(MetricLoss("f1", empty="skip")(z, y), others.mean())
    torch.testing.assert_close(MetricLoss("f1", empty="one")(z, y), others.sum() / 3)
    rows = y.sum(1) > 0
    assert not rows.all()
    torch.testing.assert_close(
        MetricLoss("f1", average="samples", empty="skip")(z, y),
        MetricLoss("f1", average="samples")(z[rows], y[rows]),
    )
    torch.testing.assert_close(MetricLoss("accuracy", empty="skip")(z, y), MetricLoss("accuracy")(z, y))


@pytest.mark.parametrize("average", ["macro", "micro", "samples", "weighted"])
@pytest.mark.parametrize(("empty", "expected"), [("zero", 1.0), ("skip", 0.0), ("one", 0.0)])
def test_a_batch_without_a_positive(average, empty, expected):
    z = batch()[0].requires_grad_()
    loss = MetricLoss("f1", average=average, empty=empty)(z, torch.zeros(7, 4))
    assert loss.item() == expected
    assert (torch.autograd.grad(loss, z)[0] == 0).all()


def test_smoothing_gives_an_empty_label_a_gradient():
    z = batch()[0].requires_grad_()
    loss = MetricLoss("f1", smoothing=1.0)(z, torch.zeros(7, 4))
    expected = 1 - (1 / (torch.sigmoid(z).sum(0) + 1)).mean()
    torch.testing.assert_close(loss, expected)
    assert (torch.autograd.grad(loss, z)[0] > 0).all()


def test_slopes_and_offsets_for_each_label():
    z, y = batch(6, 3)
    slopes, offsets = [0.5, 1.0, 4.0], [0.0, -1.0, 2.0]
    together = SigmoidF1(slope=slopes, offset=torch.tensor(offsets), average=None)
    for j in range(3):
        alone = SigmoidF1(slope=slopes[j], offset=offsets[j])(z[:, [j]], y[:, [j]])
        torch.testing.assert_close(together(z, y)[j], alone)
    torch.testing.assert_close(together.boundary, -torch.tensor(offsets))
    moved = together.to(torch.float64)
    assert moved.boundary.dtype == torch.float64


@pytest.mark.parametrize(
    ("loss", "score"),
    [
        (SmoothAccuracy, "accuracy"),
        (SmoothPrecision, "precision"),
        (SmoothNPV, "npv"),
        (SmoothRecall, "recall"),
        (SmoothSpecificity, "specificity"),
        (SigmoidF1, "f1"),
    ],
)
def test_the_papers_smooth_scores_are_metric_losses(loss, score):
    z, y = batch()
    options = {"slope": 2.0, "offset": 0.5, "average": "micro"}
    torch.testing.assert_close(loss(**options)(z, y), MetricLoss(score, **options)(z, y))


def test_unbounded_f1_takes_the_logit_itself():
    z, y = batch()
    tp, predicted = (z * y).sum(0), z.sum(0)
    expected = 1 - (2 * tp / (predicted + y.sum(0)).clamp(min=1e-7)).mean()
    torch.testing.assert_close(UnboundedF1()(z, y), expected)


def test_any_function_of_the_counts_is_a_score():
    z, y = batch()
    loss = MetricLoss(lambda tp, fp, fn, tn, div: div(tp, tp + 2 * fp + fn))
    s = torch.sigmoid(z)
    tp, fp, fn = (s * y).sum(0), (s * (1 - y)).sum(0), ((1 - s) * y).sum(0)
    torch.testing.assert_close(loss(z, y), (1 - tp / (tp + 2 * fp + fn)).mean())


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_surrogate_says_a_half_at_its_boundary(surrogate):
    loss = MetricLoss("f1", surrogate=surrogate, **SURROGATES[surrogate])
    assert loss.surrogate(torch.tensor([[float(loss.boundary)]]).double()).item() == pytest.approx(0.5)


STARTS = [
    None,
    BCE(),
    SigmoidF1(),
    SigmoidF1(slope=0.75, offset=10.25),
    SigmoidF1(slope=[0.5, 1.0, 30.0], offset=[9.0, 0.0, -2.0]),
    SigmoidF1(slope=1e5),
    UnboundedF1(),
    MetricLoss(surrogate="amplify"),
    MetricLoss(surrogate="cdf"),
    MetricLoss(surrogate="cdf", prior="raised_cosine"),
    MetricLoss(surrogate="cdf", prior="raised_cosine", delta=1e-4),
    MetricLoss(surrogate="hinge"),
]


@pytest.mark.parametrize("loss", STARTS, ids=repr)
def test_a_head_starts_at_the_priors_and_alive(loss):
    frequencies = [0.02, 0.3, 0.9]
    head = nn.Linear(64, 3).double()
    start_at_priors(head, frequencies, loss, seed=1)
    says = torch.sigmoid if loss is None else getattr(loss, "surrogate", loss.scores)
    np.testing.assert_allclose(says(head.bias.detach()), frequencies, rtol=1e-6)
    assert 0 < head.weight.abs().max() <= 0.1 / 8
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 64, generator=generator).double()
    y = (torch.rand(256, 3, generator=generator) < torch.tensor(frequencies)).double()
    (loss or BCE())(head(x), y).backward()
    assert (head.bias.grad.abs() > 1e-4).all()


def test_a_stack_of_heads_starts_as_each_alone():
    stack = StackedLinear(3, 5, 2)
    frequencies = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    start_at_priors(stack, frequencies, SigmoidF1(offset=1.0), seed=[4, 5, 6])
    x = torch.randn(7, 5)
    for r in range(3):
        alone = nn.Linear(5, 2)
        start_at_priors(alone, frequencies[r], SigmoidF1(offset=1.0), seed=4 + r)
        torch.testing.assert_close(stack(x)[r], alone(x))


def test_weights_are_a_tenth_of_the_usual_and_seeded():
    head, again = nn.Linear(400, 50), nn.Linear(400, 50)
    usual = head.weight.std().item()
    start_at_priors(head, np.full(50, 0.1), seed=3)
    start_at_priors(again, np.full(50, 0.1), seed=3)
    assert head.weight.std().item() == pytest.approx(usual / 10, rel=0.05)
    assert torch.equal(head.weight, again.weight)


@pytest.mark.parametrize(
    "loss",
    [MetricLoss(surrogate="amplify", scale=0.1), SigmoidF1(offset=2e6), SigmoidF1(slope=1e-7)],
    ids=repr,
)
def test_a_surrogate_that_cannot_say_the_frequencies_leaves_it_to_its_scores(loss):
    head = nn.Linear(8, 2).double()
    start_at_priors(head, [0.01, 0.6], loss)
    z = head.bias.detach()
    np.testing.assert_allclose(loss.scores(z), [0.01, 0.6], rtol=1e-6)
    assert torch.autograd.functional.jacobian(lambda x: loss.surrogate(x).sum(), z).min() > 0


def test_a_surrogate_with_a_support_is_0_and_1_outside():
    loss = MetricLoss(surrogate="cdf", prior="raised_cosine")
    assert loss.surrogate(torch.tensor([[-3.0, 3.0]])).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("score", ["npv", "markedness", "gmean", "mcc"])
def test_what_rounding_leaves_of_a_count_is_not_amplified(score):
    n = 65536
    z = (16 + 0.5 * torch.randn(n, 1, generator=torch.Generator().manual_seed(0))).requires_grad_()
    y = torch.zeros(n, 1)
    y[0] = 1
    loss = MetricLoss(score)(z, y)
    (gradient,) = torch.autograd.grad(loss, z)
    assert 0 <= loss <= 2
    assert gradient.abs().sum() < 1


def test_logits_from_probabilities():
    z = torch.linspace(-9, 9, 7, requires_grad=True)
    torch.testing.assert_close(sl.logits_from(torch.sigmoid(z)), z, rtol=1e-4, atol=1e-4)
    assert sl.logits_from(torch.sigmoid(z)).requires_grad
    assert torch.isfinite(sl.logits_from(torch.tensor([0.0, 1.0]))).all()
    assert sl.logits_from(torch.tensor([0, 1])).tolist() == sl.logits_from(torch.tensor([0.0, 1.0])).tolist()
    np.testing.assert_allclose(sl.logits_from([0.25, 0.75]), [-math.log(3), math.log(3)])
    assert np.isfinite(sl.logits_from(np.array([0.0, 1.0]))).all()


BAD = [
    (lambda: MetricLoss("jacard"), "score is 'jacard': did you mean jaccard"),
    (lambda: MetricLoss(surrogate="sigmiod"), "surrogate is 'sigmiod': did you mean sigmoid"),
    (lambda: MetricLoss(average="macr"), "average is 'macr': did you mean macro"),
    (lambda: MetricLoss(empty="none"), "empty is 'none'"),
    (lambda: MetricLoss(smoothing=-1), "smoothing is -1: it must be a number at least 0"),
    (lambda: MetricLoss(slope=0), "slope is 0"),
    (lambda: SigmoidF1(slope=-0.75), "slope is -0.75: it must be finite and above 0"),
    (lambda: SigmoidF1(slope=[1.0, -1.0]), "slope is"),
    (lambda: SigmoidF1(offset=math.nan), "offset is nan"),
    (lambda: MetricLoss(surrogate="linear", slope=2.0), "slope is not a knob of the linear surrogate"),
    (lambda: MetricLoss("mcc", surrogate="linear"), "takes no score with a root"),
    (lambda: MetricLoss("precision", surrogate="hinge"), "bounds only f1, fbeta, jaccard and recall"),
    (lambda: MetricLoss(surrogate="cdf", prior="beta"), "prior is 'beta'"),
    (lambda: MetricLoss(surrogate="amplify", scale=0), "scale is 0"),
    (lambda: MetricLoss("mcc", smoothing=1.0), "smoothing is 1: score mcc divides by a root"),
    (lambda: SigmoidF1(slope="a"), "slope is 'a': it must be a number"),
    (
        lambda: SigmoidF1(offset=nn.Parameter(torch.zeros(2))),
        "offset requires a gradient: name it in learnable=",
    ),
    (lambda: SigmoidF1(slope=torch.ones(4, 2)), "it must be a number, or a vector"),
    (
        lambda: SigmoidF1(slope=[1.0, 2.0])(torch.zeros(4, 3), torch.zeros(4, 3)),
        "slope has 2 numbers: the logits have 3 labels",
    ),
    (lambda: BCE(pos_weight="a"), "pos_weight is 'a'"),
    (lambda: BCE(pos_weight=[1.0, -2.0]), "its numbers must be at least 0"),
    (lambda: Focal(gamma=math.inf), "gamma is inf"),
    (lambda: BCE()(torch.zeros(3, 2), [[0, 1]]), "targets must be a torch.Tensor: it is a list"),
    (lambda: BCE()(torch.zeros(3, 2), torch.zeros(3, 2), mask=[True]), "mask must be a torch.Tensor"),
    (lambda: start_at_priors(nn.Linear(2, 2), [[0.5, 0.5]]), r"frequencies have shape \(1, 2\)"),
    (lambda: start_at_priors(nn.Linear(2, 1), [0.5], nn.BCELoss()), "it must be a loss of scoreloss.torch"),
    (lambda: MetricLoss(lambda tp: tp), "score <lambda> fails on plain numbers"),
    (lambda: Focal(gamma=-1), "gamma is -1"),
    (lambda: Focal(gamma=None), "gamma is None: it must be a number"),
    (lambda: Focal(alpha=2), "alpha is 2: its numbers must be from 0 to 1"),
    (lambda: Asymmetric(clip=1.0), "clip is 1.0: it must lie below 1"),
    (lambda: SigmoidF1(slope="2"), "slope is '2': it must be a number"),
    (
        lambda: MetricLoss("fbeta", beta=2.0),
        r"beta is not a knob of the sigmoid surrogate.*functools.partial",
    ),
    (lambda: Asymmetric(clip=-0.1), "clip is -0.1"),
    (lambda: BCE(reduction="avg"), "reduction is 'avg'"),
    (lambda: BCE()(torch.zeros(3, 2), torch.zeros(3, 3)), r"targets have shape \(3, 3\): logits of \(3, 2\)"),
    (lambda: BCE()(torch.zeros(3), torch.zeros(3)), r"logits have shape \(3,\)"),
    (lambda: BCE()(torch.zeros(3, 2).long(), torch.zeros(3, 2)), "must be floating-point"),
    (lambda: BCE()(torch.zeros(3, 2), torch.zeros(3, 2), mask=torch.ones(3)), r"mask has shape \(3,\)"),
    (lambda: BCE()(torch.zeros(3, 2), torch.zeros(3, 2), weight=torch.ones(4, 1)), "weight has shape"),
    (lambda: start_at_priors(nn.Linear(2, 2), [0.5]), r"frequencies have shape \(1,\): the head has 2"),
    (lambda: start_at_priors(nn.Linear(2, 1), [0.0]), "label_frequencies"),
    (lambda: start_at_priors(nn.Linear(2, 1, bias=False), [0.4]), "head has no bias"),
    (lambda: start_at_priors(StackedLinear(2, 2, 1), [0.5], seed=[1]), "seed has 1 numbers"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_gradient_that_float16_cannot_hold_is_its_largest_number():
    z = torch.tensor([[-1.0, 0.5], [-1.0, 0.2]], dtype=torch.float16, requires_grad=True)
    UnboundedF1()(z, torch.tensor([[1.0, 0], [0, 1]])).backward()
    assert torch.isfinite(z.grad).all()
    assert z.grad[0, 0] == -torch.finfo(torch.float16).max
