"""Learning rates against the iterations they describe."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import learning_rates
from theory.batch_hessian import batch_eigenvalue
from theory.learning_rates import (
    edge_of_stability,
    heavy_ball,
    linear_then_flat,
    mean_square_limit,
    nesterov,
    sgd_limit,
    stability_limit,
)


def test_sgd_limit_is_stable_for_the_batch_eigenvalue() -> None:
    sizes = {"batch_size": [1, 8, 64, 100], "dataset_size": 100}
    rate = sgd_limit(2.0, sigma=0.3, dim=200, **sizes)

    assert_allclose(rate * batch_eigenvalue(2.0, sigma=0.3, dim=200, **sizes), 2.0, rtol=1e-15)
    assert rate[-1] == stability_limit(2.0)


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


METHODS = ["heavy_ball", "nesterov"]
INTERVALS = [(10.0, 0.1), (100.0, 1.3), (0.9, 0.013), (7.0, 3.0), (1e-3, 1e-7)]


def radius(method: str, rate: float, rho: float, eigenvalues: Any) -> float:
    """Worst spectral radius of the companion matrix."""
    worst = 0.0
    for h in eigenvalues:
        shrink = 1 - rate * h
        row = [(1 + rho) * shrink, -rho * shrink] if method == "nesterov" else [shrink + rho, -rho]
        worst = max(worst, float(np.abs(np.linalg.eigvals(np.array([row, [1.0, 0.0]]))).max()))
    return worst


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    rate=st.floats(0.01, 3.0),
    rho=st.floats(-1.5, 1.5),
    largest=st.floats(-2.0, 4.0),
    share=st.floats(0.0, 1.0),
)
def test_the_worst_eigenvalue_is_an_end_of_the_interval(
    method: str, rate: float, rho: float, largest: float, share: float
) -> None:
    smallest = largest - 5 * share
    found = getattr(learning_rates, f"{method}_contraction")(rate, rho, largest=largest, smallest=smallest)

    inside = radius(method, rate, rho, np.linspace(smallest, largest, 31))
    assert_allclose(found, inside, rtol=1e-6)


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_no_other_nesterov_is_faster(largest: float, smallest: float) -> None:
    best = learning_rates.best_nesterov(largest, smallest)
    for a in (0.95, 1.0, 1.05):
        for m in (0.95, 1.0, 1.02):
            found = learning_rates.nesterov_contraction(
                a * best.learning_rate, m * best.momentum, largest=largest, smallest=smallest
            )
            assert found > best.contraction * (1 - 1e-6)


def test_best_nesterov_at_its_ends() -> None:
    assert learning_rates.best_nesterov(4.0, 4.0) == (0.25, 0.0, 0.0)
    assert learning_rates.best_nesterov(1.0, 1e-308).contraction <= 1
    nearly = learning_rates.best_nesterov(1.0, 1 - 1e-15)
    assert_allclose(nearly.contraction, 3 * 1e-15 / 8, rtol=0.2)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_stationary_preconditioner_has_the_least_trace(seed: int) -> None:
    """At the edge of H <= 2P along the signs; diagonal matrices with less trace are not feasible."""
    rng = np.random.default_rng(seed)
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    off = np.triu(rng.uniform(0.1, 1.0, (4, 4)), 1)
    hessian = (off + off.T) * np.outer(signs, signs) + np.diag(rng.uniform(0.2, 2.0, 4))
    coupling = np.abs(hessian).sum(1) - np.diag(hessian)
    found = edge_of_stability.stationary_preconditioner(curvature=np.diag(hessian), coupling=coupling)
    assert_allclose(np.linalg.eigvalsh(2 * np.diag(found) - hessian)[0], 0.0, atol=1e-12)
    for _ in range(200):
        other = found * np.exp(0.3 * rng.standard_normal(4))
        other *= 0.999 * found.sum() / other.sum()
        assert np.linalg.eigvalsh(2 * np.diag(other) - hessian)[0] < 0
