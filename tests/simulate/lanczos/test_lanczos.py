"""Lanczos: the laws of Gauss quadrature, what a start leads to and what it cannot reach, and sums of millions."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.eigenvalues import extremes
from simulate.lanczos import Operator, as_operator, quadrature, warm_start
from simulate.lanczos.gauss import recurrence
from simulate.lanczos.rows import dots, inner_products, length, row_lengths
from tests.simulate.dense_matrices import rng, rotated

# --- quadrature --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "steps"), [(2, 1), (2, 2), (5, 5), (17, 6), (40, 12)])
def test_quadrature_has_the_moments_up_to_twice_the_steps_less_one(dim: int, steps: int) -> None:
    matrix, start = rotated(np.r_[1, rng(dim).uniform(-1, 1, dim - 1)]), rng(dim).standard_normal(dim)
    nodes, weights = quadrature(matrix, start[None], steps)
    first = power = start / np.linalg.norm(start)
    for k in range(2 * steps):
        assert abs(weights[0] @ nodes[0] ** k - first @ power) < 1e-13
        power = matrix @ power


# one so large that what is left of a product is mostly rounding along it
@pytest.mark.parametrize("large", [[50.0, 100.0], [1e10]])
def test_no_second_copies_of_converged_eigenvalues_appear(large: list[float]) -> None:
    """Without re-orthogonalisation the top of these spectra would be found many times over."""
    values = np.r_[np.linspace(0, 1, 150), large]
    nodes, weights = quadrature(np.diag(values), np.ones((1, len(values))), 90)
    assert (nodes > 2).sum() == len(large)
    assert_allclose(weights[nodes > 2], 1 / len(values), rtol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e-160), (np.float64, 1.0), (np.float64, 1e160), (np.float32, 1.0)]
)
@pytest.mark.parametrize("large", [[1.0], [50.0, 100.0], [1e3] * 3])
def test_copies_of_converged_eigenvalues_leave_integrals_of_smooth_functions(
    large: list[float], dtype: type, size: float
) -> None:
    """The recurrence of three terms finds the top many times over, and divides its weight among the copies."""
    values, starts = np.r_[np.linspace(0, 1, 150), large], rng(1).standard_normal((2, 150 + len(large)))
    found = recurrence(as_operator(np.diag(size * values).astype(dtype)), starts, 90).quadrature()
    shares = starts**2 / (starts**2).sum(1, keepdims=True)
    for at, width in ((0.5, 0.2), (0.9, 0.1), (50.0, 1.0)):
        by_nodes, exact = (
            (weight * np.exp(-(((value - at) / width) ** 2) / 2)).sum(1)
            for value, weight in ((found.nodes / size, found.weights), (values, shares))
        )
        assert_allclose(by_nodes, exact, rtol=0, atol=8 * np.finfo(dtype).eps * max(large))


@pytest.mark.parametrize("kind", ["re-orthogonalised", "three terms"])
def test_a_start_in_an_invariant_subspace_stops_there(kind: str) -> None:
    values = np.array([-2.0, -2.0, -1.0, 3.0, 3.0, 3.0, 7.0])
    starts = np.array([[1.0, 1, 0, 2, 0, 1, 0], [0, 0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]])
    matrix = as_operator(np.diag(values))
    nodes, weights = (
        quadrature(matrix, starts, 6) if kind[0] == "r" else recurrence(matrix, starts, 6).quadrature()
    )
    exact = [{-2.0: 2 / 7, 3.0: 5 / 7}, {-1.0: 1.0}, {-2.0: 2 / 7, -1.0: 1 / 7, 3.0: 3 / 7, 7.0: 1 / 7}]
    for node, weight, shares in zip(nodes, weights, exact, strict=True):
        for value, share in shares.items():
            assert_allclose(weight[np.abs(node - value) < 1e-9].sum(), share, atol=1e-12)
        # what is left over has no weight and does not widen the spectrum
        assert min(shares) - 1e-9 < node.min() and node.max() < max(shares) + 1e-9


# --- from a start of one's own -----------------------------------------------------------------------------------

VALUES = np.array([5.0, 4.0, 2.0, *np.linspace(-1, 1, 57)])
MATRIX = rotated(VALUES)
BASIS = np.linalg.eigh(MATRIX)[1][:, ::-1]
RANDOM = rng(1).standard_normal(60)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-10])
def test_residual_is_that_of_the_pair_and_bounds_its_error(tolerance: float) -> None:
    found = warm_start(MATRIX, RANDOM, tolerance=tolerance)
    vector = found.vector.numpy()
    assert_allclose(np.linalg.norm(vector), 1, rtol=1e-12)
    assert abs(found.residual - np.linalg.norm(MATRIX @ vector - found.value * vector)) < 1e-12
    assert found.residual <= tolerance * found.value
    assert np.abs(VALUES - found.value).min() <= found.residual and found.value <= 5 + 1e-12


def test_fewest_and_most_products_are_kept() -> None:
    assert warm_start(MATRIX, BASIS[:, 0] + 1e-3 * RANDOM, least=7).products == 7
    found = warm_start(MATRIX, RANDOM, tolerance=1e-12, steps=4)
    assert found.products == 4 and found.residual > 1e-3  # it says that it has not arrived


def test_a_start_without_the_largest_leads_to_another() -> None:
    """No residual tells."""
    found = warm_start(MATRIX, BASIS[:, 1] + BASIS[:, 2], tolerance=1e-9)
    assert_allclose(found.value, 4, rtol=1e-12)
    assert found.products == 2 and found.residual < 1e-9


def test_leading_vectors_are_those_of_the_largest_ritz_values() -> None:
    found = warm_start(MATRIX, RANDOM, tolerance=1e-10, least=30)
    assert_allclose(np.abs(found.leading.numpy() @ BASIS[:, :3]), np.eye(3), atol=1e-4)
    assert torch.equal(found.leading[0], found.vector)
    assert warm_start(MATRIX, BASIS[:, 0]).leading.shape == (1, 60)


def test_negative_and_zero_matrices_and_single_precision() -> None:
    assert_allclose(warm_start(-np.diag([1.0, 2.0, 3.0]), np.ones(3), tolerance=1e-9).value, -1, rtol=1e-9)
    assert warm_start(np.zeros((3, 3)), np.ones(3)).value == 0
    found = warm_start(MATRIX.astype(np.float32), RANDOM, tolerance=1e-12)
    assert found.vector.dtype == torch.float32
    assert 0 < abs(found.value - 5) + found.residual < 1e-4  # stops at the rounding


# --- millions in single precision --------------------------------------------------------------------------------

DIM = 10**6 + 1


def test_sums_of_millions_have_the_digits_of_their_type() -> None:
    """Plain sums are off by half a per cent for lengths of a hundred million."""
    rows = torch.randn(2, DIM, generator=torch.Generator().manual_seed(0))
    exact = rows.double() @ rows.double().mT
    norms = exact.diagonal().sqrt()
    assert_allclose(inner_products(rows, rows.mT), exact, rtol=2e-6, atol=2e-6 * DIM)
    assert_allclose(inner_products(rows, rows[0]), exact[0], rtol=2e-6, atol=2e-6 * DIM)
    assert_allclose(dots(rows, rows), exact.diagonal(), rtol=2e-6)
    assert_allclose(length(rows[0]), norms[0], rtol=2e-6)
    assert_allclose(row_lengths(rows), norms, rtol=2e-6)


def test_eigenvalues_of_millions_are_found_as_closely_as_products_allow() -> None:
    """A diagonal matrix, whose products are right to the last digit: nothing is lost but by sums."""
    values = torch.linspace(-0.1, 0.1, DIM)
    values[1:4] = torch.tensor([0.5, 1.0, 0.7])
    operator = Operator(product=lambda v: v * values, dim=DIM, dtype=torch.float32)
    found = extremes(operator, rng(), tolerance=3e-5, kept=6)
    assert found.converged.all() and abs(found.values[0] - 1) < 1e-5
