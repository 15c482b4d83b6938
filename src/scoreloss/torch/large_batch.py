"""The exact gradient of a loss over a batch of any size, in two passes of micro-batches.

A loss of a whole batch is no mean of losses of its pieces. But it is a function of the logits, and those are small:
the first pass computes them without a graph, the loss says their gradient, and the second pass takes each
micro-batch through the model again and hands it its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from scoreloss.checks import InputError
from scoreloss.torch.base import Loss

Batch = Sequence[Any]
"""(inputs, targets), (inputs, targets, mask) or (inputs, targets, mask, weight)."""


def large_batch_step(model: nn.Module, loss: Callable[..., Tensor], batches: Iterable[Batch]) -> Tensor:
    """Add the gradient of the loss of all batches together to ``.grad``, and return that loss.

    ``model`` is a head or a whole network. ``batches``, a list or a loader, are gone through twice. Each is (inputs,
    targets), and then a mask and a weight, or None, where there are any; inputs that are a tuple or a dict are the
    model's arguments. Random numbers and the model's buffers (running means) are the same in both passes, so dropout
    agrees, and a loader shuffles alike. Under DDP gradients are averaged once, with the last batch.

    >>> from scoreloss.torch import SigmoidF1
    >>> head, loss = nn.Linear(5, 3), SigmoidF1()
    >>> x, y = torch.randn(64, 5), (torch.rand(64, 3) < 0.3).float()
    >>> value = large_batch_step(head, loss, list(zip(x.split(16), y.split(16))))
    >>> torch.allclose(value, loss(head(x), y))
    True
    """
    if isinstance(batches, Iterator):
        raise InputError(
            f"batches are a {type(batches).__name__}: they are gone through twice, so they must be a list, a loader, or "
            "what else can be started again"
        )
    devices = sorted({p.device.index for p in model.parameters() if p.is_cuda})
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    start = _random_states(devices)
    pieces: list[Tensor] = []
    states: list[list[Tensor]] = []
    others: list[list[Any]] = []
    with torch.no_grad(), _unaveraged(model):
        for batch in batches:
            inputs, *other = _checked(batch, len(pieces))
            states.append(_random_states(devices))
            others.append(other)
            pieces.append(_logits(model, inputs))
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
    if not pieces:
        raise InputError("batches are empty: there must be at least one")
    torch.clear_autocast_cache()  # in older versions of torch it holds weights that have no graph
    value, gradients = _gradients(loss, pieces, others)
    with torch.random.fork_rng(devices):
        _restore(devices, start)
        for place, batch in enumerate(batches):
            inputs, *other = _checked(batch, place)
            if place == len(pieces) or not _alike(other[0], others[place][0]):
                raise InputError(
                    f"batches[{place}] is another one the second time: batches must stay the same"
                )
            _restore(devices, states[place])
            with _unaveraged(model) if place < len(pieces) - 1 else nullcontext():
                torch.autograd.backward(_logits(model, inputs), gradients[place])
    return value


def _checked(batch: Batch, place: int) -> tuple[Any, ...]:
    """Inputs, targets, mask and weight."""
    if not 2 <= len(batch) <= 4:
        raise InputError(
            f"batches[{place}] has {len(batch)} parts: it must have inputs and targets, and may have mask and weight"
        )
    return (*batch, None, None)[:4]


def _alike(first: Tensor, second: Tensor) -> bool:
    return first is second or (first.shape == second.shape and bool((first == second).all()))


def _gradients(
    loss: Callable[..., Tensor], pieces: Sequence[Tensor], others: Sequence[Sequence[Any]]
) -> tuple[Tensor, Sequence[Tensor]]:
    """The loss of all pieces together, and the gradient of each; what the loss itself learns is given its own."""
    targets, masks, weights = zip(*others, strict=True)
    sizes = [part.shape[-2] for part in targets]
    axis = -1 - len(loss.outputs(targets[0].shape[-1])) if isinstance(loss, Loss) else -2
    logits = torch.cat(list(pieces), axis).requires_grad_()
    extras = {"mask": _joined("mask", masks, sizes), "weight": _joined("weight", weights, sizes)}
    given = {name: extra for name, extra in extras.items() if extra is not None}
    value = loss(logits, torch.cat(targets, -2), **given)
    torch.autograd.backward(value.sum())
    assert logits.grad is not None
    return value.detach(), logits.grad.split(sizes, axis)


def _joined(name: str, parts: Sequence[Tensor | None], sizes: Sequence[int]) -> Tensor | None:
    """Masks or weights of all examples; those of labels stay so where they are the same in all batches."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    if len(there) < len(parts):
        raise InputError(f"{name} is None in some of the batches: it must be in all of them, or in none")
    if all(part.ndim < 2 and _alike(part, there[0]) for part in there):
        return there[0]
    rows = [part if part.ndim > 1 else part.unsqueeze(0) for part in there]
    return torch.cat(
        [part.expand(*part.shape[:-2], n, part.shape[-1]) for part, n in zip(rows, sizes, strict=True)], -2
    )


def _logits(model: nn.Module, inputs: Any) -> Tensor:
    if isinstance(inputs, Mapping):
        logits: Tensor = model(**inputs)
    else:
        logits = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return logits


def _unaveraged(model: nn.Module) -> AbstractContextManager[None]:
    """DDP leaves gradients where they are in here."""
    within: AbstractContextManager[None] = model.no_sync() if hasattr(model, "no_sync") else nullcontext()  # type: ignore[operator]
    return within


def _random_states(devices: Sequence[int]) -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in devices)]


def _restore(devices: Sequence[int], states: Sequence[Tensor]) -> None:
    torch.set_rng_state(states[0])
    for device, state in zip(devices, states[1:], strict=True):
        torch.cuda.set_rng_state(state, device)
