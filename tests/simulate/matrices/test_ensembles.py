"""Random matrices: exact moments of each law, eigenpairs against the dense solver, blocks against loops."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats
from torch import Tensor

from simulate.matrices import ensembles, noise
from simulate.monte_carlo import Block, Point, stream
from tests.simulate.matrices.drawn import MODEL, assert_mean, block_of


def off_diagonal(matrices: Tensor) -> Tensor:
    rows, columns = torch.triu_indices(matrices.shape[1], matrices.shape[1], offset=1)
    return matrices[:, rows, columns]


# --- noise


@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
def test_wigner_is_symmetric_and_centred_with_variance_one_over_dim(law: str) -> None:
    matrices = ensembles.wigner(block_of(), 60, law=law)

    assert matrices.shape == (16, 60, 60) and matrices.dtype == torch.float64
    assert torch.equal(matrices, matrices.mT)
    entries = off_diagonal(matrices) * math.sqrt(60)
    assert_mean(entries, 0.0)
    assert_mean(entries**2, 1.0)
    assert_mean(matrices.diagonal(dim1=1, dim2=2), 0.0)
    # neighbours in the stream are independent
    assert_mean(entries[:, 1:] * entries[:, :-1], 0.0)


@pytest.mark.parametrize(("law", "diagonal", "kurtosis"), [("gaussian", 2.0, 3.0), ("rademacher", 1.0, 1.0)])
def test_wigner_law_has_its_diagonal_variance_and_kurtosis(
    law: str, diagonal: float, kurtosis: float
) -> None:
    matrices = torch.cat([ensembles.wigner(block_of(seed=s), 60, law=law) for s in range(4)])

    assert_mean(60 * matrices.diagonal(dim1=1, dim2=2) ** 2, diagonal)
    assert_mean(60**2 * off_diagonal(matrices) ** 4, kurtosis)


def test_the_diagonal_of_the_gaussian_law_has_twice_the_variance_of_any_other_entry() -> None:
    plain = ensembles.symmetric(block_of(), 9, lambda rng, size: rng.standard_normal(size))
    assert_allclose(
        ensembles.wigner(block_of(), 9), plain * (1 + (math.sqrt(2) - 1) * torch.eye(9)), rtol=1e-7
    )


def test_rademacher_entries_are_signs_on_the_diagonal_too() -> None:
    assert_allclose(ensembles.wigner(block_of(3), 9, law="rademacher").abs(), 1 / 3, rtol=1e-15)


@pytest.mark.parametrize("dim", [1, 2, 7, 40])
def test_goe_top_eigenvalue_has_the_law_of_the_dense_one(dim: int) -> None:
    """Two independent samples of 1600, by their Kolmogorov-Smirnov distance."""
    blocks = [block_of(100, seed=s) for s in range(16)]
    tops = torch.cat([ensembles.goe_top_eigenvalue(b, dim) for b in blocks])
    dense = torch.cat([torch.linalg.eigvalsh(ensembles.wigner(b, dim))[:, -1] for b in blocks])

    assert stats.ks_2samp(tops.numpy(), dense.numpy()).pvalue > 1e-3
    assert stats.ks_2samp(1.3 * tops.numpy(), dense.numpy()).pvalue < 1e-2  # another scale is seen


@pytest.mark.parametrize("dim", [300, 5000])
def test_goe_top_eigenvalue_needs_only_the_first_rows(dim: int) -> None:
    """Each draw is the top eigenvalue of the whole tridiagonal matrix, whose other rows change nothing."""
    found = ensembles.goe_top_eigenvalue(block_of(8), dim)
    fewer = [_first_rows(rng, dim, 12.0, 9.0) for rng in block_of(8).streams]

    assert_allclose(fewer, found, rtol=1e-11)  # what bisection is good for


def _first_rows(rng: np.random.Generator, dim: int, drawn: float, kept: float) -> float:
    rows, few = (min(dim, 16 + math.ceil(c * dim ** (1 / 3))) for c in (drawn, kept))
    diagonal = rng.standard_normal(rows) * math.sqrt(2 / dim)
    beside = np.sqrt(rng.chisquare(dim - np.arange(1.0, rows)) / dim)
    matrix = np.diag(diagonal[:few]) + np.diag(beside[: few - 1], 1) + np.diag(beside[: few - 1], -1)
    return float(np.linalg.eigvalsh(matrix)[-1])


@pytest.mark.parametrize(("dim", "rank"), [(1, 1), (9, 0), (9, 4)])
def test_goe_moments_have_the_law_of_the_dense_ones(dim: int, rank: int) -> None:
    """Means, and two independent samples of 1600 by their Kolmogorov-Smirnov distance."""
    blocks, spike = [block_of(100, seed=s) for s in range(16)], 1.4
    both = [ensembles.goe_moments(b, dim, spike=spike, rank=rank) for b in blocks]
    trace, square = (torch.cat(part) for part in zip(*both, strict=True))
    low = torch.diag((torch.arange(dim) < rank).double() * spike)
    dense = torch.cat([ensembles.wigner(b, dim) + low for b in blocks])

    assert_mean(trace, rank * spike)
    assert_mean(square, rank * spike**2 + dim + 1)
    for found, whole in (
        (trace, dense.diagonal(dim1=1, dim2=2).sum(1)),
        (square, dense.square().sum((1, 2))),
    ):
        assert stats.ks_2samp(found.numpy(), whole.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("dim", [1, 5, 60])
def test_goe_norms_have_the_law_of_the_dense_ones(dim: int) -> None:
    """Of 60 rows some are drawn, and of the others only what they add to the Frobenius norm."""
    blocks = [block_of(100, seed=s) for s in range(6)]
    drawn = zip(*(ensembles.goe_norms(b, dim) for b in blocks), strict=True)
    dense = torch.cat([ensembles.wigner(b, dim) for b in blocks])
    norms = dense.square().sum((1, 2)), torch.linalg.matrix_norm(dense, 2).square()
    for found, whole in zip(map(torch.cat, drawn), norms, strict=True):
        assert stats.ks_2samp(found.numpy(), whole.numpy()).pvalue > 1e-3


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (9, 2), (4, 1)])
def test_haar_frames_are_orthonormal_and_uniform(rows: int, columns: int) -> None:
    """E F_ia^2 = 1/P, E F_ia^4 = 3/(P (P + 2)), E F_ia^2 F_ib^2 = 1/(P (P + 2))."""
    frames = ensembles.haar_frames(block_of(), rows, columns, count=60)

    assert frames.shape == (16, 60, rows, columns)
    assert_allclose(frames.mT @ frames, torch.eye(columns).expand(16, 60, -1, -1), atol=1e-13)
    for entries in (frames[..., 0, 0], frames[..., -1, -1]):
        assert_mean(entries, 0.0)
        assert_mean(entries**2, 1 / rows)
        assert_mean(entries**4, 3 / (rows * (rows + 2)))
    if rows > 4:
        assert_mean(frames[..., 0, 0] * frames[..., 1, 1], 0.0)
        assert_mean((frames[..., 0, 0] * frames[..., 1, 0]) ** 2, 1 / (rows * (rows + 2)))


@pytest.mark.parametrize(("dim", "samples"), [(4, 9), (9, 4), (6, 6)])
def test_wishart_has_the_third_moment_of_its_samples(dim: int, samples: int) -> None:
    matrices = torch.cat([ensembles.wishart(block_of(seed=s), dim, samples) for s in range(100)])
    cubes = (matrices @ matrices * matrices).sum((1, 2))

    exact = samples**2 + dim**2 + 3 * samples * dim + 3 * samples + 3 * dim + 4
    assert_mean(cubes, dim * exact / samples**2)


def test_unit_vectors_have_the_moments_of_the_sphere() -> None:
    """E v_i^2 = 1/d, E v_i^4 = 3/(d (d + 2))."""
    vectors = torch.cat([ensembles.unit_vectors(block_of(seed=s), 5) for s in range(60)])

    assert_allclose(vectors.norm(dim=1), 1.0, rtol=1e-14)
    assert_mean(vectors, 0.0)
    assert_mean(vectors[:, 0] ** 2, 1 / 5)
    assert_mean(vectors[:, 1] ** 4, 3 / 35)


def test_spike_adds_one_rank_with_its_eigenvalue() -> None:
    block = block_of(3)
    noise, directions = ensembles.wigner(block, 8), ensembles.unit_vectors(block, 8)
    strengths = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    for spike in (1.5, strengths):
        added = ensembles.spiked(noise, directions, spike) - noise
        expected = torch.as_tensor(spike, dtype=torch.float64).expand(3)
        assert_allclose(torch.einsum("ni,nij,nj->n", directions, added, directions), expected, rtol=1e-13)
        assert_allclose(added.square().sum((1, 2)), expected**2, rtol=1e-13)


# --- the top eigenpair


def hard_matrices(dim: int) -> dict[str, Tensor]:
    goe = ensembles.wigner(block_of(2), dim)
    ones = torch.ones(dim, 1, dtype=torch.float64)
    centring = torch.eye(dim, dtype=torch.float64) - ones @ ones.T / dim
    localised = torch.zeros(2, dim, dim, dtype=torch.float64)
    localised[:, dim // 2, dim // 2] = 3.0
    return {
        "goe": goe,
        "spiked": ensembles.spiked(goe, ensembles.unit_vectors(block_of(2, seed=5), dim), 2.5),
        "identity": torch.eye(dim, dtype=torch.float64).expand(2, dim, dim),
        "zero": torch.zeros(2, dim, dim, dtype=torch.float64),
        "negative": goe - 10 * torch.eye(dim, dtype=torch.float64),
        "orthogonal to ones": 50 * centring @ goe @ centring,
        "localised": localised + 1e-3 * goe,
        "low rank": 1e6 * ensembles.wishart(block_of(2), dim, 3),
        "twins": torch.diag_embed(
            torch.linspace(-1, 1, dim, dtype=torch.float64).clamp(max=0.9).expand(2, -1)
        ),
    }


@pytest.mark.parametrize("dim", [2, 37, 299, 300, 320])
def test_top_pair_is_that_of_the_dense_solver(dim: int) -> None:
    """Below and above the border between LAPACK and Lanczos, with what is hard for Lanczos."""
    for name, matrices in hard_matrices(dim).items():
        norm = torch.linalg.matrix_norm(matrices, 2)
        dense = torch.linalg.eigvalsh(matrices)[:, -1]

        values, vectors = ensembles.top_eigenpair(matrices)

        scale = norm.max().item() + 1e-300
        assert_allclose(values, dense, rtol=0, atol=1e-12 * scale, err_msg=name)
        assert_allclose(ensembles.top_eigenvalue(matrices), dense, rtol=0, atol=1e-12 * scale, err_msg=name)
        assert_allclose(vectors.norm(dim=1), 1.0, rtol=1e-12, err_msg=name)
        residual = (torch.einsum("nij,nj->ni", matrices, vectors) - values[:, None] * vectors).norm(dim=1)
        assert (residual <= 1e-10 * norm).all(), name


@pytest.mark.parametrize("setting", ["_LANCZOS_RESTARTS", "_RESIDUAL"])
def test_unconverged_lanczos_gives_way_to_the_dense_solver(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrices = ensembles.wigner(block_of(1), 300)
    monkeypatch.setattr(ensembles, setting, {"_LANCZOS_RESTARTS": 1, "_RESIDUAL": 1e-17}[setting])

    assert ensembles._lanczos(matrices[0].numpy()) is None
    values = ensembles.top_eigenpair(matrices)[0]
    assert_allclose(values, torch.linalg.eigvalsh(matrices)[:, -1], rtol=1e-13)


def test_single_precision_takes_the_dense_route() -> None:
    matrices = ensembles.wigner(block_of(2), 20)
    values, vectors = ensembles.top_eigenpair(matrices.float())

    assert values.dtype == vectors.dtype == torch.float32
    assert_allclose(values, ensembles.top_eigenvalue(matrices), rtol=1e-5)
    assert_allclose(ensembles.top_eigenvalue(matrices.float()), values, rtol=1e-5)


# --- blocks


DRAWS = {
    "wigner": lambda b: ensembles.wigner(b, 6),
    "rademacher": lambda b: ensembles.wigner(b, 6, law="rademacher"),
    "wishart": lambda b: ensembles.wishart(b, 4, 7),
    "unit_vectors": lambda b: ensembles.unit_vectors(b, 5),
    "means": lambda b: ensembles.logit_gradients(b, **MODEL, orthogonal=True)[0],
    "deviations": lambda b: ensembles.logit_gradients(b, **MODEL, orthogonal=False)[1],
    "top": lambda b: ensembles.goe_top_eigenvalue(b, 50, spike=1.3),
    "moments": lambda b: torch.stack(ensembles.goe_moments(b, 5, spike=1.3, rank=2), dim=1),
    "haar_frames": lambda b: ensembles.haar_frames(b, 7, 3, count=2),
    "value": lambda b: ensembles.top_eigenvalue(ensembles.wigner(b, 30)),
    "vector": lambda b: ensembles.top_eigenpair(ensembles.wigner(b, 310))[1],
}


NOISE = {
    "student": lambda b: noise.student(b, 9, degrees=12),
    "sparse": lambda b: noise.sparse(b, 9, per_row=3),
    "profiled": lambda b: noise.profiled(b, torch.ones(9, 9, dtype=torch.float64)),
    "projections": lambda b: noise.signed_projections(b, 7, samples=4, rank=2),
}


@pytest.mark.parametrize("draw", [*DRAWS.values(), *NOISE.values()], ids=[*DRAWS, *NOISE])
def test_a_replicate_is_the_same_alone_and_in_a_block(draw) -> None:
    together = draw(block_of(3))
    alone = torch.cat([draw(Block((stream(0, "test", Point(), i),))) for i in range(3)])

    assert together.shape == alone.shape
    assert_allclose(together, alone, rtol=1e-12, atol=1e-14)


@pytest.mark.cuda
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_replicate_is_the_same_on_cuda(draw) -> None:
    here, there = draw(block_of(2)), draw(block_of(2, device="cuda"))

    assert there.device.type == "cuda"
    assert_allclose(there.cpu().abs(), here.abs(), rtol=1e-9, atol=1e-10)


def test_laws_that_are_not_known_are_refused() -> None:
    with pytest.raises(ValueError, match=r"law must be one of gaussian, rademacher, got 'cauchy'"):
        ensembles.wigner(block_of(1), 3, law="cauchy")


@pytest.mark.parametrize("p", [(0.5, 0.5, 0.1), (1.5, -0.5, 0.0), (math.nan, 0.5, 0.5)])
def test_probabilities_are_checked(p: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="p must be probabilities that sum to 1"):
        ensembles.gauss_newton_of_logits(torch.zeros(2, 4, 3, 5), torch.tensor(p))
