"""Invariances under changes of unit, sign, order or origin: outliers, rates, softmax, laws, kernels."""

import math

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import batch_hessian, learning_rates, softmax

FEW = settings(deadline=None, max_examples=12, derandomize=True)
SOME_SIZE = st.floats(-3, 3).map(lambda x: 10.0**x)
ANY_SIZE = st.floats(-307, 307).map(lambda x: 10.0**x)
powers = st.integers(-900, 900).map(lambda n: 2.0**n)  # exact in binary: relations hold to the last digit


@FEW
@given(eigenvalue=SOME_SIZE, sigma=ANY_SIZE, dim=st.integers(1, 500), size=ANY_SIZE)
def test_a_full_batch_has_no_noise(eigenvalue: float, sigma: float, dim: int, size: float) -> None:
    full = {"batch_size": size, "dataset_size": size}

    assert batch_hessian.batch_eigenvalue(eigenvalue, sigma=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.batch_overlap(eigenvalue, sigma=sigma, dim=dim, **full) == 1
    assert batch_hessian.batch_ggn_eigenvalue(eigenvalue, variance=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.second_order_eigenvalue(eigenvalue, coefficient=sigma, **full) == eigenvalue
    assert batch_hessian.effective_batch_size(size, size) == math.inf
    assert_allclose(
        learning_rates.mean_square_limit(eigenvalue, noise=sigma, **full), 2 / eigenvalue, rtol=1e-15
    )


@FEW
@given(z=st.lists(st.integers(-40, 40), min_size=3, max_size=3), shift=st.integers(-1000, 1000), c=powers)
def test_gamma_sees_differences_of_logits_over_temperature(z: list[int], shift: int, c: float) -> None:
    value = softmax.gamma_from_logits(z)

    assert softmax.gamma_from_logits(np.add(z, shift)) == value
    assert softmax.gamma_from_logits(c * np.array(z), temperature=c) == value
