"""The etas of layer normalisation: correlated chi-squares, their tail, and what they obey in every network."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

from theory.fisher.layer_normalisation import expected_etas, inverse_variance_cdf

RELU = {"activation": "relu", "depth": 3, "weight_variance": 2.0, "bias_variance": 0.3}


def by_mixture(a: float, x: float) -> tuple[float, float]:
    """Factors of pairs of samples, without and with their squared cosine, from independent chi-squares."""
    k = np.arange(200_000)
    weights = np.cumprod(np.append(1.0, x * (a + k[:-1]) / (1 + k[:-1]))) * (1 - x) ** a
    pairs = weights * ((a - 1) / (1 - x) / (a + k - 1)) ** 2
    return float(pairs.sum()), float((pairs * (k + 0.5) / (k + a)).sum())


@pytest.mark.parametrize("outputs", [6, 7, 12, 40])
@pytest.mark.parametrize("bias", [0.0, 0.4, 8.0])
def test_expected_etas_are_those_of_correlated_chi_squares(outputs: int, bias: float) -> None:
    """A linear network: its outputs have variance w + b and covariance b (w/(w + b) + 1)."""
    w, samples = 1.5, 7
    found = expected_etas(
        "linear", depth=2, samples=samples, outputs=outputs, weight_variance=w, bias_variance=bias
    )
    q = w + bias
    c = bias * (w / q + 1) / q
    one = outputs / (outputs - 3) / q
    own = one**2 * (outputs - 3) / (outputs - 5)
    pairs = by_mixture((outputs - 1) / 2, c * c)
    squares = [own / samples + (1 - 1 / samples) * one**2 * pair for pair in pairs]
    assert_allclose(found, [one, own, *squares], rtol=1e-11)


def test_expected_etas_of_identical_samples_are_those_of_one() -> None:
    found = expected_etas("relu", depth=3, samples=9, outputs=8, weight_variance=0.0, bias_variance=0.5)
    assert_allclose(found[1:], [found.eta2] * 3, rtol=1e-12)
    single = expected_etas("relu", depth=3, samples=1, outputs=8, weight_variance=2.0, bias_variance=0.5)
    assert_allclose(single[1:], [single.eta2] * 3, rtol=1e-12)


def test_heavy_tails_have_no_expectation() -> None:
    found = {c: expected_etas(**RELU, samples=50, outputs=c) for c in (1, 2, 3, 4, 5, 6)}
    assert [math.isinf(found[c].eta1) for c in found] == [True] * 3 + [False] * 3
    assert all(math.isinf(x) for c in (3, 4, 5) for x in found[c][1:])
    assert all(map(math.isfinite, found[6]))


def test_many_outputs_make_the_etas_constant() -> None:
    found = expected_etas(**RELU, samples=50, outputs=10**9)
    assert found.eta1_squared / found.eta1**2 - 1 == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("outputs", [2, 3, 6])
def test_distribution_of_the_inverse_variance_by_drawing_outputs(outputs: int) -> None:
    """Outputs less their mean, of variance w + b: the normalised units below them have mean square 1."""
    w, b = 1.5, 0.4
    drawn = math.sqrt(w + b) * np.random.default_rng(7).standard_normal((20_000, outputs))
    inverse = 1 / drawn.var(axis=1)
    at = np.quantile(inverse, [0.05, 0.3, 0.6, 0.9, 0.99])
    found = inverse_variance_cdf(at, "linear", depth=2, outputs=outputs, weight_variance=w, bias_variance=b)
    assert_allclose(found, [0.05, 0.3, 0.6, 0.9, 0.99], atol=0.012)


def test_distribution_of_the_inverse_variance_has_the_expected_mean_and_tail() -> None:
    def above(y: float, outputs: int) -> float:
        return 1 - float(inverse_variance_cdf(y, **RELU, outputs=outputs))

    mean = integrate.quad(above, 0, 1, args=(9,))[0] + integrate.quad(above, 1, np.inf, args=(9,))[0]
    assert mean == pytest.approx(expected_etas(**RELU, samples=1, outputs=9).eta1, rel=1e-7)
    for outputs in (2, 3, 5):
        ratio = above(2e4, outputs) / above(1e4, outputs)
        assert math.log2(ratio) == pytest.approx(-(outputs - 1) / 2, abs=1e-3)
    assert_allclose(inverse_variance_cdf([-1.0, 0.0, np.inf], **RELU, outputs=4), [0, 0, 1])
    tiny = {"depth": 2, "weight_variance": 1e-310, "bias_variance": 0.0}
    assert inverse_variance_cdf(np.inf, "relu", **tiny, outputs=4) == 1
