"""Running counts against a plain loop that keeps all batches."""

import copy

import pytest
import torch

from scoreloss.checks import InputError
from scoreloss.torch import MFC, MetricLoss, SigmoidF1


def batches(number=5, n=6, c=3):
    generator = torch.Generator().manual_seed(0)
    for _ in range(number):
        y = (torch.rand(n, c, generator=generator) < 0.3).double()
        yield torch.randn(n, c, generator=generator, dtype=torch.float64).requires_grad_(), y


def soft_f1(tp, predicted, true):
    return torch.where(predicted + true > 0, 2 * tp / (predicted + true), 0.0)


@pytest.mark.parametrize("average", ["macro", "micro", None, "weighted"])
def test_the_counts_are_a_running_mean_and_the_gradient_is_the_batchs(average):
    loss, kept = MetricLoss("f1", average=average, momentum=0.8).double(), []
    axis = (0, 1) if average == "micro" else 0
    for z, y in batches():
        s = torch.sigmoid(z)
        kept.append([(s * y).sum(axis), s.sum(axis), y.sum(axis)])
        age = 0.8 ** torch.arange(len(kept) - 1.0, -1, -1, dtype=torch.float64)
        means = [
            sum(w * sums[part].detach() for w, sums in zip(age, kept, strict=True)) / age.sum()
            for part in range(3)
        ]
        tp, predicted, true = (m.clone().requires_grad_() for m in means)
        labels = 1 - soft_f1(tp, predicted, true)
        weights = means[2] / means[2].sum() if average == "weighted" else 1 / 3
        expected = labels if average in ("micro", None) else (labels * weights).sum()
        by_tp, by_predicted = torch.autograd.grad(expected.sum(), (tp, predicted))
        value = loss(z, y)
        torch.testing.assert_close(value, expected)
        (gradient,) = torch.autograd.grad(value.sum(), z)
        torch.testing.assert_close(gradient, (by_tp * y + by_predicted) * (s * (1 - s)).detach())


def test_without_a_past_it_is_the_loss_of_the_batch():
    (z, y), *_ = batches()
    torch.testing.assert_close(SigmoidF1(momentum=0.9)(z, y), SigmoidF1()(z, y))


def test_a_label_that_is_not_in_the_batch_still_has_a_gradient():
    (first, y), (second, none), *_ = batches()
    y, none = torch.ones_like(y), torch.zeros_like(none)
    alone = torch.autograd.grad(SigmoidF1()(second, none), second)[0]
    loss = SigmoidF1(momentum=0.9)
    loss(first, y)
    carried = torch.autograd.grad(loss(second, none), second)[0]
    assert (alone == 0).all()
    assert (carried > 0).all()


def test_in_eval_mode_the_batch_stands_alone_and_leaves_nothing():
    loss = SigmoidF1(momentum=0.9)
    (z, y), (other, its), *_ = batches()
    loss(z, y)
    before = copy.deepcopy(loss.state_dict())
    torch.testing.assert_close(loss.eval()(other, its), SigmoidF1()(other, its))
    assert all(torch.equal(before[name], value) for name, value in loss.state_dict().items())


@pytest.mark.parametrize("make", [lambda: SigmoidF1(momentum=0.9), lambda: MFC(3, momentum=0.9)])
def test_running_counts_are_saved_and_restored(make):
    loss, again = make(), make()
    (z, y), (other, its), *_ = batches()
    loss(z, y)
    again.load_state_dict(loss.state_dict())
    torch.testing.assert_close(again(other, its), loss(other, its))
    again.load_state_dict(make().state_dict())
    torch.testing.assert_close(again(other, its), make()(other, its))
    assert SigmoidF1().state_dict() == {}


def test_runs_have_counts_of_their_own():
    loss, alone = SigmoidF1(momentum=0.5), [SigmoidF1(momentum=0.5) for _ in range(2)]
    for z, y in batches(3):
        stack = torch.stack([z, -z])
        expected = [one(part, y) for one, part in zip(alone, stack, strict=True)]
        torch.testing.assert_close(loss(stack, y), torch.stack(expected))


def test_gradients_are_finite_and_half_precision_is_taken():
    loss = SigmoidF1(momentum=0.9)
    for scale in (1.0, 1e4):
        z = torch.full((4, 3), scale, dtype=torch.bfloat16, requires_grad=True)
        value = loss(z, torch.zeros(4, 3))
        assert value.dtype == torch.float32
        assert torch.isfinite(torch.autograd.grad(value, z)[0]).all()


def test_bad_input_is_named():
    with pytest.raises(InputError, match="momentum is 1: it must lie below 1"):
        SigmoidF1(momentum=1)
    with pytest.raises(InputError, match="average 'samples' scores whole rows, so it must be 0"):
        SigmoidF1(average="samples", momentum=0.9)
    loss = SigmoidF1(momentum=0.9)
    loss(torch.zeros(4, 3), torch.zeros(4, 3))
    with pytest.raises(InputError, match=r"running counts of shape \(4, 2\): those so far have \(4, 3\)"):
        loss(torch.zeros(4, 2), torch.zeros(4, 2))
