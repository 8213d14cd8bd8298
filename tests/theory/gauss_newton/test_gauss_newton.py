"""The random logit model, against its own matrices built densely, 60-digit arithmetic and random draws."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import gauss_newton, softmax

law = settings(deadline=None, max_examples=50, derandomize=True)


def expected_matrix(p: np.ndarray, *, dim: int, sigma_c: float, sigma_e: float) -> np.ndarray:
    """C^T M C + (1 - |p|^2) sigma_e^2 I with orthogonal C of rows of length sqrt(d) sigma_c, not Eq. (7)."""
    classes = p.shape[-1]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0][:classes]
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
def test_eigenvalues_are_those_of_the_expected_matrix(
    classes: int, dim: int, sigma_c: float, sigma_e: float
) -> None:
    p = np.random.default_rng(classes).dirichlet(np.ones(classes))
    dense = np.linalg.eigvalsh(expected_matrix(p, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e))[::-1]

    found = gauss_newton.expected_eigenvalues(p, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)
    assert_allclose(found, dense, atol=1e-13 * dense[0])


@pytest.mark.parametrize(("classes", "dim", "sigma_c", "sigma_e"), PARAMETERS)
def test_excess_is_that_of_the_expected_matrix(
    classes: int, dim: int, sigma_c: float, sigma_e: float
) -> None:
    p = np.random.default_rng(classes).dirichlet(np.ones(classes))
    matrix = expected_matrix(p, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)

    found = gauss_newton.expected_excess(softmax.gamma(p), dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)
    assert_allclose(found, excess(matrix), rtol=1e-12)


def test_excess_of_a_batch_takes_gamma_of_the_mean_matrix() -> None:
    p = np.random.default_rng(3).dirichlet(np.full(10, 0.2), size=20)
    mean = np.mean([expected_matrix(q, dim=50, sigma_c=1.0, sigma_e=2.0) for q in p], axis=0)

    found = gauss_newton.expected_excess(softmax.gamma(p, average=True), dim=50, sigma_c=1.0, sigma_e=2.0)
    assert_allclose(found, excess(mean), rtol=1e-12)


def test_expectation_over_the_residuals_is_the_expected_matrix() -> None:
    """Mean of (C + E)^T M (C + E) over 20 000 draws, element by element within 5 standard errors."""
    rng = np.random.default_rng(11)
    p, dim = np.array([0.6, 0.25, 0.1, 0.05]), 6
    rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    J = np.sqrt(dim) * 0.8 * rotation[:4] + 1.7 * rng.normal(size=(20_000, 4, dim))
    draws = np.einsum("nki,k,nkj->nij", J, p, J) - np.einsum("nki,k,l,nlj->nij", J, p, p, J, optimize=True)
    aligned = np.linalg.eigh(rotation[:4].T @ (np.diag(p) - np.outer(p, p)) @ rotation[:4])[1][:, ::-1]
    diagonal = np.einsum("ia,nij,ja->na", aligned, draws, aligned, optimize=True)

    found = gauss_newton.expected_eigenvalues(p, dim=dim, sigma_c=0.8, sigma_e=1.7)
    error = diagonal.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(diagonal.mean(axis=0) - found) < 5 * error)
    assert np.all(error < 0.02 * found)


def test_eigenvalues_at_uniform_probabilities() -> None:
    """(1 - 1/K) sigma_e^2 + d sigma_c^2 / K nine times, the bulk 41 times."""
    found = gauss_newton.expected_eigenvalues(np.full(10, 0.1), dim=50, sigma_c=1.0, sigma_e=2.0)

    assert_allclose(found, [8.6] * 9 + [3.6] * 41, rtol=1e-14)


def test_eigenvalues_fit_into_one_dimension_less_than_classes() -> None:
    found = gauss_newton.expected_eigenvalues([0.5, 0.3, 0.2], dim=2, sigma_c=1.0, sigma_e=0.0)

    assert_allclose(found, 2 * softmax.eigenvalues([0.5, 0.3, 0.2])[:2], rtol=1e-15)


def test_eigenvalues_broadcast_scales_against_leading_axes() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    found = gauss_newton.expected_eigenvalues(p, dim=5, sigma_c=[[1.0], [2.0]], sigma_e=[1.0, 2.0, 3.0, 0.0])

    assert found.shape == (2, 4, 5)
    single = gauss_newton.expected_eigenvalues(p[2], dim=5, sigma_c=2.0, sigma_e=3.0)
    assert_allclose(found[1, 2], single, rtol=1e-15)


def test_eigenvalues_keep_their_digits_near_one_hot() -> None:
    found = gauss_newton.expected_eigenvalues([1.0, 1e-300, 1e-300], dim=4, sigma_c=1.0, sigma_e=1.0)

    assert_allclose(found, np.array([4 + 12, 4 + 4, 4, 4]) * 1e-300, rtol=1e-14, atol=0)


def test_excess_golden_values() -> None:
    found = gauss_newton.expected_excess(5**0.5, dim=[10, 50, 200, 10**8], sigma_c=1.0, sigma_e=2.0)

    assert_allclose(found, [3.1009, 6.0634, 8.8388, 11.1803], atol=5e-5)


@law
@given(st.floats(1, 10), st.integers(1, 10**6), st.floats(0.01, 100), st.floats(0.01, 100))
def test_excess_agrees_with_60_digits(g: float, d: int, c: float, e: float) -> None:
    with mpmath.workdps(60):
        cc, ee = mpmath.mpf(c) ** 2, mpmath.mpf(e) ** 2
        square = ee**2 + 2 * ee * cc + d * cc**2 / mpmath.mpf(g) ** 2
        expected = float(mpmath.sqrt(d) * (cc + ee) / mpmath.sqrt(square))

    assert_allclose(gauss_newton.expected_excess(g, dim=d, sigma_c=c, sigma_e=e), expected, rtol=2e-15)


@law
@given(st.floats(1, 5), st.floats(1e-3, 1e3), st.floats(0, 1e3))
def test_excess_grows_with_dimension_up_to_its_ceilings(g: float, c: float, e: float) -> None:
    dims = np.array([25, 50, 1000, 10**9])
    found = gauss_newton.expected_excess(g, dim=dims, sigma_c=c, sigma_e=e)

    assert np.all(np.diff(found) >= -1e-12 * found[1:])
    assert np.all(found <= np.minimum(np.sqrt(dims), g * (1 + (e / c) ** 2)) * (1 + 1e-12))


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_excess_depends_on_the_ratio_of_the_scales_only(scale: float) -> None:
    found = gauss_newton.expected_excess(2.0, dim=50, sigma_c=scale, sigma_e=2 * scale)

    assert_allclose(found, gauss_newton.expected_excess(2.0, dim=50, sigma_c=1.0, sigma_e=2.0), rtol=1e-14)


def test_excess_of_one_kind_of_gradient_alone() -> None:
    assert_allclose(gauss_newton.expected_excess(2.5, dim=50, sigma_c=3.0, sigma_e=0.0), 2.5, rtol=1e-15)
    assert_allclose(gauss_newton.expected_excess(2.5, dim=50, sigma_c=0.0, sigma_e=3.0), 50**0.5, rtol=1e-15)


@pytest.mark.parametrize("sigma_c", [0.1, 1.0, 3.0])
def test_gradient_norm_is_that_of_the_sum_over_class_means(sigma_c: float) -> None:
    rng = np.random.default_rng(1)
    predicted, prior = rng.dirichlet(np.ones(7), size=2)
    C = np.sqrt(30) * sigma_c * np.linalg.qr(rng.normal(size=(30, 30)))[0][:7]

    found = gauss_newton.expected_gradient_norm(predicted, prior, dim=30, sigma_c=sigma_c)
    assert_allclose(found, np.linalg.norm(C.T @ (predicted - prior)), rtol=1e-13)


def test_gradient_norm_vanishes_for_matching_frequencies_and_broadcasts() -> None:
    predicted = np.array([[0.25, 0.75], [1.0, 0.0]])
    found = gauss_newton.expected_gradient_norm(predicted, [0.25, 0.75], dim=[[2], [8]], sigma_c=1.0)

    assert_allclose(found, [[0.0, 1.5], [0.0, 3.0]], rtol=1e-15)


def haar_moments(spectrum: np.ndarray, dim: int) -> tuple[float, float]:
    """Exact mean trace and mean squared Frobenius norm of a projection, for any number of parameters."""
    P = spectrum.size
    within = dim * (dim * (P + 1) - 2) / (P * (P - 1) * (P + 2))
    across = dim * (P - dim) / (P * (P - 1) * (P + 2))
    square = (within + across) * (spectrum**2).sum() + across * spectrum.sum() ** 2
    return dim / P * spectrum.sum(), float(square)


@pytest.mark.parametrize("dim", [1, 5, 50])
def test_projected_excess_is_the_limit_of_the_exact_moments(dim: int) -> None:
    """At 10^7 parameters the exact second moment over Haar frames is reached to O(d/P)."""
    spectrum = np.concatenate([np.full(9, 1e3), np.linspace(-0.5, 1.0, 10**6)])
    trace, square = haar_moments(spectrum, dim)
    r = spectrum.sum() / np.linalg.norm(spectrum)

    assert_allclose(gauss_newton.projected_excess(r, dim=dim), trace / np.sqrt(square), rtol=2 * dim / 1e6)


def test_exact_moments_and_noise_floor_agree_with_haar_draws() -> None:
    """3000 random frames of dimension 6 in 200: moments within 5 standard errors, then the noise floor."""
    rng = np.random.default_rng(2)
    spectrum = np.concatenate([np.linspace(-2, 2, 196), [3.0, -3.0, 1.0, -1.0]])
    frames = np.linalg.qr(rng.normal(size=(3000, 200, 6)))[0]
    projected = np.swapaxes(frames, 1, 2) @ (spectrum[:, None] * frames)
    traces, squares = np.trace(projected, axis1=1, axis2=2), np.square(projected).sum(axis=(1, 2))
    trace, square = haar_moments(spectrum, 6)

    assert abs(traces.mean() - trace) < 5 * traces.std() / np.sqrt(3000)
    assert abs(squares.mean() - square) < 5 * squares.std() / np.sqrt(3000)
    floor = gauss_newton.excess_noise_floor(6)
    assert_allclose(np.sqrt(np.square(traces).mean() / square), floor, rtol=0.06)  # 5 standard errors, O(d/P)


def test_projected_excess_limits_and_signs() -> None:
    assert_allclose(gauss_newton.projected_excess([2.0, -2.0], dim=10**12), [2.0, -2.0], rtol=1e-11)
    assert_allclose(gauss_newton.projected_excess(1e300, dim=49), 7.0, rtol=1e-15)
    assert_allclose(gauss_newton.projected_excess(5.0948, dim=[5, 50, 100]), [2.015, 4.107, 4.522], atol=6e-4)


@pytest.mark.parametrize(("dim", "floor"), [(1, 1.0), (49, 0.2), (7, 0.5)])
def test_noise_floor_values(dim: int, floor: float) -> None:
    assert_allclose(gauss_newton.excess_noise_floor(dim), floor, rtol=1e-15)


def test_hessian_excess_of_a_sum_with_traceless_orthogonal_part() -> None:
    """G diagonal and the rest off-diagonal: zero trace and zero inner product, so that it is exact."""
    rng = np.random.default_rng(0)
    G = np.diag(rng.uniform(size=8))
    rest = np.triu(rng.normal(size=(8, 8)), 1)
    rest = rest + rest.T
    ratio = np.linalg.norm(rest) / np.linalg.norm(G)

    assert_allclose(
        gauss_newton.hessian_excess(excess(G), frobenius_ratio=ratio), excess(G + rest), rtol=1e-14
    )
    assert gauss_newton.hessian_excess(3.0, frobenius_ratio=1e200) == 3e-200


BOTH = {"sigma_c": 1.0, "sigma_e": 1.0}


@pytest.mark.parametrize("dim", [1, 2.5, -3])
def test_eigenvalues_refuse_too_few_dimensions(dim: int) -> None:
    with pytest.raises(ValueError, match="dim must be an integer >= 2"):
        gauss_newton.expected_eigenvalues([0.5, 0.3, 0.2], dim=dim, **BOTH)


@pytest.mark.parametrize("dim", [0, 2.5, [3, -1]])
def test_dimension_must_be_whole_and_positive(dim: float) -> None:
    rule = "dim must be a whole number >= 1, got"
    with pytest.raises(ValueError, match=rule):
        gauss_newton.expected_excess(2.0, dim=dim, **BOTH)
    with pytest.raises(ValueError, match=rule):
        gauss_newton.projected_excess(2.0, dim=dim)
    with pytest.raises(ValueError, match=rule):
        gauss_newton.excess_noise_floor(dim)
    with pytest.raises(ValueError, match=rule):
        gauss_newton.expected_gradient_norm([0.5, 0.5], [0.5, 0.5], dim=dim, sigma_c=1.0)


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"sigma_c": -1.0, "sigma_e": 1.0}, "sigma_c must be non-negative and finite"),
        ({"sigma_c": 1.0, "sigma_e": np.inf}, "sigma_e must be non-negative and finite"),
        ({"sigma_c": [1.0, 0.0], "sigma_e": 0.0}, "sigma_c and sigma_e must be not both 0"),
    ],
)
def test_scales_must_be_non_negative_and_not_both_zero(scales: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gauss_newton.expected_excess(2.0, dim=5, **scales)
    with pytest.raises(ValueError, match=message):
        gauss_newton.expected_eigenvalues([0.5, 0.5], dim=5, **scales)


def test_gamma_must_be_at_least_one_up_to_rounding() -> None:
    with pytest.raises(ValueError, match=r"gamma must be at least 1, got 0\.99"):
        gauss_newton.expected_excess(0.99, dim=5, **BOTH)
    assert np.isfinite(gauss_newton.expected_excess(1 - 3e-16, dim=5, **BOTH))


def test_gradient_norm_refuses_bad_probabilities() -> None:
    with pytest.raises(ValueError, match="mean_probability must be a probability vector"):
        gauss_newton.expected_gradient_norm([0.5, 0.4], [0.5, 0.5], dim=5, sigma_c=1.0)
    with pytest.raises(ValueError, match="prior must be a probability vector"):
        gauss_newton.expected_gradient_norm([0.5, 0.5], [2.0, -1.0], dim=5, sigma_c=1.0)
    with pytest.raises(ValueError, match="prior must be over 2 classes"):
        gauss_newton.expected_gradient_norm([0.5, 0.5], [0.2, 0.3, 0.5], dim=5, sigma_c=1.0)
    with pytest.raises(ValueError, match="sigma_c must be non-negative"):
        gauss_newton.expected_gradient_norm([0.5, 0.5], [0.5, 0.5], dim=5, sigma_c=-1.0)


def test_excesses_must_be_finite_and_ratios_non_negative() -> None:
    with pytest.raises(ValueError, match="excess must be finite"):
        gauss_newton.projected_excess(np.inf, dim=5)
    with pytest.raises(ValueError, match="gauss_newton_excess must be non-negative"):
        gauss_newton.hessian_excess(-1.0, frobenius_ratio=1.0)
    with pytest.raises(ValueError, match="frobenius_ratio must be non-negative"):
        gauss_newton.hessian_excess(1.0, frobenius_ratio=-1.0)


def test_extreme_scales_whose_result_is_a_float_are_answered() -> None:
    size = {"dim": 2, "sigma_c": 1e160, "sigma_e": 0.0}
    assert_allclose(gauss_newton.expected_eigenvalues([1.0, 1e-300], **size)[0], 4e20)
    assert gauss_newton.expected_gradient_norm(
        [1.0, 1e-200], [1.0, 3e-200], dim=1, sigma_c=1.0
    ) == pytest.approx(2e-200)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gauss_newton.expected_eigenvalues([0.5, 0.5], dim=3, sigma_c=1e200, sigma_e=1.0),
            "dim, sigma_c, sigma_e must be such that the result does not overflow",
        ),
        (
            lambda: gauss_newton.expected_eigenvalues([0.5, 0.5], dim=3, sigma_c=[1, 2], sigma_e=[1, 2, 3]),
            "sigma_c, sigma_e must be broadcastable",
        ),
        (
            lambda: gauss_newton.expected_gradient_norm(
                [0.5, 0.5], [0.5, 0.5], dim=[1, 2], sigma_c=[1, 2, 3]
            ),
            "mean_probability, dim, sigma_c must be broadcastable",
        ),
    ],
)
def test_what_overflows_or_does_not_fit_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_no_error_leaves_no_gradient_whatever_its_scale() -> None:
    found = gauss_newton.squared_gradient_norm(
        [0.5, 0.5], [0.5, 0.5], squared_error=[0.0, 0.5], dim=4, sigma_c=1.0, sigma_e=1e150, samples=1
    )
    none = gauss_newton.squared_gradient_norm(
        [0.5, 0.5], [0.5, 0.5], squared_error=0.0, dim=4, sigma_c=1.0, sigma_e=1e200, samples=1
    )
    assert found.tolist() == [0.0, pytest.approx(2e300)] and none == 0
