"""The bound on extreme Ritz values: against polynomials written out, its two ends, and its limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import special

from theory.lanczos_bounds import ritz_value_bound

GAP = st.floats(1e-6, 1e3)


@given(start=st.floats(-50, 50), gap=GAP, rest=GAP, angle=st.floats(0, 1.5), steps=st.integers(1, 7))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_the_loss_is_the_spread_times_the_tangent_over_the_chebyshev_polynomial_squared(
    start: float, gap: float, rest: float, angle: float, steps: int
) -> None:
    polynomial = special.eval_chebyt(steps - 1, 1 + 2 * gap / rest)
    loss = min((gap + rest) * (math.tan(angle) / polynomial) ** 2, gap + rest)
    top = ritz_value_bound(start, start - gap, start - gap - rest, angle=angle, steps=steps)
    assert_allclose(start - top, loss, rtol=1e-6, atol=1e-12 * (abs(start) + gap + rest))
    bottom = ritz_value_bound(-start, gap - start, gap + rest - start, angle=angle, steps=steps)
    assert_allclose(bottom, -top, rtol=1e-13)


def test_a_krylov_space_of_two_vectors_is_bounded() -> None:
    """Two steps on three eigenvalues, the Ritz values from a 2 x 2 matrix written out."""
    values = np.array([-0.3, 0.4, 1.9])
    start = np.array([0.6, 0.7, 0.5]) / math.sqrt(1.1)
    mean = start @ (values * start)
    rest = (values - mean) * start
    beside = np.linalg.norm(rest)
    ritz = np.linalg.eigvalsh([[mean, beside], [beside, rest @ (values * rest) / beside**2]])
    low = ritz_value_bound(1.9, 0.4, -0.3, angle=math.acos(start[2]), steps=2)
    high = ritz_value_bound(-0.3, 0.4, 1.9, angle=math.acos(start[0]), steps=2)
    assert low < ritz[1] < 1.9 and -0.3 < ritz[0] < high


def test_limits() -> None:
    def bound(*values: float, angle: float = 1.0, steps: int = 3) -> float:
        return float(ritz_value_bound(*values, angle=angle, steps=steps))

    assert bound(3.0, 1.0, 0.0, angle=0.0) == 3.0  # the start is the eigenvector
    assert bound(3.0, 1.0, 0.0, angle=math.pi / 2) == 0.0  # the start does not see it
    assert bound(3.0, 0.0, 0.0) == 3.0  # two different eigenvalues: two steps see both
    assert bound(3.0, 0.0, 0.0, steps=1) == 0.0
    assert bound(3.0, 0.0, 0.0, angle=0.5, steps=1) == 3 - 3 * math.tan(0.5) ** 2
    assert bound(3.0, 3.0, 0.0, angle=0.5, steps=400) == 3 - 3 * math.tan(0.5) ** 2  # no gap, no convergence
    assert bound(2.5, 2.5, 2.5) == 2.5
    assert bound(3.0, 1.0, 0.0, steps=10**6) == 3.0  # the polynomial overflows


def test_arguments_broadcast() -> None:
    found = ritz_value_bound([[3.0], [4.0]], 1.0, 0.0, angle=[0.3, 0.6, 0.9], steps=2)
    assert found.shape == (2, 3)
    assert found[1, 2] == ritz_value_bound(4, 1, 0, angle=0.9, steps=2)
    assert ritz_value_bound(np.ones((0, 2)), 0.5, 0.0, angle=0.1, steps=1).shape == (0, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"eigenvalue": np.nan}, "eigenvalue must be finite, got nan"),
        ({"neighbour": np.inf}, "neighbour must be finite, got inf"),
        ({"opposite": "low"}, "opposite must be real numbers, got 'low'"),
        ({"neighbour": 3.5}, r"neighbour must be between eigenvalue and opposite, got 3\.5"),
        ({"neighbour": -0.5}, r"neighbour must be between eigenvalue and opposite, got -0\.5"),
        ({"angle": -0.1}, r"angle must be in \[0, 1\.5708\], got -0\.1"),
        ({"angle": 1.6}, r"angle must be in \[0, 1\.5708\], got 1\.6"),
        ({"steps": 0}, "steps must be an integer >= 1, got 0"),
        ({"steps": True}, "steps must be an integer >= 1, got True"),
        ({"steps": 2.5}, r"steps must be an integer >= 1, got 2\.5"),
        ({"eigenvalue": 1e308, "opposite": -1e308}, "eigenvalue, opposite must be such that"),
        ({"eigenvalue": [3.0, 3.0], "angle": [0.1, 0.2, 0.3]}, "must be broadcastable to one shape"),
    ],
)
def test_what_is_out_of_domain_is_refused_by_name(changed: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"eigenvalue": 3.0, "neighbour": 1.0, "opposite": 0.0, "angle": 0.4, "steps": 3}
    with pytest.raises(ValueError, match=message):
        ritz_value_bound(**(good | changed))


def test_the_bound_does_not_pass_the_other_end_by_rounding() -> None:
    at = -6.773313605100192
    assert ritz_value_bound(at, at, -5e-324, angle=0.8875206000241261, steps=1588) == -5e-324
