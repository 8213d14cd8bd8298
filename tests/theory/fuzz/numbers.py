"""Lines of the functions of numbers: batches, outliers, rates, softmax, Gauss-Newton, the zone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.theory.fuzz.laws import laws_of_noise
from tests.theory.fuzz.line import Line, between, lines, positive, real
from tests.theory.fuzz.strategies import (
    ANY_SIZE,
    HUGE,
    counts,
    dims,
    hostile,
    log_uniform,
    mostly,
    shaped,
    signed,
    sizes,
)
from theory import (
    adaptive_rates,
    batch_hessian,
    finite_size,
    gauss_newton,
    initial_loss,
    lanczos_bounds,
    learning_rates,
    loss_change,
    outliers,
    own_direction,
    rmt,
    softmax,
    zone,
)
from theory.learning_rates import adam, noise_scale

MODULES = {
    "batch_hessian": (),
    "own_direction": ("BatchBounds", "OwnDirections"),
    "finite_size": ("EdgeFluctuation",),
    "lanczos_bounds": (),
    "outliers": ("Outlier",),
    "learning_rates": ("MomentumRates", "RateBracket"),
    "adaptive_rates": (),
    "loss_change": (),
    "learning_rates.noise_scale": (),
    # not the moments, whose equations take minutes for some numbers: their tests give them wrong ones
    "learning_rates.adam": ("AdamMoments", "AdamSetting", "adam_moments"),
    "softmax": ("BatchGammas",),
    "gauss_newton": ("HessianTerms", "ProjectedMoments"),
    "zone": ("CurvatureFactors",),
    "initial_loss": (),
}


def number(arguments: Mapping[str, Any], name: str) -> Any:
    return np.asarray(arguments[name], dtype=np.float64)


# --- what results obey


def no_weaker_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.abs(value) >= np.abs(number(arguments, "eigenvalue")) * (1 - 1e-15))


def no_stronger_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.abs(value) <= np.abs(number(arguments, "eigenvalue")))


def beyond_the_batch(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(value >= number(arguments, "batch_size") * (1 - 1e-15))


def below_the_dataset(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all((value >= 0) & (value <= number(arguments, "dataset_size")))


def bounds_are_ordered(_: Any, bounds: own_direction.BatchBounds) -> None:
    assert np.all(bounds.lower <= bounds.upper)


def scatters(_: Any, edge: finite_size.EdgeFluctuation) -> None:
    assert np.all(edge.sd >= 0)


def between_the_ends(arguments: Mapping[str, Any], value: Any) -> None:
    ends = [number(arguments, name) for name in ("eigenvalue", "opposite")]
    assert np.all((value >= np.minimum(*ends)) & (value <= np.maximum(*ends)))


def outlier_lies_beyond_its_edge(arguments: Mapping[str, Any], top: outliers.Outlier) -> None:
    assert np.all((top.overlap >= 0) & (top.overlap <= 1))
    assert np.all(np.abs(top.eigenvalue) >= np.abs(top.edge))
    assert np.all(~top.visible | (np.abs(top.eigenvalue) >= np.abs(number(arguments, "spike"))))
    assert np.all(top.visible | (top.eigenvalue == top.edge))
    assert np.all(top.visible | (top.overlap == 0))


def rates_shrink(_: Any, value: learning_rates.MomentumRates) -> None:
    assert np.all(value.learning_rate > 0)
    between(0, 1)(_, value.momentum)
    between(0, 1)(_, value.contraction)


def gamma_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    classes = np.shape(arguments.get("p", arguments.get("z")))[-1]
    between(1 - 1e-12, math.sqrt(classes - 1) + 1e-12)(arguments, value)


def batch_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    samples = np.shape(arguments.get("p", arguments.get("z")))[-2]
    gamma_between_its_bounds(arguments, value.mean)
    assert np.all(value.separate >= value.mean * (1 - 1e-12))
    gamma_between_its_bounds(arguments, np.maximum(1, value.separate / math.sqrt(samples)))


def below_the_root_of_the_dimension(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.abs(value) <= np.sqrt(number(arguments, "dim")) * (1 + 1e-12))


def moments_below_the_root_of_the_dimension(arguments: Mapping[str, Any], value: Any) -> None:
    positive(None, value.squared_norm)
    below_the_root_of_the_dimension(arguments, value.excess)


def eigenvalues_share_the_trace(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 0) and np.all(value[..., -1] == 0)
    assert_allclose(value.sum(axis=-1), 1 - np.square(number(arguments, "p")).sum(axis=-1), atol=1e-4)


def descending(_: Any, value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 1e-15 * value[..., :1])


def scaled(_: Any, found: adam.AdamSetting) -> None:
    assert found.rate >= 0 and found.damping >= 0
    between(0, 1)(_, [found.momentum, found.second])


# --- arguments that belong together, or not


@st.composite
def samples_on_directions(draw: st.DrawFn) -> dict[str, Any]:
    """Statistics of three samples on two directions."""
    entry = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, 1e90, 5e-324]))
    raw = np.reshape(draw(st.lists(entry, min_size=24, max_size=24)), (2, 3, 2, 2))
    projected, squared = raw + raw.swapaxes(2, 3)
    numbers = draw(st.lists(st.floats(-0.7, 0.7), min_size=9, max_size=9))
    return spoilt(
        draw,
        {
            "projected": projected,
            "squared": squared,
            "largest": draw(entry) * np.abs(numbers[:3]),
            "overlaps": np.reshape(numbers[3:], (3, 2)),
            "background": draw(entry),
            "spread": draw(entry),
        },
    )


@st.composite
def ends_of_a_spectrum(draw: st.DrawFn) -> dict[str, Any]:
    """An extreme eigenvalue, the next one and the one at the other end."""
    value = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e-308, 1e300]))
    at, gap, rest = draw(value), abs(draw(value)), abs(draw(value))
    sign = draw(st.sampled_from([-1, 1]))
    ends = {"eigenvalue": at, "neighbour": at - sign * gap, "opposite": at - sign * gap - sign * rest}
    return spoilt(draw, ends | {"angle": draw(st.floats(0, math.pi / 2)), "steps": draw(counts)})


def spoilt(draw: st.DrawFn, found: dict[str, Any]) -> dict[str, Any]:
    which = draw(st.sampled_from(["", "", "", *found]))
    return found | {which: draw(hostile)} if which else found


def law_of_batches(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the statistics and of batches, by the arguments of the statistics."""
    return lambda batches, **numbers: function(own_direction.own_directions(**numbers), batches)


BATCHES = mostly(st.sampled_from([[[0]], [[0, 2], [1, 2]], [[0, 1, 2]], [[0, 0]], [[3]], [[-1]], [[0.0]]]))
WITH_BATCHES = st.builds(
    lambda numbers, drawn: numbers | {"batches": drawn}, samples_on_directions(), BATCHES
)

ELEMENT = st.one_of(st.floats(-9, 9), ANY_SIZE)
symmetric = mostly(
    st.builds(lambda a, b, c: [[a, b], [b, c]], ELEMENT, ELEMENT, ELEMENT),
    st.sampled_from([np.eye(2), np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]], np.ones((3, 2, 2)), [[1.0]]]),
)
QUADRATIC = {
    "rate": signed,
    "gradient": mostly(st.lists(ELEMENT, min_size=2, max_size=2)),
    "hessian": symmetric,
    "preconditioner": symmetric,
}
SHARE = mostly(st.floats(0.01, 0.99), st.sampled_from([0.0, 1.0, 1e-300, 1 - 1e-16]))
ADAM = {
    "momentum": SHARE,
    "second": SHARE,
    "batch_size": sizes,
    "known": sizes,
    "gradient": mostly(st.lists(st.floats(-2, 2), min_size=2, max_size=2)),
    "hessian": mostly(
        st.sampled_from([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], [[1e300, 0.0], [0.0, 1.0]]])
    ),
}
SIGNS = {**ADAM, "noise": mostly(st.lists(st.floats(0.1, 9), min_size=2, max_size=2))}
PATHS = {
    "curvatures": mostly(st.sampled_from([[[[4.0]], [[2.0]]], [[[1e200]], [[2.0]]], [[[0.0]], [[0.0]]]])),
    "start": mostly(st.lists(st.floats(-9, 9), min_size=1, max_size=1)),
    "rate": signed,
    "batch_size": mostly(st.integers(1, 3)),
    "steps": mostly(st.integers(0, 9)),
}
LOGITS = mostly(
    st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=2), min_size=2, max_size=2),
    st.sampled_from([[[1e308, -1e308], [0, 0]], [[5e-324, 0.0, 1.0]], np.zeros((2, 3, 4))]),
)
three = st.lists(st.floats(-9, 9), min_size=3, max_size=3)
DERIVATIVES = {
    "label": mostly(st.integers(0, 2), st.sampled_from([1.5, 3, -1, [0, 1], HUGE[0]])),
    "jacobian": mostly(
        three.map(lambda rows: [[x] for x in rows]),
        st.lists(three, min_size=3, max_size=3),
        ANY_SIZE.map(lambda x: np.full((2, 3, 2), x)),
    ),
    "second": mostly(
        three.map(lambda rows: [[[x]] for x in rows]), ANY_SIZE.map(lambda x: np.full((3, 3, 3), x))
    ),
}
AMBIENT = {"parameters": mostly(dims, st.just(math.inf))}
SCALED = {"depth": mostly(st.integers(1, 7), st.sampled_from(HUGE))}
SIZED = {"eigenvalue": sizes, "spike": sizes, "samples": dims, "parameters": dims}
TAIL = {"tail": mostly(shaped(st.floats(0, 0.3)), log_uniform(1e-307, 1.0))}
CHAINS = {
    "matrices": mostly(
        st.tuples(*[st.floats(-9, 9)] * 4).map(lambda w: [[[w[0], w[1]]], [[w[2]], [w[3]]]]),
        st.sampled_from([[[[1e200]], [[1e200]]], [[[1.0]]], [[1.0], [2.0]], [[[1.0, 2.0]], [[1.0, 2.0]]]]),
    ),
    "x": mostly(st.lists(st.floats(-9, 9), min_size=2, max_size=2), ANY_SIZE.map(lambda x: [x, -x])),
}
MEANS = {
    "bias": mostly(
        st.lists(st.floats(-9, 9), min_size=3, max_size=3), st.sampled_from([[0, 0], [1e300, 0], [0, -1e300]])
    ),
    "spread": mostly(st.floats(0, 9), st.just(30.0)),
}

TABLE: dict[str, Line] = {
    **lines(batch_hessian, "effective_batch_size", beyond_the_batch, infinite=True),
    **lines(
        batch_hessian,
        "element_fluctuation finite_population_fluctuation noise_bound element_variance two_layer_rank_bound",
        positive,
    ),
    **lines(batch_hessian, "batch_eigenvalue composed_batch_eigenvalue", no_weaker_than_the_data),
    **lines(
        batch_hessian, "batch_ggn_eigenvalue batch_ggn_factor_eigenvalue", no_weaker_than_the_data, SIZED
    ),
    **lines(batch_hessian, "noise_free_eigenvalue", no_stronger_than_the_data),
    **lines(batch_hessian, "batch_overlap", between(0, 1)),
    **lines(batch_hessian, "second_order_eigenvalue element_skewness", real),
    **lines(batch_hessian, "second_order_coefficient", real, pooled=True),
    **lines(batch_hessian, "crossover_batch_size", below_the_dataset),
    **lines(batch_hessian, "low_rank_noise sample_rank_bound sample_rank_bound_of_paths"),
    **lines(batch_hessian, "ggn_rank_bound dataset_rank_bound", given={"batch_size": counts, "dim": counts}),
    "own_direction.own_directions": Line(own_direction.own_directions, samples_on_directions()),
    **{
        f"own_direction.{f.__name__}": Line(law_of_batches(f), WITH_BATCHES, holds)
        for f, holds in (
            (own_direction.batch_eigenvalues, real),
            (own_direction.expected_eigenvalue, real),
            (own_direction.batch_bounds, bounds_are_ordered),
        )
    },
    **lines(finite_size, "wigner_edge wishart_edge", scatters, SIZED),
    **lines(finite_size, "additive_wigner_sd axis_wigner_sd", positive, {"fourth_cumulant": signed}),
    **lines(
        finite_size, "additive_wishart_sd information_plus_noise_sd spiked_covariance_sd", positive, SIZED
    ),
    "lanczos_bounds.ritz_value_bound": Line(
        lanczos_bounds.ritz_value_bound, ends_of_a_spectrum(), between_the_ends
    ),
    **lines(
        outliers,
        "additive_wishart information_plus_noise spiked_covariance",
        outlier_lies_beyond_its_edge,
        SIZED,
    ),
    **lines(outliers, "additive_wigner", outlier_lies_beyond_its_edge),
    **lines(outliers, "additive", lambda _, top: between(0, 1)(_, top.overlap), {"law": laws_of_noise}),
    **lines(
        rmt,
        "wigner_second_moment profiled_fourth_moment sparse_fourth_moment low_rank_fourth_moment"
        " wishart_third_moment alternating_moment",
        positive,
        {"batch_size": dims},
    ),
    **lines(rmt, "rank_one_stieltjes rank_one_inverse rank_one_expansion"),
    **lines(rmt, "overlap_cdf subspace_share", between(0, 1), {"members": dims}),
    **lines(
        learning_rates,
        "stability_limit sgd_limit mean_square_limit linear_then_flat square_root gaussian_least_squares_growth",
        positive,
        SIZED,
    ),
    **lines(
        learning_rates,
        "heavy_ball_contraction nesterov_contraction",
        positive,
        {"momentum": signed, "smallest": signed},
    ),
    **lines(learning_rates, "heavy_ball nesterov best_nesterov", rates_shrink),
    **lines(learning_rates, "sgd_exponent", between(0, 0.5), SIZED),
    **lines(learning_rates, "marchenko_pastur_exponent mean_square_exponent", between(0, 1), SIZED),
    **lines(learning_rates, "mean_square_crossover", below_the_dataset, SIZED),
    **lines(
        learning_rates,
        "mean_square_bracket",
        lambda _, found: positive(_, np.concatenate(np.atleast_1d(*found))),
    ),
    **lines(learning_rates, "gaussian_least_squares_limit", between(0, 2)),
    **lines(learning_rates, "mean_square_descent", between(-math.inf, 1)),
    **lines(adaptive_rates, "outlier_over_edge", between(1 - 1e-15, math.inf), SIZED, infinite=True),
    **lines(adaptive_rates, "adaptive_limit", positive, infinite=True),
    **lines(
        loss_change,
        "quadratic_change",
        real,
        {**QUADRATIC, "preconditioner": st.one_of(st.none(), symmetric)},
    ),
    **lines(loss_change, "sign_averaged_change", real, QUADRATIC),
    **lines(loss_change, "descent_bound", real, {"rate": signed, "sharpness": signed}),
    **lines(loss_change, "squared_gradient_mean squared_gradient_variance", positive, {"trace": sizes}),
    **lines(
        loss_change,
        "mean_descent_limit",
        positive,
        {"squared_gradients": st.lists(st.floats(0, 10), max_size=3)},
        pooled=True,
    ),
    **lines(
        noise_scale,
        "gradient_noise_scale simple_noise_scale best_step_rate best_step_decrease interpolating_rate"
        " mean_square_factor mixture_share",
        positive,
        {"trace": sizes, "eigenvalue": sizes},
    ),
    **lines(noise_scale, "critical_batch_size", positive, infinite=True),
    **lines(noise_scale, "mean_square_distances", positive, PATHS),
    **lines(adam, "square_root_rule", scaled, ADAM),
    **lines(adam, "half_life adaptive_edge", positive, ADAM),
    **lines(adam, "surge_scale", positive, SIGNS),
    **lines(adam, "same_half_life", between(0, 1), ADAM),
    **lines(adam, "sign_rate surge_rate", real, SIGNS),
    **lines(softmax, "covariance", lambda _, m: assert_array_equal(m, np.swapaxes(m, -1, -2))),
    **lines(softmax, "eigenvalues", eigenvalues_share_the_trace),
    **lines(softmax, "gamma gamma_from_logits gamma_of_pairs", gamma_between_its_bounds),
    **lines(softmax, "batch_gammas batch_gammas_from_logits", batch_between_its_bounds, {"z": LOGITS}),
    **lines(softmax, "equal_tail_gamma", real, TAIL),
    **lines(softmax, "equal_tail_eigenvalues", descending, TAIL),
    **lines(softmax, "collapse_limit", between(1 - 1e-12, 2), pooled=True),
    **lines(softmax, "rounded_gamma", positive),
    **lines(softmax, "ray_slope", lambda _, value: real(_, np.float64(value))),
    **lines(
        softmax,
        "entropy_discordance",
        between(0, 1),
        {"classes": mostly(st.integers(3, 8), st.sampled_from(HUGE))},
    ),
    **lines(gauss_newton, "loss_gradient", real, DERIVATIVES),
    **lines(gauss_newton, "hessian_terms", given=DERIVATIVES),
    **lines(gauss_newton, "gauss_newton_trace", positive, DERIVATIVES),
    **lines(gauss_newton, "expected_gradient_weights", between(-1.1, 1.1)),
    **lines(gauss_newton, "gradient_scatter", between(0, 2)),
    **lines(gauss_newton, "spectrum_excess", real, pooled=True),
    **lines(gauss_newton, "largest_excess", between(1, math.inf)),
    **lines(gauss_newton, "excess_ceiling", below_the_root_of_the_dimension),
    **lines(
        gauss_newton,
        "sign_probe_variance normal_probe_variance expected_excess expected_gradient_norm finite_sample_excess"
        " squared_gradient_norm frame_overlap hessian_excess",
        positive,
        SIZED,
    ),
    **lines(
        gauss_newton,
        "expected_eigenvalues",
        descending,
        {"dim": mostly(st.integers(2, 20), st.sampled_from(HUGE))},
    ),
    **lines(gauss_newton, "projected_excess", below_the_root_of_the_dimension, AMBIENT),
    **lines(gauss_newton, "excess_noise_floor", between(0, 1), AMBIENT),
    **lines(gauss_newton, "haar_moments", moments_below_the_root_of_the_dimension, SIZED),
    **lines(
        gauss_newton,
        "sparse_moments",
        moments_below_the_root_of_the_dimension,
        {
            "dim": mostly(st.integers(1, 20)),
            "parameters": mostly(st.integers(20, 10**5), st.sampled_from(HUGE)),
        },
    ),
    **lines(zone, "curvature_factors", lambda _, value: positive(_, np.stack(value)), SCALED),
    **lines(
        zone,
        "reduced_temperature matched_rate lower_edge upper_edge near_tie_weight largest_base_rate"
        " homogeneous_factor euler_factor spiked_excess",
        positive,
        {**SIZED, **SCALED},
    ),
    **lines(zone, "bulk_outlier"),
    **lines(zone, "tanh_correction", real, CHAINS),
    **lines(zone, "confident_log_trace", real, SCALED, pooled=True),
    **lines(initial_loss, "jensen_bound", positive, infinite=True),
    **lines(initial_loss, "prior_entropy", real),
    **lines(initial_loss, "gaussian_loss", given=MEANS),
}
