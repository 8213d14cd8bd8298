"""Populations and their batches: sums to the last digit, nested means with their covariances."""

import itertools
from fractions import Fraction

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate.matrices import populations
from tests.simulate.dense_matrices import rng
from tests.simulate.matrices.drawn import assert_mean, block_of

SIZES = (3, 7, 40)


def test_batch_sums_are_those_of_the_batches_sample_by_sample() -> None:
    population = rng(5).standard_normal((5, 2, 3))
    batches = populations.every_batch(5, 3)
    sums = populations.batch_sums(population, 3)
    assert_allclose(sums, population[batches].sum(axis=1), rtol=1e-14)


def test_sums_are_exact_and_short_integers_do_not_wrap_around() -> None:
    thirds = np.array([Fraction(k, 3) for k in (1, 1, 1, 7)])
    sums = populations.batch_sums(thirds, 3)

    assert sums.tolist() == [1, 3, 3, 3] and all(isinstance(s, Fraction) for s in sums)
    assert populations.batch_sums(np.array([2**62 - 1, -3, 1]), 2).tolist() == [2**62 - 4, 2**62, -2]
    for kind in (np.int8, np.uint8, np.int32):
        most = int(np.iinfo(kind).max)
        assert populations.batch_sums(np.full(3, most, dtype=kind), 3).tolist() == [3 * most]
    assert populations.batch_sums(np.array([True, True, False]), 2).tolist() == [2, 1, 1]


def test_matrices_are_symmetric_and_definite() -> None:
    symmetric = populations.symmetric_matrices(rng(5), 4000, 3)
    definite = populations.definite_matrices(rng(5), 50, 3, least=0.3)

    assert_array_equal(symmetric, symmetric.swapaxes(1, 2))
    assert_allclose(symmetric.var(axis=0), (1 + np.eye(3)) / 2, rtol=0.12)
    assert np.linalg.eigvalsh(definite).min() >= 0.3


def test_nested_means_have_the_covariance_of_shared_samples() -> None:
    """Cov(mean of n, mean of m > n) = 1/m in every element off the diagonal, twice that on it."""
    means = torch.cat([populations.nested_means(block_of(seed=s), 4, SIZES) for s in range(60)])

    assert means.shape == (960, 3, 4, 4) and torch.equal(means, means.mT)
    rows, columns = torch.triu_indices(4, 4, offset=1)
    for i, j in itertools.product(range(3), repeat=2):
        shared, product = 1 / max(SIZES[i], SIZES[j]), means[:, i] * means[:, j]
        assert_mean(product[:, rows, columns], shared)
        assert_mean(product.diagonal(dim1=1, dim2=2), 2 * shared)
