"""The closed form of every statistical claim, written down a second time.

Each formula stands as the claim states it, in the parameters of a point of the claim; what goes through a recursion,
a spectrum or a list enters as a named quantity. Nothing here is read by the claims.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import (
    ClosedForm,
    Floats,
    Quantity,
    marchenko_pastur,
    shared,
    squared_component,
    squared_diagonal_of_power,
    trace_of_power,
)
from theory import fisher
from theory.order_parameters import OrderParameters, order_parameters

__all__ = ["A_NUMBER", "FORMS", "SETTING", "order_parameters_of"]


def where(condition, value):
    """A formula within its domain; outside of it nothing is stated, and a mutant may say anything there."""
    return sympy.Piecewise((value, condition))


def _theorem_4(eigenvalue, sigma, dim, batch_size, dataset_size, threshold):
    value = eigenvalue + dim * (1 / batch_size - 1 / dataset_size) * sigma**2 / eigenvalue
    return where(eigenvalue > threshold, value)


def _theorem_10(eigenvalue, sigma, dim, batch_size, dataset_size, threshold):
    value = 1 - dim * (1 / batch_size - 1 / dataset_size) * sigma**2 / eigenvalue**2
    return where(eigenvalue > threshold, value)


def _theorem_7(full_eigenvalue, variance, dim, batch_size, dataset_size):
    """In the eigenvalue of the noise-free part, up to the broadening of the full matrix."""
    theta = full_eigenvalue - variance
    return theta + variance * theta / (theta - variance * dim * (1 / batch_size - 1 / dataset_size))


def _ratio(p: Point) -> float:
    """Dimension over effective batch size."""
    return p.dim * (p.dataset_size - p.batch_size) / (p.dataset_size * p.batch_size)


def _wigner_threshold(p: Point) -> float:
    return p.sigma * _ratio(p) ** 0.5


def _semicircle(x, sigma, dim, batch_size, dataset_size):
    """The density integrated from the centre, where half of the mass lies below."""
    s = shared(sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma)
    area = x * sympy.sqrt(4 * s**2 - x**2) / (4 * sympy.pi * s**2)
    return sympy.Rational(1, 2) + area + sympy.asin(x / (2 * s)) / sympy.pi


def _low_rank_noise(x, variance, dim, batch_size):
    return marchenko_pastur(x + variance, dim / batch_size, variance)


def _sign_probe_variance(power):
    return 2 * trace_of_power(2 * power) - 2 * squared_diagonal_of_power(power)


def _eq_8(dim, sigma_c, sigma_e, gamma):
    bulk = sigma_e**4 + 2 * sigma_e**2 * sigma_c**2
    return dim * (sigma_c**2 + sigma_e**2) ** 2 / (bulk + dim * sigma_c**4 * gamma**-2)


def _covariance(p: Point) -> Floats:
    return np.diag(p.p) - np.outer(p.p, p.p)


def _gamma(p: Point) -> float:
    """Trace over Frobenius norm, from the dense matrix."""
    return float(np.trace(_covariance(p)) / np.linalg.norm(_covariance(p)))


def _norm(p: Point) -> float:
    return float(np.linalg.norm(p.p))


def _outlier(norm, sigma_e, dim, sigma_c, eigenvalue):
    return (1 - norm**2) * sigma_e**2 + dim * sigma_c**2 * eigenvalue


SETTING = ("activation", "depth", "weight_variance", "bias_variance")


@cache
def _recursion(activation: str, **setting: Any) -> OrderParameters:
    return order_parameters(activation, **setting)


def order_parameters_of(p: Point) -> OrderParameters:
    """Those of the network of a point."""
    return _recursion(**{key: p[key] for key in SETTING})


def _moment(name: str, layer: int) -> Quantity:
    return lambda p: float(getattr(order_parameters_of(p), name)[layer])


def _bias(name: str) -> Quantity:
    """Sum over layers of a backward order parameter: what the gradients by the biases add."""
    return lambda p: sum(_moment(name, layer)(p) for layer in range(p.depth))


def _kappa(backward: str, forward: str) -> Quantity:
    """Backward times forward order parameter of the layer below, over alpha; all widths equal."""
    return lambda p: (
        sum(_moment(backward, layer)(p) * _moment(forward, layer)(p) for layer in range(p.depth))
        / (p.depth - 1)
    )


def _parameters(p: Point) -> int:
    """Weights and biases of the hidden layers, all of one width with the inputs, and of the read-out."""
    return (p.depth - 1) * p.width * (p.width + 1) + p.outputs * (p.width + 1)


FISHER: dict[str, Quantity] = {
    "parameters": _parameters,
    "alpha": lambda p: p.depth - 1,
    "kappa1": _kappa("q_tilde_t", "q_hat_t"),
    "kappa2": _kappa("q_tilde_st", "q_hat_st"),
    "bias1": _bias("q_tilde_t"),
    "back1": _moment("q_tilde_t", 0),
    "back2": _moment("q_tilde_t", 1),
    "fore1": _moment("q_hat_t", 1),
    "fore2": _moment("q_hat_t", 2),
}


def _mean_eigenvalue(outputs, parameters, alpha, width, back1, back2, fore1, fore2, bias1):
    """kappa1 layer by layer: inputs have variance 1, and so has the derivative of an output by itself."""
    kappa1 = (back1 + back2 * fore1 + fore2) / alpha
    return outputs / parameters * (alpha * width * kappa1 + bias1)


BOUNDS: dict[str, Quantity] = {
    **FISHER,
    "width": lambda p: p.widths,
    "c2": lambda p: fisher.fluctuation_constants(outputs=p.outputs, **{key: p[key] for key in SETTING}).c2,
}


def _lower_bound_with_c1(alpha, kappa1, kappa2, outputs, c2):
    spike = shared(alpha * (kappa1 - kappa2))
    return spike + c2 / (outputs * spike)


def _upper_bound(alpha, kappa1, kappa2, outputs, c2, width):
    return sympy.sqrt((outputs * alpha**2 * (kappa1 - kappa2) ** 2 + c2) * width)


FORMS: dict[str, ClosedForm] = {
    "granziol2022/semicircle": ClosedForm(_semicircle),
    "granziol2022/low-rank-noise": ClosedForm(_low_rank_noise),
    "granziol2022/probe-mean": ClosedForm(lambda power: trace_of_power(power)),
    "granziol2022/gaussian-probe-variance": ClosedForm(lambda power: 2 * trace_of_power(2 * power)),
    "granziol2022/sign-probe-variance": ClosedForm(_sign_probe_variance),
    "granziol2022/probe-overlap": ClosedForm(lambda x, dim: squared_component(x, dim)),
    "granziol2022/theorem-4": ClosedForm(_theorem_4, {"threshold": _wigner_threshold}),
    "granziol2022/theorem-10": ClosedForm(_theorem_10, {"threshold": _wigner_threshold}),
    "granziol2022/theorem-7": ClosedForm(_theorem_7),
    "karakida2019/mean-eigenvalue": ClosedForm(_mean_eigenvalue, FISHER),
    "karakida2019/lower-bound-with-c1": ClosedForm(_lower_bound_with_c1, BOUNDS),
    "karakida2019/upper-bound": ClosedForm(_upper_bound, BOUNDS),
    "vysogorets2024/outlier": ClosedForm(
        _outlier, {"norm": _norm, "eigenvalue": lambda p: np.linalg.eigvalsh(_covariance(p))[-1]}
    ),
    "vysogorets2024/bulk": ClosedForm(
        lambda norm, sigma_e: (1 - norm**2) * sigma_e**2,
        {"norm": _norm},
    ),
    "vysogorets2024/uniform-outliers": ClosedForm(
        lambda classes, sigma_e, dim, sigma_c: (1 - 1 / classes) * sigma_e**2 + dim * sigma_c**2 / classes,
        {"classes": lambda p: len(p.p)},
    ),
    "vysogorets2024/eq-8": ClosedForm(_eq_8, {"gamma": _gamma}),
}

A_NUMBER = "a bare number: its rivals are the other numbers that it is told from"
