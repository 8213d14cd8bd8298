"""Closed forms of `verify.claims.granziol2022.noise.sampling`."""

import sympy

from tests.verify.claims.mutation import ClosedForm, Quantity, shared

__all__ = ["FORMS"]


def _exponential_skewness(batch_size, dataset_size):
    """Third cumulant 2 of exponential elements, over the noise to the power 3/2."""
    return 2 * (1 / batch_size - 2 / dataset_size) / sympy.sqrt(1 / batch_size - 1 / dataset_size)


FORMS = {"granziol2022/exponential-skewness": ClosedForm(_exponential_skewness)}


def _one_of(name: str, index: int) -> Quantity:
    """One entry of a parameter that is a list."""
    return lambda p: p[name][index]


SIZES: dict[str, Quantity] = {"batch": _one_of("samples", 0), "total": _one_of("samples", 1)}
BATCHES: dict[str, Quantity] = {f"b{i}": _one_of("batch_sizes", i) for i in range(3)}


def _composed(full_eigenvalue, sigma, dim, batch, total):
    """The larger root of x + P sigma^2 / (N x) = the full eigenvalue, and what a batch makes of it."""
    true = shared((full_eigenvalue + sympy.sqrt(full_eigenvalue**2 - 4 * (dim * sigma**2 / total))) / 2)
    return true + dim * sigma**2 / batch / true


def _nested(eigenvalue, sigma, dim, samples):
    return eigenvalue + dim * sigma**2 / (samples * eigenvalue)


def _middle_over_ends(b0, b1, b2, dataset_size):
    low, middle, high = (sympy.sqrt(1 / b - 1 / dataset_size) for b in (b0, b1, b2))
    return 2 * middle / (low + high)


FORMS |= {
    "granziol2022/composed-noise": ClosedForm(_composed, SIZES),
    "granziol2022/nested-samples": ClosedForm(_nested),
    "granziol2022/not-linear-in-batch-size": ClosedForm(_middle_over_ends, BATCHES),
}
