"""The bound on extreme Ritz values: against polynomials written out, its two ends, and its limits."""

import math

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


def test_the_bound_does_not_pass_the_other_end_by_rounding() -> None:
    at = -6.773313605100192
    assert ritz_value_bound(at, at, -5e-324, angle=0.8875206000241261, steps=1588) == -5e-324
