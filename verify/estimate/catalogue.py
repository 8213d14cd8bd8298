"""The theory functions that a shell can call, each with arguments to try, and look-up by name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import theory
from simulate._checks import did_you_mean
from theory._checks import shown

NETWORK = "relu --depth 3 --weight-variance 2 --bias-variance 0.1"
BATCH = "--sigma 0.06 --dim 226 --batch-size 64 --dataset-size 1797"

STEP = "--curvature 2 --noise 12 --batch-size 2,6,18 --dataset-size inf"

_EXAMPLES: dict[str, dict[str, str]] = {
    "softmax": {
        "eigenvalues": "0.7,0.2,0.1",
        "gamma": "0.7,0.2,0.1",
        "gamma_from_logits": "3.1,-0.4,-1.2 --temperature 0.5",
        "collapse_limit": "3,2,1",
        "batch_gammas": "0.7,0.2,0.1;0.3,0.3,0.4",
        "batch_gammas_from_logits": "3.1,-0.4;1.2,0.9 --temperature 0.5",
        "equal_tail_gamma": "0.01,0.2 --members 5",
        "equal_tail_eigenvalues": "0.01 --members 5 --classes 10",
        "rounded_gamma": "3",
        "gamma_of_pairs": "0.7,0.2,0.1",
        "ray_slope": "3.1,-0.4,-1.2 --temperature 0.5",
        "entropy_discordance": "4",
    },
    "gauss_newton": {
        "expected_eigenvalues": "0.7,0.2,0.1 --dim 6 --sigma-c 1.1 --sigma-e 0.7",
        "expected_excess": "1.3 --dim 50 --sigma-c 1.1 --sigma-e 0.7",
        "expected_gradient_norm": "0.7,0.2,0.1 0.5,0.3,0.2 --dim 50 --sigma-c 1.1",
        "expected_gradient_weights": "0.7,0.2,0.1 0.5,0.3,0.2",
        "gradient_scatter": "50",
        "spectrum_excess": "4.2,1.1,-0.3",
        "largest_excess": "9",
        "excess_ceiling": "1.3 --dim 50 --sigma-c 1.1 --sigma-e 0.7",
        "sign_probe_variance": "2 --squared-diagonal 0.5",
        "normal_probe_variance": "2",
        "projected_excess": "-12.5 --dim 50",
        "hessian_excess": "3.1 --frobenius-ratio 0.7",
        "excess_noise_floor": "50",
        "finite_sample_excess": "1.3 4.2 --dim 50 --sigma-c 1.1 --sigma-e 0.7",
        "squared_gradient_norm": (
            "0.7,0.2,0.1 0.5,0.3,0.2 --squared-error 0.5 --dim 50 --sigma-c 1.1 --sigma-e 0.7 --samples 100"
        ),
        "haar_moments": "3 2 --dim 50 --parameters 1000",
        "sparse_moments": "3 2 --squared-diagonal 0.5 --dim 50 --parameters 1000",
        "frame_overlap": "50 --parameters 1000",
    },
    "gauss_newton.class_blocks": {
        "uniform_ratio": "10",
        "output_ratio": "10 --logit-std 1.3 --dim 50 --samples 100",
        "hidden_ratio": "10 --dim 50 --samples 100 --centred true",
    },
    "zone": {
        "curvature_factors": "0.5,2 --depth 3",
        "reduced_temperature": "0.5,2 --depth 3",
        "matched_rate": "0.02 --alpha 0.5,2 --depth 3",
        "lower_edge": "0.3 0.05 --depth 3",
        "upper_edge": "1797 --gap-density 0.4 --depth 3",
        "near_tie_weight": "6 --gap-density 0.4 --depth 3",
        "largest_base_rate": "0.5,2 --sharpness 4.2 --depth 5",
        "homogeneous_factor": "0.5,2 --depth 3 --order 1",
        "euler_factor": "3 --order 2",
        "confident_log_trace": "0.3,0.1 2.5,1.7 --alpha 9 --depth 3",
        "bulk_outlier": "1.7 --bulk-norm 1.2",
        "spiked_excess": "1.7 --rank 9 --bulk-norm 1.2 --dim 50,5000",
    },
    "initial_loss": {
        "jensen_bound": "0.7,0.2,0.1 0.5,0.3,0.2",
        "prior_entropy": "0.5,0.3,0.2",
        "gaussian_loss": "0.3,-0.2,0 0.5,0.3,0.2 --spread 0.7",
    },
    "rmt": {
        "wigner_second_moment": "--sigma 0.6 --dim 226 --diagonal 2 --spike 1.7",
        "profiled_fourth_moment": "--sigma 0.6 --contrast 0.4 --dim 226",
        "sparse_fourth_moment": "--sigma 0.6 --per-row 7 --dim 226",
        "low_rank_fourth_moment": "--rank 3 --variance 0.3 --dim 226 --batch-size 64",
        "wishart_third_moment": "--variance 0.3 --dim 226 --batch-size 64",
        "alternating_moment": "--sigma-a 0.6 --sigma-b 1.2 --dim 226",
        "rank_one_stieltjes": "2.1 --spike 1.7 --dim 226",
        "rank_one_inverse": "-0.3 --spike 1.7 --dim 226",
        "rank_one_expansion": "-0.3 --spike 1.7 --dim 226",
        "overlap_cdf": "0.4,1.7 --dim 226",
        "subspace_share": "12 --dim 226",
    },
    "outliers": {
        "additive_wigner": "1.7,-1.7 --sigma 0.6",
        "additive_wishart": "1.7 --q 0.4 --variance 0.6",
        "information_plus_noise": "1.7 --q 0.4 --variance 0.6",
        "spiked_covariance": "1.7 --q 0.4 --variance 0.6",
    },
    "finite_size": {
        "wigner_edge": "226 --sigma 0.6",
        "wishart_edge": "120 300 --variance 0.6 --lower",
        "additive_wigner_sd": "1.7 --sigma 0.6 --dim 226",
        "axis_wigner_sd": "1.7 --sigma 0.6 --dim 226 --diagonal 1 --fourth-cumulant=-2",
        "additive_wishart_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
        "information_plus_noise_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
        "spiked_covariance_sd": "1.7 --dim 120 --samples 300 --variance 0.6",
    },
    "batch_hessian": {
        "effective_batch_size": "64 1797",
        "batch_eigenvalue": f"0.56 {BATCH}",
        "batch_overlap": f"0.56 {BATCH}",
        "batch_ggn_eigenvalue": "1.4 --variance 0.3 --dim 226 --batch-size 64 --dataset-size inf",
        "second_order_eigenvalue": "0.56 --coefficient 2.4 --batch-size 64 --dataset-size 1797",
        "element_variance": "0.81 --dim 226",
        "element_fluctuation": "--variance 0.0036 --batch-size 64 --dataset-size 1797",
        "batch_ggn_factor_eigenvalue": "1.4 --variance 0.3 --dim 226 --batch-size 64 --dataset-size inf",
        "noise_free_eigenvalue": "0.56 --sigma 0.06 --dim 226 --dataset-size 1797",
        "composed_batch_eigenvalue": f"0.56 {BATCH}",
        "second_order_coefficient": "2.0,0.5,-1.0 0.3,0.6,0.9",
        "finite_population_fluctuation": "--variance 0.0036 --batch-size 64 --dataset-size 1797 --replacement",
        "element_skewness": "2.0 --batch-size 64 --dataset-size 1797",
        "noise_bound": "1.2 --batch-size 64 --dataset-size 1797",
        "ggn_rank_bound": "64 10 226",
        "sample_rank_bound": "24,2 --biases=false",
        "sample_rank_bound_of_paths": "24 24,2",
        "dataset_rank_bound": "48 --samples 1797 --dim 624 --symmetries 24",
        "two_layer_rank_bound": "64 24 10",
        "crossover_batch_size": "0.56 --sigma 0.06 --dim 226 --dataset-size 1797",
    },
    "lanczos_bounds": {
        "ritz_value_bound": "2.0 1.0 -1.0 --angle 1.3 --steps 8",
    },
    "learning_rates": {
        "stability_limit": "4.2",
        "sgd_limit": f"0.56 {BATCH}",
        "mean_square_limit": "0.56 --noise 0.3 --batch-size 64 --dataset-size 1797",
        "heavy_ball": "4.2 0.3",
        "nesterov": "4.2 0.3",
        "best_nesterov": "4.2 0.3",
        "heavy_ball_contraction": "0.3 0.5 --largest 4.2 --smallest 0.3",
        "nesterov_contraction": "0.3 0.5 --largest 4.2 --smallest 0.3",
        "sgd_exponent": f"0.56 {BATCH}",
        "marchenko_pastur_exponent": "3.5",
        "linear_then_flat": "0.02 --known 32 --batch-size 8,64,512 --crossover 40 --dataset-size 1797",
        "square_root": "0.02 --known 32 --batch-size 8,64,512 --dataset-size 1797",
        "mean_square_exponent": "0.56 --noise 0.3 --batch-size 64 --dataset-size 1797",
        "mean_square_descent": "0.1,0.7 --limit 0.4",
        "mean_square_crossover": "0.56 --noise 0.3 --dataset-size 1797",
        "mean_square_bracket": "0.5,0.4 0.3,0.9 --square 3.1 --batch-size 4 --dataset-size 1797",
        "gaussian_least_squares_limit": "4 20",
        "gaussian_least_squares_growth": "0.2 --batch-size 4 --dim 20",
    },
    "learning_rates.edge_of_stability": {
        "edge": "0.1",
        "noise_kernel_norm": "3,0.7 --rate 0.2 --batch-size 4 --dataset-size 30",
        "oscillation": "--sharpening 0.5 --stabilisation 8.1",
        "sharpness_gap": "0.25 --noise 0.02 --sharpening 0.1 --stabilisation 40",
        "stationary_preconditioner": "--curvature 3,1.2 --coupling 0.8",
    },
    "learning_rates.catapult": {
        "step": "2.1 3 --rate 0.5 --width 4",
        "largest_product": "",
        "growth_steps": "3 --ratio 16",
        "curvature_drop": "0.1 1",
        "final_product": "0.0013 3",
        "mean_final_product": "3 --width 100",
    },
    "learning_rates.noise_scale": {
        "gradient_noise_scale": "24 --curvature 0.5",
        "simple_noise_scale": "6 --squared-gradient 0.25",
        "best_step_rate": f"1.2 {STEP}",
        "best_step_decrease": f"1.2 {STEP}",
        "critical_batch_size": "6 --largest 2 --smallest 0.5",
        "critical_batch_exponent": "1.5,2 3",
        "interpolating_rate": "1,5,17 --squared-norm 6 --largest 2 --smallest 0.5",
        "mean_square_factor": "0.25,0.5 --eigenvalue 2 --squared-norm 6 --batch-size 4",
        "mixture_share": "1,4,16 16",
    },
    "learning_rates.adam": {
        "square_root_rule": "4 --rate 0.001 --momentum 0.9 --second 0.99 --damping 1e-8",
        "half_life": "0.99 --batch-size 8",
        "same_half_life": "0.999 --known 8 --batch-size 4,16",
        "sign_rate": "0.1,0.2 --hessian 2,1;1,2 --noise 1,1 --batch-size 1,100",
        "surge_scale": "0.1,0.2 --hessian 2,1;1,2 --noise 1,1",
        "surge_rate": "0.1,0.2 --hessian 2,1;1,2 --noise 1,1 --batch-size 1,100",
        "adaptive_edge": "0.001 --momentum 0.9",
    },
    "adaptive_rates": {
        "outlier_over_edge": f"0.56 {BATCH}",
        "adaptive_limit": f"0.7 {BATCH}",
    },
    "loss_change": {
        "quadratic_change": "0.1 1,2 4,1;1,3 --preconditioner 2,0;0,5",
        "sign_averaged_change": "0.1 1,2 4,1;1,3 --preconditioner 2,0;0,5",
        "descent_bound": "0.1 --squared-gradient 5 --sharpness 4.2",
        "mean_descent_limit": "1,3 2,5",
        "squared_gradient_mean": "5 --trace 3.1 --batch-size 4",
        "squared_gradient_variance": "3.1 --trace-of-square 8 --batch-size 4",
    },
    "order_parameters": {
        "order_parameters": f"{NETWORK} --input-overlap -0.3",
        "preactivation_moment": "0.7,0.3 --weight-variance 2 --bias-variance 0.1",
        "input_derivative": NETWORK,
    },
    "fisher": {
        "kappas": NETWORK,
        "eigenvalue_statistics": f"{NETWORK} --width 1000 --samples 100 --outputs 10",
        "mean_subtracted_statistics": f"{NETWORK} --width 1000 --samples 1000 --outputs 10",
        "fluctuation_constants": f"{NETWORK} --outputs 10",
        "mean_subtracted_largest": f"{NETWORK} --width 1000 --samples 4",
        "gram_entry_variances": NETWORK,
        "loss_floor": "0.3,-1.2;0.8,0.2;0.9,0.4",
        "output_variance": f"{NETWORK} --samples 100",
        "batch_normalised_statistics": f"{NETWORK} --width 1000 --samples 1000 --outputs 3 --q1 2.9 --q2 2.9",
        "batch_normalised_constants": f"{NETWORK} --outputs 3 --q1 2.9 --q2 2.9",
        "deviation_share": f"{NETWORK} --width 1000 --samples 1000",
        "batch_norm_moments": "relu --samples 10",
        "batch_norm_bound": "relu --width 1000 --samples 100 --width-ratio 1.5",
        "batch_norm_largest": "relu --width 1000 --samples 1000",
        "batch_norm_largest_odd": "tanh --width 1000 --samples 1000",
        "layer_norm_kappas": NETWORK,
        "layer_norm_statistics": f"{NETWORK} --width 1000 --samples 100 --outputs 10 --eta1 1.1 --eta2 2.1 --eta3 0.8",
        "layer_norm_rayleigh": f"{NETWORK} --width 1000 --samples 100 --outputs 10 --eta1 1.1 --overlap 7.6",
        "layer_norm_largest": (
            "relu 0.3,-1.2,0.4;-0.8,0.2,0.9 --depth 3 --width 1000 --weight-variance 2 --bias-variance 0.1"
        ),
        "layer_norm_rank": "10",
        "realised_etas": "0.3,-1.2,0.4;-0.8,0.2,0.9",
        "expected_etas": f"{NETWORK} --samples 100 --outputs 10",
        "inverse_variance_cdf": "2.5 relu --depth 3 --outputs 10 --weight-variance 2 --bias-variance 0.1",
        "tangent_kernel": f"{NETWORK} --input-overlap -0.3",
        "tangent_kernel_statistics": f"{NETWORK} --width 1000 --samples 100 --outputs 10",
        "cross_entropy_statistics": f"{NETWORK} --width 1000 --probabilities 0.7,0.2,0.1;0.3,0.3,0.4",
        "cross_entropy_outliers": f"{NETWORK} --width 1000 --probabilities 0.7,0.2,0.1;0.3,0.3,0.4",
        "parameter_count": "--depth 3 --width 100 --outputs 10 --width-ratios 7.84,1,1",
        "rank_bound": "--depth 3 --width 100 --samples 60 --outputs 10 --width-ratios 7.84,1,1",
    },
    "criticality": {
        "variance_fixed_point": "tanh --weight-variance 1.5 --bias-variance 0.1",
        "depth_scales": "tanh --weight-variance 1.5 --bias-variance 0.1",
        "critical_weight_variance": "tanh 0.05",
    },
    "linear_network": {
        "linear_network_edge": "0.5 --weight-variance 1.3",
        "linear_network_largest": "--width 1000 --samples 500 --weight-variance 1.3",
    },
}
"""Arguments to try, by module and function."""

FUNCTIONS = {
    f"{module}.{name}": words for module, listed in _EXAMPLES.items() for name, words in listed.items()
}
"""The functions a shell can call (numbers, lists and names in, numbers out), each with arguments to try."""


def topics() -> dict[str, str]:
    """Return the topics of the functions, each with its line in the docstring of `theory`."""
    # A line of that table: name, text and paper, set apart by two spaces.
    listed = re.findall(r"^`(\w+)` +(.*?)  +(\w+)$", theory.__doc__ or "", re.MULTILINE)
    lines = {topic: f"{what} ({paper})" for topic, what, paper in listed}
    return {topic: lines.get(topic, "") for topic in dict.fromkeys(n.partition(".")[0] for n in FUNCTIONS)}


def full_name(name: str) -> str:
    """Return the full name of a function, given with or without its module; suggest near names if unknown."""
    wanted = name.removeprefix("theory.").replace("-", "_")
    # With a dot before both, a name matches whole words only.
    same = [known for known in FUNCTIONS if f".{known}".endswith(f".{wanted}")]
    if len(same) == 1:
        return same[0]
    short = {known.rpartition(".")[2]: known for known in FUNCTIONS}
    near = did_you_mean(wanted, [*FUNCTIONS, *short], 3, suggest=short)
    raise ValueError(f"unknown function {shown(name)}{near or '; losscurv estimate --list names all'}")


def theory_function(name: str) -> Callable[..., Any]:
    """Return the function of a full name."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"theory.{module}"), function)
