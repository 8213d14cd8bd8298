"""Sums, multiples, blocks and transposes of operators against the same of dense matrices; operators of others."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor

from simulate import operators
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator, as_operator
from tests.simulate.dense_matrices import rng, rotated
from tests.simulate.models_and_data import case

ONE, TWO = rotated([4.0, 1.0, -2.0, 0.5, 0.0, 3.0], seed=1), rotated([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], seed=2)


class Foreign:
    """A stand-in for operators of other libraries on torch."""

    def __init__(self, matrix: Any, dtype: torch.dtype = torch.float64, noise: float = 0.0) -> None:
        self._matrix, self._noise = torch.as_tensor(matrix, dtype=dtype), noise
        self.shape, self.dtype, self.device = tuple(self._matrix.shape), dtype, torch.device("cpu")

    def __matmul__(self, columns: Tensor) -> Tensor:
        self._noise *= -2  # another matrix for every product, if any
        return (self._matrix + self._noise) @ columns


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda a, b: a + b, ONE + TWO),
        (lambda a, b: a - b, ONE - TWO),
        (lambda a, _: a + TWO, ONE + TWO),
        (lambda a, _: TWO + a, ONE + TWO),
        (lambda a, _: TWO - a, TWO - ONE),
        (lambda a, _: torch.from_numpy(TWO) - a, TWO - ONE),
        (lambda a, b: np.float64(3) * (2 * a - b * 0.5) / 4, 1.5 * ONE - 0.375 * TWO),
        (lambda a, _: -a, -ONE),
        (lambda a, _: a.damped(0.25), ONE + np.eye(6) / 4),
        (lambda a, b: (a.T - b).adjoint(), ONE - TWO),
        (lambda a, _: a + Foreign(TWO), ONE + TWO),
        (lambda a, _: aslinearoperator(ONE), ONE),
        (lambda a, _: sparse.csr_array(ONE), ONE),
        (lambda a, _: Foreign(ONE), ONE),
    ],
)
def test_operators_are_added_and_scaled_as_matrices_are(found: Any, expected: np.ndarray) -> None:
    combined = as_operator(found(as_operator(ONE), as_operator(TWO)))
    columns = rng(3).standard_normal((6, 4))

    assert combined.shape == (6, 6)
    assert_allclose(combined.dense(), expected, atol=1e-13)
    for operator in (combined, combined.to_scipy()):
        assert_allclose(operator @ columns, expected @ columns, atol=1e-13)
    assert_allclose(combined @ columns[:, 0], expected @ columns[:, 0], atol=1e-13)
    for rows in (columns.T, torch.from_numpy(columns.T)):
        assert_allclose(rows @ combined, columns.T @ expected, atol=1e-13)
    assert_allclose(columns[:, 0] @ combined, columns[:, 0] @ expected, atol=1e-13)


def test_matrices_of_other_libraries_keep_their_precision() -> None:
    single = as_operator(sparse.csr_array(ONE.astype(np.float32)))
    assert single.dtype == torch.float32
    assert_allclose(extremes(single, rng(), smallest=1).values, [4.0, -2.0], rtol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a + 1.0,
        lambda a: a * "2",
        lambda a: a - "x",
        lambda a: a / None,
        lambda a: a * True,
        lambda a: a @ a,
    ],
)
def test_what_is_no_number_or_matrix_is_neither_added_nor_multiplied(wrong: Any) -> None:
    with pytest.raises(TypeError):
        wrong(as_operator(ONE))


def test_an_asymmetry_of_single_precision_is_seen() -> None:
    """Not taken for rounding, which the symmetric matrix beside it has too."""
    dense = rotated(np.linspace(0.0, 1.0, 300)).astype(np.float32)
    as_operator(Foreign(dense, torch.float32))
    dense[3, 7] += 0.05
    with pytest.raises(ValueError, match="matrix must be symmetric"):
        as_operator(Foreign(dense, torch.float32))


def test_a_block_is_the_matrix_of_these_parameters_alone() -> None:
    found = case("cross-entropy")
    block = operators.gauss_newton(found.objective()).block("2")
    alone = operators.gauss_newton(found.objective(parameters=["2"]))

    assert_allclose(block.dense(), alone.dense(), atol=1e-13)
    assert dict(block.places) == dict(alone.places)


def test_sums_have_blocks_where_their_rows_have_the_same_names() -> None:
    objective = case("cross-entropy").objective()
    split = operators.gauss_newton(objective) + operators.h_term(objective)
    block = (0.5 * split).damped(1.0).block("0.bias")
    expected = operators.hessian(objective).block("0.bias").dense() / 2 + torch.eye(5)
    assert_allclose(block.dense(), expected, atol=1e-12)
    other = case("linear").objective()  # of 10 rows under other names
    named = Operator(product=torch.clone, dim=10, places={"weight": slice(0, 4), "bias": slice(4, 10)})
    assert (operators.hessian(other) + named).places == {}
