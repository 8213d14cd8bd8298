"""Full-batch descent with Gaussian noise in place of batches, for a stack of networks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simulate import _checks
from simulate.training.edges import flatten, shaped_like
from simulate.training.stacks import Parameters, Stack


def noisy_descent(
    stack: Stack,
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    *,
    streams: Sequence[np.random.Generator],
    rate: float,
    batch_size: int,
    steps: int,
    isotropic: bool = False,
) -> list[Tensor]:
    """Return parameters after steps along the gradient of all samples plus noise of the size of that of batches.

    The noise is normal with the covariance, at the current parameters, of the gradient of a batch without replacement.

    Parameters
    ----------
    stack, parameters, inputs, targets
        n networks, each on its own N samples, (n, N, ...); the parameters are not changed.
    streams
        One generator for each network.
    rate
        Learning rate, positive.
    batch_size
        Size of the batches whose noise is drawn, at most N, where there is none.
    steps
        Number of steps, at least 1.
    isotropic
        Whether the noise of each step is turned to a direction that is uniform among all, at its length.

    Raises
    ------
    ValueError
        If the rate is not positive, or a number is out of its domain.

    Examples
    --------
    Without noise, the weight goes half of the way to the slope 1:

    >>> from simulate.training.stacks import Perceptrons
    >>> stack, weights = Perceptrons("relu", "squared error", bias=False), [torch.zeros(1, 1, 1)]
    >>> x = torch.ones(1, 2, 1)
    >>> noisy_descent(stack, weights, x, x, streams=[np.random.default_rng(0)], rate=0.5, batch_size=2, steps=1)
    [tensor([[[0.5000]]])]
    """
    _checks.positive_numbers("rate", rate)
    samples = inputs.shape[1]
    if not _checks.natural("batch_size", batch_size) <= samples:
        raise ValueError(f"batch_size must be at most the {samples} samples there are, got {batch_size}")
    # with weights of this deviation, less their mean, the covariance is S (1/B - 1/N), of divisor N - 1
    scale = math.sqrt((1 / batch_size - 1 / samples) / max(samples - 1, 1)) * samples
    own = [p.detach().clone() for p in parameters]

    def normal(count: int) -> Tensor:
        return torch.from_numpy(np.stack([rng.standard_normal(count) for rng in streams])).to(own[0])

    for _ in range(_checks.natural("steps", steps)):
        drawn = normal(samples)
        weights = scale * (drawn - drawn.mean(1, keepdim=True))
        with torch.enable_grad():
            at = [p.detach().requires_grad_() for p in own]
            losses = (weights * stack.losses(stack.outputs(at, inputs), targets)).mean(1)
            noise = flatten(torch.autograd.grad(losses.sum(), at))
        if isotropic:
            turned = normal(noise.shape[1])
            noise = turned * (noise.norm(dim=1, keepdim=True) / turned.norm(dim=1, keepdim=True))
        _, slopes = stack.losses_and_gradients(own, inputs, targets)
        for p, slope, part in zip(own, slopes, shaped_like(noise, own), strict=True):
            p.sub_(rate * (slope + part))
    return own
