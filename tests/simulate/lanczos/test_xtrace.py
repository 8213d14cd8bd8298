"""The exchangeable trace estimator: exact at low rank, without bias, with an error that is its own; progress told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate import _memory, operators, spectra
from simulate.objectives import Objective


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rotated(values: np.ndarray) -> np.ndarray:
    basis = np.linalg.qr(rng().standard_normal((len(values), len(values))))[0]
    matrix = basis * values @ basis.T
    return (matrix + matrix.T) / 2


DECAYING = rotated(0.7 ** np.arange(40))
INDEFINITE = rotated(np.r_[5.0, -4.0, 2.0, rng(1).standard_normal(27) / 5])


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rank_below_the_probes_makes_it_exact(rank: int, dtype: type) -> None:
    matrix = rotated(np.r_[np.arange(1, rank + 1) * (-1.0) ** np.arange(rank), np.zeros(30 - rank)])
    matrix = matrix.astype(dtype)
    rounding = 300 * np.finfo(dtype).eps
    for probes in range(max(rank + 1, 2), rank + 4):
        found = spectra.xtrace(matrix, rng(probes), probes=probes)
        assert abs(found.value - np.trace(matrix)) <= rounding
        assert found.standard_error <= rounding


@pytest.mark.parametrize(("matrix", "probes"), [(INDEFINITE, 2), (INDEFINITE, 6), (DECAYING, 6)])
def test_it_has_no_bias_and_its_error_is_what_it_says(matrix: np.ndarray, probes: int) -> None:
    found = np.asarray([spectra.xtrace(matrix, rng(seed), probes=probes) for seed in range(200)])
    errors = found[:, 0] - np.trace(matrix)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(200)
    # the spread over the probes alone, as if they were independent, is low by a fifth in the root
    assert 0.9 < np.sqrt((found[:, 1] ** 2).mean() / (errors**2).mean()) < 1.3


def test_the_definition_probe_by_probe() -> None:
    draws, probes, dim = rng(4).standard_normal((4, 30)), 4, 30

    def estimate(i: int, others: list[int]) -> float:
        space = np.linalg.qr(INDEFINITE @ draws[others].T)[0] if others else np.zeros((dim, 0))
        beyond = draws[i] - space @ (space.T @ draws[i])
        share = (dim - len(others)) / (beyond @ beyond)
        return float(np.trace(space.T @ INDEFINITE @ space) + share * beyond @ INDEFINITE @ beyond)

    every = set(range(probes))
    each = np.asarray([estimate(i, sorted(every - {i})) for i in range(probes)])
    change = np.asarray(
        [
            [each[i] - estimate(i, sorted(every - {i, j})) if i != j else 0.0 for j in range(4)]
            for i in range(4)
        ]
    )
    variance = each.var(ddof=1) / probes + max((change * change.T).sum() / 12, 0)
    found = spectra.xtrace(INDEFINITE, rng(4), probes=probes)
    assert_allclose(found, (each.mean(), np.sqrt(variance)), rtol=1e-9)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_it_scales_with_the_matrix(scale: float) -> None:
    found, scaled = (spectra.xtrace(m, rng(), probes=5) for m in (INDEFINITE, scale * INDEFINITE))
    assert_allclose(np.asarray(scaled) / scale, found, rtol=1e-9)


def test_probes_are_between_two_and_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="probes must be at least 2, which give an error, got 1"):
        spectra.xtrace(INDEFINITE, rng(), probes=1)
    with pytest.raises(ValueError, match="probes must be at most the order of the matrix, 30, got 31"):
        spectra.xtrace(INDEFINITE, rng(), probes=31)
    with pytest.raises(ValueError, match="matrix must be such that the estimate does not overflow"):
        spectra.xtrace(np.eye(30) * 1e307, rng(), probes=3)
    monkeypatch.setattr(_memory, "available", lambda device: 2.0**30)


# --- on the curvature of a network -------------------------------------------------------------------------------


def line() -> operators.CurvatureOperator:
    """Hessian of a linear softmax model on five samples."""
    inputs = torch.from_numpy(rng(2).standard_normal((5, 4)))
    weights = torch.from_numpy(rng(3).standard_normal((3, 4)))
    objective = Objective(
        lambda p, x: x @ p[0].T, (inputs, torch.arange(5) % 3), nn.CrossEntropyLoss(), parameters=[weights]
    )
    return operators.hessian(objective)


def test_the_density_tells_of_its_products() -> None:
    told: list[int] = []
    matrix = line()
    plain = spectra.density(matrix, rng(), x=0.3, width=0.2, steps=5, probes=3)
    watched = spectra.density(matrix, rng(), x=0.3, width=0.2, steps=5, probes=3, progress=told.append)
    assert told == [3, 6, 9, 12, 15]
    assert watched == plain
