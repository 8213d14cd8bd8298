"""Lines of batch normalised hidden layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.networks import NETWORK, OF_NETWORK
from tests.theory.fuzz.strategies import ANY_SIZE, counts, flags, mostly
from theory import fisher


def product_is_below_the_square(_: Any, found: fisher.BatchNormMoments) -> None:
    assert np.isfinite(found).all()
    assert abs(found.q_hat_st) <= found.q_hat_t * (1 + 1e-9)


def bound_is_below_the_mean_square(arguments: Any, value: float) -> None:
    found = fisher.batch_norm_moments(
        **{name: arguments[name] for name in ("activation", "samples", "finite_samples")}
    )
    between(0, math.inf)(None, value)
    units = float(arguments["width"]) * float(arguments["width_ratio"])
    assert value <= units * found.q_hat_t * (1 + 1e-9)


ratios = mostly(st.floats(0.5, 2), ANY_SIZE)
LAYER = {"activation": NETWORK["activation"], "samples": counts}

TABLE: dict[str, Line] = {
    "fisher.batch_norm_moments": Line(
        fisher.batch_norm_moments,
        {**LAYER, "finite_samples": flags},
        product_is_below_the_square,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.batch_norm_bound": Line(
        fisher.batch_norm_bound,
        {**LAYER, "width": counts, "width_ratio": ratios, "finite_samples": flags},
        bound_is_below_the_mean_square,
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.batch_norm_largest": Line(
        fisher.batch_norm_largest,
        {**LAYER, "width": counts, "width_ratio": ratios, "input_ratio": ratios},
        between(0, math.inf),
        unsettled=True,
        also=(*OF_NETWORK, "second_derivative"),
    ),
    "fisher.batch_norm_largest_odd": Line(
        fisher.batch_norm_largest_odd,
        {**LAYER, "width": counts, "width_ratio": ratios, "input_ratio": ratios},
        between(1, math.inf),
        unsettled=True,
        also=(*OF_NETWORK, "second_derivative"),
    ),
}
