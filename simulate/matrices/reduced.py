"""Extreme eigenvalues of spiked random matrices, from a smaller matrix that has them: any size in a millisecond.

Reflections that leave the direction of the spike alone make a Gaussian matrix tridiagonal, with independent entries of
known laws; the spike stays in the first one. An extreme eigenvector lives on the first rows, as many as a few times
the cube root of the size, and has died out to rounding where the rest begins: only these are drawn. Of a sum of a few
projections the part inside their span is drawn. Nothing is approximated but what rounding loses.

| function | matrix | drawn |
|---|---|---|
| `wigner_extreme` | theta u u' + W, W symmetric with off-diagonal variance 1/dim | first rows, tridiagonal |
| `wigner_outliers` | the same with several directions | first rows, a band as wide as there are spikes |
| `additive_wishart_top` | theta u u' + X X'/n, X dim x n standard normal | first rows, tridiagonal |
| `information_plus_noise_top` | (J + X/sqrt n)(J + X/sqrt n)', J J' = theta u u' | the same |
| `spiked_covariance_top` | covariance of n samples of N(0, I + theta u u') | the same |
| `signed_projections_top` | theta u u' + a sum of projections +-v v' | their triangular factor |

References
----------
Dumitriu and Edelman (2002), Matrix models for beta ensembles; Bloemendal and Virag (2013, 2016), Limits of spiked
random matrices I and II, for one spike and for several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from simulate._checks import Floats
from simulate.matrices.ensembles import edge_rows, eigenpair, first_rows, top_eigenpair
from simulate.monte_carlo import Block

# An outlier falls off by the factor 1/spike from one row of blocks to the next: 1.4^-80 is 2e-12.
_NEAREST, _BLOCK_ROWS = 1.4, 80

Strength = float | Sequence[float] | Floats
"""Strength of the spike: one number, or one for each replicate."""


class Extreme(NamedTuple):
    """Extreme eigenvalue of each replicate and squared overlap of its eigenvector with the spike: both (n,)."""

    eigenvalue: Tensor
    overlap: Tensor


def wigner_extreme(block: Block, dim: int, *, spike: Strength, bottom: bool = False) -> Extreme:
    """Largest (at the `bottom`: smallest) eigenvalue of a Gaussian Wigner matrix (GOE) with a spike.

    Parameters
    ----------
    block
        Streams to draw from, and the device of what is returned.
    dim
        Rows of the matrix; entries off its diagonal have variance 1/dim.
    spike
        Eigenvalue of the added matrix of rank one, either sign, one number or one for each replicate.
    bottom
        Look at the smallest eigenvalue.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> top = wigner_extreme(Block((fixture(0, "a"),)), 10**6, spike=2.5)
    >>> round(float(top.eigenvalue), 2), round(float(top.overlap), 2)
    (2.9, 0.84)
    """
    return _extreme(block, spike, lambda rng, theta: first_rows(rng, dim, theta), bottom=bottom)


def wigner_outliers(block: Block, dim: int, *, spikes: Sequence[float]) -> Extreme:
    """Outliers of a Gaussian Wigner matrix with several spikes in orthogonal directions, each with its own spike.

    The matrix is reduced to a band as wide as there are spikes. The j-th largest eigenvalue belongs to the j-th
    largest of the positive spikes, the j-th smallest to the j-th smallest of the negative ones.

    Parameters
    ----------
    block, dim
        As in `wigner_extreme`.
    spikes
        Different numbers, each at least 1.4 in size: eigenvectors nearer to the threshold, 1, reach beyond the rows.

    Returns
    -------
    Eigenvalues and squared overlaps in the order of `spikes`, both of shape (n, len(spikes)).

    Raises
    ------
    ValueError
        If `spikes` is not as said.
    """
    values = np.asarray(spikes, dtype=np.float64)
    if len(set(values.tolist())) < values.size or not (np.abs(values) >= _NEAREST).all():
        raise ValueError(f"spikes must be different, and at least {_NEAREST} in size, got {spikes}")
    found = [_outliers(_band(rng, dim, values), values) for rng in block.streams]
    eigenvalues, overlaps = (torch.from_numpy(np.array(part)) for part in zip(*found, strict=True))
    return Extreme(eigenvalues.to(block.device), overlaps.to(block.device))


def additive_wishart_top(block: Block, dim: int, samples: int, *, spike: Strength) -> Extreme:
    """Largest eigenvalue of a Wishart matrix of unit variance plus a spike.

    Parameters
    ----------
    block, dim
        As in `wigner_extreme`.
    samples
        Columns n of the noise.
    spike
        Eigenvalue of the added matrix, >= 0, one number or one for each replicate.
    """
    return _wishart(block, dim, samples, spike, lambda rng, _: rng.chisquare(samples), added=True)


def information_plus_noise_top(block: Block, dim: int, samples: int, *, spike: Strength) -> Extreme:
    """Largest eigenvalue of the square of a matrix of rank one plus noise: arguments as in `additive_wishart_top`.

    `spike` is the eigenvalue of J J'; an element of the noise has variance 1/samples.
    """
    return _wishart(
        block, dim, samples, spike, lambda rng, theta: rng.noncentral_chisquare(samples, samples * theta)
    )


def spiked_covariance_top(block: Block, dim: int, samples: int, *, spike: Strength) -> Extreme:
    """Largest eigenvalue of the covariance of normal samples, of variance 1 + `spike` in one direction and 1 else.

    Arguments as in `additive_wishart_top`.
    """
    return _wishart(block, dim, samples, spike, lambda rng, theta: (1 + theta) * rng.chisquare(samples))


def signed_projections_top(
    block: Block, dim: int, *, samples: int, rank: int, spike: Strength, scale: float = 1.0
) -> Extreme:
    """Largest eigenvalue of a spike plus `scale` times the matrices of `simulate.matrices.noise.signed_projections`.

    Parameters
    ----------
    block, dim
        As in `wigner_extreme`.
    samples, rank
        The matrix is an average over `samples`, each with `rank` projections; more dimensions than projections.
    spike
        Eigenvalue of the added matrix, positive, one number or one for each replicate.
    scale
        Eigenvalue of the projections, either sign.

    Raises
    ------
    ValueError
        If there are not more dimensions than projections.
    """
    terms = samples * rank
    if dim <= terms:
        raise ValueError(f"dim must be more than samples times rank, got {dim} for {terms} projections")
    spikes = torch.from_numpy(np.full(len(block), spike, dtype=np.float64)).to(block.device)
    factor = block.stack(lambda rng: _triangular(rng, dim, terms + 1))
    signs = block.stack(lambda rng: 2.0 * rng.integers(0, 2, terms) - 1)
    weights = torch.cat([spikes[:, None], signs * (scale / samples)], dim=1)
    values, vectors = top_eigenpair((factor * weights[:, None]) @ factor.mT)
    # the first axis of the triangular factor is the direction of the spike
    return Extreme(values, vectors[:, 0].square())


def _triangular(rng: np.random.Generator, dim: int, count: int) -> Floats:
    """Draw uniform unit vectors, as columns in the basis of their own QR decomposition."""
    factor = np.triu(rng.standard_normal((count, count)), 1)
    factor[np.diag_indices(count)] = np.sqrt(rng.chisquare(dim - np.arange(count)))
    return factor / np.linalg.norm(factor, axis=0)


def _wishart(
    block: Block,
    dim: int,
    samples: int,
    spike: Strength,
    first: Callable[[np.random.Generator, float], float],
    *,
    added: bool = False,
) -> Extreme:
    """Compute extremes from the lower bidiagonal factor, whose first entry is the length of the noise's first row."""
    # beyond, the chi-squares along the diagonal have no degree of freedom left
    rows = min(edge_rows(dim, min(dim, samples)), samples + 1)

    def draw(rng: np.random.Generator, theta: float) -> tuple[Floats, Floats]:
        along = np.concatenate([[first(rng, theta)], _chi_squares(rng, samples - np.arange(1.0, rows))])
        off_diagonal = _chi_squares(rng, dim - np.arange(1.0, rows))
        diagonal = (along + np.concatenate([[0.0], off_diagonal])) / samples
        diagonal[0] += theta if added else 0.0
        return diagonal, np.sqrt(along[:-1] * off_diagonal) / samples

    return _extreme(block, spike, draw)


def _extreme(
    block: Block,
    spike: Strength,
    draw: Callable[[np.random.Generator, float], tuple[Floats, Floats]],
    *,
    bottom: bool = False,
) -> Extreme:
    spikes = np.full(len(block), spike, dtype=np.float64).tolist()
    drawn = [draw(rng, theta) for rng, theta in zip(block.streams, spikes, strict=True)]
    pairs = [eigenpair(*rows, 0 if bottom else len(rows[1])) for rows in drawn]
    values, overlaps = torch.tensor(pairs, dtype=torch.float64, device=block.device).unbind(dim=1)
    return Extreme(values, overlaps)


def _band(rng: np.random.Generator, dim: int, spikes: Floats) -> Floats:
    """Draw the first rows of the matrix in lower banded form: row k holds the k-th diagonal."""
    width = spikes.size
    rows = min(dim, _BLOCK_ROWS * width)
    band = np.zeros((width + 1, rows))
    band[0] = rng.standard_normal(rows) * math.sqrt(2 / dim)
    band[0, :width] += spikes
    for k in range(1, width):
        band[k, : rows - k] = rng.standard_normal(rows - k) / math.sqrt(dim)
    if rows > width:
        degrees = dim - width - np.arange(rows - width)
        band[width, : rows - width] = np.sqrt(rng.chisquare(degrees) / dim)
    return band


def _outliers(band: Floats, spikes: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues at both ends and their overlaps with the first unit vectors."""
    values, overlaps = np.empty(spikes.size), np.empty(spikes.size)
    rows = band.shape[1]
    # eigenvalues come in ascending order, so the spikes are matched in that order
    order = np.argsort(spikes)
    below = int((spikes < 0).sum())
    for which, ends in (
        (order[:below], (0, below - 1)),
        (order[below:], (rows - spikes.size + below, rows - 1)),
    ):
        if which.size:
            found = scipy.linalg.eig_banded(band, lower=True, select="i", select_range=ends)
            values[which] = found[0]
            overlaps[which] = found[1][which, np.arange(which.size)] ** 2
    return values, overlaps


def _chi_squares(rng: np.random.Generator, degrees: Floats) -> Floats:
    """Draw chi-squares, 0 for no degree of freedom, which the generator's own chi-square refuses."""
    return 2 * rng.standard_gamma(degrees / 2)
