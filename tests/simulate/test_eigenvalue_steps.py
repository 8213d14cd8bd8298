"""What extreme eigenvalues take: products and chains; and when they count as found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from tests.simulate.dense_matrices import SPIKED, rng, rotated


def test_every_product_is_with_one_vector_and_is_told_of() -> None:
    shapes: list[Any] = []
    told: list[tuple[int, float]] = []
    dense = torch.from_numpy(SPIKED)

    def product(vectors: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(vectors.shape))
        return vectors @ dense

    operator = Operator(product=product, dim=300)
    found = extremes(operator, rng(), largest=7, progress=lambda *state: told.append(state))
    assert set(shapes) == {(1, 300)}
    assert [count for count, _ in told] == list(range(1, len(shapes) + 1))
    assert found.products == len(shapes)
    assert told[0][1] == np.inf and told[5][1] == np.inf and 1e-3 < told[6][1] < np.inf
    assert 0 <= told[-1][1] <= 1e-3


def test_a_multiple_eigenvalue_of_which_not_all_are_wanted_costs_one_more_chain_too() -> None:
    """The residual of the one that is found has to become small, since nothing keeps the other away from it."""
    matrix = rotated([*np.linspace(-1, 1, 300), 1.2, 1.2, 4.0, 5.0])
    for seed in range(4):
        found = extremes(matrix, rng(seed), largest=3)
        assert (np.abs(found.values - [5, 4, 1.2]) <= found.bounds).all() and found.converged.all()
        assert found.products <= 60


def test_a_matrix_with_few_eigenvalues_is_exhausted_and_one_of_few_rows_spanned() -> None:
    assert extremes(np.eye(50), rng()).products == 1
    found = extremes(np.eye(50), rng(), largest=10)
    assert_allclose(found.values, 1, rtol=1e-14)
    assert found.products == 11 and found.stopped == "all bounds below the tolerance"
    for largest, smallest in ((1, 0), (2, 2)):
        small = extremes(
            np.diag([1.0, 2.0, 5.0, 5.0]), rng(), largest=largest, smallest=smallest, tolerance=1e-15
        )
        assert_allclose(small.values, [5, 5, 2, 1][: largest + smallest], rtol=1e-13)
    assert small.stopped == "the whole space was spanned"


def test_what_is_sought_is_named_when_it_is_wrong() -> None:
    for counts in ({"largest": 0}, {"largest": 3, "smallest": 2}):
        with pytest.raises(ValueError, match=r"largest and smallest must add up to 1\.\.4, got [05]"):
            extremes(np.eye(4), rng(), **counts)
    for name in ("largest", "smallest"):
        for value in (-1, 1.0, True, None):
            wrong: Any = {name: value}
            with pytest.raises(ValueError, match=f"{name} must be a positive integer, got {value}"):
                extremes(np.eye(4), rng(), **wrong)
    with pytest.raises(ValueError, match="tolerance must be finite and positive, got 0"):
        extremes(np.eye(4), rng(), tolerance=0.0)
    with pytest.raises(ValueError, match="steps must be at least one for each of 3 eigenvalues, got 2"):
        extremes(np.eye(4), rng(), largest=3, steps=2)


def test_nothing_has_converged_before_copies_are_looked_for() -> None:
    """Of a double eigenvalue three products show one, and in the place of its copy the next, with a small residual."""
    matrix = np.diag([10.0, 10.0, 5.0, *np.linspace(0, 1e-3, 50)])
    cut, found = (extremes(matrix, rng(), largest=2, steps=steps, tolerance=1e-2) for steps in (3, 20))
    assert cut.bounds[1] < 1e-4 and abs(cut.values[1] - 5) < 1e-4
    assert not cut.converged.any()
    assert found.converged.all() and abs(found.values[1] - 10) < 0.1


@pytest.mark.parametrize("values", [[1.0, 1.0, -1.0], [10.0, 10.0, 0.3], [2.0, 1.9999]])
def test_floor_and_ceiling_allow_for_rounding_where_all_is_spanned(values: list[float]) -> None:
    """In single precision, with eigenvalues that are nearly or exactly the same."""
    draws = rng()
    for _ in range(20):
        turn = np.linalg.qr(draws.standard_normal((len(values), len(values))))[0]
        matrix = torch.from_numpy(turn @ np.diag(values) @ turn.T).float()
        matrix = (matrix + matrix.mT) / 2
        known = np.linalg.eigvalsh(matrix.double().numpy())
        found = extremes(matrix, draws, largest=len(values) - 1, tolerance=1e-7)
        assert found.floor <= known[0]
        single = extremes(matrix, draws, largest=1, smallest=1, tolerance=1e-7)
        assert single.floor <= known[0] and known[-1] <= single.ceiling
