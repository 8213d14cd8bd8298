"""Mean-square stability of SGD, and the rules that carry a rate from one batch size to another."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory import learning_rates as rates
from theory.batch_hessian import crossover_batch_size
from theory.rmt import MarchenkoPastur

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
SIZES = st.floats(1.0, 99.0)
STEP = 1e-5


def slope(law: Any, batch_size: float, dataset_size: float) -> float:
    """The local exponent in b by a difference quotient."""
    inverse = (1 / batch_size - 1 / dataset_size) * np.exp([STEP, -STEP])
    low, high = law(1 / (inverse + 1 / dataset_size))
    return math.log(high / low) / (2 * STEP)


@SETTINGS
@given(batch=SIZES, sigma=st.floats(0.01, 1.0), dataset=st.sampled_from([100.0, 1e4, math.inf]))
def test_exponent_of_theorem_4_is_the_slope_of_its_rate(batch: float, sigma: float, dataset: float) -> None:
    setting = {"sigma": sigma, "dim": 30, "dataset_size": dataset}
    found = rates.sgd_exponent(1.3, batch_size=batch, **setting)

    assert 0 <= found <= 0.5
    expected = slope(lambda b: rates.sgd_limit(1.3, batch_size=b, **setting), batch, dataset)
    assert_allclose(found, expected, atol=2e-5)


@SETTINGS
@given(batch=SIZES, noise=st.floats(0.0, 1e3), dataset=st.sampled_from([100.0, 1e4, math.inf]))
def test_mean_square_exponent_is_the_slope_of_its_rate(batch: float, noise: float, dataset: float) -> None:
    setting = {"noise": noise, "dataset_size": dataset}
    found = rates.mean_square_exponent(1.3, batch_size=batch, **setting)

    expected = slope(lambda b: rates.mean_square_limit(1.3, batch_size=b, **setting), batch, dataset)
    assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_along_one_direction_the_limit_keeps_the_second_moment_over_every_batch(batch: int) -> None:
    curvatures = [0.3, 1.7, 0.9, 2.6, 0.2, 1.1]
    size = {"batch_size": batch, "dataset_size": len(curvatures)}
    limit = rates.mean_square_limit(np.mean(curvatures), noise=np.var(curvatures, ddof=1), **size)
    means = [np.mean(some) for some in itertools.combinations(curvatures, batch)]
    assert np.mean([(1 - limit * mean) ** 2 for mean in means]) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("q", [1e-9, 0.3, 1.0, 81.0, 1e9])
def test_exponent_of_the_edge_is_its_slope(q: float) -> None:
    up, down = (MarchenkoPastur(q=q * math.exp(s), variance=1.0).edges[1] for s in (STEP, -STEP))
    assert_allclose(rates.marchenko_pastur_exponent(q), math.log(up / down) / (2 * STEP), atol=1e-9)


def test_exponents_at_the_ends() -> None:
    full = {"batch_size": 7, "dataset_size": 7}
    assert rates.sgd_exponent(1.3, sigma=2.0, dim=5, **full) == 0
    assert rates.sgd_exponent(1.3, sigma=0.0, dim=5, batch_size=1, dataset_size=7) == 0
    assert rates.mean_square_exponent(1.3, noise=2.0, **full) == 0
    assert rates.mean_square_exponent(1e-200, noise=1e200, batch_size=1, dataset_size=7) == 1
    assert rates.marchenko_pastur_exponent(0.0) == 0


@SETTINGS
@given(noise=st.floats(1e-6, 1e6), dataset=st.sampled_from([100.0, 1e4, math.inf]))
def test_crossover_is_where_half_of_the_largest_rate_is_reached(noise: float, dataset: float) -> None:
    size = rates.mean_square_crossover(1.3, noise=noise, dataset_size=dataset)
    found = rates.mean_square_limit(1.3, noise=noise, batch_size=size, dataset_size=dataset)
    assert_allclose(found, 0.5 * rates.stability_limit(1.3), rtol=1e-9 * max(1.0, noise / dataset))
    # theorem 4 has the same crossover if nu is P sigma^2
    assert_allclose(
        size, crossover_batch_size(1.3, sigma=math.sqrt(noise / 6), dim=6, dataset_size=dataset), rtol=1e-12
    )


@SETTINGS
@given(known=SIZES, batch=SIZES, noise=st.floats(0.0, 1e3), dataset=st.sampled_from([100.0, 1e4, math.inf]))
def test_linear_then_flat_carries_the_mean_square_limit(
    known: float, batch: float, noise: float, dataset: float
) -> None:
    def limit(size: float) -> Any:
        return rates.mean_square_limit(1.3, noise=noise, batch_size=size, dataset_size=dataset)

    crossover = rates.mean_square_crossover(1.3, noise=noise, dataset_size=dataset)
    setting = {"crossover": crossover, "dataset_size": dataset}
    found = rates.linear_then_flat(limit(known), known=known, batch_size=batch, **setting)
    assert_allclose(found, limit(batch), rtol=1e-11)


def test_linear_then_flat_at_its_ends() -> None:
    setting = {"known": 2.0, "batch_size": [2.0, 4.0, 10.0], "dataset_size": 10.0}
    assert_array_equal(rates.linear_then_flat(0.3, crossover=0.0, **setting), [0.3, 0.3, 0.3])
    # linear in b = B / (1 - B/N), 2.5 and 20/3
    assert_allclose(
        rates.linear_then_flat(0.3, known=2.0, batch_size=4.0, crossover=math.inf, dataset_size=10.0), 0.8
    )
    with pytest.raises(ValueError, match="batch_size must be below dataset_size where the rule is linear"):
        rates.linear_then_flat(0.3, crossover=math.inf, **setting)


@SETTINGS
@given(known=SIZES, batch=SIZES, dataset=st.sampled_from([100.0, 1e4, math.inf]))
def test_square_root_carries_the_rate_of_the_edge(known: float, batch: float, dataset: float) -> None:
    def limit(size: float) -> Any:
        return rates.sgd_limit(1e-9, sigma=0.3, dim=50, batch_size=size, dataset_size=dataset)

    found = rates.square_root(limit(known), known=known, batch_size=batch, dataset_size=dataset)
    assert_allclose(found, limit(batch), rtol=1e-12)


def population(rng: np.random.Generator) -> np.ndarray:
    factors = rng.standard_normal((7, 3, 2)) * rng.exponential(size=(7, 1, 1))
    return factors @ factors.swapaxes(1, 2)


@pytest.mark.parametrize("batch", [1, 2, 5, 7])
def test_bracket_holds_the_limit_of_the_dense_map(batch: int) -> None:
    """The largest a with spectral radius 1 of E[(I - a H_B) x (I - a H_B)], found by bisection."""
    rng = np.random.default_rng(5)
    matrices = population(rng)
    mean, c = matrices.mean(axis=0), (7 - batch) / (batch * 6)
    spread = c * np.mean([np.kron(d, d) for d in matrices - mean], axis=0)
    eye = np.eye(3)

    def grows(rate: float) -> bool:
        step = np.kron(eye - rate * mean, eye - rate * mean) + rate**2 * spread
        return np.abs(np.linalg.eigvals(step)).max() > 1

    u = rng.standard_normal((40, 3))
    forms = np.einsum("ka,nab,kb->nk", u, matrices, u) / (u * u).sum(axis=1)
    values, vectors = np.linalg.eigh(mean)
    root = vectors / np.sqrt(values) @ vectors.T
    square = mean @ mean + c * np.mean((matrices - mean) @ (matrices - mean), axis=0)
    lower, upper = rates.mean_square_bracket(
        forms.mean(axis=0),
        forms.var(axis=0, ddof=1),
        square=np.linalg.eigvalsh(root @ square @ root)[-1],
        batch_size=batch,
        dataset_size=7,
    )
    assert not grows(0.999999 * float(lower))
    assert grows(1.000001 * float(upper)) and upper < 3 * lower


def test_bracket_takes_many_batch_sizes_at_once() -> None:
    curvatures, variances, square = [1.0, 0.4], [2.0, 1.5], np.array([9.0, 2.0, 1.0])
    sizes = np.array([1.0, 4.0, 8.0])
    lower, upper = rates.mean_square_bracket(
        curvatures, variances, square=square, batch_size=sizes, dataset_size=8
    )
    assert_array_equal(lower, 2 / square)
    for i, size in enumerate(sizes):
        each = [
            rates.mean_square_limit(c, noise=v, batch_size=size, dataset_size=8)
            for c, v in zip(curvatures, variances, strict=True)
        ]
        assert_allclose(upper[i], min(each), rtol=1e-14)


@pytest.mark.parametrize(("batch", "dim"), [(1, 1), (1, 20), (7, 3), (1000, 2)])
def test_least_squares_stand_still_at_their_limit(batch: int, dim: int) -> None:
    limit = rates.gaussian_least_squares_limit(batch, dim)

    assert_allclose(rates.gaussian_least_squares_growth(limit, batch_size=batch, dim=dim), 1.0, rtol=1e-12)
    assert rates.gaussian_least_squares_growth(0.9 * limit, batch_size=batch, dim=dim) < 1
    assert rates.gaussian_least_squares_growth(1.1 * limit, batch_size=batch, dim=dim) > 1
    noise = {"noise": dim + 1.0, "batch_size": batch, "dataset_size": math.inf}
    assert_allclose(rates.mean_square_limit(1.0, **noise), limit, rtol=1e-14)
