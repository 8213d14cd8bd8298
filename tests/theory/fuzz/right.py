"""Right arguments of the public functions by name, and calls with some of them changed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.theory.fuzz import merged
from theory import own_direction, rmt
from theory.activations import Activation

LINES = merged("TABLE")

RIGHT: dict[str, Any] = {
    "activation": "erf", "width": 30, "weight_variance": 1.3, "bias_variance": 0.4, "input_overlap": 0.3,
    "width_ratios": None, "digits": None, "finite_width": False, "q1": None, "q2": None, "ratio": 1.1,
    "diagonal": 1.0, "fourth_cumulant": -2.0, "hidden": 24, "limit": 0.4, "spike": 1.7, "sigma": 0.6, "q": 0.4,
    "variance": 0.6, "law": rmt.Semicircle(sigma=0.6), "eigenvalue": 0.56, "dim": 226, "batch_size": 64,
    "dataset_size": 1797, "coefficient": 2.4, "skewness": 0.7, "replacement": False, "norm": 1.2,
    "semidefinite": True, "eigenvalues": [2.0, 0.5, -1.0], "variances": [0.3, 0.6, 0.9], "rank": 2,
    "positive_share": 0.3, "outputs": 10, "inputs": 8, "widths": [30, 10], "biases": True, "sample_rank": 69,
    "samples": 1797, "symmetries": 31, "total": 0.81, "sharpness": 4.2, "noise": 0.3, "rate": 0.02, "known": 32,
    "crossover": 40, "momentum": 0.9, "curvatures": [0.5, 0.4, 0.2], "square": 3.1, "preconditioner": 0.7,
    "largest": 4.2, "smallest": 0.3, "p": [0.7, 0.2, 0.1], "average": False, "lower": False, "z": [3.1, -0.4],
    "temperature": 0.5, "weights": [3, 2, 1], "gamma": 1.3, "sigma_c": 1.1, "sigma_e": 0.7, "excess": -12.5,
    "mean_probability": [0.5, 0.5], "prior": [0.7, 0.3], "gauss_newton_excess": 3.1, "frobenius_ratio": 0.7,
    "separate_gamma": 2.6, "orthogonal": True, "squared_error": 0.7, "trace": 3.1, "squared_norm": 2.5,
    "squared_diagonal": 0.9, "parameters": 2720, "tail": 0.02, "members": 7, "classes": 12, "alpha": 1.8,
    "depth": 3, "gauss_newton_norm": 0.8, "h_term_norm": 0.1, "gap_density": 0.4, "bulk_norm": 0.9, "order": 1,
    "gaps": [0.3, 0.1], "squared_slopes": [2.5, 1.7], "matrices": [[[1.0, 2.0]], [[0.5]]], "x": [0.3, -0.2],
    "bias": [0.3, -0.2], "spread": 0.7, "label": 1, "jacobian": [[0.3], [1.0], [-0.2]],
    "second": [[[0.3]], [[1.0]], [[-0.2]]], "neighbour": 0.4, "opposite": 0.1, "angle": 0.4, "steps": 3,
    "curvature": 1.3, "squared_gradient": 2.1, "squared_gradients": [1.0, 2.0], "covariance_along": 0.4,
    "trace_of_square": 3.0, "contrast": 0.4, "per_row": 4, "sigma_a": 0.4, "sigma_b": 0.7, "u": 2.3, "s": 0.2,
    "gradient": [0.3, -0.2], "hessian": [[2.0, 0.3], [0.3, 1.0]], "growth": 2.0, "damping": 0.5, "start": [1.0],
    "targets": [[0.3, -1.2], [0.8, 0.2]], "preactivations": [[0.3, -1.2, 0.4]], "probabilities": [[0.5, 0.5]],
    "value": 0.7, "eta1": 1.2, "eta2": 1.9, "eta3": 0.8, "overlap": 0.7, "finite_samples": True,
    "width_ratio": 1.2, "input_ratio": 0.8,
    "product": 1.7, "output": 0.1, "logit_std": 1.0, "centred": True, "slope": 0.3, "layers": 2, "q_hat": 0.7,
}  # fmt: skip
"""Right arguments by name."""

ADAM = {"momentum": 0.99, "second": 0.998}
LENGTH = {"squared_norm": 6.0, "largest": 2.0, "smallest": 0.5}
_ONES = np.array([np.eye(2)] * 7)
STATISTICS = own_direction.own_directions(
    _ONES, _ONES, np.ones(7), np.zeros((7, 2)), background=0.0, spread=0.0
)
OWN: dict[str, dict[str, Any]] = {
    "softmax.batch_gammas": {"p": [[0.7, 0.2, 0.1]]},
    "softmax.batch_gammas_from_logits": {"z": [[3.1, -0.4]]},
    "learning_rates.adam.square_root_rule": ADAM,
    "learning_rates.adam.half_life": ADAM,
    "learning_rates.adam.same_half_life": ADAM,
    "learning_rates.adam.adam_moments": {**ADAM, "start": 1.2, "noise": (6.0, 3.0), "steps": (15, 25)},
    **{f"learning_rates.adam.{name}": {"noise": [1.0, 0.6]} for name in ("sign_rate", "surge_scale", "surge_rate")},
    **{
        f"learning_rates.noise_scale.{name}": LENGTH
        for name in ("critical_batch_size", "interpolating_rate", "mean_square_factor")
    },
    "learning_rates.noise_scale.mean_square_distances": {"curvatures": [[[4.0]], [[2.0]]], "batch_size": 1},
    "loss_change.quadratic_change": {"preconditioner": [[2.0, 0.0], [0.0, 3.0]]},
    "loss_change.sign_averaged_change": {"preconditioner": [[2.0, 0.0], [0.0, 3.0]]},
    "loss_change.mean_descent_limit": {"sharpness": [2.0, 5.0]},
    "fisher.batch_norm_largest_odd": {"activation": "tanh"},
    "fisher.batch_normalised_statistics": {"q1": 3.0, "q2": 2.0},
    "fisher.batch_norm_bound": {"activation": "relu"},
    "fisher.batch_norm_largest": {"activation": "relu"},
    "lanczos_bounds.ritz_value_bound": {"eigenvalue": 3.0},
    "rmt.CompoundFreePoisson": {"rate": 1.0, "jumps": 1.0, "weights": None},
    "own_direction.own_directions": {
        **{name: np.array([np.eye(2)] * 7) for name in ("projected", "squared")},
        "largest": np.ones(7), "overlaps": np.zeros((7, 2)), "background": 0.0, "spread": 0.0,
    },
    "own_direction.batch_eigenvalues": {"batches": [[0, 1]], "statistics": STATISTICS},
}  # fmt: skip
"""Where a name means something else than in the other functions."""

SINE = Activation("sine", np.sin, np.cos)
WILD = Activation("wild", lambda x: 1e200 * np.tanh(x), lambda x: 1e200 / np.cosh(x) ** 2)
CUBIC = Activation("cubic", lambda x: x**3 - 3 * x, lambda x: 3 * x**2 - 3, lambda x: 6 * x)


LEFT_OUT = (
    "activations.Activation activations.built_in activations.gaussian own_direction rmt.CompoundFreePoisson"
    " rmt.TracyWidom rmt.Semicircle rmt.MarchenkoPastur order_parameters.propagate activations.precise_kernels"
    " fisher.batch_normalised_constants learning_rates.adam.surge"
)
"""Methods, and what takes callables, records or sets of arguments that belong together."""

NAMES = [
    *(
        name
        for name in LINES
        if not name.startswith(tuple(LEFT_OUT.split())) and name != "activations.gaussian_kernels"
    ),
    *("learning_rates.adam.adam_moments", "learning_rates.adam.adaptive_edge"),
    *(
        f"learning_rates.catapult.{name}"
        for name in ("step", "curvature_drop", "final_product", "mean_final_product")
    ),
    *(f"gauss_newton.class_blocks.{name}" for name in ("uniform_ratio", "output_ratio", "hidden_ratio")),
]


def public(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"theory.{module}"), function)


def call(name: str, changes: dict[str, Any]) -> Any:
    """The public function, with right arguments but for the changes."""
    given = RIGHT | OWN.get(name, {}) | changes
    return public(name)(**{a: given[a] for a in inspect.signature(public(name)).parameters if a in given})
