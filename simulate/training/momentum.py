"""Optimisers with full gradients on quadratic losses: how fast descent and momentum contract."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Step", "descent_step", "heavy_ball_step", "nesterov_step", "step_contraction"]

Floats = NDArray[np.float64]

Step = Callable[[Floats, Floats, Callable[[Floats], Floats]], Floats]
"""From weights, the weights before them and the gradient as a function to the next weights."""

_SQUARINGS = 48


def descent_step(rate: float) -> Step:
    """Gradient descent."""
    return lambda w, _, gradient: w - rate * gradient(w)


def heavy_ball_step(rate: float, momentum: float) -> Step:
    """Polyak's momentum: the gradient at the weights, the last move added."""
    return lambda w, before, gradient: w - rate * gradient(w) + momentum * (w - before)


def nesterov_step(rate: float, momentum: float) -> Step:
    """Nesterov's momentum: the gradient where the last move would lead."""

    def step(w: Floats, before: Floats, gradient: Callable[[Floats], Floats]) -> Floats:
        ahead = w + momentum * (w - before)
        return ahead - rate * gradient(ahead)

    return step


def step_contraction(step: Step, eigenvalues: Sequence[float]) -> float:
    """Factor by which an optimiser shrinks the error per step in the end, on a quadratic with these eigenvalues.

    From products of 2^48 steps: the step is applied to weights and the weights before them, its matrix squared
    over and over.

    Raises
    ------
    ValueError
        If there is no eigenvalue.

    Examples
    --------
    >>> round(step_contraction(descent_step(0.25), (1.0, 3.0)), 9)
    0.75
    """
    h = np.asarray(eigenvalues, dtype=np.float64)[:, None]
    if not h.size:
        raise ValueError("eigenvalues must be at least one number, got none")
    starts = np.eye(2)
    images = step(starts[:1] + 0 * h, starts[1:] + 0 * h, lambda w: h * w)
    matrices = np.stack([images, np.broadcast_to(starts[0], images.shape)], axis=1)
    logarithm = np.zeros(len(h))
    for _ in range(_SQUARINGS):
        size = np.linalg.norm(matrices, axis=(1, 2))
        alive = size > 0
        logarithm = np.where(alive, 2 * (logarithm + np.log(np.where(alive, size, 1.0))), -math.inf)
        scaled = matrices / np.where(alive, size, 1.0)[:, None, None]
        matrices = scaled @ scaled
    size = np.linalg.norm(matrices, axis=(1, 2))
    with np.errstate(divide="ignore"):
        return float(np.exp((logarithm + np.log(size)) / 2.0**_SQUARINGS).max())
