"""Populations of samples with all batches that can be drawn from them, and nested means of Gaussian samples.

A population is an array with the samples along its first axis. Sums are exact for whole numbers, as far as 64 bits
hold them, and for rationals (``fractions.Fraction`` in an object array).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate._checks import Floats
from simulate.monte_carlo import Block


def every_batch(dataset_size: int, batch_size: int) -> NDArray[np.intp]:
    """Every set of B of the N samples of a data set, once, as indices: (N choose B, B).

    Examples
    --------
    >>> every_batch(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    rows = itertools.combinations(range(dataset_size), batch_size)
    return np.fromiter(itertools.chain.from_iterable(rows), dtype=np.intp).reshape(-1, batch_size)


def batch_sums(population: NDArray[Any], batch_size: int) -> NDArray[Any]:
    """Sum of the samples of every batch, in the order of `every_batch`: (N, ...) -> (batches, ...).

    Examples
    --------
    >>> batch_sums(np.array([1, 10, 100]), 2).tolist()
    [11, 101, 110]
    """
    if population.dtype.kind in "biu" and population.itemsize < 8:  # sums of short integers wrap around
        population = population.astype(np.int64)
    chosen = every_batch(len(population), batch_size)
    sums = population[chosen[:, 0]]
    for column in chosen.T[1:]:
        sums = sums + population[column]
    return sums


def symmetric_matrices(rng: np.random.Generator, dataset_size: int, dim: int) -> Floats:
    """Independent Gaussian symmetric matrices: variance 1/2 off the diagonal and 1 on it, shape (N, dim, dim)."""
    factors = rng.standard_normal((dataset_size, dim, dim))
    return (factors + factors.swapaxes(1, 2)) / 2


def definite_matrices(rng: np.random.Generator, dataset_size: int, dim: int, *, least: float) -> Floats:
    """A A^T / dim + `least` for Gaussian A, so that no eigenvalue is below `least`: shape (N, dim, dim)."""
    factors = rng.standard_normal((dataset_size, dim, dim))
    return factors @ factors.swapaxes(1, 2) / dim + least * np.eye(dim)


def nested_means(block: Block, dim: int, sizes: Sequence[int]) -> Tensor:
    """Means of the first few of many independent Gaussian matrices, each mean within the next.

    One sample has variance 1 off the diagonal and 2 on it. The samples between two sizes are drawn as their sum,
    which is Gaussian again, so any size costs one matrix.

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    dim
        Rows of each matrix.
    sizes
        Numbers of samples, growing.

    Returns
    -------
    Shape (n, len(sizes), dim, dim).

    Raises
    ------
    ValueError
        If the sizes are not growing.
    """
    steps = torch.tensor([b - a for a, b in pairwise([0, *sizes])], dtype=torch.float64, device=block.device)
    if not bool((steps > 0).all()):
        raise ValueError(f"sizes must be growing positive integers, got {tuple(sizes)}")
    # added to its transpose, this has the variance of `steps` samples off the diagonal, and twice that on it
    half = block.normal(len(sizes), dim, dim) * (steps / 2).sqrt()[:, None, None]
    return (half + half.mT).cumsum(dim=1) / steps.cumsum(dim=0)[:, None, None]
