"""Mean subtraction: fluctuation constants against linear networks, sampled spreads and nested sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.theory.fisher.networks import NAMES, RELU, TANH
from theory.activations import Activation, leaky_relu, resolve
from theory.fisher import (
    fluctuation_constants,
    gram_entry_variances,
    kappas,
    loss_floor,
    mean_subtracted_statistics,
)
from theory.order_parameters import propagate


@pytest.mark.parametrize("depth", [2, 3, 5, 8])
@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_linear_network_fluctuation_constants(depth: int, bias: float) -> None:
    """sigma_w^2 = 1: c2 = L (L + 1) (2L + 1)/6, c1 = (L + 1) (2L + 1)/6, whatever the bias."""
    c1, c2 = fluctuation_constants("linear", depth=depth, outputs=1, weight_variance=1.0, bias_variance=bias)
    assert c2 == pytest.approx(depth * (depth + 1) * (2 * depth + 1) / 6, rel=1e-12)
    assert c1 == pytest.approx((depth + 1) * (2 * depth + 1) / 6, rel=1e-12)


def test_linear_fluctuation_constants_of_layers_of_different_widths() -> None:
    """Layer j passes its noise, of variance 1/alpha_j, on to all layers above."""
    ratios = np.array([0.7, 1.3, 0.4, 2.1])
    above = ratios[::-1].cumsum()[::-1]
    setting = {"depth": 4, "weight_variance": 1.0, "bias_variance": 0.3, "width_ratios": ratios.tolist()}
    c1, c2 = fluctuation_constants("linear", **setting, outputs=3)
    assert c2 == pytest.approx(3 * (above**2 / ratios).sum(), rel=1e-12)
    assert c1 == pytest.approx(c2 / 3 / above[0], rel=1e-12)


def test_two_layer_relu_fluctuation_constant() -> None:
    c2 = fluctuation_constants("relu", depth=2, outputs=1, weight_variance=2.0, bias_variance=0.0).c2
    assert c2 == pytest.approx(1 + (1 - 1 / math.pi) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("setting", "c1", "c2"), [(RELU, 0.9406, 2.1768), (TANH, 0.7412, 1.2407)], ids=["relu", "tanh"]
)
def test_fluctuation_constants_of_the_papers_figure_one(
    setting: dict[str, Any], c1: float, c2: float
) -> None:
    assert_allclose(fluctuation_constants(**setting, outputs=1), [c1, c2], atol=6e-5)


def test_fluctuation_constants_match_the_off_diagonal_spread_of_sampled_networks() -> None:
    """Two-layer ReLU nets, C = 2: doubly centred Gram entries of same and different outputs."""
    rng, m, t, draws, w, b = np.random.default_rng(11), 200, 24, 150, 1.5, 0.3
    same, other = [], []
    for _ in range(draws):
        x = rng.standard_normal((m, t))
        u = rng.standard_normal((m, m)) @ x * math.sqrt(w / m) + math.sqrt(b) * rng.standard_normal((m, 1))
        v = rng.standard_normal((2, m)) * math.sqrt(w / m)
        h, s = np.maximum(u, 0), (u > 0).astype(float)
        inputs = x.T @ x
        for weights, k, into in ((v[0] ** 2, h.T @ h, same), (v[0] * v[1], 0.0, other)):
            gram = (s.T * weights) @ s * inputs + k
            off = gram - np.diag(np.diag(gram))
            # centring without the diagonal: exact for additive row and column effects
            mean = off.sum(1) / (t - 2)
            total = off.sum() / ((t - 1) * (t - 2))
            centred = (off - mean[:, None] - mean + total) * (1 - np.eye(t))
            into.append((centred**2).sum() / (t * (t - 3)) / m)
    setting = {"depth": 2, "weight_variance": w, "bias_variance": b}
    one = fluctuation_constants("relu", **setting, outputs=1).c2
    two = fluctuation_constants("relu", **setting, outputs=2).c2
    assert one == pytest.approx(np.mean(same), rel=0.08)  # O(1/M) excess and sampling error
    assert two / 2 - one == pytest.approx(np.mean(other), abs=0.03)


def test_different_outputs_fluctuate_as_nested_sums_say() -> None:
    """Layer noise is E[Var(Y|z, z') Var(Y|z, z'')], Y = phi'(u) g: here without expanding the variance."""
    depth, w, b = 4, 3.0, 0.5
    q = propagate(resolve("erf", depth - 1), weight_variance=w, bias_variance=b)
    x, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    g, small = np.polynomial.hermite_e.hermegauss(6)
    small = small / small.sum()
    noise = []
    for i in range(depth - 1):
        u = math.sqrt(q.covariance[i]) * x[:, None] + math.sqrt(q.gap[i]) * x  # (z, zeta)
        back = (
            math.sqrt(q.q_tilde_st[i + 1]) * g[:, None] + math.sqrt(q.backward_gap[i + 1]) * g
        )  # (z', zeta')
        slope = 2 / math.sqrt(math.pi) * np.exp(-(u**2))
        y = np.einsum("zi,yj->zyij", slope, back)
        mean = np.einsum("zyij,i,j->zy", y, weights, small)
        variance = np.einsum("zyij,i,j->zy", (y - mean[..., None, None]) ** 2, weights, small)
        noise.append(w**2 * weights @ (variance @ small) ** 2)
    total = 0.0
    for top in range(depth - 1):
        paths = [q.q_hat_st[i] * q.q_tilde_st[i] / q.q_tilde_st[top] for i in range(top + 1)]
        total += noise[top] * sum(paths) ** 2
    setting = {"depth": depth, "weight_variance": w, "bias_variance": b}
    one, two = (fluctuation_constants("erf", **setting, outputs=c).c2 for c in (1, 2))
    assert two / 2 - one == pytest.approx(total, rel=1e-9)


def test_rectifier_is_the_limit_of_a_smooth_rectifier() -> None:
    """softplus(s x)/s for large s: kinked and smooth routes share no code below the recursion."""
    s = 12.0
    smooth = Activation(
        "steep",
        lambda x: np.logaddexp(0, s * x) / s,
        lambda x: 0.5 * (1 + np.tanh(0.5 * s * x)),
        lambda x: 0.25 * s / np.cosh(np.clip(0.5 * s * x, -300, 300)) ** 2,
    )
    setting = {"depth": 3, "outputs": 3, "weight_variance": 2.0, "bias_variance": 0.3}
    assert_allclose(
        fluctuation_constants(smooth, **setting), fluctuation_constants("relu", **setting), rtol=0.1
    )


def test_bounds_of_the_largest_mean_subtracted_eigenvalue() -> None:
    m, t, c = 200, 100, 2
    k, (c1, c2) = kappas(**RELU), fluctuation_constants(**RELU, outputs=c)
    result = mean_subtracted_statistics(**RELU, width=m, samples=t, outputs=c)
    spike = k.alpha * k.difference
    assert_allclose(result.mean, 0.99 * c * k.difference / m, rtol=1e-13)
    assert_allclose(result.lower, 2.0 * spike + c1, rtol=1e-13)
    assert_allclose(result.upper**2, (c * 2.0 * spike**2 + c2) * m, rtol=1e-13)
    assert c1 == pytest.approx(c2 / (c * spike), rel=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_lower_bound_is_below_the_upper_bound(name: str) -> None:
    for t in (50, 200, 800):
        result = mean_subtracted_statistics(
            name, depth=3, width=200, samples=t, outputs=3, weight_variance=1.7, bias_variance=0.3
        )
        assert 0 < result.mean < result.lower < result.upper


def test_without_weights_mean_subtraction_leaves_nothing() -> None:
    for name in ("relu", "tanh"):
        result = mean_subtracted_statistics(
            name, depth=3, width=10, samples=4, outputs=2, weight_variance=0.0, bias_variance=0.7
        )
        assert result == (0.0, 0.0, 0.0)


def test_leaky_relu_of_slope_one_is_linear() -> None:
    setting = {"depth": 4, "outputs": 3, "weight_variance": 1.3, "bias_variance": 0.2}
    assert_allclose(
        fluctuation_constants(leaky_relu(1.0), **setting), fluctuation_constants("linear", **setting)
    )


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_sums_of_entry_variances(name: str) -> None:
    """c2 = C S_same + C (C - 1) S_diff, whatever C."""
    law = {"depth": 3, "weight_variance": 1.7, "bias_variance": 0.3, "width_ratios": [0.7, 1.3, 0.4]}
    same, other = gram_entry_variances(name, **law)
    for c in (1, 2, 7):
        assert fluctuation_constants(name, **law, outputs=c).c2 == pytest.approx(
            c * same + c * (c - 1) * other, rel=1e-12
        )


def test_entry_variances_of_a_shallow_linear_network() -> None:
    """K(s, t) = x(s)' (v v' + W' W) x(t): entries of variance M (a0 + a1)^2 / a0 + M a1, none for two outputs."""
    found = gram_entry_variances(
        "linear", depth=2, weight_variance=1.0, bias_variance=0.0, width_ratios=[0.7, 1.3]
    )
    assert found.same == pytest.approx((0.7 + 1.3) ** 2 / 0.7 + 1.3, rel=1e-12)
    assert found.other == 0
    with pytest.raises(ValueError, match="weight_variance must be small enough not to overflow"):
        gram_entry_variances("relu", depth=3, weight_variance=1e100, bias_variance=0.0)


def test_no_centred_outputs_have_less_than_the_floor_of_the_loss() -> None:
    """The best fit by centred outputs is the centred targets, whose loss is the floor."""
    y = np.random.default_rng(3).normal([0.4, -1.3, 2.1], size=(7, 3))
    best = y - y.mean(0)
    assert loss_floor(y) == pytest.approx(((y - best) ** 2).sum() / 2 / len(y), rel=1e-13)
    assert loss_floor(best) == pytest.approx(0.0, abs=1e-30)
    for wrong in ([1.0, 2.0], [[]], 3.0):
        with pytest.raises(ValueError, match=r"targets must be of shape \(T, C\)"):
            loss_floor(wrong)
    with pytest.raises(ValueError, match="targets"):
        loss_floor([[1e200]])
