"""Extreme eigenvalues by chains of single vectors: against dense ones, what their bounds promise, what they cost."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import _memory, eigenvalues
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from tests.simulate.dense_matrices import SPIKED, residuals, rng, rotated, wanted

certified = partial(extremes, certified=True)

KINDS = {
    "random": lambda dim: rng(dim).standard_normal(dim),
    "integers": lambda dim: np.arange(dim) * 1.0,
    "few": lambda dim: rng(dim).integers(0, 3, dim) * 1.0,
    "zero": np.zeros,
}


HARD: dict[str, Any] = {
    "single": [*np.linspace(-1, 1, 97), 2.0, 3.0, 5.0],
    "close": [*np.linspace(-1, 1, 95), 2.0, 2 + 1e-9, 3.0, 3 + 1e-4, 3 + 2e-4],
    "multiple": [*np.linspace(-1, 1, 90), *[2.0] * 5, *[3.0] * 5],
    "decaying": 10.0 ** -np.linspace(0, 12, 100),
    "low rank": [*np.zeros(96), 1.0, 2.0, 3.0, 3.0],
    "flat": np.linspace(-1, 1, 100),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", HARD)
def test_an_eigenvalue_lies_within_the_residual_at_any_tolerance(kind: str, dtype: type) -> None:
    """One pass of re-orthogonalisation and few vectors, on spectra of close, multiple and vanishing eigenvalues."""
    matrix = rotated(HARD[kind]).astype(dtype)
    exact = np.linalg.eigvalsh(matrix.astype(np.float64))[::-1]
    rounding = 200 * np.finfo(dtype).eps
    for tolerance in (1e-1, 1e-3, 1e3 * np.finfo(dtype).eps):
        for count, seed in ((1, 0), (1, 1), (4, 2)):
            found = extremes(matrix, seed, largest=count, tolerance=tolerance, steps=2000)
            assert found.converged.all() and not found.certified
            assert found.stopped == "all residuals below the tolerance"
            assert (np.abs(exact[:, None] - found.values).min(0) <= found.residuals).all()
            assert (found.values <= exact[:count] + rounding).all()
            assert (found.bounds == found.residuals).all()
            assert (residuals(matrix.astype(np.float64), found) <= found.residuals + rounding).all()
            assert found.floor <= exact[-1] and exact[0] <= found.ceiling
            assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=rounding)


def test_without_a_certificate_a_multiple_eigenvalue_may_appear_once() -> None:
    matrix = np.diag([7.0, 7.0, 4.0, *np.linspace(0, 1, 100)])
    assert_allclose(extremes(matrix, largest=2).values, [7, 4], atol=1e-2)
    assert_allclose(certified(matrix, largest=2).values, [7, 7], atol=1e-2)
    assert "not certified" in repr(extremes(matrix)) and "all others in" in repr(certified(matrix))


@pytest.mark.parametrize("room", [None, 4])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dim", "largest", "smallest"), [(1, 1, 0), (2, 1, 1), (9, 0, 3), (17, 4, 0), (30, 2, 3), (40, 1, 1)]
)
def test_extremes_are_those_of_the_dense_matrix(
    dim: int, largest: int, smallest: int, kind: str, room: int | None
) -> None:
    matrix, count = rotated(KINDS[kind](dim), dim), largest + smallest
    found = certified(
        matrix, rng(dim), largest=largest, smallest=smallest, tolerance=1e-9,
        kept=room and count + room, steps=3000,
    )  # fmt: skip
    size = np.abs(matrix).sum()
    assert (np.abs(found.values - wanted(matrix, largest, smallest)) <= found.bounds).all()
    assert found.converged.all() and found.bounds.max() <= 1e-9 * size
    assert_allclose(residuals(matrix, found), found.residuals, atol=1e-12 * (1 + size))
    assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=1e-10)


# --- the bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 10, 16, 25])
def test_whatever_the_step_the_values_lie_below_and_within_their_residuals(steps: int) -> None:
    exact = np.linalg.eigvalsh(SPIKED)[::-1]
    for seed in range(4):
        found = certified(SPIKED, rng(seed), largest=min(steps, 3), steps=steps, tolerance=1e-12)
        assert (found.values <= exact[: len(found.values)] + 1e-12).all()
        assert (np.abs(exact[:, None] - found.values).min(0) <= found.residuals).all()
        assert_allclose(residuals(SPIKED, found), found.residuals, rtol=1e-6, atol=1e-12)
        assert found.ceiling >= exact[len(found.values)] and found.floor <= exact[-1]
        assert found.stopped == f"the step limit, {steps} products" and found.products == steps


def test_where_a_gap_is_known_the_error_is_of_the_second_order() -> None:
    matrix = rotated([*np.linspace(-1, 1, 300), 2.0, 3.0])
    for steps in (8, 10, 12, 14):
        found = certified(matrix, rng(), largest=2, steps=steps, tolerance=1e-14)
        assert (np.abs(found.values - [3, 2]) <= found.bounds).all()
        assert (found.bounds <= 2 * found.residuals**2 + 1e-13).all()  # gaps of one


@pytest.mark.parametrize("distance", [1e-5, 1e-4, 1e-2])
@pytest.mark.parametrize("largest", [1, 2, 3])
def test_a_close_pair_is_no_reason_for_too_small_a_bound(distance: float, largest: int) -> None:
    for values in ([3.0, 2.0 + distance, 2.0], [3.0 + distance, 3.0, 2.0]):
        matrix = rotated([*np.linspace(-1, 1, 60), *values])
        for tolerance in (1e-2, 1e-3, 1e-4):
            found = certified(matrix, rng(), largest=largest, tolerance=tolerance)
            assert (np.abs(found.values - values[:largest]) <= found.bounds).all()
            assert found.converged.all()


def test_the_ceiling_fails_as_often_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A projector on one vector, seen once: the bound on its part of the start is all there is, and is attained."""
    monkeypatch.setattr(eigenvalues, "_DOUBT", 0.8)
    matrix = Operator(product=lambda v: v * (torch.arange(60) == 0), dim=60)
    draws = rng(5)
    exceeded = [extremes(matrix, draws, steps=1).ceiling < 1 for _ in range(300)]
    assert abs(np.mean(exceeded) - 0.8 / 4) < 4 * np.sqrt(0.2 * 0.8 / 300)


def test_nothing_has_converged_before_copies_are_looked_for() -> None:
    """After 3 products a double eigenvalue is found once; the next takes its copy's place, with a small residual."""
    matrix = np.diag([10.0, 10.0, 5.0, *np.linspace(0, 1e-3, 50)])
    cut, found = (certified(matrix, rng(), largest=2, steps=steps, tolerance=1e-2) for steps in (3, 20))
    assert cut.bounds[1] < 1e-4 and abs(cut.values[1] - 5) < 1e-4
    assert not cut.converged.any()
    assert found.converged.all() and abs(found.values[1] - 10) < 0.1


# --- rounding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kept", "tolerance"), [(None, 1e-4), (9, 1e-5)])
def test_bounds_in_single_precision_hold_against_double_precision(kept: int | None, tolerance: float) -> None:
    single = SPIKED.astype(np.float32)
    exact = single.astype(np.float64)
    largest = 4 if kept else 7
    for seed in range(3):
        found = certified(
            single, rng(seed), largest=largest, smallest=2, tolerance=tolerance, kept=kept, steps=2000
        )
        assert not kept or found.products > 4 * kept  # many restarts; how many, rounding decides
        assert (np.abs(found.values - wanted((exact + exact.T) / 2, largest, 2)) <= found.bounds).all()
        assert found.converged.all() and (residuals(exact, found) <= found.residuals).all()
        assert found.vectors.dtype == np.float64
        assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-14)


def test_a_remainder_too_short_to_go_on_with_is_part_of_the_residual() -> None:
    values = torch.linspace(1, 1 + 2e-5, 50)
    found = extremes(Operator(product=lambda v: v * values, dim=50, dtype=torch.float32), rng())
    assert found.products == 1
    assert residuals(np.diag(values.double().numpy()), found)[0] <= found.residuals[0]
    assert float(values[-1]) - found.values[0] <= found.bounds[0]


def test_single_precision_is_not_asked_for_more_than_it_has() -> None:
    found = certified(SPIKED.astype(np.float32), rng(), largest=6, tolerance=1e-12)
    assert found.stopped.startswith("the rounding of the products") and not found.converged.any()
    assert 1e-7 < found.bounds.max() < 1e-4
    assert (np.abs(found.values - wanted(SPIKED, 6)) <= found.bounds).all()


@pytest.mark.parametrize(
    ("few", "stopped"), [({}, "the rounding of the products"), ({"kept": 10, "steps": 400}, "")]
)
def test_products_that_are_not_those_of_a_symmetric_matrix_show_in_the_bounds(
    few: dict[str, Any], stopped: str
) -> None:
    noise, dense = rng(1), torch.from_numpy(SPIKED)
    skew = torch.from_numpy(1e-2 * np.triu(noise.standard_normal(SPIKED.shape)))
    for product in (
        lambda v: v @ dense + 1e-3 * torch.from_numpy(noise.standard_normal(v.shape)),
        lambda v: v @ (dense + skew),
    ):
        matrix = Operator(product=product, dim=len(SPIKED))
        found = certified(matrix, rng(), largest=6, tolerance=1e-9, **few)
        assert found.bounds.min() > 1e-3 and not found.converged.any()
        assert (np.abs(found.values - wanted(SPIKED, 6)) <= found.bounds).all()
        assert found.stopped.startswith(stopped)


@pytest.mark.parametrize("values", [[1.0, 1.0, -1.0], [10.0, 10.0, 0.3], [2.0, 1.9999]])
def test_floor_and_ceiling_allow_for_rounding_where_all_is_spanned(values: list[float]) -> None:
    """Single precision, with eigenvalues that are nearly or exactly equal."""
    for seed in range(20):
        matrix = rotated(values, seed).astype(np.float32)
        known = np.linalg.eigvalsh(matrix.astype(np.float64))
        assert certified(matrix, rng(seed), largest=len(values) - 1, tolerance=1e-7).floor <= known[0]
        single = certified(matrix, rng(seed), largest=1, smallest=1, tolerance=1e-7)
        assert single.floor <= known[0] and known[-1] <= single.ceiling


# --- what they take ----------------------------------------------------------------------------------------------


def test_every_product_is_with_one_vector_and_is_told_of() -> None:
    shapes = []
    told = []
    dense = torch.from_numpy(SPIKED)
    operator = Operator(product=lambda v: shapes.append(v.shape) or v @ dense, dim=300)
    found = extremes(operator, rng(), largest=7, progress=lambda *state: told.append(state))
    assert set(shapes) == {(1, 300)}
    assert (
        [count for count, _ in told] == list(range(1, found.products + 1)) == list(range(1, len(shapes) + 1))
    )
    assert told[0][1] == np.inf and told[5][1] == np.inf and 1e-3 < told[6][1] < np.inf
    assert 0 <= told[-1][1] <= 1e-3


def test_a_matrix_with_few_eigenvalues_is_exhausted_and_one_of_few_rows_spanned() -> None:
    assert certified(np.eye(50), rng()).products == 1
    found = certified(np.eye(50), rng(), largest=10)
    assert_allclose(found.values, 1, rtol=1e-14)
    assert found.products == 11 and found.stopped == "all bounds below the tolerance"
    small = certified(np.diag([1.0, 2.0, 5.0, 5.0]), rng(), largest=2, smallest=2, tolerance=1e-15)
    assert_allclose(small.values, [5, 5, 2, 1], rtol=1e-13)
    assert small.stopped == "the whole space was spanned"


def test_few_vectors_are_held_and_fewer_if_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight vectors are for the product, or for four of the result in double precision."""
    values = torch.linspace(0, 1, 10**4)
    operator = Operator(product=lambda v: v * values, dim=10**4, dtype=torch.float32)
    restart, held = eigenvalues.Chain.restart, list[int]()

    def counted(chain: eigenvalues.Chain, *ends: int) -> None:
        held.append(len(chain.nodes))
        restart(chain, *ends)

    monkeypatch.setattr(eigenvalues.Chain, "restart", counted)
    monkeypatch.setattr(_memory, "_UNCHECKED", 0)
    for free in (100, 8 + 9, 8 + 4):
        monkeypatch.setattr(_memory, "available", lambda device, free=free: 4e4 * free)
        found = extremes(operator, tolerance=1e-2)
        assert found.converged.all() and found.values[0] <= 1 <= found.ceiling
        assert set(held) == {min(16, free - 8)}
        held.clear()
    asked = list[int]()
    monkeypatch.setattr(_memory, "available", lambda device: asked.append(1) or 4e4 * (8 + 9))
    assert extremes(operator, tolerance=1e-2, kept=5000).converged.all()
    assert set(held) == {9} and len(asked) < 20  # once for each length would take minutes
    monkeypatch.setattr(_memory, "available", lambda device: 4e4 * 11)
    with pytest.raises(ValueError, match="12 vectors of 10000 numbers, and the result, need"):
        extremes(operator)
