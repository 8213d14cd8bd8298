"""A chain from a start of one's own: what it leads to, what it costs, and what it cannot see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.lanczos import Operator, follow


def rotated(values: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A dense matrix with these eigenvalues, and its eigenvectors as columns."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return basis * np.asarray(values) @ basis.T, basis


VALUES = np.array([5.0, 4.0, 2.0, *np.linspace(-1, 1, 57)])
MATRIX, BASIS = rotated(VALUES)
RANDOM = np.random.default_rng(1).standard_normal(60)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-10])
def test_residual_is_that_of_the_pair_and_bounds_its_error(tolerance: float) -> None:
    found = follow(MATRIX, RANDOM, tolerance=tolerance)
    vector = found.vector.numpy()
    assert_allclose(np.linalg.norm(vector), 1, rtol=1e-12)
    direct = np.linalg.norm(MATRIX @ vector - found.value * vector)
    assert abs(found.residual - direct) < 1e-12
    assert found.residual <= tolerance * found.value
    assert np.abs(VALUES - found.value).min() <= found.residual and found.value <= 5 + 1e-12


def test_fewest_and_most_products_are_kept() -> None:
    assert follow(MATRIX, BASIS[:, 0] + 1e-3 * RANDOM, least=7).products == 7
    found = follow(MATRIX, RANDOM, tolerance=1e-12, steps=4)
    assert found.products == 4 and found.residual > 1e-3  # it says that it has not arrived


def test_a_start_without_the_largest_leads_to_another() -> None:
    """No residual tells."""
    found = follow(MATRIX, BASIS[:, 1] + BASIS[:, 2], tolerance=1e-9)
    assert_allclose(found.value, 4, rtol=1e-12)
    assert found.products == 2 and found.residual < 1e-9


def test_leading_vectors_are_those_of_the_largest_ritz_values() -> None:
    found = follow(MATRIX, RANDOM, tolerance=1e-10, least=30)
    leading = found.leading.numpy()
    assert_allclose(np.abs(leading @ BASIS[:, :3]), np.eye(3), atol=1e-4)
    assert torch.equal(found.leading[0], found.vector)
    assert follow(MATRIX, BASIS[:, 0]).leading.shape == (1, 60)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_the_unit_of_the_matrix_is_free(unit: float) -> None:
    found = follow(unit * MATRIX, RANDOM)
    assert_allclose(found.value / unit, follow(MATRIX, RANDOM).value, rtol=1e-12)


def test_negative_and_zero_matrices_and_single_precision() -> None:
    assert_allclose(follow(-np.diag([1.0, 2.0, 3.0]), np.ones(3), tolerance=1e-9).value, -1, rtol=1e-9)
    assert follow(np.zeros((3, 3)), np.ones(3)).value == 0
    dense = torch.from_numpy(MATRIX).float()
    operator = Operator(product=lambda rows: rows @ dense, dim=60, dtype=torch.float32)
    found = follow(operator, RANDOM, tolerance=1e-12)
    assert found.vector.dtype == torch.float32
    assert 0 < abs(found.value - 5) + found.residual < 1e-4  # stops at the rounding


@pytest.mark.parametrize(
    ("start", "options", "match"),
    [
        (np.zeros(60), {}, r"start must be finite and not zero, got a vector of length 0\.0"),
        (np.full(60, np.nan), {}, "must be|start"),
        (np.ones(59), {}, r"vectors must be of shape \(k, 60\)"),
        (RANDOM, {"tolerance": 0.0}, "tolerance must be"),
        (RANDOM, {"steps": 0}, "steps must be"),
    ],
)
def test_what_cannot_be_followed(start: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        follow(MATRIX, start, **options)
