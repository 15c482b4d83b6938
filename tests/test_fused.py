"""Head and loss by slices of labels against the head and the loss."""

import numpy as np
import pytest
import torch
from scipy import sparse

from scoreloss.checks import InputError
from scoreloss.torch import BCE, MFC, DoubleSoftF1, MetricLoss, SigmoidF1, UnboundedF1, fused_linear_loss

N, C, D = 9, 11, 5


def data(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(N, D, generator=generator, dtype=dtype)
    y = (torch.rand(N, C, generator=generator) < 0.3).to(dtype)
    y[:, 4] = y[2] = 0
    weight = torch.randn(C, D, generator=generator, dtype=dtype)
    bias = torch.randn(C, generator=generator, dtype=dtype)
    return *(part.requires_grad_() for part in (x, weight, bias)), y


LOSSES = {
    **{
        f"{score} {surrogate} {average} {empty}": (
            lambda options=(score, surrogate, average, empty): MetricLoss(
                options[0], surrogate=options[1], average=options[2], empty=options[3]
            )
        )
        for score, surrogate in [("f1", "sigmoid"), ("mcc", "cdf"), ("f1", "hinge"), ("npv", "amplify")]
        for average in ("macro", "micro", "samples", "weighted")
        for empty in ("zero", "skip")
    },
    "slopes": lambda: SigmoidF1(slope=torch.linspace(0.5, 2, C), offset=1.0, average="weighted"),
    "smoothing": lambda: SigmoidF1(smoothing=1.0),
    "learned": lambda: SigmoidF1(learnable=("slope", "offset"), offset=[0.1] * C),
    "learned, micro": lambda: SigmoidF1(learnable=("slope", "offset"), average="micro"),
    "mfc": lambda: MFC(C),
    "double": lambda: DoubleSoftF1(),
    "unbounded": lambda: UnboundedF1(),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")
@pytest.mark.parametrize("kind", ["dense", "boolean", "csr", "scipy"])
@pytest.mark.parametrize("name", LOSSES)
def test_it_is_the_loss_of_the_head(name, kind):
    x, weight, bias, y = data()
    loss = LOSSES[name]().double()
    learned = list(loss.parameters())
    expected = loss(torch.nn.functional.linear(x, weight, bias), y)
    wanted = torch.autograd.grad(3 * expected, [x, weight, bias, *learned])
    targets = {
        "dense": lambda: y,
        "boolean": lambda: y > 0,
        "csr": lambda: y.to_sparse_csr(),
        "scipy": lambda: sparse.csr_matrix(y.numpy()),
    }[kind]()
    for chunk in (4, C, None):
        value = fused_linear_loss(x, weight, bias, targets, loss, chunk=chunk)
        torch.testing.assert_close(value, expected)
        found = torch.autograd.grad(3 * value, [x, weight, bias, *learned])
        for own, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_gradients_go_only_where_they_are_wanted(average):
    x, weight, _, y = data()
    loss = SigmoidF1(average=average)
    expected = torch.autograd.grad(loss(x.detach() @ weight.mT, y), weight)
    value = fused_linear_loss(x.detach(), weight, None, y, loss, chunk=2)
    torch.testing.assert_close(torch.autograd.grad(value, weight), expected)
    with torch.no_grad():
        assert not fused_linear_loss(x, weight, None, y, loss).requires_grad
    assert not fused_linear_loss(x.detach(), weight.detach(), None, y, loss).requires_grad


def test_features_may_come_from_a_backbone_and_gradients_add_up():
    x, weight, bias, y = data()
    backbone = torch.nn.Linear(D, D).double()
    loss = SigmoidF1()
    loss(torch.nn.functional.linear(backbone(x).tanh(), weight, bias), y).backward()
    expected = [part.grad for part in (x, weight, bias, *backbone.parameters())]
    for part in (x, weight, bias, *backbone.parameters()):
        part.grad = None
    for _ in range(2):
        fused_linear_loss(backbone(x).tanh(), weight, bias, y, loss, chunk=3).backward()
    for part, other in zip((x, weight, bias, *backbone.parameters()), expected, strict=True):
        torch.testing.assert_close(part.grad, 2 * other)


def test_backward_is_called_once():
    x, weight, bias, y = data()
    value = fused_linear_loss(x, weight, bias, y, SigmoidF1())
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward may be called once"):
        value.backward()


def test_half_precision_is_summed_in_float32():
    x, weight, bias, y = (part.detach().bfloat16() for part in data())
    weight.requires_grad_()
    value = fused_linear_loss(x, weight, bias, y, SigmoidF1(), chunk=3)
    expected = SigmoidF1()(torch.nn.functional.linear(x, weight, bias), y)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected, rtol=1e-2, atol=1e-3)
    (own,), (other,) = torch.autograd.grad(value, weight), torch.autograd.grad(expected, weight)
    assert own.dtype == torch.bfloat16
    torch.testing.assert_close(own, other, rtol=5e-2, atol=1e-3)


def test_under_autocast_the_inputs_are_taken_as_they_are():
    x, weight, bias, y = data(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        value = fused_linear_loss(x, weight, bias, y, SigmoidF1(), chunk=3)
    torch.testing.assert_close(value, SigmoidF1()(torch.nn.functional.linear(x, weight, bias), y))


X, W, B, Y = data()
BAD = [
    (lambda: fused_linear_loss(X, W, B, Y, BCE()), "loss is a BCE: it must be a MetricLoss"),
    (lambda: fused_linear_loss(X, W, B, Y, MetricLoss(average=None)), "loss has average=None"),
    (lambda: fused_linear_loss(X, W, B, Y, SigmoidF1(momentum=0.5)), "momentum=0.5: it must be one number"),
    (lambda: fused_linear_loss(X, W.mT, B, Y, SigmoidF1()), r"features have shape \(9, 5\)"),
    (lambda: fused_linear_loss(X, W, B[:3], Y, SigmoidF1()), r"bias has shape \(3,\)"),
    (lambda: fused_linear_loss(X, W, B, Y[:3], SigmoidF1()), r"targets have shape \(3, 11\)"),
    (lambda: fused_linear_loss(X, W, B, Y.tolist(), SigmoidF1()), "targets are a list"),
    (lambda: fused_linear_loss(X, W, B, sparse.csc_matrix(Y), SigmoidF1()), "targets are a csc_matrix"),
    (lambda: fused_linear_loss(X, W, B, Y, SigmoidF1(slope=[1.0, 2.0])), r"slope has shape \(2,\)"),
    (lambda: fused_linear_loss(X, W, B, Y, SigmoidF1(), chunk=0), "chunk is 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_oracle_can_fail():
    x, weight, bias, y = data()
    pieces = [
        SigmoidF1(average="micro")(x @ weight[a:b].mT + bias[a:b], y[:, a:b]) for a, b in ((0, 5), (5, C))
    ]
    whole = fused_linear_loss(x, weight, bias, y, SigmoidF1(average="micro"), chunk=5)
    assert not np.isclose(whole.item(), torch.stack(pieces).mean().item(), atol=1e-3)
