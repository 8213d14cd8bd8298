"""One chain and what restarts leave of it: its ceiling, its matrix, and vectors that stay orthogonal."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import linalg

from simulate.eigenvalues import extremes
from simulate.lanczos import chain as chains
from simulate.lanczos.chain import Chain, Found
from tests.simulate.dense_matrices import SPIKED, rng, rotated


def begun(start: torch.Tensor, most: int = 60) -> Chain:
    return Chain(Found.nothing(start), start, 0.0, 0.0, most)


def grown(chain: Chain, matrix: torch.Tensor, products: int, room: float = math.inf, ends=(2, 2)) -> Chain:
    for _ in range(products):
        if len(chain.nodes) == room:
            chain.restart(*ends)
        chain.grow(lambda row: matrix @ row)
    return chain


def test_no_more_vectors_are_held_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    grow = Chain.grow

    def watched(chain: Chain, product: object) -> None:
        grow(chain, product)  # pyright: ignore[reportArgumentType]
        held.append((len(chain.found.values), len(chain.rows)))

    monkeypatch.setattr(Chain, "grow", watched)
    extremes(SPIKED, rng(), largest=3, smallest=2, tolerance=1e-8, certified=True, kept=10, steps=600)
    assert max(rows - found for found, rows in held) == 10
    assert {found for found, _ in held} == {0, 5}


@pytest.mark.parametrize("products", [5, 9, 30])
def test_a_ceiling_reaches_an_eigenvalue_that_the_start_holds_as_little_of_as_it_may(products: int) -> None:
    """The part of the start along the first eigenvector is that which is exceeded but for the doubt."""
    dim, doubt = 60, 1e-6
    matrix = torch.from_numpy(np.diag(np.r_[3.0, np.linspace(-1, 1, dim - 2), -3.0]))
    least = doubt * math.sqrt(math.pi / (2 * dim))
    for seed in range(5):
        start = rng(seed).standard_normal(dim)
        start[[0, -1]] = 0
        start /= np.linalg.norm(start)
        start[[0, -1]] = least, -least
        chain = grown(
            Chain(Found.nothing(torch.from_numpy(start)), torch.from_numpy(start), 0.0, 0.0, 6),
            matrix,
            products,
            6,
        )
        assert chain.ceiling(0, doubt) >= 3 - 1e-9 and chain.floor(0, doubt) <= -3 + 1e-9
        assert chain.ceiling(0, doubt) <= (3 + 1e-2 if products == 30 else math.inf)


@pytest.mark.parametrize("ends", [(3, 1), (1, 3)])
def test_a_chain_that_was_cut_knows_its_matrix(ends: tuple[int, int]) -> None:
    """Residuals by products, of combinations of what was found before and of what is left of the chain."""
    matrix = rotated([*np.linspace(-1, 1, 50), 3.0, 3.1])
    dense, (one, two) = torch.from_numpy(matrix), torch.from_numpy(rng(1).standard_normal((2, 52)))
    first = grown(begun(one), dense, 6)
    chain = grown(Chain(first.locked(first.pairs(2, 1)), two, 3.0, 0.0, 7), dense, 40, 7, ends)
    found = chain.locked(chain.pairs(4, 4))
    rows = found.rows.numpy()
    left = rows @ matrix - found.values[:, None] * rows
    assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-13)
    for each in (found, found.compact()):
        assert_allclose(each.shares @ each.tails.numpy(), left, atol=1e-13)
    assert_allclose(np.linalg.norm(left, axis=1), found.residuals, atol=1e-12)
    assert chain.noise < 1e-13


@pytest.mark.parametrize("older", [False, True])
def test_vectors_of_a_long_chain_are_orthogonal_whatever_scipy_has(
    older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restarts would add up a lack of orthogonality, unseen by the bounds: scipy's default before 1.16 lacks 6e-14."""
    if older:
        monkeypatch.delattr(linalg.lapack, "dstevd", raising=False)
    diagonal, beside = rng(0).standard_normal(300), np.abs(rng(1).standard_normal(299))
    values, vectors = chains._eigen(list(diagonal), list(beside))
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert_allclose(vectors.T @ vectors, np.eye(300), atol=1e-14)
    assert_allclose(matrix @ vectors, vectors * values, atol=3e-14)
