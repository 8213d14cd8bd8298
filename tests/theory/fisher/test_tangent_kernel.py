"""Neural tangent kernels: the literature's recursion, hand-made networks, edges of the domain."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory.fisher import kappas, parameter_count, tangent_kernel, tangent_kernel_statistics
from theory.order_parameters import order_parameters

SETTING = {"depth": 3, "weight_variance": 1.7, "bias_variance": 0.6}
SIZES = {"width": 50, "samples": 7, "outputs": 3}


@given(st.sampled_from(["relu", "erf", "linear"]), st.integers(2, 6), st.floats(0.05, 4), st.floats(0, 2))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_kernel_is_that_of_kappas_with_weights_and_biases_scaled(
    name: str, depth: int, weight: float, bias: float
) -> None:
    """All widths equal: sigma_w^2 alpha kappa by the weights, sigma_b^2 times the backward moments by the biases."""
    setting = {"depth": depth, "weight_variance": weight, "bias_variance": bias}
    found, k, m = tangent_kernel(name, **setting), kappas(name, **setting), order_parameters(name, **setting)
    weights = weight * k.alpha * np.array(k[1:3])
    biases = bias * np.array([m.q_tilde_t.sum(), m.q_tilde_st.sum()])
    assert_allclose(found[:2], weights + biases, rtol=1e-12)
    assert_allclose(found.kappa1 - found.kappa2, found.difference, atol=1e-12 * found.kappa1)


def test_difference_survives_cancellation() -> None:
    """Deep in the ordered phase it falls like the kappas' own."""
    setting = {"depth": 100, "weight_variance": 0.3, "bias_variance": 1.0}
    found, k = tangent_kernel("erf", **setting), kappas("erf", **setting)
    assert found.kappa1 == found.kappa2
    assert 0.3 * k.alpha * k.difference < found.difference < 100 * k.alpha * k.difference


def test_statistics_are_those_of_the_block_matrix() -> None:
    k = tangent_kernel("erf", **SETTING)
    block = np.full((7, 7), k.kappa2) + np.eye(7) * k.difference
    values = np.tile(np.linalg.eigvalsh(block / 7), 3)
    p = parameter_count(depth=3, width=50, outputs=3)
    found = tangent_kernel_statistics("erf", **SETTING, **SIZES)
    assert_allclose(found, [values.sum() / p, (values**2).sum() / p, values.max()], rtol=1e-12)


def test_edges_of_the_domain() -> None:
    same = tangent_kernel("relu", **SETTING, input_overlap=1)
    assert same.kappa1 == same.kappa2 and same.difference == 0
    assert tangent_kernel("relu", depth=3, weight_variance=0, bias_variance=0) == (0.0, 0.0, 0.0)
    assert tangent_kernel("relu", depth=3, weight_variance=0, bias_variance=np.array(0.7)) == (0.7, 0.7, 0.0)
    one = tangent_kernel_statistics("relu", **SETTING, width=1, samples=1, outputs=1)
    assert one.largest == tangent_kernel("relu", **SETTING).kappa1
    two = tangent_kernel_statistics("relu", **SETTING, width=1, samples=2, outputs=1)
    assert two.largest == pytest.approx(sum(tangent_kernel("relu", **SETTING)[:2]) / 2, rel=1e-15)
