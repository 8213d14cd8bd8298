"""Closed forms of `verify.claims.vysogorets2024.softmax.gradients`."""

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, Floats, Quantity

__all__ = [
    "FORMS",
]


def _one_hot(p: Point) -> Floats:
    return np.array([[float(k == label) for k in range(len(p.p[0]))] for label in p.labels])


def _residual(p: Point) -> Floats:
    """Mean prediction less the frequencies of the classes."""
    return (np.array(p.p) - _one_hot(p)).mean(axis=0)


BATCH: dict[str, Quantity] = {
    "predicted": lambda p: np.mean(p.p, axis=0)[p.classes],
    "frequency": lambda p: _one_hot(p).mean(axis=0)[p.classes],
    "distance": lambda p: np.linalg.norm(_residual(p)),
    "error": lambda p: np.square(np.array(p.p) - _one_hot(p)).sum(axis=1).mean(),
    "samples": lambda p: len(p.p) * p.copies,
    "outputs": lambda p: len(p.p[0]),
}


def _floor(dim, sigma_e, samples, outputs):
    return dim * sigma_e**2 / samples * (1 - 1 / outputs)


FORMS = {
    "vysogorets2024/mean-gradient": ClosedForm(lambda predicted, frequency: predicted - frequency, BATCH),
    "vysogorets2024/mean-gradient-norm": ClosedForm(
        lambda dim, sigma_c, distance: dim * sigma_c**2 * distance**2, BATCH
    ),
    "vysogorets2024/balanced-gradient-floor": ClosedForm(_floor, BATCH),
}
