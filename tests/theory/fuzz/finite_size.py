"""Lines of finite sizes: fluctuations of edges and outliers, and Lanczos."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.strategies import counts, dims, flags, hostile, signed, sizes
from theory import finite_size, lanczos_bounds


@st.composite
def ends_of_a_spectrum(draw: st.DrawFn) -> dict[str, Any]:
    """An extreme eigenvalue, the next one and the one at the other end, in order or not."""
    value = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e-308, 1e300]))
    at, gap, rest = draw(value), abs(draw(value)), abs(draw(value))
    sign = draw(st.sampled_from([-1, 1]))
    found = {"eigenvalue": at, "neighbour": at - sign * gap, "opposite": at - sign * gap - sign * rest}
    found |= {"angle": draw(st.floats(0, math.pi / 2)), "steps": draw(counts)}
    spoilt = draw(st.sampled_from(["", "", "", *found]))
    return found | {spoilt: draw(hostile)} if spoilt else found


def scatters(_: Any, edge: finite_size.EdgeFluctuation) -> None:
    assert np.all(edge.sd >= 0)


def between_the_ends(arguments: Mapping[str, Any], value: Any) -> None:
    ends = [np.asarray(arguments[name], dtype=np.float64) for name in ("eigenvalue", "opposite")]
    assert np.all((value >= np.minimum(*ends)) & (value <= np.maximum(*ends)))


MODULES = {
    "finite_size": ("EdgeFluctuation",),
    "lanczos_bounds": (),
}

TABLE: dict[str, Line] = {
    "finite_size.wigner_edge": Line(
        finite_size.wigner_edge, {"dim": dims, "sigma": sizes, "lower": flags}, scatters
    ),
    "finite_size.wishart_edge": Line(
        finite_size.wishart_edge,
        {"dim": dims, "samples": dims, "variance": sizes, "lower": flags},
        scatters,
    ),
    "finite_size.additive_wigner_sd": Line(
        finite_size.additive_wigner_sd, {"spike": signed, "sigma": sizes, "dim": dims}, between(0, math.inf)
    ),
    **{
        f"finite_size.{f.__name__}": Line(
            f, {"spike": sizes, "dim": dims, "samples": dims, "variance": sizes}, between(0, math.inf)
        )
        for f in (
            finite_size.additive_wishart_sd,
            finite_size.information_plus_noise_sd,
            finite_size.spiked_covariance_sd,
        )
    },
    "lanczos_bounds.ritz_value_bound": Line(
        lanczos_bounds.ritz_value_bound, ends_of_a_spectrum(), between_the_ends
    ),
}
