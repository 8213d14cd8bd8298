"""Optimisers on quadratics against what can be enumerated or solved by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.linalg import eigvalsh
from numpy.testing import assert_allclose

from simulate.monte_carlo import Block, fixture
from simulate.training import optimisers
from simulate.training.optimisers import descent_step, heavy_ball_step, nesterov_step, step_contraction


def samples(count: int, dim: int, rank: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((count, dim, rank)) * rng.exponential(size=(count, 1, 1))
    return factors @ factors.swapaxes(1, 2)


SETS = {
    "thin": samples(6, 3, 1),
    "full": samples(5, 3, 4),
    "flat directions": samples(4, 6, 1),
    "one": samples(1, 2, 2),
    "by Lanczos": samples(8, 10, 2),
    "alike": np.stack([3 * np.eye(2)] * 2),
    "alike, by Lanczos": np.stack([0.5 * np.eye(9)] * 2),
    "one direction each": np.stack([np.diag(row) for row in np.eye(9)]),
    "two groups": np.stack([np.diag(row) for row in np.repeat([1.0, 2.0], [4, 6]) * np.eye(10)]),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("batch", [1, 2, 4])
def test_the_second_moment_stands_still_at_the_limit(name: str, batch: int) -> None:
    """Over every batch there is: an average over subsets, not the formula for them."""
    matrices = SETS[name]
    batch = min(batch, len(matrices))
    rate, moment = optimisers.largest_stable_rate(optimisers.population(matrices), batch)
    batches = optimisers.all_batches(matrices, batch)
    steps = np.eye(len(moment)) - rate * batches
    assert_allclose(np.mean(steps @ moment @ steps, axis=0), moment, atol=1e-12)
    assert_allclose(np.trace(moment), 1.0)
    assert eigvalsh(moment)[0] > -1e-12
    assert optimisers.moment_radius(batches, 1.001 * rate) > 1 + 1e-6


@pytest.mark.parametrize("batch", [1, 2, 5])  # a full batch is gradient descent
def test_whitened_square_and_quadratic_forms_are_those_of_the_samples(batch: int) -> None:
    matrices = samples(5, 3, 2)
    population = optimisers.population(matrices)
    square = np.mean([h @ h for h in optimisers.all_batches(matrices, batch)], axis=0)
    values, vectors = np.linalg.eigh(matrices.mean(axis=0))
    root = vectors / np.sqrt(values) @ vectors.T
    expected = eigvalsh(root @ square @ root)[-1]
    assert_allclose(optimisers.whitened_square(population, batch), expected, rtol=1e-10)

    u = optimisers.trial_directions(population, top=2, heavy=3)
    mean, variance = optimisers.form_moments(population, u)
    forms = np.array([[v @ m @ v for v in u] for m in matrices])
    assert_allclose(mean, forms.mean(axis=0), rtol=1e-12)
    assert_allclose(variance, forms.var(axis=0, ddof=1), rtol=1e-12)


def test_trial_directions_are_top_and_heavy_eigenvectors() -> None:
    matrices = samples(5, 4, 2)
    u = optimisers.trial_directions(optimisers.population(matrices), top=2, heavy=2)
    assert_allclose(np.linalg.norm(u, axis=1), 1.0)
    mean = matrices.mean(axis=0)
    assert_allclose([v @ mean @ v for v in u[:2]], eigvalsh(mean)[:1:-1], rtol=1e-12)
    tops = np.sort(eigvalsh(matrices)[:, -1])[::-1]
    assert_allclose([max(v @ m @ v for m in matrices) for v in u[2:]], tops[:2], rtol=1e-12)
    flat = optimisers.population([[[4.0]], [[0.0]]])  # a sample without curvature gives none
    assert_allclose(np.abs(optimisers.trial_directions(flat, top=0, heavy=2)), [[1.0]])


def test_a_step_of_sgd_changes_the_distance_as_its_second_moment_says() -> None:
    matrices = SETS["full"]
    moment, size = np.diag([2.0, 1.0, 0.5]), 2
    batches = optimisers.all_batches(matrices, size)
    steps = np.eye(3) - 0.1 * batches
    change = np.trace(np.mean(steps @ moment @ steps, axis=0)) - np.trace(moment)
    block = Block(tuple(fixture(0, f"steps {i}") for i in range(16)))
    found = optimisers.sgd_steps(block, matrices, moment, rate=0.1, batch_size=size, runs=2000)
    error = found["change"].std() / 4
    assert abs(found["change"].mean() - change) < 5 * error < 0.2 * abs(change)
    gain = 2 * 0.1 * np.trace(moment @ matrices.mean(axis=0))
    assert_allclose(found["gain"].mean(), gain, rtol=0.1)


def test_least_squares_paths_shrink_as_descent_without_noise() -> None:
    block = Block(tuple(fixture(0, f"paths {i}") for i in range(16)))
    found = optimisers.least_squares_paths(block, dim=4, rate=0.01, batch_size=3, steps=2, runs=500)
    assert found.shape == (16,)
    assert_allclose(found.mean(), (1 - 2 * 0.01) ** 2, rtol=0.01)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (descent_step(0.3), 0.85),
        (descent_step(1.0), 1.0),
        (heavy_ball_step(0.3, 0.9025), 0.95),
        (nesterov_step(0.5, 1 / 3), 0.5),  # 1 - sqrt(mu/L)
    ],
)
def test_contractions_known_by_hand(step: Any, expected: float) -> None:
    # a double root is good to the root of the rounding error
    assert_allclose(step_contraction(step, (0.5, 1.0, 2.0)), expected, rtol=1e-5)
    assert step_contraction(descent_step(0.25), (4.0,)) == 0  # done in one step
