"""Formulas and simulations for tests of `check`, at the top level so that other processes can load them."""

import math
from typing import Any

import numpy as np


def harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def largest(rng: np.random.Generator, n: int) -> float:
    return rng.exponential(size=n).max()


def many_largest(rng: np.random.Generator, size: int, n: int) -> np.ndarray:
    return rng.exponential(size=(size, n)).max(axis=1)


def logarithm(n: int) -> float:
    return math.log(n)


def normal(rng: np.random.Generator, size: int = 0, mean: Any = 1.0, sd: float = 0.1) -> Any:
    """One replicate, or several with `size`."""
    shape = np.shape(mean)
    return mean + sd * rng.standard_normal((size, *shape) if size else shape or None)


def constant(mean: Any = 1.0, sd: float = 0.1) -> Any:
    return mean
