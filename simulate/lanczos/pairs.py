"""Extreme eigenpairs of a symmetric matrix from the span of a block of vectors and of its products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate.lanczos.products import EXHAUSTED, AnyMatrix, Floats, Operator, as_operator, lengths, numbers

__all__ = ["Eigenpairs", "extreme_eigenpairs"]


class Eigenpairs(NamedTuple):
    """Eigenvalues (count,), descending, unit eigenvectors (dim, count) and residuals |A v - lambda v| (count,).

    An eigenvalue of the matrix lies within the residual of each value; that it is the extreme one rests on the start
    being random.
    """

    values: Floats
    vectors: Floats
    residuals: Floats


def extreme_eigenpairs(
    matrix: AnyMatrix,
    rng: np.random.Generator,
    *,
    largest: int = 1,
    smallest: int = 0,
    tolerance: float = 1e-8,
    steps: int = 200,
) -> Eigenpairs:
    """The algebraically largest and smallest eigenvalues of a symmetric matrix, multiple ones as often as they occur.

    Lanczos with as many vectors at once as eigenpairs are sought, until all residuals are small. What `steps` did not
    suffice for is returned too: its residual tells.

    Parameters
    ----------
    matrix
        Dense, or an `Operator`.
    rng
        Source of the start.
    largest, smallest
        How many from the top and from the bottom, together at least one and at most `dim`.
    tolerance
        Residual to stop at, relative to the largest Ritz value in modulus; never below rounding.
    steps
        Most calls of the operator, but for one last; as many vectors are kept for each eigenpair.

    Raises
    ------
    ValueError
        If there are no eigenpairs or too many to find, `tolerance` or `steps` is not positive, the matrix cannot be
        used, see `as_operator`, or the vectors do not fit into memory.

    References
    ----------
    Golub and Underwood (1977), The block Lanczos method for computing eigenvalues.

    Examples
    --------
    >>> matrix = np.diag([7.0, 7.0, *np.arange(100) / 25])
    >>> found = extreme_eigenpairs(matrix, np.random.default_rng(0), largest=3, smallest=1)
    >>> found.values.round(9) + 0.0, bool((found.residuals < 1e-6).all())
    (array([7.  , 7.  , 3.96, 0.  ]), True)
    """
    operator = as_operator(matrix)
    top, bottom = _checks.number("largest", largest), _checks.number("smallest", smallest)
    if not 1 <= top + bottom <= operator.dim:
        raise ValueError(f"largest and smallest must add up to 1..{operator.dim}, got {top + bottom}")
    relative, steps = float(_checks.positive("tolerance", tolerance)), _checks.count("steps", steps)
    space = _Space(operator, rng, top + bottom, steps)
    looked = 0
    while space.grow():
        if space.size < 1.2 * looked:  # a look costs the size cubed
            continue
        looked = space.size
        if float(space.residuals(top, bottom).max()) <= relative * space.scale:
            break
    return space.eigenpairs(top, bottom)


class _Space:
    """The span of a block of vectors and of its products with powers of a matrix, by orthonormal rows."""

    def __init__(self, operator: Operator, rng: np.random.Generator, vectors: int, steps: int) -> None:
        most = min(operator.dim, steps * vectors)
        needed = 8 * (most + 6 * vectors) * operator.dim + 24 * most**2
        what = f"{most} vectors of {operator.dim} numbers"
        _memory.require("steps", needed, what, device=operator.device, advice="use fewer steps or eigenpairs")
        self.operator, self.most, self.size, self.scale = operator, most, 0, 0.0
        self._block = _rows(operator.vectors(rng.standard_normal((vectors, operator.dim))))
        self._beyond = np.zeros((0, 0))
        self.basis = self._block.new_empty(most, operator.dim)
        self.projected = np.zeros((most, most))

    def grow(self) -> bool:
        """Take in the next block; whether there is room and need for another."""
        old, self.size = self.size, self.size + len(self._block)
        self.basis[old : self.size] = self._block
        known = self.basis[: self.size]
        products = self.operator(self._block)
        inside = products @ known.mT
        rest = products - inside @ known
        rest = rest - (rest @ known.mT) @ known  # once loses digits, twice is enough
        self.projected[old : self.size, : self.size] = numbers(inside)
        self.projected[: self.size, old : self.size] = numbers(inside).T
        self.scale = max(self.scale, float(lengths(products).max()))
        self._block, beyond = _independent(rest, known, self.scale)
        self._beyond = numbers(beyond)
        self._block = self._block[: self.most - self.size]
        return len(self._block) > 0

    def ritz(self, top: int, bottom: int) -> Floats:
        """Coordinates of the wanted Ritz vectors in the basis, in columns, from the top."""
        vectors = np.linalg.eigh(self.projected[: self.size, : self.size])[1][:, ::-1]
        return np.hstack([vectors[:, :top], vectors[:, self.size - bottom :]])

    def residuals(self, top: int, bottom: int) -> Floats:
        """What products with the wanted Ritz vectors leave outside of the space."""
        last = self.ritz(top, bottom)[self.size - self._beyond.shape[0] :]
        return numbers(lengths(torch.from_numpy(last.T @ self._beyond)))

    def eigenpairs(self, top: int, bottom: int) -> Eigenpairs:
        """The wanted pairs, with residuals from one more product."""
        coordinates = torch.from_numpy(self.ritz(top, bottom).T.copy()).to(self.basis)
        rows = coordinates @ self.basis[: self.size]
        products = self.operator(rows)
        rows, products = rows.double(), products.double()
        values = (rows * products).sum(1) / rows.square().sum(1)
        residuals = lengths(products - values[:, None] * rows)
        order = values.argsort(descending=True)
        return Eigenpairs(numbers(values[order]), numbers(rows[order].mT), numbers(residuals[order]))


def _independent(rest: Tensor, known: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Orthonormal rows that span `rest` but for its rounding, orthogonal to `known`, and `rest` in terms of them."""
    left, lengths, rows = torch.linalg.svd(rest, full_matrices=False)
    kept = lengths > EXHAUSTED * torch.finfo(lengths.dtype).eps * scale
    rows = rows[kept]
    # a short one has carried the rounding of its projection along
    return _rows(rows - (rows @ known.mT) @ known), (left * lengths)[:, kept]


def _rows(vectors: Tensor) -> Tensor:
    return torch.linalg.qr(vectors.mT)[0].mT
