"""Contraction of momentum methods against the iteration itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import learning_rates

METHODS = ["heavy_ball", "nesterov"]
INTERVALS = [(10.0, 0.1), (100.0, 1.3), (0.9, 0.013), (7.0, 3.0), (1e-3, 1e-7)]


def radius(method: str, rate: float, rho: float, eigenvalues: Any) -> float:
    """Worst spectral radius of the companion matrix."""
    worst = 0.0
    for h in eigenvalues:
        shrink = 1 - rate * h
        row = [(1 + rho) * shrink, -rho * shrink] if method == "nesterov" else [shrink + rho, -rho]
        worst = max(worst, float(np.abs(np.linalg.eigvals(np.array([row, [1.0, 0.0]]))).max()))
    return worst


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    rate=st.floats(0.01, 3.0),
    rho=st.floats(-1.5, 1.5),
    largest=st.floats(-2.0, 4.0),
    share=st.floats(0.0, 1.0),
)
def test_the_worst_eigenvalue_is_an_end_of_the_interval(
    method: str, rate: float, rho: float, largest: float, share: float
) -> None:
    smallest = largest - 5 * share
    found = getattr(learning_rates, f"{method}_contraction")(rate, rho, largest=largest, smallest=smallest)

    inside = radius(method, rate, rho, np.linspace(smallest, largest, 31))
    assert_allclose(found, inside, rtol=1e-6)


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_contractions_of_the_named_constants(largest: float, smallest: float) -> None:
    ends = {"largest": largest, "smallest": smallest}
    for name, method in (
        ("heavy_ball", "heavy_ball"),
        ("nesterov", "nesterov"),
        ("best_nesterov", "nesterov"),
    ):
        constants = getattr(learning_rates, name)(largest, smallest)
        found = getattr(learning_rates, f"{method}_contraction")(*constants[:2], **ends)
        # double roots: the radius is good to the root of the rounding error
        assert_allclose(found, constants.contraction, rtol=1e-6)


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_no_other_nesterov_is_faster(largest: float, smallest: float) -> None:
    best = learning_rates.best_nesterov(largest, smallest)
    for a in (0.95, 1.0, 1.05):
        for m in (0.95, 1.0, 1.02):
            found = learning_rates.nesterov_contraction(
                a * best.learning_rate, m * best.momentum, largest=largest, smallest=smallest
            )
            assert found > best.contraction * (1 - 1e-6)


def test_best_nesterov_at_its_ends() -> None:
    assert learning_rates.best_nesterov(4.0, 4.0) == (0.25, 0.0, 0.0)
    assert learning_rates.best_nesterov(1.0, 1e-308).contraction <= 1
    nearly = learning_rates.best_nesterov(1.0, 1 - 1e-15)
    assert_allclose(nearly.contraction, 3 * 1e-15 / 8, rtol=0.2)
