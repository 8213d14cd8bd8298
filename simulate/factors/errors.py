"""How far an approximate matrix of curvature is from the matrix: relative Frobenius norms, and the top eigenvalue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks
from simulate.eigenvalues import extremes
from simulate.factors.kronecker import KroneckerFactors
from simulate.lanczos import AnyMatrix, Operator, as_operator
from simulate.lanczos.products import Floats, numbers, row_lengths
from simulate.objectives.batches import cuts
from simulate.spectra import Estimate

__all__ = ["FactorErrors", "factor_errors", "relative_error"]

_BLOCK = 16
"""Vectors of one block of products."""


class FactorErrors(NamedTuple):
    """How far Kronecker factors K are from the matrix G that they approximate.

    Attributes
    ----------
    whole
        |G - K| / |G| in Frobenius norms, with what lies between layers.
    layers
        The same of the block of each layer, by the names of its parameters.
    between
        Share of |G|^2 that lies between layers, where no block-diagonal matrix has anything.
    largest
        Largest eigenvalue of K over that of G.
    """

    whole: Estimate
    layers: Mapping[tuple[str, ...], Estimate]
    between: Estimate
    largest: float


def relative_error(
    matrix: AnyMatrix, approximation: AnyMatrix, rng: np.random.Generator, *, probes: int, rows: int = 0
) -> Estimate:
    """|A - B| / |A| in Frobenius norms.

    Parameters
    ----------
    matrix, approximation
        A and B, of one shape, dense or operators.
    rng
        Source of the probes.
    probes
        Vectors of random signs, at least 2; a product of each matrix with each.
    rows
        Matrices of at most so many rows are taken row by row instead: exact, with a standard error of zero.

    Returns
    -------
    The root of the ratio of two means over the same probes, low by about error^2 / (2 value) in the mean; and its
    standard error, to first order.

    Raises
    ------
    ValueError
        If `probes` is below 2, `rows` negative, A vanishes, the shapes differ, or a matrix cannot be used, see
        `lanczos.as_operator`.

    Examples
    --------
    >>> a, b = np.diag([3.0, 4.0]), np.diag([3.0, 0.0])
    >>> relative_error(a, b, np.random.default_rng(0), probes=2, rows=2)
    Estimate(value=0.8, standard_error=0.0)
    """
    operator, other = as_operator(matrix), as_operator(approximation)
    if operator.shape != other.shape:
        raise ValueError(f"approximation must be of shape {operator.shape}, got {other.shape}")
    count = _several(probes)
    if operator.dim <= _checks.natural_or_zero("rows", rows):
        pairs = _units(operator, other)
    else:
        blocks = (_signs(operator, rng, part.stop - part.start) for part in cuts(count, _BLOCK))
        pairs = np.concatenate([_pairs(operator(signs), other(signs)) for signs in blocks])
    return _root(_ratio(pairs[:, 0], pairs[:, 1]))


def factor_errors(
    matrix: Operator,
    factors: KroneckerFactors,
    rng: np.random.Generator,
    *,
    probes: int = 30,
    rows: int = 300,
) -> FactorErrors:
    """Errors of Kronecker factors, whole and layer by layer, against products of the matrix that they approximate.

    Parameters
    ----------
    matrix
        Of the same objective and kind, such as `operators.gauss_newton`; see `cotangents.matrix_of`.
    factors
        By `kfac` or `ekfac`.
    rng
        Source of the probes.
    probes
        At least 2; a product of the matrix with each, for every layer.
    rows
        Layers of at most so many parameters, or a whole network, are taken exactly, row by row.

    Raises
    ------
    ValueError
        As `relative_error`; if the matrix has other parameters than the factors; or a layer of it vanishes.

    Notes
    -----
    A probe of the whole is the sum of its parts in the layers, so that products with these give those with the whole:
    one product for each layer and probe.

    Examples
    --------
    >>> from torch import nn
    >>> from simulate.factors import kfac
    >>> from simulate.objectives import Objective
    >>> from simulate.operators import gauss_newton
    >>> line = nn.Linear(2, 3).double()
    >>> one = Objective(line, nn.MSELoss(), (torch.ones(4, 2).double(), torch.zeros(4, 3).double()))
    >>> found = factor_errors(gauss_newton(one), kfac(one), np.random.default_rng(0))
    >>> round(found.whole.value, 9), found.whole.standard_error, round(found.largest, 9)
    (0.0, 0.0, 1.0)
    """
    if dict(matrix.places) != dict(factors.places):
        raise ValueError("matrix must be of the parameters of the factors, got one with others")
    count, most = _several(probes), _checks.natural_or_zero("rows", rows)
    names = [tuple(block.places) for block in factors.blocks]
    largest = float(factors.eigenvalues()[0]) / float(extremes(matrix, rng).values[0])
    if matrix.dim <= most:
        whole, inside, layers = _dense(matrix, factors)
    else:
        whole, inside, layers = _probed(matrix, factors, rng, count)
        for i, own in enumerate(names):
            if (block := matrix.block(*own)).dim <= most:
                layers[i] = _units(block, factors.block(*own))
    left = _ratio(whole[:, 1] - inside, whole[:, 1])
    errors = [_root(_ratio(pairs[:, 0], pairs[:, 1])) for pairs in layers]
    return FactorErrors(
        _root(_ratio(whole[:, 0], whole[:, 1])),
        dict(zip(names, errors, strict=True)),
        left._replace(value=max(left.value, 0.0)),
        largest,
    )


Pairs = NDArray[np.float64]
"""|(A - B) z|^2 and |A z|^2 of each probe, or their sums over all unit vectors as a single row: (k, 2)."""


def _dense(matrix: Operator, factors: KroneckerFactors) -> tuple[Pairs, Floats, list[Pairs]]:
    whole, own = matrix.dense(), factors.dense()
    layers, inside = list[Pairs](), 0.0
    for block in factors.blocks:
        at = torch.cat([torch.arange(p.start, p.stop) for p in block.places.values()])
        layers.append(_pairs(whole[at][:, at], own[at][:, at]).sum(0, keepdims=True))
        inside += layers[-1][0, 1]
    return _pairs(whole, own).sum(0, keepdims=True), np.array([inside]), layers


def _probed(
    matrix: Operator, factors: KroneckerFactors, rng: np.random.Generator, count: int
) -> tuple[Pairs, Floats, list[Pairs]]:
    whole, inside = list[Pairs](), list[Floats]()
    layers: list[list[Pairs]] = [[] for _ in factors.blocks]
    for part in cuts(count, _BLOCK):
        signs = _signs(matrix, rng, part.stop - part.start)
        nearly, total, squares = factors(signs), torch.zeros_like(signs), np.zeros(len(signs))
        for block, found in zip(factors.blocks, layers, strict=True):
            at = list(block.places.values())
            only = torch.zeros_like(signs)
            for place in at:
                only[:, place] = signs[:, place]
            products = matrix(only)
            total += products
            found.append(_pairs(_at(products, at), _at(nearly, at)))
            squares += found[-1][:, 1]
        whole.append(_pairs(total, nearly))
        inside.append(squares)
    return np.concatenate(whole), np.concatenate(inside), [np.concatenate(found) for found in layers]


def _at(rows: Tensor, places: Sequence[slice]) -> Tensor:
    return torch.cat([rows[:, at] for at in places], dim=1)


def _units(matrix: Operator, approximation: Operator) -> Pairs:
    """Of all unit vectors, added up."""
    total = np.zeros((1, 2))
    for units in torch.eye(matrix.dim, dtype=matrix.dtype, device=matrix.device).split(_BLOCK):
        total += _pairs(matrix(units), approximation(units)).sum(0)
    return total


def _pairs(products: Tensor, nearly: Tensor) -> Pairs:
    lengths = [row_lengths(rows.double()).square() for rows in (products - nearly, products)]
    return numbers(torch.stack(lengths, dim=1))


def _signs(operator: Operator, rng: np.random.Generator, count: int) -> Tensor:
    return operator.vectors(2.0 * rng.integers(0, 2, (count, operator.dim)) - 1.0)


def _several(probes: int) -> int:
    if _checks.natural("probes", probes) < 2:
        raise ValueError(f"probes must be at least 2, which give an error, got {probes}")
    return int(probes)


def _ratio(above: Floats, below: Floats) -> Estimate:
    """Of two means over the same probes; exact of single numbers."""
    if not below.mean() > 0:
        raise ValueError("matrix must not vanish where errors are relative to it, got zero")
    value = above.mean() / below.mean()
    count = len(above)
    error = (above - value * below).std(ddof=1) / below.mean() / math.sqrt(count) if count > 1 else 0.0
    return Estimate(float(value), float(error))


def _root(square: Estimate) -> Estimate:
    root = math.sqrt(square.value)
    return Estimate(root, square.standard_error / (2 * root) if root else 0.0)
