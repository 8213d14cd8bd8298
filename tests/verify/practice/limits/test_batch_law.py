"""Largest eigenvalues of batches by the own-direction law: beside all batches of dense matrices, and in any unit."""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate.modules.sample_directions import SampleStatistics
from simulate.training import optimisers
from tests.theory.test_own_direction import numbers_of
from verify.practice.limits.batch_law import BatchLaw

N, DIM = 12, 30


@pytest.fixture(scope="module")
def matrices() -> np.ndarray:
    """Matrices of rank two and uneven weight."""
    rng = default_rng(0)
    factors = rng.standard_normal((N, DIM, 2)) * rng.uniform(0.5, 2.0, N)[:, None, None]
    factors[:, 0] += 2.0
    return factors @ factors.swapaxes(1, 2)


def law(matrices: np.ndarray, unit: float = 1.0, k: int = 6) -> BatchLaw:
    top = np.linalg.eigvalsh(matrices.mean(0))[::-1][:k]
    return BatchLaw(SampleStatistics(eigenvalues=top, **numbers_of(matrices, k)), unit)


@pytest.mark.parametrize("size", [1, 2, 4, N])
def test_mean_and_scatter_are_those_of_all_batches(matrices: np.ndarray, size: int) -> None:
    found = law(matrices).at(size, default_rng(1))
    tops = np.linalg.eigvalsh(optimisers.all_batches(matrices, size))[:, -1]
    assert_allclose(found.mean.value, tops.mean(), rtol=0.1)
    between = (tops >= found.low * (1 - 1e-9)) & (tops <= found.high * (1 + 1e-9))
    assert 0.7 <= between.mean() <= (0.9 if size < N else 1)
    assert (found.mean.standard_error == 0) == (size == N)


def test_a_unit_is_that_of_the_matrices(matrices: np.ndarray) -> None:
    """The law is of degree one, whatever of its numbers are squares."""
    for size in (1, 3, N):
        rngs = [default_rng(2) for _ in range(2)]
        scaled, apart = law(3.0 * matrices).at(size, rngs[0]), law(matrices, unit=3.0).at(size, rngs[1])
        assert_allclose(scaled.mean, apart.mean, rtol=1e-9, atol=1e-12)
        assert_allclose([scaled.low, scaled.high], [apart.low, apart.high], rtol=1e-9)


def test_the_law_has_the_spread_of_the_samples(matrices: np.ndarray) -> None:
    numbers = numbers_of(matrices, 6)
    assert numbers["spread"] > 0
    assert_allclose(law(matrices, unit=3.0)._all_samples.spread, 9 * numbers["spread"], rtol=1e-12)


def test_what_half_of_the_directions_would_change_is_in_the_error(matrices: np.ndarray) -> None:
    whole, half = (law(matrices, k=k).at(4, default_rng(3)).mean for k in (6, 3))
    assert whole.standard_error >= abs(whole.value - half.value)
