"""Micro-batches in two passes against the whole batch in one."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from scoreloss.checks import InputError
from scoreloss.torch import (
    BCE,
    LOSSES,
    LabelPowerset,
    MetricLoss,
    Mix,
    SigmoidF1,
    StackedLinear,
    large_batch_step,
)

N, C, D = 19, 4, 6
SIZES = [5, 1, 8, 5]


def data(dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(N, D, generator=generator, dtype=dtype)
    y = (torch.rand(N, C, generator=generator) < 0.4).to(dtype)
    return x, y


def in_pieces(*parts):
    """Micro-batches; a part that is None, or of labels, is so in each."""
    pieces = [
        part.split(SIZES) if part is not None and part.ndim > 1 else [part] * len(SIZES) for part in parts
    ]
    return list(zip(*pieces, strict=True))


def network(outputs, dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.Linear(8, outputs)).to(dtype)


class Shaped(nn.Module):
    """A network whose logits have the shape a loss asks for."""

    def __init__(self, loss, dtype):
        super().__init__()
        self.shape = loss.outputs(C)
        self.inner = network(int(np.prod(self.shape)), dtype)

    def forward(self, x):
        return self.inner(x).reshape(len(x), *self.shape)


def gradients(*modules):
    return [p.grad for module in modules for p in module.parameters()]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
@pytest.mark.parametrize("extra", ["plain", "mask", "weight", "both", "labels", "labels and mask"])
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_that_of_the_whole_batch(name, extra, dtype, tolerance):
    x, y = data(dtype)
    loss = LOSSES[name].for_targets(y.numpy() > 0).to(dtype)
    whole_mask = name == "deep_f"
    ranks = name in ("recall_at_k", "lambda_loss")
    generator = torch.Generator().manual_seed(2)
    mask = torch.rand(N, 1 if whole_mask else C, generator=generator) < 0.7
    weight = torch.rand(N, 1, generator=generator).to(dtype)
    labels = extra.startswith("labels")
    if labels:
        weight = weight[:1] if ranks else torch.tensor([1.0, 0.5, 2.0, 1.0], dtype=dtype)
    mask = mask if extra in ("mask", "both", "labels and mask") else None
    weight = weight if labels or extra in ("weight", "both") else None
    model = Shaped(loss, dtype)
    again, same = copy.deepcopy(model), copy.deepcopy(loss)
    expected = same(again(x), y, mask=mask, weight=weight)
    expected.backward()
    if labels and ranks:
        weight = weight.expand(N, 1)
    found = large_batch_step(model, loss, in_pieces(x, y, mask, weight))
    torch.testing.assert_close(found, expected.detach(), rtol=tolerance, atol=tolerance)
    for own, other in zip(gradients(model, loss), gradients(again, same), strict=True):
        torch.testing.assert_close(own, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("average", ["macro", "samples", "micro"])
def test_weights_of_labels_may_change_from_batch_to_batch(average):
    x, y = data()
    mask = torch.rand(N, C, generator=torch.Generator().manual_seed(2)) < 0.7
    model, loss = network(C), MetricLoss("f1", average=average)
    labels = torch.tensor([1.0, 0.5, 2.0, 1.0]).double()
    for weights in ([labels] * len(SIZES), [place * labels for place in range(1, 5)]):
        batches = [(*parts, weight) for parts, weight in zip(in_pieces(x, y, mask), weights, strict=True)]
        each = torch.cat([w.expand(n, C) for w, n in zip(weights, SIZES, strict=True)])
        whole = labels if weights[1] is labels else each
        expected = loss(model(x), y, mask=mask, weight=whole)
        torch.testing.assert_close(large_batch_step(model, loss, batches), expected.detach())


def test_a_mean_over_micro_batches_is_something_else():
    x, y = data()
    model, loss = network(C), SigmoidF1()
    whole = loss(model(x), y)
    pieces = torch.stack([loss(model(a), b) for a, b in in_pieces(x, y)])
    assert abs(pieces.mean() - whole) > 0.05


class Noisy(nn.Module):
    """A backbone with all that makes two passes differ: dropout, batch statistics, two inputs."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(16, C)

    def forward(self, x, scale):
        return self.head(self.layers(x * scale))


@pytest.mark.parametrize("as_dict", [False, True])
def test_dropout_and_running_means_are_the_same_in_both_passes(as_dict):
    x, y = data(torch.float32)
    sizes = [5, 2, 7, 5]
    pieces = list(zip(x.split(sizes), y.split(sizes), strict=True))
    model = Noisy()
    again = copy.deepcopy(model)
    torch.manual_seed(7)
    logits = torch.cat([again(part, 2.0) for part, _ in pieces])
    expected = SigmoidF1()(logits, y)
    expected.backward()
    after = torch.rand(3)
    torch.manual_seed(7)
    batches = [({"x": a, "scale": 2.0} if as_dict else (a, 2.0), b) for a, b in pieces]
    torch.testing.assert_close(large_batch_step(model, SigmoidF1(), batches), expected.detach())
    assert torch.equal(torch.rand(3), after)
    for own, other in zip(gradients(model), gradients(again), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)
    for own, other in zip(model.buffers(), again.buffers(), strict=True):
        torch.testing.assert_close(own, other)


class Noised(torch.utils.data.Dataset):
    """Examples that are augmented with random numbers of torch."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        return self.x[place] + torch.randn(D), self.y[place]


def test_a_loader_shuffles_and_augments_alike_in_both_passes():
    x, y = data(torch.float32)
    loader = torch.utils.data.DataLoader(Noised(x, y), batch_size=5, shuffle=True)
    model = network(C, torch.float32)
    torch.manual_seed(3)
    parts = [torch.cat(part) for part in zip(*loader, strict=True)]
    expected = SigmoidF1()(model(parts[0]), parts[1])
    wanted = torch.autograd.grad(expected, model.parameters())
    torch.manual_seed(3)
    torch.testing.assert_close(large_batch_step(model, SigmoidF1(), loader), expected.detach())
    for own, other in zip(gradients(model), wanted, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)


class Changing:
    """Batches that come in another order every time."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        self.batches = self.batches[::-1]
        return iter(self.batches)


def test_gradients_add_to_those_there_are():
    x, y = data()
    model = network(C)
    large_batch_step(model, SigmoidF1(), in_pieces(x, y))
    once = [gradient.clone() for gradient in gradients(model)]
    large_batch_step(model, SigmoidF1(), in_pieces(x, y))
    for gradient, first in zip(gradients(model), once, strict=True):
        torch.testing.assert_close(gradient, 2 * first)


@pytest.mark.parametrize(
    "loss", [Mix(BCE(), SigmoidF1()), torch.nn.functional.binary_cross_entropy_with_logits]
)
def test_any_function_of_logits_and_targets_is_a_loss(loss):
    x, y = data()
    model = network(C)
    expected = loss(model(x), y)
    wanted = torch.autograd.grad(expected, model.parameters())
    torch.testing.assert_close(large_batch_step(model, loss, in_pieces(x, y)), expected.detach())
    for own, other in zip(gradients(model), wanted, strict=True):
        torch.testing.assert_close(own, other)


def test_label_sets_and_stacks_of_runs():
    x, y = data()
    sets = LabelPowerset(y.numpy())
    model = network(len(sets.sets))
    torch.testing.assert_close(large_batch_step(model, sets, in_pieces(x, y)), sets(model(x), y).detach())
    stack, loss = StackedLinear(3, D, C).double(), MetricLoss("jaccard")
    expected = loss(stack(x), y)
    wanted = torch.autograd.grad(expected.sum(), stack.parameters())
    torch.testing.assert_close(large_batch_step(stack, loss, in_pieces(x, y)), expected.detach())
    for own, other in zip(gradients(stack), wanted, strict=True):
        torch.testing.assert_close(own, other)


def test_under_autocast():
    x, y = data(torch.float32)
    model = network(C, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        large_batch_step(model, SigmoidF1(), in_pieces(x, y))
    half = [gradient.clone() for gradient in gradients(model)]
    model.zero_grad()
    large_batch_step(model, SigmoidF1(), in_pieces(x, y))
    for own, other in zip(gradients(model), half, strict=True):
        torch.testing.assert_close(own, other, rtol=0.1, atol=2e-3)


BAD = [
    (lambda x, y: zip([x], [y], strict=True), "batches are a zip: they are gone through twice"),
    (lambda x, y: [], "batches are empty"),
    (lambda x, y: Changing([(x, y), (x[:5], y[:5])]), r"batches\[0\] is another one the second time"),
    (lambda x, y: [(x, y), (x,)], r"batches\[1\] has 1 parts"),
    (lambda x, y: [(x, y, y > 0), (x, y)], "mask is None in some of the batches"),
]


@pytest.mark.parametrize(("batches", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(batches, message):
    with pytest.raises(InputError, match=message):
        large_batch_step(network(C), SigmoidF1(), batches(*data()))
