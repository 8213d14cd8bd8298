"""Populations and their batches: every batch once, sums to the last digit, nested means with their covariances."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate.matrices import populations
from simulate.monte_carlo import Block, Point, stream

BLOCK = Block(tuple(stream(3, "test", Point(), i) for i in range(4)))


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize(("total", "size"), [(1, 1), (5, 1), (5, 2), (5, 5), (8, 3)])
def test_every_batch_without_replacement_is_there_once(total: int, size: int) -> None:
    found = populations.every_batch(total, size)

    assert found.shape == (math.comb(total, size), size)
    assert {frozenset(row) for row in found.tolist()} == {
        frozenset(c) for c in combinations(range(total), size)
    }


@pytest.mark.parametrize("replace", [False, True])
def test_batch_sums_are_those_of_the_batches_sample_by_sample(replace: bool) -> None:
    population = rng().standard_normal((5, 2, 3))
    one_by_one = [
        population[list(rows)].sum(axis=0) for rows in populations.every_batch(5, 3, replace=replace)
    ]

    assert_allclose(populations.batch_sums(population, 3, replace=replace), one_by_one, rtol=1e-14)


def test_sums_of_rationals_are_exact() -> None:
    thirds = np.array([Fraction(k, 3) for k in (1, 1, 1, 7)])
    sums = populations.batch_sums(thirds, 3)

    assert sums.tolist() == [1, 3, 3, 3] and all(isinstance(s, Fraction) for s in sums)
    assert populations.batch_sums(np.array([2**62 - 1, -3, 1]), 2).tolist() == [2**62 - 4, 2**62, -2]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32])
def test_sums_of_short_integers_do_not_wrap_around(kind: type) -> None:
    most = int(np.iinfo(kind).max)
    assert populations.batch_sums(np.full(3, most, dtype=kind), 3).tolist() == [3 * most]
    assert populations.batch_sums(np.array([True, True, False]), 2).tolist() == [2, 1, 1]


def test_redrawn_populations_are_equally_many_of_each() -> None:
    found = populations.redrawn(np.array([-2, 1, 5]), 3)

    assert found.shape == (27, 3) and len(np.unique(found, axis=0)) == 27
    assert_array_equal(np.sort(found, axis=None), np.repeat([-2, 1, 5], 27))


def test_matrices_are_symmetric_and_definite() -> None:
    symmetric = populations.symmetric_matrices(rng(), 4000, 3)
    definite = populations.definite_matrices(rng(), 50, 3, least=0.3)

    assert_array_equal(symmetric, symmetric.swapaxes(1, 2))
    assert_allclose(symmetric.var(axis=0), (1 + np.eye(3)) / 2, rtol=0.12)
    assert np.linalg.eigvalsh(definite).min() >= 0.3


def test_nested_means_have_the_covariance_of_shared_samples() -> None:
    """Cov(mean of n, mean of m > n) = 1/m in every element off the diagonal, twice that on it."""
    blocks = [Block(tuple(stream(s, "test", Point(), i) for i in range(16))) for s in range(60)]
    means = torch.cat([populations.nested_means(b, 4, (3, 7, 40)) for b in blocks])

    assert means.shape == (960, 3, 4, 4) and torch.equal(means, means.mT)
    rows, columns = torch.triu_indices(4, 4, offset=1)
    beside = means[:, :, rows, columns].movedim(1, 0).flatten(1)
    on = means.diagonal(dim1=2, dim2=3).movedim(1, 0).flatten(1)
    shared = torch.tensor([[1 / max(a, b) for b in (3, 7, 40)] for a in (3, 7, 40)])
    for found, exact in ((beside, shared), (on, 2 * shared)):
        count = found.shape[1]
        variances = exact.diagonal()
        error = ((variances[:, None] * variances + exact**2) / count).sqrt()
        assert ((found @ found.T / count - exact).abs() <= 4 * error).all()
        assert ((found @ found.T / count - exact.flip(0)).abs() > 8 * error).any()


def test_a_smaller_mean_does_not_depend_on_what_follows() -> None:
    """A replicate is the same alone and in any block."""
    alone = Block((stream(3, "test", Point(), 2),))
    apart = populations.nested_means(BLOCK, 5, (2, 9))
    assert_allclose(
        populations.nested_means(Block(tuple(stream(3, "test", Point(), i) for i in (0, 2))), 5, (2, 9))[1],
        apart[2],
    )
    assert_allclose(populations.nested_means(alone, 5, (2, 9))[0], apart[2])


@pytest.mark.parametrize("sizes", [(0,), (3, 3), (4, 2)])
def test_sizes_that_do_not_grow_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sizes must be growing positive integers, got"):
        populations.nested_means(BLOCK, 2, sizes)
