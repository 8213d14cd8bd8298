"""The excess of a spectrum, its ceilings, and the gradients of the random logit model."""

from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats

from theory import gauss_newton, softmax


def test_excess_of_a_spectrum_is_that_of_the_matrix() -> None:
    a = default_rng(0).standard_normal((3, 6, 6))
    a += np.swapaxes(a, 1, 2) + 1.5 * np.eye(6)
    dense = np.trace(a, axis1=1, axis2=2) / np.linalg.norm(a, axis=(1, 2))

    assert_allclose(gauss_newton.spectrum_excess(np.linalg.eigvalsh(a)), dense, rtol=1e-12)
    assert_allclose(gauss_newton.spectrum_excess([1e300, 1e300, 0.0]), np.sqrt(2), rtol=1e-15)


@pytest.mark.parametrize("rank", [1, 2, 7])
def test_largest_excess_is_reached_by_equal_eigenvalues_alone(rank: int) -> None:
    largest = gauss_newton.largest_excess(rank)
    drawn = default_rng(1).standard_normal((500, rank)) + 2

    assert_allclose(gauss_newton.spectrum_excess([0.3] * rank + [0.0] * 5), largest, rtol=1e-14)
    assert np.all(gauss_newton.spectrum_excess(drawn) <= largest * (1 + 1e-14))
    assert_allclose(softmax.gamma(np.full(rank + 1, 1 / (rank + 1))), largest, rtol=1e-13)


@pytest.mark.parametrize(("gamma", "scales"), [(1.2, (1.0, 2.0)), (2.7, (0.4, 0.1)), (1.0, (1.0, 0.0))])
def test_ceiling_is_the_limit_of_equation_8_in_high_dimension(
    gamma: float, scales: tuple[float, float]
) -> None:
    given = {"sigma_c": scales[0], "sigma_e": scales[1]}
    limit = gauss_newton.expected_excess(gamma, dim=1e30, **given)
    dims = np.array([1, 2, 9, 50, 4000])
    feasible = dims >= gamma**2

    assert_allclose(gauss_newton.excess_ceiling(gamma, dim=1e30, **given), limit, rtol=1e-12)
    found = gauss_newton.expected_excess(gamma, dim=dims, **given)
    ceiling = gauss_newton.excess_ceiling(gamma, dim=dims, **given)
    assert np.all((found <= ceiling * (1 + 1e-14))[feasible])
    assert gauss_newton.excess_ceiling(1.0, dim=9, sigma_c=0.0, sigma_e=1.0) == 3.0


def test_gradient_weights_and_their_norm() -> None:
    predicted, prior = default_rng(2).dirichlet(np.ones(5), size=(2, 3))
    weights = gauss_newton.expected_gradient_weights(predicted, prior)
    frame = np.linalg.qr(default_rng(3).standard_normal((8, 5)))[0]

    mean = weights @ (frame * np.sqrt(8) * 0.7).T
    norm = gauss_newton.expected_gradient_norm(predicted, prior, dim=8, sigma_c=0.7)
    assert_allclose(np.linalg.norm(mean, axis=1), norm, rtol=1e-13)


@pytest.mark.parametrize("dim", [1, 3, 40])
def test_scatter_is_that_of_chi_squared(dim: int) -> None:
    law = stats.chi2(dim)
    assert_allclose(gauss_newton.gradient_scatter(dim), law.var() / law.mean() ** 2, rtol=1e-13)


MATRIX = np.array(
    [[1.3, 0.4, -0.7, 0.2], [0.4, -0.6, 0.1, 0.9], [-0.7, 0.1, 2.1, -0.3], [0.2, 0.9, -0.3, 0.5]]
)


each_matrix = pytest.mark.parametrize("matrix", [MATRIX, MATRIX @ MATRIX, np.diag([3.0, -1.0])])


@each_matrix
def test_variance_over_normal_probes_by_quadrature(matrix: np.ndarray) -> None:
    """Three nodes a component are exact: the square of the form has degree four."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    probes = np.array(list(product(nodes, repeat=len(matrix))))
    chances = np.prod(list(product(weights, repeat=len(matrix))), axis=1)
    forms = ((probes @ matrix) * probes).sum(axis=1)
    variance = chances @ forms**2 - (chances @ forms) ** 2

    assert_allclose(gauss_newton.normal_probe_variance(np.square(matrix).sum()), variance, rtol=1e-12)


@each_matrix
def test_variance_over_all_signs(matrix: np.ndarray) -> None:
    signs = np.array(list(product((-1.0, 1.0), repeat=len(matrix))))
    forms = ((signs @ matrix) * signs).sum(axis=1)
    found = gauss_newton.sign_probe_variance(
        np.square(matrix).sum(), squared_diagonal=np.square(np.diag(matrix)).sum()
    )

    assert_allclose(forms.mean(), np.trace(matrix), rtol=1e-13)
    assert_allclose(found, forms.var(), rtol=1e-12, atol=1e-12)
