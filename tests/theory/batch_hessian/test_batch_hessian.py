"""Batch formulas against full enumeration of the batches, the secular equation and exact limits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory import outliers
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

SIZES: dict[str, Any] = {"batch_size": 20, "dataset_size": 100}
SETTINGS = settings(deadline=None, max_examples=50, derandomize=True)


samples = st.lists(st.integers(-50, 50), min_size=2, max_size=7)


def test_effective_size_is_exact_in_rationals() -> None:
    for total in range(1, 40):
        for batch in range(1, total):
            exact = 1 / (Fraction(1, batch) - Fraction(1, total))
            assert_allclose(effective_batch_size(batch, total), float(exact), rtol=1e-14)
        assert effective_batch_size(total, total) == math.inf
    assert_array_equal(effective_batch_size([0.5, 3.0], math.inf), [0.5, 3.0])


@SETTINGS
@given(values=samples, data=st.data())
def test_fluctuation_is_the_mean_square_over_all_batches(values: list[int], data: st.DataObject) -> None:
    """Eq. (5) with the variance that divides by N - 1, by enumeration in rationals."""
    total = len(values)
    batch = data.draw(st.integers(1, total))
    mean = Fraction(sum(values), total)
    squares = [(Fraction(sum(c), batch) - mean) ** 2 for c in itertools.combinations(values, batch)]
    variance = sum(((v - mean) ** 2 for v in values), Fraction(0)) / (total - 1)
    predicted = element_fluctuation(variance=float(variance), batch_size=batch, dataset_size=total)

    assert_allclose(predicted, float(sum(squares) / len(squares)), rtol=1e-13, atol=0.0)


def test_fluctuation_in_an_unbounded_data_set() -> None:
    """Population values 0, 1 with equal chance: Var of a mean of B independent draws is 1/(4 B)."""
    assert element_fluctuation(variance=0.25, batch_size=8, dataset_size=math.inf) == 1 / 32


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


def test_second_order_with_equal_variances_is_the_outlier() -> None:
    both = {"batch_size": [40, 80], "dataset_size": 100}
    spread = 50 * 0.1**2 / 2.0
    assert_allclose(
        second_order_eigenvalue(2.0, coefficient=spread, **both),
        batch_eigenvalue(2.0, sigma=0.1, dim=50, **both),
        rtol=1e-14,
    )


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


def test_theorem_4_values_measured_in_simulation() -> None:
    """P = 300, sigma = 0.7, spike 3: means of 20 draws with their standard errors, recorded once."""
    measured = {20: (5.460, 0.022), 50: (3.992, 0.025), 147: (3.326, 0.017), 400: (3.119, 0.010)}
    for b, (mean, error) in measured.items():
        predicted = batch_eigenvalue(3.0, sigma=0.7, dim=300, batch_size=b, dataset_size=math.inf)
        edge_bias = 1.2 * 300 ** (-2 / 3) * predicted if b <= 50 else 0.0
        assert abs(predicted - mean) < 4 * error + edge_bias


@SETTINGS
@given(
    lam=st.floats(-1e3, 1e3), scale=st.floats(0, 1e3), total=st.integers(1, 10**6), dim=st.integers(1, 10**8)
)
def test_the_full_batch_keeps_every_eigenvalue(lam: float, scale: float, total: int, dim: int) -> None:
    sizes = {"batch_size": total, "dataset_size": total}

    assert batch_eigenvalue(lam, sigma=scale, dim=dim, **sizes) == lam
    assert batch_ggn_eigenvalue(abs(lam), variance=scale, dim=dim, **sizes) == abs(lam)
    assert batch_ggn_factor_eigenvalue(abs(lam), variance=scale, dim=dim, **sizes) == abs(lam)
    beyond = (1 + abs(lam)) * 2.1 * max(scale, 1) * math.sqrt(dim / total)
    assert composed_batch_eigenvalue(beyond, sigma=scale, dim=dim, **sizes) == beyond
    assert second_order_eigenvalue(lam, coefficient=scale, **sizes) == lam
    assert element_fluctuation(variance=scale, **sizes) == 0.0
    assert batch_overlap(lam, sigma=scale, dim=dim, **sizes) == (lam != 0)


@SETTINGS
@given(
    lam=st.floats(0.01, 100), sigma=st.floats(0, 10), fraction=st.floats(0.01, 1), dim=st.integers(1, 10**4)
)
def test_larger_batches_are_less_sharp(lam: float, sigma: float, fraction: float, dim: int) -> None:
    sizes = {"batch_size": np.array([fraction, 1.0]) * 100, "dataset_size": 100}
    small, large = batch_eigenvalue(lam, sigma=sigma, dim=dim, **sizes)

    assert small >= large == lam
    down = batch_eigenvalue(-lam, sigma=sigma, dim=dim, **sizes)
    assert_array_equal(down, [-small, -large])


@pytest.mark.parametrize("batch", [10, 25, 60])
def test_ggn_outlier_solves_the_secular_equation_of_the_batch_noise(batch: int) -> None:
    """Spike eigenvalue - variance in a Marchenko-Pastur bulk of ratio P/b."""
    q = 50 * (1 / batch - 1 / 500)
    top = batch_ggn_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)
    law = MarchenkoPastur(q=q, variance=0.7)

    assert_allclose((9.0 - 0.7) * law.stieltjes(top), 1.0, rtol=1e-11)


def test_ggn_values_measured_in_simulation() -> None:
    """Population of 5000 in 250 dimensions, variance 1, full eigenvalue 5.0444 (recorded once)."""
    measured = {250: 5.343, 1000: 5.101, 5000: 5.0444}
    errors = {250: 0.028, 1000: 0.008, 5000: 1e-12}
    for batch, mean in measured.items():
        top = batch_ggn_eigenvalue(5.0444, variance=1.0, dim=250, batch_size=batch, dataset_size=5000)
        assert abs(top - mean) <= 4 * errors[batch]
        raised = outliers.additive_wishart(5.0444, q=250 / max(batch, 1), variance=1.0).eigenvalue
        assert raised - mean > 0.9  # from lambda_1 itself, as our copy reads


def test_ggn_below_its_threshold_is_the_edge() -> None:
    q = 400 * (1 / 20 - 1 / 100)
    edge = 0.3 * (1 + math.sqrt(q)) ** 2
    for weak in (0.0, 0.1, 0.3, 2.0):  # also below the variance itself
        assert_allclose(batch_ggn_eigenvalue(weak, variance=0.3, dim=400, **SIZES), edge, rtol=1e-13)


@SETTINGS
@given(
    lam=st.floats(1e-290, 100) | st.just(0.0),  # below, the numbers themselves are rounded
    scale=st.floats(1e-290, 10) | st.just(0.0),
    unit=st.sampled_from([0.125, 4.0]),
)
def test_unit_of_the_hessian_is_free(lam: float, scale: float, unit: float) -> None:
    for function, name in (
        (batch_eigenvalue, "sigma"),
        (batch_ggn_eigenvalue, "variance"),
        (batch_ggn_factor_eigenvalue, "variance"),
    ):
        one = function(lam, **{name: scale}, dim=30, **SIZES)
        assert function(unit * lam, **{name: unit * scale}, dim=30, **SIZES) == unit * one


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
    noise: dict[str, Any] = {"sigma": lam / excess * math.sqrt(total / dim), "dim": dim}
    full = batch_eigenvalue(sign * lam, batch_size=total, dataset_size=math.inf, **noise)
    found = noise_free_eigenvalue(full, dataset_size=total, **noise)

    # near the threshold the inverse has a square root: rounding moves the spike by its root
    assert_allclose(found, sign * lam, rtol=1e-7)
    assert abs(found) <= abs(full)
    assert noise_free_eigenvalue(full, dataset_size=math.inf, **noise) == full


def test_composition_from_the_true_spike() -> None:
    """Theorem 4 at 1/B from the spike, whatever the data set carries; below its threshold the edge of 1/B."""
    noise: dict[str, Any] = {"sigma": 0.3, "dim": 400}
    batches = [1500, 300, 40, 3]
    full = batch_eigenvalue([2.0, -2.0], batch_size=1500, dataset_size=math.inf, **noise)[:, None]
    found = composed_batch_eigenvalue(full, batch_size=batches, dataset_size=1500, **noise)
    exact = batch_eigenvalue([[2.0], [-2.0]], batch_size=batches, dataset_size=math.inf, **noise)

    assert_allclose(found, exact, rtol=1e-13)
    assert_array_equal(found[:, 0], full[:, 0])
    direct = batch_eigenvalue(full, batch_size=batches, dataset_size=1500, **noise)
    assert np.all(np.abs(direct[:, 1:3]) < np.abs(found[:, 1:3]))


@pytest.mark.parametrize(
    ("share", "full", "mean", "error"), [(0.2, 1.2, 1.8070, 0.0049), (0.02, 1.02, 1.8085, 0.0037)]
)
def test_composition_measured_in_simulation(share: float, full: float, mean: float, error: float) -> None:
    """P = 400, P sigma^2/N = share, P sigma^2/B = 0.8, spike 1 (recorded once): 1.8, not Theorem 4 from lambda_1."""
    sizes: dict[str, Any] = {"batch_size": 400 / 0.8, "dataset_size": 400 / share}
    composed = composed_batch_eigenvalue(full, sigma=1.0, dim=400, **sizes)
    direct = batch_eigenvalue(full, sigma=1.0, dim=400, **sizes)

    assert_allclose(composed, 1.8, rtol=1e-12)
    assert abs(composed - mean) < 3 * error < 6 * error < mean - direct


def test_an_eigenvalue_in_the_bulk_of_its_own_noise_is_refused() -> None:
    noise: dict[str, Any] = {"sigma": 0.5, "dim": 16}
    edge = 2 * 0.5 * 4 / 10  # 2 sigma sqrt(P/N), N = 100
    assert noise_free_eigenvalue([edge, -edge], dataset_size=100, **noise).tolist() == [edge / 2, -edge / 2]
    message = r"eigenvalue must be at least 2 sigma sqrt\(dim/dataset_size\), got"
    for weak in (0.999 * edge, -0.5 * edge, 0.0, [5.0, 0.1]):
        with pytest.raises(ValueError, match=message):
            noise_free_eigenvalue(weak, dataset_size=100, **noise)
        with pytest.raises(ValueError, match=message):
            composed_batch_eigenvalue(weak, batch_size=10, dataset_size=100, **noise)
    assert noise_free_eigenvalue(0, sigma=0, dim=1, dataset_size=1) == 0.0
    assert noise_free_eigenvalue([], sigma=0, dim=1, dataset_size=1).shape == (0,)
    assert composed_batch_eigenvalue(0, sigma=1, dim=9, batch_size=4, dataset_size=math.inf) == 3.0


@pytest.mark.parametrize("batch", [10, 25, 60])
def test_ggn_factor_outlier_solves_the_determinant_equation_of_the_batch_noise(batch: int) -> None:
    """Spike lambda_1 - variance times z G (q G + (1 - q)/z) is 1 at the outlier."""
    q = 50 * (1 / batch - 1 / 500)
    z = batch_ggn_factor_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)
    g = MarchenkoPastur(q=q, variance=0.7).stieltjes(z)

    assert_allclose((9.0 - 0.7) * z * g * (q * g + (1 - q) / z), 1.0, rtol=1e-11)
    assert z > batch_ggn_eigenvalue(9.0, variance=0.7, dim=50, batch_size=batch, dataset_size=500)


def test_ggn_factor_values_measured_in_simulation() -> None:
    """Population of 5000 g ~ N(0, 4 u u^T + 1) in 250 dimensions, full eigenvalue 5.04: recorded once."""
    measured = {25: (17.44, 0.20), 60: (10.15, 0.16), 250: (6.12, 0.12), 1000: (5.181, 0.043)}
    for batch, (mean, error) in measured.items():
        top = batch_ggn_factor_eigenvalue(5.044, variance=1.0, dim=250, batch_size=batch, dataset_size=5000)
        assert abs(top - mean) < 3 * error
    weak = batch_ggn_factor_eigenvalue(0.4, variance=0.3, dim=400, **SIZES)
    assert_allclose(weak, 0.3 * (1 + math.sqrt(400 * (1 / 20 - 1 / 100))) ** 2, rtol=1e-13)


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


@pytest.mark.parametrize(("lam", "sigma", "dim"), [(0.7, 0.13, 300), (23.0, 4.1, 7)])
def test_the_eigenvalue_falls_as_a_root_up_to_the_crossover_and_is_convex_throughout(
    lam: float, sigma: float, dim: int
) -> None:
    crossover = dim * (sigma / lam) ** 2
    b = crossover * np.linspace(0.05, 4.0, 80)
    values = batch_eigenvalue(lam, sigma=sigma, dim=dim, batch_size=b, dataset_size=math.inf)
    below = b < crossover
    assert_allclose(values[below] * np.sqrt(b[below]), 2 * math.sqrt(dim) * sigma)
    assert (np.diff(values, 2) > 1e-5 * values[1:-1]).all()
