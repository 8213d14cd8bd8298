"""Single eigenpairs of tridiagonal matrices, against the dense solver."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.matrices import _tridiagonal


@pytest.mark.parametrize("size", [1, 2, 40])
def test_eigenpairs_are_those_of_the_dense_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    diagonal, beside = rng.standard_normal(size), rng.standard_normal(size - 1)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    for place in {0, size // 2, size - 1}:
        value, squared = _tridiagonal.eigenpair(diagonal, beside, place)
        assert_allclose([value, squared], [values[place], vectors[0, place] ** 2], rtol=1e-9, atol=1e-12)
        assert _tridiagonal.eigenvalue(diagonal, beside, place) == value


def test_what_does_not_converge_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.ones(2), np.ones(2, dtype=np.int32), np.ones(2, dtype=np.int32)
    monkeypatch.setattr(_tridiagonal, "_STEBZ", lambda *_: (1, *found, 1))
    for route in (_tridiagonal.eigenpair, _tridiagonal.eigenvalue):
        with pytest.raises(np.linalg.LinAlgError, match="converges, got code 1"):
            route(np.ones(2), np.ones(1), 0)
