"""Variances of Hutchinson's probes: all signs counted out, and the chi-squared variables of the eigenvalues."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from theory import gauss_newton

MATRIX = np.array(
    [[1.3, 0.4, -0.7, 0.2], [0.4, -0.6, 0.1, 0.9], [-0.7, 0.1, 2.1, -0.3], [0.2, 0.9, -0.3, 0.5]]
)


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX @ MATRIX, np.diag([3.0, -1.0])])
def test_variance_over_all_signs(matrix: np.ndarray) -> None:
    signs = np.array(list(product((-1.0, 1.0), repeat=len(matrix))))
    forms = ((signs @ matrix) * signs).sum(axis=1)
    found = gauss_newton.sign_probe_variance(
        np.square(matrix).sum(), squared_diagonal=np.square(np.diag(matrix)).sum()
    )

    assert_allclose(forms.mean(), np.trace(matrix), rtol=1e-13)
    assert_allclose(found, forms.var(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX @ MATRIX])
def test_variance_over_normal_probes_is_that_of_weighted_squares(matrix: np.ndarray) -> None:
    weighted = np.square(np.linalg.eigvalsh(matrix)) @ np.full(len(matrix), stats.chi2(1).var())
    assert_allclose(gauss_newton.normal_probe_variance(np.square(matrix).sum()), weighted, rtol=1e-12)
