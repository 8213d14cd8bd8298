"""Layer normalisation: dense matrices of projectors, naive recursions at high precision, sums and integrals."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import integrate

from theory import fisher
from theory.activations import Activation
from theory.fisher.layer_normalisation import (
    expected_etas,
    inverse_variance_cdf,
    layer_norm_kappas,
    layer_norm_largest,
    layer_norm_rank,
    layer_norm_rayleigh,
    layer_norm_statistics,
    realised_etas,
)

SETTINGS = {
    "relu": {"depth": 3, "weight_variance": 2.0, "bias_variance": 0.3},
    "tanh": {"depth": 2, "weight_variance": 1.7, "bias_variance": 0.0},
    "erf": {"depth": 4, "weight_variance": 0.8, "bias_variance": 2.1},
}
ETAS = {"eta1": 1.2, "eta2": 1.9, "eta3": 0.8}
RELU = {"activation": "relu", **SETTINGS["relu"]}


def drawn(samples: int, outputs: int, seed: int = 0) -> np.ndarray:
    rng = default_rng(seed)
    return rng.standard_normal((samples, outputs)) + rng.standard_normal(outputs)


def blocks(u: np.ndarray, kappa1: float, kappa2: float) -> np.ndarray:
    """Blocks kappa_st P(s) P(t) / sigma(s) sigma(t), one by one."""
    c = u.shape[1]
    deviation = u.std(axis=1)
    f = (u - u.mean(axis=1, keepdims=True)) / deviation[:, None]
    p = [(np.eye(c) - 1 / c - np.outer(x, x) / c) / s for x, s in zip(f, deviation, strict=True)]
    rows = [[(kappa1 if s == t else kappa2) * p[s] @ p[t] for t in range(len(u))] for s in range(len(u))]
    return np.block(rows)


# ------------------------------------------------------------------------------------------- kappas


def naive_kappas(depth: int, weight: float, bias: float, digits: int) -> list[float]:
    """kappa1', kappa2' and their difference for erf, straight from the definitions."""
    with mp.workdps(digits):
        w, b, one = mp.mpf(weight), mp.mpf(bias), mp.mpf(1)

        def value(c: Any) -> Any:
            return 2 / mp.pi * mp.asin(2 * c / 3)

        def slope(c: Any) -> Any:
            return 4 / mp.pi / mp.sqrt(9 - 4 * c * c)

        hats, factors = [(one, 0 * one)], []
        for _ in range(depth - 1):
            q, shared = (w * x + b for x in hats[-1])
            hats.append((value(one), value(shared / q)))
            factors.append((w / q * slope(one), w / q * slope(shared / q)))
        tilde, total = [one, one], [mp.mpf(0), mp.mpf(0)]
        for layer in reversed(range(depth)):
            total = [s + t * h for s, t, h in zip(total, tilde, hats[layer], strict=True)]
            if layer:
                tilde = [t * g for t, g in zip(tilde, factors[layer - 1], strict=True)]
        first, second = (x / (depth - 1) for x in total)
        return [float(first), float(second), float(first - second)]


@pytest.mark.parametrize(
    ("depth", "weight", "bias"), [(2, 1.7, 0.0), (4, 0.8, 2.1), (60, 0.6, 0.9), (80, 3.0, 0.2)]
)
def test_kappas_follow_the_recursion_of_unit_variance(depth: int, weight: float, bias: float) -> None:
    found = layer_norm_kappas("erf", depth=depth, weight_variance=weight, bias_variance=bias)
    assert_allclose(found[1:], naive_kappas(depth, weight, bias, 200), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 0.3, 1e300])
@pytest.mark.parametrize("name", SETTINGS)
def test_only_the_ratio_of_the_variances_matters(name: str, factor: float) -> None:
    s = SETTINGS[name]
    scaled = {k: s[k] * factor for k in ("weight_variance", "bias_variance")}
    assert_allclose(
        layer_norm_kappas(name, depth=s["depth"], **scaled), layer_norm_kappas(name, **s), rtol=1e-12
    )


def test_without_weights_all_inputs_look_alike() -> None:
    found = layer_norm_kappas("relu", depth=3, weight_variance=0.0, bias_variance=0.7)
    assert_allclose(found, [2.0, 0.25, 0.25, 0.0])


# --------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("samples", "outputs"), [(1, 3), (2, 3), (5, 4), (7, 6), (30, 5), (3, 10)])
def test_statistics_are_those_of_the_dense_blocks(name: str, samples: int, outputs: int) -> None:
    u = drawn(samples, outputs)
    k = layer_norm_kappas(name, **SETTINGS[name])
    values = np.linalg.eigvalsh(blocks(u, k.kappa1, k.kappa2)) * k.alpha * 50 / samples
    etas = realised_etas(u)._asdict()
    size = {"width": 50, "samples": samples, "outputs": outputs}
    found = layer_norm_statistics(name, **SETTINGS[name], **size, **etas)
    count = k.alpha * 50**2
    bounds = [(values**2).sum() / values.sum(), math.sqrt((values**2).sum())]
    assert_allclose(found, [values.sum() / count, (values**2).sum() / count, *bounds], rtol=1e-12)
    largest = layer_norm_largest(name, u, **SETTINGS[name], width=50)
    assert largest == pytest.approx(values[-1], rel=1e-12)
    assert found.lower <= largest * (1 + 1e-12) <= found.upper * (1 + 2e-12)
    assert (values > 1e-9 * values[-1]).sum() <= samples * (outputs - 2)


def test_finite_width_adds_the_biases_and_counts_the_parameters() -> None:
    size = {"width": 50, "samples": 4, "outputs": 5, **ETAS}
    one = layer_norm_statistics(**RELU, **size)
    found = layer_norm_statistics(**RELU, **size, finite_width=True)
    k = layer_norm_kappas(**RELU)
    back2 = 2.0 / (2.0 * 0.5 + 0.3) / 2
    biases = 1 + back2 + back2 * 2.0 / 2.3 / 2
    count = fisher.parameter_count(depth=3, width=50, outputs=5)
    trace = 3 * 1.2 * (k.alpha * 50 * k.kappa1 + biases)
    assert found.mean == pytest.approx(trace / count, rel=1e-13)
    assert one.mean == pytest.approx(3 * 1.2 * k.kappa1 / 50, rel=1e-13)
    assert found.lower == pytest.approx(found.second_moment / found.mean, rel=1e-13)


def test_rayleigh_quotients_by_the_dense_blocks() -> None:
    u = drawn(6, 4)
    k = layer_norm_kappas(**RELU)
    dense = blocks(u, k.kappa1, k.kappa2).reshape(6, 4, 6, 4)
    units = blocks(u, 0.0, 1.0).reshape(6, 4, 6, 4)
    overlap = np.einsum("skuk->", units) / 36
    size = {"width": 50, "samples": 6, "outputs": 4, "eta1": realised_etas(u).eta1, "overlap": overlap}
    found = layer_norm_rayleigh(**RELU, **size)
    assert found == pytest.approx(k.alpha * 50 * np.einsum("skuk->", dense) / 36, rel=1e-12)
    more = layer_norm_rayleigh(**RELU, **size, finite_width=True)
    assert found * 1.001 < more < found * 1.1
    assert layer_norm_rayleigh(**RELU, **{**size, "outputs": 2}) == 0.0


@pytest.mark.parametrize("outputs", [1, 2])
def test_one_or_two_outputs_leave_nothing(outputs: int) -> None:
    size = {"width": 50, "samples": 4, "outputs": outputs}
    assert layer_norm_statistics(**RELU, **size, **ETAS) == (0.0, 0.0, 0.0, 0.0)
    found = layer_norm_statistics(**RELU, **size, **{**ETAS, "eta1": [1.0, 2.0]})
    assert_allclose(found, np.zeros((4, 2)))
    assert layer_norm_largest("relu", drawn(3, outputs), **SETTINGS["relu"], width=50) == 0.0


# ----------------------------------------------------------------------------------------- refusals


def test_a_constant_layer_cannot_be_normalised() -> None:
    """Without biases, an activation that is 0 everywhere leaves the layer above no variance."""
    zero = Activation("zero", np.zeros_like, np.zeros_like, np.zeros_like)
    with pytest.raises(ValueError, match="such that every layer has a variance to divide by, got 0"):
        layer_norm_kappas(zero, depth=3, weight_variance=1.0, bias_variance=0.0)


each_outputs = pytest.mark.parametrize("outputs", [2, 3, 6])


@each_outputs
def test_the_rank_is_that_of_the_derivative_of_the_normalisation(outputs: int) -> None:
    """Central differences of (u - mean) / deviation."""
    u, step = default_rng(5).normal(size=outputs), 1e-6

    def normalised(x: np.ndarray) -> np.ndarray:
        return (x - x.mean()) / x.std()

    columns = [normalised(u + e) - normalised(u - e) for e in step * np.eye(outputs)]
    values = np.linalg.svd(np.array(columns) / (2 * step), compute_uv=False)
    assert (values > 1e-6).sum() == layer_norm_rank(outputs)
    assert layer_norm_rank(1) == 0


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


def test_heavy_tails_have_no_expectation() -> None:
    found = {c: expected_etas(**RELU, samples=50, outputs=c) for c in (1, 2, 3, 4, 5, 6)}
    assert [math.isinf(found[c].eta1) for c in found] == [True] * 3 + [False] * 3
    assert all(math.isinf(x) for c in (3, 4, 5) for x in found[c][1:])
    assert all(map(math.isfinite, found[6]))


@each_outputs
def test_distribution_of_the_inverse_variance_by_drawing_outputs(outputs: int) -> None:
    """Outputs less their mean, of variance w + b: the normalised units below them have mean square 1."""
    w, b = 1.5, 0.4
    drawn = math.sqrt(w + b) * default_rng(7).standard_normal((20_000, outputs))
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
