"""Closed forms of the gradients in `verify.claims.vysogorets2024.logit_model`."""

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, Floats, Quantity

__all__ = [
    "FORMS",
    "UNSEEN",
]


def _one_hot(p: Point) -> Floats:
    return np.array([[float(k == label) for k in range(len(p.p[0]))] for label in p.labels])


def _residual(p: Point) -> Floats:
    """Mean prediction less the frequencies of the classes."""
    return (np.array(p.p) - _one_hot(p)).mean(axis=0)


def _of_class(values: Floats, p: Point) -> float:
    """That of the class of a part; 0 of the scatter."""
    return 0.0 if p.parts < 0 else float(values[p.parts])


BATCH: dict[str, Quantity] = {
    "predicted": lambda p: _of_class(np.mean(p.p, axis=0), p),
    "frequency": lambda p: _of_class(_one_hot(p).mean(axis=0), p),
    "floor": lambda p: float(p.parts < 0),
    "distance": lambda p: np.linalg.norm(_residual(p)),
    "error": lambda p: np.square(np.array(p.p) - _one_hot(p)).sum(axis=1).mean(),
    "samples": lambda p: len(p.p) * p.copies,
    "outputs": lambda p: len(p.p[0]),
}


def _floor(dim, sigma_e, samples, outputs):
    return dim * sigma_e**2 / samples * (1 - 1 / outputs)


def _part(predicted, frequency, floor, sigma_c, sigma_e, error, samples):
    return predicted - frequency + floor * sigma_e**2 / sigma_c**2 / samples * error


FORMS = {
    "vysogorets2024/mean-gradient": ClosedForm(_part, BATCH),
    "vysogorets2024/mean-gradient-norm": ClosedForm(
        lambda dim, sigma_c, distance: dim * sigma_c**2 * distance**2, BATCH
    ),
    "vysogorets2024/balanced-gradient-floor": ClosedForm(_floor, BATCH),
}

UNSEEN = {
    "vysogorets2024/mean-gradient": {
        "it is 0 for a coefficient and 1 for the scatter": [
            "square of floor in error*floor*sigma_e**2/(samples*(sigma_c**2))",
            "square root of floor in error*floor*sigma_e**2/(samples*(sigma_c**2))",
        ],
        "the mean squared error is nearly 1 where the scatter is large; sample-gradient-norm tells them": [
            "square of error in error*floor*sigma_e**2/(samples*(sigma_c**2))",
            "square root of error in error*floor*sigma_e**2/(samples*(sigma_c**2))",
        ],
    },
}
