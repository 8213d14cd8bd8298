"""The own-direction law: its limits, its equation by loops, and for one direction an integral as second route."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory import own_direction
from theory.own_direction import OwnDirections


def population(seed: int, samples: int = 7, dim: int = 5, rank: int = 2) -> np.ndarray:
    factors = np.random.default_rng(seed).standard_normal((samples, dim, rank))
    return factors @ factors.swapaxes(1, 2)


def numbers_of(matrices: np.ndarray, k: int) -> dict[str, Any]:
    """All that the law reads, from dense matrices; every pair of samples is probed."""
    vectors = np.linalg.eigh(matrices.mean(axis=0))[1][:, ::-1][:, :k]
    tops, own = np.linalg.eigh(matrices)
    tops, own = tops[:, -1], own[:, :, -1]
    overlaps = own @ vectors
    rest = own - overlaps @ vectors.T
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    images = np.einsum("jab,ib->ija", matrices, rest)
    apart = ~np.eye(len(matrices), dtype=bool)
    background = (images * rest[:, None]).sum(axis=2)[apart].mean()
    outside = images - images @ vectors @ vectors.T
    return {
        "projected": vectors.T @ matrices @ vectors,
        "squared": vectors.T @ matrices @ matrices @ vectors,
        "largest": tops,
        "overlaps": overlaps,
        "background": background,
        "spread": (outside**2).sum(axis=2)[apart].mean() - background**2,
    }


def law(seed: int, k: int, **more: Any) -> OwnDirections:
    return own_direction.own_directions(**numbers_of(population(seed, **more), k))


def subsets(samples: int, size: int) -> np.ndarray:
    return np.array(list(itertools.combinations(range(samples), size)))


def pole(x: float, size: int, s: OwnDirections, batch: np.ndarray) -> float:
    spread = x * (1 - 1 / size) * s.spread
    heavy = max(0.0, x * s.own[batch].max())
    return s.background * (1 - x) + (heavy + np.sqrt(heavy**2 + 4 * spread)) / 2


def equation(s: OwnDirections, batch: np.ndarray, at: float) -> float:
    """lambda_max(F_S(lambda)) as the page on it states, sample by sample."""
    size = len(batch)
    x = 1 / size - 1 / s.samples
    q = s.background * (1 - x)
    q += x * (1 - 1 / size) * s.spread / (at - s.background * (1 - x))
    total = np.zeros_like(s.projected[0])
    for i in batch:
        total += s.projected[i] + x * np.outer(s.coupling[i], s.coupling[i]) / (at - x * s.own[i] - q)
        total += x * (1 - 1 / size) * s.rest[i] / (at - q)
    return float(np.linalg.eigvalsh(total / size)[-1])


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_eigenvalue_solves_the_equation_above_every_pole(k: int, size: int) -> None:
    s, batches = law(3, k), subsets(7, size)
    for batch, value in zip(batches, own_direction.batch_eigenvalues(s, batches), strict=True):
        assert value > pole(1 / size - 1 / 7, size, s, batch)
        assert_allclose(equation(s, batch, value), value, rtol=1e-9)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), c=st.sampled_from([1e-30, 0.3, 1e30]))
def test_the_whole_data_set_has_its_own_eigenvalue_in_any_unit(seed: int, k: int, c: float) -> None:
    matrices = c * population(seed)
    s = own_direction.own_directions(**numbers_of(matrices, k))
    top = np.linalg.eigvalsh(matrices.mean(axis=0))[-1]
    assert_allclose(s.eigenvalue, top, rtol=1e-12)
    assert_allclose(own_direction.batch_eigenvalues(s, [range(7)]), top, rtol=1e-12)


@pytest.mark.parametrize(("background", "spread"), [(0.0, 0.0), (0.3, 20.0)])
def test_a_heavy_sample_that_is_not_coupled_stands_alone(background: float, spread: float) -> None:
    s = OwnDirections(
        projected=np.full((4, 1, 1), 0.5),
        rest=np.zeros((4, 1, 1)),
        coupling=np.zeros((4, 1)),
        own=np.array([40.0, 1.0, 1.0, 1.0]),
        background=background,
        spread=spread,
    )
    alone = pole(1 / 2 - 1 / 4, 2, s, np.array([0, 1]))
    assert_allclose(alone, 10.0 if spread == 0 else 0.225 + (10 + 110**0.5) / 2)
    assert_allclose(own_direction.batch_eigenvalues(s, [[0, 1]]), alone)
    if spread == 0:
        assert_allclose(own_direction.batch_eigenvalues(s, [[1, 2]]), 0.5)


def test_blocks_of_a_sample_are_those_of_its_matrix() -> None:
    matrices = population(8, dim=6, rank=3)
    vectors = np.linalg.eigh(matrices.mean(axis=0))[1][:, ::-1][:, :2]
    s = own_direction.own_directions(**numbers_of(matrices, 2))
    for i, h in enumerate(matrices):
        u = np.linalg.eigh(h)[1][:, -1]
        e = u - vectors @ vectors.T @ u
        e /= np.linalg.norm(e)
        outside = np.eye(6) - vectors @ vectors.T - np.outer(e, e)
        assert_allclose(np.abs(s.coupling[i]), np.abs(vectors.T @ h @ e), rtol=1e-9, atol=1e-12)
        assert_allclose(s.own[i], e @ h @ e, rtol=1e-9)
        assert_allclose(s.rest[i], vectors.T @ h @ outside @ h @ vectors, rtol=1e-8, atol=1e-12)


def test_a_sample_within_the_span_has_no_own_direction() -> None:
    s = own_direction.own_directions(
        np.eye(2)[None], np.eye(2)[None], [1.0], [[1.0, 0.0]], background=0.0, spread=0.0
    )
    assert not s.coupling.any() and not s.own.any()


def test_control_variates_take_off_what_a_draw_is_off_by() -> None:
    s, every = law(4, 2, samples=16), subsets(16, 3)
    mean = own_direction.batch_eigenvalues(s, every).mean()
    assert_allclose(own_direction.expected_eigenvalue(s, every), mean, rtol=1e-12)
    rng = np.random.default_rng(0)
    drawn = [every[rng.choice(len(every), 24, replace=False)] for _ in range(40)]
    plain, with_controls = (
        np.std([function(s, batches) for batches in drawn])
        for function in (
            lambda s, b: own_direction.batch_eigenvalues(s, b).mean(),
            own_direction.expected_eigenvalue,
        )
    )
    assert with_controls < 0.5 * plain
    few = every[:5]
    assert own_direction.expected_eigenvalue(s, few) == own_direction.batch_eigenvalues(s, few).mean()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_bounds_hold_for_every_batch(size: int, shift: float) -> None:
    """Also for indefinite matrices; with semidefinite ones the two are within a factor of the size."""
    matrices = population(6, samples=9) - shift * np.diag([0.0, 0.0, 1.0, 2.0, 0.0])
    s, batches = own_direction.own_directions(**numbers_of(matrices, 2)), subsets(9, size)
    true = np.linalg.eigvalsh(matrices[batches].mean(axis=1))[:, -1]
    low, high = own_direction.batch_bounds(s, batches, semidefinite=not shift)
    slack = 1e-12 * high.max()
    assert (low <= true + slack).all() and (true <= high + slack).all()
    assert shift or (high <= size * low + slack).all()
    assert np.abs(own_direction.batch_bounds(s, [range(9)]).lower - s.eigenvalue) < slack


def test_measured_scalars_are_kept_within_their_bounds() -> None:
    numbers = numbers_of(population(1), 2)
    low = own_direction.own_directions(**numbers | {"background": -1.0, "spread": -2.0})
    high = own_direction.own_directions(**numbers | {"background": 1e6})
    assert (low.background, low.spread) == (0.0, 0.0)
    assert_allclose(high.background, 0.8 * high.eigenvalue)
