"""Errors of approximate curvature matrices: relative Frobenius norms, and the largest eigenvalue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from simulate import _checks
from simulate._checks import Floats
from simulate.eigenvalues import extremes
from simulate.factors.kronecker import KroneckerFactors
from simulate.lanczos import Operator
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.probes import probe_count, random_signs
from simulate.lanczos.products import rows_at
from simulate.lanczos.rows import numbers, row_lengths, unit_of
from simulate.objectives.batches import cuts
from simulate.results import Columns, Result, draw_bars
from simulate.spectra import Estimate, root_of_estimate

if TYPE_CHECKING:
    from simulate.results import Axes

_BLOCK = 16
"""Number of vectors in one block of products."""


@dataclass(frozen=True, repr=False)
class FactorErrors(Result):
    """Errors of Kronecker factors K of a matrix G.

    Attributes
    ----------
    whole
        |G - K| / |G| in Frobenius norms, blocks between layers included.
    layers
        The same for the block of each layer, by the names of its parameters.
    between
        Share of |G|^2 in blocks between layers, which are zero in every block-diagonal matrix.
    largest
        Largest eigenvalue of K divided by that of G.
    """

    whole: Estimate
    layers: Mapping[tuple[str, ...], Estimate]
    between: Estimate
    largest: float

    def _headline(self) -> str:
        whole, error = self.whole
        between = f"{100 * self.between.value:.3g} % of |G|^2 lies between layers"
        return f"|G - K| / |G| = {whole:.4g} +- {error:.2g} in all; {between}; lambda_1 {self.largest:.4g} of G's"

    def _columns(self) -> Columns:
        each = [self.whole, *self.layers.values()]
        return {
            "layer": ["whole", *(", ".join(names) for names in self.layers)],
            "|G - K| / |G|": [found.value for found in each],
            "standard error": [found.standard_error for found in each],
        }

    def _draw(self, axes: Axes) -> None:
        draw_bars(axes, *self._columns().values())
        axes.set(title="|G - K| / |G| in Frobenius norms")

    def _inches(self) -> tuple[float, float]:
        return 5.2, 1.1 + 0.22 * len(self.layers)


@overload
def factor_errors(
    matrix: Operator,
    factors: KroneckerFactors,
    seed: _checks.Seed = 0,
    *,
    probes: int = 30,
    rows: int = 300,
) -> FactorErrors: ...


@overload
def factor_errors(
    matrix: Operator,
    factors: Sequence[KroneckerFactors],
    seed: _checks.Seed = 0,
    *,
    probes: int = 30,
    rows: int = 300,
) -> list[FactorErrors]: ...


def factor_errors(
    matrix: Operator,
    factors: KroneckerFactors | Sequence[KroneckerFactors],
    seed: _checks.Seed = 0,
    *,
    probes: int = 30,
    rows: int = 300,
) -> FactorErrors | list[FactorErrors]:
    """Estimate the errors of Kronecker factors, whole and layer by layer, from products with the exact matrix.

    Parameters
    ----------
    matrix
        Of the same objective and kind, such as `operators.gauss_newton`.
    factors
        By `kfac` or `ekfac`; or several such, which share the probes and all products of the matrix.
    seed
        Of the probes: an integer, or a numpy generator.
    probes
        At least 2; a product of the matrix with each, for every layer.
    rows
        Layers of at most so many parameters, or a whole network, are taken exactly, row by row.

    Returns
    -------
    Roots of ratios of two means over the same probes, each low by about error^2 / (2 value) in the mean, and their
    standard errors, to first order. Of each of several what it has alone, from a generator in the same state.

    Raises
    ------
    ValueError
        If `probes` is below 2, `rows` negative, the matrix or a layer of it vanishes, it has other parameters than the
        factors, several of these have other layers than the first, or there are none.

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
    >>> one = Objective(line, (torch.ones(4, 2).double(), torch.zeros(4, 3).double()), nn.MSELoss())
    >>> found = factor_errors(gauss_newton(one), kfac(one))
    >>> round(found.whole.value, 9), found.whole.standard_error, round(found.largest, 9)
    (0.0, 0.0, 1.0)
    """
    with in_full_precision():
        several = [factors] if isinstance(factors, KroneckerFactors) else list(factors)
        names = _layers_of(matrix, several)
        count, most = probe_count(probes), _checks.natural_or_zero("rows", rows)
        rng = _checks.generator(seed)
        largest = float(extremes(matrix, rng).values[0])
        if not largest:
            raise VanishingError
        # relative to the largest eigenvalue, squares neither overflow nor vanish
        unit = unit_of(torch.tensor(largest, dtype=torch.float64))
        if matrix.dim <= most:
            compared = _dense(matrix, several, unit)
        else:
            sizes = (part.stop - part.start for part in cuts(count, _BLOCK))
            blocks = (matrix.vectors(random_signs(rng, (size, matrix.dim))) for size in sizes)
            parts = [_products(matrix, several, signs, unit) for signs in blocks]
            compared = [_joined(own) for own in zip(*parts, strict=True)]
            for i, own in enumerate(names):
                # a small block is computed whole, which leaves no sampling error
                if (block := matrix.block(*own)).dim <= most:
                    exact = block.dense()
                    for each, found in zip(several, compared, strict=True):
                        found.layers[i] = _summed(exact, each.block(*own).dense(), unit)
        found = [
            _errors(names, pairs, float(each.eigenvalues()[0]) / largest)
            for each, pairs in zip(several, compared, strict=True)
        ]
        return found[0] if isinstance(factors, KroneckerFactors) else found


class VanishingError(ValueError):
    """Raised if the matrix, or its block of a layer, is zero, so that relative errors are undefined."""

    def __init__(self) -> None:
        super().__init__("matrix must not be zero, since errors are relative to it, got zero")


Pairs = Floats
"""|(A - B) z|^2 and |A z|^2 of each probe, or their sums over all unit vectors as a single row: (k, 2)."""


class _Compared(NamedTuple):
    """Norms of a matrix and its factors: of the whole, |A z|^2 within layers (k,), and of every layer."""

    whole: Pairs
    inside: Floats
    layers: list[Pairs]


def _layers_of(matrix: Operator, factors: Sequence[KroneckerFactors]) -> list[tuple[str, ...]]:
    """Return the names of the parameters of every layer."""
    layers = [[tuple(block.places) for block in each.blocks] for each in factors]
    if not layers:
        raise ValueError("factors must not be empty, got none")
    if any(dict(matrix.places) != dict(each.places) for each in factors):
        raise ValueError("matrix and factors must have the same parameters, got different ones")
    if any(own != layers[0] for own in layers):
        raise ValueError("factors must all have the same layers, got different ones")
    return layers[0]


def _errors(names: Sequence[tuple[str, ...]], compared: _Compared, largest: float) -> FactorErrors:
    whole, inside, layers = compared
    with np.errstate(invalid="ignore"):  # the difference of two that overflow, which is refused
        outside = whole[:, 1] - inside
    left = _ratio(outside, whole[:, 1])
    errors = [root_of_estimate(_ratio(pairs[:, 0], pairs[:, 1])) for pairs in layers]
    return FactorErrors(
        root_of_estimate(_ratio(whole[:, 0], whole[:, 1])),
        dict(zip(names, errors, strict=True)),
        # a difference of two estimates, which may fall below zero
        left._replace(value=max(left.value, 0.0)),
        largest,
    )


def _dense(matrix: Operator, factors: Sequence[KroneckerFactors], unit: float) -> list[_Compared]:
    whole, found = matrix.dense(), list[_Compared]()
    for each in factors:
        own, layers = each.dense(), list[Pairs]()
        for block in each.blocks:
            at = rows_at(block.places.values())
            layers.append(_summed(whole[at][:, at], own[at][:, at], unit))
        inside = np.array([sum(pairs[0, 1] for pairs in layers)])
        found.append(_Compared(_summed(whole, own, unit), inside, layers))
    return found


def _joined(parts: Sequence[_Compared]) -> _Compared:
    """Concatenate the norms of all probes."""
    wholes, insides, layers = zip(*parts, strict=True)
    joined = [np.concatenate(pairs) for pairs in zip(*layers, strict=True)]
    return _Compared(np.concatenate(wholes), np.concatenate(insides), joined)


def _products(
    matrix: Operator, factors: Sequence[KroneckerFactors], signs: Tensor, unit: float
) -> list[_Compared]:
    nearly, total = [each(signs) for each in factors], torch.zeros_like(signs)
    layers = [list[Pairs]() for _ in factors]
    for block in factors[0].blocks:
        at = rows_at(block.places.values()).to(signs.device)
        # the products with the parts of a probe also add up to that with the whole probe
        only = torch.zeros_like(signs)
        only[:, at] = signs[:, at]
        products = matrix(only)
        total += products
        for near, found in zip(nearly, layers, strict=True):
            found.append(_pairs(products[:, at], near[:, at], unit))
    return [
        _Compared(_pairs(total, near, unit), np.sum([pairs[:, 1] for pairs in found], axis=0), found)
        for near, found in zip(nearly, layers, strict=True)
    ]


def _summed(matrix: Tensor, approximation: Tensor, unit: float) -> Pairs:
    """Return squared norms, summed over all unit vectors."""
    return _pairs(matrix, approximation, unit).sum(0, keepdims=True)


def _pairs(products: Tensor, nearly: Tensor, unit: float) -> Pairs:
    lengths = [(row_lengths(rows.double()) / unit).square() for rows in (products - nearly, products)]
    return numbers(torch.stack(lengths, dim=1))


def _ratio(above: Floats, below: Floats) -> Estimate:
    """Return the ratio of two means over the same probes; exact for single numbers."""
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise ValueError(
            "squared products of matrix and factors must be finite, got NaN or infinity; rescale the loss"
        )
    if not below.mean() > 0:
        raise VanishingError
    value = above.mean() / below.mean()
    count = len(above)
    # delta method: numerator and denominator come from the same probes, so their errors are correlated
    error = (above - value * below).std(ddof=1) / below.mean() / math.sqrt(count) if count > 1 else 0.0
    return Estimate(float(value), float(error))
