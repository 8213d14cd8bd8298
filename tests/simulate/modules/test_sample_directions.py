"""Samples of any model on the top eigenvectors and on their own directions: against dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.modules import sample_directions, sample_grams, sample_parts, sites
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.sample_directions import SampleDirections
from simulate.objectives import Objective
from tests.simulate.models_and_data import BUILDERS, N, case
from tests.simulate.modules.layer_kinds import LAYERS, layered
from tests.simulate.modules.test_sample_grams import matrices
from tests.theory.test_own_direction import numbers_of

SEPARABLE = sorted(name for name in BUILDERS if case(name).objective().separable)
TWICE = ("linear",)  # two outputs alike: every eigenvalue comes twice, and no eigenvector is one alone
FLAT = ("absolute error", "ignored class")  # samples without curvature have no eigenvector
K = 2


def dense(objective: Objective) -> np.ndarray:
    return np.concatenate([matrices(objective, batch).double().numpy() for batch in objective.batches()])


def top(given: np.ndarray, k: int = K) -> np.ndarray:
    return np.linalg.eigh(given.mean(axis=0))[1][:, ::-1][:, :k].copy()


def measured(objective: Objective, vectors: np.ndarray, **more: Any) -> SampleDirections:
    rng = np.random.default_rng(0)
    return sample_directions.sample_directions(objective, vectors, rng, **{"probes": N, **more})


def assert_statistics(found: SampleDirections, given: np.ndarray) -> None:
    expected, norm = numbers_of(given, K), np.linalg.norm(given, axis=(1, 2)).max()
    said = found.statistics
    for name, scale in {"projected": norm, "squared": norm**2, "largest": norm, "spread": norm**2}.items():
        assert_allclose(getattr(said, name), expected[name], rtol=0, atol=1e-9 * scale)
    assert_allclose(said.background, expected["background"], rtol=0, atol=1e-9 * norm)
    assert_allclose(
        said.eigenvalues, np.linalg.eigvalsh(given.mean(axis=0))[::-1][:K], rtol=0, atol=1e-9 * norm
    )
    assert_allclose(np.abs(said.overlaps), np.abs(expected["overlaps"]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in SEPARABLE if n not in (*TWICE, *FLAT)])
def test_statistics_are_those_of_the_dense_matrices(name: str) -> None:
    objective = case(name).objective()
    given = dense(objective)
    assert_statistics(measured(objective, top(given)), given)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_every_layer_goes_along_as_its_matrices_do(name: str) -> None:
    objective = layered(name)
    given = dense(objective)
    assert_statistics(measured(objective, top(given)), given)


@pytest.mark.parametrize("name", ["squared error", "convolution", "weighted classes"])
def test_other_ways_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = case(name).objective()
    vectors = top(dense(objective))
    expected = measured(objective, vectors, heavy=4)
    monkeypatch.setattr(sample_parts, "_WINDOW", 0)
    assert_alike(measured(objective, vectors, heavy=4), expected)
    assert_alike(measured(case(name).objective(chunk=2), vectors, heavy=4), expected)
    monkeypatch.setattr(sites, "covers", lambda _: False)
    assert_alike(measured(objective, vectors, heavy=4), expected)


def assert_alike(found: SampleDirections, expected: SampleDirections) -> None:
    assert found.heavy == expected.heavy
    for one, other in zip([*found.grams, found.forms], [*expected.grams, expected.forms], strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    for name in ("projected", "squared", "largest", "background", "spread", "eigenvalues"):
        pair = getattr(found.statistics, name), getattr(expected.statistics, name)
        assert_allclose(*pair, rtol=1e-8, atol=1e-12)
    assert_allclose(np.abs(found.statistics.overlaps), np.abs(expected.statistics.overlaps), atol=1e-8)


def test_heavy_samples_have_their_own_eigenvectors() -> None:
    objective = case("convolution").objective()
    given = dense(objective)
    found = measured(objective, top(given), heavy=3)
    largest = np.linalg.eigvalsh(given)[:, -1]
    assert found.heavy == tuple(np.argsort(largest)[::-1][:3])
    own = np.linalg.eigh(given[list(found.heavy)])[1][:, :, -1]
    assert_allclose(found.forms, np.einsum("hp,npq,hq->nh", own, given, own), rtol=1e-8, atol=1e-12)
    assert_allclose(
        found.forms, quadratic_forms(objective, own.T, matrix="gauss_newton"), rtol=1e-8, atol=1e-12
    )
    assert_allclose(found.grams, sample_grams.sample_grams(objective), rtol=1e-9, atol=1e-12)


def test_ignored_samples_have_no_curvature_and_no_direction() -> None:
    weight = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = torch.tensor([0, 1, 2, -100, 1, -100])

    def of(*batches: slice) -> Objective:
        data = [(x[part], y[part]) for part in batches]
        return Objective(lambda p, inputs: inputs @ p[0].T, data, nn.CrossEntropyLoss(), parameters=[weight])

    for objective in (
        of(slice(0, 6)),
        of(slice(0, 5), slice(5, 6)),
    ):  # the last batch is the mean over nothing
        vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((12, K)))[0]
        found = measured(objective, vectors, heavy=6)
        assert set(found.heavy) == {0, 1, 2, 4}
        for numbers in (
            found.statistics.largest,
            found.statistics.overlaps,
            found.statistics.projected,
            found.forms,
        ):
            assert not numbers[[3, 5]].any() and numbers[[0, 1, 2, 4]].any()


def _cubic(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs - targets) ** 3).sum(1).mean()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": np.ones((3, 1))}, "vectors must be of shape"),
        ({"vectors": np.ones((43, 2))}, "orthonormal"),
        ({"probes": 0}, "probes"),
        ({"heavy": -1}, "heavy"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    objective = case("squared error").objective()
    good = {"vectors": np.eye(objective.dim)[:, :2]}
    with pytest.raises(ValueError, match=message):
        measured(objective, **{**good, **change})


def test_losses_that_are_not_convex_are_refused() -> None:
    model = nn.Linear(3, 2).double()
    x, y = torch.randn(5, 3).double(), torch.randn(5, 2).double()
    with pytest.raises(ValueError, match="convex"):
        measured(Objective(model, (x, y), _cubic), np.eye(8)[:, :2])
