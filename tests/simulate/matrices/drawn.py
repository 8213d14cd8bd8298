"""Blocks to draw in, and what is expected of their means."""

import math

from torch import Tensor

from simulate.monte_carlo import Block, Point, stream

MODEL = {"classes": 3, "dim": 6, "samples": 4, "sigma_c": 0.7, "sigma_e": 1.3}


def block_of(count: int = 16, *, seed: int = 0, device: str = "cpu") -> Block:
    return Block(tuple(stream(seed, "test", Point(), i) for i in range(count)), device)


def assert_mean(draws: Tensor, exact: float) -> None:
    """The mean of independent draws, within five standard errors of its exact value."""
    error = draws.std() / math.sqrt(draws.numel())
    assert abs(draws.mean() - exact) <= 5 * error + 1e-14
