"""Extreme eigenvalues by chains of single vectors: against dense ones, and what their bounds promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from simulate import eigenvalues
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from tests.simulate.dense_matrices import SPIKED, residuals, rng, rotated, wanted

# --- the values --------------------------------------------------------------------------------------------------


@given(
    dim=st.integers(1, 40),
    largest=st.integers(0, 4),
    smallest=st.integers(0, 4),
    kind=st.sampled_from(["random", "integers", "few", "zero"]),
)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_extremes_are_those_of_the_dense_matrix(dim: int, largest: int, smallest: int, kind: str) -> None:
    spectra = {
        "random": rng(dim).standard_normal(dim),
        "integers": np.arange(dim) * 1.0,
        "few": rng(dim).integers(0, 3, dim) * 1.0,
        "zero": np.zeros(dim),
    }
    largest, smallest = min(largest, dim), min(smallest, max(dim - largest, 0))
    if largest + smallest == 0:
        largest = 1
    matrix = rotated(spectra[kind], dim)
    found = extremes(matrix, rng(dim), largest=largest, smallest=smallest, tolerance=1e-9)
    error = np.abs(found.values - wanted(matrix, largest, smallest))
    assert (error <= found.bounds).all() and found.converged.all()
    assert found.bounds.max() <= 1e-9 * np.abs(matrix).sum()
    assert_allclose(found.vectors.T @ found.vectors, np.eye(largest + smallest), atol=1e-10)


@pytest.mark.parametrize("power", [2.0**-900, 2.0**900])
def test_everything_scales_with_the_matrix(power: float) -> None:
    """Powers of two: nothing is rounded but what squares of them would overflow or lose."""
    plain = extremes(SPIKED, rng(), largest=6, smallest=1)
    scaled = extremes(power * SPIKED, rng(), largest=6, smallest=1)
    for name in ("values", "residuals", "bounds", "floor", "ceiling"):
        assert_allclose(getattr(scaled, name) / power, getattr(plain, name), rtol=1e-9)
    assert_allclose(scaled.vectors, plain.vectors, atol=1e-9)


# --- the bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 10, 16, 25])
def test_whatever_the_step_the_values_lie_below_and_within_their_residuals(steps: int) -> None:
    exact = np.linalg.eigvalsh(SPIKED)[::-1]
    for seed in range(4):
        found = extremes(SPIKED, rng(seed), largest=min(steps, 3), steps=steps, tolerance=1e-12)
        assert (found.values <= exact[: len(found.values)] + 1e-12).all()
        assert (np.abs(exact[:, None] - found.values).min(0) <= found.residuals).all()
        assert_allclose(residuals(SPIKED, found), found.residuals, rtol=1e-6, atol=1e-12)
        assert found.ceiling >= exact[len(found.values)]
        assert found.floor <= exact[-1]
        assert found.stopped == f"the step limit, {steps} products" and found.products == steps


def test_where_a_gap_is_known_the_error_is_of_the_second_order() -> None:
    matrix = rotated([*np.linspace(-1, 1, 300), 2.0, 3.0])
    for steps in (8, 10, 12, 14):
        found = extremes(matrix, rng(), largest=2, steps=steps, tolerance=1e-14)
        error = np.abs(found.values - [3, 2])
        gaps = np.asarray([1.0, 1.0])  # above the band, and to each other
        assert (error <= found.bounds).all()
        assert (found.bounds <= 2 * found.residuals**2 / gaps + 1e-13).all()


@pytest.mark.parametrize("distance", [1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("largest", [1, 2, 3])
def test_a_close_pair_is_no_reason_for_too_small_a_bound(distance: float, largest: int) -> None:
    for values in ([3.0, 2.0 + distance, 2.0], [3.0 + distance, 3.0, 2.0]):
        matrix = rotated([*np.linspace(-1, 1, 100), *values])
        for tolerance in (1e-2, 1e-3, 1e-4):
            found = extremes(matrix, rng(), largest=largest, tolerance=tolerance)
            assert (np.abs(found.values - values[:largest]) <= found.bounds).all()
            assert found.converged.all()


def test_the_ceiling_fails_as_often_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A projector on one vector, seen once: the bound on its part of the start is all there is, and is attained."""
    monkeypatch.setattr(eigenvalues, "_DOUBT", 0.8)
    matrix = Operator(product=lambda v: v * (torch.arange(60) == 0), dim=60)
    draws = rng(5)
    exceeded = [extremes(matrix, draws, steps=1).ceiling < 1 for _ in range(600)]
    assert abs(np.mean(exceeded) - 0.8 / 4) < 4 * np.sqrt(0.2 * 0.8 / 600)


# --- rounding ------------------------------------------------------------------------------------------------------


def test_bounds_in_single_precision_hold_against_double_precision() -> None:
    for seed in range(4):
        single = SPIKED.astype(np.float32)
        found = extremes(single, rng(seed), largest=7, smallest=2, tolerance=1e-4)
        exact = single.astype(np.float64)
        error = np.abs(found.values - wanted((exact + exact.T) / 2, 7, 2))
        assert (error <= found.bounds).all() and found.converged.all()
        assert (residuals(exact, found) <= found.residuals).all()
        assert found.vectors.dtype == np.float64
        assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-14)


def test_a_remainder_too_short_to_go_on_with_is_part_of_the_residual() -> None:
    values = torch.linspace(1, 1 + 2e-5, 50)
    found = extremes(Operator(product=lambda v: v * values, dim=50, dtype=torch.float32), rng())
    assert found.products == 1
    assert residuals(np.diag(values.double().numpy()), found)[0] <= found.residuals[0]
    assert float(values[-1]) - found.values[0] <= found.bounds[0]


def test_single_precision_is_not_asked_for_more_than_it_has() -> None:
    found = extremes(SPIKED.astype(np.float32), rng(), largest=6, tolerance=1e-12)
    assert found.stopped == "the rounding of the products, which allows no smaller bounds"
    assert not found.converged.any()
    assert 1e-7 < found.bounds.max() < 1e-4
    assert (np.abs(found.values - wanted(SPIKED, 6)) <= found.bounds).all()


@pytest.mark.parametrize(
    ("few", "stopped"),
    [({}, "the rounding of the products"), ({"kept": 10, "steps": 400}, "")],
    ids=["all vectors", "few vectors"],
)
def test_products_that_are_not_those_of_a_symmetric_matrix_show_in_the_bounds(
    few: dict[str, int], stopped: str
) -> None:
    noise, dense = rng(1), torch.from_numpy(SPIKED)

    def noisy(vectors: torch.Tensor) -> torch.Tensor:
        return vectors @ dense + 1e-3 * torch.from_numpy(noise.standard_normal(vectors.shape))

    skew = torch.from_numpy(1e-2 * (np.triu(noise.standard_normal(SPIKED.shape))))
    for product in (noisy, lambda v: v @ (dense + skew)):
        matrix = Operator(product=product, dim=len(SPIKED))
        found = extremes(matrix, rng(), largest=6, tolerance=1e-9, **few)
        assert found.bounds.min() > 1e-3
        assert (np.abs(found.values - wanted(SPIKED, 6)) <= found.bounds).all()
        assert not found.converged.any() and found.stopped.startswith(stopped)
