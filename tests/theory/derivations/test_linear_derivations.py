"""The symbolic results on linear networks, lambdified, against the numeric functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from theory import fisher, linear_network
from theory.derivations import linear as linear_derivations
from theory.derivations._symbolic import Derivation


def numeric(derivation: Derivation, *arguments: object) -> np.ndarray:
    return sympy.lambdify(derivation.symbols, derivation.expression, "numpy")(*arguments)


@pytest.mark.parametrize("depth", [2, 3, 9])
def test_constants_of_linear_networks(depth: int) -> None:
    found = fisher.fluctuation_constants(
        "linear", depth=depth, outputs=1, weight_variance=1.3, bias_variance=0.4
    )

    assert_allclose(found.c1, numeric(linear_derivations.linear_lower_constant(), 1.3, depth), rtol=1e-13)
    assert_allclose(found.c2, numeric(linear_derivations.linear_fluctuations(), 1.3, depth), rtol=1e-13)


def test_edge_is_the_minimum_of_the_derived_function() -> None:
    w = np.linspace(0.01, 1 / (1 + math.sqrt(0.6)), 20001)
    edge = linear_network.linear_network_edge(0.8, weight_variance=1.0, width_ratios=[1.0, 0.6])
    assert_allclose(edge, numeric(linear_derivations.linear_edge(), w, 0.8, 0.6).min(), rtol=1e-8)
