"""Variance of the curvature over samples from probes; along vectors, against dense matrices, see `test_laws`."""

import math
from collections.abc import Callable
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.linalg import hadamard
from torch import Tensor, nn

from simulate.modules import sites
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.networks import Mlp
from simulate.objectives import Objective
from tests.refusals import refusal

MATRICES = ("hessian", "gauss_newton")


class Listed(np.random.Generator):
    """A generator that gives out signs one vector after the other."""

    def __init__(self, signs: Any) -> None:
        super().__init__(np.random.PCG64(0))
        self._left = iter(signs)

    def integers(self, low: int, high: int, size: int) -> Any:
        return (next(self._left)[:size] + 1) // 2


def listed(signs: Any) -> Any:
    return Listed(signs)


def small(samples: int = 5, widths: tuple[int, ...] = (2, 2, 2)) -> Objective:
    rng = default_rng(1)
    x = torch.from_numpy(rng.standard_normal((samples, widths[0])))
    return Objective(Mlp(widths, "tanh", rng=rng), (x, torch.arange(samples) % 2), nn.CrossEntropyLoss())


each_matrix = pytest.mark.parametrize("matrix", MATRICES)


@each_matrix
def test_probes_have_the_mean_and_error_of_what_is_had_along_them(matrix: Any) -> None:
    """And orthogonal ones the total exactly: v v' over a Hadamard matrix of order m adds up to m times the identity."""
    objective = small()
    probes, units = hadamard(objective.dim), np.eye(objective.dim)
    each, total = (
        [variance_along(objective, v, matrix=matrix) for v in some] for some in (probes * 1.0, units)
    )
    found = total_variance(objective, listed(probes), probes=len(probes), matrix=matrix)
    assert_allclose(found, (sum(total), np.std(each, ddof=1) / math.sqrt(len(probes))), rtol=1e-10)


@each_matrix
def test_orthogonal_pairs_give_the_total_exactly(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = small(samples=4, widths=(2, 2))
    total = sum(variance_along(objective, v, matrix=matrix) for v in np.eye(objective.dim))
    pairs = list(product(hadamard(objective.dim), repeat=2))
    monkeypatch.setattr(sites, "by_sample", lambda _: False)
    found = total_variance(objective, listed(chain(*pairs)), probes=len(pairs), matrix=matrix)
    assert_allclose(found.value, total, rtol=1e-10)


def function(call: Callable[..., Tensor], loss: Any = None) -> Objective:
    x = torch.linspace(-1, 2, 12, dtype=torch.float64).view(4, 3)
    weight = torch.ones(1, 3, dtype=torch.float64)
    return Objective(call, (x, x[:, :1]), loss or nn.MSELoss(), parameters=[weight])


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (
            function(lambda p, x: x @ p[0].T - (x @ p[0].T).square().mean()),
            "model must compute each sample separately, got samples that see each other",
        ),
        (
            function(lambda p, x: x @ p[0].T, lambda z, y: (z - 2 * y).square().sum().sqrt()),
            "loss must be a sum or mean of what every sample adds, got one that couples samples",
        ),
        (
            function(lambda p, x: (x @ p[0].T).mean(0), lambda z, y: z.square().sum()),
            r"model must return one row for each of 4 samples, got shape \(1,\)",
        ),
        (
            function(lambda p, x: (x @ (p[0] - p[0]).T).abs().sqrt() + 0 * x[:, :1]),
            "objective must have finite derivatives, got NaN or infinity",
        ),
    ],
)
def test_what_has_no_matrix_for_each_sample_is_refused(objective: Objective, message: str) -> None:
    with refusal(message):
        quadratic_forms(objective, torch.ones(3, 1))
    with refusal(message):
        variance_along(objective, torch.ones(3))
