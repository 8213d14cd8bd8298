"""Products with curvature through the head of a language model, by chunks of positions.

The loss is a function of hidden states h and of the weights W of the head, l(h W'), and h is one of the parameters of
the body. With J the derivative of h in the parameters, and of W in them, a product with the Gauss-Newton matrix goes
through the layer in both directions, chunk by chunk, and through the body once; that with the Hessian has two parts
more: the second derivatives of h weighted by the slope of the loss in h, and those that h and W have in common.

Where W is fixed the loss is a function of h alone, with second derivatives of d x d numbers at each position, and all
of the vocabulary is in them. They cost as much as d products or fewer, so that they are taken after as many products as
that, and further ones go through the body alone: at most twice what it would have cost to know the number before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _memory
from simulate.objectives.batches import Batch
from simulate.objectives.derivatives import slopes
from simulate.objectives.heads import Head, Rows, rows_of
from simulate.objectives.objective import Objective
from simulate.objectives.output_curvature import Bend, SoftmaxCurvature, output_curvature
from simulate.objectives.parameters import Leaves

__all__ = ["Matrix", "head_product"]

Matrix = Literal["hessian", "gauss_newton", "h_term", "fisher", "empirical_fisher"]

_HELD = 4
"""Times the logits, that what is kept of them from product to product takes at most."""

_LARGEST = 1
"""Times the logits, that second derivatives in the hidden states take at most."""


def head_product(
    objective: Objective, matrix: Matrix, head: Head, leaves: Leaves, batch: Batch
) -> Callable[[Leaves], Leaves]:
    """Product of the part of a matrix that a batch adds, with a vector split like the parameters.

    Parameters
    ----------
    matrix
        As the functions of `simulate.operators`; of `fisher` the categorical one.
    head
        Of the objective.
    """
    hidden = head.hidden(objective, leaves, batch.inputs)
    weight, bias = head.own(objective, leaves)
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    size = hidden.shape[0] * hidden.shape[1] * head.classes * hidden.element_size()
    kept = _memory.is_free(2 * _HELD * size, objective.device)
    places = head.places(objective, leaves)
    fixed = all(place is None for place in places)
    chunks = [
        _Chunk(objective, rows, weight, bias, matrix, kept=kept, fixed=fixed)
        for rows in rows_of(objective, head, hidden.detach(), batch.targets)
    ]
    curved = matrix in ("hessian", "h_term")
    if curved:
        steep = _slopes(chunks).view_as(hidden).requires_grad_()
    else:
        steep = hidden.new_zeros(()).expand_as(hidden).requires_grad_()
    pulled = slopes(hidden, leaves, steep, again=True)
    states = _States(chunks, objective.share, kept) if fixed and matrix != "h_term" else None

    def product(vector: Leaves) -> Leaves:
        change, *second = slopes(pulled, (steep, *leaves) if curved else steep, vector)
        if states is not None:
            first = slopes(hidden, leaves, states.bent(change))
            return tuple(map(torch.add, first, second)) if second else first
        if fixed:  # what the layer bends alone is not in the H-term
            return tuple(second)
        own = [None if place is None else vector[place] for place in places]
        shares = _shares(objective, chunks, change, own) if matrix == "empirical_fisher" else None
        parts = _Parts(hidden, weight, bias)
        for chunk in chunks:
            parts.take(chunk, change.flatten(0, 1)[chunk.rows.place], own, shares)
        found = list(slopes(hidden, leaves, parts.hidden.view_as(hidden)))
        for i, part in enumerate(second):
            found[i] = found[i] + part
        for place, part in zip(places, (parts.weight, parts.bias), strict=True):
            if place is not None and part is not None:
                found[place] = found[place] + part
        return tuple(found)

    return product


class _Chunk:
    """Some positions: what the loss has there, kept from product to product or made anew."""

    def __init__(
        self,
        objective: Objective,
        rows: Rows,
        weight: Tensor,
        bias: Tensor | None,
        matrix: Matrix,
        *,
        kept: bool,
        fixed: bool,
    ) -> None:
        self.objective, self.rows, self.weight, self.bias, self.matrix = objective, rows, weight, bias, matrix
        self._keeps, self._keeps_slope = kept, kept and not fixed  # that of the hidden states tells all else
        self._bend: Bend | None = None
        self._slope: Tensor | None = None

    def logits(self) -> Tensor:
        return functional.linear(self.rows.hidden, self.weight, self.bias)

    def change(self, hidden: Tensor, own: Sequence[Tensor | None]) -> Tensor:
        """Of the logits, along a change of the hidden states and of the layer's own parameters."""
        found = functional.linear(hidden, self.weight)
        if own[0] is not None:
            found = found.addmm_(self.rows.hidden, own[0].mT)
        return found if own[1] is None else found.add_(own[1])

    def bend(self) -> Bend:
        """Second derivative of the loss in the logits."""
        if self._bend is not None:
            return self._bend
        if self.matrix == "fisher":
            bend = SoftmaxCurvature(self.logits(), self.objective.share)
        elif self.rows.batch.factor:
            bend = output_curvature(self.objective, self.logits(), self.rows.batch)
        else:
            bend = torch.zeros_like  # of ignored positions alone
        self._bend = bend if self._keeps else None
        return bend

    def slope(self) -> Tensor:
        """Derivative of the loss in the logits."""
        if self._slope is not None:
            return self._slope
        free = self.logits().requires_grad_()
        if self.rows.batch.factor:
            with torch.enable_grad():
                (slope,) = torch.autograd.grad(self.objective.loss(free, self.rows.batch), free)
        else:
            slope = torch.zeros_like(free)
        self._slope = slope if self._keeps_slope else None
        return slope

    def second(self, columns: Tensor) -> Tensor:
        """Second derivatives of the loss in the hidden states, (n, d, d); nothing is kept for others any more."""
        bend, shape = self.bend(), (len(self.rows.hidden), len(self.weight))
        self._keeps, self._bend = False, None
        return torch.stack([bend(column.expand(shape)) @ self.weight for column in columns], 1)


def _slopes(chunks: Sequence[_Chunk]) -> Tensor:
    """Derivative of the loss in the hidden states, one position after the other."""
    return torch.cat([chunk.slope() @ chunk.weight for chunk in chunks])


class _States:
    """Products with what bends the loss as a function of the hidden states, through a layer that is fixed."""

    def __init__(self, chunks: Sequence[_Chunk], share: float, kept: bool) -> None:
        self._chunks, self._share, self._kept, self._count = chunks, share, kept, 0
        self._second: Tensor | None = None
        self._slope = _slopes(chunks) if chunks[0].matrix == "empirical_fisher" else None

    def bent(self, change: Tensor) -> Tensor:
        """With a change of the hidden states (N, T, d)."""
        if self._slope is not None:
            rows = self._slope.view(len(change), -1)
            return ((rows / self._share) * (rows * change.flatten(1)).sum(1, keepdim=True)).view_as(change)
        flat = change.flatten(0, 1)
        if self._second is None and self._pays():
            columns = self._chunks[0].weight.mT.contiguous()
            self._second = torch.cat([chunk.second(columns) for chunk in self._chunks])
        if self._second is not None:
            return torch.bmm(self._second, flat[:, :, None]).view_as(change)
        self._count += 1
        parts = [c.bend()(functional.linear(flat[c.rows.place], c.weight)) @ c.weight for c in self._chunks]
        return torch.cat(parts).view_as(change)

    def _pays(self) -> bool:
        """Whether there is memory to keep them, as many products were made as they cost, and they take not too much."""
        classes, width = self._chunks[0].weight.shape
        return self._kept and self._count >= width and width**2 <= _LARGEST * classes


class _Parts:
    """Sums over chunks: what goes back into the hidden states, and into weight and bias of the layer."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        self.hidden = torch.empty_like(hidden, requires_grad=False).flatten(0, 1)
        self.weight, self.bias = torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias)

    def take(
        self, chunk: _Chunk, change: Tensor, own: Sequence[Tensor | None], shares: Tensor | None
    ) -> None:
        """Add those of one chunk, along a change of its hidden states."""
        back = self.hidden[chunk.rows.place]
        back.zero_()
        if chunk.matrix != "h_term":
            if shares is None:
                bent = chunk.bend()(chunk.change(change, own))
            else:
                bent = chunk.slope() * shares[chunk.rows.place, None]
            back.addmm_(bent, chunk.weight)
            self._own(bent, chunk.rows.hidden)
        if chunk.matrix in ("hessian", "h_term"):
            slope = chunk.slope()
            self.weight.addmm_(slope.mT, change)
            if own[0] is not None:
                back.addmm_(slope, own[0])

    def _own(self, cotangent: Tensor, hidden: Tensor) -> None:
        self.weight.addmm_(cotangent.mT, hidden)
        if self.bias is not None:
            self.bias += cotangent.sum(0)


def _shares(
    objective: Objective, chunks: Sequence[_Chunk], change: Tensor, own: Sequence[Tensor | None]
) -> Tensor:
    """For every position, the product of the gradient of its sample with the vector, over the share of a sample."""
    flat = change.flatten(0, 1)
    each = torch.cat([(c.slope() * c.change(flat[c.rows.place], own)).sum(1) for c in chunks])
    samples = each.view(change.shape[:2]).sum(1, keepdim=True)
    return (samples / objective.share).expand(change.shape[:2]).reshape(-1)
