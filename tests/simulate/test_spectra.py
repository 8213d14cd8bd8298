"""Distribution functions against counting eigenvalues; traces, norms and densities against dense matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate import _memory, lanczos, spectra
from simulate.lanczos import Operator
from simulate.matrices import ensembles
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


# --- estimates from probes ---------------------------------------------------------------------------------------


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def symmetric(dim: int) -> np.ndarray:
    matrix = rng(7).standard_normal((dim, dim))
    return (matrix + matrix.T) / np.sqrt(2 * dim)


MATRIX = symmetric(60)


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5])
def test_traces_of_powers_lie_within_their_errors(power: int) -> None:
    exact = np.trace(np.linalg.matrix_power(MATRIX, power))
    found = spectra.trace(MATRIX, rng(), probes=4000, power=power)
    assert abs(found.value - exact) < 4 * found.standard_error
    whole = np.linalg.matrix_power(MATRIX, power)
    spread = np.sqrt(2 * ((whole**2).sum() - (np.diag(whole) ** 2).sum()))  # of one probe
    assert_allclose(found.standard_error, spread / np.sqrt(4000), rtol=0.1)


def test_a_power_takes_half_as_many_products_as_it_has_factors() -> None:
    calls: list[int] = []
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


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_norms_scale_with_the_matrix_however_large_or_small(scale: float) -> None:
    found = spectra.frobenius_norm(MATRIX, rng(), probes=7)
    assert spectra.frobenius_norm(scale * MATRIX, rng(), probes=7) == (
        scale * found.value,
        scale * found.standard_error,
    )


def test_an_estimate_that_overflows_is_refused() -> None:
    with pytest.raises(ValueError, match="matrix must be such that the estimate does not overflow, got inf"):
        spectra.trace(1e200 * MATRIX, rng(), probes=3, power=2)


GRID = np.linspace(-2.6, 2.6, 27).reshape(3, 9)
WIDTH = 0.15


def smeared(values: np.ndarray) -> np.ndarray:
    heights = np.exp(-(((GRID[..., None] - values) / WIDTH) ** 2) / 2)
    return heights.mean(-1) / (np.sqrt(2 * np.pi) * WIDTH)


def test_densities_lie_within_their_errors() -> None:
    exact = smeared(np.linalg.eigvalsh(MATRIX))
    found = spectra.density(MATRIX, rng(), x=GRID, width=WIDTH, steps=40, probes=200)
    assert found.value.shape == GRID.shape
    z = (found.value - exact) / np.maximum(found.standard_error, 1e-9)
    assert np.abs(z).max() < 4 and 0.4 < np.sqrt((z[1] ** 2).mean()) < 1.8  # the middle, where there is mass
    assert found.truncation.max() < 1e-4


def test_truncation_tells_that_steps_are_too_few() -> None:
    found = spectra.density(MATRIX, rng(), x=GRID, width=WIDTH, steps=8, probes=200)
    exact = smeared(np.linalg.eigvalsh(MATRIX))
    assert np.abs(found.value - exact).max() > 5 * found.standard_error.max()
    assert found.truncation.max() > 0.2 * np.abs(found.value - exact).max()


def test_the_error_of_a_density_is_that_of_a_mean_over_its_probes() -> None:
    nodes, weights = lanczos.quadrature(MATRIX, rng(3).standard_normal((5, 60)), 7)
    heights = np.exp(-(((0.3 - nodes) / 0.4) ** 2) / 2) / (np.sqrt(2 * np.pi) * 0.4)
    each = (weights * heights).sum(1)
    found = spectra.density(MATRIX, rng(3), x=0.3, width=0.4, steps=7, probes=5)
    assert_allclose(found.value, each.mean(), rtol=1e-12)
    assert_allclose(found.standard_error, each.std(ddof=1) / np.sqrt(5), rtol=1e-10)


def test_grids_that_no_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2.0**30)
    with pytest.raises(
        ValueError, match=r"x must be small enough .* 3 densities at 10000000 points from 3 nodes"
    ):
        spectra.density(MATRIX, rng(), x=np.broadcast_to(0.0, 10**7), width=0.2, steps=3, probes=3)


def test_distributions_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"matrices must be of shape \(n, dim, dim\), got \(3, 3\)"):
        spectra.distribution(torch.eye(3), (1.0,))
    wrong: tuple[Any, ...] = (1.0, (0.3, np.nan))
    for x in wrong:
        with pytest.raises(ValueError, match="x must be a list of numbers, got"):
            spectra.distribution(torch.eye(3)[None], x)


CALLS: dict[str, Callable[..., Any]] = {
    "trace": lambda probes=3, **more: spectra.trace(MATRIX, rng(), probes=probes, **more),
    "norm": lambda probes=3: spectra.frobenius_norm(MATRIX, rng(), probes=probes),
    "density": lambda x=0.0, width=0.1, steps=3, probes=3: spectra.density(
        MATRIX, rng(), x=x, width=width, steps=steps, probes=probes
    ),
}


@pytest.mark.parametrize(
    ("call", "argument", "value", "rule"),
    [
        *((name, "probes", 1, r"at least 2, which give an error, got 1") for name in CALLS),
        ("trace", "power", 0, "a positive integer, got 0"),
        ("density", "steps", 61, "at most the dimension, 60, got 61"),
        ("density", "width", 0.0, "finite and positive, got 0.0"),
        ("density", "width", [0.1, 0.2], r"one number, got \[0.1, 0.2\]"),
        ("density", "x", [0.0, np.inf], r"finite, got \[0.0, inf\]"),
    ],
)
def test_estimates_name_the_argument_that_is_wrong(call: str, argument: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be {rule}"):
        CALLS[call](**{argument: value})
