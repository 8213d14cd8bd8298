"""Lines of wide networks: order parameters, Fisher information, criticality; and names of the derivations."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.theory.fuzz.line import Line, between, lines, positive
from tests.theory.fuzz.networks import CLOSED, SINE
from tests.theory.fuzz.strategies import ANY_SIZE, hostile, log_uniform, mostly
from theory import criticality, fisher, linear_network, order_parameters

DERIVATIONS = ("", ".descent", ".spectra", ".wide", ".zone")
MODULES = {
    "order_parameters": ("ConvergenceError", "OrderParameters", "Propagation"),
    "fisher": (
        "BatchNormMoments",
        "BatchNormalisedConstants",
        "BatchNormalisedStatistics",
        "EntryVariances",
        "Etas",
        "ExpectedEtas",
        "FisherStatistics",
        "FluctuationConstants",
        "Kappas",
        "LayerNormStatistics",
        "MeanSubtractedStatistics",
        "CrossEntropyStatistics",
        "TangentKernel",
        "TangentKernelStatistics",
    ),
    "criticality": ("DepthScales",),
    "linear_network": (),
    **{f"derivations{name}": () if name else ("Derivation",) for name in DERIVATIONS},
}
WITHOUT_ARGUMENTS = {
    f"derivations{module}.{name}": "sympy's own"
    for module in DERIVATIONS
    for name in importlib.import_module(f"theory.derivations{module}").__all__
    if name != "Derivation"
}


def kappas_are_ordered(_: Any, k: Any) -> None:
    assert k.difference >= 0 and k.kappa1 >= 0
    assert_allclose(k.kappa1 - k.kappa2, k.difference, atol=1e-9 * k.kappa1)


def is_a_count(_: Any, n: Any) -> None:
    assert isinstance(n, int) and n > 0


def product_is_below_the_square(_: Any, found: fisher.BatchNormMoments) -> None:
    assert abs(found.q_hat_st) <= found.q_hat_t * (1 + 1e-9)


def bound_is_below_the_mean_square(arguments: Any, value: float) -> None:
    given = {name: arguments[name] for name in ("activation", "samples", "finite_samples")}
    units = float(arguments["width"]) * float(arguments["width_ratio"])
    between(0, units * fisher.batch_norm_moments(**given).q_hat_t * (1 + 1e-9))(None, value)


def bounds_are_ordered(arguments: Any, found: fisher.LayerNormStatistics) -> None:
    positive(None, found)
    if arguments["samples"] * arguments["outputs"] > 0:
        assert np.shape(found.lower) == np.shape(found.upper)


def etas_are_ordered(_: Any, found: fisher.Etas) -> None:
    assert found.eta1**2 <= found.eta2 * (1 + 1e-9)
    assert found.eta3 <= found.eta1 * (1 + 1e-9)


def squares_exceed_the_mean(_: Any, found: fisher.ExpectedEtas) -> None:
    assert found.eta1 > 0
    if math.isfinite(found.eta2):
        assert found.eta1**2 <= found.eta1_squared * (1 + 1e-9) <= found.eta2 * (1 + 1e-8)
        assert found.eta3_squared <= found.eta1_squared * (1 + 1e-9)


def phases_are_told(_: Any, found: criticality.DepthScales) -> None:
    assert found.variance >= 0 and found.chi >= 0 and -1e-9 <= found.correlation <= 1
    assert (found.correlation == 1) == (found.phase != "chaotic")
    assert found.correlation_slope <= 1 + 1e-6


DEVIATIONS = {"q1": mostly(st.floats(0.5, 2.0), ANY_SIZE), "q2": mostly(st.floats(0.25, 4.0), ANY_SIZE)}
TARGETS = {"targets": mostly(st.just([[0.3, -1.2], [0.8, 0.2]]), ANY_SIZE)}
OUTPUTS = {
    "preactivations": st.one_of(
        st.lists(st.lists(st.floats(-10, 10), min_size=3, max_size=3), min_size=1, max_size=4),
        st.lists(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2), min_size=1, max_size=3),
        st.lists(st.lists(st.floats(allow_nan=False), min_size=4, max_size=4), min_size=1, max_size=2),
        hostile,
    )
}
PROBABILITIES = {
    "probabilities": mostly(
        st.sampled_from(
            [[[0.2, 0.3, 0.5]], [[0.5, 0.5], [1.0, 0.0]], np.eye(3), [[1 - 1e-300, 1e-300]], [[0.4]]]
        )
    )
}
DEEP = {"activation": mostly(st.sampled_from([*CLOSED, SINE, "tanh", "swish"]))}
LAYERS = {
    "activations": st.one_of(
        st.lists(st.sampled_from([a for a in CLOSED if not isinstance(a, str)] + [SINE]), max_size=3), hostile
    )
}
SHAPE = {
    "ratio": mostly(log_uniform(1e-3, 1e3), ANY_SIZE),
    "width": mostly(st.integers(1, 1000)),
    "samples": mostly(st.integers(1, 1000)),
    "width_ratios": st.one_of(
        st.none(), mostly(st.lists(log_uniform(1e-3, 1e3), min_size=2, max_size=2), st.just([1e200, 1.0]))
    ),
}

TABLE: dict[str, Line] = {
    **lines(order_parameters, "order_parameters"),
    **lines(order_parameters, "propagate", given=LAYERS),
    **lines(order_parameters, "preactivation_moment", given={"q_hat": ANY_SIZE}, also=("bias_variance",)),
    **lines(order_parameters, "input_derivative", positive),
    **lines(fisher, "rank_bound parameter_count", is_a_count),
    **lines(fisher, "layer_norm_rank loss_floor", positive, TARGETS),
    **lines(fisher, "kappas layer_norm_kappas tangent_kernel", kappas_are_ordered),
    **lines(
        fisher,
        "gram_entry_variances eigenvalue_statistics mean_subtracted_statistics fluctuation_constants"
        " mean_subtracted_largest output_variance batch_normalised_statistics batch_normalised_constants"
        " deviation_share tangent_kernel_statistics cross_entropy_statistics cross_entropy_outliers"
        " layer_norm_rayleigh layer_norm_largest batch_norm_largest",
        positive,
        {**DEVIATIONS, **PROBABILITIES, **OUTPUTS},
    ),
    **lines(fisher, "batch_norm_largest_odd", between(1, math.inf)),
    **lines(fisher, "batch_norm_moments", product_is_below_the_square),
    **lines(fisher, "batch_norm_bound", bound_is_below_the_mean_square),
    **lines(fisher, "layer_norm_statistics", bounds_are_ordered),
    **lines(fisher, "realised_etas", etas_are_ordered, OUTPUTS),
    **lines(fisher, "expected_etas", squares_exceed_the_mean, infinite=True),
    **lines(fisher, "inverse_variance_cdf", between(0, 1)),
    **lines(criticality, "variance_fixed_point critical_weight_variance", positive, DEEP),
    **lines(criticality, "depth_scales", phases_are_told, DEEP, infinite=True),
    **lines(linear_network, "linear_network_edge linear_network_largest", positive, SHAPE),
}
