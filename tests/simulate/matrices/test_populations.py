"""Populations and their batches: every batch once, sums to the last digit, nested means with their covariances."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate.matrices import populations
from simulate.monte_carlo import Block, Point, stream

BLOCK = Block(tuple(stream(3, "test", Point(), i) for i in range(4)))
ABSURD = (10**6, 10**12, 10**400, np.int64(2**62))
NO_SIZE = (0, -2, 2.0, True, "3", None)


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


@pytest.mark.parametrize("size", NO_SIZE)
def test_sizes_that_are_none_are_refused_by_name(size: Any) -> None:
    with pytest.raises(ValueError, match=r"dataset_size must be a positive integer"):
        populations.every_batch(size, 1)
    with pytest.raises(ValueError, match=r"batch_size must be a positive integer"):
        populations.every_batch(5, size)
    with pytest.raises(ValueError, match=r"dim must be a positive integer"):
        populations.symmetric_matrices(rng(), 3, size)
    with pytest.raises(ValueError, match=r"sizes must be a positive integer"):
        populations.nested_means(BLOCK, 3, (size,))


@pytest.mark.parametrize("size", ABSURD)
def test_sizes_that_no_memory_holds_are_refused_before_they_are_counted(size: Any) -> None:
    rule = r"must be (small enough for memory|less than 2\*\*63)"
    with pytest.raises(ValueError, match=f"(dataset|batch)_size {rule}"):
        populations.every_batch(size, 500_000)
    with pytest.raises(ValueError, match=f"batch_size {rule}"):
        populations.every_batch(2, size, replace=True)
    with pytest.raises(ValueError, match=rf"dim( and dataset_size)? {rule}"):
        populations.definite_matrices(rng(), 10**4, size, least=0.1)
    with pytest.raises(ValueError, match=rf"dim( and sizes)? {rule}"):
        populations.nested_means(BLOCK, size, (1,))


def test_bad_batches_populations_and_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size must be at most dataset_size = 3, got 4"):
        populations.every_batch(3, 4)
    assert len(populations.every_batch(3, 4, replace=True)) == 81
    with pytest.raises(ValueError, match=r"population must be small enough for memory"):
        populations.batch_sums(np.broadcast_to(0.0, (30, 10**9)), 3)
    for population in (np.array(1.0), np.zeros((0, 2))):
        with pytest.raises(ValueError, match=r"population must have samples along its first axis"):
            populations.batch_sums(population, 1)
    with pytest.raises(ValueError, match=r"population must hold numbers, got <U1"):
        populations.batch_sums(np.array(["a", "b"]), 2)
    for values in (np.zeros(0), np.zeros((2, 2))):
        with pytest.raises(ValueError, match=r"values must be a list of at least one number"):
            populations.redrawn(values, 2)
    for sizes in ((), (3, 3), (4, 2)):
        with pytest.raises(ValueError, match=r"sizes must be growing positive integers"):
            populations.nested_means(BLOCK, 2, sizes)
    two: Any = [0.1, 0.2]
    with pytest.raises(ValueError, match="least must be one number"):
        populations.definite_matrices(rng(), 2, 2, least=two)
    with pytest.raises(ValueError, match=r"least must be finite and positive, got 0"):
        populations.definite_matrices(rng(), 2, 2, least=0.0)
