"""Products with inverses by conjugate gradients against dense solutions, and the residuals that are stated."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.lanczos import Operator, solve
from tests.simulate.dense_matrices import rng, rotated

ILL = rotated(np.geomspace(1e-3, 1.0, 60), seed=4)
DAMPED = ILL + 0.1 * np.eye(60)


@pytest.mark.parametrize("columns", [slice(None), 2])
def test_solutions_are_those_of_the_dense_matrix(columns: Any) -> None:
    right = rng(1).standard_normal((60, 5))[:, columns]
    found = solve(ILL, right, damping=0.1, tolerance=1e-11)

    assert_allclose(found.vectors, np.linalg.solve(DAMPED, right), rtol=1e-8, atol=1e-8)
    assert found.converged.all() and found.stopped == "all residuals at most the tolerance"
    # an exact inverse as preconditioner takes one step, and a look at what it gave
    found = solve(ILL, right, damping=0.1, preconditioner=np.linalg.inv(DAMPED), tolerance=1e-9)
    assert found.products == 1 + 1
    assert_allclose(found.vectors, np.linalg.solve(DAMPED, right), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-30])
def test_the_residual_that_is_stated_is_that_of_the_solution(dtype: Any, tolerance: float) -> None:
    matrix, right = ILL.astype(dtype), rng(2).standard_normal((60, 3)).astype(dtype)
    found, norms = solve(matrix, right, tolerance=tolerance, steps=4000), np.linalg.norm(right, axis=0)
    left = right - matrix.astype(np.float64) @ found.vectors.double().numpy()

    rounding = np.finfo(dtype).eps * np.linalg.norm(found.vectors, axis=0) / norms
    assert (np.abs(found.residuals - np.linalg.norm(left, axis=0) / norms) <= rounding).all()
    assert (found.converged == (found.residuals <= tolerance)).all()
    assert found.converged.all() if tolerance == 1e-2 else True
    if tolerance == 1e-30:
        assert "rounding" in found.stopped and found.products < 4000
        assert (found.residuals <= rounding).all()


def test_a_limit_of_steps_is_kept_and_said() -> None:
    calls, told = list[int](), list[tuple[int, float]]()
    matrix = Operator(product=lambda v: calls.append(len(v)) or v @ torch.from_numpy(ILL), dim=60)
    found = solve(matrix, np.ones(60), tolerance=1e-12, steps=7, progress=lambda *t: told.append(t))

    assert found.products == len(calls) <= 7 and found.stopped == "the step limit, 7 products"
    assert not found.converged.any() and found.residuals[0] < 1
    assert [n for n, _ in told] == list(range(1, len(told) + 1))


def test_nothing_and_numbers_of_any_size_are_solved_for() -> None:
    sizes = np.array([0.0, 1e-200, 1e200])
    found = solve(ILL, np.ones((60, 1)) * sizes, damping=0.1, tolerance=1e-10)

    assert found.converged.all() and not found.vectors[:, 0].any() and found.residuals[0] == 0
    expected = np.linalg.solve(DAMPED, np.ones(60))
    assert_allclose(found.vectors[:, 1:].numpy() / sizes[1:], np.stack([expected] * 2, axis=1), rtol=1e-8)


def test_negative_curvature_is_refused_with_what_to_do() -> None:
    indefinite, right = rotated([3.0, 1.0, 0.5, -0.25], seed=7), rng(6).standard_normal(4)
    with pytest.raises(ValueError, match=r"positive definite, got curvature -0\.\d+ .* damping of more"):
        solve(indefinite, right)
    found = solve(indefinite, right, damping=0.3)
    assert_allclose(found.vectors, np.linalg.solve(indefinite + 0.3 * np.eye(4), right), rtol=1e-5)
