"""Rows of numbers as all of Lanczos needs them: lengths and inner products that keep their digits."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

_TERMS = 1 << 14
"""Of a sum in single precision on a CPU: with a hundred million at once a length is off by half a per cent."""


def row_lengths(rows: Tensor) -> Tensor:
    """Euclidean lengths, of rows whose squares overflow or vanish too."""
    largest = rows.abs().amax(dim=1, keepdim=True)
    unit = largest.masked_fill(largest == 0, 1.0)
    scaled = rows / unit
    plain = not _loses_digits(rows)
    lengths = scaled.norm(dim=1) if plain else torch.stack([length(row) for row in scaled]).to(rows)
    return lengths * unit[:, 0]


def inner_products(rows: Tensor, others: Tensor) -> Tensor:
    """Products (k, dim) @ (dim,) or (dim, m), of as many digits as their type has however long the sums are.

    Examples
    --------
    >>> row = torch.full((1, 10**7), 10**-3.5)
    >>> round(float(inner_products(row, row[0])), 4)
    1.0
    """
    if not _loses_digits(rows):
        return rows @ others
    parts = zip(rows.split(_TERMS, dim=1), others.split(_TERMS), strict=True)
    return torch.stack([(part @ other).double() for part, other in parts]).sum(0).to(rows)


def length(vector: Tensor) -> Tensor:
    """Euclidean length, a number of no axes, as `inner_products`: its square must neither overflow nor vanish."""
    if not _loses_digits(vector):
        return vector.norm()
    return torch.stack([part.norm().double() for part in vector.split(_TERMS)]).norm()


def dots(rows: Tensor, others: Tensor) -> Tensor:
    """Of each row (k, dim) with another, (k,), as `inner_products`."""
    if not _loses_digits(rows):
        return torch.linalg.vecdot(rows, others)
    return torch.stack([inner_products(row[None], other)[0] for row, other in zip(rows, others, strict=True)])


def _loses_digits(rows: Tensor) -> bool:
    """Whether sums over the last axis are taken by a few running ones, each of which grows long."""
    return rows.dtype == torch.float32 and rows.device.type == "cpu" and rows.shape[-1] > _TERMS


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
