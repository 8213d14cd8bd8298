"""Refusals of all public functions: no number, outside the domain, arguments that do not fit together."""

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.theory.calls import CALLS, SINE, call, function
from theory import activations, rmt
from theory.activations import Activation, gaussian_kernels
from theory.activations.gaussian import KinkedQuadrature, NumericalKernels

WILD = Activation("wild", lambda x: 1e200 * np.tanh(x), lambda x: 1e200 / np.cosh(x) ** 2)
CUBIC = Activation("cubic", lambda x: x**3 - 3 * x, lambda x: 3 * x**2 - 3, lambda x: 6 * x)
NO_NUMBER = (None, "x", 1j, np.bool_(1), math.nan, -math.inf, {}, np.array([0.5, 0.5], dtype=object))
DOMAINS = (
    (
        (0, -1, 2.5),
        "",
        "dim rank outputs widths inputs samples hidden classes depth width steps parameters digits",
    ),
    (
        (-1, 2.5),
        "",
        "members label order sample_rank symmetries positive_share tail contrast squared_error second angle",
    ),
    (
        (0, -1.0),
        "loss_change batch_hessian lanczos_bounds",
        "rate sharpness preconditioner eigenvalue batch_size dataset_size growth known eta1 eta2 eta3 square"
        " width_ratio input_ratio limit squared_gradients largest curvatures temperature weights gamma"
        " separate_gamma ratio alpha gauss_newton_norm h_term_norm gap_density squared_slopes per_row product",
    ),
    (
        (0, -1.0),
        "learning_rates zone.bulk rmt finite_size batch_hessian outliers.additive_wigner",
        "batch_size q",
    ),
    (
        (-1.0,),
        "",
        "variance sigma norm variances total damping overlap covariance_along trace_of_square diagonal sigma_a sigma_b"
        " sigma_c sigma_e squared_norm squared_diagonal gauss_newton_excess frobenius_ratio gaps bulk_norm spread"
        " weight_variance bias_variance squared_gradient q crossover logit_std batch_size dataset_size",
    ),
    ((1.0, 0), "", "average lower replacement semidefinite biases orthogonal finite_width finite_samples"),
)
"""Numbers out of the domains of arguments, in every function that takes them but those of some modules."""
TAKEN = {("u", "1j"), ("value", "-inf")}
INFINITE = ["dataset_size", "crossover", "value", "parameters"]
CALLABLE = (
    "activations.built_in activations.gaussian own_direction rmt.C rmt.T rmt.S rmt.M order_parameters.prop"
)
NAMES = [name for name in CALLS if not name.startswith(tuple(CALLABLE.split()))]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_out_of_its_domain_is_refused_in_every_place(name: str) -> None:
    for argument, parameter in inspect.signature(function(name)).parameters.items():
        out = [
            number
            for numbers, modules, arguments in DOMAINS
            if argument in arguments.split() and not (modules and name.startswith(tuple(modules.split())))
            for number in numbers
        ]
        for wrong in (*NO_NUMBER, *out, *([] if argument in INFINITE else [math.inf])):
            right = (argument, repr(wrong)) in TAKEN or wrong is parameter.default
            if right or (isinstance(wrong, np.bool_) and "bool" in str(parameter.annotation)):
                continue
            with pytest.raises(ValueError, match=rf"^{argument} must be"):
                call(name, {argument: wrong})


PAIRS = (("batch_size", "dataset_size"), ("known", "dataset_size"), ("dim", "parameters"))


@pytest.mark.parametrize(("part", "whole"), PAIRS)
def test_a_part_is_no_larger_than_the_whole(part: str, whole: str) -> None:
    for name in NAMES:
        drawn_once = CALLS[name].get("replacement") is not True
        if drawn_once and {part, whole} <= set(inspect.signature(function(name)).parameters):
            with pytest.raises(ValueError, match=rf"^{part} must be (at most|below) {whole}"):
                call(name, {part: 301, whole: 300})


OVERFLOW = "must be such that the result does not overflow"
LARGE_MOMENTS = (("start", 1e200), ("noise", (1e200, 1.0)), ("noise", (1.0, 1e200)), ("rate", 1e308))
LARGE = "must be small enough not to overflow"
NETWORK = "activation must be one"
TWO = {"p": [0.5, 0.5]}
SPECIAL = {
    "activations.leaky_relu": [
        ({"slope": 1e80}, r"at most 1e\+75 in"),
        ({"slope": [1.0, 2.0]}, "a scalar"),
    ],
    "activations.single": [
        ({"activation": "swish"}, "one of .*"),
        ({"activation": ["relu"]}, "an Activation or its"),
    ],
    "activations.resolve": [
        (
            {"activation": ["relu", "tanh"], "layers": 3},
            r"one or one per hidden layer \(3\), got 2",
        ),
        ({"activation": 3.0}, "an Activation, a name"),
        (
            {"activation": [np.tanh, "relu"]},
            "an Activation or its name, got <ufunc 'tanh'>",
        ),
        ({"activation": itertools.count()}, r"one or one per hidden layer \(2\)"),
        ({"layers": 10**12}, "at most 1000000"),
    ],
    "activations.gaussian_kernels": [({"activation": "relu"}, "an Activation")],
    "batch_hessian.effective_batch_size": [({"batch_size": [1, 1800]}, "at most dataset_size")],
    "batch_hessian.batch_eigenvalue": [
        ({"sigma": 1e308}, f"eigenvalue, sigma, dim, batch_size {OVERFLOW}"),
        (
            {"eigenvalue": [1, 2], "sigma": [1, 2, 3]},
            "eigenvalue, sigma, dim, batch_size, dataset_size must be broadcastable",
        ),
    ],
    "batch_hessian.composed_batch_eigenvalue": [({"eigenvalue": [5.0, 0.04]}, "at least 2 sigma")],
    "batch_hessian.noise_free_eigenvalue": [({"eigenvalue": 0.0}, "at least 2 sigma")],
    "batch_hessian.crossover_batch_size": [({"eigenvalue": [1.0, 0.0]}, "non-zero")],
    "batch_hessian.finite_population_fluctuation": [
        ({"batch_size": 0.2, "dataset_size": 0.5}, "dataset_size must be at least 1"),
        ({"batch_size": 1798, "replacement": False}, "at most dataset_size"),
    ],
    "batch_hessian.element_skewness": [({"batch_size": 1797}, "below dataset_size")],
    "batch_hessian.second_order_coefficient": [
        ({"eigenvalues": 2.0}, "a vector"),
        ({"eigenvalues": [], "variances": []}, "a vector"),
        ({"eigenvalues": [2.0, 2.0, 1.0]}, "different from the first"),
    ],
    "batch_hessian.sample_rank_bound": [
        ({"widths": ()}, "a sequence of integers"),
        ({"widths": (4, 0)}, "an integer >= 1"),
    ],
    "batch_hessian.dataset_rank_bound": [({"dim": 3, "symmetries": 4}, "symmetries must be at most 3")],
    "criticality.variance_fixed_point": [({"activation": "swish"}, NETWORK)],
    "finite_size.wishart_edge": [({"dim": [4, 5], "samples": 5, "lower": True}, "different from samples at")],
    "finite_size.additive_wigner_sd": [
        ({"spike": 0.6}, r"beyond the threshold 0\.6"),
        ({"spike": 0.0, "sigma": 0.0}, r"beyond the threshold 0\.0"),
    ],
    "finite_size.additive_wishart_sd": [({"spike": 0.1}, r"beyond the threshold 0\.61")],
    "finite_size.information_plus_noise_sd": [({"spike": 0.2}, r"beyond the threshold 0\.37")],
    "finite_size.axis_wigner_sd": [({"fourth_cumulant": -3.0}, "at least -2")],
    "fisher.eigenvalue_statistics": [
        ({"depth": 1}, "an integer >= 2"),
        ({"samples": True}, "an integer"),
        ({"weight_variance": [1.0, 2.0]}, "a scalar"),
        ({"width_ratios": [1.0, 1.0]}, "a sequence of 3"),
        ({"width_ratios": [1.0, 0.0, 1.0]}, "positive"),
        (
            {"width_ratios": [1.0, 0.3, 1.0], "width": 8, "finite_width": True},
            "such that width 8",
        ),
        ({"activation": SINE}, "second_derivative must be given for activation"),
    ],
    "fisher.mean_subtracted_statistics": [
        ({"depth": 10**9}, "at most 100000"),
        ({"depth": 20_000}, "small enough for memory"),
        ({"width": 10**30}, "at most 9223372036854775807"),
        (
            {"depth": 2, "width_ratios": [1e200, 1e200]},
            "width_ratios must be such that alpha neither overflows nor vanishes",
        ),
    ],
    "fisher.fluctuation_constants": [
        (
            {"activation": "linear", "depth": 50_000, "outputs": 1},
            r"depth must be small enough for memory .* needs about 373 GiB",
        )
    ],
    "fisher.batch_normalised_statistics": [
        ({"q2": None}, "given if and only"),
        ({"q1": None}, "q2 must be given if and only"),
        ({"q2": 9.1}, r"between q1\^2/3 and q1\^2"),
        ({"q2": 0.8}, r"between q1\^2/3 and q1\^2"),
        ({"samples": 1}, "an integer >= 2"),
        (
            {"q1": None, "q2": None, "weight_variance": 0.0},
            "weight_variance must be such that outputs differ between samples, got 0.0",
        ),
        (
            {"q1": None, "q2": None, "weight_variance": 1e-60, "bias_variance": 0.0, "activation": "relu"},
            "weight_variance must be large enough for the squared",
        ),
    ],
    "fisher.deviation_share": [({"depth": 4}, "at most 3 unless")],
    "fisher.cross_entropy_statistics": [
        ({"probabilities": [0.5, 0.5]}, r"of shape \(T, C\), T >= 1"),
        ({"probabilities": np.zeros((0, 3))}, r"of shape \(T, C\), T >= 1"),
        ({"probabilities": [[0.5, 0.6]]}, "a probability vector along"),
    ],
    "fisher.layer_norm_statistics": [
        ({"activation": SINE}, "second_derivative must be given for activation 'sine'")
    ],
    "fisher.realised_etas": [
        ({"preactivations": [1.0, 2.0]}, "of shape"),
        ({"preactivations": [[1.0, 2.0], [3.0, 3.0]]}, "different within each sample"),
        ({"preactivations": [[1e305, 0.0, 1.0]]}, "below 1e300"),
    ],
    "fisher.inverse_variance_cdf": [({"outputs": 1}, "an integer >= 2")],
    "fisher.expected_etas": [
        (
            {"weight_variance": 5e-324, "bias_variance": 0.0},
            "variance must be such that the variance of an output does not vanish",
        )
    ],
    "fisher.batch_norm_bound": [({"samples": 1}, "an integer >= 2")],
    "fisher.batch_norm_moments": [
        (
            {"activation": WILD, "samples": 5, "finite_samples": True},
            "such that its averages do not overflow, got 'wild'",
        ),
        (
            {
                "activation": Activation("nan", lambda x: np.where(x > 0, math.nan, x), np.cos),
                "samples": 5,
                "finite_samples": True,
            },
            "finite, of the shape of its argument",
        ),
    ],
    "fisher.batch_norm_largest": [({"activation": "tanh"}, "of a mean other")],
    "fisher.batch_norm_largest_odd": [
        ({"activation": "relu"}, "odd"),
        ({"activation": CUBIC}, "with a linear part"),
        ({"input_ratio": 1e-3}, "such that sizes differ"),
    ],
    "fisher.tangent_kernel_statistics": [
        ({"weight_variance": 1e140, "activation": "relu"}, f"weight_variance {LARGE}"),
        ({"bias_variance": 1e200}, f"bias_variance {LARGE}"),
        (
            {"width_ratios": [1.0, 0.5123, 1.0]},
            "such that width 1000 gives whole layer widths",
        ),
    ],
    "fisher.tangent_kernel": [
        ({"input_overlap": 1.5}, r"in \[-1, 1\]"),
        ({"activation": SINE}, "second_derivative must be given for activation 'sine'"),
    ],
    "fisher.loss_floor": [
        ({"targets": [[]]}, r"of shape \(T, C\)"),
        ({"targets": [[1e200]]}, "such that the result does not overflow"),
    ],
    "gauss_newton.class_blocks.uniform_ratio": [
        ({"classes": 10**400}, f"at most {2**63 - 1}, got 1000"),
        ({"classes": 1}, "an integer >= 2"),
    ],
    "gauss_newton.class_blocks.output_ratio": [({"logit_std": 9.0}, r"in \[0, 8\]")],
    "gauss_newton.loss_gradient": [({"label": 3}, "a whole number below")],
    "gauss_newton.gauss_newton_trace": [({"jacobian": [[0.3], [1.0]]}, r"of shape \(..., 3, d\)")],
    "gauss_newton.hessian_terms": [({"second": [[0.3], [1.0]]}, "of shape .*")],
    "gauss_newton.expected_eigenvalues": [
        ({"dim": 1}, "an integer >= 2"),
        (
            {"dim": 10**12},
            r"small enough for memory .* about 21\.8 TiB, the limit is 16 GiB\), got 1000000000000",
        ),
        ({"sigma_c": 0.0, "sigma_e": 0.0}, "sigma_c and sigma_e must be not both"),
    ],
    "gauss_newton.expected_excess": [
        ({"gamma": 0.99}, "at least 1"),
        ({"sigma_c": [1.0, 0.0], "sigma_e": 0.0}, "sigma_c and sigma_e must be not both"),
    ],
    "gauss_newton.excess_ceiling": [
        ({"sigma_c": 0.0, "sigma_e": 0.0}, "sigma_c and sigma_e must be not both")
    ],
    "gauss_newton.expected_gradient_norm": [
        ({"mean_probability": [0.5, 0.4]}, "a probability vector"),
        ({"prior": [0.2, 0.8]}, "over 3 classes"),
    ],
    "gauss_newton.spectrum_excess": [({"eigenvalues": [[1.0, 0.0], [0.0, 0.0]]}, "not all zero along")],
    "gauss_newton.sign_probe_variance": [({"squared_diagonal": 3.1}, "at most squared_norm")],
    "gauss_newton.haar_moments": [
        (
            {"trace": 3.0, "squared_norm": 1.0, "parameters": 4, "dim": 2},
            "squared_norm must be at least trace",
        ),
    ],
    "gauss_newton.sparse_moments": [
        ({"squared_diagonal": 2.6}, "from trace"),
        (
            {"trace": 50.0, "squared_diagonal": 0.2, "squared_norm": 3.0},
            "squared_diagonal must be from trace",
        ),
    ],
    "gauss_newton.projected_excess": [({"excess": 2.1, "dim": 2, "parameters": 4}, "at most sqrt")],
    "gauss_newton.finite_sample_excess": [
        ({"separate_gamma": 1.2}, "at least gamma"),
        ({"separate_gamma": 0.9}, "at least 1"),
    ],
    "gauss_newton.squared_gradient_norm": [({"squared_error": 2.1}, "squared_error must be")],
    "initial_loss.jensen_bound": [
        ({"mean_probability": [0.5, 0.4]}, "a probability vector"),
        ({"prior": [0.2, 0.8]}, "over 3 classes"),
    ],
    "initial_loss.gaussian_loss": [
        ({"spread": 31}, r"in \[0, 30\]"),
        ({"bias": [0.0]}, "at least two numbers"),
    ],
    "lanczos_bounds.ritz_value_bound": [
        ({"neighbour": 3.5}, "between eigenvalue and opposite"),
        ({"angle": 1.6}, r"in \[0, 1\.5708\]"),
    ],
    "learning_rates.heavy_ball": [({"largest": [2.0, 0.2]}, "at least smallest")],
    "learning_rates.heavy_ball_contraction": [({"largest": 0.1}, "at least smallest")],
    "learning_rates.linear_then_flat": [
        ({"known": 1797, "crossover": math.inf}, "below dataset_size where the"),
        ({"crossover": 1798}, "at most dataset_size, or"),
    ],
    "learning_rates.square_root": [
        ({"known": 1797}, "below dataset_size"),
        ({"batch_size": 1797}, "below dataset_size"),
    ],
    "learning_rates.mean_square_bracket": [
        ({"curvatures": [], "variances": []}, r"of shape \(\.\.\., k\), k >= 1")
    ],
    "learning_rates.adam.square_root_rule": [({"growth": 200.0}, "momentum must be at least 1 -")],
    "learning_rates.adam.adam_moments": [
        ({"momentum": 1.0}, "below 1"),
        ({"second": 1.5}, r"in \[0, 1\]"),
        ({"noise": (1.0,)}, "two numbers"),
        ({"noise": (1.0, 0.0)}, "positive"),
        ({"steps": (5,)}, "two numbers"),
        ({"steps": (5, 0)}, "an integer >= 1"),
        ({"steps": (5, 10**7)}, "at most 1000000"),
        ({"rate": 1e200}, "small enough for the equations"),
        *(({name: large}, f"start, curvature, noise, rate {OVERFLOW}") for name, large in LARGE_MOMENTS),
    ],
    "learning_rates.adam.half_life": [({"second": 1.0}, "above 0 and below")],
    "learning_rates.adam.sign_rate": [
        ({"noise": [1.0, 2.0, 3.0]}, r"of shape \(2,\)"),
        ({"gradient": 0.3}, "a vector"),
        ({"hessian": np.eye(3)}, r"of shape \(2, 2\)"),
        ({"hessian": [[1.0, 1.0], [0.0, 1.0]]}, "symmetric"),
        ({"hessian": -np.eye(2)}, "such that the mean"),
    ],
    "learning_rates.adam.surge_scale": [({"hessian": np.eye(2)}, "of positive trace and")],
    "learning_rates.adam.adaptive_edge": [({"momentum": 1.0}, "below 1")],
    "learning_rates.catapult.growth_steps": [
        ({"product": 2.0}, r"in \(2, 4\)"),
        ({"product": 3.0, "ratio": 0.0}, "ratio must be positive"),
    ],
    "learning_rates.catapult.curvature_drop": [({"product": 2.0}, r"in \(0, 2\)")],
    "learning_rates.catapult.final_product": [
        ({"output": 0.0}, "different from 0"),
        ({"output": 1.6}, "at most half of"),
        ({"product": 4.0}, r"in \(0, 4\)"),
    ],
    "learning_rates.catapult.mean_final_product": [({"product": 4.5}, r"in \(0, 4\)")],
    "learning_rates.noise_scale.best_step_rate": [
        (
            {"curvature": -9.0, "noise": 1.0},
            "above minus the noise over b",
        )
    ],
    "learning_rates.noise_scale.critical_batch_size": [
        ({"largest": 0.2}, "smallest must be at most largest")
    ],
    "learning_rates.noise_scale.interpolating_rate": [
        ({"batch_size": 0.5}, "at least 1"),
        ({"squared_norm": 1.0}, "largest must be at most squared_norm"),
    ],
    "learning_rates.noise_scale.mean_square_factor": [({"eigenvalue": 7.0}, "at most squared_norm")],
    "learning_rates.noise_scale.mixture_share": [
        ({"batch_size": 9, "dataset_size": 8}, "at most dataset_size"),
        ({"batch_size": 1, "dataset_size": 1}, "dataset_size must be at least 2"),
        ({"batch_size": 1.5}, "a whole number"),
    ],
    "learning_rates.noise_scale.mean_square_distances": [
        ({"curvatures": [[1.0]]}, r"of shape \(N, P, P\), N >= 2"),
        ({"curvatures": [[[1.0, 2.0], [0.0, 1.0]]] * 2, "start": [1.0, 1.0]}, "symmetric"),
        ({"start": [1.0, 2.0]}, r"of shape \(1,\)"),
        ({"rate": [0.1, 0.2]}, "a scalar"),
        ({"batch_size": 3}, "at most dataset_size"),
        ({"steps": 10**7}, "at most 1000000"),
    ],
    "learning_rates.noise_scale.least_squares_risks": [
        ({"eigenvalues": [[1.0]]}, r"of shape \(d,\), d >= 1"),
        ({"start": [1.0]}, r"of shape \(2,\)"),
        ({"steps": 10**7}, "at most 1000000"),
    ],
    "learning_rates.noise_scale.critical_batch_exponent": [
        ({"capacity": 0.9}, "above 1"),
        ({"source": 1.0}, "above 1"),
        ({"source": 6.0}, r"below 2 capacity \+ 1"),
    ],
    "linear_network.linear_network_edge": [
        ({"ratio": [1.0, 2.0]}, "a scalar"),
        ({"ratio": 1e-200}, "such that its shapes are"),
        ({"width_ratios": [1.0]}, "a sequence of 2"),
    ],
    "linear_network.linear_network_largest": [
        ({"samples": 1}, "an integer >= 2"),
        ({"width_ratios": [1e-80, 1e80]}, "such that its shapes are"),
    ],
    "loss_change.quadratic_change": [
        ({"gradient": 1.0}, r"of shape \(\.\.\., P\)"),
        ({"hessian": np.eye(3)}, r"of shape \(\.\.\., 2, 2\)"),
        ({"hessian": [[1.0, 2.0], [3.0, 4.0]]}, "symmetric"),
        ({"preconditioner": np.zeros((2, 2))}, "invertible"),
        ({"rate": [1.0, 2.0], "hessian": np.ones((3, 2, 2))}, "gradient, hessian must be broadcastable"),
        ({"rate": 1e200}, f"rate, gradient, hessian, preconditioner {OVERFLOW}"),
    ],
    "loss_change.sign_averaged_change": [
        ({"preconditioner": np.eye(2)}, "a matrix with distinct eigenvalues")
    ],
    "loss_change.mean_descent_limit": [({"squared_gradients": [0.0], "sharpness": [1.0]}, "not all 0")],
    "order_parameters.order_parameters": [
        ({"depth": 10**9}, "at most 100000"),
        ({"digits": 10**9}, "at most 1000"),
        (
            {"activation": "tanh", "digits": 20, "weight_variance": 1e300},
            r"digits must be fewer for the trapezoidal rule at variance 1\.0e\+300, got 20",
        ),
        ({"activation": SINE, "digits": 20}, "a named one where"),
        ({"activation": ["relu"]}, r"one or one per hidden layer \(2\)"),
        ({"activation": "relu", "weight_variance": 1e120, "depth": 4}, f"weight_variance {LARGE}"),
        ({"activation": "relu", "bias_variance": 1e308}, rf"bias_variance {LARGE}"),
        ({"input_overlap": [0.5]}, "a scalar"),
    ],
    "order_parameters.propagate": [({"activations": 3}, "a sequence of Activation")],
    "order_parameters.preactivation_moment": [
        ({"q_hat": 1e200, "weight_variance": 1e200}, "q_hat, weight_variance, bias_variance must be such")
    ],
    "outliers.additive_wigner": [
        ({"sigma": 1e308}, f"spike, sigma {OVERFLOW}"),
        ({"spike": [1, 2], "sigma": [1, 2, 3]}, r"spike, sigma must be broadcastable .* \(2,\), \(3,\)"),
        (
            {"spike": np.ones((10**6, 1)), "sigma": np.ones(10**6)},
            r"spike, sigma must be small enough for memory .* about 87\.3 TiB",
        ),
        ({"spike": 10**5000}, "real numbers"),
        ({"spike": [math.nan] * 1000}, "finite"),
    ],
    "outliers.information_plus_noise": [
        ({"spike": -1.0}, "non-negative"),
        ({"q": 0.0}, "positive and finite"),
    ],
    "outliers.additive": [({"law": None}, "a spectrum with edges,")],
    "own_direction.own_directions": [
        ({"projected": np.zeros((7, 2, 2))}, "of positive mean top"),
        ({"projected": np.ones((7, 2))}, r"of shape \(N, k, k\)"),
        ({"projected": [[[0.0, 1.0], [2.0, 0.0]]]}, "symmetric"),
        ({"squared": np.ones((7, 1, 1))}, r"of shape \(7, 2, 2\) like projected"),
        ({"squared": np.full((7, 2, 2), 1e101)}, "at most 1e.100 in"),
        ({"largest": [1.0]}, r"of shape \(7,\)"),
        ({"overlaps": np.ones((7, 3))}, r"of shape \(7, 2\)"),
        ({"overlaps": np.ones((7, 2))}, "at most 1 in"),
        ({"background": [0.0, 1.0]}, "a scalar"),
    ],
    "own_direction.batch_eigenvalues": [
        ({"batches": [[0.0, 1.0]]}, "indices of samples"),
        ({"batches": [0, 1]}, "indices of samples"),
        ({"batches": [[0, 7]]}, "between 0 and 6"),
        ({"batches": [[-1, 2]]}, "between 0 and 6"),
        ({"batches": [[3, 3]]}, "without repeated samples"),
        ({"statistics": {}}, "the result of own_directions"),
    ],
    "rmt.profiled_fourth_moment": [({"dim": 3}, "even")],
    "rmt.sparse_fourth_moment": [({"dim": 3}, "per_row must be at most dim")],
    "rmt.rank_one_stieltjes": [({"u": 1.7}, "neither 0 nor the spike")],
    "rmt.rank_one_inverse": [({"s": 0.0}, "different from 0")],
    "rmt.overlap_cdf": [({"dim": 1, "x": 1.0}, "at least 2")],
    "rmt.subspace_share": [({"members": 227}, "an integer from 0")],
    "rmt.CompoundFreePoisson": [
        ({"rate": [1.0, 2.0]}, "a scalar"),
        ({"rate": 1e-7}, "rate times weights must be between 1e-06"),
        ({"rate": 1e13}, "rate times weights must be between"),
        ({"jumps": 0.0}, "one to 64 numbers"),
        ({"jumps": np.ones(65)}, "one to 64 numbers"),
        ({"jumps": [1.0, -1e-7]}, r"within 1e\+06 of each"),
        ({"weights": [0.5, 0.5]}, "as many as jumps"),
        ({"jumps": [1.0, 2.0], "weights": [0.5, 0.6]}, "weights must be a probability vector"),
    ],
    "rmt.TracyWidom": [
        ({"beta": 4}, "1 or 2"),
        ({"beta": 1.5}, "an integer >= 1"),
    ],
    "rmt.Semicircle": [
        ({"variance": 0.36}, "sigma or variance must be given, exactly"),
        ({"sigma": None, "variance": None}, "sigma or variance must be given, exactly"),
        ({"sigma": 0.0, "variance": None}, "positive and finite"),
        ({"sigma": [1.0], "variance": None}, "a scalar"),
        ({"sigma": 1e-160, "variance": None}, "sigma squared must be between 1e-270"),
        ({"variance": 10**5000}, "variance must be given, exactly one, got a number too long"),
    ],
    "rmt.MarchenkoPastur": [
        ({"sigma": None, "q": 0.0}, "q must be positive and finite"),
        ({"sigma": None, "q": 1e200, "variance": 1e200}, "q times variance must be at most"),
        ({"sigma": None, "variance": 1e-300}, r"variance must be between 1e-270 and 1e\+270"),
    ],
    "softmax.covariance": [({"p": np.full(10**6, 1e-6)}, "small enough for memory")],
    "softmax.eigenvalues": [
        ({"p": bad}, "p must be a probability vector along")
        for bad in ([0.5, 0.6], [1.5, -0.5], [1.0], [0.5, 0.5 + 2e-8], [1e308, 1e308])
    ],
    "softmax.gamma": [
        ({"p": [[0.5, 0.5], [1.0, 0.0]]}, "not one-hot, got"),
        ({"p": np.eye(2), "average": True}, "not one-hot in every"),
        ({**TWO, "average": True}, "p must be a batch of shape"),
    ],
    "softmax.gamma_of_pairs": [({"p": [1.0, 0.0, 0.0]}, "not one-hot")],
    "softmax.batch_gammas": [
        (TWO, r"a batch of shape \(..., N, K\), got \(2,\)"),
        ({"p": [[1.0, 0.0]]}, "not one-hot in every"),
    ],
    "softmax.gamma_from_logits": [
        ({"z": [1.0]}, "at least two logits"),
        ({"z": np.zeros(10**4), "temperature": np.ones(10**6)}, "small enough for memory"),
    ],
    "softmax.batch_gammas_from_logits": [
        ({"z": [1.0, 2.0]}, "a batch of shape"),
        ({"z": np.empty((0, 3))}, "a batch"),
        ({"z": np.zeros((9, 10)), "temperature": np.ones(10**7)}, "small enough for memory"),
    ],
    "softmax.ray_slope": [({"z": [1.0]}, "at least two logits")],
    "softmax.entropy_discordance": [({"classes": 2}, "an integer >= 3")],
    "softmax.rounded_gamma": [({"members": 1}, "at least 2")],
    "softmax.collapse_limit": [
        ({"weights": [1.0, -1.0]}, "non-negative and finite"),
        ({"weights": [[1.0, 0.0], [0.0, 0.0]]}, "not all zero along"),
    ],
    "softmax.equal_tail_gamma": [
        ({"members": 1}, "at least 2"),
        ({"tail": 0.51, "members": 3}, "at most 1/2"),
        ({"tail": 1.0, "members": 2}, "below 1 for two"),
    ],
    "softmax.equal_tail_eigenvalues": [
        ({"classes": 4}, "an integer >= 5"),
        ({"classes": 10**9}, "small enough"),
    ],
    "zone.near_tie_weight": [({"alpha": 1e-200}, "alpha, gap_density, depth must be such")],
    "zone.spiked_excess": [({"rank": 227}, "at most dim")],
    "zone.tanh_correction": [
        ({"matrices": [[[1.0]]]}, "at least two"),
        ({"matrices": [[[1.0]], [[1.0, 2.0]]]}, "each with as many columns as"),
        ({"matrices": [[[1.0]], [[1.0]]]}, r"x must be of shape \(\.\.\., 1\)"),
    ],
    "zone.confident_log_trace": [({"squared_slopes": [0.0]}, "not all zero")],
}
"""What one argument alone does not show, and what the message says, in full or after the argument's "must be"."""


@pytest.mark.parametrize(
    ("name", "changes", "message"), [(name, *case) for name, cases in SPECIAL.items() for case in cases]
)
def test_what_does_not_fit_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    rule = message if " must " in message else f"^{next(iter(changes))} must be {message}"
    with pytest.raises(ValueError, match=rule):
        call(name, changes)


WHOLE = rmt.CompoundFreePoisson(rate=6.3, jumps=[1.3, -0.4])
SPLIT = rmt.CompoundFreePoisson(rate=0.1, jumps=[1.0, -1.0])
PASTUR = rmt.MarchenkoPastur(q=0.25, variance=1.0)
UNIT = rmt.Semicircle(sigma=1.0)
RELU, TANH, ERF = (gaussian_kernels(activations.single(name)) for name in ("relu", "tanh", "erf"))


def pastur(q: float, variance: float = 1.0) -> rmt.MarchenkoPastur:
    return rmt.MarchenkoPastur(q=q, variance=variance)


def kinked(**changes: Any) -> KinkedQuadrature:
    return KinkedQuadrature(**{"name": "f", "function": np.abs, "first": np.sign, "kinks": (0.0,)} | changes)


@pytest.mark.parametrize("law", [UNIT, PASTUR, SPLIT, rmt.TracyWidom(beta=1)], ids=repr)
def test_laws_refuse_what_is_no_point_and_no_probability(law: Any) -> None:
    for method, name, wrongs in (
        *((method, "x", (math.nan, 1j, "x")) for method in ("pdf", "logpdf", "cdf", "sf")),
        *((method, "u", (-1e-9, 1.0001, math.nan)) for method in ("ppf", "isf")),
        ("moment", "k", (-1, 1.5, 10**9)),
        ("stieltjes", "z", (math.nan, math.inf, complex(1, math.nan), "1", 1.0, 1 + 0j)),
        ("r_transform", "w", (math.nan, math.inf)),
    ):
        for wrong in wrongs if hasattr(law, method) else ():
            with pytest.raises(ValueError, match=f"^{name} must be"):
                getattr(law, method)(wrong)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: PASTUR.stieltjes([5.0, 1.0]), "z must be off the cut"),
        (lambda: pastur(2.0).stieltjes(0j), "z must be non-zero for q >= 1"),
        (lambda: pastur(2.0).stieltjes(1e-320), "z must be such that the result does"),
        (lambda: pastur(0.5).r_transform(2.0), r"w must be different from 1 / \(q variance\)"),
        (lambda: pastur(2.0).moment(500), f"k {OVERFLOW}"),
        (lambda: rmt.Semicircle(sigma=2.0).moment(2000), f"k {OVERFLOW}"),
        (lambda: pastur(1.0, 1e200).var(), "variance must be such that the result does not"),
        (lambda: rmt.Semicircle(sigma=1e100).r_transform(1e200), f"w {OVERFLOW}"),
        (lambda: WHOLE.stieltjes(0.1), r"z must be off the cut \(\("),
        (lambda: SPLIT.stieltjes(0.0), "z must be away from 0 where the law has an atom"),
        (lambda: rmt.CompoundFreePoisson(rate=1.0, jumps=1.0).stieltjes(0.0), "z must be away from 0"),
        (lambda: SPLIT.r_transform([0.5, -1.0]), "w must be different from 1 / jump"),
        (lambda: SPLIT.moment(4001), "k must be at most 4000"),
        (lambda: rmt.CompoundFreePoisson(rate=2.0, jumps=1e90).moment(4), f"k {OVERFLOW}"),
        (lambda: RELU.curvature(1.0, 1.0, 0.0), "gap must be positive for an activation with a kink"),
        (lambda: RELU.curvature(1.0, -1.0, 2.0), "covariance must be above -variance"),
        (lambda: RELU.value(1.0, 1.0 + 1e-6, 0.0), "covariance must be between -variance and variance"),
        (lambda: ERF.value(1.0, 0.5, 0.5 + 1e-6), "gap must be variance - covariance, got 0.500001"),
        (lambda: ERF.value(3e307, 0.0, 3e307), "variance must be .* below 2e307"),
        (lambda: ERF.derivative(None, 0.5, 0.2), "variance must be real numbers, got None"),
        (lambda: TANH.fluctuations(math.inf, 1.0), "covariance must be non-negative, finite and below"),
        (
            lambda: gaussian_kernels(SINE).curvature(1.0, 0.5, 0.5),
            "second_derivative must be given for activation 'sine'",
        ),
        (
            lambda: gaussian_kernels(SINE).fluctuations(0.5, 0.5),
            "second_derivative must be given for activation 'sine'",
        ),
        (lambda: Activation("f", None, np.cos), "function must be callable on arrays, got None"),
        (lambda: Activation("f", np.sin, np.cos, 3.0), "second_derivative must be callable"),
        (lambda: Activation(3, np.sin, np.cos), "name must be a string"),
        (lambda: Activation("f", np.sin, np.cos, kinks=0.0), "kinks must be a sequence of points"),
        (lambda: Activation("f", np.sin, np.cos, kernels="closed"), "kernels must be Kernels or None"),
        (lambda: NumericalKernels("f", None, np.cos), "function must be callable on arrays"),
        (
            lambda: NumericalKernels("f", lambda x: 1j * x, np.cos).value(1.0, 0.5, 0.5),
            "'f' must be real .* complex128",
        ),
        (
            lambda: NumericalKernels("f", np.sum, np.cos).value(1.0, 0.5, 0.5),
            "activation 'f' must be elementwise, got shape",
        ),
        (
            lambda: NumericalKernels("f", np.log, np.reciprocal).value(1.0, 0.5, 0.5),
            "'f' must be finite with its derivatives",
        ),
        (lambda: kinked().curvature(1.0, 0.5, 0.5), "second_derivative must be given"),
        (lambda: kinked(kinks=(math.nan,)), "kinks must be finite"),
        (lambda: kinked(kinks=[[0.0]]), "kinks must be a sequence of points"),
        (lambda: kinked(kinks=None), "kinks must be real numbers"),
        (lambda: kinked().value(1.0, 0.5, 0.2), "gap must be variance - covariance, got 0.2"),
        (lambda: kinked().value(-1.0, 0.5, 0.2), "variance must be non-negative"),
        (
            lambda: kinked(function=np.sqrt).value(1.0, 0.5, 0.5),
            "activation 'f' must be finite with its derivatives",
        ),
        (lambda: kinked(function=np.sum).value(1.0, 0.5, 0.5), "activation 'f' must be elementwise"),
    ],
)
def test_methods_refuse_what_does_not_fit(refused: Callable[[], Any], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        refused()
