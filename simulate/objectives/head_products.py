"""Products with curvature through the head of a language model, by chunks of positions.

The loss l(h W') is a function of the hidden states h and of the weights W of the head, and h is a function of the
parameters of the body. A product with the Gauss-Newton matrix goes through the layer in both directions, chunk by
chunk, and through the body once. A product with the Hessian has two more terms: the second derivatives of h weighted by
the slope of the loss in h, and the mixed second derivatives of h and W.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from simulate.objectives.output_curvature import OutputHessian, SoftmaxCurvature, output_curvature
from simulate.objectives.parameters import Leaves

Matrix = Literal["hessian", "gauss_newton", "h_term", "fisher", "empirical_fisher"]

_HELD = 4
"""Largest memory kept from product to product, as a multiple of that of the logits."""


def head_product(
    objective: Objective, matrix: Matrix, head: Head, batch: Batch
) -> Callable[[Tensor], Leaves]:
    """Return the product of a batch's part of a matrix with a vector (dim,), as tensors like the parameters.

    Parameters
    ----------
    matrix
        Named as the functions of `simulate.operators`; `fisher` is the categorical one.
    head
        Head of the objective's model.
    """
    leaves = objective.leaves
    hidden = head.hidden(objective, leaves, batch.inputs)
    weight, bias = head.own(objective, leaves)
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    size = hidden.shape[0] * hidden.shape[1] * head.classes * hidden.element_size()
    places = head.places(objective, leaves)

    def chunks() -> Iterator[_Chunk]:
        for rows in rows_of(objective, head, hidden.detach(), batch.targets):
            yield _Chunk(objective, rows, weight, bias, matrix)

    stored = list(chunks()) if _memory.is_free(2 * _HELD * size, objective.device) else None
    curved = matrix in ("hessian", "h_term")
    if curved:
        steep = (
            torch.cat([chunk.slope @ weight for chunk in stored or chunks()]).view_as(hidden).requires_grad_()
        )
    else:
        # an expanded zero takes no memory, and only the derivative by it is used
        steep = hidden.new_zeros(()).expand_as(hidden).requires_grad_()
    back_to_body = slopes(hidden, leaves, steep, again=True)

    def product(flat: Tensor) -> Leaves:
        vector = objective.split(flat)
        change, *second = slopes(back_to_body, (steep, *leaves) if curved else steep, vector)
        own = [None if place is None else vector[place] for place in places]
        shares = _shares(objective, stored or chunks(), change, own) if matrix == "empirical_fisher" else None
        back = torch.empty_like(hidden, requires_grad=False).flatten(0, 1)
        free = zip((weight, bias), places, strict=True)
        added = [None if p is None or place is None else torch.zeros_like(p) for p, place in free]
        for chunk in stored or chunks():
            moved = change.flatten(0, 1)[chunk.rows.place]
            back[chunk.rows.place] = chunk.pull_back(moved, own, shares, added)
        found = list(slopes(hidden, leaves, back.view_as(hidden)))
        for i, part in (*enumerate(second), *zip(places, added, strict=True)):
            if i is not None and part is not None:
                found[i] = found[i] + part
        return tuple(found)

    return product


@dataclass(eq=False)
class _Chunk:
    """Derivatives of the loss in the logits of some positions."""

    objective: Objective
    rows: Rows
    weight: Tensor
    bias: Tensor | None
    matrix: Matrix

    def logits(self) -> Tensor:
        return functional.linear(self.rows.hidden, self.weight, self.bias)

    def change(self, hidden: Tensor, own: Sequence[Tensor | None]) -> Tensor:
        """Return the change of the logits for a change of the hidden states and of the layer's parameters."""
        found = functional.linear(hidden, self.weight)
        if own[0] is not None:
            found = found.addmm_(self.rows.hidden, own[0].mT)
        return found if own[1] is None else found.add_(own[1])

    @cached_property
    def output_hessian(self) -> OutputHessian:
        """Second derivative of the loss in the logits."""
        if self.matrix == "fisher":
            return SoftmaxCurvature(self.logits(), self.objective.share)
        if self.rows.batch.factor:
            return output_curvature(self.objective, self.logits(), self.rows.batch)
        return torch.zeros_like  # all positions are ignored

    @cached_property
    def slope(self) -> Tensor:
        """Derivative of the loss in the logits."""
        free = self.logits().requires_grad_()
        if not self.rows.batch.factor:
            return torch.zeros_like(free)
        with torch.enable_grad():
            return torch.autograd.grad(self.objective.loss(free, self.rows.batch), free)[0]

    def pull_back(
        self,
        change: Tensor,
        own: Sequence[Tensor | None],
        shares: Tensor | None,
        added: Sequence[Tensor | None],
    ) -> Tensor:
        """Return the product in the hidden states for a change of them; add those in weight and bias to `added`."""
        back, (weight, bias) = torch.zeros_like(change), added
        if self.matrix != "h_term":
            part = None if shares is None else shares[self.rows.place, None]
            weighted = self.output_hessian(self.change(change, own)) if part is None else self.slope * part
            back.addmm_(weighted, self.weight)
            if weight is not None:
                weight.addmm_(weighted.mT, self.rows.hidden)
            if bias is not None:
                bias += weighted.sum(0)
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
    """Return, for every position, the gradient of its sample times the vector, divided by the share of a sample."""
    flat = change.flatten(0, 1)
    each = torch.cat([(c.slope * c.change(flat[c.rows.place], own)).sum(1) for c in chunks])
    samples = each.view(change.shape[:2]).sum(1, keepdim=True)
    return (samples / objective.share).expand(change.shape[:2]).reshape(-1)
