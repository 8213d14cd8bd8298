"""Symmetric noise other than Gaussian: heavy tails, few entries, uneven variances, averages of signed projections.

Entries on and above the diagonal are independent, of mean 0 and, on average, of variance 1/dim. A block of replicates
is one stacked tensor, whose leading axis is ``n``; every draw comes from the streams of the block, on the CPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate.matrices.ensembles import symmetric
from simulate.monte_carlo import Block


def student(block: Block, dim: int, *, degrees: float) -> Tensor:
    """Symmetric matrices with entries from Student's t law: shape (n, dim, dim).

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    dim
        Rows of each matrix.
    degrees
        Degrees of freedom, more than 2; moments of this order and above are infinite.

    Raises
    ------
    ValueError
        If `degrees` is not finite or at most 2, `dim` is not positive, or the matrices do not fit into memory.
    """
    if not 2 < degrees < math.inf:
        raise ValueError(f"degrees must be finite and more than 2, got {degrees!r}")
    scale = math.sqrt(1 - 2 / degrees)  # of variance 1
    return symmetric(block, dim, lambda rng, size: scale * rng.standard_t(degrees, size))


def sparse(block: Block, dim: int, *, per_row: float) -> Tensor:
    """Symmetric matrices of signs 1/sqrt(per_row) among zeros: shape (n, dim, dim).

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    dim
        Rows of each matrix.
    per_row
        Mean number of entries in a row that are not zero, positive and at most `dim`.

    Raises
    ------
    ValueError
        If `per_row` is not in that range, `dim` is not positive, or the matrices do not fit into memory.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> w = sparse(Block((fixture(0, "a"),)), 50, per_row=4)
    >>> w.abs().unique().tolist()
    [0.0, 0.5]
    """
    if not 0 < per_row <= dim:
        raise ValueError(f"per_row must be positive and at most dim, got {per_row!r} of {dim}")
    share = per_row / (2 * dim)  # of either sign

    def draw(rng: np.random.Generator, size: int) -> NDArray[Any]:
        u = rng.random(size)
        return ((u < share) - 1.0 * (u >= 1 - share)) / math.sqrt(2 * share)

    return symmetric(block, dim, draw)


def profiled(block: Block, profile: Tensor) -> Tensor:
    """Gaussian matrices whose entries have the variances profile/dim, on the diagonal too: shape (n, dim, dim)."""
    noise = symmetric(block, len(profile), lambda rng, size: rng.standard_normal(size))
    return noise * profile.sqrt().to(noise.device)


def blocked_profile(dim: int, *, contrast: float) -> Tensor:
    """Variances v_i v_j, v = 1 + contrast in the first half of the rows, 1 - contrast in the second: (dim, dim).

    Examples
    --------
    >>> blocked_profile(4, contrast=0.5)[0].tolist()
    [2.25, 2.25, 0.75, 0.75]
    """
    first = torch.arange(dim) < dim // 2
    level = 1 + contrast * (2.0 * first.double() - 1)
    return level[:, None] * level / level.mean() ** 2


def banded_profile(dim: int, *, contrast: float) -> Tensor:
    """Variances in proportion 1 + contrast to 1 - contrast near and far from the diagonal: (dim, dim).

    Distances are periodic, so that all rows have the same sum; the mean is 1.

    Examples
    --------
    >>> banded_profile(6, contrast=0.5)[0].tolist()
    [1.5, 1.5, 0.5, 0.5, 0.5, 1.5]
    """
    rows = torch.arange(dim)
    apart = (rows[:, None] - rows).abs()
    near = 4 * torch.minimum(apart, dim - apart) < dim
    level = 1 + contrast * (2.0 * near.double() - 1)
    return level / level.mean()


def signed_projections(block: Block, dim: int, *, samples: int, rank: int) -> Tensor:
    """Average over samples of the sum of `rank` projections +-u u' on uniform directions: shape (n, dim, dim)."""
    terms = samples * rank
    directions = torch.nn.functional.normalize(block.normal(dim, terms), dim=1)
    signs = block.stack(lambda rng: 2.0 * rng.integers(0, 2, terms) - 1)
    return (directions * signs[:, None]) @ directions.mT / samples
