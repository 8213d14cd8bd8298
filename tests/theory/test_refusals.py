"""Refusals of all public functions: no number, outside the domain, arguments that do not fit together."""

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.refusals import refusal
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
            with refusal(rf"^{argument} must be"):
                call(name, {argument: wrong})


PAIRS = (("batch_size", "dataset_size"), ("known", "dataset_size"), ("dim", "parameters"))


@pytest.mark.parametrize(("part", "whole"), PAIRS)
def test_a_part_is_no_larger_than_the_whole(part: str, whole: str) -> None:
    for name in NAMES:
        drawn_once = CALLS[name].get("replacement") is not True
        if drawn_once and {part, whole} <= set(inspect.signature(function(name)).parameters):
            with refusal(rf"^{part} must be (at most|below) {whole}"):
                call(name, {part: 301, whole: 300})


OVERFLOW = "must be such that the result does not overflow"
LARGE_MOMENTS = (("start", 1e200), ("noise", (1e200, 1.0)), ("noise", (1.0, 1e200)), ("rate", 1e308))
LARGE = "must be small enough not to overflow"
NETWORK = "activation must be one"
TWO = {"p": [0.5, 0.5]}
SPECIAL: dict[str, dict[str, Any]] = {
    "activations.leaky_relu": {r"at most 1e\+75 in": {"slope": 1e80}, "a scalar": {"slope": [1.0, 2.0]}},
    "activations.single": {
        "one of .*": {"activation": "swish"},
        "an Activation or its": {"activation": ["relu"]},
    },
    "activations.resolve": {
        r"one or one per hidden layer \(3\), got 2": {"activation": ["relu", "tanh"], "layers": 3},
        "an Activation, a name": {"activation": 3.0},
        "an Activation or its name, got <ufunc 'tanh'>": {"activation": [np.tanh, "relu"]},
        r"one or one per hidden layer \(2\)": {"activation": itertools.count()},
        "at most 1000000": {"layers": 10**12},
    },
    "activations.gaussian_kernels": {"an Activation": {"activation": "relu"}},
    "batch_hessian.effective_batch_size": {"at most dataset_size": {"batch_size": [1, 1800]}},
    "batch_hessian.batch_eigenvalue": {
        f"eigenvalue, sigma, dim, batch_size {OVERFLOW}": {"sigma": 1e308},
        "eigenvalue, sigma, dim, batch_size, dataset_size must be broadcastable": {
            "eigenvalue": [1, 2],
            "sigma": [1, 2, 3],
        },
    },
    "batch_hessian.composed_batch_eigenvalue": {"at least 2 sigma": {"eigenvalue": [5.0, 0.04]}},
    "batch_hessian.noise_free_eigenvalue": {"at least 2 sigma": {"eigenvalue": 0.0}},
    "batch_hessian.crossover_batch_size": {"non-zero": {"eigenvalue": [1.0, 0.0]}},
    "batch_hessian.finite_population_fluctuation": {
        "dataset_size must be at least 1": {"batch_size": 0.2, "dataset_size": 0.5},
        "at most dataset_size": {"batch_size": 1798, "replacement": False},
    },
    "batch_hessian.element_skewness": {"below dataset_size": {"batch_size": 1797}},
    "batch_hessian.second_order_coefficient": {
        "a vector": [{"eigenvalues": 2.0}, {"eigenvalues": [], "variances": []}],
        "different from the first": {"eigenvalues": [2.0, 2.0, 1.0]},
    },
    "batch_hessian.sample_rank_bound": {
        "a sequence of integers": {"widths": ()},
        "an integer >= 1": {"widths": (4, 0)},
    },
    "batch_hessian.dataset_rank_bound": {"symmetries must be at most 3": {"dim": 3, "symmetries": 4}},
    "criticality.variance_fixed_point": {NETWORK: {"activation": "swish"}},
    "finite_size.wishart_edge": {"different from samples at": {"dim": [4, 5], "samples": 5, "lower": True}},
    "finite_size.additive_wigner_sd": {
        r"beyond the threshold 0\.6": {"spike": 0.6},
        r"beyond the threshold 0\.0": {"spike": 0.0, "sigma": 0.0},
    },
    "finite_size.additive_wishart_sd": {r"beyond the threshold 0\.61": {"spike": 0.1}},
    "finite_size.information_plus_noise_sd": {r"beyond the threshold 0\.37": {"spike": 0.2}},
    "finite_size.axis_wigner_sd": {"at least -2": {"fourth_cumulant": -3.0}},
    "fisher.eigenvalue_statistics": {
        "an integer >= 2": {"depth": 1},
        "an integer": {"samples": True},
        "a scalar": {"weight_variance": [1.0, 2.0]},
        "a sequence of 3": {"width_ratios": [1.0, 1.0]},
        "positive": {"width_ratios": [1.0, 0.0, 1.0]},
        "such that width 8": {"width_ratios": [1.0, 0.3, 1.0], "width": 8, "finite_width": True},
        "second_derivative must be given for activation": {"activation": SINE},
    },
    "fisher.mean_subtracted_statistics": {
        "at most 100000": {"depth": 10**9},
        "small enough for memory": {"depth": 20_000},
        "at most 9223372036854775807": {"width": 10**30},
        "width_ratios must be such that alpha neither overflows nor vanishes": {
            "depth": 2,
            "width_ratios": [1e200, 1e200],
        },
    },
    "fisher.fluctuation_constants": {
        r"depth must be small enough for memory .* needs about 373 GiB": {
            "activation": "linear",
            "depth": 50_000,
            "outputs": 1,
        }
    },
    "fisher.batch_normalised_statistics": {
        "given if and only": {"q2": None},
        "q2 must be given if and only": {"q1": None},
        r"between q1\^2/3 and q1\^2": [{"q2": 9.1}, {"q2": 0.8}],
        "an integer >= 2": {"samples": 1},
        "weight_variance must be such that outputs differ between samples, got 0.0": {
            "q1": None,
            "q2": None,
            "weight_variance": 0.0,
        },
        "weight_variance must be large enough for the squared": {
            "q1": None,
            "q2": None,
            "weight_variance": 1e-60,
            "bias_variance": 0.0,
            "activation": "relu",
        },
    },
    "fisher.deviation_share": {"at most 3 unless": {"depth": 4}},
    "fisher.cross_entropy_statistics": {
        r"of shape \(T, C\), T >= 1": [{"probabilities": [0.5, 0.5]}, {"probabilities": np.zeros((0, 3))}],
        "a probability vector along": {"probabilities": [[0.5, 0.6]]},
    },
    "fisher.layer_norm_statistics": {
        "second_derivative must be given for activation 'sine'": {"activation": SINE}
    },
    "fisher.realised_etas": {
        "of shape": {"preactivations": [1.0, 2.0]},
        "different within each sample": {"preactivations": [[1.0, 2.0], [3.0, 3.0]]},
        "below 1e300": {"preactivations": [[1e305, 0.0, 1.0]]},
    },
    "fisher.inverse_variance_cdf": {"an integer >= 2": {"outputs": 1}},
    "fisher.expected_etas": {
        "variance must be such that the variance of an output does not vanish": {
            "weight_variance": 5e-324,
            "bias_variance": 0.0,
        }
    },
    "fisher.batch_norm_bound": {"an integer >= 2": {"samples": 1}},
    "fisher.batch_norm_moments": {
        "such that its averages do not overflow, got 'wild'": {
            "activation": WILD,
            "samples": 5,
            "finite_samples": True,
        },
        "activation 'nan' must be finite with its derivatives": {
            "activation": Activation("nan", lambda x: np.where(x > 0, math.nan, x), np.cos),
            "samples": 5,
            "finite_samples": True,
        },
    },
    "fisher.batch_norm_largest": {"of a mean other": {"activation": "tanh"}},
    "fisher.batch_norm_largest_odd": {
        "odd": {"activation": "relu"},
        "with a linear part": {"activation": CUBIC},
        "such that sizes differ": {"input_ratio": 1e-3},
    },
    "fisher.tangent_kernel_statistics": {
        f"weight_variance {LARGE}": {"weight_variance": 1e140, "activation": "relu"},
        f"bias_variance {LARGE}": {"bias_variance": 1e200},
        "such that width 1000 gives whole layer widths": {"width_ratios": [1.0, 0.5123, 1.0]},
    },
    "fisher.tangent_kernel": {
        r"in \[-1, 1\]": {"input_overlap": 1.5},
        "second_derivative must be given for activation 'sine'": {"activation": SINE},
    },
    "fisher.loss_floor": {
        r"of shape \(T, C\)": {"targets": [[]]},
        "such that the result does not overflow": {"targets": [[1e200]]},
    },
    "gauss_newton.class_blocks.uniform_ratio": {
        f"at most {2**63 - 1}, got 1000": {"classes": 10**400},
        "an integer >= 2": {"classes": 1},
    },
    "gauss_newton.class_blocks.output_ratio": {r"in \[0, 8\]": {"logit_std": 9.0}},
    "gauss_newton.loss_gradient": {"a whole number below": {"label": 3}},
    "gauss_newton.gauss_newton_trace": {r"of shape \(..., 3, d\)": {"jacobian": [[0.3], [1.0]]}},
    "gauss_newton.hessian_terms": {"of shape .*": {"second": [[0.3], [1.0]]}},
    "gauss_newton.expected_eigenvalues": {
        "an integer >= 2": {"dim": 1},
        r"small enough for memory .* about 21\.8 TiB, the limit is 16 GiB\), got 1000000000000": {
            "dim": 10**12
        },
        "sigma_c and sigma_e must be not both": {"sigma_c": 0.0, "sigma_e": 0.0},
    },
    "gauss_newton.expected_excess": {
        "at least 1": {"gamma": 0.99},
        "sigma_c and sigma_e must be not both": {"sigma_c": [1.0, 0.0], "sigma_e": 0.0},
    },
    "gauss_newton.excess_ceiling": {"sigma_c and sigma_e must be not both": {"sigma_c": 0.0, "sigma_e": 0.0}},
    "gauss_newton.expected_gradient_norm": {
        "a probability vector": {"mean_probability": [0.5, 0.4]},
        "over 3 classes": {"prior": [0.2, 0.8]},
    },
    "gauss_newton.spectrum_excess": {"not all zero along": {"eigenvalues": [[1.0, 0.0], [0.0, 0.0]]}},
    "gauss_newton.sign_probe_variance": {"at most squared_norm": {"squared_diagonal": 3.1}},
    "gauss_newton.haar_moments": {
        "squared_norm must be at least trace": {"trace": 3.0, "squared_norm": 1.0, "parameters": 4, "dim": 2}
    },
    "gauss_newton.sparse_moments": {
        "from trace": {"squared_diagonal": 2.6},
        "squared_diagonal must be from trace": {"trace": 50.0, "squared_diagonal": 0.2, "squared_norm": 3.0},
    },
    "gauss_newton.projected_excess": {"at most sqrt": {"excess": 2.1, "dim": 2, "parameters": 4}},
    "gauss_newton.finite_sample_excess": {
        "at least gamma": {"separate_gamma": 1.2},
        "at least 1": {"separate_gamma": 0.9},
    },
    "gauss_newton.squared_gradient_norm": {"squared_error must be": {"squared_error": 2.1}},
    "initial_loss.jensen_bound": {
        "a probability vector": {"mean_probability": [0.5, 0.4]},
        "over 3 classes": {"prior": [0.2, 0.8]},
    },
    "initial_loss.gaussian_loss": {r"in \[0, 30\]": {"spread": 31}, "at least two numbers": {"bias": [0.0]}},
    "lanczos_bounds.ritz_value_bound": {
        "between eigenvalue and opposite": {"neighbour": 3.5},
        r"in \[0, 1\.5708\]": {"angle": 1.6},
    },
    "learning_rates.heavy_ball": {"at least smallest": {"largest": [2.0, 0.2]}},
    "learning_rates.heavy_ball_contraction": {"at least smallest": {"largest": 0.1}},
    "learning_rates.linear_then_flat": {
        "below dataset_size where the": {"known": 1797, "crossover": math.inf},
        "at most dataset_size, or": {"crossover": 1798},
    },
    "learning_rates.square_root": {"below dataset_size": [{"known": 1797}, {"batch_size": 1797}]},
    "learning_rates.mean_square_bracket": {
        r"of shape \(\.\.\., k\), k >= 1": {"curvatures": [], "variances": []}
    },
    "learning_rates.adam.square_root_rule": {"momentum must be at least 1 -": {"growth": 200.0}},
    "learning_rates.adam.adam_moments": {
        "below 1": {"momentum": 1.0},
        r"in \[0, 1\]": {"second": 1.5},
        "two numbers": [{"noise": (1.0,)}, {"steps": (5,)}],
        "positive": {"noise": (1.0, 0.0)},
        "an integer >= 1": {"steps": (5, 0)},
        "at most 1000000": {"steps": (5, 10**7)},
        "small enough for the equations": {"rate": 1e200},
        f"start, curvature, noise, rate {OVERFLOW}": [*({name: large} for name, large in LARGE_MOMENTS)],
    },
    "learning_rates.adam.half_life": {r"in \(0, 1\)": {"second": 1.0}},
    "learning_rates.adam.sign_rate": {
        r"of shape \(2,\)": {"noise": [1.0, 2.0, 3.0]},
        "a vector": {"gradient": 0.3},
        r"of shape \(2, 2\)": {"hessian": np.eye(3)},
        "symmetric": {"hessian": [[1e12, 1.0], [0.5, 1e12]]},
        "such that the mean": {"hessian": -np.eye(2)},
    },
    "learning_rates.adam.surge_scale": {"of positive trace and": {"hessian": np.eye(2)}},
    "learning_rates.adam.adaptive_edge": {"below 1": {"momentum": 1.0}},
    "learning_rates.catapult.growth_steps": {
        r"in \(2, 4\)": {"product": 2.0},
        "ratio must be positive": {"product": 3.0, "ratio": 0.0},
    },
    "learning_rates.catapult.curvature_drop": {r"in \(0, 2\)": {"product": 2.0}},
    "learning_rates.catapult.final_product": {
        "different from 0": {"output": 0.0},
        "at most half of": {"output": 1.6},
        r"in \(0, 4\)": {"product": 4.0},
    },
    "learning_rates.catapult.mean_final_product": {r"in \(0, 4\)": {"product": 4.5}},
    "learning_rates.noise_scale.best_step_rate": {
        "above minus the noise over b": {"curvature": -9.0, "noise": 1.0}
    },
    "learning_rates.noise_scale.critical_batch_size": {"smallest must be at most largest": {"largest": 0.2}},
    "learning_rates.noise_scale.interpolating_rate": {
        "at least 1": {"batch_size": 0.5},
        "largest must be at most squared_norm": {"squared_norm": 1.0},
    },
    "learning_rates.noise_scale.mean_square_factor": {"at most squared_norm": {"eigenvalue": 7.0}},
    "learning_rates.noise_scale.mixture_share": {
        "at most dataset_size": {"batch_size": 9, "dataset_size": 8},
        "dataset_size must be at least 2": {"batch_size": 1, "dataset_size": 1},
        "a whole number": {"batch_size": 1.5},
    },
    "learning_rates.noise_scale.mean_square_distances": {
        r"of shape \(N, P, P\), N >= 2": {"curvatures": [[1.0]]},
        "symmetric": {"curvatures": [[[1.0, 2.0], [0.0, 1.0]]] * 2, "start": [1.0, 1.0]},
        r"of shape \(1,\)": {"start": [1.0, 2.0]},
        "a scalar": {"rate": [0.1, 0.2]},
        "at most dataset_size": {"batch_size": 3},
        "at most 1000000": {"steps": 10**7},
    },
    "learning_rates.noise_scale.least_squares_risks": {
        r"of shape \(d,\), d >= 1": {"eigenvalues": [[1.0]]},
        r"of shape \(2,\)": {"start": [1.0]},
        "at most 1000000": {"steps": 10**7},
    },
    "learning_rates.noise_scale.critical_batch_exponent": {
        "above 1": [{"capacity": 0.9}, {"source": 1.0}],
        r"below 2 capacity \+ 1": {"source": 6.0},
    },
    "linear_network.linear_network_edge": {
        "a scalar": {"ratio": [1.0, 2.0]},
        "such that its shapes are": {"ratio": 1e-200},
        "a sequence of 2": {"width_ratios": [1.0]},
    },
    "linear_network.linear_network_largest": {
        "an integer >= 2": {"samples": 1},
        "such that its shapes are": {"width_ratios": [1e-80, 1e80]},
    },
    "loss_change.quadratic_change": {
        r"of shape \(\.\.\., P\)": {"gradient": 1.0},
        r"of shape \(\.\.\., 2, 2\)": {"hessian": np.eye(3)},
        "symmetric": {"hessian": [[1.0, 2.0], [3.0, 4.0]]},
        "invertible": {"preconditioner": np.zeros((2, 2))},
        "gradient, hessian must be broadcastable": {"rate": [1.0, 2.0], "hessian": np.ones((3, 2, 2))},
        f"rate, gradient, hessian, preconditioner {OVERFLOW}": {"rate": 1e200},
    },
    "loss_change.sign_averaged_change": {"a matrix with distinct eigenvalues": {"preconditioner": np.eye(2)}},
    "loss_change.mean_descent_limit": {"not all 0": {"squared_gradients": [0.0], "sharpness": [1.0]}},
    "order_parameters.order_parameters": {
        "at most 100000": {"depth": 10**9},
        "at most 1000": {"digits": 10**9},
        r"digits must be fewer for the trapezoidal rule at variance 1\.0e\+300, got 20": {
            "activation": "tanh",
            "digits": 20,
            "weight_variance": 1e300,
        },
        "a named one where": {"activation": SINE, "digits": 20},
        r"one or one per hidden layer \(2\)": {"activation": ["relu"]},
        f"weight_variance {LARGE}": {"activation": "relu", "weight_variance": 1e120, "depth": 4},
        rf"bias_variance {LARGE}": {"activation": "relu", "bias_variance": 1e308},
        "a scalar": {"input_overlap": [0.5]},
    },
    "order_parameters.propagate": {"a sequence of Activation": {"activations": 3}},
    "order_parameters.preactivation_moment": {
        "q_hat, weight_variance, bias_variance must be such": {"q_hat": 1e200, "weight_variance": 1e200}
    },
    "outliers.additive_wigner": {
        f"spike, sigma {OVERFLOW}": {"sigma": 1e308},
        r"spike, sigma must be broadcastable .* \(2,\), \(3,\)": {"spike": [1, 2], "sigma": [1, 2, 3]},
        r"spike, sigma must be small enough for memory .* about 87\.3 TiB": {
            "spike": np.ones((10**6, 1)),
            "sigma": np.ones(10**6),
        },
        "real numbers": {"spike": 10**5000},
        "finite": {"spike": [math.nan] * 1000},
    },
    "outliers.information_plus_noise": {"non-negative": {"spike": -1.0}, "positive and finite": {"q": 0.0}},
    "outliers.additive": {"a spectrum with edges,": {"law": None}},
    "own_direction.own_directions": {
        "of positive mean top": {"projected": np.zeros((7, 2, 2))},
        r"of shape \(N, k, k\)": {"projected": np.ones((7, 2))},
        "symmetric": {"projected": [[[0.0, 1.0], [2.0, 0.0]]]},
        r"of shape \(7, 2, 2\) like projected": {"squared": np.ones((7, 1, 1))},
        "at most 1e.100 in": {"squared": np.full((7, 2, 2), 1e101)},
        r"of shape \(7,\)": {"largest": [1.0]},
        r"of shape \(7, 2\)": {"overlaps": np.ones((7, 3))},
        "at most 1 in": {"overlaps": np.ones((7, 2))},
        "a scalar": {"background": [0.0, 1.0]},
    },
    "own_direction.batch_eigenvalues": {
        "indices of samples": [{"batches": [[0.0, 1.0]]}, {"batches": [0, 1]}],
        "between 0 and 6": [{"batches": [[0, 7]]}, {"batches": [[-1, 2]]}],
        "without repeated samples": {"batches": [[3, 3]]},
        "the result of own_directions": {"statistics": {}},
    },
    "rmt.profiled_fourth_moment": {"even": {"dim": 3}},
    "rmt.sparse_fourth_moment": {"per_row must be at most dim": {"dim": 3}},
    "rmt.rank_one_stieltjes": {"neither 0 nor the spike": {"u": 1.7}},
    "rmt.rank_one_inverse": {"different from 0": {"s": 0.0}},
    "rmt.overlap_cdf": {"at least 2": {"dim": 1, "x": 1.0}},
    "rmt.subspace_share": {"an integer from 0": {"members": 227}},
    "rmt.CompoundFreePoisson": {
        "a scalar": {"rate": [1.0, 2.0]},
        "rate times weights must be between 1e-06": {"rate": 1e-7},
        "rate times weights must be between": {"rate": 1e13},
        "one to 64 numbers": [{"jumps": 0.0}, {"jumps": np.ones(65)}],
        r"within 1e\+06 of each": {"jumps": [1.0, -1e-7]},
        "as many as jumps": {"weights": [0.5, 0.5]},
        "weights must be a probability vector": {"jumps": [1.0, 2.0], "weights": [0.5, 0.6]},
    },
    "rmt.TracyWidom": {"1 or 2": {"beta": 4}, "an integer >= 1": {"beta": 1.5}},
    "rmt.Semicircle": {
        "sigma or variance must be given, exactly": [{"variance": 0.36}, {"sigma": None, "variance": None}],
        "positive and finite": {"sigma": 0.0, "variance": None},
        "a scalar": {"sigma": [1.0], "variance": None},
        "sigma squared must be between 1e-270": {"sigma": 1e-160, "variance": None},
        "variance must be given, exactly one, got a number too long": {"variance": 10**5000},
    },
    "rmt.MarchenkoPastur": {
        "q must be positive and finite": {"sigma": None, "q": 0.0},
        "q times variance must be at most": {"sigma": None, "q": 1e200, "variance": 1e200},
        r"variance must be between 1e-270 and 1e\+270": {"sigma": None, "variance": 1e-300},
    },
    "softmax.covariance": {"small enough for memory": {"p": np.full(10**6, 1e-6)}},
    "softmax.eigenvalues": {
        "p must be a probability vector along": [
            {"p": bad} for bad in ([0.5, 0.6], [1.5, -0.5], [1.0], [0.5, 0.5 + 2e-8], [1e308, 1e308])
        ]
    },
    "softmax.gamma": {
        "not one-hot, got": {"p": [[0.5, 0.5], [1.0, 0.0]]},
        "not one-hot in every": {"p": np.eye(2), "average": True},
        "p must be a batch of shape": {**TWO, "average": True},
    },
    "softmax.gamma_of_pairs": {"not one-hot": {"p": [1.0, 0.0, 0.0]}},
    "softmax.batch_gammas": {
        r"a batch of shape \(..., N, K\), got \(2,\)": TWO,
        "not one-hot in every": {"p": [[1.0, 0.0]]},
    },
    "softmax.gamma_from_logits": {
        "at least two logits": {"z": [1.0]},
        "small enough for memory": {"z": np.zeros(10**4), "temperature": np.ones(10**6)},
    },
    "softmax.batch_gammas_from_logits": {
        "a batch of shape": {"z": [1.0, 2.0]},
        "a batch": {"z": np.empty((0, 3))},
        "small enough for memory": {"z": np.zeros((9, 10)), "temperature": np.ones(10**7)},
    },
    "softmax.ray_slope": {"at least two logits": {"z": [1.0]}},
    "softmax.entropy_discordance": {"an integer >= 3": {"classes": 2}},
    "softmax.rounded_gamma": {"an integer >= 2": {"members": 1}},
    "softmax.collapse_limit": {
        "non-negative and finite": {"weights": [1.0, -1.0]},
        "not all zero along": {"weights": [[1.0, 0.0], [0.0, 0.0]]},
    },
    "softmax.equal_tail_gamma": {
        "an integer >= 2": {"members": 1},
        "at most 1/2": {"tail": 0.51, "members": 3},
        "below 1 for two": {"tail": 1.0, "members": 2},
    },
    "softmax.equal_tail_eigenvalues": {"an integer >= 5": {"classes": 4}, "small enough": {"classes": 10**9}},
    "zone.near_tie_weight": {"alpha, gap_density, depth must be such": {"alpha": 1e-200}},
    "zone.spiked_excess": {"at most dim": {"rank": 227}},
    "zone.tanh_correction": {
        "at least two": {"matrices": [[[1.0]]]},
        "each with as many columns as": {"matrices": [[[1.0]], [[1.0, 2.0]]]},
        r"x must be of shape \(\.\.\., 1\)": {"matrices": [[[1.0]], [[1.0]]]},
    },
    "zone.confident_log_trace": {"not all zero": {"squared_slopes": [0.0]}},
}
"""What one argument alone does not show, and what the message says, in full or after the argument's "must be"."""


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (name, each, message)
        for name, cases in SPECIAL.items()
        for message, changes in cases.items()
        for each in (changes if isinstance(changes, list) else [changes])
    ],
)
def test_what_does_not_fit_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    rule = message if " must " in message else f"^{next(iter(changes))} must be {message}"
    with refusal(rule):
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
            with refusal(f"^{name} must be"):
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
    with np.errstate(all="ignore"), refusal(message):
        refused()
