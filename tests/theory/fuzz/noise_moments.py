"""Lines of moments at finite dimension, of matrices of rank one and of random directions; exponents beside them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from tests.theory.fuzz.line import Line, between
from tests.theory.fuzz.strategies import counts, dims, planes, shares, signed, sizes
from theory import batch_hessian, finite_size, learning_rates, loss_change, rmt

POSITIVE = between(0, math.inf)

TABLE: dict[str, Line] = {
    "rmt.wigner_second_moment": Line(
        rmt.wigner_second_moment, {"sigma": sizes, "dim": dims, "diagonal": sizes, "spike": signed}, POSITIVE
    ),
    "rmt.profiled_fourth_moment": Line(
        rmt.profiled_fourth_moment, {"sigma": sizes, "contrast": shares, "dim": dims}, POSITIVE
    ),
    "rmt.sparse_fourth_moment": Line(
        rmt.sparse_fourth_moment, {"sigma": sizes, "per_row": sizes, "dim": dims}, POSITIVE
    ),
    "rmt.low_rank_fourth_moment": Line(
        rmt.low_rank_fourth_moment,
        {"rank": dims, "variance": sizes, "dim": dims, "batch_size": dims},
        POSITIVE,
    ),
    "rmt.wishart_third_moment": Line(
        rmt.wishart_third_moment, {"variance": sizes, "dim": dims, "batch_size": dims}, POSITIVE
    ),
    "rmt.alternating_moment": Line(
        rmt.alternating_moment, {"sigma_a": sizes, "sigma_b": sizes, "dim": dims}, POSITIVE
    ),
    "rmt.rank_one_stieltjes": Line(rmt.rank_one_stieltjes, {"u": planes, "spike": signed, "dim": dims}),
    "rmt.rank_one_inverse": Line(rmt.rank_one_inverse, {"s": signed, "spike": signed, "dim": dims}),
    "rmt.rank_one_expansion": Line(rmt.rank_one_expansion, {"s": signed, "spike": signed, "dim": dims}),
    "rmt.overlap_cdf": Line(rmt.overlap_cdf, {"x": signed, "dim": dims}, between(0, 1)),
    "rmt.subspace_share": Line(rmt.subspace_share, {"members": dims, "dim": dims}, between(0, 1)),
    "finite_size.axis_wigner_sd": Line(
        finite_size.axis_wigner_sd,
        {"spike": signed, "sigma": sizes, "dim": dims, "diagonal": sizes, "fourth_cumulant": signed},
        POSITIVE,
    ),
    "batch_hessian.two_layer_rank_bound": Line(
        batch_hessian.two_layer_rank_bound, {"samples": counts, "hidden": counts, "outputs": counts}, POSITIVE
    ),
    "learning_rates.mean_square_descent": Line(
        learning_rates.mean_square_descent, {"rate": sizes, "limit": sizes}, between(-math.inf, 1)
    ),
    "loss_change.mean_descent_limit": Line(
        loss_change.mean_descent_limit,
        {"squared_gradients": st.lists(st.floats(0, 10), max_size=3), "sharpness": sizes},
        POSITIVE,
        pooled=True,
    ),
}
