"""Lanczos: against dense eigenvalues, the laws of Gauss quadrature, and what a start cannot reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from simulate import lanczos
from simulate.lanczos import Operator, quadrature


def symmetric(dim: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((dim, dim))
    return matrix + matrix.T


RNG = np.random.default_rng(1)
STARTS = RNG.standard_normal((3, 30))


# --- quadrature --------------------------------------------------------------------------------------------------


@given(dim=st.integers(2, 40), steps=st.integers(1, 12), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_quadrature_has_the_moments_up_to_twice_the_steps_less_one(dim: int, steps: int, seed: int) -> None:
    matrix, steps = symmetric(dim, seed), min(steps, dim)
    matrix /= np.linalg.norm(matrix, 2)
    start = np.random.default_rng(seed).standard_normal(dim)
    nodes, weights = quadrature(matrix, start[None], steps)
    power = start / np.linalg.norm(start)
    first = power
    for k in range(2 * steps):
        assert abs(weights[0] @ nodes[0] ** k - first @ power) < 1e-13
        power = matrix @ power


WIDE = np.concatenate([np.linspace(0, 1, 150), [1e10]])
"""One eigenvalue so large that what is left of a product is mostly rounding along it."""


def test_no_second_copies_of_converged_eigenvalues_appear() -> None:
    """Without re-orthogonalisation the top of these spectra would be found many times over."""
    for values, converged in ((np.concatenate([np.linspace(0, 1, 180), [50.0, 100.0]]), 2), (WIDE, 1)):
        nodes, weights = quadrature(np.diag(values), np.ones((1, len(values))), 90)
        assert (nodes > 2).sum() == converged
        assert_allclose(weights[nodes > 2], 1 / len(values), rtol=1e-9)


def test_a_start_in_an_invariant_subspace_stops_there() -> None:
    values = np.array([-2.0, -2.0, -1.0, 3.0, 3.0, 3.0, 7.0])
    starts = np.array([[1.0, 1, 0, 2, 0, 1, 0], [0, 0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]])
    nodes, weights = quadrature(np.diag(values), starts, 6)
    exact = [{-2.0: 2 / 7, 3.0: 5 / 7}, {-1.0: 1.0}, {-2.0: 2 / 7, -1.0: 1 / 7, 3.0: 3 / 7, 7.0: 1 / 7}]
    for node, weight, shares in zip(nodes, weights, exact, strict=True):
        for value, share in shares.items():
            assert_allclose(weight[np.abs(node - value) < 1e-9].sum(), share, atol=1e-12)
        # what is left over has no weight and does not widen the spectrum
        assert min(shares) - 1e-9 < node.min() and node.max() < max(shares) + 1e-9


# --- whatever the scale and the type -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_ritz_values_scale_with_the_matrix_and_not_with_the_start(scale: float) -> None:
    """Powers of two: nothing is rounded but what squares of them would overflow or lose."""
    matrix = symmetric(30)
    nodes, weights = quadrature(matrix, STARTS, 6)
    for scaled in (quadrature(scale * matrix, STARTS, 6), quadrature(scale * matrix, STARTS * scale, 6)):
        assert_allclose(scaled.nodes / scale, nodes, rtol=1e-10)
        assert_allclose(scaled.weights, weights, rtol=1e-8)


# --- what is refused ---------------------------------------------------------------------------------------------


BAD_MATRICES = [
    (np.ones((2, 3)), r"matrix must be square, got shape \(2, 3\)"),
    (np.ones(4), r"matrix must be square, got shape \(4,\)"),
    (np.empty((0, 0)), r"matrix must be square, got shape \(0, 0\)"),
    (np.array([[1.0, 2.0], [3.0, 1.0]]), r"matrix must be symmetric, got entries that differ by 1"),
    (np.array([[np.nan, 0.0], [0.0, 1.0]]), "matrix must be finite, got NaN"),
    (np.eye(2) * 1j, r"matrix must be real, got torch\.complex128"),
]


@pytest.mark.parametrize(("matrix", "message"), BAD_MATRICES)
def test_a_matrix_that_is_not_symmetric_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lanczos.as_operator(matrix)


def test_an_operator_is_checked_when_it_is_called() -> None:
    half: Any = 2.5
    with pytest.raises(ValueError, match=r"operator must map .* \(1, 4\) to \(4, 1\)"):
        quadrature(Operator(product=lambda v: v.mT, dim=4), np.ones((1, 4)), 2)
    with pytest.raises(ValueError, match="operator must return finite products, got NaN"):
        quadrature(Operator(product=lambda v: v / 0, dim=4), np.ones((1, 4)), 2)
    with pytest.raises(ValueError, match=r"dim must be a positive integer, got 2\.5"):
        Operator(product=torch.clone, dim=half)
    with pytest.raises(
        ValueError, match=r"dtype must be torch\.float64 or torch\.float32, got torch\.float16"
    ):
        Operator(product=torch.clone, dim=2, dtype=torch.float16)


@pytest.mark.parametrize("starts", [np.ones(4), np.ones((0, 4)), np.ones((2, 5)), 1.0])
def test_starts_are_rows_of_the_right_length(starts: Any) -> None:
    with pytest.raises(ValueError, match=r"vectors must be of shape \(k, 4\), k >= 1, got \("):
        quadrature(np.eye(4), starts, 2)


@pytest.mark.parametrize("entry", [0.0, np.nan, np.inf])
def test_starts_have_a_direction(entry: float) -> None:
    with pytest.raises(ValueError, match="starts must be finite and not zero, got norms"):
        quadrature(np.eye(4), np.full((2, 4), entry), 2)


def test_steps_are_at_most_the_dimension() -> None:
    with pytest.raises(ValueError, match="steps must be at most the dimension, 4, got 5"):
        quadrature(np.eye(4), np.ones((1, 4)), 5)
    with pytest.raises(ValueError, match="steps must be a positive integer, got 0"):
        quadrature(np.eye(4), np.ones((1, 4)), 0)
