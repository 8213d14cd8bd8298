"""Random subspaces and finite samples: exact moments against draws, and each other in their limits."""

import mpmath
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from theory import gauss_newton, softmax
from theory.gauss_newton.projection import _mean_inverse_count


def matrix(seed: int, size: int) -> np.ndarray:
    """Random, with a strong diagonal, so that the axes matter."""
    H = default_rng(seed).normal(size=(size, size))
    return H + H.T + np.diag(np.linspace(-6, 24, size))


def close(draws: np.ndarray, expected: float) -> bool:
    return abs(draws.mean() - expected) < 5 * draws.std() / np.sqrt(len(draws))


def sparse_frame(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    frame = rng.choice(
        [-1.0, 0.0, 1.0], size=(rows, columns), p=[rows**-0.5 / 2, 1 - rows**-0.5, rows**-0.5 / 2]
    )
    while (empty := ~frame.any(axis=0)).any():
        frame[:, empty] = sparse_frame(rng, rows, int(empty.sum()))
    return frame / np.linalg.norm(frame, axis=0)


def test_sparse_moments_are_the_means_over_frames_and_not_those_of_haar() -> None:
    H, rng, size, dim = matrix(2, 30), default_rng(3), 30, 4
    frames = [sparse_frame(rng, size, dim) for _ in range(4000)]
    projected = [R.T @ H @ R for R in frames]
    squares = np.array([np.square(A).sum() for A in projected])
    norms = np.trace(H), np.square(H).sum()
    diagonal = np.square(np.diag(H)).sum()
    found = gauss_newton.sparse_moments(*norms, squared_diagonal=diagonal, dim=dim, parameters=size)
    haar = gauss_newton.haar_moments(*norms, dim=dim, parameters=size)

    assert close(squares, float(found.squared_norm)) and not close(squares, float(haar.squared_norm))
    assert close(np.array([np.trace(A) for A in projected]), float(found.trace))
    overlaps = np.array([np.square(R.T @ R - np.eye(dim)).sum() for R in frames])
    assert close(overlaps, float(gauss_newton.frame_overlap(dim, parameters=size)))


@pytest.mark.parametrize("rows", [1, 2, 3, 20, 400, 10**4])
def test_mean_inverse_count_of_a_positive_binomial(rows: int) -> None:
    with mpmath.workdps(40):
        q = 1 / mpmath.sqrt(rows)
        weights = [
            mpmath.binomial(rows, n) * q**n * (1 - q) ** (rows - n) for n in range(1, min(rows, 600) + 1)
        ]
        expected = mpmath.fsum(w / n for n, w in enumerate(weights, 1)) / mpmath.fsum(weights)

    assert_allclose(_mean_inverse_count(float(rows)), float(expected), rtol=2e-15)


def test_mean_inverse_count_is_continuous_where_its_series_begins() -> None:
    below, above = _mean_inverse_count(1e16), _mean_inverse_count(1e16 + 2)

    assert_allclose(below, above, rtol=1e-14)


@pytest.mark.parametrize("dim", [1, 7, 100])
def test_projected_excess_is_that_of_the_haar_moments(dim: int) -> None:
    r = np.array([-3.0, 0.4, 9.9])
    exact = gauss_newton.haar_moments(r, 1.0, dim=dim, parameters=100).excess

    assert_allclose(gauss_newton.projected_excess(r, dim=dim, parameters=100), exact, rtol=1e-14)
    limit = gauss_newton.projected_excess(r, dim=dim)
    assert_allclose(gauss_newton.projected_excess(r, dim=dim, parameters=10**12), limit, rtol=1e-9)


def test_noise_floor_at_any_size_agrees_with_draws_and_vanishes_in_the_whole_space() -> None:
    H = matrix(4, 12)
    H -= np.eye(12) * np.trace(H) / 12
    R = np.linalg.qr(default_rng(5).normal(size=(4000, 12, 5)))[0]
    traces = np.trace(np.swapaxes(R, 1, 2) @ H @ R, axis1=1, axis2=2)
    square = gauss_newton.haar_moments(0.0, np.square(H).sum(), dim=5, parameters=12).squared_norm

    floor = gauss_newton.excess_noise_floor(5, parameters=12)
    assert close(traces**2 / square, float(floor**2))
    assert gauss_newton.excess_noise_floor(12, parameters=12) == 0.0
    assert_allclose(
        gauss_newton.excess_noise_floor(50), gauss_newton.excess_noise_floor(50, parameters=10**15)
    )


PROBABILITIES = default_rng(7).dirichlet([0.3, 1.0, 2.0], size=4)


@pytest.mark.parametrize("samples", [1, 2, 4])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_finite_sample_excess_is_that_of_drawn_matrices(samples: int, orthogonal: bool) -> None:
    """20 000 draws of the model in six dimensions; residuals are the larger part."""
    rng, d, c, e = default_rng(8), 6, 0.8, 1.3
    p = PROBABILITIES[:samples]
    C = c * rng.normal(size=(20_000, 1, 3, d))
    if orthogonal:
        C = np.sqrt(d) * c * np.broadcast_to(np.eye(3, d), C.shape)
    J = C + e * rng.normal(size=(20_000, samples, 3, d))
    G = (np.swapaxes(J, -1, -2) @ softmax.covariance(p) @ J).mean(axis=1)
    trace = d * (c * c + e * e) * np.trace(softmax.covariance(p).mean(axis=0))
    gammas = softmax.batch_gammas(p)
    found = gauss_newton.finite_sample_excess(*gammas, dim=d, sigma_c=c, sigma_e=e, orthogonal=orthogonal)

    assert close(np.square(G).sum(axis=(1, 2)), float((trace / found) ** 2))
    assert close(np.trace(G, axis1=1, axis2=2), float(trace))


def test_squared_gradient_norm_is_the_mean_over_draws() -> None:
    rng, d, N, c, e = default_rng(9), 5, 12, 0.7, 1.9
    p, y = rng.dirichlet(np.ones(4), size=N), np.eye(4)[rng.integers(0, 4, N)]
    C, E = c * rng.normal(size=(8000, 1, 4, d)), e * rng.normal(size=(8000, N, 4, d))
    g = np.einsum("nk,rnki->ri", p - y, C + E) / N
    error = np.square(p - y).sum(axis=1).mean()
    given = {"squared_error": error, "dim": d, "sigma_c": c, "samples": N}
    found = gauss_newton.squared_gradient_norm(p.mean(axis=0), y.mean(axis=0), sigma_e=e, **given)

    assert close(np.square(g).sum(axis=1), float(found))
    plain = gauss_newton.expected_gradient_norm(p.mean(axis=0), y.mean(axis=0), dim=d, sigma_c=c)
    silent = gauss_newton.squared_gradient_norm(p.mean(axis=0), y.mean(axis=0), sigma_e=0.0, **given)
    assert_allclose(silent, plain**2, rtol=1e-14)
