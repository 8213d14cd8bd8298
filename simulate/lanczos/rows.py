"""Lengths and inner products of long vectors without loss of digits, for Lanczos."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simulate._checks import Floats

_TERMS = 1 << 14
"""Most terms of a sum in single precision on a CPU: a hundred million make a length wrong by half a per cent."""


def identity(size: int, like: Any) -> Tensor:
    """Return the identity matrix in the type and on the device of a tensor, or of what has both."""
    return torch.eye(size, dtype=like.dtype, device=like.device)


def row_lengths(rows: Tensor) -> Tensor:
    """Return Euclidean lengths of rows, even if their squares overflow or vanish."""
    unit = rows.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    scaled = rows / unit
    if _loses_digits(rows):
        lengths = torch.stack([length(row) for row in scaled]).to(rows)
    else:
        lengths = torch.linalg.vector_norm(scaled, dim=1)
    return lengths * unit[:, 0]


def inner_products(rows: Tensor, others: Tensor) -> Tensor:
    """Return products (k, dim) @ (dim,) or (dim, m) with the digits of their type, however long the sums are.

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
    """Return the length as a 0-d tensor, as accurate as `inner_products`; its square must not overflow or vanish."""
    if not _loses_digits(vector):
        return torch.linalg.vector_norm(vector)
    return torch.stack([part.norm().double() for part in vector.split(_TERMS)]).norm()


def dots(rows: Tensor, others: Tensor) -> Tensor:
    """Return the inner product of each row (k, dim) with another, (k,), as accurate as `inner_products`."""
    if not _loses_digits(rows):
        return torch.linalg.vecdot(rows, others)
    return torch.stack([inner_products(row[None], other)[0] for row, other in zip(rows, others, strict=True)])


def _loses_digits(rows: Tensor) -> bool:
    """Return whether torch sums the last axis by a few running sums, each of which gets long."""
    return (
        rows.dtype == torch.float32
        and rows.device.type == "cpu"
        and rows.shape[-1] > _TERMS
        and len(rows) > 0
    )


def unit_of(products: Tensor) -> float:
    """Return a power of two near the largest entry: in this unit squares neither overflow nor vanish.

    Examples
    --------
    >>> unit_of(torch.tensor([1e-30, -5.0])), unit_of(torch.zeros(2))
    (4.0, 1.0)
    """
    # a power of two, since dividing by it does not round
    return math.ldexp(1.0, math.frexp(float(products.abs().max()) or 1.0)[1] - 1)


def numbers(tensor: Tensor) -> Floats:
    """Return a tensor as a numpy float64 array."""
    return tensor.cpu().numpy().astype(np.float64)
