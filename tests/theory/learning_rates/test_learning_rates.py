"""Learning rates against the iterations they describe."""

from __future__ import annotations

import math

import numpy as np
from numpy.testing import assert_allclose

from theory.batch_hessian import batch_eigenvalue
from theory.learning_rates import (
    heavy_ball,
    linear_then_flat,
    mean_square_limit,
    nesterov,
    sgd_limit,
    stability_limit,
)


def test_gradient_descent_is_stable_below_its_limit_only() -> None:
    sharpness = np.array([0.3, 2.0, 50.0])
    limit = stability_limit(sharpness)

    assert_allclose(np.abs(1 - limit * sharpness), 1.0, rtol=1e-15)
    assert np.all(np.abs(1 - 0.999 * limit * sharpness) < 1) and np.all(
        np.abs(1 - 1.001 * limit * sharpness) > 1
    )


def test_a_round_bowl_takes_one_step() -> None:
    for method in (heavy_ball, nesterov):
        assert method(4.0, 4.0) == (0.25, 0.0, 0.0)


def test_sgd_limit_is_stable_for_the_batch_eigenvalue() -> None:
    sizes = {"batch_size": [1, 8, 64, 100], "dataset_size": 100}
    rate = sgd_limit(2.0, sigma=0.3, dim=200, **sizes)

    assert_allclose(rate * batch_eigenvalue(2.0, sigma=0.3, dim=200, **sizes), 2.0, rtol=1e-15)
    assert rate[-1] == stability_limit(2.0)


def test_mean_square_limit_keeps_the_squared_length_of_one_step() -> None:
    """E |(I - a H_B) v|^2 = 1 over all batches of a small data set, with the variance of H_i v."""
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((5, 4, 2))
    matrices = factors @ factors.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(matrices.mean(axis=0))
    top = vectors[:, -1]
    noise = (matrices @ top).var(axis=0, ddof=1).sum()
    for batch in (1, 4):
        rate = mean_square_limit(values[-1], noise=noise, batch_size=batch, dataset_size=5)
        members = matrices if batch == 1 else (matrices.sum(axis=0) - matrices) / 4
        lengths = [np.sum((top - rate * m @ top) ** 2) for m in members]
        assert_allclose(np.mean(lengths), 1.0, rtol=1e-12)


def test_momentum_of_the_largest_eigenvalues_is_in_range() -> None:
    rate, momentum, contraction = heavy_ball(1e308, 1e308 / 4)
    assert_allclose([rate * 1e308, momentum, contraction], [16 / 9, 1 / 9, 1 / 3])
    assert nesterov(1.7e308, 1.0).contraction == 1  # rounding must not pass it


def test_mean_square_limit_survives_overflow_of_its_parts() -> None:
    size = {"batch_size": 1.0, "dataset_size": math.inf}
    assert_allclose(mean_square_limit(1e200, noise=1e300, **size), 2e-200)
    assert_allclose(mean_square_limit(1e-200, noise=1e50, **size), 2e-250)


def test_one_size_keeps_its_rate_however_small_it_is() -> None:
    size = {"known": 1e-307, "batch_size": [1e-307, 2e-307], "crossover": 200, "dataset_size": math.inf}
    assert linear_then_flat(3.0, **size).tolist() == [3.0, 6.0]
