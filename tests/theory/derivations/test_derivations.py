"""The symbolic results, lambdified, against the numeric functions and against dense matrices."""

import math

import numpy as np
import pytest
import sympy
from numpy.random import default_rng
from numpy.testing import assert_allclose

from tests.interpreters import fresh
from theory import (
    batch_hessian,
    criticality,
    derivations,
    fisher,
    gauss_newton,
    learning_rates,
    linear_network,
    outliers,
    rmt,
    softmax,
    zone,
)
from theory.activations import erf, gaussian_kernels, relu
from theory.derivations import (
    descent,
    descent as descent_derivations,
    spectra as spectral,
    spectra as spectral_derivations,
    wide,
    wide as wide_derivations,
    zone as zone_derivations,
)
from theory.derivations._symbolic import require_zero


def numeric(derivation: derivations.Derivation, *arguments: object) -> np.ndarray:
    return sympy.lambdify(derivation.symbols, derivation.expression, "numpy")(*arguments)


def test_moment_form_is_gamma_squared() -> None:
    p = default_rng(0).dirichlet(np.ones(12), size=100)
    found = numeric(derivations.gamma_squared_of_moments(), (p**2).sum(axis=-1), (p**3).sum(axis=-1))

    assert_allclose(found, softmax.gamma(p) ** 2, rtol=1e-12)


@pytest.mark.parametrize("members", [2, 3, 7, 10])
@pytest.mark.parametrize("share", [1e-12, 0.01, 0.5, 1.0])
def test_equal_entries_are_gamma_squared_for_any_size(members: int, share: float) -> None:
    eps = share / members
    p = np.array([1 - (members - 1) * eps, *[eps] * (members - 1), 0.0])
    found = numeric(derivations.gamma_squared_equal(), members, eps)

    assert_allclose(found, softmax.gamma(p) ** 2, rtol=1e-13)


@pytest.mark.parametrize("members", [2, 3, 7, 12])
def test_equal_collapse_is_the_collapse_limit(members: int) -> None:
    found = numeric(derivations.collapse_limit_equal(), members)

    assert_allclose(found, softmax.collapse_limit(np.ones(members - 1)) ** 2, rtol=1e-15)


def test_weighted_collapse_is_the_collapse_limit() -> None:
    w = default_rng(1).uniform(size=(20, 6))
    found = numeric(derivations.collapse_limit_weighted(), (w**2).sum(axis=-1) / w.sum(axis=-1) ** 2)

    assert_allclose(found, softmax.collapse_limit(w) ** 2, rtol=1e-14)


def test_expected_excess_is_the_numeric_function() -> None:
    rng = default_rng(2)
    d, c, e, g = rng.integers(10, 500, 50), *rng.uniform(0.1, 5.0, (2, 50)), rng.uniform(1, 3, 50)
    found = numeric(derivations.excess_of_expectation(), d, c, e, g)

    assert_allclose(found, gauss_newton.expected_excess(g, dim=d, sigma_c=c, sigma_e=e), rtol=1e-14)


def test_finite_sample_excess_is_the_numeric_function() -> None:
    rng = default_rng(3)
    d, c, e = rng.integers(2, 500, 50), *rng.uniform(0.1, 5.0, (2, 50))
    mean = rng.uniform(1, 3, 50)
    own = mean * rng.uniform(1, 20, 50)
    found = numeric(zone_derivations.excess_of_samples(), d, c, e, mean, own)

    expected = gauss_newton.finite_sample_excess(mean, own, dim=d, sigma_c=c, sigma_e=e)
    assert_allclose(found, expected, rtol=1e-14)


def test_haar_second_moment_is_the_numeric_function() -> None:
    t, f = np.array([[1.5], [-0.3], [0.0]]), np.array([2.0, 1.0])
    found = numeric(zone_derivations.haar_second_moment(), 7, 30, f, t)

    assert_allclose(found, gauss_newton.haar_moments(t, f, dim=7, parameters=30).squared_norm, rtol=1e-14)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_scaling_laws_are_the_numeric_functions(depth: int) -> None:
    found = numeric(zone_derivations.scale_of_equal_norms(), 7.0, 0.3, depth)
    assert_allclose(zone.lower_edge(7.0, 0.3, depth=depth), found, rtol=1e-15)

    found = numeric(zone_derivations.mean_near_tie(), 0.4, 6.0, depth, 1.7)
    weight = zone.near_tie_weight(6.0, gap_density=0.4, depth=depth, temperature=1.7)
    assert_allclose(weight, found, rtol=1e-15)

    G, H = derivations.scaling_exponents().symbols[3:]
    factors = zone.curvature_factors(1.3, depth=depth, temperature=1.7)
    alpha, T, L = derivations.scaling_exponents().symbols[:3]
    scaled = derivations.scaling_exponents().expression.subs({alpha: 1.3, T: 1.7, L: depth})
    assert_allclose(factors, [float(scaled.coeff(part)) for part in (G, H)], rtol=1e-14)


@pytest.mark.parametrize("members", [2, 3, 7])
def test_equal_tail_spectrum_is_the_numeric_function(members: int) -> None:
    found = numeric(zone_derivations.equal_tail_eigenvalue(), members, 0.05)

    expected = softmax.equal_tail_eigenvalues(0.05, members=members, classes=9)[0]
    assert_allclose(found, expected, rtol=1e-15)


def test_a_wrong_pairing_stops_the_derivation() -> None:
    symbols = d, c, e, t, mixed, own = sympy.symbols("d c e t m q", positive=True)
    s = c**2 + e**2
    wrong = d * (s**2 * t**2 + d * (c**4 * mixed + (s**2 - c**4) * own))  # d for d + 1

    with pytest.raises(ArithmeticError, match="derivation fails at squared norm, d = 1"):
        zone_derivations._check_wick(wrong, symbols)


@pytest.mark.slow
def test_every_derivation_is_listed_under_its_name_with_its_steps() -> None:
    found = derivations.every_derivation()

    modules = (
        *(derivations, spectral_derivations, descent_derivations),
        *(wide_derivations, zone_derivations),
    )
    public = {
        name: made
        for module in modules
        for name, made in vars(module).items()
        if getattr(made, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    names = [d.name for d in found]
    assert len(set(names)) == len(names) and set(names) == public.keys() - {"every_derivation"}
    for d in found:
        assert public[d.name]() == d
        assert d.expression.free_symbols == set(d.symbols)
        assert len(d.steps) >= 3 and all(text.strip() for text in (*d.steps, d.statement))


def test_a_wrong_step_stops_the_derivation() -> None:
    x = sympy.Symbol("x")

    require_zero((x + 1) ** 2 - x**2 - 2 * x - 1, "binomial")
    with pytest.raises(ArithmeticError, match="derivation fails at binomial: sides differ by"):
        require_zero((x + 1) ** 2 - x**2 - 1, "binomial")


def test_import_leaves_sympy_alone() -> None:
    code = (
        "import sys, theory.derivations, theory.softmax, theory.gauss_newton; print('sympy' in sys.modules)"
    )
    assert fresh(code).strip() == "False"


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


@pytest.mark.parametrize("angle", [0.03, 0.9, math.pi / 2, 2.8])
def test_arccosine_kernels_are_those_of_relu(angle: float) -> None:
    a = 1.7
    kernels, pair = gaussian_kernels(relu), (a, a * math.cos(angle), a * (1 - math.cos(angle)))

    assert_allclose(kernels.value(*pair).overlap, numeric(wide.arccosine_kernel(), a, angle), rtol=1e-11)
    assert_allclose(
        kernels.derivative(*pair).overlap, numeric(wide.arccosine_slope_kernel(), angle), rtol=1e-11
    )


def test_erf_kernel() -> None:
    found = gaussian_kernels(erf).value(1.3, 0.4, 0.9).overlap
    assert_allclose(found, sympy.lambdify(wide.erf_kernel().symbols, wide.erf_kernel().expression)(1.3, 0.4))


def test_fixed_point_of_relu() -> None:
    found = criticality.variance_fixed_point("relu", weight_variance=1.3, bias_variance=0.4)
    assert_allclose(found, numeric(wide.relu_fixed_point(), 1.3, 0.4), rtol=1e-14)


@pytest.mark.parametrize("distance", [1e-6, 1e-3])
def test_correlations_of_critical_relu_join_by_a_power(distance: float) -> None:
    gap = gaussian_kernels(relu).value(2.0, 2.0 * (1 - distance), 2.0 * distance).gap
    assert_allclose(gap, numeric(wide.relu_correlation_map(), distance), rtol=distance**1.5)


each_depth = pytest.mark.parametrize("depth", [2, 3, 9])


@each_depth
def test_constant_of_critical_relu(depth: int) -> None:
    kappas = fisher.kappas("relu", depth=depth, weight_variance=2.0, bias_variance=0.0)
    assert_allclose(kappas.kappa1, numeric(wide.critical_relu_kappa(), depth), rtol=1e-14)


def test_normalisation_leaves_two_directions_less() -> None:
    rank = wide.normalisation_rank()
    assert rank.expression.subs(rank.symbols[0], 6) == fisher.layer_norm_rank(6)


@each_depth
def test_constants_of_linear_networks(depth: int) -> None:
    found = fisher.fluctuation_constants(
        "linear", depth=depth, outputs=1, weight_variance=1.3, bias_variance=0.4
    )

    assert_allclose(found.c1, numeric(wide.linear_lower_constant(), 1.3, depth), rtol=1e-13)
    assert_allclose(found.c2, numeric(wide.linear_fluctuations(), 1.3, depth), rtol=1e-13)


def test_edge_is_the_minimum_of_the_derived_function() -> None:
    w = np.linspace(0.01, 1 / (1 + math.sqrt(0.6)), 20001)
    edge = linear_network.linear_network_edge(0.8, weight_variance=1.0, width_ratios=[1.0, 0.6])
    assert_allclose(edge, numeric(wide.linear_edge(), w, 0.8, 0.6).min(), rtol=1e-8)
