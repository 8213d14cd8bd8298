"""Lines of the softmax and of the Gauss-Newton matrix of random logits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.theory.fuzz.line import Line, between, real
from tests.theory.fuzz.strategies import (
    ANY_SIZE,
    HUGE,
    dims,
    flags,
    log_uniform,
    logits,
    mostly,
    probabilities,
    shaped,
    shares,
    signed,
    sizes,
)
from theory import gauss_newton, softmax

RANDOM_LOGITS = {"sigma_c": sizes, "sigma_e": sizes}
tails = mostly(shaped(st.floats(0, 0.3)), log_uniform(1e-307, 1.0))
few = mostly(st.integers(2, 12), st.sampled_from(HUGE))
gammas = mostly(shaped(st.floats(1, 3)))
ambient = mostly(dims, st.just(math.inf))
BATCHES = mostly(
    st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=2), min_size=2, max_size=2),
    st.sampled_from([[[1e308, -1e308], [0, 0]], [[5e-324, 0.0, 1.0]], np.zeros((2, 3, 4))]),
)

three = st.lists(st.floats(-9, 9), min_size=3, max_size=3)
DERIVATIVES = {
    "p": probabilities,
    "label": mostly(st.integers(0, 2), st.sampled_from([1.5, 3, -1, [0, 1], HUGE[0]])),
    "jacobian": mostly(
        three.map(lambda rows: [[x] for x in rows]),
        st.lists(three, min_size=3, max_size=3),
        ANY_SIZE.map(lambda x: np.full((2, 3, 2), x)),
    ),
    "temperature": sizes,
}
seconds = mostly(three.map(lambda rows: [[[x]] for x in rows]), ANY_SIZE.map(lambda x: np.full((3, 3, 3), x)))


def gamma_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    classes = np.shape(arguments.get("p", arguments.get("z")))[-1]
    assert np.all((value >= 1 - 1e-12) & (value <= math.sqrt(classes - 1) + 1e-12))


def batch_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    *_, samples, classes = np.shape(arguments.get("p", arguments.get("z")))
    assert np.all((value.mean >= 1 - 1e-12) & (value.mean <= math.sqrt(classes - 1) + 1e-12))
    assert np.all(value.separate >= value.mean * (1 - 1e-12))
    assert np.all(value.separate <= math.sqrt(samples * (classes - 1)) * (1 + 1e-12))


def below_the_root_of_the_dimension(arguments: Mapping[str, Any], value: Any) -> None:
    ceiling = np.sqrt(np.asarray(arguments["dim"], dtype=np.float64)) * (1 + 1e-12)
    assert np.all(np.abs(value) <= ceiling)


def moments_below_the_root_of_the_dimension(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(value.squared_norm >= 0)
    below_the_root_of_the_dimension(arguments, value.excess)


def eigenvalues_share_the_trace(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 0) and np.all(value[..., -1] == 0)
    trace = 1 - np.square(np.asarray(arguments["p"], dtype=np.float64)).sum(axis=-1)
    assert_allclose(value.sum(axis=-1), trace, atol=1e-4)


def descending(_: Any, value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 1e-15 * value[..., :1])


MODULES = {
    "softmax": ("BatchGammas",),
    "gauss_newton": ("HessianTerms", "ProjectedMoments"),
}

TABLE: dict[str, Line] = {
    "softmax.covariance": Line(
        softmax.covariance, {"p": probabilities}, lambda _, m: assert_array_equal(m, np.swapaxes(m, -1, -2))
    ),
    "softmax.eigenvalues": Line(softmax.eigenvalues, {"p": probabilities}, eigenvalues_share_the_trace),
    "softmax.gamma": Line(softmax.gamma, {"p": probabilities, "average": flags}, gamma_between_its_bounds),
    "softmax.gamma_from_logits": Line(
        softmax.gamma_from_logits, {"z": logits, "temperature": sizes}, gamma_between_its_bounds
    ),
    "softmax.batch_gammas": Line(softmax.batch_gammas, {"p": probabilities}, batch_between_its_bounds),
    "softmax.batch_gammas_from_logits": Line(
        softmax.batch_gammas_from_logits,
        {"z": BATCHES, "temperature": sizes},
        batch_between_its_bounds,
    ),
    "softmax.equal_tail_gamma": Line(softmax.equal_tail_gamma, {"tail": tails, "members": few}, real),
    "softmax.equal_tail_eigenvalues": Line(
        softmax.equal_tail_eigenvalues, {"tail": tails, "members": few, "classes": few}, descending
    ),
    "softmax.collapse_limit": Line(
        softmax.collapse_limit, {"weights": sizes}, between(1 - 1e-12, 2), pooled=True
    ),
    "softmax.rounded_gamma": Line(softmax.rounded_gamma, {"members": few}, between(0, math.inf)),
    "softmax.gamma_of_pairs": Line(softmax.gamma_of_pairs, {"p": probabilities}, gamma_between_its_bounds),
    "softmax.ray_slope": Line(
        softmax.ray_slope, {"z": logits, "temperature": sizes}, lambda _, value: real(_, np.float64(value))
    ),
    "softmax.entropy_discordance": Line(
        softmax.entropy_discordance,
        {"classes": mostly(st.integers(3, 8), st.sampled_from(HUGE))},
        between(0, 1),
    ),
    "gauss_newton.loss_gradient": Line(gauss_newton.loss_gradient, DERIVATIVES, real),
    "gauss_newton.hessian_terms": Line(gauss_newton.hessian_terms, {**DERIVATIVES, "second": seconds}),
    "gauss_newton.gauss_newton_trace": Line(
        gauss_newton.gauss_newton_trace,
        {name: DERIVATIVES[name] for name in ("p", "jacobian", "temperature")},
        between(0, math.inf),
    ),
    "gauss_newton.expected_gradient_weights": Line(
        gauss_newton.expected_gradient_weights,
        {"mean_probability": probabilities, "prior": probabilities},
        between(-1.1, 1.1),
    ),
    "gauss_newton.gradient_scatter": Line(gauss_newton.gradient_scatter, {"dim": dims}, between(0, 2)),
    "gauss_newton.spectrum_excess": Line(
        gauss_newton.spectrum_excess, {"eigenvalues": signed}, real, pooled=True
    ),
    "gauss_newton.largest_excess": Line(gauss_newton.largest_excess, {"rank": dims}, between(1, math.inf)),
    "gauss_newton.excess_ceiling": Line(
        gauss_newton.excess_ceiling,
        {"gamma": gammas, "dim": dims, **RANDOM_LOGITS},
        below_the_root_of_the_dimension,
    ),
    "gauss_newton.sign_probe_variance": Line(
        gauss_newton.sign_probe_variance,
        {"squared_norm": sizes, "squared_diagonal": sizes},
        between(0, math.inf),
    ),
    "gauss_newton.normal_probe_variance": Line(
        gauss_newton.normal_probe_variance, {"squared_norm": sizes}, between(0, math.inf)
    ),
    "gauss_newton.expected_eigenvalues": Line(
        gauss_newton.expected_eigenvalues,
        {"p": probabilities, "dim": mostly(st.integers(2, 20), st.sampled_from(HUGE)), **RANDOM_LOGITS},
        descending,
    ),
    "gauss_newton.expected_excess": Line(
        gauss_newton.expected_excess, {"gamma": sizes, "dim": dims, **RANDOM_LOGITS}, between(0, math.inf)
    ),
    "gauss_newton.expected_gradient_norm": Line(
        gauss_newton.expected_gradient_norm,
        {"mean_probability": probabilities, "prior": probabilities, "dim": dims, "sigma_c": sizes},
        between(0, math.inf),
    ),
    "gauss_newton.finite_sample_excess": Line(
        gauss_newton.finite_sample_excess,
        {"gamma": gammas, "separate_gamma": sizes, "dim": dims, **RANDOM_LOGITS, "orthogonal": flags},
        between(0, math.inf),
    ),
    "gauss_newton.squared_gradient_norm": Line(
        gauss_newton.squared_gradient_norm,
        {
            "mean_probability": probabilities,
            "prior": probabilities,
            "squared_error": shares,
            "dim": dims,
            **RANDOM_LOGITS,
            "samples": dims,
        },
        between(0, math.inf),
    ),
    "gauss_newton.projected_excess": Line(
        gauss_newton.projected_excess,
        {"excess": signed, "dim": dims, "parameters": ambient},
        below_the_root_of_the_dimension,
    ),
    "gauss_newton.excess_noise_floor": Line(
        gauss_newton.excess_noise_floor, {"dim": dims, "parameters": ambient}, between(0, 1)
    ),
    "gauss_newton.frame_overlap": Line(
        gauss_newton.frame_overlap, {"dim": dims, "parameters": dims}, between(0, math.inf)
    ),
    "gauss_newton.haar_moments": Line(
        gauss_newton.haar_moments,
        {"trace": signed, "squared_norm": sizes, "dim": dims, "parameters": dims},
        moments_below_the_root_of_the_dimension,
    ),
    "gauss_newton.sparse_moments": Line(
        gauss_newton.sparse_moments,
        {
            "trace": signed,
            "squared_norm": sizes,
            "squared_diagonal": sizes,
            "dim": mostly(st.integers(1, 20)),
            "parameters": mostly(st.integers(20, 10**5), st.sampled_from(HUGE)),
        },
        moments_below_the_root_of_the_dimension,
    ),
    "gauss_newton.hessian_excess": Line(
        gauss_newton.hessian_excess,
        {"gauss_newton_excess": sizes, "frobenius_ratio": sizes},
        between(0, math.inf),
    ),
}
