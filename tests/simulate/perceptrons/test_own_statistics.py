"""Statistics on own directions, and top eigenvalues of batches: products against dense matrices."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate import eigenvalues
from simulate.perceptrons import own_direction, per_sample
from simulate.perceptrons.sample_products import DenseSamples, PerceptronSamples, Samples
from tests.refusals import refusal
from tests.theory.test_own_direction import numbers_of

WIDTHS = (6, 5, 4)
SAMPLES = 24


@pytest.fixture(scope="module")
def matrices() -> np.ndarray:
    return per_sample.hessians(WIDTHS, *problem()).numpy()


def problem() -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    rng = default_rng(0)
    theta = per_sample.initial_parameters(rng, WIDTHS)
    return theta, rng.standard_normal((SAMPLES, WIDTHS[0])), rng.integers(0, WIDTHS[-1], SAMPLES)


def routes(matrices: np.ndarray) -> list[Samples]:
    return [PerceptronSamples(WIDTHS, *problem()), DenseSamples(torch.from_numpy(matrices))]


@pytest.mark.parametrize("route", [0, 1])
def test_statistics_are_those_of_the_dense_matrices(matrices: np.ndarray, route: int) -> None:
    samples = routes(matrices)[route]
    vectors = own_direction.top_eigenvectors(samples, 3)
    pairs = own_direction.sample_pairs(samples, steps=60)
    found = own_direction.statistics(samples, vectors, pairs, default_rng(0), probes=SAMPLES)
    expected = numbers_of(matrices, 3)
    assert_allclose(found.eigenvalues, np.linalg.eigvalsh(matrices.mean(axis=0))[::-1][:3], rtol=1e-9)
    for name in ("largest", "background", "spread"):
        assert_allclose(getattr(found, name), expected[name], rtol=1e-8)
    for name in ("projected", "squared", "overlaps"):  # up to the signs of eigenvectors
        assert_allclose(np.abs(getattr(found, name)), np.abs(expected[name]), rtol=1e-6, atol=1e-9)


def test_samples_in_the_span_are_not_probed(matrices: np.ndarray) -> None:
    samples = DenseSamples(torch.diag_embed(torch.tensor([[2.0, 1.0], [3.0, 1.0]]).double()))
    vectors, pairs = own_direction.top_eigenvectors(samples, 1), own_direction.sample_pairs(samples)
    found = own_direction.statistics(samples, vectors, pairs, default_rng(0))
    assert (found.background, found.spread) == (0.0, 0.0)


@pytest.mark.parametrize("size", [1, 3, 12])
def test_batch_eigenvalues_are_those_of_the_mean_matrices(matrices: np.ndarray, size: int) -> None:
    batches = own_direction.partitions(default_rng(1), SAMPLES, size, 5)
    expected = np.linalg.eigvalsh(matrices[batches].mean(axis=1))[:, -1]
    for samples in routes(matrices):
        found = own_direction.batch_tops(samples, batches, tolerance=1e-6)
        assert_allclose(found, expected, rtol=1e-9)
    few = own_direction.batch_tops(samples, batches, steps=3)
    assert (few <= expected * (1 + 1e-12)).all() and (few < expected).any()


def test_eigenvectors_that_do_not_converge_are_refused(
    matrices: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_direction, "_DENSE", 0)

    def short(*given: Any, **named: Any) -> eigenvalues.Extremes:
        return eigenvalues.extremes(*given, **(named | {"steps": 5}))

    monkeypatch.setattr(own_direction, "extremes", short)
    with refusal(r"for Lanczos to converge, got 3: .*products"):
        own_direction.top_eigenvectors(DenseSamples(torch.from_numpy(matrices)), 3)


def test_lanczos_finds_what_decompositions_find(
    matrices: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = routes(matrices)[0]
    dense = own_direction.top_eigenvectors(samples, 3), own_direction.sample_pairs(samples, steps=60)
    monkeypatch.setattr(own_direction, "_DENSE", 0)
    monkeypatch.setattr(own_direction, "_DENSE_SAMPLES", 0)
    monkeypatch.setattr(own_direction, "_WORKING_SET", 5 * 60 * 8 * samples.coordinates)  # five at a time
    vectors, pairs = own_direction.top_eigenvectors(samples, 3), own_direction.sample_pairs(samples, steps=60)
    assert_allclose((vectors * dense[0]).sum(1).abs(), 1.0, rtol=1e-9)
    assert_allclose(pairs.values, dense[1].values, rtol=1e-10)
    assert_allclose((pairs.vectors * dense[1].vectors).sum(1).abs(), 1.0, rtol=1e-9)
    assert (pairs.residuals <= 1e-9 * pairs.values).all()


def test_a_multiple_of_the_identity_has_a_unit_vector() -> None:
    found = own_direction.top_pairs(-2.0 * torch.eye(9, dtype=torch.float64)[None])
    assert_allclose([found.values[0], found.vectors.norm()], [-2, 1])


def test_partitions_hold_every_sample_once() -> None:
    found = own_direction.partitions(default_rng(0), 12, 3, 6)
    assert found.shape == (8, 3)
    assert (np.sort(found.reshape(2, 12), axis=1) == np.arange(12)).all()
    assert own_direction.partitions(default_rng(0), 13, 3, 4).shape == (4, 3)


def test_vectors_that_are_not_orthonormal_are_refused(matrices: np.ndarray) -> None:
    samples = DenseSamples(torch.from_numpy(matrices))
    pairs, rng = own_direction.sample_pairs(samples), default_rng(0)
    with refusal("vectors must be orthonormal"):
        own_direction.statistics(samples, torch.ones(2, 59).double(), pairs, rng)
