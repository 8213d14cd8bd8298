"""Errors of factors against dense matrices, and the standard errors that probes state."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.factors import ekfac, factor_errors, kfac
from simulate.operators import gauss_newton
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import KINDS, convolutions, matrix_of, perceptron

MATRIX, FACTORS = gauss_newton(perceptron()), kfac(perceptron())


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
    between = ((exact - inside).norm() / exact.norm()) ** 2
    assert_allclose(found.between.value, between, rtol=1e-10, atol=1e-13)
    values = [torch.linalg.eigvalsh(m)[-1] for m in (near, exact)]
    assert_allclose(found.largest, values[0] / values[1], rtol=2e-3)
    assert not any(each.standard_error for each in (found.whole, found.between, *found.layers.values()))


@pytest.mark.slow
def test_probes_state_their_error() -> None:
    """Over seeds the square of the estimate has the right mean, and the spread that is stated."""
    exact = factor_errors(MATRIX, FACTORS).whole.value
    found = np.array([factor_errors(MATRIX, FACTORS, rng(s), probes=16, rows=0).whole for s in range(100)])
    squares, stated = found[:, 0] ** 2, np.sqrt(np.mean((2 * found[:, 0] * found[:, 1]) ** 2))

    assert abs(squares.mean() - exact**2) < 5 * squares.std() / np.sqrt(100)
    assert_allclose(squares.std(), stated, rtol=0.2)


@pytest.mark.parametrize("build", [perceptron, convolutions])
@pytest.mark.parametrize("rows", [0, 20])
def test_probes_of_factors_hold_the_exact_errors_and_small_layers_are_exact(build: Any, rows: int) -> None:
    objective = build()
    matrix, factors = gauss_newton(objective), kfac(objective)
    exact = factor_errors(matrix, factors, rng())
    found = factor_errors(matrix, factors, rng(), probes=400, rows=rows)

    pairs = [(exact.whole, found.whole), (exact.between, found.between)]
    for names, sure in exact.layers.items():
        size = sum(at.stop - at.start for name, at in factors.places.items() if name in names)
        assert (found.layers[names].standard_error == 0) == (size <= rows)
        pairs.append((sure, found.layers[names]))
    for sure, estimate in pairs:
        assert abs(estimate.value - sure.value) <= 5 * estimate.standard_error + 1e-9
        assert estimate.standard_error < 0.1
    assert found.largest == pytest.approx(exact.largest, rel=1e-3)


@pytest.mark.parametrize("rows", [0, 20, 300])
def test_several_share_the_products_of_the_matrix(rows: int) -> None:
    """Each has the errors that it has alone, at the price of one."""
    factors, taken = [FACTORS, ekfac(perceptron()), FACTORS], list[int]()
    counted = replace(MATRIX, product=lambda v: taken.append(len(v)) or MATRIX(v))
    found = factor_errors(counted, factors, rng(), rows=rows)
    together = sum(taken)

    assert found == [factor_errors(counted, each, rng(), rows=rows) for each in factors]
    assert sum(taken) == 4 * together
