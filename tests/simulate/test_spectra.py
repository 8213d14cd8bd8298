"""Spectral distribution functions against counting eigenvalues one by one."""

import numpy as np
import torch
from numpy.testing import assert_array_equal

from simulate import ensembles, spectra
from simulate.monte_carlo import Block, Point, stream


def test_distribution_counts_the_eigenvalues_of_each_matrix_up_to_x() -> None:
    matrices = ensembles.wigner(Block(tuple(stream(1, "spectra", Point(), i) for i in range(5))), 30)
    x = (-9.0, -0.7, 0.0, 0.31, 1.4, 9.0)
    counted = [[sum(v <= at for v in np.linalg.eigvalsh(m)) / 30 for at in x] for m in matrices.numpy()]

    found = spectra.distribution(matrices, x)
    assert found.shape == (5, 6)
    assert_array_equal(found, counted)
    assert_array_equal(found[:, [0, -1]], [[0.0, 1.0]] * 5)


def test_distribution_includes_an_eigenvalue_at_x() -> None:
    at = spectra.distribution(torch.diag_embed(torch.tensor([[1.0, 1.0, 2.0]])), (1.0, 2.0))
    assert_array_equal(at, torch.tensor([[2 / 3, 1.0]]))
