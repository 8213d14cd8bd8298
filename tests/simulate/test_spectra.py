"""Distribution functions against counting eigenvalues; traces, norms and densities against dense matrices."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate import lanczos, spectra
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from simulate.matrices import ensembles
from tests.simulate.dense_matrices import SPIKED, rng
from tests.simulate.matrices.drawn import block_of


def test_distribution_counts_the_eigenvalues_of_each_matrix_up_to_x() -> None:
    matrices = ensembles.wigner(block_of(5), 30)
    x = (-9.0, -0.7, 0.0, 0.31, 1.4, 9.0)
    counted = [[sum(v <= at for v in np.linalg.eigvalsh(m)) / 30 for at in x] for m in matrices.numpy()]

    found = spectra.distribution(matrices, x)
    assert_array_equal(found, counted)
    assert_array_equal(found[:, [0, -1]], [[0.0, 1.0]] * 5)


def test_distribution_includes_an_eigenvalue_at_x() -> None:
    at = spectra.distribution(torch.diag_embed(torch.tensor([[1.0, 1.0, 2.0]])), (1.0, 2.0))
    assert_array_equal(at, torch.tensor([[2 / 3, 1.0]]))


def all_of(matrix: Any) -> np.ndarray:
    found = extremes(matrix, rng(), largest=6, smallest=1)
    return np.r_[found.values, found.residuals, found.bounds, found.floor, found.ceiling]


SCALING = {
    "nodes, from starts that grow as well": lambda m: lanczos.quadrature(m, m[:3], 6).nodes,
    "extremes": all_of,
    "followed": lambda m: lanczos.warm_start(m, np.ones(300))[0:3:2],
    "norm": lambda m: spectra.frobenius_norm(m, rng(), probes=7),
}


@pytest.mark.parametrize("power", [-900, 900])
@pytest.mark.parametrize("name", SCALING)
def test_what_is_measured_scales_with_the_matrix(name: str, power: int) -> None:
    """Powers of two: nothing is rounded but what squares of them would overflow or lose."""
    found, plain = (np.asarray(SCALING[name](scale * SPIKED)) for scale in (2.0**power, 1.0))
    assert_allclose(found / 2.0**power, plain, rtol=1e-9, atol=1e-12)


# --- estimates from probes ---------------------------------------------------------------------------------------

MATRIX = rng(7).standard_normal((60, 60))
MATRIX = (MATRIX + MATRIX.T) / np.sqrt(120)


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5])
def test_traces_of_powers_lie_within_their_errors(power: int) -> None:
    whole = np.linalg.matrix_power(MATRIX, power)
    found = spectra.trace(MATRIX, rng(), probes=4000, power=power)
    assert abs(found.value - np.trace(whole)) < 4 * found.standard_error
    spread = np.sqrt(2 * ((whole**2).sum() - (np.diag(whole) ** 2).sum()))  # of one probe
    assert_allclose(found.standard_error, spread / np.sqrt(4000), rtol=0.1)


def test_a_power_takes_half_as_many_products_as_it_has_factors() -> None:
    calls = []
    operator = Operator(product=lambda v: calls.append(len(v)) or v @ torch.from_numpy(MATRIX), dim=60)
    for power, products in ((1, 1), (2, 1), (5, 3)):
        spectra.trace(operator, rng(), probes=6, power=power)
        assert calls == [6] * products
        calls.clear()
    spectra.frobenius_norm(operator, rng(), probes=6)
    assert calls == [6]


def test_frobenius_norms_lie_within_their_errors() -> None:
    found = spectra.frobenius_norm(MATRIX, rng(), probes=4000)
    assert abs(found.value - np.linalg.norm(MATRIX)) < 4 * found.standard_error
    singles = [spectra.frobenius_norm(MATRIX, rng(seed), probes=50).value for seed in range(400)]
    assert_allclose(np.std(singles), found.standard_error * np.sqrt(4000 / 50), rtol=0.15)
    assert spectra.frobenius_norm(np.zeros((5, 5)), rng(), probes=3) == (0.0, 0.0)


GRID = np.linspace(-2.6, 2.6, 27).reshape(3, 9)
HEIGHTS = np.exp(-(((GRID[..., None] - np.linalg.eigvalsh(MATRIX)) / 0.15) ** 2) / 2)
EXACT = HEIGHTS.mean(-1) / (np.sqrt(2 * np.pi) * 0.15)


@pytest.mark.parametrize("steps", [8, 40])
def test_densities_lie_within_their_errors_unless_steps_are_too_few_which_truncation_tells(
    steps: int,
) -> None:
    found = spectra.density(MATRIX, rng(), x=GRID, width=0.15, steps=steps, probes=200)
    off, error, truncation = np.abs(found.value - EXACT), found.standard_error, found.truncation.max()
    if steps == 8:
        assert off.max() > 5 * error.max() and truncation > 0.2 * off.max()
        return
    z = off / np.maximum(error, 1e-9)
    assert z.max() < 4 and 0.4 < np.sqrt((z[1] ** 2).mean()) < 1.8  # the middle, where there is mass
    assert truncation < 1e-4


def test_the_error_of_a_density_is_that_of_a_mean_over_its_probes() -> None:
    nodes, weights = lanczos.quadrature(MATRIX, rng(3).standard_normal((5, 60)), 7)
    heights = np.exp(-(((0.3 - nodes) / 0.4) ** 2) / 2) / (np.sqrt(2 * np.pi) * 0.4)
    each = (weights * heights).sum(1)
    told = []
    found = spectra.density(MATRIX, rng(3), x=0.3, width=0.4, steps=7, probes=5, progress=told.append)
    assert_allclose(found.value, each.mean(), rtol=1e-12)
    assert_allclose(found.standard_error, each.std(ddof=1) / np.sqrt(5), rtol=1e-10)
    assert told == [5, 10, 15, 20, 25, 30, 35]
