"""Closed forms of `verify.claims.granziol2022.noise.sampling`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]


def _exponential_skewness(batch_size, dataset_size):
    """Third cumulant 2 of exponential elements, over the noise to the power 3/2."""
    return 2 * (1 / batch_size - 2 / dataset_size) / sympy.sqrt(1 / batch_size - 1 / dataset_size)


FORMS = {"granziol2022/exponential-skewness": ClosedForm(_exponential_skewness)}
