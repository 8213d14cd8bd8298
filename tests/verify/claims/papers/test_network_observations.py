"""Observations of networks: the formulas read the noise they should."""

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate.matrices import populations
from simulate.monte_carlo import Block, Point, fixture
from simulate.perceptrons import own_direction, per_sample
from simulate.perceptrons.sample_products import PerceptronSamples
from theory import batch_hessian
from verify.claims.beyond import networks as observed
from verify.claims.granziol2022.networks.networks import ROUNDING, outside_bounds, typical_batches


def block(count: int) -> Block:
    return Block(tuple(fixture(0, f"network {i}") for i in range(count)))


def small(matrix: str) -> tuple[Any, np.ndarray]:
    point = Point(images="digits", samples=12, steps=3, matrix=matrix)
    network = observed.perceptron(fixture(0, "small"), point)
    curvature = per_sample.hessians if matrix == "hessian" else per_sample.gauss_newtons
    return PerceptronSamples(*network, matrix=matrix), curvature(*network).numpy()


@pytest.mark.parametrize("matrix", ["hessian", "gauss-newton"])
def test_noise_is_that_of_the_elements_and_along_the_top_eigenvector(matrix: str) -> None:
    samples, matrices = small(matrix)
    vectors = own_direction.top_eigenvectors(samples, 20)
    found = observed.noise_of(samples, fixture(0, "probes"), vectors)
    values, basis = np.linalg.eigh(matrices.mean(axis=0))
    variances = (matrices @ basis[:, -1] @ basis).var(axis=0)[::-1]
    flat = np.where(np.arange(226) < 20, values[::-1], 0.0)  # below the twentieth
    assert_allclose(found.eigenvalue, values[-1])
    assert_allclose(found.total, 226 * matrices.var(axis=0).mean())
    assert_allclose(found.along, variances.sum())
    assert_allclose(found.coefficient, (variances[1:] / (values[-1] - flat[1:])).sum(), rtol=1e-8)


def test_formulas_return_to_the_data_set_but_for_theorem_7_as_read() -> None:
    noise = observed.Noise(eigenvalue=0.6, total=0.8, along=6.0, coefficient=10.0)
    said = dict(observed.formulas(noise, 200, (4, 1000), 1000))
    shift = said.pop("theorem_7_read")[1] - 0.6
    assert_allclose(shift, (0.8 / 200) ** 0.5)
    for values in said.values():
        assert_allclose(values[1], 0.6)
    assert_allclose(said["second_order"][0], 0.6 + 10 * (1 / 4 - 1 / 1000))


@pytest.mark.parametrize(
    ("eigenvalue", "ratio", "expected"), [(3.0, 1.0, 3 + 0.5 * 3 / 2.5), (0.9, 1.0, 2.0), (1.2, 4.0, 5.0)]
)
def test_theorem_7_as_read_has_a_threshold_and_an_edge(
    eigenvalue: float, ratio: float, expected: float
) -> None:
    found = observed.theorem_7_as_our_copy_reads(eigenvalue, 0.5, np.array([ratio]))
    assert_allclose(found, [expected])


def test_deviations_of_typical_batches_are_those_of_dense_matrices() -> None:
    """With the same draws, in double precision: means of all per-sample Hessians, and theorems 4 and 7 by hand."""
    size = {"samples": 48, "batch_size": 12, "batches": 4}
    point = Point(images="digits", matrix="hessian", steps=3, **size)
    found = typical_batches(Block((default_rng(5),)), point)

    rng = default_rng(5)
    matrices = per_sample.hessians(*observed.perceptron(rng, point)).numpy()
    batches = own_direction.partitions(rng, 48, 12, 1)
    tops = np.linalg.eigvalsh(matrices[batches].mean(axis=1))[:, -1]
    total = matrices.var(axis=0).sum() / len(matrices[0])
    whole, inverse = np.linalg.eigvalsh(matrices.mean(axis=0))[-1], 1 / 12 - 1 / 48
    beta, sigma = len(matrices[0]) * inverse, (total / len(matrices[0])) ** 0.5
    broadened = whole + total * inverse / whole
    fourth = broadened if whole > (total * inverse) ** 0.5 else 2 * (total * inverse) ** 0.5
    seventh = (
        whole + sigma * whole / (whole - beta * sigma)
        if whole > sigma * (1 + beta)
        else 2 * sigma * (1 + beta)
    )

    alone = {"batch_size": 1, "dataset_size": 48}
    single = batch_hessian.batch_eigenvalue(whole, sigma=sigma, dim=len(matrices[0]), **alone)
    exact = {
        "measured": tops.mean(),
        "theorem_4": fourth,
        "theorem_4_for_one_sample": single,
        "off_4": (tops.mean() - fourth) / tops.std(ddof=1),
        "off_7": (tops.mean() - seventh) / tops.std(ddof=1),
    }
    assert found.keys() == exact.keys()
    for name, value in exact.items():
        assert_allclose(found[name], value, rtol=0, atol=ROUNDING, err_msg=name)


def test_matrices_without_a_direction_of_positive_curvature_are_turned() -> None:
    point = Point(samples=6, dim=3, batch_size=4, semidefinite=False)
    means = [populations.symmetric_matrices(default_rng(seed), 6, 3).mean(axis=0) for seed in range(200)]
    negative = [seed for seed, mean in enumerate(means) if np.linalg.eigvalsh(mean)[-1] <= 0]

    assert negative
    assert all(outside_bounds(default_rng(seed), point) == 0.0 for seed in negative)
    assert any(outside_bounds(default_rng(seed), point, upper=0.5) > 0 for seed in negative)
