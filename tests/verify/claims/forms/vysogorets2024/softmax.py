"""Closed forms of `softmax`, `logit_model` and `priors` in `verify.claims.vysogorets2024`."""

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, Floats, Quantity, shared

__all__ = ["FORMS", "WITHOUT_FORM"]


def _covariances(p: Point) -> Floats:
    return np.array([np.diag(q) - np.outer(q, q) for q in np.array(p.p)])


def _mean(p: Point) -> float:
    """Gamma of the mean covariance, from dense matrices."""
    mean = _covariances(p).mean(axis=0)
    return float(np.trace(mean) / np.linalg.norm(mean))


def _separate(p: Point) -> float:
    """Gamma of all of them side by side; copies count as matrices of their own."""
    found = _covariances(p)
    return float(np.trace(found.sum(axis=0)) / np.linalg.norm(found) * p.copies**0.5)


GAMMAS: dict[str, Quantity] = {"mean": _mean, "separate": _separate}


def _finite(dim, sigma_c, sigma_e, mean, separate):
    s = shared(sigma_c**2 + sigma_e**2)
    shapes = sigma_c**4 * mean**-2 + (s**2 - sigma_c**4) * separate**-2
    return dim * s**2 / (s**2 + (dim + 1) * shapes)


def _orthogonal(dim, sigma_c, sigma_e, mean, separate):
    s = shared(sigma_c**2 + sigma_e**2)
    own = (s**2 - sigma_c**4) * (1 + (dim + 1) * separate**-2)
    return dim * s**2 / (own + dim * sigma_c**4 * mean**-2)


def _expected(dim, sigma_c, sigma_e, mean):
    noise = sigma_e**4 + 2 * sigma_e**2 * sigma_c**2
    return dim * (sigma_c**2 + sigma_e**2) ** 2 / (noise + dim * sigma_c**4 * mean**-2)


FORMS = {
    "vysogorets2024/finite-sample-excess": ClosedForm(_finite, GAMMAS),
    "vysogorets2024/finite-sample-orthogonal": ClosedForm(_orthogonal, GAMMAS),
    "vysogorets2024/eq-8-of-a-batch": ClosedForm(_expected, GAMMAS),
    "vysogorets2024/balanced-loss": ClosedForm(
        lambda count, share: -count * share * sympy.log(share),
        {"count": lambda p: len(p.prior), "share": lambda p: p.prior[0]},
    ),
    "vysogorets2024/prior-slope": ClosedForm(
        lambda sigma_c, parameters: sympy.log(sympy.sqrt(parameters) * sigma_c)
    ),
}

WITHOUT_FORM = {
    "vysogorets2024/unbalanced-loss-itself": "an integral over products of averages, known by its value alone",
    "vysogorets2024/balanced-gradient-vanishes": "an exponent that is one number, no formula",
    "vysogorets2024/order-by-entropy": "an integral over pairs of distributions, known by its value alone",
}
