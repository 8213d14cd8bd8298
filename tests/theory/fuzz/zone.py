"""Lines of the scaled network and of the loss at initialisation."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between, real
from tests.theory.fuzz.strategies import ANY_SIZE, HUGE, dims, mostly, orders, probabilities, signed, sizes
from theory import initial_loss, zone

SCALED = {"alpha": sizes, "depth": mostly(st.integers(1, 7), st.sampled_from(HUGE)), "temperature": sizes}
DEPTH = {"depth": SCALED["depth"]}
positive = between(0, math.inf)
chains = mostly(
    st.tuples(*[st.floats(-9, 9)] * 4).map(lambda w: [[[w[0], w[1]]], [[w[2]], [w[3]]]]),
    st.sampled_from([[[[1e200]], [[1e200]]], [[[1.0]]], [[1.0], [2.0]], [[[1.0, 2.0]], [[1.0, 2.0]]]]),
)
inputs = mostly(st.lists(st.floats(-9, 9), min_size=2, max_size=2), ANY_SIZE.map(lambda x: [x, -x]))
means = mostly(
    st.lists(st.floats(-9, 9), min_size=3, max_size=3), st.sampled_from([[0, 0], [1e300, 0], [0, -1e300]])
)

MODULES = {
    "zone": ("CurvatureFactors",),
    "initial_loss": (),
}

TABLE: dict[str, Line] = {
    "zone.curvature_factors": Line(
        zone.curvature_factors, SCALED, lambda _, value: positive(_, np.stack(value))
    ),
    "zone.reduced_temperature": Line(zone.reduced_temperature, SCALED, positive),
    "zone.matched_rate": Line(zone.matched_rate, {"rate": sizes, **SCALED}, positive),
    "zone.lower_edge": Line(
        zone.lower_edge, {"gauss_newton_norm": sizes, "h_term_norm": sizes, **DEPTH}, positive
    ),
    "zone.upper_edge": Line(zone.upper_edge, {"samples": dims, "gap_density": sizes, **DEPTH}, positive),
    "zone.near_tie_weight": Line(zone.near_tie_weight, {"gap_density": sizes, **SCALED}, positive),
    "zone.largest_base_rate": Line(
        zone.largest_base_rate, {"alpha": sizes, "sharpness": sizes, **DEPTH}, positive
    ),
    "zone.homogeneous_factor": Line(
        zone.homogeneous_factor, {**SCALED, "order": orders}, between(0, math.inf)
    ),
    "zone.euler_factor": Line(zone.euler_factor, {**DEPTH, "order": orders}, between(0, math.inf)),
    "zone.tanh_correction": Line(zone.tanh_correction, {"matrices": chains, "x": inputs}, real),
    "zone.confident_log_trace": Line(
        zone.confident_log_trace, {"gaps": sizes, "squared_slopes": sizes, **SCALED}, real, pooled=True
    ),
    "zone.bulk_outlier": Line(zone.bulk_outlier, {"spike": signed, "bulk_norm": sizes}),
    "zone.spiked_excess": Line(
        zone.spiked_excess, {"spike": sizes, "rank": dims, "bulk_norm": sizes, "dim": dims}, positive
    ),
    "initial_loss.jensen_bound": Line(
        initial_loss.jensen_bound,
        {"mean_probability": probabilities, "prior": probabilities},
        positive,
        infinite=True,
    ),
    "initial_loss.prior_entropy": Line(initial_loss.prior_entropy, {"prior": probabilities}, real),
    "initial_loss.gaussian_loss": Line(
        initial_loss.gaussian_loss,
        {"bias": means, "prior": probabilities, "spread": mostly(st.floats(0, 9), st.just(30.0))},
    ),
}
