"""Bracketed roots: simple ones, steep and flat ones, tiny ones."""

import math
from collections.abc import Callable

import pytest

from theory._roots import bracketed_root


@pytest.mark.parametrize(
    ("function", "low", "high", "root"),
    [
        (lambda x: x * x - 2, 0.0, 2.0, math.sqrt(2)),
        (lambda x: math.cos(x) - x, 0.0, 1.0, 0.7390851332151607),
        (lambda x: math.exp(x) - 1e5, 0.0, 700.0, math.log(1e5)),
        (lambda x: x - 1e-200, 1e-300, 1.0, 1e-200),
        (lambda x: x / 1e-300 - 3, 1e-300, 8e-300, 3e-300),
        (lambda x: math.copysign(1.0, x - 0.3), 0.0, 1.0, 0.3),
        (lambda x: 1 - x, 0.0, 1.0, 1.0),
    ],
)
def test_roots_are_found_to_rounding(
    function: Callable[[float], float], low: float, high: float, root: float
) -> None:
    assert bracketed_root(function, low, high) == pytest.approx(root, rel=3e-15)


def test_equal_signs_are_refused() -> None:
    with pytest.raises(ValueError, match="different signs"):
        bracketed_root(lambda x: x, 1.0, 2.0)
