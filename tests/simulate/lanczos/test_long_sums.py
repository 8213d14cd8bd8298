"""Inner products and lengths of long vectors in single precision, and what Lanczos makes of them."""

from __future__ import annotations

import torch
from numpy.testing import assert_allclose

from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from simulate.lanczos.rows import dots, inner_products, length, row_lengths
from tests.simulate.dense_matrices import rng

DIM = 3 * 10**6 + 1


def test_sums_of_millions_have_the_digits_of_their_type() -> None:
    """Plain sums are off by 7e-5 here, and by half a per cent for lengths of a hundred million."""
    rows = torch.randn(2, DIM, generator=torch.Generator().manual_seed(0))
    exact = rows.double() @ rows.double().mT
    norms = exact.diagonal().sqrt()
    assert_allclose(inner_products(rows, rows.mT), exact, rtol=2e-6, atol=2e-6 * DIM)
    assert_allclose(inner_products(rows, rows[0]), exact[0], rtol=2e-6, atol=2e-6 * DIM)
    assert_allclose(dots(rows, rows), exact.diagonal(), rtol=2e-6)
    assert_allclose(length(rows[0]), norms[0], rtol=2e-6)
    assert_allclose(row_lengths(rows), norms, rtol=2e-6)


def test_eigenvalues_of_millions_are_found_as_closely_as_products_allow() -> None:
    """A diagonal matrix, whose products are right to the last digit: nothing is lost but by sums."""
    values = torch.linspace(-0.1, 0.1, DIM)
    values[1:4] = torch.tensor([0.5, 1.0, 0.7])
    found = extremes(
        Operator(product=lambda v: v * values, dim=DIM, dtype=torch.float32), rng(), tolerance=3e-5, kept=6
    )
    assert found.converged.all() and abs(found.values[0] - 1) < 1e-5
