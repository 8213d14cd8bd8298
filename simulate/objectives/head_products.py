"""Products with curvature through the head of a language model, by chunks of positions.

The loss is a function of hidden states h and of the weights W of the head, l(h W'), and h is one of the parameters of
the body. With J the derivative of h in the parameters, and of W in them, a product with the Gauss-Newton matrix goes
through the layer in both directions, chunk by chunk, and through the body once; that with the Hessian has two parts
more: the second derivatives of h weighted by the slope of the loss in h, and those that h and W have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
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

Matrix = Literal["hessian", "gauss_newton", "h_term", "fisher", "empirical_fisher"]

_HELD = 4
"""Times the logits, that what is kept of them from product to product takes at most."""


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
    places = head.places(objective, leaves)

    def made() -> Iterator[_Chunk]:
        for rows in rows_of(objective, head, hidden.detach(), batch.targets):
            yield _Chunk(objective, rows, weight, bias, matrix)

    kept = list(made()) if _memory.is_free(2 * _HELD * size, objective.device) else None
    curved = matrix in ("hessian", "h_term")
    if curved:
        steep = torch.cat([chunk.slope @ weight for chunk in kept or made()]).view_as(hidden).requires_grad_()
    else:
        steep = hidden.new_zeros(()).expand_as(hidden).requires_grad_()
    pulled = slopes(hidden, leaves, steep, again=True)

    def product(vector: Leaves) -> Leaves:
        change, *second = slopes(pulled, (steep, *leaves) if curved else steep, vector)
        own = [None if place is None else vector[place] for place in places]
        shares = _shares(objective, kept or made(), change, own) if matrix == "empirical_fisher" else None
        back = torch.empty_like(hidden, requires_grad=False).flatten(0, 1)
        free = zip((weight, bias), places, strict=True)
        added = [None if p is None or place is None else torch.zeros_like(p) for p, place in free]
        for chunk in kept or made():
            moved = change.flatten(0, 1)[chunk.rows.place]
            back[chunk.rows.place] = chunk.pulled(moved, own, shares, added)
        found = list(slopes(hidden, leaves, back.view_as(hidden)))
        for i, part in (*enumerate(second), *zip(places, added, strict=True)):
            if i is not None and part is not None:
                found[i] = found[i] + part
        return tuple(found)

    return product


class _Chunk:
    """Some positions: what the loss has there."""

    def __init__(
        self, objective: Objective, rows: Rows, weight: Tensor, bias: Tensor | None, matrix: Matrix
    ) -> None:
        self.objective, self.rows, self.weight, self.bias, self.matrix = objective, rows, weight, bias, matrix

    def logits(self) -> Tensor:
        return functional.linear(self.rows.hidden, self.weight, self.bias)

    def change(self, hidden: Tensor, own: Sequence[Tensor | None]) -> Tensor:
        """Of the logits, along a change of the hidden states and of the layer's own parameters."""
        found = functional.linear(hidden, self.weight)
        if own[0] is not None:
            found = found.addmm_(self.rows.hidden, own[0].mT)
        return found if own[1] is None else found.add_(own[1])

    @cached_property
    def bend(self) -> Bend:
        """Second derivative of the loss in the logits."""
        if self.matrix == "fisher":
            return SoftmaxCurvature(self.logits(), self.objective.share)
        if self.rows.batch.factor:
            return output_curvature(self.objective, self.logits(), self.rows.batch)
        return torch.zeros_like  # of ignored positions alone

    @cached_property
    def slope(self) -> Tensor:
        """Derivative of the loss in the logits."""
        free = self.logits().requires_grad_()
        if not self.rows.batch.factor:
            return torch.zeros_like(free)
        with torch.enable_grad():
            return torch.autograd.grad(self.objective.loss(free, self.rows.batch), free)[0]

    def pulled(
        self,
        change: Tensor,
        own: Sequence[Tensor | None],
        shares: Tensor | None,
        added: Sequence[Tensor | None],
    ) -> Tensor:
        """What goes back into the hidden states for a change of them; what goes into weight and bias is added there."""
        back, (weight, bias) = torch.zeros_like(change), added
        if self.matrix != "h_term":
            part = None if shares is None else shares[self.rows.place, None]
            bent = self.bend(self.change(change, own)) if part is None else self.slope * part
            back.addmm_(bent, self.weight)
            if weight is not None:
                weight.addmm_(bent.mT, self.rows.hidden)
            if bias is not None:
                bias += bent.sum(0)
        if self.matrix in ("hessian", "h_term"):
            slope = self.slope
            if weight is not None:
                weight.addmm_(slope.mT, change)
            if own[0] is not None:
                back.addmm_(slope, own[0])
        return back


def _shares(
    objective: Objective, chunks: Iterable[_Chunk], change: Tensor, own: Sequence[Tensor | None]
) -> Tensor:
    """For every position, the product of the gradient of its sample with the vector, over the share of a sample."""
    flat = change.flatten(0, 1)
    each = torch.cat([(c.slope * c.change(flat[c.rows.place], own)).sum(1) for c in chunks])
    samples = each.view(change.shape[:2]).sum(1, keepdim=True)
    return (samples / objective.share).expand(change.shape[:2]).reshape(-1)
