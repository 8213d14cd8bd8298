"""Samples of any model on the top eigenvectors and on their own directions: against dense matrices."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.modules import sample_directions, sample_parts, sites
from simulate.modules.sample_directions import SampleDirections
from simulate.objectives import Objective
from tests.refusals import refusal
from tests.simulate.modules.layer_kinds import objective_of
from tests.simulate.modules.test_laws import known, spectra
from tests.theory.test_own_direction import numbers_of

NAMES = [
    "convolution", "convolutions", "inputs by name", "normalisations", "one output", "squared error", "sum",
    "tied", "tokens", "transformer", "transposed",
]  # fmt: skip
"""Models whose eigenvectors are each one alone; `test_laws` has all other kinds of layers."""

K = 2


def top(given: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(given.mean(axis=0))[1][:, ::-1][:, :K].copy()


def measured(objective: Objective, vectors: np.ndarray, **more: Any) -> SampleDirections:
    rng = np.random.default_rng(0)
    return sample_directions.sample_directions(objective, vectors, rng, **{"probes": objective.rows, **more})


def assert_statistics(objective: Objective, name: str) -> None:
    given = known(name).gauss_newtons.numpy()
    found, expected = measured(objective, top(given), heavy=3), numbers_of(given, K)
    said, norm = found.statistics, np.linalg.norm(given, axis=(1, 2)).max()
    expected["eigenvalues"] = np.linalg.eigvalsh(given.mean(axis=0))[::-1][:K]
    for what, scale in {"squared": norm**2, "spread": norm**2}.items() | dict.fromkeys(
        ("projected", "largest", "background", "eigenvalues"), norm
    ).items():
        assert_allclose(getattr(said, what), expected[what], rtol=0, atol=1e-9 * scale)
    assert_allclose(np.abs(said.overlaps), np.abs(expected["overlaps"]), rtol=0, atol=1e-5)
    assert found.heavy == tuple(np.argsort(expected["largest"])[::-1][:3])
    own = np.linalg.eigh(given[list(found.heavy)])[1][:, :, -1]
    assert_allclose(found.forms, np.einsum("hp,npq,hq->nh", own, given, own), rtol=0, atol=1e-7 * norm)
    for one, other in zip(found.grams, spectra(known(name)), strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-9 * max(norm, norm**2))


@pytest.mark.parametrize("name", NAMES)
def test_statistics_are_those_of_the_dense_matrices(name: str) -> None:
    assert_statistics(objective_of(name), name)


@pytest.mark.parametrize("name", ["squared error", "convolution"])
def test_other_ways_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_parts, "_WINDOW", 0)
    assert_statistics(objective_of(name), name)
    assert_statistics(objective_of(name, chunk=2), name)
    monkeypatch.setattr(sites, "covers", lambda _: False)
    assert_statistics(objective_of(name), name)


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
        said = found.statistics
        for numbers in (said.largest, said.overlaps, said.projected, found.forms):
            assert not numbers[[3, 5]].any() and numbers[[0, 1, 2, 4]].any()


def test_losses_that_are_not_convex_are_refused() -> None:
    model = nn.Linear(3, 2).double()
    x, y = torch.randn(5, 3).double(), torch.randn(5, 2).double()
    with refusal("convex"):
        measured(Objective(model, (x, y), lambda z, y: ((z - y) ** 3).sum(1).mean()), np.eye(8)[:, :2])
