"""Lines of order parameters and of the Fisher matrix of wide networks."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.networks import CLOSED, NETWORK, OF_NETWORK, RATIOS, SAMPLES, SINE
from tests.theory.fuzz.strategies import ANY_SIZE, HUGE, counts, depths, hostile, mostly
from theory import fisher, order_parameters


def kappas_are_ordered(_: Any, k: fisher.Kappas) -> None:
    assert k.difference >= 0 and k.kappa1 >= 0
    assert_allclose(k.kappa1 - k.kappa2, k.difference, atol=1e-9 * k.kappa1)


def is_a_count(_: Any, n: Any) -> None:
    assert isinstance(n, int) and n > 0


SAMPLED = {name: strategy for name, strategy in SAMPLES.items() if name != "outputs"}

DEVIATIONS = {"q1": mostly(st.floats(0.5, 2.0), ANY_SIZE), "q2": mostly(st.floats(0.25, 4.0), ANY_SIZE)}

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
}

TABLE: dict[str, Line] = {
    "order_parameters.order_parameters": Line(
        order_parameters.order_parameters,
        {
            **NETWORK,
            "input_overlap": mostly(st.floats(-1, 1), ANY_SIZE),
            "digits": st.one_of(st.none(), st.none(), mostly(st.integers(1, 30), st.sampled_from(HUGE))),
        },
        also=OF_NETWORK,
        unsettled=True,
    ),
    "order_parameters.propagate": Line(
        order_parameters.propagate,
        {
            "activations": st.one_of(
                st.lists(st.sampled_from([a for a in CLOSED if not isinstance(a, str)] + [SINE]), max_size=3),
                hostile,
            ),
            **{k: v for k, v in NETWORK.items() if k.endswith("variance")},
        },
        also=("activation",),
        unsettled=True,
    ),
    "order_parameters.preactivation_moment": Line(
        order_parameters.preactivation_moment,
        {"q_hat": ANY_SIZE, **{k: v for k, v in NETWORK.items() if k.endswith("variance")}},
        also=("bias_variance",),
    ),
    "order_parameters.input_derivative": Line(
        order_parameters.input_derivative,
        NETWORK,
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.rank_bound": Line(
        fisher.rank_bound,
        {"depth": depths, "width": counts, "samples": counts, "outputs": counts, **RATIOS},
        is_a_count,
    ),
    "fisher.layer_norm_rank": Line(
        fisher.layer_norm_rank, {"outputs": counts}, lambda _, n: between(0, math.inf)(None, n)
    ),
    "fisher.loss_floor": Line(
        fisher.loss_floor,
        {"targets": mostly(st.just([[0.3, -1.2], [0.8, 0.2]]), ANY_SIZE)},
        lambda _, found: between(0, math.inf)(None, found),
    ),
    "fisher.gram_entry_variances": Line(
        fisher.gram_entry_variances,
        {**NETWORK, **RATIOS},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.parameter_count": Line(
        fisher.parameter_count,
        {"depth": depths, "width": counts, "outputs": counts, **RATIOS},
        is_a_count,
    ),
    "fisher.kappas": Line(
        fisher.kappas, {**NETWORK, **RATIOS}, kappas_are_ordered, unsettled=True, also=OF_NETWORK
    ),
    "fisher.eigenvalue_statistics": Line(
        fisher.eigenvalue_statistics,
        {**NETWORK, **RATIOS, **SAMPLES},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.mean_subtracted_statistics": Line(
        fisher.mean_subtracted_statistics,
        {**NETWORK, **RATIOS, **SAMPLES},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.fluctuation_constants": Line(
        fisher.fluctuation_constants,
        {**NETWORK, **RATIOS, "outputs": counts},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.mean_subtracted_largest": Line(
        fisher.mean_subtracted_largest,
        {**NETWORK, **RATIOS, **SAMPLED},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.output_variance": Line(
        fisher.output_variance,
        {**NETWORK, **RATIOS, "samples": counts},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.batch_normalised_statistics": Line(
        fisher.batch_normalised_statistics,
        {**NETWORK, **RATIOS, **SAMPLES, **DEVIATIONS},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.batch_normalised_constants": Line(
        fisher.batch_normalised_constants,
        {**NETWORK, **RATIOS, "outputs": counts, **DEVIATIONS},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.deviation_share": Line(
        fisher.deviation_share,
        {**NETWORK, **RATIOS, "width": counts, "samples": counts},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
}
