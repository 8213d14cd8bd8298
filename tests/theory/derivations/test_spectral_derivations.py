"""The symbolic results on spectra, sampling and descent, lambdified, against the numeric functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from theory import batch_hessian, learning_rates, outliers, rmt
from theory.derivations import descent, laws, spectra as spectral
from theory.derivations._symbolic import Derivation

SIGMA, BETA = 0.7, np.array([0.13, 1.0, 3.7, 40.0])
EXCESS = np.array([[1.003], [1.7], [30.0]])  # spike over threshold


def numeric(derivation: Derivation, *arguments: object) -> np.ndarray:
    return sympy.lambdify(derivation.symbols, derivation.expression, "numpy")(*arguments)


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
            law.stieltjes(z), numeric(laws.marchenko_pastur_transform(), z, beta, SIGMA), rtol=1e-11
        )
        assert_allclose(law.pdf(x), numeric(laws.marchenko_pastur_density(), x, beta, SIGMA), rtol=1e-12)


@pytest.mark.parametrize("rate", [0.03, 0.6, 1.0, 9.0])
def test_symmetric_directions(rate: float) -> None:
    law = rmt.CompoundFreePoisson(rate=rate, jumps=[1.3, -1.3])
    threshold = float(numeric(laws.symmetric_poisson_threshold(), rate, 1.3))
    spike = threshold * np.array([1.001, 2.5])
    top = outliers.additive(spike, law)

    assert_allclose(top.threshold, threshold, rtol=1e-13)
    assert_allclose(top.eigenvalue, numeric(laws.symmetric_poisson_outlier(), spike, rate, 1.3), rtol=1e-13)


def test_mean_without_replacement_is_the_fluctuation_of_a_data_set() -> None:
    values = np.array([0.3, -1.7, 2.9, 0.4, 5.1])
    for batch in range(1, 6):
        means = [np.mean(c) for c in itertools.combinations(values, batch)]
        found = float(numeric(descent.mean_without_replacement(), values.std(), batch, 5))
        size: dict[str, Any] = {"batch_size": batch, "dataset_size": 5}
        assert_allclose(np.var(means), found, rtol=1e-12, atol=1e-30)
        for exact in (
            batch_hessian.finite_population_fluctuation(variance=values.var(), **size),
            batch_hessian.element_fluctuation(variance=values.var(ddof=1), **size),
        ):
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


def test_theorem_4_exponent_is_the_slope_of_the_learning_rate() -> None:
    """Never above 1/2: 1/2 below the crossover P sigma^2/lambda^2 and falling above it."""

    def rate(b: np.ndarray) -> np.ndarray:
        return learning_rates.sgd_limit(1.7, sigma=0.2, dim=300, batch_size=b, dataset_size=math.inf)

    crossover = 300 * 0.2**2 / 1.7**2
    b = crossover * np.array([1e-3, 0.3, 0.99, 1.01, 3.0, 200.0])
    step = 1e-5
    slope = np.log(rate(b * (1 + step)) / rate(b * (1 - step))) / math.log((1 + step) / (1 - step))
    exact = np.where(b < crossover, 0.5, numeric(descent.theorem_4_exponent(), b, crossover))

    assert_allclose(slope, exact, rtol=1e-8)
    assert np.all(slope < 0.5 + 1e-9)


def radius(step: Callable[[float], np.ndarray], largest: float, smallest: float) -> float:
    """Largest spectral radius of one step over the spectrum."""
    return max(np.abs(np.linalg.eigvals(step(x))).max() for x in np.geomspace(smallest, largest, 60))


@pytest.mark.parametrize(("largest", "smallest"), [(10.0, 0.1), (100.0, 1.3), (0.7, 0.003)])
def test_momentum_rates_are_those_of_the_companion_matrix(largest: float, smallest: float) -> None:
    ball, nesterov = learning_rates.heavy_ball(largest, smallest), learning_rates.nesterov(largest, smallest)
    alpha, rho = (float(x) for x in ball[:2])

    def polyak(x: float, alpha: float = alpha, rho: float = rho) -> np.ndarray:
        return np.array([[1 + rho - alpha * x, -rho], [1.0, 0.0]])

    assert_allclose(alpha, numeric(descent.heavy_ball_rate(), largest, smallest), rtol=1e-14)
    assert_allclose(
        nesterov.contraction, numeric(descent.slowest_nesterov_mode(), largest, smallest), rtol=1e-13
    )
    # a double root moves like the root of the rounding error
    assert_allclose(radius(polyak, largest, smallest), ball.contraction, rtol=1e-6)
    best = radius(polyak, largest, smallest)
    for other in (
        (1.05 * alpha, rho),
        (0.95 * alpha, rho),
        (alpha, 0.95 * rho),
        (alpha, min(1.02 * rho, 1.0)),
    ):
        assert radius(lambda x, o=other: polyak(x, *o), largest, smallest) > best * (1 + 1e-4)
