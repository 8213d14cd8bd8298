"""The variance of pair effects against least squares, and against draws whose pair effects are known."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.wide import pair_scatter


def rest(entries: np.ndarray, sign: int) -> np.ndarray:
    """Off-diagonal entries, upper half, less their best fit by a_s + sign a_t."""
    size = len(entries)
    s, t = np.triu_indices(size, 1)
    design = np.zeros((len(s), size))
    design[np.arange(len(s)), s] = 1
    design[np.arange(len(s)), t] += sign
    upper = entries[s, t]
    return upper - design @ np.linalg.lstsq(design, upper, rcond=None)[0]


def by_least_squares(entries: np.ndarray) -> float:
    size = len(entries)
    even, odd = rest((entries + entries.T) / 2, 1), rest((entries - entries.T) / 2, -1)
    return float((even**2).sum() / (size * (size - 3) / 2) + (odd**2).sum() / ((size - 1) * (size - 2) / 2))


@pytest.mark.parametrize("samples", [4, 5, 9])
def test_the_rest_is_that_of_least_squares(samples: int) -> None:
    entries = np.random.default_rng(samples).normal(size=(3, samples, samples))
    expected = [by_least_squares(e) for e in entries]
    assert_allclose(pair_scatter.pair_variance(torch.from_numpy(entries)), expected, rtol=1e-12)
