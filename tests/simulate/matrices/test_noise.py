"""Noise of every kind: exact moments of its entries, blocks against single replicates, what is refused."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.matrices import noise
from tests.simulate.matrices.drawn import assert_mean, block_of


def entries_of(matrices: Tensor) -> Tensor:
    """One of each pair, the diagonal included, in units of 1/sqrt(dim)."""
    dim = matrices.shape[1]
    rows, columns = torch.triu_indices(dim, dim)
    return matrices[:, rows, columns] * math.sqrt(dim)


DIM = 40
KINDS = {
    "student": lambda b: noise.student(b, DIM, degrees=12),
    "sparse": lambda b: noise.sparse(b, DIM, per_row=10),
    "even": lambda b: noise.profiled(b, torch.ones(DIM, DIM, dtype=torch.float64)),
}
KURTOSIS = {"student": 3 + 6 / 8, "sparse": DIM / 10, "even": 3.0}


@pytest.mark.parametrize("kind", KINDS)
def test_entries_are_independent_with_the_variance_and_kurtosis_of_their_law(kind: str) -> None:
    matrices = torch.cat([KINDS[kind](block_of(seed=s)) for s in range(4)])

    assert matrices.shape == (64, DIM, DIM) and matrices.dtype == torch.float64
    assert torch.equal(matrices, matrices.mT)
    entries = entries_of(matrices)
    assert_mean(entries, 0.0)
    assert_mean(entries**2, 1.0)
    assert_mean(entries**4, KURTOSIS[kind])
    assert_mean(entries[:, 1:] * entries[:, :-1], 0.0)
    assert_mean(DIM * matrices.diagonal(dim1=1, dim2=2) ** 2, 1.0)


def test_sparse_rows_have_as_many_entries_as_said() -> None:
    matrices = noise.sparse(block_of(), 60, per_row=7)

    assert_mean((matrices != 0).sum(dim=2).double().mean(dim=1), 7.0)
    assert_allclose(matrices[matrices != 0].abs(), 1 / math.sqrt(7), rtol=1e-15)
    assert_mean(matrices[matrices != 0].sign(), 0.0)
    full = noise.sparse(block_of(2), 5, per_row=5)
    assert_allclose(full.abs(), 1 / math.sqrt(5), rtol=1e-15)


@pytest.mark.parametrize("dim", [12, 13, 14, 15])
def test_profiles_have_mean_one_and_the_row_sums_they_promise(dim: int) -> None:
    banded, blocked = (f(dim, contrast=0.9) for f in (noise.banded_profile, noise.blocked_profile))

    for profile in (banded, blocked):
        assert torch.equal(profile, profile.mT)
        assert_allclose(profile.mean(), 1.0, rtol=1e-14)
        assert_allclose(noise.banded_profile(dim, contrast=0.0), torch.ones(dim, dim))
    assert_allclose(banded.sum(dim=1), dim, rtol=1e-14)
    assert_allclose(banded.max() / banded.min(), 19, rtol=1e-12)
    rows = blocked.mean(dim=1)
    assert_allclose(blocked, rows[:, None] * rows, rtol=1e-13)
    assert_allclose(rows[: dim // 2] / rows[-1], 19, rtol=1e-12)


def test_profiled_noise_has_the_variances_of_its_profile() -> None:
    profile = noise.blocked_profile(20, contrast=0.5)
    matrices = torch.cat([noise.profiled(block_of(seed=s), profile) for s in range(4)])

    assert_mean(20 * matrices[:, :10, :10].square().mean(dim=(1, 2)), 2.25)
    assert_mean(20 * matrices[:, :10, 10:].square().mean(dim=(1, 2)), 0.75)
    assert_mean(20 * matrices[:, 10:, 10:].square().mean(dim=(1, 2)), 0.25)


def test_signed_projections_are_sums_of_unit_projections_of_both_signs() -> None:
    matrices = torch.cat(
        [noise.signed_projections(block_of(seed=s), 9, samples=5, rank=3) for s in range(20)]
    )

    # the trace of a projection is 1: a random walk of 15 steps of 1/5
    assert_mean(matrices.diagonal(dim1=1, dim2=2).sum(dim=1), 0.0)
    assert_mean(matrices.diagonal(dim1=1, dim2=2).sum(dim=1) ** 2, 15 / 25)
    assert_mean(matrices.square().sum(dim=(1, 2)), 15 / 25)
    few = torch.linalg.eigvalsh(noise.signed_projections(block_of(4), 9, samples=2, rank=2))
    assert ((few.abs() > 1e-12).sum(dim=1) == 4).all()
    one = torch.linalg.eigvalsh(noise.signed_projections(block_of(), 9, samples=1, rank=1))
    assert_allclose(one.abs().amax(dim=1), 1.0, rtol=1e-13)


def test_noise_out_of_domain_is_refused() -> None:
    block = block_of(1)
    for degrees in (2, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"degrees must be finite and more than 2, got {degrees}"):
            noise.student(block, 3, degrees=degrees)
    for per_row in (0, 4, math.nan):
        with pytest.raises(ValueError, match=f"per_row must be positive and at most dim, got {per_row} of 3"):
            noise.sparse(block, 3, per_row=per_row)
    with pytest.raises(ValueError, match="dim must be a positive integer, got 0"):
        noise.student(block, 0, degrees=5)
    with pytest.raises(ValueError, match="must be small enough for memory"):
        noise.student(block, 10**12, degrees=5)
