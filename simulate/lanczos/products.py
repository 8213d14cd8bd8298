"""A symmetric matrix as its products with blocks of vectors, and what all of Lanczos does with rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks

__all__ = [
    "EXHAUSTED",
    "AnyMatrix",
    "Floats",
    "Operator",
    "Product",
    "as_operator",
    "numbers",
    "one_by_one",
    "row_lengths",
    "unit_of",
]

EXHAUSTED = 64
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
    >>> from simulate.lanczos import quadrature
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
        object.__setattr__(
            self, "dim", _checks.natural("dim", self.dim)
        )  # sizes of numpy overflow in products

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


def row_lengths(rows: Tensor) -> Tensor:
    """Euclidean lengths, of rows whose squares overflow or vanish too."""
    largest = rows.abs().amax(dim=1, keepdim=True)
    unit = largest.masked_fill(largest == 0, 1.0)
    return (rows / unit).norm(dim=1) * unit[:, 0]


def unit_of(products: Tensor) -> float:
    """A power of two near the largest of them: in it squares neither overflow nor vanish.

    Examples
    --------
    >>> unit_of(torch.tensor([1e-30, -5.0])), unit_of(torch.zeros(2))
    (4.0, 1.0)
    """
    return math.ldexp(1.0, math.frexp(float(products.abs().max()) or 1.0)[1] - 1)


def numbers(tensor: Tensor) -> Floats:
    """As numpy float64."""
    return tensor.cpu().numpy().astype(np.float64)


def _real(name: str, values: Any) -> Tensor:
    """Real numbers as a tensor without a graph; a list keeps the precision of Python's floats."""
    tensor = (values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))).detach()
    if tensor.is_complex():
        raise ValueError(f"{name} must be real, got {tensor.dtype}")
    return tensor
