"""Lines of networks normalised over the units of every layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.networks import NETWORK, OF_NETWORK, RATIOS, SAMPLES
from tests.theory.fuzz.strategies import counts, hostile, mostly, points, sizes
from tests.theory.fuzz.wide_networks import kappas_are_ordered
from theory import fisher


def bounds_are_ordered(arguments: Any, found: fisher.LayerNormStatistics) -> None:
    between(0, math.inf)(None, found)
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


outputs = st.one_of(
    st.lists(st.lists(st.floats(-10, 10), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2), min_size=1, max_size=3),
    st.lists(st.lists(st.floats(allow_nan=False), min_size=4, max_size=4), min_size=1, max_size=2),
    hostile,
)
ETAS = {name: mostly(sizes) for name in ("eta1", "eta2", "eta3")}

TABLE: dict[str, Line] = {
    "fisher.layer_norm_kappas": Line(
        fisher.layer_norm_kappas,
        {**NETWORK, **RATIOS},
        kappas_are_ordered,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.layer_norm_statistics": Line(
        fisher.layer_norm_statistics,
        {**NETWORK, **RATIOS, **SAMPLES, **ETAS},
        bounds_are_ordered,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.layer_norm_rayleigh": Line(
        fisher.layer_norm_rayleigh,
        {**NETWORK, **RATIOS, **SAMPLES, "eta1": mostly(sizes), "overlap": mostly(sizes)},
        between(0, math.inf),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.layer_norm_largest": Line(
        fisher.layer_norm_largest,
        {**NETWORK, **RATIOS, "preactivations": outputs, "width": counts},
        between(0, math.inf),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.realised_etas": Line(fisher.realised_etas, {"preactivations": outputs}, etas_are_ordered),
    "fisher.expected_etas": Line(
        fisher.expected_etas,
        {**NETWORK, "samples": counts, "outputs": counts},
        squares_exceed_the_mean,
        infinite=True,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.inverse_variance_cdf": Line(
        fisher.inverse_variance_cdf,
        {"value": points, **NETWORK, "outputs": counts},
        between(0, 1),
        unsettled=True,
        also=OF_NETWORK,
    ),
}
