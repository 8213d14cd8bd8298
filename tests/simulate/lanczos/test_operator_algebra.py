"""Sums, multiples, blocks and transposes of operators against the same of dense matrices; operators of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor

from simulate import eigenvalues, operators, spectra
from simulate.lanczos import Operator, as_operator, tridiagonal
from tests.simulate.dense_matrices import rng, rotated
from tests.simulate.models_and_data import case

ONE, TWO = rotated([4.0, 1.0, -2.0, 0.5, 0.0, 3.0], seed=1), rotated([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], seed=2)


class Foreign:
    """What operators of other libraries on torch have in common."""

    def __init__(self, matrix: Any, dtype: torch.dtype = torch.float64) -> None:
        self._matrix = torch.as_tensor(matrix, dtype=dtype)
        self.shape, self.dtype, self.device = tuple(self._matrix.shape), dtype, torch.device("cpu")

    def __matmul__(self, columns: Tensor) -> Tensor:
        return self._matrix @ columns


class Drawing(Foreign):
    """Another matrix for every product."""

    def __matmul__(self, columns: Tensor) -> Tensor:
        self._matrix = torch.as_tensor(
            rotated([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], seed=int(self._matrix.sum() * 1e6) % 99)
        )
        return self._matrix @ columns


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda a, b: a + b, ONE + TWO),
        (lambda a, b: a - b, ONE - TWO),
        (lambda a, _: a + TWO, ONE + TWO),
        (lambda a, _: a - torch.from_numpy(TWO), ONE - TWO),
        (lambda a, _: TWO + a, ONE + TWO),
        (lambda a, _: TWO - a, TWO - ONE),
        (lambda a, _: torch.from_numpy(TWO) - a, TWO - ONE),
        (lambda a, b: 2 * a - b * 0.5, 2 * ONE - TWO / 2),
        (lambda a, b: np.float64(3) * (a + b) / 4, 0.75 * (ONE + TWO)),
        (lambda a, _: -a, -ONE),
        (lambda a, _: a.damped(0.25), ONE + np.eye(6) / 4),
        (lambda a, _: a.T, ONE),
        (lambda a, b: (a - b).adjoint(), ONE - TWO),
        (lambda a, _: a + Foreign(TWO), ONE + TWO),
    ],
)
def test_operators_are_added_and_scaled_as_matrices_are(found: Any, expected: np.ndarray) -> None:
    combined = found(as_operator(ONE), as_operator(TWO))
    columns = rng(3).standard_normal((6, 4))

    assert combined.shape == (6, 6)
    assert_allclose(combined.dense(), expected, atol=1e-13)
    assert_allclose(combined @ columns, expected @ columns, atol=1e-13)
    assert_allclose(combined @ columns[:, 0], expected @ columns[:, 0], atol=1e-13)
    assert_allclose(combined.to_scipy() @ columns, expected @ columns, atol=1e-13)
    for rows in (columns.T, torch.from_numpy(columns.T)):
        assert_allclose(rows @ combined, columns.T @ expected, atol=1e-13)


def test_what_is_no_number_or_matrix_is_neither_added_nor_multiplied() -> None:
    one = as_operator(ONE)
    for wrong in (
        lambda: one + 1.0,
        lambda: one * "2",
        lambda: one - "x",
        lambda: one / None,
        lambda: one * True,
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        _ = one @ one  # the product of two is not symmetric
    for wrong, said in (
        (lambda: one * np.inf, "factor must be a finite number, got inf"),
        (lambda: one / 0, "divisor must not be zero, got 0"),
        (lambda: one.damped(np.nan), "damping must be a finite number, got nan"),
        (
            lambda: one + np.eye(5),
            "operators must be of one shape, type and device to be added, got 6 rows .* 5 rows",
        ),
        (lambda: one + np.eye(6, dtype=np.float32), "operators must be of one shape, type and device"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()


@pytest.mark.parametrize(
    "other",
    [Foreign(ONE), aslinearoperator(ONE), sparse.csr_array(ONE), sparse.csr_array(ONE.astype(np.float32))],
)
def test_operators_of_other_libraries_are_taken(other: Any) -> None:
    found = eigenvalues.extremes(other, rng(), largest=1, smallest=1)
    relative = 1e-5 if other.dtype == np.float32 else 1e-9

    assert_allclose(found.values, [4.0, -2.0], rtol=relative)
    assert spectra.trace(other, rng(), probes=5) == pytest.approx(
        spectra.trace(ONE, rng(), probes=5), rel=relative
    )
    assert_allclose(
        spectra.density(other, rng(), x=[0.0, 2.0], width=0.5, steps=6, probes=3).value,
        spectra.density(ONE, rng(), x=[0.0, 2.0], width=0.5, steps=6, probes=3).value,
        rtol=100 * relative,
    )
    start = np.ones((1, 6))
    assert_allclose(tridiagonal(other, start, 3).diagonal, tridiagonal(ONE, start, 3).diagonal, rtol=relative)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Foreign(np.triu(ONE)), "matrix must be symmetric, got u'Av and v'Au that differ by"),
        (Drawing(ONE), "fix what they draw"),
        (Foreign(ONE[:4]), r"matrix must be square, got shape \(4, 6\)"),
        (Foreign(ONE, torch.float16), "matrix must be of float64 or float32, got torch.float16"),
        (sparse.csr_array(ONE.astype(complex)), "matrix must be of float64 or float32, got complex128"),
    ],
)
def test_operators_of_others_that_are_not_symmetric_are_refused(other: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        as_operator(other)


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


def test_blocks_of_sums_and_what_has_none() -> None:
    objective = case("cross-entropy").objective()
    split = operators.gauss_newton(objective) + operators.h_term(objective)
    block = (0.5 * split).damped(1.0).block("0.bias")

    assert_allclose(
        block.dense(), operators.hessian(objective).block("0.bias").dense() / 2 + torch.eye(5), atol=1e-12
    )
    for wrong in ((), ("bias",), ("0.weigh",), (3,)):
        with pytest.raises(ValueError, match=r"such as 0.weight, 0.bias, 2.weight, 2.bias; got"):
            split.block(*wrong)
    with pytest.raises(ValueError, match="of an operator that has them; got '0'"):
        as_operator(ONE).block("0")
    other = case("linear").objective()  # of 10 rows under other names
    named = Operator(product=lambda v: v, dim=10, places={"weight": slice(0, 4), "bias": slice(4, 10)})
    assert (operators.hessian(other) + named).places == {}
