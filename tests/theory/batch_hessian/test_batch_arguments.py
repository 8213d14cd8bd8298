"""Arguments of the batch formulas: shapes, what is out of the domain, and the ends of the number range."""

from __future__ import annotations

import math

from numpy.testing import assert_allclose

from theory.batch_hessian import (
    batch_eigenvalue,
    batch_overlap,
    crossover_batch_size,
    effective_batch_size,
    element_fluctuation,
    second_order_eigenvalue,
)


def test_extremes_whose_result_is_a_float_are_answered() -> None:
    assert effective_batch_size(1e-320, 1.0) == 1e-320
    assert_allclose(crossover_batch_size(1e-200, sigma=1.0, dim=4, dataset_size=12), 12.0)
    assert_allclose(crossover_batch_size(1e-200, sigma=1e-200, dim=4, dataset_size=12), 3.0)
    size = {"batch_size": 1e-300, "dataset_size": math.inf}
    assert_allclose(batch_eigenvalue(1.0, sigma=1e-150, dim=10**20, **size), 2e10)


def test_full_batch_is_exact_where_the_noise_of_one_sample_overflows() -> None:
    full = {"batch_size": 1e-157, "dataset_size": 1e-157}
    assert element_fluctuation(variance=1e200, **full) == 0
    assert second_order_eigenvalue(1.0, coefficient=1e200, **full) == 1
    assert batch_overlap(1.0, sigma=1e300, dim=10**9, **full) == 1
