"""Random matrices: exact moments of each law, eigenpairs against the dense solver, blocks against loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats
from torch import Tensor

from simulate.matrices import ensembles, noise, populations
from simulate.monte_carlo import Block, Point, stream
from tests.simulate.matrices.drawn import MODEL, assert_mean, block_of

# --- laws of entries


def even(dim: int) -> Tensor:
    return torch.ones(dim, dim, dtype=torch.float64)


ENTRIES = {
    "gaussian": (lambda b, dim: ensembles.wigner(b, dim), 3, 2),
    "rademacher": (lambda b, dim: ensembles.wigner(b, dim, law="rademacher"), 1, 1),
    "student": (lambda b, dim: noise.student(b, dim, degrees=12), 3 + 6 / 8, 1),
    "sparse": (lambda b, dim: noise.sparse(b, dim, per_row=dim / 4), 4, 1),
    "even": (lambda b, dim: noise.profiled(b, even(dim)), 3, 1),
}
"""Noise: its draw, the kurtosis off the diagonal, and the variance on the diagonal times the rows."""


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_independent_with_the_variance_and_kurtosis_of_their_law(name: str) -> None:
    draw, kurtosis, diagonal = ENTRIES[name]
    matrices = torch.cat([draw(block_of(seed=s), 40) for s in range(4)])

    assert matrices.shape == (64, 40, 40) and matrices.dtype == torch.float64
    assert torch.equal(matrices, matrices.mT)
    rows, columns = torch.triu_indices(40, 40, offset=1)
    entries = matrices[:, rows, columns] * math.sqrt(40)
    for drawn, exact in (
        (entries, 0.0),
        (entries**2, 1.0),
        (entries**4, kurtosis),
        (entries[:, 1:] * entries[:, :-1], 0.0),  # neighbours in the stream
        (matrices.diagonal(dim1=1, dim2=2), 0.0),
        (40 * matrices.diagonal(dim1=1, dim2=2) ** 2, diagonal),
    ):
        assert_mean(drawn, exact)


SCALES = {
    **{name: (draw, 0, lambda dim, d=d: 1 + (d - 1) / dim) for name, (draw, _, d) in ENTRIES.items()},
    "uneven": (lambda b, dim: noise.profiled(b, noise.blocked_profile(dim, contrast=0.6)), 0, lambda _: 1),
    **{
        f"mean of {size}": (
            lambda b, dim, i=i, size=size: (size / dim) ** 0.5 * populations.nested_means(b, dim, (9, 18))[:, i],
            0,
            lambda dim: 1 + 1 / dim,
        )
        for i, size in enumerate((9, 18))
    },
    "projections": (
        lambda b, dim: noise.signed_projections(b, dim, samples=50, rank=4), 0, lambda dim: 4 / 50 / dim
    ),
    "wishart": (lambda b, dim: ensembles.wishart(b, dim, 90), 1, lambda dim: 1 + (dim + 1) / 90),
}  # fmt: skip
"""Noise: its draw, its mean along a direction, and its mean squared eigenvalue, which scores assume."""


@pytest.mark.parametrize("name", SCALES)
def test_noise_has_its_mean_along_a_direction_and_its_scale_to_a_percent(name: str) -> None:
    (draw, mean, of_dim), dim = SCALES[name], 60
    blocks, second = [block_of(seed=seed) for seed in range(40)], of_dim(dim)
    matrices = torch.cat([draw(block, dim) for block in blocks])
    v = torch.cat([ensembles.unit_vectors(block, dim) for block in blocks])
    assert_mean(torch.einsum("ni,nij,nj->n", v, matrices, v), mean)
    squares = matrices.square().sum((1, 2)) / dim
    assert_mean(squares, second)
    assert float(squares.std() / np.sqrt(len(squares))) < 0.003 * second  # one percent in scale is two here


@pytest.mark.parametrize("dim", [12, 13, 14, 15])
def test_profiles_have_mean_one_and_the_row_sums_they_promise(dim: int) -> None:
    banded, blocked = (f(dim, contrast=0.9) for f in (noise.banded_profile, noise.blocked_profile))

    for profile in (banded, blocked):
        assert torch.equal(profile, profile.mT)
        assert_allclose(profile.mean(), 1.0, rtol=1e-14)
    assert_allclose(banded.sum(dim=1), dim, rtol=1e-14)
    assert_allclose(banded.max() / banded.min(), 19, rtol=1e-12)
    rows = blocked.mean(dim=1)
    assert_allclose(blocked, rows[:, None] * rows, rtol=1e-13)
    assert_allclose(rows[: dim // 2] / rows[-1], 19, rtol=1e-12)


# --- directions, samples, spikes


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (9, 2), (4, 1)])
def test_haar_frames_are_orthonormal_and_uniform(rows: int, columns: int) -> None:
    """E F_ia^2 = 1/P, E F_ia^4 = 3/(P (P + 2)), E F_ia^2 F_ib^2 = 1/(P (P + 2)); unit vectors the same."""
    frames = ensembles.haar_frames(block_of(), rows, columns, count=60)
    unit = torch.cat([ensembles.unit_vectors(block_of(seed=s), rows) for s in range(60)])

    assert frames.shape == (16, 60, rows, columns)
    assert_allclose(frames.mT @ frames, torch.eye(columns).expand(16, 60, -1, -1), atol=1e-13)
    assert_allclose(unit.norm(dim=1), 1.0, rtol=1e-14)
    for entries in (frames[..., 0, 0], frames[..., -1, -1], unit[:, -1]):
        assert_mean(entries, 0.0)
        assert_mean(entries**2, 1 / rows)
        assert_mean(entries**4, 3 / (rows * (rows + 2)))
    if rows > 4:
        assert_mean(frames[..., 0, 0] * frames[..., 1, 1], 0.0)
        assert_mean((frames[..., 0, 0] * frames[..., 1, 0]) ** 2, 1 / (rows * (rows + 2)))


@pytest.mark.parametrize(("dim", "samples"), [(4, 9), (9, 4), (6, 6)])
def test_wishart_has_the_third_moment_of_its_samples(dim: int, samples: int) -> None:
    matrices = torch.cat([ensembles.wishart(block_of(seed=s), dim, samples) for s in range(100)])

    exact = samples**2 + dim**2 + 3 * samples * dim + 3 * samples + 3 * dim + 4
    assert_mean((matrices @ matrices * matrices).sum((1, 2)), dim * exact / samples**2)


@pytest.mark.parametrize("spike", [1.5, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)])
def test_spike_adds_one_rank_with_its_eigenvalue(spike: Any) -> None:
    block = block_of(3)
    matrices, v = ensembles.wigner(block, 8), ensembles.unit_vectors(block, 8)
    added = ensembles.spiked(matrices, v, spike) - matrices
    expected = torch.as_tensor(spike, dtype=torch.float64).expand(3)
    assert_allclose(torch.einsum("ni,nij,nj->n", v, added, v), expected, rtol=1e-13)
    assert_allclose(added.square().sum((1, 2)), expected**2, rtol=1e-13)


def test_logit_gradients_have_their_variances_and_orthogonal_means_their_gram_matrix() -> None:
    draws = [ensembles.logit_gradients(block_of(seed=s), **MODEL, orthogonal=False) for s in range(30)]
    c, e = (torch.cat(part) for part in zip(*draws, strict=True))

    assert c.shape == (480, 3, 6) and e.shape == (480, 4, 3, 6)
    # of one, of other samples, of other logits, of both
    products = c[:, 0] * c[:, 1], e[:, 0] * e[:, 1], e[:, :, 0] * e[:, :, 1], c * e[:, 0]
    for drawn, exact in ((c, 0), (e, 0), (c**2, 0.7**2), (e**2, 1.3**2), *((p, 0) for p in products)):
        assert_mean(drawn, exact)
    few, many = (
        ensembles.logit_gradients(block_of(2), **MODEL | {"samples": s}, orthogonal=True)[0] for s in (1, 9)
    )
    assert torch.equal(few, many)
    assert_allclose(few @ few.mT, (6 * 0.7**2 * torch.eye(3)).expand(2, 3, 3), rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("per_sample", [False, True])
def test_gauss_newton_is_the_sum_it_says(per_sample: bool) -> None:
    gradients = block_of(2).normal(4, 3, 5)
    p = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(-1)
    p = p if per_sample else p[0]
    cov = (torch.diag_embed(p) - p[..., :, None] * p[..., None, :]).expand(4, 3, 3)

    expected = sum(gradients[:, s].mT @ cov[s] @ gradients[:, s] for s in range(4))
    assert_allclose(ensembles.gauss_newton_of_logits(gradients, p), expected / 4, rtol=1e-12, atol=1e-15)


def test_gauss_newton_keeps_its_digits_where_p_is_nearly_one_hot() -> None:
    gradients = block_of(2).normal(1, 2, 3)
    p = torch.tensor([1.0, 1e-14], dtype=torch.float64)

    difference = gradients[:, 0, 0] - gradients[:, 0, 1]
    expected = 1e-14 * difference[:, :, None] * difference[:, None, :]
    assert_allclose(ensembles.gauss_newton_of_logits(gradients, p), expected, rtol=1e-10)


# --- the top eigenpair


def hard_matrices(dim: int) -> dict[str, Tensor]:
    goe, one = ensembles.wigner(block_of(2), dim), torch.eye(dim, dtype=torch.float64)
    centring, localised = one - 1 / dim, torch.zeros(2, dim, dim, dtype=torch.float64)
    localised[:, dim // 2, dim // 2] = 3.0
    return {
        "goe": goe,
        "spiked": ensembles.spiked(goe, ensembles.unit_vectors(block_of(2, seed=5), dim), 2.5),
        "identity": one.expand(2, dim, dim),
        "zero": 0 * goe,
        "negative": goe - 10 * one,
        "orthogonal to ones": 50 * centring @ goe @ centring,
        "localised": localised + 1e-3 * goe,
        "low rank": 1e6 * ensembles.wishart(block_of(2), dim, 3),
        "twins": torch.diag(torch.linspace(-1, 1, dim).double().clamp(max=0.9)).expand(2, dim, dim),
    }


@pytest.mark.parametrize("dim", [2, 37, 299, 300])
def test_top_pair_is_that_of_the_dense_solver(dim: int) -> None:
    """Below and above the border between LAPACK and Lanczos, with what is hard for Lanczos."""
    for name, matrices in hard_matrices(dim).items():
        every = torch.linalg.eigvalsh(matrices)
        norm = every.abs().amax(1)
        values, vectors = ensembles.top_eigenpair(matrices)

        for found in (values, ensembles.top_eigenvalue(matrices)):
            assert_allclose(found, every[:, -1], rtol=0, atol=1e-12 * norm.max() + 1e-300, err_msg=name)
        assert_allclose(vectors.norm(dim=1), 1.0, rtol=1e-12, err_msg=name)
        residual = (torch.einsum("nij,nj->ni", matrices, vectors) - values[:, None] * vectors).norm(dim=1)
        assert (residual <= 1e-10 * norm).all(), name


@pytest.mark.parametrize(("setting", "value"), [("_LANCZOS_RESTARTS", 1), ("_RESIDUAL", 1e-17)])
def test_unconverged_lanczos_gives_way_to_the_dense_solver(
    setting: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrices = ensembles.wigner(block_of(1), 300)
    monkeypatch.setattr(ensembles, setting, value)

    assert ensembles._lanczos(matrices[0].numpy()) is None
    assert_allclose(ensembles.top_eigenpair(matrices)[0], torch.linalg.eigvalsh(matrices)[:, -1], rtol=1e-13)


def test_single_precision_takes_the_dense_route() -> None:
    matrices = ensembles.wigner(block_of(2), 20)
    values, vectors = ensembles.top_eigenpair(matrices.float())

    assert values.dtype == vectors.dtype == torch.float32
    for found in (values, ensembles.top_eigenvalue(matrices.float())):
        assert_allclose(found, ensembles.top_eigenvalue(matrices), rtol=1e-5)


# --- numbers of a Gaussian matrix, drawn without it


def added(matrices: Tensor) -> Tensor:
    rank = min(4, matrices.shape[1])
    return matrices + torch.diag((torch.arange(matrices.shape[1]) < rank) * 1.4)


GOE = {
    "top": (
        lambda b, dim: [ensembles.goe_top_eigenvalue(b, dim)],
        lambda w: [torch.linalg.eigvalsh(w)[:, -1]],
    ),
    "moments": (
        lambda b, dim: ensembles.goe_moments(b, dim, spike=1.4, rank=min(4, dim)),
        lambda w: (added(w).diagonal(dim1=1, dim2=2).sum(1), added(w).square().sum((1, 2))),
    ),
    "norms": (
        lambda b, dim: ensembles.goe_norms(b, dim),
        lambda w: (w.square().sum((1, 2)), torch.linalg.matrix_norm(w, 2).square()),
    ),
}


@pytest.mark.parametrize("name", GOE)
@pytest.mark.parametrize("dim", [1, 2, 7, 60])
def test_numbers_of_a_matrix_have_the_law_of_the_dense_ones(name: str, dim: int) -> None:
    """Two independent samples of 600, by their Kolmogorov-Smirnov distance; of 60 rows some are not drawn."""
    draw, of_dense = GOE[name]
    blocks = [block_of(100, seed=s) for s in range(6)]
    drawn = zip(*(draw(b, dim) for b in blocks), strict=True)
    dense = of_dense(torch.cat([ensembles.wigner(b, dim) for b in blocks]))
    for found, whole in zip(map(torch.cat, drawn), dense, strict=True):
        assert stats.ks_2samp(found.numpy(), whole.numpy()).pvalue > 1e-3
        shifted = found.numpy() + 0.3 * float(whole.std())
        assert stats.ks_2samp(shifted, whole.numpy()).pvalue < 1e-2  # another place is seen


@pytest.mark.parametrize("dim", [300, 5000])
def test_the_top_eigenvalue_needs_only_the_first_rows(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, whole = ensembles.goe_top_eigenvalue(block_of(8), dim), ensembles.first_rows

    def fewer(*given: Any) -> Any:
        diagonal, beside = whole(*given)
        rows = 4 * len(diagonal) // 5
        assert rows < 200
        return diagonal[:rows], beside[: rows - 1]

    monkeypatch.setattr(ensembles, "first_rows", fewer)
    # what bisection is good for
    assert_allclose(ensembles.goe_top_eigenvalue(block_of(8), dim), found, rtol=1e-11)


def test_outliers_are_those_of_the_whole_matrices() -> None:
    noise, v = ensembles.wigner(block_of(8), 30), ensembles.unit_vectors(block_of(8), 30)
    values, vectors = torch.linalg.eigh(noise)
    weights = (v[:, None] @ vectors)[:, 0].square()
    for spike in (0.3, 1.5):  # below and above the threshold
        found, overlaps = ensembles.outliers(values, weights, spike)
        top, direction = ensembles.top_eigenpair(ensembles.spiked(noise, v, spike))
        assert_allclose(found, top, rtol=1e-12)
        assert_allclose(overlaps, (direction * v).sum(1).square(), rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 40])
def test_eigenpairs_are_those_of_the_dense_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    diagonal, beside = rng.standard_normal(size), rng.standard_normal(size - 1)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    for place in {0, size // 2, size - 1}:
        value, squared = ensembles.eigenpair(diagonal, beside, place)
        assert_allclose([value, squared], [values[place], vectors[0, place] ** 2], rtol=1e-9, atol=1e-12)


# --- blocks


DRAWS = {
    **{name: lambda b, draw=draw: draw(b, 8) for name, (draw, *_) in {**SCALES, **ENTRIES}.items()},
    "unit vectors": lambda b: ensembles.unit_vectors(b, 5),
    "class means": lambda b: ensembles.logit_gradients(b, **MODEL, orthogonal=True)[0],
    "deviations": lambda b: ensembles.logit_gradients(b, **MODEL, orthogonal=False)[1],
    "top": lambda b: ensembles.goe_top_eigenvalue(b, 50, spike=1.3),
    "moments": lambda b: torch.stack(ensembles.goe_moments(b, 5, spike=1.3, rank=2), dim=1),
    "frames": lambda b: ensembles.haar_frames(b, 7, 3, count=2),
    "value": lambda b: ensembles.top_eigenvalue(ensembles.wigner(b, 30)),
    "vector": lambda b: ensembles.top_eigenpair(ensembles.wigner(b, 310))[1],
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_replicate_is_the_same_alone_and_in_a_block(name: str) -> None:
    together = DRAWS[name](block_of(3))
    alone = torch.cat([DRAWS[name](Block((stream(0, "test", Point(), i),))) for i in range(3)])

    assert together.shape == alone.shape
    assert_allclose(together, alone, rtol=1e-12, atol=1e-14)


@pytest.mark.cuda
@pytest.mark.parametrize("name", DRAWS)
def test_a_replicate_is_the_same_on_cuda(name: str) -> None:
    here, there = DRAWS[name](block_of(2)), DRAWS[name](block_of(2, device="cuda"))

    assert there.device.type == "cuda"
    assert_allclose(there.cpu().abs(), here.abs(), rtol=1e-9, atol=1e-10)
