"""Layer normalisation: dense matrices of projectors, naive recursions at high precision, sums and integrals."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import fisher
from theory.activations import Activation, gaussian_kernels, single
from theory.fisher import _layer_normed
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
    rng = np.random.default_rng(seed)
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


def test_a_rectifier_without_biases_is_divided_by_the_variance_of_its_layers() -> None:
    """A homogeneous network: every hidden layer is divided by sqrt(q), its moments and those below by q."""
    plain = fisher.kappas("relu", depth=2, weight_variance=2.0, bias_variance=0.0)
    found = layer_norm_kappas("relu", depth=2, weight_variance=2.0, bias_variance=0.0)
    assert_allclose(found[1:], np.array(plain[1:]) / 2, rtol=1e-14)


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


def test_width_ratios_weigh_the_layers() -> None:
    found = layer_norm_kappas("relu", **SETTINGS["relu"], width_ratios=[0.5, 1.0, 2.0])
    even = fisher.Kappas(*layer_norm_kappas("relu", **SETTINGS["relu"]))
    assert found.alpha == 2.5
    assert found.kappa1 != even.kappa1
    assert_allclose(found.kappa1 - found.kappa2, found.difference, rtol=1e-13)


@pytest.mark.parametrize("activation", ["tanh", "relu", "erf"])
def test_normalised_kernels_are_those_of_the_rescaled_activation(activation: str) -> None:
    q, share = 2.7, 0.4
    base = single(activation)
    kernels = _layer_normed.UnitVariance(gaussian_kernels(base))
    direct = gaussian_kernels(base)
    pair, unit = (q, q * share, q * (1 - share)), (1.0, share, 1 - share)
    assert_allclose(kernels.value(*pair), direct.value(*unit), rtol=1e-13)
    assert_allclose(kernels.derivative(*pair), np.array(direct.derivative(*unit)) / q, rtol=1e-13)
    assert_allclose(kernels.curvature(*pair), direct.curvature(*unit) / q**2, rtol=1e-13)
    powers = np.array([0, 2, 2, 2, 1])
    assert_allclose(
        kernels.fluctuations(*pair[1:]), np.array(direct.fluctuations(*unit[1:])) / q**powers, rtol=1e-12
    )


def test_rescaled_tanh_by_quadrature_is_the_normalised_one() -> None:
    """tanh(x / sqrt(q)) given as an activation of its own."""
    r = math.sqrt(2.7)
    own = Activation(
        "rescaled",
        lambda x: np.tanh(x / r),
        lambda x: (1 - np.tanh(x / r) ** 2) / r,
        lambda x: -2 * np.tanh(x / r) * (1 - np.tanh(x / r) ** 2) / r**2,
    )
    kernels = _layer_normed.UnitVariance(gaussian_kernels(single("tanh")))
    expected = gaussian_kernels(own)
    for method in ("value", "derivative", "curvature"):
        arguments = (2.7, 1.1, 1.6)
        assert_allclose(
            getattr(kernels, method)(*arguments), getattr(expected, method)(*arguments), rtol=1e-11
        )
    assert_allclose(kernels.fluctuations(1.1, 1.6), expected.fluctuations(1.1, 1.6), rtol=1e-11)


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


def test_etas_broadcast() -> None:
    size = {"width": 50, "samples": 4, "outputs": 5}
    etas = {"eta1": [1.2, 1.4], "eta2": 1.9, "eta3": [[0.8], [0.9]]}
    found = layer_norm_statistics(**RELU, **size, **etas)
    assert found.mean.shape == (2, 2)
    one = layer_norm_statistics(**RELU, **size, eta1=1.4, eta2=1.9, eta3=0.9)
    assert_allclose([x[1, 1] for x in found], one, rtol=1e-14)


def test_many_samples_leave_the_mean_projector() -> None:
    """kappa2 lambda_max(<P/sigma^2>) <= the root / T <= the same + (kappa1 - kappa2) max(1/sigma^2) / T."""
    u, k = drawn(60, 5), layer_norm_kappas(**RELU)
    projectors = blocks(u, 1.0, 0.0).reshape(60, 5, 60, 5)
    mean = np.einsum("tktm->km", projectors) / 60
    limit = k.alpha * 50 * k.kappa2 * np.linalg.eigvalsh(mean)[-1]
    slack = k.alpha * 50 * k.difference * (1 / u.var(axis=1)).max() / 60
    found = layer_norm_largest("relu", u, **SETTINGS["relu"], width=50)
    assert limit <= found <= limit + slack
    assert (np.linalg.eigvalsh(mean) > 1e-9).sum() == 4


def test_largest_of_a_centred_network_is_that_of_a_single_sample() -> None:
    u = drawn(5, 4)
    k = layer_norm_kappas("tanh", **SETTINGS["tanh"])
    assert k.kappa2 == 0
    expected = k.alpha * 50 / 5 * k.kappa1 * (1 / u.var(axis=1)).max()
    assert layer_norm_largest("tanh", u, **SETTINGS["tanh"], width=50) == pytest.approx(expected, rel=1e-13)


# ----------------------------------------------------------------------------------------- refusals


SIZE = {"width": 50, "samples": 4, "outputs": 5}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"weight_variance": -1.0}, "weight_variance must be non-negative and finite"),
        ({"bias_variance": math.nan}, "bias_variance must be non-negative and finite"),
        ({"weight_variance": [1.0, 2.0]}, "weight_variance must be a scalar"),
        ({"weight_variance": 0.0, "bias_variance": 0.0}, "weight_variance, bias_variance must be such that"),
        ({"depth": 1}, "depth must be an integer >= 2"),
        ({"activation": "swish"}, "activation must be"),
        ({"width": 0}, "width must be an integer >= 1"),
        ({"samples": 1.5}, "samples must be an integer >= 1"),
        ({"outputs": 0}, "outputs must be an integer >= 1"),
        ({"width_ratios": [1.0]}, "width_ratios must be a sequence of 3 numbers"),
        ({"eta1": 0.0}, "eta1 must be positive and finite"),
        ({"eta2": math.inf}, "eta2 must be positive and finite"),
        ({"eta3": "x"}, "eta3 must be real numbers"),
        ({"eta1": [1.0, 2.0], "eta2": [1.0, 2.0, 3.0]}, "eta1, eta2, eta3 must be broadcastable"),
        ({"eta1": 1e300}, "eta1, eta2, eta3, width must be such that the result does not overflow"),
        ({"finite_width": 1}, "finite_width must be True or False"),
    ],
)
def test_bad_arguments_of_the_statistics_are_named(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        layer_norm_statistics(**{**RELU, **SIZE, **ETAS, **changes})


@pytest.mark.parametrize(
    ("u", "rule"),
    [
        ([1.0, 2.0], "preactivations must be of shape"),
        ([[1.0, math.nan]], "preactivations must be finite"),
        ([[1.0, 2.0], [3.0, 3.0]], "preactivations must be different within each sample"),
        ([[1e-200, 2e-200, 4e-200]], "preactivations must be such that the result does not overflow"),
        ([[1e305, 0.0, 1.0]], "preactivations must be below 1e300"),
    ],
)
def test_bad_outputs_are_named(u: list[Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        realised_etas(u)
    if len(np.shape(u)) == 1 or np.shape(u)[1] > 2:
        with pytest.raises(ValueError, match=rule):
            layer_norm_largest("relu", u, **SETTINGS["relu"], width=50)


def test_the_other_functions_name_bad_arguments() -> None:
    with pytest.raises(ValueError, match="overlap must be non-negative and finite"):
        layer_norm_rayleigh(**RELU, **SIZE, eta1=1.0, overlap=-1.0)
    with pytest.raises(
        ValueError, match="eta1, overlap, width must be such that the result does not overflow"
    ):
        layer_norm_rayleigh(**RELU, **SIZE, eta1=1e308, overlap=1.0)
    with pytest.raises(ValueError, match="outputs must be an integer >= 2"):
        inverse_variance_cdf(1.0, **RELU, outputs=1)
    with pytest.raises(ValueError, match=r"value must be in \[-inf, inf\]"):
        inverse_variance_cdf(math.nan, **RELU, outputs=3)
    with pytest.raises(ValueError, match="weight_variance must be such that the result does not overflow"):
        expected_etas("relu", depth=2, samples=2, outputs=7, weight_variance=1e-300, bias_variance=0.0)
    with pytest.raises(ValueError, match="weight_variance must be small enough not to overflow"):
        expected_etas("relu", depth=2, samples=2, outputs=7, weight_variance=1.7e308, bias_variance=1.7e308)
    with pytest.raises(ValueError, match="weight_variance must be such that the result does not overflow"):
        expected_etas("relu", depth=2, samples=2, outputs=4, weight_variance=1e-310, bias_variance=0.0)
    for function, more in ((expected_etas, {"samples": 2}), (inverse_variance_cdf, {"value": 1.0})):
        with pytest.raises(ValueError, match="such that the variance of an output does not vanish, got"):
            function(activation="relu", depth=2, outputs=7, weight_variance=5e-324, bias_variance=0.0, **more)
    with pytest.raises(ValueError, match="width must be such that the result does not overflow"):
        layer_norm_largest("relu", np.array([[0, 1, 3e-154]]) * 1e-153, **SETTINGS["relu"], width=10**9)


def test_an_activation_needs_its_second_derivative() -> None:
    sine = Activation("sine", np.sin, np.cos)
    with pytest.raises(ValueError, match="second_derivative must be given for activation 'sine'"):
        layer_norm_kappas(sine, depth=2, weight_variance=1.0, bias_variance=0.0)


def test_a_constant_layer_cannot_be_normalised() -> None:
    """Without biases, an activation that is 0 everywhere leaves the layer above no variance."""
    zero = Activation("zero", np.zeros_like, np.zeros_like, np.zeros_like)
    with pytest.raises(ValueError, match="such that every layer has a variance to divide by, got 0"):
        layer_norm_kappas(zero, depth=3, weight_variance=1.0, bias_variance=0.0)


@pytest.mark.parametrize("outputs", [2, 3, 6])
def test_the_rank_is_that_of_the_derivative_of_the_normalisation(outputs: int) -> None:
    """Central differences of (u - mean) / deviation."""
    u, step = np.random.default_rng(5).normal(size=outputs), 1e-6

    def normalised(x: np.ndarray) -> np.ndarray:
        return (x - x.mean()) / x.std()

    columns = [normalised(u + e) - normalised(u - e) for e in step * np.eye(outputs)]
    values = np.linalg.svd(np.array(columns) / (2 * step), compute_uv=False)
    assert (values > 1e-6).sum() == layer_norm_rank(outputs)
    assert layer_norm_rank(1) == 0
    with pytest.raises(ValueError, match="outputs must be an integer >= 1"):
        layer_norm_rank(0)
