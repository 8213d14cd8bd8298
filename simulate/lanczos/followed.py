"""One chain of Lanczos from a start of one's own: the largest eigenvalue of a matrix that is nearly a known one."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from simulate import _checks
from simulate.lanczos.chain import Chain, Found
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import AnyMatrix, as_operator
from simulate.lanczos.rows import Floats, unit_of

__all__ = ["Followed", "follow"]

_RESOLVED = 4
"""Roundings of the products below which no residual is sought."""

_LEADING = 3
"""Vectors that are given back, if there are so many."""


class Followed(NamedTuple):
    """A Ritz pair from a start that was given.

    Attributes
    ----------
    value
        Ritz value, at most the largest eigenvalue but for rounding.
    vector
        Its unit vector, (dim,), of the type and on the device of the matrix.
    residual
        |A v - value v|, with the rounding of the products: an eigenvalue lies so near, be it the largest or not.
    products
        That were spent.
    leading
        Unit vectors of the largest Ritz values, descending, (k, dim): `vector` and those that may overtake it.
    """

    value: float
    vector: Tensor
    residual: float
    products: int
    leading: Tensor


def follow(
    matrix: AnyMatrix, start: Tensor | Floats, *, tolerance: float = 1e-2, least: int = 2, steps: int = 40
) -> Followed:
    """The largest eigenvalue that a start leads to, by one chain of Lanczos.

    A start that has nothing of the largest eigenvector leads to another eigenvalue, and no residual tells: start at
    random now and then, or add something random to what was found before.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`.
    start
        Any vector (dim,) but zero.
    tolerance
        Residual to stop at, as a share of the Ritz value in modulus; never below the rounding of the products.
    least, steps
        Fewest and most products.

    Raises
    ------
    ValueError
        If `start` is not of this shape, not finite or zero, `tolerance` is not positive, or there are no products.

    References
    ----------
    Parlett (1998), The Symmetric Eigenvalue Problem, theorem 4.5.1 and section 13.2.

    Examples
    --------
    >>> found = follow(np.diag([3.0, 2.0, 1.0]), np.array([1.0, 0.1, 0.1]), tolerance=1e-9)
    >>> round(found.value, 9), found.products
    (3.0, 3)
    """
    with in_full_precision():
        operator = as_operator(matrix)
        relative, steps = (
            float(_checks.positive_numbers("tolerance", tolerance)),
            _checks.natural("steps", steps),
        )
        row = operator.vectors(start[None])[0]
        length = float(row.norm())
        if not 0 < length < math.inf:
            raise ValueError(f"start must be finite and not zero, got a vector of length {length}")
        none, empty, unit = np.zeros(0), row.new_zeros((0, operator.dim)), 0.0
        chain = Chain(Found(empty, none, none, none, np.zeros((0, 0)), empty), row / length, 0.0, 0.0)

        def product(vector: Tensor) -> Tensor:
            nonlocal unit
            products = operator(vector[None])[0]
            unit = unit or unit_of(products)
            return products / unit

        while True:
            chain.grow(product)
            pairs, count = chain.pairs(1, 0), len(chain.rows)
            target = max(relative * abs(pairs.values[0]), _RESOLVED * chain.noise)
            if chain.exhausted or count == steps or (count >= least and pairs.residuals[0] <= target):
                break
        rows = chain.locked(chain.pairs(_LEADING, 0)).rows
        rows = rows / rows.norm(dim=1, keepdim=True)
        return Followed(unit * float(pairs.values[0]), rows[0], unit * float(pairs.residuals[0]), count, rows)
