"""Populations of samples with all batches that can be drawn from them, and nested means of Gaussian samples.

A population is an array with the samples along its first axis. Sums are exact for whole numbers, as far as 64 bits
hold them, and for rationals (``fractions.Fraction`` in an object array).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate.monte_carlo import Block

__all__ = ["batch_sums", "definite_matrices", "every_batch", "nested_means", "redrawn", "symmetric_matrices"]

_COUNTED = 64
"""Binary digits of a number of batches beyond which nothing is counted: no memory holds them."""


def every_batch(dataset_size: int, batch_size: int, *, replace: bool = False) -> NDArray[np.intp]:
    """Every batch of a data set, as indices.

    Parameters
    ----------
    dataset_size, batch_size
        Samples N of the data set and B of a batch.
    replace
        False: every set of B different samples, once. True: every sequence of B draws, a sample any number of times.

    Returns
    -------
    Shape (N choose B, B), or (N^B, B) with replacement; all rows equally likely.

    Raises
    ------
    ValueError
        If a size is not positive, B exceeds N without replacement, or the batches do not fit into memory.

    Examples
    --------
    >>> every_batch(3, 2).tolist(), len(every_batch(3, 2, replace=True))
    ([[0, 1], [0, 2], [1, 2]], 9)
    """
    total, size = _checks.natural("dataset_size", dataset_size), _checks.natural("batch_size", batch_size)
    if not replace and size > total:
        raise ValueError(f"batch_size must be at most dataset_size = {total}, got {size}")
    count = _number(total, size, replace=replace)
    _memory.require_free("batch_size", 16 * size * count, f"all batches of {size} of {total} samples")
    rows = (
        itertools.product(range(total), repeat=size)
        if replace
        else itertools.combinations(range(total), size)
    )
    flat = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.intp, count=size * count)
    return flat.reshape(count, size)


def batch_sums(population: NDArray[Any], batch_size: int, *, replace: bool = False) -> NDArray[Any]:
    """Sum of the samples of every batch, in the order of `every_batch`: (N, ...) -> (batches, ...).

    Raises
    ------
    ValueError
        As `every_batch`, and if the population has no samples or does not hold numbers, or the sums do not fit into
        memory.

    Examples
    --------
    >>> batch_sums(np.array([1, 10, 100]), 2).tolist()
    [11, 101, 110]
    """
    population = np.asarray(population)
    if population.ndim == 0 or len(population) == 0:
        raise ValueError(f"population must have samples along its first axis, got shape {population.shape}")
    if population.dtype.kind not in "biufcO":
        raise ValueError(f"population must hold numbers, got {population.dtype}")
    if population.dtype.kind in "biu" and population.itemsize < 8:  # sums of short integers wrap around
        population = population.astype(np.int64)
    chosen = every_batch(len(population), batch_size, replace=replace)
    _memory.require_free(
        "population", 2 * len(chosen) * population[:1].nbytes, f"sums of {len(chosen)} batches"
    )
    sums = population[chosen[:, 0]]
    for column in chosen.T[1:]:
        sums = sums + population[column]
    return sums


def redrawn(values: NDArray[Any], dataset_size: int) -> NDArray[Any]:
    """Every population of independent draws from equally likely values: (K,) -> (K^N, N).

    Raises
    ------
    ValueError
        If there are no values, or as `every_batch`.

    Examples
    --------
    >>> redrawn(np.array([-1, 1]), 2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    values = np.asarray(values)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"values must be a list of at least one number, got shape {values.shape}")
    return values[every_batch(len(values), dataset_size, replace=True)]


def symmetric_matrices(rng: np.random.Generator, dataset_size: int, dim: int) -> NDArray[np.float64]:
    """Independent Gaussian symmetric matrices: variance 1/2 off the diagonal and 1 on it, shape (N, dim, dim).

    Raises
    ------
    ValueError
        If a size is not positive, or the matrices do not fit into memory.
    """
    factors = _factors(rng, dataset_size, dim)
    return (factors + factors.swapaxes(1, 2)) / 2


def definite_matrices(
    rng: np.random.Generator, dataset_size: int, dim: int, *, least: float
) -> NDArray[np.float64]:
    """A A^T / dim + `least` for Gaussian A, so that no eigenvalue is below `least`: shape (N, dim, dim).

    Raises
    ------
    ValueError
        If a size is not positive or `least` not a positive number, or the matrices do not fit into memory.
    """
    if np.ndim(least) != 0:
        raise ValueError(f"least must be one number, got {least}")
    floor = float(_checks.positive_numbers("least", least))
    factors = _factors(rng, dataset_size, dim)
    return factors @ factors.swapaxes(1, 2) / dim + floor * np.eye(dim)


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
        If `dim` is not positive, the sizes are not growing positive integers, or the matrices do not fit into memory.
    """
    dim = _checks.natural("dim", dim)
    counts = [_checks.natural("sizes", size) for size in sizes]
    if not counts or any(b <= a for a, b in pairwise(counts)):
        raise ValueError(f"sizes must be growing positive integers, got {tuple(sizes)}")
    what = f"{len(block)} replicates of {len(counts)} matrices of {dim} x {dim}"
    _memory.require_free("dim and sizes", 40 * len(block) * len(counts) * dim**2, what)
    steps = torch.tensor([b - a for a, b in pairwise([0, *counts])], dtype=torch.float64, device=block.device)
    half = block.normal(len(counts), dim, dim) * (steps / 2).sqrt()[:, None, None]
    return (half + half.mT).cumsum(dim=1) / steps.cumsum(dim=0)[:, None, None]


def _number(total: int, size: int, *, replace: bool) -> int:
    """How many batches there are; from some 2^64 on only that they are too many."""
    small = total if replace else min(size, total - size)
    digits = size * math.log2(total) if replace else small * math.log2(total / max(small, 1))  # from below
    if digits > _COUNTED:
        return 1 << _COUNTED
    return total**size if replace else math.comb(total, size)


def _factors(rng: np.random.Generator, dataset_size: int, dim: int) -> NDArray[np.float64]:
    total, dim = _checks.natural("dataset_size", dataset_size), _checks.natural("dim", dim)
    _memory.require_free("dim and dataset_size", 32 * total * dim**2, f"{total} matrices of {dim} x {dim}")
    return rng.standard_normal((total, dim, dim))
