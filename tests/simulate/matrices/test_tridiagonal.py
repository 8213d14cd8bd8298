"""Single eigenpairs of tridiagonal matrices, against the dense solver."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.matrices import ensembles


@pytest.mark.parametrize("size", [1, 2, 40])
def test_eigenpairs_are_those_of_the_dense_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    diagonal, beside = rng.standard_normal(size), rng.standard_normal(size - 1)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    for place in {0, size // 2, size - 1}:
        value, squared = ensembles.eigenpair(diagonal, beside, place)
        assert_allclose([value, squared], [values[place], vectors[0, place] ** 2], rtol=1e-9, atol=1e-12)
