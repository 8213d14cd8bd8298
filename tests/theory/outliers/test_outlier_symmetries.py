"""What outliers and their laws must keep under a change of the problem, over drawn parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import outliers
from theory.rmt import CompoundFreePoisson, MarchenkoPastur, Semicircle

SETTINGS = settings(deadline=None, max_examples=30, derandomize=True)
ratios = st.floats(-3, 3).map(lambda x: 10**x)
scales = st.floats(-2, 2).map(lambda x: 10**x)
beyond = st.floats(1.01, 100)
jumps = st.lists(
    st.builds(lambda s, x: s * 10**x, st.sampled_from([-1.0, 1.0]), st.floats(-1, 1)), min_size=1, max_size=3
)
compound = st.builds(lambda rate, sizes: CompoundFreePoisson(rate=rate, jumps=sizes), scales, jumps)
laws = st.one_of(
    compound,
    scales.map(lambda v: Semicircle(variance=v)),
    st.builds(lambda q, v: MarchenkoPastur(q=q, variance=v), ratios, scales),
)


@SETTINGS
@given(q=ratios, variance=scales, excess=beyond)
def test_distance_from_the_edge_is_a_square(q: float, variance: float, excess: float) -> None:
    """(t - t_c)^2/t with t = spike, spike - q variance, spike; t_c = sigma, sqrt(q) variance, the same."""
    t_c = math.sqrt(q) * variance
    t = excess * t_c
    gap = (t - t_c) ** 2 / t
    for top in (
        outliers.additive_wigner(t, sigma=t_c),
        outliers.additive_wishart(t + q * variance, q=q, variance=variance),
        outliers.information_plus_noise(t, q=q, variance=variance),
    ):
        assert_allclose(top.eigenvalue - top.edge, gap, rtol=1e-9, atol=1e-12 * float(top.edge))


@SETTINGS
@given(law=laws, excess=beyond, sign=st.sampled_from([-1, 1]))
def test_overlap_of_any_law_is_the_slope_of_its_outlier(law: Any, excess: float, sign: int) -> None:
    threshold = float(outliers.additive(float(sign), law).threshold)
    spike = excess * (threshold if threshold != 0 else sign * 1.0)
    h = 1e-4 * abs(spike) * min(1.0, excess - 1)
    f = [outliers.additive(spike + k * h, law).eigenvalue for k in (-2, -1, 1, 2)]
    slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    size = abs(float(outliers.additive(spike, law).eigenvalue))

    assert_allclose(outliers.additive(spike, law).overlap, slope, rtol=1e-6, atol=1e-14 * size / h + 1e-8)


@SETTINGS
@given(law=laws)
def test_outliers_of_any_law_leave_the_edge_smoothly(law: Any) -> None:
    """Value and slope are continuous at the threshold, and no outlier lies inside its edge."""
    at = outliers.additive(0.0, law)
    threshold = float(at.threshold)
    if threshold == 0:
        return  # an atom or a hard edge at the end: any spike is seen
    above = outliers.additive(threshold * (1 + 1e-6), law)
    size = max(map(abs, law.edges))

    assert not outliers.additive(threshold * (1 - 1e-9), law).visible
    assert above.visible and 0 <= above.overlap < 1e-3
    assert 0 <= above.eigenvalue - at.edge <= 1e-8 * size


@SETTINGS
@given(law=compound, spike=st.floats(0.01, 100), unit=st.sampled_from([0.25, 8.0]))
def test_mirror_and_unit_of_any_jumps(law: CompoundFreePoisson, spike: float, unit: float) -> None:
    mirrored = CompoundFreePoisson(rate=law.rate, jumps=-unit * np.array(law.jumps), weights=law.weights)
    top, bottom = outliers.additive(spike, law), outliers.additive(-unit * spike, mirrored)
    size = unit * max(spike, *map(abs, law.edges))

    assert_allclose(bottom.eigenvalue, -unit * top.eigenvalue, rtol=1e-10, atol=1e-12 * size)
    assert_allclose(bottom.threshold, -unit * top.threshold, rtol=1e-10, atol=1e-12 * size)
    assert_allclose(bottom.overlap, top.overlap, rtol=0, atol=1e-7)
