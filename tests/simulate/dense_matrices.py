"""Dense symmetric matrices of known spectra, and what is to be found of them."""

from typing import Any

import numpy as np

from simulate.eigenvalues import Extremes


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rotated(values: Any, seed: int = 0) -> np.ndarray:
    """A dense matrix with these eigenvalues."""
    basis = np.linalg.qr(rng(seed).standard_normal((len(values), len(values))))[0]
    matrix = basis * np.asarray(values) @ basis.T
    return (matrix + matrix.T) / 2


def residuals(matrix: np.ndarray, found: Extremes) -> np.ndarray:
    return np.linalg.norm(matrix @ found.vectors - found.values * found.vectors, axis=0)


def wanted(matrix: np.ndarray, largest: int, smallest: int = 0) -> np.ndarray:
    values = np.linalg.eigvalsh(matrix)[::-1]
    return np.r_[values[:largest], values[len(values) - smallest :]]


SPIKED = rotated([*np.linspace(-1, 1, 290), -4.0, -3.0, 3.0, 4.0, 5.0, *[6.0] * 5])
"""A band from -1 to 1, single eigenvalues on both sides of it and a fivefold one on top."""
