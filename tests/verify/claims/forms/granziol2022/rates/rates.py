"""Closed forms for the claims on learning rates, those of granziol2022_rates and of beyond_rates."""

from __future__ import annotations

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, shared

__all__ = [
    "FORMS",
    "UNSEEN",
]


def _noise(sigma, dim, batch_size, dataset_size):
    """Half of the edge."""
    return shared(sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma)


def _top(eigenvalue, scale):
    outlier, edge = eigenvalue + scale**2 / eigenvalue, 2 * scale
    return sympy.Piecewise((outlier, eigenvalue > scale), (edge, eigenvalue < scale))


def _eigenvalue(eigenvalue, sigma, dim, batch_size, dataset_size):
    return _top(eigenvalue, _noise(sigma, dim, batch_size, dataset_size))


def _inverse_ratio(batch_size, larger, dataset_size):
    """Effective size of the larger batch over that of the smaller one."""
    return (1 / batch_size - 1 / dataset_size) / (1 / larger - 1 / dataset_size)


def _exponent(eigenvalue, sigma, dim, batch_size, larger, dataset_size):
    here, there = (_top(eigenvalue, _noise(sigma, dim, size, dataset_size)) for size in (batch_size, larger))
    return sympy.log(here / there) / sympy.log(_inverse_ratio(batch_size, larger, dataset_size))


def _outlier(eigenvalue, scale):
    return eigenvalue + scale**2 / eigenvalue


def _outlier_eigenvalue(eigenvalue, sigma, dim, batch_size, dataset_size):
    return _outlier(eigenvalue, _noise(sigma, dim, batch_size, dataset_size))


def _outlier_exponent(eigenvalue, sigma, dim, batch_size, larger, dataset_size):
    here, there = (
        _outlier(eigenvalue, _noise(sigma, dim, size, dataset_size)) for size in (batch_size, larger)
    )
    return sympy.log(here / there) / sympy.log(_inverse_ratio(batch_size, larger, dataset_size))


def _over_edge(eigenvalue, sigma, dim, batch_size, dataset_size):
    x = shared(eigenvalue / (sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma))
    return (x + 1 / x) / 2


TRACY_WIDOM_MEAN = -1.2065335745820


def _edge(p: Point) -> float:
    """Of Gaussian noise of this size, over the root of its dimension and the deviation of an element."""
    return float(2 * (1 - 0.5 / p.dim) ** 0.5 + TRACY_WIDOM_MEAN * p.dim**-0.5 * (p.dim - 0.5) ** (-1 / 6))


def _adaptive(preconditioner, sigma, dim, batch_size, dataset_size, edge):
    return 2 * preconditioner / (sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma * edge)


def _growth(rate, batch_size, dim, steps):
    return ((1 - rate) ** 2 + rate**2 * (dim + 1) / batch_size) ** steps


def _squared_gradient(p: Point) -> float:
    return float(np.linalg.norm(p.gradient) ** 2)


def _along(p: Point) -> float:
    return float(np.array(p.gradient) @ np.diag(p.variances) @ np.array(p.gradient))


def _trace_of_square(p: Point) -> float:
    return float(np.trace(np.linalg.matrix_power(np.diag(p.variances), 2)))


FORMS: dict[str, ClosedForm] = {
    "granziol2022/rate-exponent": ClosedForm(_exponent),
    "granziol2022/linear-rate-of-small-batches": ClosedForm(_outlier_exponent),
    "granziol2022/eigenvalue-below-crossover": ClosedForm(_eigenvalue),
    "granziol2022/broadening-dominated-eigenvalue": ClosedForm(_outlier_eigenvalue),
    "granziol2022/perturbation-scaling": ClosedForm(_inverse_ratio),
    "granziol2022/outlier-over-edge": ClosedForm(_over_edge),
    "granziol2022/adaptive-limit": ClosedForm(_adaptive, {"edge": _edge}),
    "granziol2022/least-squares-limit": ClosedForm(
        lambda batch_size, dim: 2 * batch_size / (batch_size + dim + 1),
    ),
    "granziol2022/least-squares-growth": ClosedForm(_growth),
    "granziol2022/squared-gradient-mean": ClosedForm(
        lambda squared_gradient, trace, batch_size: squared_gradient + trace / batch_size,
        {"squared_gradient": _squared_gradient, "trace": lambda p: sum(p.variances)},
    ),
    "granziol2022/squared-gradient-variance": ClosedForm(
        lambda along, square, batch_size: 4 * along / batch_size + 2 * square / batch_size**2,
        {"along": _along, "square": _trace_of_square},
    ),
    "beyond/sgd-steps": ClosedForm(lambda relative: 1 - relative),
}


WIDER = "the second domain may be wider: where both hold the first one counts"
CANCELS = "an error in 1/N shifts both effective sizes, and nearly cancels in an exponent"
EFFECTIVE = (
    "everywhere: without term -1/dataset_size",
    "everywhere: 1/2 times -1/dataset_size",
    "everywhere: dataset_size -> dim in 1/dataset_size",
    "everywhere: -1 -> -2 in 1/dataset_size",
)
SQUARE = "domain: square of eigenvalue in eigenvalue < (sigma*sqrt( ... et_size + 1/batch_size)))"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/rate-exponent": {
        WIDER: (SQUARE,),
        CANCELS: EFFECTIVE,
    },
    "granziol2022/linear-rate-of-small-batches": {CANCELS: EFFECTIVE},
    "granziol2022/eigenvalue-below-crossover": {WIDER: (SQUARE,)},
}
