"""Curvature during training for a stack of networks: of the whole loss, of batches, and along gradients.

Hessians are of the mean loss of the given samples; their products are exact, by two backward passes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks
from simulate.training.rules import per_network
from simulate.training.stacks import Parameters, Stack


class Top(NamedTuple):
    """Largest eigenvalues (n,), residuals |H v - value v| (n,), and unit eigenvectors v, each (n, ...)."""

    values: Tensor
    residuals: Tensor
    vectors: list[Tensor]


def hessian_products(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor, vectors: Parameters
) -> list[Tensor]:
    """Return H v for each network, shaped like the parameters, with H of the mean loss over its samples (n, B, ...).

    Examples
    --------
    A linear output with squared error: the Hessian is the second moment of the inputs.

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.zeros(1, 1, 2)]
    >>> x = torch.tensor([[[3.0, 0.0], [1.0, 1.0]]])
    >>> hessian_products(stack, weights, x, torch.zeros(1, 2, 1), [torch.tensor([[[1.0, 0.0]]])])
    [tensor([[[5.0000, 0.5000]]])]
    """
    return Products(stack, parameters, inputs, targets)(vectors)


def gradient_curvatures(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Return g' H g and g' g for each network, both (n,), with gradient g and Hessian H of the same samples.

    Examples
    --------
    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.ones(1, 1, 1)]
    >>> gradient_curvatures(stack, weights, torch.full((1, 1, 1), 2.0), torch.zeros(1, 1, 1))
    (tensor([64.]), tensor([16.]))
    """
    products = Products(stack, parameters, inputs, targets)
    gradients, images = flatten(products.gradients), flatten(products(products.gradients))
    return (gradients * images).sum(1), (gradients * gradients).sum(1)


@torch.no_grad()
def rising_rates(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor, *, tried: Tensor
) -> Tensor:
    """Return the smallest rate at which a step of gradient descent raises the loss, for each network, (n,).

    Found between two rates that are tried, so that it is exact for a quadratic loss: the change of the loss over the
    rate is interpolated.

    Parameters
    ----------
    stack, parameters, inputs, targets
        n networks, each on its own samples.
    tried
        Rising rates (n, K), K at least 2.

    Returns
    -------
    NaN where the loss rises at the smallest rate tried or at none.

    References
    ----------
    Kalra et al. (2026), arXiv 2601.16979: the critical learning rate, 2 over the critical sharpness.

    Examples
    --------
    For L = (2 w)^2 / 2 at w = 1 it is 2 over the curvature, 4.

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.ones(1, 1, 1)]
    >>> x, rates = torch.full((1, 1, 1), 2.0), torch.tensor([[0.2, 0.4, 0.8]])
    >>> rising_rates(stack, weights, x, torch.zeros(1, 1, 1), tried=rates)
    tensor([0.5000])
    """
    before, gradients = stack.losses_and_gradients(parameters, inputs, targets)
    slopes: list[Tensor] = []
    for rates in tried.unbind(1):
        moved = [p - per_network(rates, p) * g for p, g in zip(parameters, gradients, strict=True)]
        after = stack.losses(stack.outputs(moved, inputs), targets).flatten(1).mean(1)
        slopes.append((after - before) / rates)
    slope = torch.stack(slopes, 1)
    first = (slope > 0).double().argmax(1, keepdim=True)
    below = (first - 1).clamp(min=0)
    (low, high), (under, over) = ([t.gather(1, i)[:, 0] for i in (below, first)] for t in (tried, slope))
    # where no rate raises the loss, and where the first one does, both ends are the same rate
    return torch.where(first[:, 0] > 0, low - under * (high - low) / (over - under), torch.nan)


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
    """Return the largest eigenvalue of the Hessian of each network by Lanczos, with the residual.

    Parameters
    ----------
    stack, parameters, inputs, targets
        n networks, each on its own samples.
    steps
        Largest number of products; fewer are made if the Krylov space is exhausted.
    start
        Start vectors, each (n, ...), such as the result of a call a little earlier in training; gradients if None.
    scales
        Diagonal of a matrix D, each (n, ...): the eigenvalues are then of D H D, the same as of D^2 H.

    Returns
    -------
    The largest Ritz value. Up to rounding it is never above the largest eigenvalue, and within the residual of some
    eigenvalue.

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

    Preconditioned as for Adam, with one over the root of the preconditioner on either side:

    >>> d = torch.tensor([2.0, 0.5])
    >>> found = top_eigenvalues(stack, weights, x, torch.zeros(1, 2, 1), steps=2, scales=[d.view(1, 1, 2)])
    >>> expected = torch.linalg.eigvalsh(d[:, None] * (x[0].T @ x[0] / 2) * d)
    >>> torch.testing.assert_close(found.values, expected[-1:])
    """
    steps = _checks.natural("steps", steps)
    products = Products(stack, parameters, inputs, targets)
    first = flatten(products.gradients if start is None else start)
    scale = 1.0 if scales is None else flatten(scales)
    steps = min(steps, first.shape[1])
    basis = first.new_empty(len(first), steps, first.shape[1])
    basis[:, 0] = functional.normalize(first, dim=1, eps=_TINY)
    diagonal, off_diagonal = list[Tensor](), list[Tensor]()
    for step in range(steps):
        image = flatten(products(shaped_like(basis[:, step] * scale, parameters))) * scale
        diagonal.append((image * basis[:, step]).sum(1))
        size, known = image.norm(dim=1), basis[:, : step + 1]
        # the parts along the last two directions are known; the rest of these and others, left by rounding, goes after
        image = image - diagonal[-1][:, None] * basis[:, step]
        if step:
            image = image - off_diagonal[-1][:, None] * basis[:, step - 1]
        image = image - ((image[:, None] @ known.mT) @ known)[:, 0]  # rows: many times faster than columns
        length = image.norm(dim=1)
        off_diagonal.append(
            torch.where(length > _ROUNDING * torch.finfo(image.dtype).eps * size, length, 0.0)
        )
        if step + 1 < steps:
            # the remainder is zero once the Krylov space is exhausted
            basis[:, step + 1] = functional.normalize(image, dim=1, eps=_TINY)
    closed = torch.zeros_like(diagonal[0], dtype=torch.bool)
    for i, before in enumerate(
        off_diagonal[:-1], 1
    ):  # in an exhausted space, numbers below all that was found in it
        closed = closed | (before == 0)
        diagonal[i] = torch.where(closed, diagonal[0] - diagonal[0].abs() - 1, diagonal[i])
    found = torch.diag_embed(torch.stack(diagonal, 1))
    if steps > 1:
        # only the lower triangle is read
        found = found + torch.diag_embed(torch.stack(off_diagonal[:-1], 1), offset=-1)
    values, vectors = torch.linalg.eigh(found)
    top = (vectors[:, None, :, -1] @ basis)[:, 0]
    return Top(values[:, -1], (off_diagonal[-1] * vectors[:, -1, -1]).abs(), shaped_like(top, parameters))


_ROUNDING = 64
"""Roundings of a product; a part outside of the Krylov space below this is rounding, and the space is exhausted."""


_TINY = 1e-30


class Products:
    """Products with the Hessians of a stack, and the gradients; the first backward pass is shared."""

    def __init__(self, stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor) -> None:
        with torch.enable_grad():
            self._at = [p.detach().requires_grad_() for p in parameters]
            losses = stack.losses(stack.outputs(self._at, inputs), targets).flatten(1).mean(1)
            # networks do not see each other, so the gradient of the sum holds that of each
            self._slopes = torch.autograd.grad(losses.sum(), self._at, create_graph=True)
        self.gradients = [g.detach() for g in self._slopes]

    def __call__(self, vectors: Parameters) -> list[Tensor]:
        """Return H v for each network, shaped like the parameters."""
        with torch.enable_grad():
            found = torch.autograd.grad(
                self._slopes, self._at, list(vectors), retain_graph=True, materialize_grads=True
            )
        return [f.detach() for f in found]


def flatten(tensors: Parameters) -> Tensor:
    """Return parameters, each (n, ...), as one vector for each network, (n, P)."""
    return torch.cat([t.flatten(1) for t in tensors], 1)


def shaped_like(flat: Tensor, like: Parameters) -> list[Tensor]:
    """Return vectors (n, P) as parameters shaped like others."""
    parts = flat.split([p[0].numel() for p in like], 1)
    return [part.view(len(flat), *p.shape[1:]) for part, p in zip(parts, like, strict=True)]
