"""A symmetric matrix as its products with blocks of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.rows import identity

EXHAUSTED = 64
"""A remainder below this many roundings of the products is rounding: a start has reached all it can."""


Product = Callable[[Tensor], Tensor]
"""Function from a block of vectors, one per row, to their products."""

PRECISIONS = (torch.float64, torch.float32)
_OF_NUMPY = {"float64": torch.float64, "float32": torch.float32}


class ForeignMatrix(Protocol):
    """Protocol for symmetric matrices of other libraries, such as curvlinops, linear_operator or scipy.

    Its type is one of torch or of numpy; ``@`` takes columns (dim, k) as a tensor, or as an array if that is numpy's.
    """

    @property
    def shape(self) -> Any:
        """(dim, dim)."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the columns."""
        ...

    def __matmul__(self, columns: Any, /) -> Any:
        """Return the products with columns."""
        ...


def _is_matrix(value: Any) -> bool:
    """Return whether a value has products, and a shape of at least one axis."""
    return getattr(value, "shape", ()) != () and hasattr(value, "__matmul__")


@dataclass(frozen=True, kw_only=True, repr=False)
class Operator:
    """A symmetric matrix known by its products with vectors, and itself one for ``@``, ``+``, ``-`` and ``*``.

    Attributes
    ----------
    product
        Function from a block of vectors, one per row, (k, dim), to their products, (k, dim); see `one_by_one`.
    dim
        Rows of the matrix.
    dtype, device
        Type, float64 or float32, and device of the vectors.
    places
        Slice of the rows of each parameter, by name, for `block`; empty if rows have no names.
    name
        Name of the matrix for its `repr`, possibly empty.

    Examples
    --------
    >>> from simulate.lanczos import quadrature
    >>> minus_laplace = Operator(product=lambda v: 2 * v - v.roll(1, 1) - v.roll(-1, 1), dim=100)
    >>> quadrature(minus_laplace, np.eye(100)[:1], steps=3).nodes.round(3)
    array([[0.268, 2.   , 3.732]])
    >>> (0.5 * minus_laplace.damped(1.0) - minus_laplace @ np.eye(100)).shape
    (100, 100)
    """

    product: Product
    dim: int
    dtype: torch.dtype = torch.float64
    device: torch.device | str = "cpu"
    places: Mapping[str, slice] = field(default_factory=dict[str, slice], repr=False, compare=False)
    name: str = field(default="", compare=False)

    __array_ufunc__ = None
    """Tells numpy numbers to leave products and sums to this class."""

    def __post_init__(self) -> None:
        if self.dtype not in PRECISIONS:
            raise ValueError(f"dtype must be torch.float64 or torch.float32, got {self.dtype}")
        object.__setattr__(
            self, "dim", _checks.natural("dim", self.dim)
        )  # sizes of numpy overflow in products

    def __repr__(self) -> str:
        """Return one line: name, size, type and device."""
        kind, name = str(self.dtype).removeprefix("torch."), f"{self.name}, " * bool(self.name)
        return f"{type(self).__name__}({name}{self.dim} x {self.dim}, {kind} on {self.device})"

    def __call__(self, vectors: Tensor) -> Tensor:
        """Return the products, checked for shape and finiteness.

        Raises
        ------
        ValueError
            If the function returns another shape, or what is not finite.
        """
        with in_full_precision():
            products = self.product(vectors).detach()
            if products.shape != vectors.shape:
                shapes = f"{tuple(vectors.shape)} to {tuple(products.shape)}"
                raise ValueError(f"operator must return products shaped like its vectors, got {shapes}")
            # a look at every number costs a twentieth of a product; a finite sum has none that is not
            if not math.isfinite(float(products.sum())) and not bool(products.isfinite().all()):
                single = "; measure in double precision, or a multiple of it"
                advice = single if self.dtype == torch.float32 else ""
                raise ValueError(f"operator must return finite products, got NaN or infinity{advice}")
            return products

    def vectors(self, rows: Any) -> Tensor:
        """Return rows (k, dim) as a tensor in the operator's type, on its device.

        Raises
        ------
        ValueError
            If the shape is another, or they are complex.
        """
        block = _real("vectors", rows).to(dtype=self.dtype, device=self.device)
        if block.ndim != 2 or block.shape[0] == 0 or block.shape[1] != self.dim:
            raise ValueError(f"vectors must be of shape (k, {self.dim}), k >= 1, got {tuple(block.shape)}")
        return block

    @property
    def shape(self) -> tuple[int, int]:
        """(dim, dim)."""
        return self.dim, self.dim

    @property
    def T(self) -> Operator:  # noqa: N802 (the name it has everywhere)
        """The transpose: the operator itself."""
        return self

    def adjoint(self) -> Operator:
        """Return the transpose of a real matrix: the operator itself."""
        return self

    def __matmul__(self, vectors: Any) -> Tensor:
        """Return the product with a vector (dim,) or with the columns of a matrix (dim, k)."""
        if isinstance(vectors, Operator):  # the product of two is not symmetric
            return NotImplemented
        block = self._factor(vectors, f"({self.dim},) or ({self.dim}, k) on the right", axis=0)
        columns = block[:, None] if block.ndim == 1 else block
        products = self(self.vectors(columns.mT).contiguous()).mT
        return products[:, 0] if block.ndim == 1 else products

    def __rmatmul__(self, vectors: Any) -> Tensor:
        """Return the product of a vector (dim,), or of the rows of a matrix (k, dim), with the operator."""
        if isinstance(vectors, Operator):
            return NotImplemented
        block = self._factor(vectors, f"({self.dim},) or (k, {self.dim}) on the left", axis=-1)
        products = self(self.vectors(block.reshape(-1, self.dim)).contiguous())
        return products[0] if block.ndim == 1 else products

    def _factor(self, vectors: Any, rule: str, axis: int) -> Tensor:
        block = _real("vectors", vectors)
        if block.ndim not in (1, 2) or block.shape[axis] != self.dim or block.numel() == 0:
            raise ValueError(f"vectors must be of shape {rule}, got {tuple(block.shape)}")
        return block

    def __add__(self, other: AnyMatrix) -> Operator:
        """Return the sum with an operator or a dense symmetric matrix."""
        return _combined(self, as_operator(other), 1.0) if _is_matrix(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: AnyMatrix) -> Operator:
        """Return the difference, as `__add__`."""
        return _combined(self, as_operator(other), -1.0) if _is_matrix(other) else NotImplemented

    def __rsub__(self, other: AnyMatrix) -> Operator:
        """Return a dense symmetric matrix minus the operator."""
        return _combined(as_operator(other), self, -1.0) if _is_matrix(other) else NotImplemented

    def __mul__(self, factor: float) -> Operator:
        """Return a real multiple."""
        if not _is_real(factor):
            return NotImplemented
        scale = _finite("factor", factor)
        return self._like(lambda vectors: scale * self(vectors))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Operator:
        """Return the quotient by a real number."""
        if not _is_real(divisor):
            return NotImplemented
        if _finite("divisor", divisor) == 0:
            raise ValueError("divisor must not be zero, got 0")
        return self * (1 / divisor)

    def __neg__(self) -> Operator:
        """Return the negative."""
        return -1.0 * self

    def damped(self, damping: float) -> Operator:
        """Return the matrix plus a multiple of the identity.

        Raises
        ------
        ValueError
            If `damping` is not a finite number.

        Examples
        --------
        >>> as_operator(np.diag([1.0, 2.0])).damped(0.5) @ np.ones(2)
        tensor([1.5000, 2.5000], dtype=torch.float64)
        """
        shift = _finite("damping", damping)
        return self._like(lambda vectors: torch.add(self(vectors), vectors, alpha=shift))

    def block(self, *names: str) -> Operator:
        """Return the principal block of some parameters, with rows in the order of the whole matrix.

        A product with it costs one with the whole matrix: for many products with one block, build the matrix of an
        `Objective` of these `parameters` alone.

        Parameters
        ----------
        names
            Of parameters or submodules, as "0.weight" or "encoder".

        Raises
        ------
        ValueError
            If the rows have no names, or none of this name.
        """
        known = list(self.places)
        for name in names or [None]:
            if not any(names_place(name, place) for place in known):
                such = f", such as {', '.join(known[:4])}" if known else " of an operator that has them"
                raise ValueError(f"names must be those of parameters or submodules{such}; got {name!r}")
        chosen = {place: at for place, at in self.places.items() if any(names_place(n, place) for n in names)}
        ends = np.cumsum([0, *(at.stop - at.start for at in chosen.values())]).tolist()
        inside = principal(self, list(chosen.values()))
        return replace(inside, places={name: slice(*ends[i : i + 2]) for i, name in enumerate(chosen)})

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.linalg.LinearOperator` of the same type."""
        from scipy.sparse import linalg

        scipy_operator: Any = linalg.LinearOperator

        kind = np.float32 if self.dtype == torch.float32 else np.float64

        def product(columns: Any) -> Any:
            return (self @ np.ascontiguousarray(columns, dtype=kind)).cpu().numpy()

        return scipy_operator(
            self.shape, matvec=product, matmat=product, rmatvec=product, rmatmat=product, dtype=kind
        )

    def dense(self) -> Tensor:
        """Return the whole matrix (dim, dim), symmetric to the last bit.

        Raises
        ------
        ValueError
            If it does not fit into memory.
        """
        size = self.dtype.itemsize
        # at the peak: the identity, the rows, and their mean with the transpose
        what, needed = f"the {self.dim} rows of the matrix", 3 * size * self.dim**2
        _memory.require_free("matrix", needed, what, device=self.device, advice="use products")
        rows = self(identity(self.dim, self))
        return (rows + rows.mT) / 2

    def _like(self, product: Product) -> Operator:
        return Operator(
            product=product, dim=self.dim, dtype=self.dtype, device=self.device, places=self.places
        )


_ROUNDINGS = 1000
"""Largest relative difference of a product from that with the transpose for a matrix that counts as symmetric."""


AnyMatrix = Operator | Tensor | NDArray[Any] | ForeignMatrix
"""Matrices that the functions of this package and of `simulate.spectra` take."""


def as_operator(matrix: AnyMatrix) -> Operator:
    """Return a dense symmetric matrix (dim, dim), or one of another library, as an operator; an operator as it is.

    A dense matrix that is neither float64 nor float32 is taken as float64. Two products test whether a matrix of
    another library is symmetric.

    Raises
    ------
    ValueError
        If a matrix is not square, not real, not finite or not symmetric to rounding; or one of another library is
        neither float64 nor float32.

    Examples
    --------
    >>> as_operator(np.diag([1.0, 2.0]))(torch.ones(3, 2, dtype=torch.float64))
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]], dtype=torch.float64)
    >>> from scipy import sparse
    >>> as_operator(sparse.diags([1.0, 2.0])) @ [1.0, 1.0]
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(matrix, Operator):
        return matrix
    if not isinstance(matrix, Tensor | np.ndarray) and _is_matrix(matrix):
        return _of_another_library(matrix)
    if not isinstance(matrix, Tensor | np.ndarray | list | tuple):
        raise ValueError(
            f"matrix must be an operator or a symmetric array, got {type(matrix).__name__}; of an Objective take one of"
            " its matrices, such as hessian(objective)"
        )
    dense = _real("matrix", matrix)
    dense = dense if dense.dtype in PRECISIONS else dense.to(torch.float64)
    _require_square(dense.shape)
    _checks.require_finite("matrix", dense)
    asymmetry = float((dense - dense.mT).abs().max())
    # a computed matrix is symmetric up to rounding only
    if asymmetry > dense.shape[0] * torch.finfo(dense.dtype).eps * float(dense.abs().max()):
        raise ValueError(f"matrix must be symmetric, got entries that differ by {asymmetry:.3g}")
    return Operator(
        product=lambda vectors: vectors @ dense, dim=len(dense), dtype=dense.dtype, device=dense.device
    )


def _of_another_library(matrix: ForeignMatrix) -> Operator:
    shape = tuple(int(n) for n in matrix.shape)
    _require_square(shape)
    of_torch = isinstance(matrix.dtype, torch.dtype)
    dtype = matrix.dtype if of_torch else _OF_NUMPY.get(np.dtype(matrix.dtype).name)
    if dtype not in PRECISIONS:
        raise ValueError(f"matrix must be of float64 or float32, got {matrix.dtype}")

    def product(vectors: Tensor) -> Tensor:
        columns = vectors.mT.contiguous()
        if of_torch:
            return (matrix @ columns).mT
        return torch.as_tensor(np.asarray(matrix @ columns.cpu().numpy())).mT.to(vectors)

    device = getattr(matrix, "device", "cpu") if of_torch else "cpu"
    operator = Operator(product=product, dim=shape[0], dtype=dtype, device=device)
    pair = operator.vectors(np.random.default_rng(0).standard_normal((2, operator.dim)))
    products = torch.cat([operator(row[None]) for row in pair])  # apart: one that draws, draws anew
    difference = abs(float(pair[0] @ products[1] - pair[1] @ products[0]))
    rounding = float(pair.norm(dim=1).max() * products.norm(dim=1).max()) * torch.finfo(dtype).eps
    if difference > _ROUNDINGS * rounding:
        raise ValueError(
            f"matrix must be symmetric, got u'Av and v'Au that differ by {difference:.3g}: if its products draw at"
            " random, fix what they draw"
        )
    return operator


def _require_square(shape: Sequence[int]) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"matrix must be square, got shape {tuple(shape)}")


def rows_at(places: Iterable[slice]) -> Tensor:
    """Return the indices of the rows in these slices, one slice after the other."""
    return torch.cat([torch.arange(at.start, at.stop) for at in places])


def principal(operator: Operator, places: Sequence[slice]) -> Operator:
    """Return the block of these rows and columns, by products with the whole matrix.

    Examples
    --------
    >>> principal(as_operator(np.diag([1.0, 2.0, 3.0])), [slice(2, 3), slice(0, 1)]).dense()
    tensor([[3., 0.],
            [0., 1.]], dtype=torch.float64)
    """
    rows = rows_at(places).to(operator.device)

    def product(vectors: Tensor) -> Tensor:
        whole = vectors.new_zeros(len(vectors), operator.dim)
        whole[:, rows] = vectors
        return operator(whole)[:, rows]

    return Operator(product=product, dim=len(rows), dtype=operator.dtype, device=operator.device)


def _combined(one: Operator, other: Operator, sign: float) -> Operator:
    kinds = [(op.dim, op.dtype, torch.device(op.device)) for op in (one, other)]
    if kinds[0] != kinds[1]:
        got = " and ".join(f"{dim} rows of {dtype} on {device}" for dim, dtype, device in kinds)
        raise ValueError(f"operators must be of one shape, type and device to be added, got {got}")
    places = one.places or other.places
    same = not (one.places and other.places) or one.places == other.places
    both = one._like(lambda vectors: torch.add(one(vectors), other(vectors), alpha=sign))
    return replace(both, places=places if same else {})


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _finite(name: str, value: Any) -> float:
    if not _is_real(value) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def names_place(name: Any, place: str) -> bool:
    """Whether a name is that of a parameter, or of a submodule that holds it."""
    return isinstance(name, str) and (place == name or place.startswith(f"{name}."))


def one_by_one(product: Product) -> Product:
    """Return a product with blocks (k, dim) from one with single vectors (dim,).

    Examples
    --------
    >>> one_by_one(lambda v: v.cumsum(0))(torch.ones(2, 3))
    tensor([[1., 2., 3.],
            [1., 2., 3.]])
    """
    return lambda vectors: torch.stack([product(vector) for vector in vectors])


def _real(name: str, values: Any) -> Tensor:
    """Return real numbers as a tensor without a graph; a list keeps the precision of Python floats."""
    tensor = (values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))).detach()
    if tensor.is_complex():
        raise ValueError(f"{name} must be real, got {tensor.dtype}")
    return tensor
