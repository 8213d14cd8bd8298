"""Exact statements on sub-sampling against every batch of small data sets."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory.batch_hessian.sampling import (
    element_fluctuation,
    element_skewness,
    finite_population_fluctuation,
    noise_bound,
    second_order_coefficient,
)

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
samples = st.lists(st.integers(-50, 50), min_size=2, max_size=7)


def fluctuations(values: list[int], batches: Any, size: int) -> list[Fraction]:
    mean = Fraction(sum(values), len(values))
    return [Fraction(sum(batch), size) - mean for batch in batches]


def mean_power(values: list[Fraction], power: int) -> Fraction:
    return sum((v**power for v in values), Fraction(0)) / len(values)


@SETTINGS
@given(values=samples, data=st.data())
def test_a_fixed_data_set_fluctuates_with_its_own_variance(values: list[int], data: st.DataObject) -> None:
    """By enumeration in rationals, without replacement and with it."""
    total = len(values)
    batch = data.draw(st.integers(1, total))
    variance = float(mean_power(fluctuations(values, ((v,) for v in values), 1), 2))
    size = {"batch_size": batch, "dataset_size": total}
    subsets = fluctuations(values, itertools.combinations(values, batch), batch)
    once = finite_population_fluctuation(variance=variance, **size)
    assert_allclose(once, float(mean_power(subsets, 2)), rtol=1e-13, atol=0.0)
    assert_allclose(once, element_fluctuation(variance=variance * total / (total - 1), **size), rtol=1e-14)

    batch = min(batch, 3)
    lists = fluctuations(values, itertools.product(values, repeat=batch), batch)
    again = finite_population_fluctuation(
        variance=variance, batch_size=batch, dataset_size=total, replacement=True
    )
    assert_allclose(again, float(mean_power(lists, 2)), rtol=1e-13, atol=0.0)


@SETTINGS
@given(values=st.lists(st.integers(-50, 50), min_size=3, max_size=8), data=st.data())
def test_skewness_of_a_fixed_data_set_by_enumeration(values: list[int], data: st.DataObject) -> None:
    """With the unbiased cumulants k2, k3 the formula of a redrawn data set is exact for a fixed one."""
    total = len(values)
    batch = data.draw(st.integers(1, total - 1))
    single = fluctuations(values, ((v,) for v in values), 1)
    k2 = mean_power(single, 2) * total / (total - 1)
    if k2 == 0:
        return
    k3 = mean_power(single, 3) * total**2 / ((total - 1) * (total - 2))
    noise = fluctuations(values, itertools.combinations(values, batch), batch)
    exact = float(mean_power(noise, 3)) / float(mean_power(noise, 2)) ** 1.5
    predicted = element_skewness(float(k3) / float(k2) ** 1.5, batch_size=batch, dataset_size=total)

    assert_allclose(predicted, exact, rtol=1e-11, atol=1e-11)


def symmetric(rng: np.random.Generator, samples: int, dim: int) -> np.ndarray:
    raw = rng.standard_normal((samples, dim, dim)) * rng.exponential(size=(samples, 1, 1))
    return raw + raw.transpose(0, 2, 1)


@SETTINGS
@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4), total=st.integers(2, 7), data=st.data())
def test_no_batch_exceeds_the_bound(seed: int, dim: int, total: int, data: st.DataObject) -> None:
    """Every batch of a random data set, in the spectral norm and so in each element; also semidefinite."""
    batch = data.draw(st.integers(1, total))
    general = symmetric(np.random.default_rng(seed), total, dim)
    for matrices, semidefinite in ((general, False), (general @ general, True)):
        largest = np.linalg.norm(matrices, 2, axis=(1, 2)).max()
        bound = noise_bound(largest, batch_size=batch, dataset_size=total, semidefinite=semidefinite)
        for chosen in itertools.combinations(range(total), batch):
            epsilon = matrices[list(chosen)].mean(axis=0) - matrices.mean(axis=0)
            assert np.linalg.norm(epsilon, 2) <= bound * (1 + 1e-12) + 1e-15 * largest
            assert np.abs(epsilon).max() <= bound * (1 + 1e-12) + 1e-15 * largest


def test_the_bound_is_attained_and_that_of_the_paper_broken() -> None:
    """999 samples at L and one at -L: 1.998 L, above sqrt(P) L for P = 1, 2, 3."""
    values = np.array([1.0] * 999 + [-1.0])
    attained = abs(values[-1] - values.mean())

    assert_allclose(noise_bound(1.0, batch_size=1, dataset_size=1000), attained, rtol=1e-12)
    assert attained > math.sqrt(3)
    half = noise_bound(1.0, batch_size=1, dataset_size=1000, semidefinite=True)
    assert_allclose(half, abs(np.mean([1.0] * 999 + [0.0]) - 0.0), rtol=1e-12)
    assert noise_bound(7.0, batch_size=5, dataset_size=5) == 0.0
    assert_array_equal(noise_bound([0.0, 3.0], batch_size=5, dataset_size=math.inf), [0.0, 6.0])


def test_second_order_coefficient_sums_the_other_directions() -> None:
    levels, variances = [2.0, 0.5, -1.0], [99.0, 0.6, 0.9]
    assert_allclose(second_order_coefficient(levels, variances), 0.6 / 1.5 + 0.9 / 3.0, rtol=1e-15)
    shuffled = second_order_coefficient([levels[i] for i in (0, 2, 1)], [variances[i] for i in (0, 2, 1)])
    assert_allclose(shuffled, second_order_coefficient(levels, variances), rtol=1e-15)
    bottom = second_order_coefficient([-1.0, 2.0, 0.5], [99.0, 0.6, 0.9])
    assert_allclose(bottom, -0.6 / 3.0 - 0.9 / 1.5, rtol=1e-15)
    assert second_order_coefficient([2.0], [0.3]) == 0.0
    stack = second_order_coefficient([[2.0, 0.5], [3.0, 1.0]], [0.1, 0.6])
    assert_allclose(stack, [0.4, 0.3], rtol=1e-14)
