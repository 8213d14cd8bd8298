"""The head of a language model, separated from its body: logits of a few positions at a time, never all at once.

Logits (N, T, V) over a vocabulary take more memory than everything else, but the loss is a sum over positions. If a
linear layer computes them from hidden states (N, T, d), it is taken out of the model: the body gives the hidden states,
and loss and derivatives go through the layer in chunks of positions. The result is exact; only the order of sums over
positions changes.

One sample tells whether a model has this form: it must return the layer's output, and without the layer it must return
the layer's input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.batches import Batch, cuts
from simulate.objectives.derivatives import alike, slopes
from simulate.objectives.fingerprints import hooked
from simulate.objectives.loss_function import LossFunction

LARGE = 1 << 21
"""Number of logits of one sample from which on they are computed in chunks."""

AT_ONCE = 1 << 21
"""Number of logits in a chunk."""

_TEST_LOGITS = 1 << 20
"""Number of logits of one sample in a test of the model."""


class Head(NamedTuple):
    """A linear layer whose outputs are those of the model.

    Attributes
    ----------
    path
        Name of the layer in the model.
    positions, classes
        T and V of the sample that it was found with.
    """

    layer: nn.Linear
    path: str
    positions: int
    classes: int

    def own(self, objective: LossFunction, leaves: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias of the layer for these parameters."""
        state, prefix = objective.state(leaves), f"{self.path}." if self.path else ""
        return state[f"{prefix}weight"], state.get(f"{prefix}bias")

    def places(self, objective: LossFunction, leaves: Sequence[Tensor]) -> list[int | None]:
        """Return the places of weight and bias among the parameters; None if fixed or absent."""
        own = self.own(objective, leaves)
        return [next((i for i, leaf in enumerate(leaves) if leaf is part), None) for part in own]

    def hidden(self, objective: LossFunction, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Return the input of the layer, (N, T, d): the output of the model with the layer replaced by the identity."""
        layer: Any = self.layer
        layer.forward = lambda hidden: hidden
        try:
            return objective.returned(leaves, inputs)
        finally:
            del layer.forward


def by_positions(loss: Any, reduction: str) -> bool:
    """Return whether a loss is a sum or mean over positions: torch's own cross-entropy with the given reduction.

    Examples
    --------
    >>> by_positions(nn.CrossEntropyLoss(), "mean"), by_positions(nn.CrossEntropyLoss(), "sum")
    (True, False)
    """
    if loss is functional.cross_entropy:
        return reduction == "mean"
    own = type(loss) is nn.CrossEntropyLoss and not hooked(loss) and "forward" not in vars(loss)
    return own and loss.reduction == reduction


def head_of(objective: LossFunction, inputs: Any) -> Head | None:
    """Return the head of the model, found with one sample; None if none can be taken out, or there are few logits.

    Call it within `preserve_state`.
    """
    if objective.model is None:
        return None
    leaves, calls = objective.leaves, list[tuple[nn.Linear, Tensor, Tensor]]()

    def note(layer: Any, given: tuple[Any, ...], found: Any) -> None:
        if len(given) == 1 and isinstance(found, Tensor):
            calls.append((layer, given[0], found))

    with torch.no_grad():
        try:
            with ExitStack() as stack:
                for part in objective.model.modules():
                    if type(part) is nn.Linear and "forward" not in vars(part) and not hooked(part):
                        stack.callback(part.register_forward_hook(note).remove)
                outputs = objective.returned(leaves, inputs)
            # the model must return this very tensor, not one that is computed from it
            last = [found for found in calls if found[2] is outputs]
            if len(last) != 1 or outputs.ndim != 3 or outputs[0].numel() < LARGE:
                return None
            layer, hidden, _ = last[0]
            # a layer that is called elsewhere too cannot be replaced by the identity
            if hooked(layer) or sum(other is layer for other, *_ in calls) != 1:
                return None
            path = next(name for name, module in objective.model.named_modules() if module is layer)
            head = Head(layer, path, *outputs.shape[1:])
            same = torch.equal(head.hidden(objective, leaves, inputs), hidden)
            again = functional.linear(hidden, *head.own(objective, leaves))
            return head if same and alike(again, outputs) else None
        except Exception:  # user code may not work with the layer replaced
            return None


class Rows(NamedTuple):
    """Hidden states of some positions, with their targets as a batch for the loss.

    Attributes
    ----------
    place
        Slice of the positions, all samples one after the other.
    """

    place: slice
    hidden: Tensor
    batch: Batch


def rows_of(objective: LossFunction, head: Head, hidden: Tensor, targets: Tensor) -> Iterator[Rows]:
    """Yield all positions of a batch in chunks."""
    flat, labels = hidden.flatten(0, 1), targets.reshape(-1)
    for place in cuts(len(flat), max(1, AT_ONCE // head.classes)):
        yield Rows(place, flat[place], objective.weighed(None, labels[place]))


def by_chunks(objective: LossFunction, head: Head, batch: Batch) -> tuple[float, Sequence[Tensor]]:
    """Return the term of a batch in the loss and, if gradients are recorded, its gradient, by chunks of positions."""
    leaves, differentiate = objective.leaves, torch.is_grad_enabled()
    hidden = head.hidden(objective, leaves, batch.inputs)
    own = [
        None if part is None else part.detach().requires_grad_(differentiate)
        for part in head.own(objective, leaves)
    ]
    free = [part for part in own if part is not None]
    value, steep = 0.0, torch.zeros_like(hidden).flatten(0, 1)
    found = [torch.zeros_like(part) for part in free]
    for rows in rows_of(objective, head, hidden.detach(), batch.targets):
        if not rows.batch.factor:  # the mean over no samples is NaN
            continue
        states = rows.hidden.requires_grad_(differentiate)
        loss = objective.loss(functional.linear(states, free[0], own[1]), rows.batch)
        value += loss.item()
        if differentiate:
            steep[rows.place], *parts = torch.autograd.grad(loss, [states, *free])
            for total, part in zip(found, parts, strict=True):
                total += part
    if not differentiate:
        return value, ()
    gradient = list(slopes(hidden, leaves, steep.view_as(hidden)))
    for place, part in zip(head.places(objective, leaves), found, strict=False):
        if place is not None:
            gradient[place] = gradient[place] + part
    return value, gradient


def at_few(objective: Any) -> Any:
    """Return an objective, or one at a few positions if its model has a language-model head."""
    return objective if objective.head is None else ChunkedObjective(objective, objective.head)


class ChunkedObjective:
    """An objective at a few positions of its samples, for tests of model and loss."""

    def __init__(self, objective: Any, head: Head) -> None:
        self._objective, self._head = objective, head
        step = head.positions * head.classes // _TEST_LOGITS
        self._at = slice(None, None, max(1, min(head.positions // 2, step)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def outputs(self, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Return the logits at these positions, classes along axis 1."""
        hidden = self._head.hidden(self._objective, leaves, inputs)[:, self._at]
        return functional.linear(hidden, *self._head.own(self._objective, leaves)).movedim(-1, 1)

    def few(self, *, whole: bool = False) -> Batch:
        """Return a few samples, with all of their inputs and the targets at these positions."""
        batch = self._objective.few(whole=whole)
        return batch._replace(targets=batch.targets[:, self._at])

    def pieces(self, pieces: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Return the samples with the targets at these positions."""
        return [(inputs, targets[:, self._at]) for inputs, targets in pieces]
