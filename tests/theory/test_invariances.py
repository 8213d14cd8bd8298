"""What a change of unit, sign, order or origin leaves as it is: outliers, rates, softmax, laws, kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.theory.fuzz.strategies import ANY_SIZE, FEW, SOME_SIZE, probability
from theory import batch_hessian, fisher, gauss_newton, learning_rates, outliers, rmt, softmax
from theory.activations import gaussian as gaussian_kernels

powers = st.integers(-900, 900).map(lambda n: 2.0**n)  # exact in binary: relations hold to the last digit


def fields(value: Any) -> list[Any]:
    return [vars(value)[name] for name in ("eigenvalue", "overlap", "threshold", "edge", "visible")]


@pytest.mark.parametrize("name", ["additive_wishart", "information_plus_noise", "spiked_covariance"])
@FEW
@given(c=powers, spike=SOME_SIZE, q=SOME_SIZE, variance=SOME_SIZE)
def test_outliers_scale_with_spike_and_variance(
    name: str, c: float, spike: float, q: float, variance: float
) -> None:
    model = getattr(outliers, name)
    one, other = model(spike, q=q, variance=variance), model(c * spike, q=q, variance=c * variance)

    assert_array_equal(
        fields(other), [c * one.eigenvalue, one.overlap, c * one.threshold, c * one.edge, one.visible]
    )


@FEW
@given(c=powers, spike=st.integers(-80, 80).map(lambda k: k / 16), sigma=SOME_SIZE)
def test_wigner_outliers_scale_and_mirror(c: float, spike: float, sigma: float) -> None:
    one, other = (
        outliers.additive_wigner(spike, sigma=sigma),
        outliers.additive_wigner(-c * spike, sigma=c * sigma),
    )
    sign = -c if spike else c

    assert_array_equal(
        fields(other),
        [sign * one.eigenvalue, one.overlap, sign * one.threshold, sign * one.edge, one.visible],
    )


@FEW
@given(
    c=powers,
    eigenvalue=SOME_SIZE,
    sigma=SOME_SIZE,
    dim=st.integers(1, 500),
    batch_size=st.floats(1, 50),
    dataset_size=st.sampled_from([50.0, 1e4, math.inf]),
)
def test_batch_eigenvalues_have_the_unit_of_the_hessian(
    c: float, eigenvalue: float, sigma: float, **size: Any
) -> None:
    value = batch_hessian.batch_eigenvalue(eigenvalue, sigma=sigma, **size)
    ggn = batch_hessian.batch_ggn_eigenvalue(eigenvalue, variance=sigma, **size)
    limit = learning_rates.sgd_limit(eigenvalue, sigma=sigma, **size)

    assert batch_hessian.batch_eigenvalue(c * eigenvalue, sigma=c * sigma, **size) == c * value
    assert batch_hessian.batch_ggn_eigenvalue(c * eigenvalue, variance=c * sigma, **size) == c * ggn
    assert learning_rates.sgd_limit(c * eigenvalue, sigma=c * sigma, **size) == limit / c
    overlap = batch_hessian.batch_overlap(c * eigenvalue, sigma=c * sigma, **size)
    assert overlap == batch_hessian.batch_overlap(eigenvalue, sigma=sigma, **size)


@FEW
@given(eigenvalue=SOME_SIZE, sigma=ANY_SIZE, dim=st.integers(1, 500), size=ANY_SIZE)
def test_a_full_batch_has_no_noise(eigenvalue: float, sigma: float, dim: int, size: float) -> None:
    full = {"batch_size": size, "dataset_size": size}

    assert batch_hessian.batch_eigenvalue(eigenvalue, sigma=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.batch_overlap(eigenvalue, sigma=sigma, dim=dim, **full) == 1
    assert batch_hessian.batch_ggn_eigenvalue(eigenvalue, variance=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.second_order_eigenvalue(eigenvalue, coefficient=sigma, **full) == eigenvalue
    assert batch_hessian.effective_batch_size(size, size) == math.inf
    assert_allclose(
        learning_rates.mean_square_limit(eigenvalue, noise=sigma, **full), 2 / eigenvalue, rtol=1e-15
    )


@FEW
@given(c=powers, largest=SOME_SIZE, share=st.floats(1e-3, 1))
def test_momentum_rates_scale_inversely(c: float, largest: float, share: float) -> None:
    for method in (learning_rates.heavy_ball, learning_rates.nesterov):
        rate, *rest = method(largest, share * largest)
        scaled, *same = method(4.0 * largest, 4.0 * share * largest)
        assert [4.0 * scaled, *same] == [rate, *rest]


@FEW
@given(p=probability(5), order=st.permutations(range(5)))
def test_softmax_functions_do_not_see_the_order_of_classes(p: Any, order: list[int]) -> None:
    mixed = p[order]

    assert_allclose(softmax.eigenvalues(mixed), softmax.eigenvalues(p), rtol=1e-13)
    assert_allclose(softmax.gamma(mixed), softmax.gamma(p), rtol=1e-13)
    assert_allclose(softmax.covariance(mixed), softmax.covariance(p)[np.ix_(order, order)], rtol=1e-13)
    assert_allclose(softmax.collapse_limit(mixed), softmax.collapse_limit(p), rtol=1e-13)


@FEW
@given(z=st.lists(st.integers(-40, 40), min_size=3, max_size=3), shift=st.integers(-1000, 1000), c=powers)
def test_gamma_sees_differences_of_logits_over_temperature(z: list[int], shift: int, c: float) -> None:
    value = softmax.gamma_from_logits(z)

    assert softmax.gamma_from_logits(np.add(z, shift)) == value
    assert softmax.gamma_from_logits(c * np.array(z), temperature=c) == value


@FEW
@given(c=powers, gamma=st.floats(1, 30), dim=st.integers(1, 900), sigma_c=SOME_SIZE, sigma_e=SOME_SIZE)
def test_excess_sees_the_ratio_of_scales(
    c: float, gamma: float, dim: int, sigma_c: float, sigma_e: float
) -> None:
    value = gauss_newton.expected_excess(gamma, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)

    assert gauss_newton.expected_excess(gamma, dim=dim, sigma_c=c * sigma_c, sigma_e=c * sigma_e) == value


@FEW
@given(
    n=st.integers(-400, 400),
    q=SOME_SIZE,
    x=st.lists(st.integers(-32, 128).map(lambda k: k / 16), min_size=2, max_size=5),
    u=st.floats(0, 1),
)
def test_laws_scale_with_their_variance(n: int, q: float, x: list[float], u: float) -> None:
    c, points = 4.0**n, np.sort(x)
    pairs_of_laws = [
        (rmt.MarchenkoPastur(q=q, variance=1.0), rmt.MarchenkoPastur(q=q, variance=c), c),
        (rmt.Semicircle(sigma=1.0), rmt.Semicircle(variance=c), 2.0**n),
    ]
    for unit, scaled, length in pairs_of_laws:
        cdf = unit.cdf(points)
        assert np.all(np.diff(cdf) >= 0)
        assert_allclose(scaled.cdf(length * points), cdf, rtol=1e-12, atol=1e-15)
        assert_allclose(cdf + unit.sf(points), 1.0, rtol=1e-12)
        assert_allclose(scaled.pdf(length * points) * length, unit.pdf(points), rtol=1e-12)
        assert_allclose(scaled.ppf(u), length * unit.ppf(u), rtol=1e-12)
        assert_allclose(scaled.stieltjes(1j * length) * length, unit.stieltjes(1j), rtol=1e-12)


@FEW
@given(c=powers.filter(lambda c: 1e-100 < c < 1e100), slope=st.floats(-2, 2), share=st.floats(-1, 1))
def test_rectifiers_are_homogeneous(c: float, slope: float, share: float) -> None:
    kernel = gaussian_kernels.PiecewiseLinear(slope)
    unit, scaled = (kernel.value(a, a * share, a * (1 - share)) for a in (1.0, c))

    assert_allclose(scaled, np.multiply(unit, c), rtol=1e-13)
    assert_allclose(
        kernel.derivative(c, c * share, c * (1 - share)), kernel.derivative(1.0, share, 1 - share)
    )


@FEW
@given(depth=st.integers(2, 5), ratio=st.floats(0.1, 10), weight_variance=st.floats(0.1, 4))
def test_kappas_do_not_see_the_unit_of_width(depth: int, ratio: float, weight_variance: float) -> None:
    setting = {"depth": depth, "weight_variance": weight_variance, "bias_variance": 0.1}
    unit = fisher.kappas("relu", **setting)
    wide = fisher.kappas("relu", **setting, width_ratios=[ratio] * depth)

    assert_allclose(wide, [unit.alpha * ratio**2, *(x / ratio for x in unit[1:])], rtol=1e-12)
