"""Arguments of the batch formulas: shapes, what is out of the domain, and the ends of the number range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theory.batch_hessian import (
    batch_eigenvalue,
    batch_ggn_eigenvalue,
    batch_ggn_factor_eigenvalue,
    batch_overlap,
    composed_batch_eigenvalue,
    crossover_batch_size,
    effective_batch_size,
    element_fluctuation,
    element_variance,
    noise_free_eigenvalue,
    second_order_eigenvalue,
)

SIZES: dict[str, Any] = {"batch_size": 20, "dataset_size": 100}


def test_arguments_broadcast() -> None:
    sizes = {"batch_size": [1.5, 10.0, 100.0], "dataset_size": 100}
    column = [[1.0], [2.0]]
    assert batch_eigenvalue(column, sigma=0.1, dim=10, **sizes).shape == (2, 3)
    assert batch_overlap(column, sigma=0.1, dim=10, **sizes).shape == (2, 3)
    assert batch_ggn_eigenvalue(column, variance=0.1, dim=10, **sizes).shape == (2, 3)
    assert second_order_eigenvalue(column, coefficient=0.1, **sizes).shape == (2, 3)
    assert element_fluctuation(variance=column, **sizes).shape == (2, 3)
    assert crossover_batch_size(column, sigma=[0.1, 0.2], dim=10, dataset_size=100).shape == (2, 2)
    assert effective_batch_size([], 10).shape == (0,)
    for value in (
        effective_batch_size(1, 2),
        element_variance(1, dim=2),
        batch_eigenvalue(1, sigma=0, dim=1, **SIZES),
    ):
        assert value.shape == () and value.dtype == np.float64


CALLS: dict[str, Any] = {
    "effective": lambda **k: effective_batch_size(**k),
    "fluctuation": lambda **k: element_fluctuation(variance=1.0, **k),
    "eigenvalue": lambda **k: batch_eigenvalue(1.0, sigma=1.0, dim=1, **k),
    "overlap": lambda **k: batch_overlap(1.0, sigma=1.0, dim=1, **k),
    "ggn": lambda **k: batch_ggn_eigenvalue(1.0, variance=1.0, dim=1, **k),
    "ggn factor": lambda **k: batch_ggn_factor_eigenvalue(1.0, variance=1.0, dim=1, **k),
    "composed": lambda **k: composed_batch_eigenvalue(9.0, sigma=0.1, dim=1, **k),
    "second order": lambda **k: second_order_eigenvalue(1.0, coefficient=1.0, **k),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_sizes_in_any_guise_are_numbers(call: Any) -> None:
    plain = call(batch_size=3.0, dataset_size=12.0)
    for guise in (3, np.array(3), np.int32(3), np.float32(3.0), [3], (3,), np.array([[3]], dtype=np.uint8)):
        found = call(batch_size=guise, dataset_size=np.array(12))
        assert found.shape == np.shape(guise)
        assert_array_equal(found, plain)
    assert call(batch_size=[], dataset_size=12).shape == (0,)
    for bad in ("3", None, True, [3, None], 3j):
        with pytest.raises(ValueError, match=r"^batch_size must be real numbers"):
            call(batch_size=bad, dataset_size=12)
        with pytest.raises(ValueError, match=r"^dataset_size must be real numbers"):
            call(batch_size=3, dataset_size=bad)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_batches_out_of_their_domain_are_refused(call: Any) -> None:
    for bad in [0, -1, math.nan, math.inf]:
        with pytest.raises(ValueError, match="batch_size must be positive and finite"):
            call(batch_size=bad, dataset_size=math.inf)
    for bad in [0, -1, math.nan]:
        with pytest.raises(ValueError, match="dataset_size must be positive, got"):
            call(batch_size=1, dataset_size=bad)
    for batch in (11, [1, 11], 10.0000001):
        with pytest.raises(ValueError, match="batch_size must be at most dataset_size"):
            call(batch_size=batch, dataset_size=10)


@pytest.mark.parametrize("bad", [0, 2.5, -1, math.nan, math.inf])
def test_dimension_is_a_whole_number(bad: float) -> None:
    calls: list[Any] = [
        lambda: batch_eigenvalue(1.0, sigma=1.0, dim=bad, **SIZES),
        lambda: batch_overlap(1.0, sigma=1.0, dim=bad, **SIZES),
        lambda: batch_ggn_eigenvalue(1.0, variance=1.0, dim=bad, **SIZES),
        lambda: batch_ggn_factor_eigenvalue(1.0, variance=1.0, dim=bad, **SIZES),
        lambda: composed_batch_eigenvalue(9.0, sigma=0.1, dim=bad, **SIZES),
        lambda: noise_free_eigenvalue(9.0, sigma=0.1, dim=bad, dataset_size=100),
        lambda: element_variance(1.0, dim=bad),
        lambda: crossover_batch_size(1.0, sigma=1.0, dim=bad, dataset_size=9),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"dim must be (an integer >= 1|finite)"):
            call()


def test_scales_and_eigenvalues_out_of_their_domain_are_refused() -> None:
    for bad in [-1.0, math.nan, math.inf]:
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            batch_eigenvalue(1.0, sigma=bad, dim=2, **SIZES)
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            batch_overlap(1.0, sigma=bad, dim=2, **SIZES)
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            crossover_batch_size(1.0, sigma=bad, dim=2, dataset_size=9)
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            composed_batch_eigenvalue(1.0, sigma=bad, dim=2, **SIZES)
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            noise_free_eigenvalue(1.0, sigma=bad, dim=2, dataset_size=9)
        with pytest.raises(ValueError, match="variance must be non-negative and finite"):
            batch_ggn_eigenvalue(1.0, variance=bad, dim=2, **SIZES)
        with pytest.raises(ValueError, match="variance must be non-negative and finite"):
            batch_ggn_factor_eigenvalue(1.0, variance=bad, dim=2, **SIZES)
        with pytest.raises(ValueError, match="eigenvalue must be non-negative and finite"):
            batch_ggn_factor_eigenvalue(bad, variance=1.0, dim=2, **SIZES)
        with pytest.raises(ValueError, match="variance must be non-negative and finite"):
            element_fluctuation(variance=bad, **SIZES)
        with pytest.raises(ValueError, match="eigenvalue must be non-negative and finite"):
            batch_ggn_eigenvalue(bad, variance=1.0, dim=2, **SIZES)
        with pytest.raises(ValueError, match="total must be non-negative and finite"):
            element_variance(bad, dim=2)
    with pytest.raises(ValueError, match="eigenvalue must be finite"):
        batch_eigenvalue(math.nan, sigma=1.0, dim=2, **SIZES)
    with pytest.raises(ValueError, match="eigenvalue must be finite"):
        batch_overlap(math.nan, sigma=1.0, dim=2, **SIZES)
    with pytest.raises(ValueError, match="eigenvalue must be finite"):
        second_order_eigenvalue(math.nan, coefficient=1.0, **SIZES)
    with pytest.raises(ValueError, match="coefficient must be finite"):
        second_order_eigenvalue(1.0, coefficient=math.inf, **SIZES)
    with pytest.raises(ValueError, match="eigenvalue must be finite"):
        composed_batch_eigenvalue(math.nan, sigma=1.0, dim=2, **SIZES)
    with pytest.raises(ValueError, match="eigenvalue must be finite"):
        noise_free_eigenvalue(math.inf, sigma=1.0, dim=2, dataset_size=9)
    with pytest.raises(ValueError, match="dataset_size must be positive, got"):
        noise_free_eigenvalue(9.0, sigma=1.0, dim=2, dataset_size=0)
    with pytest.raises(ValueError, match="eigenvalue must be non-zero"):
        crossover_batch_size([1.0, 0.0], sigma=1.0, dim=2, dataset_size=9)
    with pytest.raises(ValueError, match="dataset_size must be positive, got"):
        crossover_batch_size(1.0, sigma=1.0, dim=2, dataset_size=0)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: effective_batch_size(1e308, np.nextafter(1e308, 2e308)),
            "batch_size must be such that the result",
        ),
        (
            lambda: batch_eigenvalue(1.0, sigma=1e308, dim=4, batch_size=1, dataset_size=9),
            "eigenvalue, sigma, dim, batch_size must be such that the result does not overflow",
        ),
        (
            lambda: batch_ggn_eigenvalue(1.0, variance=1e308, dim=4, batch_size=1, dataset_size=9),
            "eigenvalue, variance, dim, batch_size must be such that the result does not overflow",
        ),
        (
            lambda: batch_ggn_factor_eigenvalue(1.0, variance=1e308, dim=4, batch_size=1, dataset_size=9),
            "eigenvalue, variance, dim, batch_size must be such that the result does not overflow",
        ),
        (
            lambda: composed_batch_eigenvalue(
                1e300, sigma=1e150, dim=1, batch_size=1e-320, dataset_size=1e-10
            ),
            "eigenvalue, sigma, dim, batch_size must be such that the result does not overflow",
        ),
        (
            lambda: noise_free_eigenvalue(1.0, sigma=1e308, dim=4, dataset_size=1e-9),
            "sigma, dim must be such that the result does not overflow",
        ),
        (
            lambda: batch_eigenvalue([1, 2], sigma=[1, 2, 3], dim=4, batch_size=1, dataset_size=9),
            "eigenvalue, sigma, dim, batch_size, dataset_size must be broadcastable",
        ),
    ],
)
def test_what_overflows_or_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
