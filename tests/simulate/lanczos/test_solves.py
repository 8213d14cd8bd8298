"""Products with inverses by conjugate gradients against dense solutions, and the residuals that are stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.lanczos import Operator, as_operator, solve
from tests.simulate.dense_matrices import rng, rotated

ILL = rotated(np.geomspace(1e-3, 1.0, 60), seed=4)


def test_solutions_are_those_of_the_dense_matrix() -> None:
    right = rng(1).standard_normal((60, 5))
    found = solve(ILL, right, damping=0.01, tolerance=1e-11)

    assert_allclose(found.vectors, np.linalg.solve(ILL + 0.01 * np.eye(60), right), rtol=1e-8, atol=1e-8)
    assert found.converged.all() and found.stopped == "all residuals at most the tolerance"
    alone = solve(ILL, right[:, 2], damping=0.01, tolerance=1e-11)
    assert alone.vectors.shape == (60,)
    assert_allclose(alone.vectors, found.vectors[:, 2], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-30])
def test_the_residual_that_is_stated_is_that_of_the_solution(dtype: Any, tolerance: float) -> None:
    matrix, right = ILL.astype(dtype), rng(2).standard_normal((60, 3)).astype(dtype)
    found = solve(matrix, right, tolerance=tolerance, steps=4000)
    wide = matrix.astype(np.float64)
    true = np.linalg.norm(right - wide @ found.vectors.double().numpy(), axis=0) / np.linalg.norm(
        right, axis=0
    )

    rounding = np.finfo(dtype).eps * np.linalg.norm(found.vectors, axis=0) / np.linalg.norm(right, axis=0)
    assert (np.abs(found.residuals - true) <= rounding).all()
    assert (found.converged == (found.residuals <= tolerance)).all()
    assert found.converged.all() if tolerance == 1e-2 else True
    if tolerance == 1e-30:
        assert "rounding" in found.stopped and found.products < 4000
        assert (found.residuals <= rounding).all()


def test_an_exact_inverse_as_preconditioner_takes_one_step() -> None:
    right = rng(4).standard_normal((60, 2))
    found = solve(
        ILL, right, damping=0.1, preconditioner=np.linalg.inv(ILL + 0.1 * np.eye(60)), tolerance=1e-9
    )

    assert found.products == 1 + 1
    assert_allclose(found.vectors, np.linalg.solve(ILL + 0.1 * np.eye(60), right), rtol=1e-9)


def test_a_limit_of_steps_is_kept_and_said() -> None:
    calls = []

    def product(vectors: torch.Tensor) -> torch.Tensor:
        calls.append(len(vectors))
        return vectors @ torch.from_numpy(ILL)

    told: list[tuple[int, float]] = []
    found = solve(
        Operator(product=product, dim=60),
        np.ones(60),
        tolerance=1e-12,
        steps=7,
        progress=lambda *t: told.append(t),
    )

    assert found.products == len(calls) <= 7 and found.stopped == "the step limit, 7 products"
    assert not found.converged.any() and found.residuals[0] < 1
    assert [n for n, _ in told] == list(range(1, len(told) + 1))


def test_nothing_and_numbers_of_any_size_are_solved_for() -> None:
    right = np.stack([np.zeros(60), 1e-200 * np.ones(60), 1e200 * np.ones(60)], axis=1)
    found = solve(ILL, right, damping=0.1, tolerance=1e-10)
    expected = np.linalg.solve(ILL + 0.1 * np.eye(60), np.ones(60))

    assert found.converged.all() and not found.vectors[:, 0].any() and found.residuals[0] == 0
    assert_allclose(found.vectors[:, 1] * 1e200, expected, rtol=1e-8)
    assert_allclose(found.vectors[:, 2] * 1e-200, expected, rtol=1e-8)


def test_negative_curvature_is_refused_with_what_to_do() -> None:
    indefinite = rotated([3.0, 1.0, 0.5, -0.25], seed=7)
    right = rng(6).standard_normal(4)
    with pytest.raises(
        ValueError, match=r"matrix must be positive definite, got curvature -0\.\d+ .* damping of more"
    ):
        solve(indefinite, right)
    found = solve(indefinite, right, damping=0.3)
    assert_allclose(found.vectors, np.linalg.solve(indefinite + 0.3 * np.eye(4), right), rtol=1e-5)
    with pytest.raises(ValueError, match="preconditioner must be positive definite, got negative curvature"):
        solve(np.eye(4), right, preconditioner=-np.eye(4))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"right": np.ones(3)}, r"right must be of shape \(4,\) or \(4, k\), got \(3,\)"),
        ({"right": np.array([1.0, np.nan, 0, 0])}, "right must be finite"),
        ({"damping": np.inf}, "damping must be a finite number, got inf"),
        ({"tolerance": 0.0}, "tolerance must be finite and positive, got 0.0"),
        ({"steps": 1}, "steps must be at least 2, one and a look at what it gave, got 1"),
        ({"preconditioner": np.eye(3)}, r"preconditioner must be of shape \(4, 4\), got \(3, 3\)"),
    ],
)
def test_arguments_out_of_their_domain_are_refused(change: dict[str, Any], said: str) -> None:
    arguments = {"right": np.ones(4), **change}
    with pytest.raises(ValueError, match=said):
        solve(as_operator(np.eye(4)), **arguments)
