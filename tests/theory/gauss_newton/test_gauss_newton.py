"""The random logit model, against its own matrices built densely, 60-digit arithmetic and random draws."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose

from theory import gauss_newton, softmax

law = settings(deadline=None, max_examples=50, derandomize=True)


def expected_matrix(p: np.ndarray, *, dim: int, sigma_c: float, sigma_e: float) -> np.ndarray:
    """C^T M C + (1 - |p|^2) sigma_e^2 I with orthogonal C of rows of length sqrt(d) sigma_c, not Eq. (7)."""
    classes = p.shape[-1]
    rotation = np.linalg.qr(default_rng(0).normal(size=(dim, dim)))[0][:classes]
    C = np.sqrt(dim) * sigma_c * rotation
    M = np.diag(p) - np.outer(p, p)
    return C.T @ M @ C + (1 - p @ p) * sigma_e**2 * np.eye(dim)


def excess(matrix: np.ndarray) -> float:
    return float(np.trace(matrix) / np.linalg.norm(matrix))


PARAMETERS = [
    (10, 50, 1.0, 2.0),
    (10, 50, 1.0, 0.5),
    (3, 20, 2**0.5, 0.7),
    (4, 4, 0.3, 0.0),
    (5, 9, 0.0, 1.3),
]


@pytest.mark.parametrize(("classes", "dim", "sigma_c", "sigma_e"), PARAMETERS)
def test_eigenvalues_and_excess_are_those_of_the_expected_matrix(
    classes: int, dim: int, sigma_c: float, sigma_e: float
) -> None:
    p = default_rng(classes).dirichlet(np.ones(classes))
    scales = {"dim": dim, "sigma_c": sigma_c, "sigma_e": sigma_e}
    matrix = expected_matrix(p, **scales)
    dense = np.linalg.eigvalsh(matrix)[::-1]

    assert_allclose(gauss_newton.expected_eigenvalues(p, **scales), dense, atol=1e-13 * dense[0])
    assert_allclose(gauss_newton.expected_excess(softmax.gamma(p), **scales), excess(matrix), rtol=1e-12)


def test_eigenvalues_fit_into_one_dimension_less_than_classes() -> None:
    found = gauss_newton.expected_eigenvalues([0.5, 0.3, 0.2], dim=2, sigma_c=1.0, sigma_e=0.0)

    assert_allclose(found, 2 * softmax.eigenvalues([0.5, 0.3, 0.2])[:2], rtol=1e-15)


def test_eigenvalues_keep_their_digits_near_one_hot() -> None:
    found = gauss_newton.expected_eigenvalues([1.0, 1e-300, 1e-300], dim=4, sigma_c=1.0, sigma_e=1.0)

    assert_allclose(found, np.array([4 + 12, 4 + 4, 4, 4]) * 1e-300, rtol=1e-14, atol=0)


@law
@given(st.floats(1, 10), st.integers(1, 10**6), st.floats(0.01, 100), st.floats(0.01, 100))
def test_excess_agrees_with_60_digits(g: float, d: int, c: float, e: float) -> None:
    with mpmath.workdps(60):
        cc, ee = mpmath.mpf(c) ** 2, mpmath.mpf(e) ** 2
        square = ee**2 + 2 * ee * cc + d * cc**2 / mpmath.mpf(g) ** 2
        expected = float(mpmath.sqrt(d) * (cc + ee) / mpmath.sqrt(square))

    assert_allclose(gauss_newton.expected_excess(g, dim=d, sigma_c=c, sigma_e=e), expected, rtol=2e-15)


def test_hessian_excess_of_a_sum_with_traceless_orthogonal_part() -> None:
    """G diagonal and the rest off-diagonal: zero trace and zero inner product, so that it is exact."""
    rng = default_rng(0)
    G = np.diag(rng.uniform(size=8))
    rest = np.triu(rng.normal(size=(8, 8)), 1)
    rest = rest + rest.T
    ratio = np.linalg.norm(rest) / np.linalg.norm(G)

    assert_allclose(
        gauss_newton.hessian_excess(excess(G), frobenius_ratio=ratio), excess(G + rest), rtol=1e-14
    )
    assert gauss_newton.hessian_excess(3.0, frobenius_ratio=1e200) == 3e-200


def test_extreme_scales_whose_result_is_a_float_are_answered() -> None:
    size = {"dim": 2, "sigma_c": 1e160, "sigma_e": 0.0}
    assert_allclose(gauss_newton.expected_eigenvalues([1.0, 1e-300], **size)[0], 4e20)
    assert gauss_newton.expected_gradient_norm(
        [1.0, 1e-200], [1.0, 3e-200], dim=1, sigma_c=1.0
    ) == pytest.approx(2e-200)


def test_no_error_leaves_no_gradient_whatever_its_scale() -> None:
    found = gauss_newton.squared_gradient_norm(
        [0.5, 0.5], [0.5, 0.5], squared_error=[0.0, 0.5], dim=4, sigma_c=1.0, sigma_e=1e150, samples=1
    )
    none = gauss_newton.squared_gradient_norm(
        [0.5, 0.5], [0.5, 0.5], squared_error=0.0, dim=4, sigma_c=1.0, sigma_e=1e200, samples=1
    )
    assert found.tolist() == [0.0, pytest.approx(2e300)] and none == 0
