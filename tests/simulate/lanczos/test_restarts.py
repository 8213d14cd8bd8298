"""Extreme eigenvalues with few vectors at once: the statements are those of whole chains, whatever is dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import linalg

from simulate import _memory, eigenvalues
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator, chain as chains
from simulate.lanczos.chain import Chain, Found
from tests.simulate.dense_matrices import SPIKED, residuals, rng, rotated, wanted


@given(
    dim=st.integers(8, 30),
    largest=st.integers(0, 3),
    smallest=st.integers(0, 3),
    room=st.integers(4, 8),
    kind=st.sampled_from(["random", "integers", "few"]),
)
@settings(deadline=None, max_examples=12, derandomize=True)
def test_extremes_of_few_vectors_are_those_of_the_dense_matrix(
    dim: int, largest: int, smallest: int, room: int, kind: str
) -> None:
    spectra = {
        "random": rng(dim).standard_normal(dim),
        "integers": np.arange(dim) * 1.0,
        "few": rng(dim).integers(0, 5, dim) * 1.0,
    }
    largest = largest or int(smallest == 0)
    matrix = rotated(spectra[kind], dim)
    count = largest + smallest
    found = extremes(
        matrix,
        rng(dim),
        largest=largest,
        smallest=smallest,
        tolerance=1e-8,
        kept=count + room,
        steps=3000,
    )
    assert (np.abs(found.values - wanted(matrix, largest, smallest)) <= found.bounds).all()
    assert found.converged.all()
    assert_allclose(residuals(matrix, found), found.residuals, atol=1e-12 * (1 + np.abs(matrix).sum()))
    assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=1e-10)


def test_no_more_vectors_are_held_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[tuple[int, int]] = []
    grow = Chain.grow

    def watched(chain: Chain, product: object) -> None:
        grow(chain, product)  # pyright: ignore[reportArgumentType]
        held.append((len(chain.found.values), len(chain.rows)))

    monkeypatch.setattr(Chain, "grow", watched)
    extremes(SPIKED, rng(), largest=3, smallest=2, tolerance=1e-8, kept=10, steps=600)
    assert max(rows - found for found, rows in held) == 10
    assert {found for found, _ in held} == {0, 5}


@pytest.mark.parametrize("products", [5, 9, 30])
def test_a_ceiling_reaches_an_eigenvalue_that_the_start_holds_as_little_of_as_it_may(products: int) -> None:
    """The part of the start along the first eigenvector is that which is exceeded but for the doubt."""
    dim, doubt = 60, 1e-6
    values = np.r_[3.0, np.linspace(-1, 1, dim - 2), -3.0]
    least = doubt * math.sqrt(math.pi / (2 * dim))
    for seed in range(5):
        start = rng(seed).standard_normal(dim)
        start[[0, -1]] = 0
        start = torch.from_numpy(np.r_[least, (start / np.linalg.norm(start))[1:-1], -least])
        none, empty = np.zeros(0), start.new_empty(0, dim)
        chain = Chain(Found(empty, none, none, none, np.zeros((0, 0)), empty), start, 0.0, 0.0, 6)
        while len(chain.nodes) < 6 and products >= 6:
            chain.grow(lambda row: row * torch.from_numpy(values))
        for _ in range(products - len(chain.nodes)):
            if len(chain.nodes) == 6:
                chain.restart(2, 2)
            chain.grow(lambda row: row * torch.from_numpy(values))
        assert chain.ceiling(0, doubt) >= 3 - 1e-9 and chain.floor(0, doubt) <= -3 + 1e-9
        whole = 3 + 1e-2 if products == 30 else math.inf
        assert chain.ceiling(0, doubt) <= whole


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_chain_that_was_cut_knows_its_matrix(end: str) -> None:
    """Residuals by products, of combinations of what was found before and of what is left of the chain."""
    matrix = rotated([*np.linspace(-1, 1, 50), 3.0, 3.1])
    dense = torch.from_numpy(matrix)
    none, empty = np.zeros(0), dense[:0]
    start = torch.from_numpy(rng(1).standard_normal(52))
    first = Chain(Found(empty, none, none, none, np.zeros((0, 0)), empty), start, 0.0, 0.0)
    for _ in range(6):
        first.grow(lambda row: dense @ row)
    chain = Chain(first.locked(first.pairs(2, 1)), torch.from_numpy(rng(2).standard_normal(52)), 3.0, 0.0, 7)
    for _ in range(40):
        if len(chain.nodes) == 7:
            chain.restart(*((3, 1) if end == "top" else (1, 3)))
        chain.grow(lambda row: dense @ row)
    found = chain.locked(chain.pairs(4, 4))
    rows = found.rows.numpy()
    left = rows @ matrix - found.values[:, None] * rows
    assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-13)
    assert_allclose(found.shares @ found.tails.numpy(), left, atol=1e-13)
    assert_allclose(np.linalg.norm(left, axis=1), found.residuals, atol=1e-12)
    assert chain.noise < 1e-13
    assert_allclose(found.compact().shares @ found.compact().tails.numpy(), left, atol=1e-13)


@pytest.mark.parametrize("older", [False, True])
def test_vectors_of_a_long_chain_are_orthogonal_whatever_scipy_has(
    older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they lack restarts would add up, unseen by the bounds: before 1.16 scipy chooses what lacks 6e-14 here."""
    if older:
        monkeypatch.delattr(linalg.lapack, "dstevd", raising=False)
    diagonal, beside = rng(0).standard_normal(300), np.abs(rng(1).standard_normal(299))
    values, vectors = chains._eigen(list(diagonal), list(beside))
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert_allclose(vectors.T @ vectors, np.eye(300), atol=1e-14)
    assert_allclose(matrix @ vectors, vectors * values, atol=3e-14)


def test_residuals_in_single_precision_hold_after_many_restarts() -> None:
    single = SPIKED.astype(np.float32)
    exact = (single.astype(np.float64) + single.astype(np.float64).T) / 2
    for seed in range(3):
        found = extremes(single, rng(seed), largest=4, smallest=2, tolerance=1e-5, kept=9, steps=2000)
        assert found.products > 4 * 9  # many restarts of what is kept; how many, rounding decides
        assert (np.abs(found.values - wanted(exact, 4, 2)) <= found.bounds).all() and found.converged.all()
        assert (residuals(exact, found) <= found.residuals).all()


def test_where_memory_ends_inner_vectors_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.linspace(0, 1, 10**4, dtype=torch.float64)
    operator = Operator(product=lambda v: v * values, dim=10**4)
    monkeypatch.setattr(_memory, "available", lambda device: 0.0)
    found = extremes(operator, rng(), tolerance=1e-2, largest=1)
    assert found.converged.all() and found.products > 16
    assert found.values[0] <= 1 <= found.ceiling
    many = extremes(operator, rng(), tolerance=1e-2, largest=14)
    assert many.stopped == "no memory for more than 16 vectors at once" and many.products == 16
    vast = Operator(product=torch.clone, dim=10**7)
    with pytest.raises(
        ValueError,
        match=r"matrix must be small enough .* 24 vectors of 10000000 numbers, and the result, need",
    ):
        extremes(vast, rng())
    with pytest.raises(ValueError, match=r" 12 vectors of 10000000 numbers, and the result, need"):
        extremes(vast, rng(), kept=4)


def test_memory_for_a_product_is_left_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen vectors more, and eight for the product or, after the last, four for the result in double precision."""
    values = torch.linspace(0, 1, 10**4)
    operator = Operator(product=lambda v: v * values, dim=10**4, dtype=torch.float32)
    held: list[float] = []
    for free in (4e4 * (16 + 8), 4e4 * (16 + 8) - 1):
        monkeypatch.setattr(_memory, "available", lambda device, free=free: free)
        monkeypatch.setattr(eigenvalues.Chain, "restart", lambda chain, *ends: held.append(len(chain.nodes)))
        extremes(operator, rng(), tolerance=1e-6, steps=17)
    assert held == [16]


def test_how_many_are_kept_is_named_when_it_is_too_few() -> None:
    with pytest.raises(ValueError, match="kept must be at least 3 more than the 4 eigenvalues sought, got 6"):
        extremes(SPIKED, rng(), largest=3, smallest=1, kept=6)
    with pytest.raises(ValueError, match="kept must be a positive integer, got 0"):
        extremes(SPIKED, rng(), kept=0)
