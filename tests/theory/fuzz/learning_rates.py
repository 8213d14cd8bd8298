"""Lines of learning rates and of the change of the loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, below_the_dataset, between, real
from tests.theory.fuzz.strategies import (
    ANY_SIZE,
    BATCH,
    HESSIAN,
    batches,
    datasets,
    dims,
    mostly,
    signed,
    sizes,
)
from theory import adaptive_rates, learning_rates, loss_change

ELEMENT = st.one_of(st.floats(-9, 9), ANY_SIZE)
symmetric = mostly(
    st.builds(lambda a, b, c: [[a, b], [b, c]], ELEMENT, ELEMENT, ELEMENT),
    st.sampled_from([np.eye(2), np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]], np.ones((3, 2, 2)), [[1.0]]]),
)
preconditioners = st.one_of(st.none(), symmetric, symmetric)
QUADRATIC = {"gradient": mostly(st.lists(ELEMENT, min_size=2, max_size=2)), "hessian": symmetric}


def rates_shrink(_: Any, value: learning_rates.MomentumRates) -> None:
    assert np.all(value.learning_rate > 0)
    assert np.all((value.momentum >= 0) & (value.momentum <= 1))
    assert np.all((value.contraction >= 0) & (value.contraction <= 1))


def bracket_is_positive(_: Any, bracket: learning_rates.RateBracket) -> None:
    assert np.all(bracket.lower >= 0) and np.all(bracket.upper >= 0)


MODULES = {
    "learning_rates": ("MomentumRates", "RateBracket"),
    "adaptive_rates": (),
    "loss_change": (),
}

TABLE: dict[str, Line] = {
    "learning_rates.stability_limit": Line(learning_rates.stability_limit, {"sharpness": sizes}, real),
    "learning_rates.sgd_limit": Line(
        learning_rates.sgd_limit, {**HESSIAN, "eigenvalue": sizes}, between(0, math.inf)
    ),
    "learning_rates.mean_square_limit": Line(
        learning_rates.mean_square_limit,
        {"eigenvalue": sizes, "noise": sizes, **BATCH},
        between(0, math.inf),
    ),
    "learning_rates.heavy_ball": Line(
        learning_rates.heavy_ball, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    "learning_rates.nesterov": Line(
        learning_rates.nesterov, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    "learning_rates.best_nesterov": Line(
        learning_rates.best_nesterov, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    **{
        f"learning_rates.{f.__name__}": Line(
            f, {"rate": sizes, "momentum": signed, "largest": sizes, "smallest": signed}, between(0, math.inf)
        )
        for f in (learning_rates.heavy_ball_contraction, learning_rates.nesterov_contraction)
    },
    "learning_rates.sgd_exponent": Line(
        learning_rates.sgd_exponent, {**HESSIAN, "eigenvalue": sizes}, between(0, 0.5)
    ),
    "learning_rates.marchenko_pastur_exponent": Line(
        learning_rates.marchenko_pastur_exponent, {"q": sizes}, between(0, 1)
    ),
    "learning_rates.linear_then_flat": Line(
        learning_rates.linear_then_flat,
        {"rate": sizes, "known": batches, "crossover": mostly(sizes, st.just(math.inf)), **BATCH},
        between(0, math.inf),
    ),
    "learning_rates.square_root": Line(
        learning_rates.square_root, {"rate": sizes, "known": batches, **BATCH}, between(0, math.inf)
    ),
    "learning_rates.mean_square_exponent": Line(
        learning_rates.mean_square_exponent, {"eigenvalue": sizes, "noise": sizes, **BATCH}, between(0, 1)
    ),
    "learning_rates.mean_square_crossover": Line(
        learning_rates.mean_square_crossover,
        {"eigenvalue": sizes, "noise": sizes, "dataset_size": datasets},
        below_the_dataset,
    ),
    "learning_rates.mean_square_bracket": Line(
        learning_rates.mean_square_bracket,
        {"curvatures": sizes, "variances": sizes, "square": sizes, **BATCH},
        bracket_is_positive,
    ),
    "learning_rates.gaussian_least_squares_limit": Line(
        learning_rates.gaussian_least_squares_limit, {"batch_size": batches, "dim": dims}, between(0, 2)
    ),
    "learning_rates.gaussian_least_squares_growth": Line(
        learning_rates.gaussian_least_squares_growth,
        {"rate": sizes, "batch_size": batches, "dim": dims},
        between(0, math.inf),
    ),
    "adaptive_rates.outlier_over_edge": Line(
        adaptive_rates.outlier_over_edge,
        {**HESSIAN, "eigenvalue": sizes},
        between(1 - 1e-15, math.inf),
        infinite=True,
    ),
    "adaptive_rates.adaptive_limit": Line(
        adaptive_rates.adaptive_limit,
        {"preconditioner": sizes, "sigma": sizes, "dim": dims, **BATCH},
        between(0, math.inf),
        infinite=True,
    ),
    "loss_change.quadratic_change": Line(
        loss_change.quadratic_change, {"rate": signed, **QUADRATIC, "preconditioner": preconditioners}, real
    ),
    "loss_change.sign_averaged_change": Line(
        loss_change.sign_averaged_change,
        {"rate": signed, **QUADRATIC, "preconditioner": symmetric},
        real,
    ),
    "loss_change.descent_bound": Line(
        loss_change.descent_bound, {"rate": signed, "squared_gradient": sizes, "sharpness": signed}, real
    ),
    "loss_change.squared_gradient_mean": Line(
        loss_change.squared_gradient_mean,
        {"squared_gradient": sizes, "trace": sizes, "batch_size": batches},
        between(0, math.inf),
    ),
    "loss_change.squared_gradient_variance": Line(
        loss_change.squared_gradient_variance,
        {"covariance_along": sizes, "trace_of_square": sizes, "batch_size": batches},
        between(0, math.inf),
    ),
}
