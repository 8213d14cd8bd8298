"""Errors of factors against dense matrices, and the standard errors that probes state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.factors import KroneckerFactors, ekfac, factor_errors, kfac
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import KINDS, built, convolutions, matrix_of, perceptron


@pytest.mark.parametrize("kind", ["gauss-newton", "empirical"])
@pytest.mark.parametrize("method", [kfac, ekfac])
@pytest.mark.parametrize("name", KINDS)
def test_errors_of_small_networks_are_those_of_dense_matrices(name: str, method: Any, kind: Any) -> None:
    objective = KINDS[name]()
    matrix, factors = matrix_of(objective, kind), method(objective, kind=kind)
    found = factor_errors(matrix, factors, rng())
    exact, near = matrix.dense(), factors.dense()

    assert_allclose(found.whole.value, (exact - near).norm() / exact.norm(), rtol=1e-10)
    inside = torch.zeros_like(exact)
    for names, error in found.layers.items():
        at = torch.cat([torch.arange(objective.dim)[objective.blocks()[name]] for name in names])
        own, other = exact[at][:, at], near[at][:, at]
        assert_allclose(error.value, (own - other).norm() / own.norm(), rtol=1e-10, atol=1e-13)
        inside[at[:, None], at] = own
    assert_allclose(
        found.between.value, ((exact - inside).norm() / exact.norm()) ** 2, rtol=1e-10, atol=1e-13
    )
    values = [torch.linalg.eigvalsh(m)[-1] for m in (near, exact)]
    assert_allclose(found.largest, values[0] / values[1], rtol=2e-3)
    assert not any(each.standard_error for each in (found.whole, found.between, *found.layers.values()))


def test_probes_state_their_error() -> None:
    """Over seeds the square of the estimate has the right mean, and the spread that is stated."""
    objective = perceptron()
    matrix, factors = gauss_newton(objective), kfac(objective)
    exact = factor_errors(matrix, factors).whole.value
    found = [factor_errors(matrix, factors, rng(seed), probes=40, rows=0).whole for seed in range(100)]
    squares = np.array([each.value**2 for each in found])
    stated = np.sqrt(np.mean([(2 * each.value * each.standard_error) ** 2 for each in found]))

    assert abs(squares.mean() - exact**2) < 5 * squares.std() / np.sqrt(100)
    assert_allclose(squares.std(), stated, rtol=0.2)


@pytest.mark.parametrize("build", [perceptron, convolutions])
def test_probes_of_factors_hold_the_exact_errors(build: Any) -> None:
    objective = build()
    matrix, factors = gauss_newton(objective), kfac(objective)
    exact, found = (
        factor_errors(matrix, factors, rng()),
        factor_errors(matrix, factors, rng(), probes=400, rows=0),
    )

    pairs = [(exact.whole, found.whole), (exact.between, found.between)]
    pairs += [(exact.layers[names], found.layers[names]) for names in exact.layers]
    for sure, estimate in pairs:
        assert abs(estimate.value - sure.value) <= 5 * estimate.standard_error + 1e-12
        assert estimate.standard_error < 0.1
    assert found.largest == pytest.approx(exact.largest, rel=1e-3)


def test_small_layers_of_a_large_network_are_exact() -> None:
    objective = perceptron()
    matrix, factors = gauss_newton(objective), kfac(objective)
    exact, found = factor_errors(matrix, factors, rng()), factor_errors(matrix, factors, rng(), rows=20)

    first, last = exact.layers
    assert found.layers[last] == pytest.approx(exact.layers[last], rel=1e-9)
    assert found.layers[first].standard_error > 0 and found.whole.standard_error > 0


@pytest.mark.parametrize("rows", [0, 20, 300])
def test_several_share_the_products_of_the_matrix(rows: int) -> None:
    """Each has the errors that it has alone, at the price of one."""
    objective = perceptron()
    matrix, factors = gauss_newton(objective), [kfac(objective), ekfac(objective), kfac(objective)]
    taken = list[int]()

    def product(vectors: Tensor) -> Tensor:
        taken.append(len(vectors))
        return matrix(vectors)

    counted = replace(matrix, product=product)
    found = factor_errors(counted, factors, rng(), rows=rows)
    together = sum(taken)
    taken.clear()

    assert found == [factor_errors(counted, each, rng(), rows=rows) for each in factors]
    assert sum(taken) == 3 * together


def _apart() -> KroneckerFactors:
    """With layers in another order."""
    factors = kfac(perceptron())
    return replace(factors, blocks=factors.blocks[::-1])


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda: factor_errors(gauss_newton(perceptron()), kfac(perceptron()), probes=1),
            "probes must be at least 2, which give an error, got 1",
        ),
        (
            lambda: factor_errors(gauss_newton(perceptron()), kfac(perceptron()), rows=-1),
            "rows must be a positive integer, got -1",
        ),
        (
            lambda: factor_errors(gauss_newton(convolutions()), kfac(perceptron()), rng()),
            "matrix must be of the parameters of the factors, got one with others",
        ),
        (
            lambda: factor_errors(gauss_newton(perceptron()), [], rng()),
            "factors must be of at least one kind, got none",
        ),
        (
            lambda: factor_errors(gauss_newton(perceptron()), [kfac(perceptron()), _apart()], rng()),
            "factors must all be of the same layers, got some of others",
        ),
    ],
)
def test_what_has_no_error_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask()


def test_an_error_relative_to_nothing_is_refused() -> None:
    """A matrix that vanishes at one layer."""
    model = built(lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)))
    model[0].bias.data.fill_(-9.0)  # dead at all samples
    objective = Objective(model, (torch.eye(2).double(), torch.eye(2).double()), nn.MSELoss())
    with pytest.raises(ValueError, match="matrix must not vanish where errors are relative to it, got zero"):
        factor_errors(gauss_newton(objective), kfac(objective), rng())


def test_errors_of_a_matrix_of_zeros_are_refused() -> None:
    """Outputs at a critical point: a product of two zeros."""
    model = built(lambda: nn.Linear(4, 3, bias=False))
    model.weight.data.zero_()

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).prod(1, keepdim=True)

    objective = Objective(Product(), (torch.eye(4).double(), torch.ones(4, 1).double()), nn.MSELoss())
    with pytest.raises(ValueError, match="matrix must not vanish where errors are relative to it, got zero"):
        factor_errors(gauss_newton(objective), kfac(objective), rng())
