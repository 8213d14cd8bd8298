"""The Frobenius norm with some eigenvectors known: exact along them, with an honest error for the rest."""

from dataclasses import replace

import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate.eigenvalues import extremes
from simulate.lanczos import as_operator
from verify.practice.measure.norms import frobenius


def test_vectors_that_are_no_eigenvectors_count_by_their_products() -> None:
    """|A v|^2 is the square of the Ritz value and that of the residual."""
    matrix, rng = np.diag([1.0, 3.0]), default_rng(0)
    turned = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    found = replace(
        extremes(matrix, rng, largest=2), values=np.full(2, 2.0), residuals=np.ones(2), vectors=turned
    )

    norm = frobenius(as_operator(matrix), found, rng, probes=2)

    assert_allclose(norm.value, np.sqrt(10), rtol=1e-12)
    assert norm.standard_error < 1e-12


def test_the_error_is_the_scatter_over_the_probes() -> None:
    rng = default_rng(0)
    rest = rng.standard_normal((8, 8))
    matrix = np.diag([9.0] + 7 * [0.0]) + 0.5 * (rest + rest.T)
    found, operator = extremes(matrix, rng, tolerance=1e-10), as_operator(matrix)

    drawn = np.array([frobenius(operator, found, default_rng(i), probes=9) for i in range(200)])

    value, error = drawn[:, 0], np.sqrt((drawn[:, 1] ** 2).mean())
    truth = np.linalg.norm(matrix)
    assert abs(value.mean() - truth) < 0.2 * error
    assert_allclose(value.std(), error, rtol=0.15)
    assert truth > 1.05 * abs(found.values[0])
