"""Lanczos with full re-orthogonalisation: Gauss quadrature of the spectrum that a vector sees, by products alone.

A symmetric matrix A of order `dim` is given as a dense array or as an `Operator`, a function from blocks of vectors
to blocks of vectors. With a unit start q, after m steps the nodes (Ritz values) theta and weights w satisfy
sum_i w_i f(theta_i) = q' f(A) q for every polynomial f of degree up to 2m - 1. Several starts run side by side, each
by itself, so that the operator is called once per step with all of them.

What a user asks of a spectrum (density, trace, norm, extreme eigenpairs) is in `simulate.spectra`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory

__all__ = [
    "AnyMatrix",
    "Eigenpairs",
    "Operator",
    "Quadrature",
    "Tridiagonal",
    "as_operator",
    "extreme_eigenpairs",
    "one_by_one",
    "quadrature",
    "tridiagonal",
]

_EXHAUSTED = 64
"""A remainder below this many roundings of the products is rounding: a start has reached all it can."""

Floats = NDArray[np.float64]
Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A symmetric matrix known by its products with vectors.

    Attributes
    ----------
    product
        A block of vectors, one per row, (k, dim), to their products, (k, dim); see `one_by_one`.
    dim
        Rows of the matrix.
    dtype, device
        Of the vectors it is given: float64 or float32.

    Examples
    --------
    >>> minus_laplace = Operator(product=lambda v: 2 * v - v.roll(1, 1) - v.roll(-1, 1), dim=100)
    >>> quadrature(minus_laplace, np.eye(100)[:1], steps=3).nodes.round(3)
    array([[0.268, 2.   , 3.732]])
    """

    product: Product
    dim: int
    dtype: torch.dtype = torch.float64
    device: torch.device | str = "cpu"

    def __post_init__(self) -> None:
        if self.dtype not in _PRECISIONS:
            raise ValueError(f"dtype must be torch.float64 or torch.float32, got {self.dtype}")
        object.__setattr__(self, "dim", _checks.count("dim", self.dim))  # sizes of numpy overflow in products

    def __call__(self, vectors: Tensor) -> Tensor:
        """The products, checked for shape and finiteness.

        Raises
        ------
        ValueError
            If the function returns another shape, or what is not finite.
        """
        products = self.product(vectors).detach()
        if products.shape != vectors.shape:
            shapes = f"{tuple(vectors.shape)} to {tuple(products.shape)}"
            raise ValueError(f"operator must map blocks of vectors (k, dim) to their like, got {shapes}")
        if not bool(products.isfinite().all()):
            raise ValueError("operator must return finite products, got NaN or infinity")
        return products

    def vectors(self, rows: Any) -> Tensor:
        """Rows (k, dim) as a tensor of its type, on its device.

        Raises
        ------
        ValueError
            If the shape is another, or they are complex.
        """
        block = _real("vectors", rows).to(dtype=self.dtype, device=self.device)
        if block.ndim != 2 or block.shape[0] == 0 or block.shape[1] != self.dim:
            raise ValueError(f"vectors must be of shape (k, {self.dim}), k >= 1, got {tuple(block.shape)}")
        return block


_PRECISIONS = (torch.float64, torch.float32)

AnyMatrix = Operator | Tensor | NDArray[Any]
"""What the functions of this module and of `simulate.spectra` take."""


def as_operator(matrix: AnyMatrix) -> Operator:
    """An operator as it is, a dense symmetric matrix (dim, dim) as an operator.

    A dense matrix that is neither float64 nor float32 is taken as float64.

    Raises
    ------
    ValueError
        If a dense matrix is not square, not real, not finite or not symmetric to rounding.

    Examples
    --------
    >>> as_operator(np.diag([1.0, 2.0]))(torch.ones(3, 2, dtype=torch.float64))
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]], dtype=torch.float64)
    """
    if isinstance(matrix, Operator):
        return matrix
    dense = _real("matrix", matrix)
    dense = dense if dense.dtype in _PRECISIONS else dense.to(torch.float64)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or len(dense) == 0:
        raise ValueError(f"matrix must be square, got shape {tuple(dense.shape)}")
    if not bool(dense.isfinite().all()):
        raise ValueError("matrix must be finite, got NaN or infinity")
    asymmetry = float((dense - dense.mT).abs().max())
    if asymmetry > dense.shape[0] * torch.finfo(dense.dtype).eps * float(dense.abs().max()):
        raise ValueError(f"matrix must be symmetric, got entries that differ by {asymmetry:.3g}")
    return Operator(
        product=lambda vectors: vectors @ dense, dim=len(dense), dtype=dense.dtype, device=dense.device
    )


def one_by_one(product: Product) -> Product:
    """A product with blocks (k, dim) from one with single vectors (dim,).

    Examples
    --------
    >>> one_by_one(lambda v: v.cumsum(0))(torch.ones(2, 3))
    tensor([[1., 2., 3.],
            [1., 2., 3.]])
    """
    return lambda vectors: torch.stack([product(vector) for vector in vectors])


class Tridiagonal(NamedTuple):
    """Diagonals (m, steps) and the entries beside them (m, steps - 1), one symmetric matrix for each start."""

    diagonal: Floats
    beside: Floats

    def dense(self) -> Floats:
        """The matrices, (m, steps, steps)."""
        rows = np.arange(self.diagonal.shape[1])
        matrix = np.zeros((len(self.diagonal), len(rows), len(rows)))
        matrix[:, rows, rows] = self.diagonal
        matrix[:, rows[1:], rows[:-1]] = matrix[:, rows[:-1], rows[1:]] = self.beside
        return matrix

    def leading(self, steps: int) -> Tridiagonal:
        """What fewer steps would have given."""
        return Tridiagonal(self.diagonal[:, :steps], self.beside[:, : steps - 1])

    def quadrature(self) -> Quadrature:
        """Ritz values and the squared first components of their vectors."""
        nodes, vectors = np.linalg.eigh(self.dense())
        return Quadrature(nodes, vectors[:, 0] ** 2)


def tridiagonal(matrix: AnyMatrix, starts: Any, steps: int) -> Tridiagonal:
    """The matrix in the orthonormal basis that grows from each start; every vector is orthogonal to all before it.

    One call of the operator per step, with a block of one vector for each start. A start that lies in a smaller
    invariant subspace stops there: its matrix goes on with the first diagonal entry and nothing beside it.

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
    operator = as_operator(matrix)
    vectors = _unit(operator.vectors(starts))
    return _grown(operator, vectors, _affordable(operator, vectors, steps))


def _grown(operator: Operator, vectors: Tensor, steps: int) -> Tridiagonal:
    basis = vectors.new_zeros(len(vectors), steps, operator.dim)
    diagonal, beside = basis.new_zeros(len(vectors), steps), basis.new_zeros(len(vectors), steps)
    scale = basis.new_zeros(len(vectors))
    for j in range(steps):
        basis[:, j] = vectors
        products = operator(vectors)
        # nothing left to go on from: a node of weight zero, which must not lie outside of the spectrum
        stopped = ~vectors.any(dim=1)
        diagonal[:, j] = torch.where(stopped, diagonal[:, 0], (products * vectors).sum(1))
        scale = torch.maximum(scale, _lengths(products))
        vectors, beside[:, j] = _next(products, basis[:, : j + 1], scale)
    return Tridiagonal(_numbers(diagonal), _numbers(beside[:, :-1]))


def _next(products: Tensor, known: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors along what is left of products (m, dim) beside known rows (m, j, dim), and its length."""
    rest = products
    for _ in range(2):  # once loses digits, twice is enough
        rest = rest - ((known @ rest[:, :, None]).mT @ known)[:, 0]
    length = _lengths(rest)
    exhausted = length <= _EXHAUSTED * torch.finfo(length.dtype).eps * scale
    rest = rest.masked_fill(exhausted[:, None], 0.0) / length.masked_fill(exhausted, 1.0)[:, None]
    return rest, length.masked_fill(exhausted, 0.0)


def _affordable(operator: Operator, vectors: Tensor, steps: int) -> int:
    steps = _checks.count("steps", steps)
    if steps > operator.dim:
        raise ValueError(f"steps must be at most the dimension, {operator.dim}, got {steps}")
    what = f"{steps} vectors of {operator.dim} numbers for each of {len(vectors)} starts"
    needed = vectors.element_size() * (steps + 4) * vectors.numel()
    _memory.require("steps", needed, what, device=vectors.device, advice="use fewer steps or starts")
    return steps


def _unit(starts: Tensor) -> Tensor:
    norms = _lengths(starts)
    if not bool((starts.isfinite().all(dim=1) & (norms > 0)).all()):
        raise ValueError(f"starts must be finite and not zero, got norms {norms.tolist()}")
    largest = starts.abs().amax(dim=1, keepdim=True)
    return starts / largest / (starts / largest).norm(dim=1, keepdim=True)


def _lengths(rows: Tensor) -> Tensor:
    """Euclidean lengths, of rows whose squares overflow or vanish too."""
    largest = rows.abs().amax(dim=1, keepdim=True)
    unit = largest.masked_fill(largest == 0, 1.0)
    return (rows / unit).norm(dim=1) * unit[:, 0]


def _real(name: str, values: Any) -> Tensor:
    """Real numbers as a tensor without a graph; a list keeps the precision of Python's floats."""
    tensor = (values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))).detach()
    if tensor.is_complex():
        raise ValueError(f"{name} must be real, got {tensor.dtype}")
    return tensor


def _numbers(tensor: Tensor) -> Floats:
    return tensor.cpu().numpy().astype(np.float64)


class Quadrature(NamedTuple):
    """Nodes, ascending, and weights, which sum to one, of each start: (m, steps) both."""

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


# --- extreme eigenpairs -----------------------------------------------------------------------------------------


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
        self.projected[old : self.size, : self.size] = _numbers(inside)
        self.projected[: self.size, old : self.size] = _numbers(inside).T
        self.scale = max(self.scale, float(_lengths(products).max()))
        self._block, beyond = _independent(rest, known, self.scale)
        self._beyond = _numbers(beyond)
        self._block = self._block[: self.most - self.size]
        return len(self._block) > 0

    def ritz(self, top: int, bottom: int) -> Floats:
        """Coordinates of the wanted Ritz vectors in the basis, in columns, from the top."""
        vectors = np.linalg.eigh(self.projected[: self.size, : self.size])[1][:, ::-1]
        return np.hstack([vectors[:, :top], vectors[:, self.size - bottom :]])

    def residuals(self, top: int, bottom: int) -> Floats:
        """What products with the wanted Ritz vectors leave outside of the space."""
        last = self.ritz(top, bottom)[self.size - self._beyond.shape[0] :]
        return _numbers(_lengths(torch.from_numpy(last.T @ self._beyond)))

    def eigenpairs(self, top: int, bottom: int) -> Eigenpairs:
        """The wanted pairs, with residuals from one more product."""
        coordinates = torch.from_numpy(self.ritz(top, bottom).T.copy()).to(self.basis)
        rows = coordinates @ self.basis[: self.size]
        products = self.operator(rows)
        rows, products = rows.double(), products.double()
        values = (rows * products).sum(1) / rows.square().sum(1)
        residuals = _lengths(products - values[:, None] * rows)
        order = values.argsort(descending=True)
        return Eigenpairs(_numbers(values[order]), _numbers(rows[order].mT), _numbers(residuals[order]))


def _independent(rest: Tensor, known: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Orthonormal rows that span `rest` but for its rounding, orthogonal to `known`, and `rest` in terms of them."""
    left, lengths, rows = torch.linalg.svd(rest, full_matrices=False)
    kept = lengths > _EXHAUSTED * torch.finfo(lengths.dtype).eps * scale
    rows = rows[kept]
    # a short one has carried the rounding of its projection along
    return _rows(rows - (rows @ known.mT) @ known), (left * lengths)[:, kept]


def _rows(vectors: Tensor) -> Tensor:
    return torch.linalg.qr(vectors.mT)[0].mT
