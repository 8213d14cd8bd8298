"""Batch formulas against full enumeration of the batches, the secular equation and exact limits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory import learning_rates
from theory.batch_hessian import (
    batch_eigenvalue,
    batch_ggn_eigenvalue,
    batch_ggn_factor_eigenvalue,
    batch_overlap,
    composed_batch_eigenvalue,
    crossover_batch_size,
    effective_batch_size,
    element_fluctuation,
    element_variance,
    noise_free_eigenvalue,
    second_order_coefficient,
    second_order_eigenvalue,
)
from theory.rmt import MarchenkoPastur, Semicircle

SIZES = {"batch_size": 20, "dataset_size": 100}
SETTINGS = settings(deadline=None, max_examples=50, derandomize=True)


def test_effective_size_is_exact_in_rationals() -> None:
    for total in range(1, 40):
        for batch in range(1, total):
            exact = 1 / (Fraction(1, batch) - Fraction(1, total))
            assert_allclose(effective_batch_size(batch, total), float(exact), rtol=1e-14)
        assert effective_batch_size(total, total) == math.inf
    assert_array_equal(effective_batch_size([0.5, 3.0], math.inf), [0.5, 3.0])


def test_second_order_coefficient_is_the_first_order_in_one_over_b() -> None:
    """Mean top eigenvalue over all batches of N - 1 of N matrices, for fluctuations of shrinking size."""
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((9, 3, 3))
    noise = noise + noise.transpose(0, 2, 1)
    noise -= noise.mean(axis=0)
    levels = np.array([2.0, 0.5, -1.0])
    variances = noise[:, :, 0].var(axis=0, ddof=1)
    coefficient = second_order_coefficient(levels, variances)
    errors = []
    for size in (1e-2, 1e-3):
        matrices = np.diag(levels) + size * noise
        batches = [(matrices.sum(axis=0) - matrices[i]) / 8 for i in range(9)]
        mean = np.mean([np.linalg.eigvalsh(m)[-1] for m in batches])
        predicted = second_order_eigenvalue(
            2.0, coefficient=size**2 * coefficient, batch_size=8, dataset_size=9
        )
        errors.append(abs(mean - predicted) / (predicted - 2.0))
    assert errors[0] < 1e-2
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("eigenvalue", [1.5, 3.0, -1.5])
def test_theorem_4_solves_the_secular_equation(eigenvalue: float) -> None:
    """Noise of variance P sigma^2 (1/B - 1/N): eigenvalue * G(outlier) = 1, overlap = 1/(-lambda^2 G')."""
    variance = 300 * 0.1**2 * (1 / 20 - 1 / 100)
    law = Semicircle(variance=variance)
    top = batch_eigenvalue(eigenvalue, sigma=0.1, dim=300, **SIZES)
    g = law.stieltjes(top)
    slope = g / (2 * variance * g - top)  # of variance g^2 - z g + 1 = 0

    assert_allclose(eigenvalue * g, 1.0, rtol=1e-12)
    assert_allclose(
        batch_overlap(eigenvalue, sigma=0.1, dim=300, **SIZES), -1 / (eigenvalue**2 * slope), rtol=1e-12
    )


def test_theorem_4_below_its_threshold_is_the_edge() -> None:
    s = math.sqrt(300 * (1 / 20 - 1 / 100)) * 0.5
    weak = [0.0, 0.5 * s, 0.999 * s, -0.5 * s]
    assert_allclose(
        batch_eigenvalue(weak, sigma=0.5, dim=300, **SIZES), [2 * s, 2 * s, 2 * s, -2 * s], rtol=1e-14
    )
    assert_array_equal(batch_overlap(weak, sigma=0.5, dim=300, **SIZES), 0.0)
    # the band between s and 2 s, where Lemma 11 as our copy reads it would say 0
    assert_allclose(batch_overlap(1.5 * s, sigma=0.5, dim=300, **SIZES), 1 - 1 / 2.25, rtol=1e-12)


each_batch = pytest.mark.parametrize("batch", [10, 25, 60])


@each_batch
def test_ggn_outlier_solves_the_secular_equation_of_the_batch_noise(batch: int) -> None:
    """Spike eigenvalue - variance in a Marchenko-Pastur bulk of ratio P/b."""
    q = 50 * (1 / batch - 1 / 500)
    top = batch_ggn_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)
    law = MarchenkoPastur(q=q, variance=0.7)

    assert_allclose((9.0 - 0.7) * law.stieltjes(top), 1.0, rtol=1e-11)


def test_ggn_below_its_threshold_is_the_edge() -> None:
    q = 400 * (1 / 20 - 1 / 100)
    edge = 0.3 * (1 + math.sqrt(q)) ** 2
    for weak in (0.0, 0.1, 0.3, 2.0):  # also below the variance itself
        assert_allclose(batch_ggn_eigenvalue(weak, variance=0.3, dim=400, **SIZES), edge, rtol=1e-13)


def test_element_variance_undoes_the_probe_average() -> None:
    """Mean over a basis: |H_i v|^2 - |H v|^2 is P times the mean variance."""
    rng = np.random.default_rng(1)
    matrices = rng.standard_normal((6, 4, 4))
    matrices = matrices + matrices.transpose(0, 2, 1)
    mean = matrices.mean(axis=0)
    probes = np.eye(4)
    total = np.mean([np.mean(np.sum((matrices @ v) ** 2, axis=1)) - np.sum((mean @ v) ** 2) for v in probes])

    assert_allclose(element_variance(total, dim=4), matrices.var(axis=0).mean(), rtol=1e-12)


@SETTINGS
@given(
    lam=st.floats(0.01, 100),
    excess=st.floats(1.0001, 100),
    dim=st.integers(1, 10**5),
    total=st.sampled_from([3.0, 1e4, 1e9]),
    sign=st.sampled_from([-1, 1]),
)
def test_noise_of_the_data_set_is_taken_out_and_put_back(
    lam: float, excess: float, dim: int, total: float, sign: int
) -> None:
    """The data set is a batch of all N from an unbounded one: Theorem 4 and its inverse."""
    noise = {"sigma": lam / excess * math.sqrt(total / dim), "dim": dim}
    full = batch_eigenvalue(sign * lam, batch_size=total, dataset_size=math.inf, **noise)
    found = noise_free_eigenvalue(full, dataset_size=total, **noise)

    # near the threshold the inverse has a square root: rounding moves the spike by its root
    assert_allclose(found, sign * lam, rtol=1e-7)
    assert abs(found) <= abs(full)
    assert noise_free_eigenvalue(full, dataset_size=math.inf, **noise) == full


def test_composition_from_the_true_spike() -> None:
    """Theorem 4 at 1/B from the spike, whatever the data set carries; below its threshold the edge of 1/B."""
    noise = {"sigma": 0.3, "dim": 400}
    batches = [1500, 300, 40, 3]
    full = batch_eigenvalue([2.0, -2.0], batch_size=1500, dataset_size=math.inf, **noise)[:, None]
    found = composed_batch_eigenvalue(full, batch_size=batches, dataset_size=1500, **noise)
    exact = batch_eigenvalue([[2.0], [-2.0]], batch_size=batches, dataset_size=math.inf, **noise)

    assert_allclose(found, exact, rtol=1e-13)
    assert_array_equal(found[:, 0], full[:, 0])
    direct = batch_eigenvalue(full, batch_size=batches, dataset_size=1500, **noise)
    assert np.all(np.abs(direct[:, 1:3]) < np.abs(found[:, 1:3]))


@each_batch
def test_ggn_factor_outlier_solves_the_determinant_equation_of_the_batch_noise(batch: int) -> None:
    """Spike lambda_1 - variance times z G (q G + (1 - q)/z) is 1 at the outlier."""
    q = 50 * (1 / batch - 1 / 500)
    z = batch_ggn_factor_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)
    g = MarchenkoPastur(q=q, variance=0.7).stieltjes(z)

    assert_allclose((9.0 - 0.7) * z * g * (q * g + (1 - q) / z), 1.0, rtol=1e-11)
    assert z > batch_ggn_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)


@SETTINGS
@given(
    lam=st.floats(0.1, 100),
    sigma=st.floats(0.01, 10),
    dim=st.integers(1, 10**5),
    total=st.sampled_from([50.0, 1e4, math.inf]),
)
def test_at_the_crossover_the_eigenvalue_meets_the_bulk(
    lam: float, sigma: float, dim: int, total: float
) -> None:
    batch = crossover_batch_size([lam, -lam], sigma=sigma, dim=dim, dataset_size=total)
    assert batch[0] == batch[1] <= total
    if batch[0] < 0.99 * total:
        b = effective_batch_size(batch[0], total)
        assert_allclose(math.sqrt(dim / b) * sigma, lam, rtol=1e-9)
    assert crossover_batch_size(lam, sigma=0.0, dim=dim, dataset_size=total) == 0.0


def test_extremes_whose_result_is_a_float_are_answered() -> None:
    assert effective_batch_size(1e-320, 1.0) == 1e-320
    assert_allclose(crossover_batch_size(1e-200, sigma=1.0, dim=4, dataset_size=12), 12.0)
    assert_allclose(crossover_batch_size(1e-200, sigma=1e-200, dim=4, dataset_size=12), 3.0)
    size = {"batch_size": 1e-300, "dataset_size": math.inf}
    assert_allclose(batch_eigenvalue(1.0, sigma=1e-150, dim=10**20, **size), 2e10)


def test_full_batch_is_exact_where_the_noise_of_one_sample_overflows() -> None:
    full = {"batch_size": 1e-157, "dataset_size": 1e-157}
    assert element_fluctuation(variance=1e200, **full) == 0
    assert second_order_eigenvalue(1.0, coefficient=1e200, **full) == 1
    assert batch_overlap(1.0, sigma=1e300, dim=10**9, **full) == 1


ANY_SIZE = st.floats(-307, 307).map(lambda x: 10.0**x)


@SETTINGS
@given(
    eigenvalue=st.floats(-3, 3).map(lambda x: 10.0**x), sigma=ANY_SIZE, dim=st.integers(1, 500), size=ANY_SIZE
)
def test_a_full_batch_has_no_noise(eigenvalue: float, sigma: float, dim: int, size: float) -> None:
    full = {"batch_size": size, "dataset_size": size}

    assert batch_eigenvalue(eigenvalue, sigma=sigma, dim=dim, **full) == eigenvalue
    assert batch_overlap(eigenvalue, sigma=sigma, dim=dim, **full) == 1
    assert batch_ggn_eigenvalue(eigenvalue, variance=sigma, dim=dim, **full) == eigenvalue
    assert second_order_eigenvalue(eigenvalue, coefficient=sigma, **full) == eigenvalue
    assert effective_batch_size(size, size) == math.inf
    assert_allclose(
        learning_rates.mean_square_limit(eigenvalue, noise=sigma, **full), 2 / eigenvalue, rtol=1e-15
    )
