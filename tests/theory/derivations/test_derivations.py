"""The symbolic results, lambdified, against the numeric functions and against dense matrices."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from theory import derivations, gauss_newton, softmax, zone
from theory.derivations import (
    descent as descent_derivations,
    spectra as spectral_derivations,
    wide as wide_derivations,
    zone as zone_derivations,
)
from theory.derivations._symbolic import require_zero


def numeric(derivation: derivations.Derivation, *arguments: object) -> np.ndarray:
    return sympy.lambdify(derivation.symbols, derivation.expression, "numpy")(*arguments)


def test_moment_form_is_gamma_squared() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(12), size=100)
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
    w = np.random.default_rng(1).uniform(size=(20, 6))
    found = numeric(derivations.collapse_limit_weighted(), (w**2).sum(axis=-1) / w.sum(axis=-1) ** 2)

    assert_allclose(found, softmax.collapse_limit(w) ** 2, rtol=1e-14)


def test_expected_excess_is_the_numeric_function() -> None:
    rng = np.random.default_rng(2)
    d, c, e, g = rng.integers(10, 500, 50), *rng.uniform(0.1, 5.0, (2, 50)), rng.uniform(1, 3, 50)
    found = numeric(derivations.excess_of_expectation(), d, c, e, g)

    assert_allclose(found, gauss_newton.expected_excess(g, dim=d, sigma_c=c, sigma_e=e), rtol=1e-14)


def test_finite_sample_excess_is_the_numeric_function() -> None:
    rng = np.random.default_rng(3)
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


def test_every_derivation_is_listed_under_its_name_with_its_steps() -> None:
    found = derivations.every_derivation()

    modules = (
        *(derivations, spectral_derivations, descent_derivations),
        *(wide_derivations, zone_derivations),
    )
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    names = [d.name for d in found]
    assert len(set(names)) == len(names) and set(names) == public.keys() - {"Derivation", "every_derivation"}
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
