"""The symbolic results on wide networks, lambdified, against the numeric functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from tests.theory.derivations.test_derivations import numeric
from theory import criticality, fisher, linear_network
from theory.activations import erf, gaussian_kernels, relu
from theory.derivations import wide


@pytest.mark.parametrize("angle", [0.03, 0.9, math.pi / 2, 2.8])
def test_arccosine_kernels_are_those_of_relu(angle: float) -> None:
    a = 1.7
    kernels, pair = gaussian_kernels(relu), (a, a * math.cos(angle), a * (1 - math.cos(angle)))

    assert_allclose(kernels.value(*pair).overlap, numeric(wide.arccosine_kernel(), a, angle), rtol=1e-11)
    assert_allclose(
        kernels.derivative(*pair).overlap, numeric(wide.arccosine_slope_kernel(), angle), rtol=1e-11
    )


def test_erf_kernel() -> None:
    found = gaussian_kernels(erf).value(1.3, 0.4, 0.9).overlap
    assert_allclose(found, sympy.lambdify(wide.erf_kernel().symbols, wide.erf_kernel().expression)(1.3, 0.4))


def test_fixed_point_of_relu() -> None:
    found = criticality.variance_fixed_point("relu", weight_variance=1.3, bias_variance=0.4)
    assert_allclose(found, numeric(wide.relu_fixed_point(), 1.3, 0.4), rtol=1e-14)


@pytest.mark.parametrize("distance", [1e-6, 1e-3])
def test_correlations_of_critical_relu_join_by_a_power(distance: float) -> None:
    gap = gaussian_kernels(relu).value(2.0, 2.0 * (1 - distance), 2.0 * distance).gap
    assert_allclose(gap, numeric(wide.relu_correlation_map(), distance), rtol=distance**1.5)


@pytest.mark.parametrize("depth", [2, 3, 9])
def test_constant_of_critical_relu(depth: int) -> None:
    kappas = fisher.kappas("relu", depth=depth, weight_variance=2.0, bias_variance=0.0)
    assert_allclose(kappas.kappa1, numeric(wide.critical_relu_kappa(), depth), rtol=1e-14)


def test_normalisation_leaves_two_directions_less() -> None:
    rank = wide.normalisation_rank()
    assert rank.expression.subs(rank.symbols[0], 6) == fisher.layer_norm_rank(6)


@pytest.mark.parametrize("depth", [2, 3, 9])
def test_constants_of_linear_networks(depth: int) -> None:
    found = fisher.fluctuation_constants(
        "linear", depth=depth, outputs=1, weight_variance=1.3, bias_variance=0.4
    )

    assert_allclose(found.c1, numeric(wide.linear_lower_constant(), 1.3, depth), rtol=1e-13)
    assert_allclose(found.c2, numeric(wide.linear_fluctuations(), 1.3, depth), rtol=1e-13)


def test_edge_is_the_minimum_of_the_derived_function() -> None:
    w = np.linspace(0.01, 1 / (1 + math.sqrt(0.6)), 20001)
    edge = linear_network.linear_network_edge(0.8, weight_variance=1.0, width_ratios=[1.0, 0.6])
    assert_allclose(edge, numeric(wide.linear_edge(), w, 0.8, 0.6).min(), rtol=1e-8)
