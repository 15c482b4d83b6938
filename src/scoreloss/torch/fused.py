"""Head and metric loss a slice of labels at a time: the logits of all labels never exist.

A score of each label (macro, weighted) needs nothing of the other labels, so a slice is done with once its logits
have been seen: its gradient is taken while they are there. A score of pooled counts (micro, samples) is known after
a first pass over all slices, and a second one takes the gradient. Autograd alone would keep every slice until the
backward pass: so gradients are put together in the forward pass, by the one ``autograd.Function`` of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from scoreloss.checks import InputError
from scoreloss.counts import Sums, counts_of, mean_over_units, over_all_examples, soft_sums
from scoreloss.losses.metric import unit_importance, unit_losses
from scoreloss.ops import Ops
from scoreloss.surrogates import SURROGATES
from scoreloss.torch.metric import MetricLoss
from scoreloss.torch.ops import wide
from scoreloss.torch.sync import ops_for

ENTRIES = 1 << 22
"""How many logits a slice has, where nobody says how many labels: 16 MB of them."""


def fused_linear_loss(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Any,
    loss: MetricLoss,
    *,
    chunk: int | None = None,
) -> Tensor:
    """``loss(features @ weight.T + bias, targets)``, ``chunk`` labels at a time.

    ``features`` are (n, d), ``weight`` (c, d), ``bias`` (c,) or None. ``targets`` are (n, c), dense, or in compressed
    rows: a ``torch.sparse_csr`` tensor, or a matrix of scipy. Gradients go to all that wants one, also to what the loss
    learns; ``backward`` may be called once.

    >>> from scoreloss.torch import SigmoidF1
    >>> x, head, y = torch.randn(8, 5), torch.nn.Linear(5, 3), torch.ones(8, 3)
    >>> fused = fused_linear_loss(x, head.weight, head.bias, y, SigmoidF1(), chunk=2)
    >>> torch.allclose(fused, SigmoidF1()(head(x), y))
    True
    """
    _check(features, weight, bias, targets, loss, chunk)
    inputs = [features, weight, bias, *loss.parameters()]
    wanted = [torch.is_grad_enabled() and part is not None and part.requires_grad for part in inputs]
    if chunk is None:  # the same in every process
        (most,) = ops_for(sync=loss.sync).pool_max(features.new_tensor([len(features)], dtype=torch.float64))
        chunk = max(1, ENTRIES // max(1, int(most)))
    value: Tensor = _Fused.apply(_Slices(loss, _columns(targets), chunk, wanted), *inputs)  # type: ignore[no-untyped-call]
    return value


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, slices: _Slices, *inputs: Tensor | None) -> Tensor:
        features, weight, bias, *_ = inputs
        assert features is not None
        assert weight is not None
        with torch.autocast(features.device.type, enabled=False):
            value, ctx.gradients = slices.loss_and_gradients(features, weight, bias)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            raise RuntimeError("fused_linear_loss gave its gradients away: backward may be called once")
        return None, *(None if g is None else g.mul_(upstream) for g in gradients)


class _Slices:
    """A pass over slices of labels."""

    def __init__(
        self, loss: MetricLoss, columns: _Dense | _Sparse, chunk: int, wanted: Sequence[bool]
    ) -> None:
        self.loss, self.columns, self.chunk, self.wanted = loss, columns, chunk, wanted
        self.options = {name: loss._fixed[name] for name in ("score", "surrogate", "empty", "smoothing")}
        self.average = loss._fixed["average"]
        self.kind = SURROGATES[self.options["surrogate"]]
        self.ops: Ops = ops_for(sync=loss.sync)

    def loss_and_gradients(
        self, features: Tensor, weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, list[Tensor | None]]:
        self.features, self.weight, self.bias = features, weight, bias
        made = [features, weight, bias, *self.loss.parameters()]
        self.gradients = [
            None
            if part is None or not want
            else torch.empty_like(part)
            if part is weight or part is bias
            else torch.zeros_like(part, dtype=wide(part.dtype))
            for part, want in zip(made, self.wanted, strict=True)
        ]
        by_label = self.average in ("macro", "weighted")
        value = self._of_labels() if by_label else self._of_pooled_counts()
        return value, [
            g if g is None or part is None else g.to(part.dtype)
            for g, part in zip(self.gradients, made, strict=True)
        ]

    def _of_labels(self) -> Tensor:
        shares = self._shares()
        value = torch.zeros((), dtype=wide(self.features.dtype), device=self.features.device)
        for labels in self._labels():
            with torch.enable_grad():
                logits, sums = self._sums(labels)
                counts, true = counts_of(
                    self.ops, over_all_examples(self.ops, self.average, *sums), bounded=self.kind.bounded
                )
                of_slice = (unit_losses(self.ops, counts, true, **self.options) * shares[labels]).sum()
            value += of_slice.detach()
            self._take([of_slice], [None], labels, logits)
        return value

    def _of_pooled_counts(self) -> Tensor:
        with torch.no_grad():
            parts = [self._sums(labels)[1] for labels in self._labels()]
        dtype, device = parts[0][0].dtype, self.features.device
        own = [torch.as_tensor(sum(part), dtype=dtype, device=device) for part in zip(*parts, strict=True)]
        with torch.enable_grad():
            sums = [part.requires_grad_() for part in own[:2]] + own[2:]
            counts, true = counts_of(
                self.ops, over_all_examples(self.ops, self.average, *sums), bounded=self.kind.bounded
            )
            losses = unit_losses(self.ops, counts, true, **self.options)
            value: Tensor = mean_over_units(self.ops, losses, self._importance(true), self.average)
        by_sums = torch.autograd.grad(value, sums[:2])
        if any(self.wanted):
            for labels in self._labels():
                with torch.enable_grad():
                    logits, again = self._sums(labels)
                self._take(again[:2], by_sums, labels, logits)
        return value.detach()

    def _labels(self) -> Iterator[slice]:
        for start in range(0, len(self.weight), self.chunk):
            yield slice(start, min(start + self.chunk, len(self.weight)))

    def _sums(self, labels: slice) -> tuple[Tensor, Sums]:
        """The logits of some labels, and their sums over the examples at hand."""
        with torch.no_grad():
            z = self.features @ self.weight[labels].mT
            z = z if self.bias is None else z.add_(self.bias[labels])
        z.requires_grad_(torch.is_grad_enabled())
        ops, wider = self.ops, self.ops.widen(z)
        knobs = {
            name: knob[labels] if isinstance(knob, Tensor) and knob.ndim else knob
            for name, knob in self.loss._knobs(wide(z.dtype)).items()
        }
        targets = ops.cast(self.columns.of(labels), wider)
        return z, soft_sums(ops, *self.kind.stand_in(ops, wider, **knobs), targets, None, self.average)

    def _take(
        self, values: Sequence[Tensor], upstream: Sequence[Tensor | None], labels: slice, logits: Tensor
    ) -> None:
        """Add what some values, with their gradients, give to the gradients of all that wants one."""
        if not any(self.wanted):
            return
        learned = [p for p, want in zip(self.loss.parameters(), self.wanted[3:], strict=True) if want]
        by_logits, *by_learned = torch.autograd.grad(
            values, [logits, *learned], grad_outputs=upstream, allow_unused=True
        )
        of_features, of_weight, of_bias, *of_learned = self.gradients
        if of_features is not None:
            if of_features.dtype == by_logits.dtype:
                of_features.addmm_(by_logits, self.weight[labels])
            else:
                of_features += by_logits @ self.weight[labels]
        if of_weight is not None:
            torch.mm(by_logits.mT, self.features, out=of_weight[labels])
        if of_bias is not None:
            torch.sum(by_logits, 0, out=of_bias[labels])
        for total, part in zip((g for g in of_learned if g is not None), by_learned, strict=True):
            if part is not None:
                total += part

    def _importance(self, true: Tensor) -> Tensor | None:
        score, empty, smoothing = (self.options[name] for name in ("score", "empty", "smoothing"))
        return unit_importance(
            self.ops, true, None, score=score, average=self.average, empty=empty, smoothing=smoothing
        )

    def _shares(self) -> Tensor:
        """The share of each label in the mean, which the targets alone say."""
        true = torch.zeros(len(self.weight), dtype=wide(self.features.dtype), device=self.features.device)
        if self.average == "weighted" or self.options["empty"] == "skip":
            for labels in self._labels():
                true[labels] = self.columns.of(labels).sum(0).to(true.dtype)
            (true,) = over_all_examples(self.ops, self.average, true)
        units = self._importance(true)
        units = torch.ones_like(true) if units is None else units
        return units / units.sum().clamp(min=torch.finfo(true.dtype).tiny)


class _Dense:
    def __init__(self, targets: Tensor) -> None:
        self.targets = targets

    def of(self, labels: slice) -> Tensor:
        """The targets of some labels."""
        return self.targets[:, labels]


class _Sparse:
    """Compressed rows, put in the order of the columns once."""

    def __init__(self, starts: Any, columns: Any, values: Any, rows: int) -> None:
        starts, columns, self.values = (torch.as_tensor(part) for part in (starts, columns, values))
        number = torch.arange(rows, device=starts.device)
        self.rows = number.repeat_interleave(starts.diff().long())
        order = columns.argsort()
        self.columns, self.rows, self.values = columns[order].long(), self.rows[order], self.values[order]
        self.examples = rows

    def of(self, labels: slice) -> Tensor:
        ends = torch.tensor([labels.start, labels.stop], device=self.columns.device)
        here = slice(*torch.searchsorted(self.columns, ends).tolist())
        dense = self.values.new_zeros(self.examples, labels.stop - labels.start)
        dense[self.rows[here], self.columns[here] - labels.start] = self.values[here]
        return dense


def _columns(targets: Any) -> _Dense | _Sparse:
    if not isinstance(targets, Tensor):
        return _Sparse(targets.indptr, targets.indices, targets.data, targets.shape[0])
    if targets.layout == torch.sparse_csr:
        return _Sparse(targets.crow_indices(), targets.col_indices(), targets.values(), len(targets))
    return _Dense(targets)


def _check(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Any, loss: MetricLoss, chunk: int | None
) -> None:
    if not isinstance(loss, MetricLoss):
        raise InputError(f"loss is a {type(loss).__name__}: it must be a MetricLoss")
    average = loss._fixed["average"]
    if average is None or loss.momentum:
        raise InputError(
            f"loss has average={average!r} and momentum={loss.momentum:g}: it must be one number of this batch alone"
        )
    if features.ndim != 2 or weight.ndim != 2 or features.shape[1] != weight.shape[1]:
        raise InputError(
            f"features have shape {tuple(features.shape)} and weight {tuple(weight.shape)}: they must have "
            "(examples, features) and (labels, features)"
        )
    labels = len(weight)
    if bias is not None and bias.shape != (labels,):
        raise InputError(f"bias has shape {tuple(bias.shape)}: it must have ({labels},)")
    is_tensor = isinstance(targets, Tensor) and targets.layout in (torch.strided, torch.sparse_csr)
    if not is_tensor and getattr(targets, "format", None) != "csr":
        raise InputError(
            f"targets are a {type(targets).__name__}: they must be a tensor, dense or torch.sparse_csr, or a CSR matrix"
        )
    if tuple(targets.shape) != (len(features), labels):
        raise InputError(
            f"targets have shape {tuple(targets.shape)}: they must have {(len(features), labels)}"
        )
    for name, knob in loss._knobs().items():
        if isinstance(knob, Tensor) and knob.shape not in ((), (labels,)):
            raise InputError(
                f"{name} has shape {tuple(knob.shape)}: it must be a number, or have ({labels},)"
            )
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise InputError(f"chunk is {chunk!r}: it must be a whole number above 0")
