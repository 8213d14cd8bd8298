"""Matrices of other libraries, by what these have in common: a shape, a type, and ``@`` with columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

__all__ = ["PRECISIONS", "ForeignMatrix", "Product", "is_matrix", "kind_of", "product_of"]

Product = Callable[[Tensor], Tensor]
"""Of a block of vectors, one per row."""

PRECISIONS = (torch.float64, torch.float32)
_OF_NUMPY = {"float64": torch.float64, "float32": torch.float32}


class ForeignMatrix(Protocol):
    """A symmetric matrix of another library: of curvlinops, linear_operator or scipy, say.

    Its type is one of torch or of numpy; ``@`` takes columns (dim, k) as a tensor, or as an array if that is numpy's.
    """

    @property
    def shape(self) -> Any:
        """(dim, dim)."""
        ...

    @property
    def dtype(self) -> Any:
        """Of the columns."""
        ...

    def __matmul__(self, columns: Any, /) -> Any:
        """Its products with columns."""
        ...


def is_matrix(value: Any) -> bool:
    """Whether it has a shape, of more than nought axes, and products."""
    return getattr(value, "shape", ()) != () and hasattr(value, "__matmul__")


def kind_of(matrix: ForeignMatrix) -> tuple[torch.dtype, torch.device | str]:
    """Type and device of its vectors.

    Raises
    ------
    ValueError
        If the type is neither float64 nor float32.
    """
    of_torch = isinstance(matrix.dtype, torch.dtype)
    dtype = matrix.dtype if of_torch else _OF_NUMPY.get(np.dtype(matrix.dtype).name)
    if dtype not in PRECISIONS:
        raise ValueError(f"matrix must be of float64 or float32, got {matrix.dtype}")
    return dtype, getattr(matrix, "device", "cpu") if of_torch else "cpu"


def product_of(matrix: ForeignMatrix) -> Product:
    """Its products with rows.

    Examples
    --------
    >>> from scipy import sparse
    >>> product_of(sparse.diags([1.0, 2.0]))(torch.ones(3, 2).double())[0]
    tensor([1., 2.], dtype=torch.float64)
    """

    def of_torch(vectors: Tensor) -> Tensor:
        return (matrix @ vectors.mT.contiguous()).mT

    def of_numpy(vectors: Tensor) -> Tensor:
        return torch.as_tensor(np.asarray(matrix @ vectors.mT.contiguous().cpu().numpy())).mT.to(vectors)

    return of_torch if isinstance(matrix.dtype, torch.dtype) else of_numpy
