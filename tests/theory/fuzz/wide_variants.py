"""Lines of tangent kernels, the cross-entropy, criticality and linear networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.networks import CLOSED, NETWORK, OF_NETWORK, RATIOS, SAMPLES, SINE
from tests.theory.fuzz.strategies import ANY_SIZE, flags, log_uniform, mostly
from theory import criticality, fisher, linear_network

PROBABILITIES = {
    "probabilities": mostly(
        st.sampled_from(
            [[[0.2, 0.3, 0.5]], [[0.5, 0.5], [1.0, 0.0]], np.eye(3), [[1 - 1e-300, 1e-300]], [[0.4]]]
        )
    )
}
ENTROPIC = {**NETWORK, **RATIOS, **PROBABILITIES, "width": SAMPLES["width"], "finite_width": flags}
DEEP = {
    "activation": mostly(st.sampled_from([*CLOSED, SINE, "tanh", "swish"])),
    "weight_variance": mostly(log_uniform(1e-3, 30.0), ANY_SIZE),
    "bias_variance": mostly(st.floats(0, 3), ANY_SIZE),
}


def kernels_are_ordered(_: Any, k: fisher.TangentKernel) -> None:
    assert k.difference >= 0 and k.kappa1 >= 0
    assert_allclose(k.kappa1 - k.kappa2, k.difference, atol=1e-9 * k.kappa1)


def phases_are_told(_: Any, found: criticality.DepthScales) -> None:
    assert found.variance >= 0 and found.chi >= 0 and -1e-9 <= found.correlation <= 1
    assert (found.correlation == 1) == (found.phase != "chaotic")
    assert found.correlation_slope <= 1 + 1e-6


MODULES = {
    "criticality": ("DepthScales",),
    "linear_network": (),
}

SHAPE = {
    "weight_variance": mostly(log_uniform(1e-3, 30.0), ANY_SIZE),
    "width_ratios": st.one_of(
        st.none(), mostly(st.lists(log_uniform(1e-3, 1e3), min_size=2, max_size=2), st.just([1e200, 1.0]))
    ),
}

TABLE: dict[str, Line] = {
    "fisher.tangent_kernel": Line(
        fisher.tangent_kernel,
        {**NETWORK, "input_overlap": mostly(st.floats(-1, 1), ANY_SIZE)},
        kernels_are_ordered,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.tangent_kernel_statistics": Line(
        fisher.tangent_kernel_statistics,
        {**NETWORK, **RATIOS, **{k: v for k, v in SAMPLES.items() if k != "finite_width"}},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.cross_entropy_statistics": Line(
        fisher.cross_entropy_statistics,
        ENTROPIC,
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.cross_entropy_outliers": Line(
        fisher.cross_entropy_outliers, ENTROPIC, between(0, math.inf), unsettled=True, also=OF_NETWORK
    ),
    "criticality.variance_fixed_point": Line(
        criticality.variance_fixed_point, DEEP, between(0, math.inf), unsettled=True, also=OF_NETWORK
    ),
    "criticality.depth_scales": Line(
        criticality.depth_scales, DEEP, phases_are_told, infinite=True, unsettled=True, also=OF_NETWORK
    ),
    "criticality.critical_weight_variance": Line(
        criticality.critical_weight_variance,
        {k: v for k, v in DEEP.items() if k != "weight_variance"},
        between(0, math.inf),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "linear_network.linear_network_edge": Line(
        linear_network.linear_network_edge,
        {"ratio": mostly(log_uniform(1e-3, 1e3), ANY_SIZE), **SHAPE},
        between(0, math.inf),
    ),
    "linear_network.linear_network_largest": Line(
        linear_network.linear_network_largest,
        {
            "width": mostly(st.integers(1, 1000)),
            "samples": mostly(st.integers(1, 1000)),
            **SHAPE,
        },
        between(0, math.inf),
    ),
}
