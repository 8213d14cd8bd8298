"""Blocks on the diagonal of an approximate curvature: Kronecker products of two factors, and dense ones.

A block acts on the parameters of one layer, as rows (k, size) of their numbers in the order of its `places`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["DenseBlock", "FactorBlock", "KroneckerBlock", "Spectral"]

Spectral = Callable[[Tensor], Tensor]
"""A function of eigenvalues, entry by entry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FactorBlock(ABC):
    """The part of some parameters.

    Attributes
    ----------
    places
        Where each of them stands in the vector of all, by name.
    """

    places: Mapping[str, slice]

    @abstractmethod
    def product(self, rows: Tensor) -> Tensor:
        """Products with vectors (k, size)."""

    @abstractmethod
    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Products of a function of the block with vectors (k, size)."""

    @property
    @abstractmethod
    def eigenvalues(self) -> Tensor:
        """All of them, (size,), float64, in no order."""

    @property
    @abstractmethod
    def diagonal(self) -> Tensor:
        """(size,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseBlock(FactorBlock):
    """A matrix (size, size) as it is."""

    matrix: Tensor

    def product(self, rows: Tensor) -> Tensor:
        """Products with vectors (k, size)."""
        return rows @ self.matrix

    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Products of a function of the block with vectors (k, size)."""
        values, vectors = self._decomposed
        basis = vectors.to(rows)
        return ((rows @ basis) * of(values).to(rows)) @ basis.mT

    @property
    def eigenvalues(self) -> Tensor:
        """All of them, (size,)."""
        return self._decomposed[0]

    @property
    def diagonal(self) -> Tensor:
        """(size,)."""
        return self.matrix.diagonal()

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(self.matrix.double())
        return values.clamp(min=0), vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class KroneckerBlock(FactorBlock):
    """A (x) B for the matrix (out, in) of weights of each of g groups of a layer, its bias as a last column.

    Attributes
    ----------
    inputs
        A, (g, in, in).
    outputs
        B, (g, out, out).
    corrected
        Eigenvalues (g, out, in) in the eigenbasis of A (x) B that take the place of the products of those of A and B;
        None if none do.
    """

    inputs: Tensor
    outputs: Tensor
    corrected: Tensor | None = None

    def product(self, rows: Tensor) -> Tensor:
        """Products with vectors (k, size)."""
        if self.corrected is not None:
            return self.function(rows, lambda values: values)
        return self._rows(self.outputs @ self._matrices(rows) @ self.inputs)

    def function(self, rows: Tensor, of: Spectral) -> Tensor:
        """Products of a function of the block with vectors (k, size)."""
        left, right = (basis.to(rows) for basis in self.bases)
        seen = left.mT @ self._matrices(rows) @ right
        return self._rows(left @ (seen * of(self._values).to(rows)) @ right.mT)

    @property
    def eigenvalues(self) -> Tensor:
        """All of them, (size,)."""
        return self._values.flatten()

    @property
    def diagonal(self) -> Tensor:
        """(size,)."""
        if self.corrected is None:
            products = (
                self.outputs.diagonal(dim1=1, dim2=2)[:, :, None]
                * self.inputs.diagonal(dim1=1, dim2=2)[:, None]
            )
        else:
            left, right = (basis.to(self.corrected) for basis in self.bases)
            products = left.square() @ self.corrected @ right.square().mT
        return self._rows(products[None])[0]

    @cached_property
    def bases(self) -> tuple[Tensor, Tensor]:
        """Eigenvectors of B (g, out, out) and of A (g, in, in), in columns, float64."""
        return self._outer[1], self._inner[1]

    @cached_property
    def _outer(self) -> tuple[Tensor, Tensor]:
        return torch.linalg.eigh(self.outputs.double())

    @cached_property
    def _inner(self) -> tuple[Tensor, Tensor]:
        return torch.linalg.eigh(self.inputs.double())

    @cached_property
    def _values(self) -> Tensor:
        if self.corrected is not None:
            return self.corrected.double().clamp(min=0)
        return (self._outer[0].clamp(min=0)[:, :, None] * self._inner[0].clamp(min=0)[:, None]).contiguous()

    def _matrices(self, rows: Tensor) -> Tensor:
        """(k, size) as (k, g, out, in)."""
        groups, out = self.outputs.shape[:2]
        sizes = [at.stop - at.start for at in self.places.values()]
        return torch.cat(
            [part.reshape(len(rows), groups, out, -1) for part in rows.split(sizes, dim=1)], dim=3
        )

    def _rows(self, matrices: Tensor) -> Tensor:
        out = self.outputs.shape[0] * self.outputs.shape[1]
        widths = [(at.stop - at.start) // out for at in self.places.values()]
        return torch.cat([part.flatten(1) for part in matrices.split(widths, dim=3)], dim=1)
