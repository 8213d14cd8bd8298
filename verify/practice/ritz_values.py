"""What a few steps of Lanczos see of a curvature: Ritz values, their weights, and the interval without the bulk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate.lanczos import Operator, tridiagonal

__all__ = ["RitzInterval", "RitzSpectrum", "ritz_spectrum", "scaled", "with_decay", "without_bulk"]

Floats = NDArray[np.float64]

_ROUNDINGS = 64
"""A Ritz value below so many roundings of the largest is zero."""


class RitzSpectrum(NamedTuple):
    """Ritz values, ascending, their weights and residuals; products spent, and below what a value is zero."""

    values: Floats
    weights: Floats
    residuals: Floats
    products: int
    rounding: float


class RitzInterval(NamedTuple):
    """Ends of the curvature that the formulas are to work between; see `verify.practice.schedule.CurvatureReading`."""

    bulk: float | None
    largest: float | None
    smallest: float | None
    error: float | None
    outcome: str


def ritz_spectrum(matrix: Operator, rng: np.random.Generator, steps: int) -> RitzSpectrum:
    """What a random start sees of a matrix."""
    norms: list[float] = []

    def product(vectors: Tensor) -> Tensor:
        products = matrix(vectors)
        norms.append(float(products.double().norm()))
        return products

    start = rng.standard_normal((1, matrix.dim))
    whole = tridiagonal(replace(matrix, product=product), start, min(steps, matrix.dim))
    # where nothing was left to go on from, the nodes that follow stand for nothing
    stops = np.flatnonzero(whole.beside[0] == 0)
    found = whole.leading(int(stops[0]) + 1) if len(stops) else whole
    values, vectors = np.linalg.eigh(found.dense()[0])
    beyond = _beyond(norms[len(values) - 1], found.dense()[0, -1])
    rounding = _ROUNDINGS * torch.finfo(matrix.dtype).eps * float(np.abs(values).max())
    return RitzSpectrum(values, vectors[0] ** 2, beyond * np.abs(vectors[-1]), len(norms), rounding)


def _beyond(length: float, inside: Floats) -> float:
    """What a product of this length has outside of the space, from its coordinates inside."""
    known = float(np.linalg.norm(inside))
    return math.sqrt(max(length - known, 0.0) * (length + known))


def without_bulk(found: RitzSpectrum, bulk: float) -> RitzInterval:
    """The positive values without the bulk: between them the formulas are to work."""
    heaviest = int(found.weights.argmax())
    kept = found.values > found.rounding
    dropped = None
    if found.weights[heaviest] > bulk and heaviest < len(kept) - 1:
        dropped, kept[heaviest] = float(found.values[heaviest]), False
    if not kept.any():
        return RitzInterval(dropped, None, None, None, "rates kept: there is no positive curvature")
    left, errors = found.values[kept], found.residuals[kept]
    outcome = "rates set" if len(left) > 1 else "rates set, without momentum: one value is left"
    return RitzInterval(dropped, float(left[-1]), float(left[0]), float(errors[-1]), outcome)


def with_decay(matrix: Operator, shapes: Sequence[torch.Size], decay: Sequence[float]) -> Operator:
    """The curvature of weight decay added, which is diagonal."""
    if not any(decay):
        return matrix
    sizes = torch.tensor([shape.numel() for shape in shapes])
    diagonal = torch.tensor(decay, dtype=matrix.dtype).repeat_interleave(sizes).to(matrix.device)
    return replace(matrix, product=lambda vectors: matrix(vectors) + diagonal * vectors)


def scaled(matrix: Operator, shapes: Sequence[torch.Size], scaling: Sequence[Tensor]) -> Operator:
    """D^(1/2) A D^(1/2), with the diagonal D of each parameter shaped like it, or one number."""
    parts = [
        part.to(matrix.device).expand(shape).flatten() for part, shape in zip(scaling, shapes, strict=True)
    ]
    root = torch.cat(parts).to(matrix.dtype).sqrt()
    return replace(matrix, product=lambda vectors: root * matrix(root * vectors))
