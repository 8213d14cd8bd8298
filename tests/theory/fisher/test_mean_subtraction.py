"""Mean subtraction: fluctuation constants against linear networks, sampled spreads and nested sums."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.theory.fisher.networks import NAMES, RELU, TANH
from theory.activations import resolve
from theory.fisher import (
    fluctuation_constants,
    gram_entry_variances,
    loss_floor,
)
from theory.order_parameters import propagate


def test_linear_fluctuation_constants_of_layers_of_different_widths() -> None:
    """Layer j passes its noise, of variance 1/alpha_j, on to all layers above."""
    ratios = np.array([0.7, 1.3, 0.4, 2.1])
    above = ratios[::-1].cumsum()[::-1]
    setting = {"depth": 4, "weight_variance": 1.0, "bias_variance": 0.3, "width_ratios": ratios.tolist()}
    c1, c2 = fluctuation_constants("linear", **setting, outputs=3)
    assert c2 == pytest.approx(3 * (above**2 / ratios).sum(), rel=1e-12)
    assert c1 == pytest.approx(c2 / 3 / above[0], rel=1e-12)


@pytest.mark.parametrize(
    ("setting", "c1", "c2"), [(RELU, 0.9406, 2.1768), (TANH, 0.7412, 1.2407)], ids=["relu", "tanh"]
)
def test_fluctuation_constants_of_the_papers_figure_one(
    setting: dict[str, Any], c1: float, c2: float
) -> None:
    assert_allclose(fluctuation_constants(**setting, outputs=1), [c1, c2], atol=6e-5)


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


def test_no_centred_outputs_have_less_than_the_floor_of_the_loss() -> None:
    """The best fit by centred outputs is the centred targets, whose loss is the floor."""
    y = np.random.default_rng(3).normal([0.4, -1.3, 2.1], size=(7, 3))
    best = y - y.mean(0)
    assert loss_floor(y) == pytest.approx(((y - best) ** 2).sum() / 2 / len(y), rel=1e-13)
    assert loss_floor(best) == pytest.approx(0.0, abs=1e-30)
