"""The noise kernel norm against the recursion of variances that it sums up."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from tests.refusals import refusal
from theory.learning_rates.edge_of_stability import noise_kernel_norm


@pytest.mark.parametrize(("batch", "dataset"), [(2, 30), (5, math.inf), (29, 30)])
def test_variances_stand_still_where_the_norm_is_one(batch: int, dataset: float) -> None:
    values = np.random.default_rng(4).exponential(size=30)
    sizes = {"batch_size": batch, "dataset_size": dataset}
    most = 2 / values.max()
    rate = brentq(lambda r: noise_kernel_norm(values, rate=r, **sizes) - 1, 1e-9 * most, (1 - 1e-9) * most)

    shrunk = np.diag((1 - rate * values) ** 2)
    noise = (1 / batch - 1 / dataset) * np.outer((rate * values) ** 2, np.ones(30))
    assert_allclose(np.abs(np.linalg.eigvals(shrunk + noise)).max(), 1.0, rtol=1e-7)


def test_norm_of_small_rates_is_the_trace_and_that_of_full_batches_is_zero() -> None:
    values = np.array([[1.0, 2.0, 5.0], [0.0, 3.0, 1.0]])
    small = noise_kernel_norm(values, rate=1e-9, batch_size=4, dataset_size=math.inf)
    assert_allclose(small, 1e-9 * values.sum(-1) / 8, rtol=1e-8)
    assert_allclose(noise_kernel_norm(values, rate=[0.1, 0.2], batch_size=7, dataset_size=7), 0.0)


def test_refusals() -> None:
    sizes = {"batch_size": 2, "dataset_size": 9}
    with refusal("below 2 over the largest eigenvalue"):
        noise_kernel_norm([1.0, 4.0], rate=0.5, **sizes)
    with refusal("of shape"):
        noise_kernel_norm(1.0, rate=0.5, **sizes)
