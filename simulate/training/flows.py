"""Paths of a stack of networks on all their samples: gradient descent, gradient flow, and the central flow.

Gradient flow is dw/dt = -eta grad L, with one unit of time for one step of descent. The central flow (Cohen et al.
2025, arXiv 2410.24206) adds the penalty sigma^2/2 grad S, where S is the largest eigenvalue of the Hessian and
sigma^2 >= 0 is the least number that keeps S at or below 2/eta. It is followed with one eigenvalue at the edge: the
second largest has to stay below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks
from simulate.training import edges
from simulate.training.stacks import Parameters, Stack

_STEP = 1e-3
"""Length of the moves along the top eigenvector for differences of gradients; in double precision truncation and
rounding are then both below a millionth."""

_PRODUCTS = 30
"""Hessian products for the eigenvector at the start; later ones follow it by one product in each part of a step."""


class Path(NamedTuple):
    """Path of R networks over a number of steps.

    Attributes
    ----------
    parameters
        Flat parameters after each step, (R, steps, P).
    losses
        Mean loss over all samples before each step, (R, steps).
    """

    parameters: Tensor
    losses: Tensor


class Flow(NamedTuple):
    """Path of a flow, with the largest eigenvalue S of the Hessian along it.

    Attributes
    ----------
    path
        Parameters and losses, one unit of time for each step.
    directions
        Unit eigenvectors of S, (R, steps, P).
    sharpness
        S, (R, steps).
    sharpening, stabilisation
        -grad S . grad L and |grad S|^2, (R, steps).
    """

    path: Path
    directions: Tensor
    sharpness: Tensor
    sharpening: Tensor
    stabilisation: Tensor


def _mean_loss(
    stack: Stack, like: Parameters, inputs: Tensor, targets: Tensor, at: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean loss of each network over its samples, and its gradient, at flat parameters (R, P)."""
    losses, gradients = stack.losses_and_gradients(edges.shaped_like(at, like), inputs, targets)
    return losses, edges.flatten(gradients)


def descent_path(
    stack: Stack, parameters: Parameters, inputs: Tensor, targets: Tensor, *, rates: Tensor, steps: int
) -> Path:
    """Return the path of full-batch gradient descent.

    Parameters
    ----------
    stack, parameters, inputs, targets
        R networks, each on its own samples.
    rates
        Learning rates (R,), positive.
    steps
        Number of steps, at least 1.

    Raises
    ------
    ValueError
        If a rate is not positive, or `steps` is no positive integer.

    Examples
    --------
    One weight on the loss w^2/2, at half the inverse curvature:

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, one = Perceptrons("linear", "squared error", bias=False), torch.ones(1, 1, 1)
    >>> descent_path(stack, [one], one, 0 * one, rates=torch.tensor([0.5]), steps=3).parameters.flatten()
    tensor([0.5000, 0.2500, 0.1250])
    """

    def step(at: Tensor) -> tuple[Tensor, Tensor]:
        losses, gradient = _mean_loss(stack, parameters, inputs, targets, at)
        return at - rates[:, None] * gradient, losses

    return _path(step, edges.flatten(parameters), rates, steps)


def gradient_flow(
    stack: Stack,
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    *,
    rates: Tensor,
    steps: int,
    parts: int,
) -> Path:
    """Return the path of gradient flow, by `parts` explicit steps of Euler for each step of descent.

    The other arguments are those of `descent_path`. The steps are stable up to an eigenvalue of 2 parts/eta.

    Examples
    --------
    >>> import math
    >>> from simulate.training.stacks import Perceptrons
    >>> stack, one = Perceptrons("linear", "squared error", bias=False), torch.ones(1, 1, 1)
    >>> found = gradient_flow(stack, [one], one, 0 * one, rates=torch.tensor([0.5]), steps=3, parts=500)
    >>> torch.allclose(found.parameters[0, -1, 0], torch.tensor(math.exp(-1.5)), rtol=1e-3)
    True
    """
    parts = _checks.natural("parts", parts)
    fine = descent_path(stack, parameters, inputs, targets, rates=rates / parts, steps=steps * parts)
    return Path(fine.parameters[:, parts - 1 :: parts], fine.losses[:, ::parts])


def central_flow(
    stack: Stack,
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    *,
    rates: Tensor,
    steps: int,
    parts: int,
) -> Flow:
    """Return the path of the central flow with one eigenvalue at the edge, by `parts` steps of Euler for each step.

    Arguments in double precision; otherwise as for `gradient_flow`. S has to be the eigenvalue of the Hessian of the
    largest size, well separated, and the activation smooth.

    Examples
    --------
    Two weights and the loss (u v - 3)^2/2 from (3, 0.1): S ends at 2/eta = 10; gradient flow ends at 10.8.

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, one = Perceptrons("linear", "squared error", bias=False), torch.ones(1, 1, 1).double()
    >>> start, rates = [3 * one, 0.1 * one], torch.tensor([0.2]).double()
    >>> central_flow(stack, start, one, 3 * one, rates=rates, steps=30, parts=8).sharpness[:, -1]
    tensor([10.0000], dtype=torch.float64)
    """
    parts = _checks.natural("parts", parts)
    # a pass is of each network at three points
    samples = torch.cat([inputs] * 3), torch.cat([targets] * 3)
    at = edges.flatten(parameters)
    start = edges.top_eigenvalues(stack, parameters, inputs, targets, steps=_PRODUCTS)
    direction, each = edges.flatten(start.vectors), rates / parts
    moves = torch.tensor([0.0, _STEP, -_STEP]).to(at)[:, None, None]
    seen: list[tuple[Tensor, ...]] = []

    def step(at: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal direction
        losses, gradients = _mean_loss(stack, parameters, *samples, (at + moves * direction).flatten(0, 1))
        gradient, after, before = gradients.view(3, *at.shape)
        product = (after - before) / (2 * _STEP)
        slope = (after + before - 2 * gradient) / _STEP**2
        sharpness = (direction * product).sum(1)
        sharpening, stabilisation = -(gradient * slope).sum(1), slope.square().sum(1)
        # S at the end of this part, to first order, is at 2/eta at most
        excess = (sharpness - 2 / rates) / each + sharpening
        variance = 2 * (excess / stabilisation).clamp_min(0)
        direction = product / product.norm(dim=1, keepdim=True)
        seen.append((direction, sharpness, sharpening, stabilisation))
        return at - each[:, None] * (gradient + variance[:, None] / 2 * slope), losses[: len(at)]

    fine = _path(step, at, rates, steps * parts)
    path = Path(fine.parameters[:, parts - 1 :: parts], fine.losses[:, ::parts])
    return Flow(path, *(torch.stack(values[parts - 1 :: parts], 1) for values in zip(*seen, strict=True)))


def _path(step: Callable[[Tensor], tuple[Tensor, Tensor]], at: Tensor, rates: Tensor, steps: int) -> Path:
    _checks.positive_numbers("rates", rates.cpu().numpy())
    places, losses = list[Tensor](), list[Tensor]()
    for _ in range(_checks.natural("steps", steps)):
        at, before = step(at)
        places.append(at)
        losses.append(before)
    return Path(torch.stack(places, 1), torch.stack(losses, 1))
