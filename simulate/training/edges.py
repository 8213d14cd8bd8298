"""Curvature along training, of many networks of one stack at once: of the whole loss, of batches, along gradients.

Hessians are of the mean loss of the samples given; products with them are made twice backwards, exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks
from simulate.training.stacks import Parameters, Stack


class Top(NamedTuple):
    """Largest eigenvalues (n,), the residuals |H v - value v| of their unit vectors (n,), and these, (n, ...) each."""

    values: Tensor
    residuals: Tensor
    vectors: list[Tensor]


def hessian_products(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor, vectors: Parameters
) -> list[Tensor]:
    """H v of each network, shaped like the parameters, of the mean loss over its samples (n, B, ...).

    Examples
    --------
    A linear output with squared error: the Hessian is the second moment of the inputs.

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.zeros(1, 1, 2)]
    >>> x = torch.tensor([[[3.0, 0.0], [1.0, 1.0]]])
    >>> hessian_products(stack, weights, x, torch.zeros(1, 2, 1), [torch.tensor([[[1.0, 0.0]]])])
    [tensor([[[5.0000, 0.5000]]])]
    """
    return _Products(stack, parameters, inputs, targets)(vectors)


def gradient_curvatures(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """G' H g and g' g of each network, both (n,), with the gradient and the Hessian of the same samples.

    Examples
    --------
    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.ones(1, 1, 1)]
    >>> gradient_curvatures(stack, weights, torch.full((1, 1, 1), 2.0), torch.zeros(1, 1, 1))
    (tensor([64.]), tensor([16.]))
    """
    products = _Products(stack, parameters, inputs, targets)
    gradients, images = _flat(products.gradients), _flat(products(products.gradients))
    return (gradients * images).sum(1), (gradients * gradients).sum(1)


def top_eigenvalues(
    stack: Stack,
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    *,
    steps: int,
    start: Parameters | None = None,
    scales: Parameters | None = None,
) -> Top:
    """Largest eigenvalue of the Hessian of each network by Lanczos, with a residual that says how far it has come.

    Parameters
    ----------
    stack, parameters, inputs, targets
        n networks, each on its own samples.
    steps
        Products at most; fewer where the vectors found no longer lead anywhere new.
    start
        Where to begin, each (n, ...): what a call a little earlier in training found; the gradients if None.
    scales
        Diagonal of a matrix D, each (n, ...): the eigenvalues are then those of D H D, which are those of D^2 H.

    Returns
    -------
    The largest Ritz value, never above the largest eigenvalue but for rounding, and within the residual of one.

    Raises
    ------
    ValueError
        If `steps` is no positive integer.

    Examples
    --------
    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.ones(1, 1, 2)]
    >>> x = torch.tensor([[[3.0, 0.0], [1.0, 1.0]]])
    >>> top = top_eigenvalues(stack, weights, x, torch.zeros(1, 2, 1), steps=2)
    >>> torch.testing.assert_close(top.values, torch.linalg.eigvalsh(x[0].T @ x[0] / 2)[-1:])

    As Adam meets it, with one over the root of the preconditioner on either side:

    >>> d = torch.tensor([2.0, 0.5])
    >>> found = top_eigenvalues(stack, weights, x, torch.zeros(1, 2, 1), steps=2, scales=[d.view(1, 1, 2)])
    >>> expected = torch.linalg.eigvalsh(d[:, None] * (x[0].T @ x[0] / 2) * d)
    >>> torch.testing.assert_close(found.values, expected[-1:])
    """
    steps = _checks.natural("steps", steps)
    products = _Products(stack, parameters, inputs, targets)
    begun = _flat(products.gradients if start is None else start)
    scale = 1.0 if scales is None else _flat(scales)
    steps = min(steps, begun.shape[1])
    basis = begun.new_empty(len(begun), steps, begun.shape[1])
    basis[:, 0] = _unit(begun)
    diagonal, beside = list[Tensor](), list[Tensor]()
    for step in range(steps):
        made = _flat(products(_shaped(basis[:, step] * scale, parameters))) * scale
        diagonal.append((made * basis[:, step]).sum(1))
        size, held = made.norm(dim=1), basis[:, : step + 1]
        # the parts along the last two directions are known; what rounding leaves of these and of others goes after
        made = made - diagonal[-1][:, None] * basis[:, step]
        if step:
            made = made - beside[-1][:, None] * basis[:, step - 1]
        made = made - ((made[:, None] @ held.mT) @ held)[:, 0]  # rows: many times faster than columns
        length = made.norm(dim=1)
        beside.append(torch.where(length > _ROUNDING * torch.finfo(made.dtype).eps * size, length, 0.0))
        if step + 1 < steps:
            basis[:, step + 1] = _unit(made)
    closed = torch.zeros_like(diagonal[0], dtype=torch.bool)
    for i, before in enumerate(
        beside[:-1], 1
    ):  # where the space is closed, numbers below all that was found in it
        closed = closed | (before == 0)
        diagonal[i] = torch.where(closed, diagonal[0] - diagonal[0].abs() - 1, diagonal[i])
    found = torch.diag_embed(torch.stack(diagonal, 1))
    if steps > 1:
        upper = torch.diag_embed(torch.stack(beside[:-1], 1), offset=1)
        found = found + (upper + upper.mT)
    values, vectors = torch.linalg.eigh(found)
    top = (vectors[:, None, :, -1] @ basis)[:, 0]
    return Top(values[:, -1], (beside[-1] * vectors[:, -1, -1]).abs(), _shaped(top, parameters))


_ROUNDING = 64
"""What is this many roundings of a product beyond the space held is none: the space is closed."""


_TINY = 1e-30


class _Products:
    """Products with the Hessians of a stack, the first pass backwards made once."""

    def __init__(self, stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor) -> None:
        with torch.enable_grad():
            self._at = [p.detach().requires_grad_() for p in parameters]
            losses = stack.losses(stack.outputs(self._at, inputs), targets).flatten(1).mean(1)
            self._slopes = torch.autograd.grad(losses.sum(), self._at, create_graph=True)
        self.gradients = [g.detach() for g in self._slopes]

    def __call__(self, vectors: Parameters) -> list[Tensor]:
        with torch.enable_grad():
            found = torch.autograd.grad(
                self._slopes, self._at, list(vectors), retain_graph=True, materialize_grads=True
            )
        return [f.detach() for f in found]


def _flat(tensors: Parameters) -> Tensor:
    return torch.cat([t.flatten(1) for t in tensors], 1)


def _shaped(flat: Tensor, like: Parameters) -> list[Tensor]:
    parts = flat.split([p[0].numel() for p in like], 1)
    return [part.view(len(flat), *p.shape[1:]) for part, p in zip(parts, like, strict=True)]


def _unit(flat: Tensor) -> Tensor:
    return flat / flat.norm(dim=1, keepdim=True).clamp_min(_TINY)
