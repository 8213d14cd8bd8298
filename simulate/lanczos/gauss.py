"""Gauss quadrature of the spectrum that a vector sees: tridiagonal matrices, their nodes and weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate._checks import Floats
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import EXHAUSTED, AnyMatrix, Operator, Product, as_operator
from simulate.lanczos.rows import dots, inner_products, numbers, row_lengths, unit_of

_LONG = 1 << 14
"""Length of a vector from which on arithmetic takes longer than a call."""


class Quadrature(NamedTuple):
    """Nodes, ascending, and weights, which sum to one, for each start: both (m, steps)."""

    nodes: Floats
    weights: Floats


def quadrature(matrix: AnyMatrix, starts: Any, steps: int) -> Quadrature:
    """Gauss quadrature of the spectral measure of each start: f(A) as seen by the start, for polynomials f.

    Parameters
    ----------
    matrix
        Symmetric: dense, or an `Operator`.
    starts
        Vectors (m, dim), of any length: what is integrated is their direction.
    steps
        Nodes, at most `dim`. A start with parts along fewer eigenspaces has further nodes, of weight zero.

    Returns
    -------
    Ritz values and the squared first components of their vectors, float64.

    Raises
    ------
    ValueError
        If shapes disagree, a start is zero or not finite, there are more steps than rows, the products are not
        finite, or the vectors do not fit into memory.

    References
    ----------
    Golub and Welsch (1969), Calculation of Gauss quadrature rules; Granziol, Zohren and Roberts (2022), eq. (54)
    and Theorem 13.

    Examples
    --------
    >>> nodes, weights = quadrature(np.diag([0.0, 0.0, 0.0, 5.0]), [[1.0, 1.0, 1.0, 1.0]], steps=2)
    >>> nodes.round(12) + 0.0, weights.round(12)
    (array([[0., 5.]]), array([[0.75, 0.25]]))
    """
    return tridiagonal(matrix, starts, steps).quadrature()


class Tridiagonal(NamedTuple):
    """Diagonals (m, steps) and off-diagonal entries (m, steps - 1), one symmetric matrix for each start."""

    diagonal: Floats
    off_diagonal: Floats

    def leading(self, steps: int) -> Tridiagonal:
        """Return the matrices after fewer steps."""
        return Tridiagonal(self.diagonal[:, :steps], self.off_diagonal[:, : steps - 1])

    def quadrature(self) -> Quadrature:
        """Return the Ritz values and the squared first components of their vectors."""
        rows = np.arange(self.diagonal.shape[1])
        matrix = np.zeros((*self.diagonal.shape, len(rows)))
        matrix[:, rows, rows] = self.diagonal
        matrix[:, rows[1:], rows[:-1]] = self.off_diagonal  # only the lower triangle is read
        nodes, vectors = np.linalg.eigh(matrix)
        return Quadrature(nodes, vectors[:, 0] ** 2)


def tridiagonal(matrix: AnyMatrix, starts: Any, steps: int) -> Tridiagonal:
    """Return the matrix in the Lanczos basis of each start, with full re-orthogonalisation.

    One call of the operator per step, with a block of one vector for each start. If a start
    lies in a smaller invariant subspace, its matrix is continued by the first diagonal entry, uncoupled.

    Parameters
    ----------
    matrix
        Symmetric: dense, or an `Operator`.
    starts
        Vectors (m, dim), of any length: what counts is their direction.
    steps
        At most `dim`; so many vectors are kept for every start.

    Raises
    ------
    ValueError
        If shapes disagree, a start is zero or not finite, there are more steps than rows, the products are not
        finite, or the vectors do not fit into memory.

    References
    ----------
    Paige (1972), Computational variants of the Lanczos method for the eigenproblem.

    Examples
    --------
    >>> tridiagonal(np.diag([1.0, 2.0, 3.0]), [[1.0, 1.0, 1.0]], steps=3).diagonal.round(12)
    array([[2., 2., 2.]])
    """
    with in_full_precision():
        operator = as_operator(matrix)
        vectors = _unit(operator.vectors(starts))
        *_, whole = chains(operator, vectors, _affordable(operator, vectors, steps, kept=steps))
        return Tridiagonal(numbers(whole.diagonal), numbers(whole.off_diagonal[:, :-1]))


def recurrence(operator: Operator, starts: Any, steps: int) -> Tridiagonal:
    """Return the same by the recurrence of three terms, without re-orthogonalisation and with three vectors per start.

    Rounding brings copies of converged Ritz values, which share their weight: integrals of smooth functions keep their
    accuracy.

    References
    ----------
    Greenbaum (1989), Behavior of slightly perturbed Lanczos and conjugate-gradient recurrences; Chen, Trogdon and
    Ubaru (2022), Randomized matrix-free quadrature for spectrum and spectral sum approximation.

    Examples
    --------
    >>> recurrence(as_operator(np.diag([1.0, 2.0, 3.0])), [[1.0, 1.0, 1.0]], steps=3).diagonal.round(12)
    array([[2., 2., 2.]])
    """
    vectors = _unit(operator.vectors(starts))
    steps = _affordable(operator, vectors, steps, kept=1)
    diagonal, off_diagonal = vectors.new_zeros(2, len(vectors), steps)
    previous, length, unit = torch.zeros_like(vectors), vectors.new_zeros(len(vectors)), 0.0
    scale, ended = length, length > 0
    for j in range(steps):
        products = operator(vectors)
        unit = unit or unit_of(products)
        rest = products / unit
        rest.addcmul_(previous, length[:, None], value=-1)
        inside = dots(rest, vectors)
        rest.addcmul_(vectors, inside[:, None], value=-1)
        # nothing left to go on from: a node of weight zero, which must not lie outside of the spectrum
        diagonal[:, j] = torch.where(ended, diagonal[:, 0], inside)
        before, length = length, dots(rest, rest).sqrt()
        scale = torch.maximum(scale, (before**2 + inside**2 + length**2).sqrt())
        ended = ended | (length <= EXHAUSTED * torch.finfo(length.dtype).eps * scale)
        length = length.masked_fill(ended, 0.0)
        off_diagonal[:, j] = length
        previous, vectors = vectors, rest.mul_(length.reciprocal().masked_fill(ended, 0.0)[:, None])
    return Tridiagonal(unit * numbers(diagonal), unit * numbers(off_diagonal[:, :-1]))


class Chains(NamedTuple):
    """State of Lanczos for m starts after j steps.

    Attributes
    ----------
    basis
        Orthonormal rows, (m, j, dim).
    diagonal, off_diagonal
        Diagonal and off-diagonal entries of the tridiagonal matrices, both (m, j); the last off-diagonal one couples to
        the next vector.
    """

    basis: Tensor
    diagonal: Tensor
    off_diagonal: Tensor


def chains(product: Product, vectors: Tensor, steps: int) -> Iterator[Chains]:
    """Yield the chains of several starts after each step, as views of arrays that grow.

    Parameters
    ----------
    product
        A block of vectors (m, dim) to their products; row i may be multiplied by a matrix of its own.
    vectors
        Unit starts, (m, dim).
    steps
        Most steps, no more than `dim`; room is taken for all of them.
    """
    count, dim = vectors.shape
    basis = vectors.new_zeros(count, steps, dim)
    diagonal, off_diagonal = basis.new_zeros(count, steps), basis.new_zeros(count, steps)
    scale = before = basis.new_zeros(count)
    for j in range(steps):
        basis[:, j] = vectors
        products = product(vectors)
        inside = (products * vectors).sum(1)
        # nothing left to go on from: a node of weight zero, which must not lie outside of the spectrum
        diagonal[:, j] = torch.where(before > 0, inside, diagonal[:, 0]) if j else inside
        rest = _orthogonal_part(products, basis[:, : j + 1])
        length = row_lengths(rest)
        # the length of the products, by their parts along this vector, the one before and the next
        scale = torch.maximum(scale, torch.hypot(torch.hypot(before, inside), length))
        exhausted = length <= EXHAUSTED * torch.finfo(length.dtype).eps * scale
        before = off_diagonal[:, j] = length.masked_fill(exhausted, 0.0)
        vectors = rest.masked_fill_(exhausted[:, None], 0.0).div_(length.masked_fill(exhausted, 1.0)[:, None])
        yield Chains(basis[:, : j + 1], diagonal[:, : j + 1], off_diagonal[:, : j + 1])


def _orthogonal_part(products: Tensor, known: Tensor) -> Tensor:
    """Return the part of products (m, dim) orthogonal to known rows (m, j, dim)."""
    rest = products.clone()
    for _ in range(2):  # once loses digits, twice is enough
        if rest.shape[1] < _LONG:
            # as rows: products with a block of one column take several times as long
            along = torch.bmm(rest[:, None], known.mT)
            rest[:, None].baddbmm_(along, known, alpha=-1)
        else:  # one start after the other
            for part, rows in zip(rest, known, strict=True):
                part -= inner_products(rows, part) @ rows
    return rest


def _affordable(operator: Operator, vectors: Tensor, steps: int, kept: int) -> int:
    steps = _checks.natural("steps", steps)
    if steps > operator.dim:
        raise ValueError(f"steps must be at most the dimension, {operator.dim}, got {steps}")
    what = f"{kept + 4} vectors of {operator.dim} numbers for each of {len(vectors)} starts"
    needed = vectors.element_size() * (kept + 4) * vectors.numel()
    _memory.require_free("steps", needed, what, device=vectors.device, advice="use fewer steps or starts")
    return steps


def _unit(starts: Tensor) -> Tensor:
    norms = row_lengths(starts)
    if not bool((starts.isfinite().all(dim=1) & (norms > 0)).all()):
        raise ValueError(f"starts must be finite and not zero, got norms {norms.tolist()}")
    largest = starts.abs().amax(dim=1, keepdim=True)
    # by the largest entry first: squares might overflow or vanish
    return starts / largest / (starts / largest).norm(dim=1, keepdim=True)
