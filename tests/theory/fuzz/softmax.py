"""Lines of the softmax and of the Gauss-Newton matrix of random logits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.theory.fuzz.line import Line, between, real
from tests.theory.fuzz.strategies import HUGE, dims, flags, logits, mostly, probabilities, signed, sizes
from theory import gauss_newton, softmax

RANDOM_LOGITS = {"sigma_c": sizes, "sigma_e": sizes}


def gamma_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    classes = np.shape(arguments.get("p", arguments.get("z")))[-1]
    assert np.all((value >= 1 - 1e-12) & (value <= math.sqrt(classes - 1) + 1e-12))


def eigenvalues_share_the_trace(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 0) and np.all(value[..., -1] == 0)
    trace = 1 - np.square(np.asarray(arguments["p"], dtype=np.float64)).sum(axis=-1)
    assert_allclose(value.sum(axis=-1), trace, atol=1e-4)


def descending(_: Any, value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 1e-15 * value[..., :1])


MODULES = {
    "softmax": (),
    "gauss_newton": (),
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
    "softmax.collapse_limit": Line(softmax.collapse_limit, {"weights": sizes}, between(1 - 1e-12, 2)),
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
    "gauss_newton.projected_excess": Line(
        gauss_newton.projected_excess, {"excess": signed, "dim": dims}, real
    ),
    "gauss_newton.excess_noise_floor": Line(gauss_newton.excess_noise_floor, {"dim": dims}, between(0, 1)),
    "gauss_newton.hessian_excess": Line(
        gauss_newton.hessian_excess,
        {"gauss_newton_excess": sizes, "frobenius_ratio": sizes},
        between(0, math.inf),
    ),
}
