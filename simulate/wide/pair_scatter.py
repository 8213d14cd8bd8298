"""Variance of the part of a Gram entry that depends on both samples, after a fit of rows and columns.

For random samples an entry K(s, t), s != t, is the sum of a constant, a function of s, a function of t, and a rest with
mean zero given either sample. Centring over the samples leaves the rest as their number grows. Here its variance is
estimated without bias for any number of samples, from residuals of a least-squares fit of rows and columns. The
symmetric and the antisymmetric part of K are fitted separately, as they have different degrees of freedom.
"""

from __future__ import annotations

import torch
from torch import Tensor

_FEWEST = 4
"""Least number of samples; with fewer, rows and columns fit everything."""


def pair_variance(entries: Tensor) -> Tensor:
    """Estimate the variance of the off-diagonal entries of (..., T, T) without row and column effects, unbiased.

    Raises
    ------
    ValueError
        If there are fewer than four samples.

    Examples
    --------
    >>> rows = torch.arange(5.0)
    >>> pair_variance(3 + rows[:, None] + 2 * rows).item()
    0.0
    """
    samples = entries.shape[-1]
    if samples < _FEWEST:
        raise ValueError(f"samples must be at least {_FEWEST}, got {samples}")
    off = entries - torch.diag_embed(entries.diagonal(dim1=-2, dim2=-1))
    even, odd = _even_residual((off + off.mT) / 2), _odd_residual((off - off.mT) / 2)
    # pairs less fitted effects, T (T-1)/2 - T and T (T-1)/2 - (T-1); twice, since a pair is in both triangles
    even_freedom, odd_freedom = samples * (samples - 3), (samples - 1) * (samples - 2)
    return even.square().sum((-2, -1)) / even_freedom + odd.square().sum((-2, -1)) / odd_freedom


def _even_residual(entries: Tensor) -> Tensor:
    """Subtract the best fit a_s + a_t, off the diagonal."""
    samples = entries.shape[-1]
    rows = entries.sum(-1)
    effect = (rows - rows.sum(-1, keepdim=True) / (2 * (samples - 1))) / (samples - 2)
    rest = entries - effect[..., None] - effect[..., None, :]
    return rest - torch.diag_embed(rest.diagonal(dim1=-2, dim2=-1))


def _odd_residual(entries: Tensor) -> Tensor:
    """Subtract the best fit a_s - a_t."""
    effect = entries.mean(-1)
    return entries - effect[..., None] + effect[..., None, :]
