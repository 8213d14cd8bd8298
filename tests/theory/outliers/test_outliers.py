"""Outliers against the secular equation, the derivative of the eigenvalue and each other."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory import outliers
from theory.outliers import (
    additive,
    additive_wigner,
    additive_wishart,
    information_plus_noise,
    spiked_covariance,
)
from theory.rmt import CompoundFreePoisson, MarchenkoPastur, Semicircle

SETTINGS = settings(deadline=None, max_examples=30, derandomize=True)
RECTANGULAR = [additive_wishart, information_plus_noise, spiked_covariance]


@pytest.mark.parametrize("spike", [0.8, 1.0, 2.5, -0.9])
def test_wigner_outlier_solves_the_secular_equation(spike: float) -> None:
    """Above the threshold, spike * G(outlier) = 1 (appendix A.2 of the paper)."""
    outlier = additive_wigner(spike, sigma=0.7).eigenvalue

    assert_allclose(spike * Semicircle(sigma=0.7).stieltjes(outlier), 1.0, rtol=1e-9)


@pytest.mark.parametrize("q", [0.1, 1.0, 4.0, 20.0])
def test_information_plus_noise_outlier_solves_its_determinant_equation(q: float) -> None:
    """spike * phi(z) * phi~(z) = 1 for the resolvent traces of E E^T (p x p) and E^T E (n x n).

    phi = sqrt(z) G(z) on either side, and G~ = q G + (1 - q)/z (Benaych-Georges and Nadakuditi, 2012).
    """
    law = MarchenkoPastur(q=q, variance=1.7)
    for spike in np.array([1.2, 2.0, 10.0]) * math.sqrt(q) * 1.7:
        z = information_plus_noise(spike, q=q, variance=1.7).eigenvalue
        g = law.stieltjes(z)
        assert_allclose(spike * z * g * (q * g + (1 - q) / z), 1.0, rtol=1e-9)


LAWS = [Semicircle(sigma=0.7)] + [MarchenkoPastur(q=q, variance=1.4) for q in (0.1, 1.0, 4.0)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_any_law_reproduces_the_closed_forms(law: Any) -> None:
    spike = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 9.0, 40.0])
    if isinstance(law, Semicircle):
        spike = np.append(spike, -spike[1:])
        closed = additive_wigner(spike, sigma=law.sigma)
    else:
        closed = additive_wishart(spike, q=law.q, variance=law.variance)
    general = additive(spike, law)

    for name in ("eigenvalue", "overlap", "threshold", "edge", "visible"):
        assert_allclose(getattr(general, name), getattr(closed, name), rtol=1e-12, atol=1e-14)


def test_any_law_at_its_lower_edge() -> None:
    law = MarchenkoPastur(q=0.25, variance=1.0)
    low = additive([-0.2, -0.25, -1.0], law)
    assert_array_equal(low.visible, [False, False, True])  # threshold -sqrt(q) (1 - sqrt(q))
    assert_allclose(low.threshold, -0.25, rtol=1e-14)
    assert_allclose(low.eigenvalue[:2], law.edges[0], rtol=1e-15)
    assert_allclose(-1.0 * law.stieltjes(low.eigenvalue[2]), 1.0, rtol=1e-13)


@pytest.mark.parametrize("q", [1.0, 4.0])
def test_a_null_space_gives_way_to_any_negative_spike(q: float) -> None:
    law = MarchenkoPastur(q=q, variance=1.0)
    low = additive([-1e-3, -2.0], law)

    assert_array_equal(low.visible, [True, True])
    assert_array_equal(low.edge, [0.0, 0.0])
    assert_array_equal(low.threshold, [0.0, 0.0])
    assert np.all(low.eigenvalue < 0)
    assert_allclose(np.array([-1e-3, -2.0]) * law.stieltjes(low.eigenvalue), 1.0, rtol=1e-9)


def test_thresholds_are_those_of_one_number_by_hand() -> None:
    """q = 4, variance 1: radius 2, so 6 and 2, edge 9; as our copy reads they would be 5 and 10."""
    assert additive_wishart(1.0, q=4.0, variance=1.0).threshold == 6.0
    assert information_plus_noise(1.0, q=4.0, variance=1.0).threshold == 2.0
    assert additive_wishart(1.0, q=4.0, variance=1.0).edge == 9.0
    assert additive_wigner(1.5, sigma=1.0).visible  # between sigma and 2 sigma


@SETTINGS
@given(spike=st.floats(1e-6, 1e6))
def test_without_noise_the_spike_remains(spike: float) -> None:
    records = [additive_wigner(spike, sigma=0.0)] + [f(spike, q=3.0, variance=0.0) for f in RECTANGULAR]
    for record in records:
        assert record.eigenvalue == spike
        assert (record.overlap, record.threshold, record.edge) == (1.0, 0.0, 0.0)
        assert record.visible
    assert additive_wigner(-spike, sigma=0.0).eigenvalue == -spike


def test_no_spike_sees_the_upper_edge() -> None:
    for zero in (0.0, -0.0, 0):
        record = additive_wigner(zero, sigma=1.0)
        assert (record.eigenvalue, record.overlap, record.threshold, record.edge) == (2.0, 0.0, 1.0, 2.0)
        assert not record.visible
        assert additive(zero, Semicircle(sigma=1.0)).eigenvalue == 2.0
    nothing = additive_wigner(0.0, sigma=0.0)
    assert (nothing.eigenvalue, nothing.overlap) == (0.0, 0.0) and not nothing.visible


@pytest.mark.parametrize("law", [Semicircle(sigma=1.3), MarchenkoPastur(q=0.3, variance=2.0)])
def test_a_spike_beyond_all_noise_keeps_its_direction(law: Any) -> None:
    """The imaginary step of the derivative is relative: at 1e300 an absolute one would underflow."""
    top = additive([1e300, -1e300], law)

    assert_array_equal(top.overlap, 1.0)
    assert_array_equal(top.eigenvalue, [1e300, -1e300])


def test_the_overlap_of_tiny_noise_is_that_of_its_unit() -> None:
    tiny = additive(3e-265, MarchenkoPastur(q=0.5, variance=1e-265))

    assert_allclose(tiny.overlap, additive_wishart(3.0, q=0.5, variance=1.0).overlap, rtol=1e-12)


def test_edges_of_wide_and_tiny_noise_are_in_range() -> None:
    assert_allclose(information_plus_noise(0.0, q=1e308, variance=1e-300).edge, 1e8, rtol=1e-12)
    assert_allclose(additive_wishart(0.0, q=1e308, variance=1e-300).edge, 1e8, rtol=1e-12)


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
