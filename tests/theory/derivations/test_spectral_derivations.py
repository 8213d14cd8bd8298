"""The symbolic results on spectra, sampling and descent, lambdified, against the numeric functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.theory.derivations.test_derivations import numeric
from theory import batch_hessian, learning_rates, outliers, rmt
from theory.derivations import descent, spectra as spectral

SIGMA, BETA = 0.7, np.array([0.13, 1.0, 3.7, 40.0])
EXCESS = np.array([[1.003], [1.7], [30.0]])  # spike over threshold


def test_wigner_outlier_and_its_inverse() -> None:
    spike = np.array([0.71, 0.9, 5.3])
    found = numeric(spectral.wigner_outlier(), spike, SIGMA)

    assert_allclose(found, outliers.additive_wigner(spike, sigma=SIGMA).eigenvalue, rtol=1e-14)
    assert_allclose(numeric(spectral.noise_free_spike(), found, SIGMA), spike, rtol=1e-7)
    assert_allclose(
        numeric(spectral.noise_free_spike(), found, SIGMA),
        batch_hessian.noise_free_eigenvalue(found, sigma=SIGMA / 3, dim=90, dataset_size=10),
        rtol=1e-7,
    )


def test_wishart_threshold_outlier_and_overlap() -> None:
    threshold = numeric(spectral.wishart_threshold(), BETA, SIGMA)
    spike = EXCESS * threshold
    top = outliers.additive_wishart(spike, q=BETA, variance=SIGMA**2)

    assert_allclose(top.threshold, np.broadcast_to(threshold, spike.shape), rtol=1e-14)
    assert_allclose(top.eigenvalue, numeric(spectral.wishart_outlier(), spike, BETA, SIGMA), rtol=1e-12)
    assert_allclose(top.overlap, numeric(spectral.additive_overlap(), spike, BETA, SIGMA), rtol=1e-9)


def test_information_plus_noise_outlier_and_overlap() -> None:
    spike = EXCESS * np.sqrt(BETA) * SIGMA**2
    top = outliers.information_plus_noise(spike, q=BETA, variance=SIGMA**2)
    overlap = numeric(spectral.information_plus_noise_overlap(), spike, BETA, SIGMA)

    assert_allclose(
        top.eigenvalue, numeric(spectral.information_plus_noise_outlier(), spike, BETA, SIGMA), rtol=1e-12
    )
    assert_allclose(top.overlap, overlap, rtol=1e-10)


def test_gap_is_that_of_every_model() -> None:
    t_c = np.sqrt(BETA) * SIGMA**2
    t = EXCESS * t_c
    gap = numeric(spectral.outlier_gap(), t, t_c)
    for top in (
        outliers.additive_wishart(t + BETA * SIGMA**2, q=BETA, variance=SIGMA**2),
        outliers.information_plus_noise(t, q=BETA, variance=SIGMA**2),
        outliers.additive_wigner(t, sigma=t_c),
    ):
        assert_allclose(top.eigenvalue - top.edge, gap, rtol=1e-9, atol=1e-14 * BETA.max())


def test_marchenko_pastur_transform_and_density() -> None:
    for beta in BETA:
        law = rmt.MarchenkoPastur(q=beta, variance=SIGMA**2)
        low, high = law.edges
        x = np.linspace(low, high, 9)[1:-1]
        z = high * np.array([1.001, 1.5, 40.0])
        assert_allclose(
            law.stieltjes(z), numeric(spectral.marchenko_pastur_transform(), z, beta, SIGMA), rtol=1e-11
        )
        assert_allclose(law.pdf(x), numeric(spectral.marchenko_pastur_density(), x, beta, SIGMA), rtol=1e-12)


@pytest.mark.parametrize("rate", [0.03, 0.6, 1.0, 9.0])
def test_symmetric_directions(rate: float) -> None:
    law = rmt.CompoundFreePoisson(rate=rate, jumps=[1.3, -1.3])
    threshold = float(numeric(spectral.symmetric_poisson_threshold(), rate, 1.3))
    spike = threshold * np.array([1.001, 2.5])
    top = outliers.additive(spike, law)

    assert_allclose(top.threshold, threshold, rtol=1e-13)
    assert_allclose(
        top.eigenvalue, numeric(spectral.symmetric_poisson_outlier(), spike, rate, 1.3), rtol=1e-13
    )


def test_mean_without_replacement_is_the_fluctuation_of_a_data_set() -> None:
    batch = np.arange(1, 6)
    found = numeric(descent.mean_without_replacement(), 0.7, batch, 5)
    exact = batch_hessian.finite_population_fluctuation(variance=0.49, batch_size=batch, dataset_size=5)
    assert_allclose(exact, found, rtol=1e-13, atol=1e-30)


def test_one_step_rate_is_the_mean_square_limit() -> None:
    b = np.array([0.3, 7.0, 900.0])
    found = numeric(descent.one_step_rate(), 1.7, 3.1, b)

    assert_allclose(
        found,
        learning_rates.mean_square_limit(1.7, noise=3.1, batch_size=b, dataset_size=math.inf),
        rtol=1e-14,
    )
    h = 0.5 + np.array([-1.0, 1.0]) * math.sqrt(3.1 / 7.0)  # two samples: mean square of one step by hand
    rate = float(numeric(descent.one_step_rate(), 0.5, 3.1, 7.0))
    assert_allclose(np.mean((1 - rate * h) ** 2), 1.0, rtol=1e-13)


def test_rates_of_momentum_and_the_exponent_of_theorem_4() -> None:
    ball, nesterov = (f(100.0, 1.3) for f in (learning_rates.heavy_ball, learning_rates.nesterov))
    assert_allclose(ball.learning_rate, numeric(descent.heavy_ball_rate(), 100.0, 1.3), rtol=1e-14)
    assert_allclose(nesterov.contraction, numeric(descent.slowest_nesterov_mode(), 100.0, 1.3), rtol=1e-13)
    crossover = 300 * 0.2**2 / 1.7**2
    b = crossover * np.array([1.01, 3.0, 200.0])
    found = learning_rates.sgd_exponent(1.7, sigma=0.2, dim=300, batch_size=b, dataset_size=math.inf)
    assert_allclose(found, numeric(descent.theorem_4_exponent(), b, crossover), rtol=1e-12)
