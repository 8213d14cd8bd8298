"""The exchangeable trace estimator: exact at low rank, without bias, with an error that is its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.spectra import xtrace
from tests.simulate.dense_matrices import rng, rotated

DECAYING = rotated(0.7 ** np.arange(40))
INDEFINITE = rotated(np.r_[5.0, -4.0, 2.0, rng(1).standard_normal(27) / 5])


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rank_below_the_probes_makes_it_exact(rank: int, dtype: type) -> None:
    matrix = rotated(np.r_[np.arange(1, rank + 1) * (-1.0) ** np.arange(rank), np.zeros(30 - rank)])
    matrix = matrix.astype(dtype)
    for probes in range(max(rank + 1, 2), rank + 4):
        found = xtrace(matrix, rng(probes), probes=probes)
        assert_allclose(found, (np.trace(matrix), 0.0), rtol=0, atol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("matrix", "probes"), [(INDEFINITE, 2), (INDEFINITE, 6), (DECAYING, 6)])
def test_it_has_no_bias_and_its_error_is_what_it_says(matrix: np.ndarray, probes: int) -> None:
    found = np.asarray([xtrace(matrix, rng(seed), probes=probes) for seed in range(200)])
    errors = found[:, 0] - np.trace(matrix)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(200)
    # the spread over the probes alone, as if they were independent, is low by a fifth in the root
    assert 0.9 < np.sqrt((found[:, 1] ** 2).mean() / (errors**2).mean()) < 1.3


def test_the_definition_probe_by_probe() -> None:
    draws, dim, every = rng(4).standard_normal((4, 30)), 30, range(4)

    def estimate(i: int, without: int) -> float:
        others = [k for k in every if k not in (i, without)]
        space = np.linalg.qr(INDEFINITE @ draws[others].T)[0]
        beyond = draws[i] - space @ (space.T @ draws[i])
        share = (dim - len(others)) / (beyond @ beyond)
        return float(np.trace(space.T @ INDEFINITE @ space) + share * beyond @ INDEFINITE @ beyond)

    each = np.asarray([estimate(i, i) for i in every])
    change = np.asarray([[each[i] - estimate(i, j) for j in every] for i in every])
    variance = each.var(ddof=1) / 4 + max((change * change.T).sum() / 12, 0)
    assert_allclose(xtrace(INDEFINITE, rng(4), probes=4), (each.mean(), np.sqrt(variance)), rtol=1e-9)
