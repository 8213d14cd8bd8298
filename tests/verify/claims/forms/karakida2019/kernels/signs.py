"""Closed forms of `verify.claims.karakida2019.kernels`."""

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]


def _mean_of_shifted(p: Point) -> float:
    """E |sqrt(q) z| - sqrt(2/pi) at q = weight_variance."""
    return float(np.sqrt(2 * p.weight_variance / np.pi) - np.sqrt(2 / np.pi))


def _square_of_shifted(p: Point) -> float:
    return float(p.weight_variance - 2 * (2 / np.pi) * np.sqrt(p.weight_variance) + 2 / np.pi)


def _shifted(samples, width, mean, square, weight_variance):
    """Two layers: (M kappa1 + w + 1)/T + (1 - 1/T)(M mean^2 + 1), kappa1 = w + E phi^2, slopes of size 1."""
    diagonal = width * (weight_variance + square) + weight_variance + 1
    return diagonal / samples + (1 - 1 / samples) * (width * mean**2 + 1)


FORMS = {
    "karakida2019/not-centred": ClosedForm(_shifted, {"mean": _mean_of_shifted, "square": _square_of_shifted})
}

PLACES = ("", " (2)")
BIASES = "derivatives by the biases are below 1 % of the whole at this width, less than two margins"
NEAR_ONE = "the factor 1 - 1/T of kappa2 is near 1 where kappa2 is most of the whole"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/not-centred": {
        BIASES: (
            "without term weight_variance",
            "-1 times weight_variance",
            "2 times weight_variance",
            "1/2 times weight_variance",
            "weight_variance -> mean",
            "weight_variance -> samples",
            "weight_variance -> square",
            "square root of weight_variance",
            "inverse of weight_variance",
            "square of weight_variance",
            *(
                f"{edit}{place}"
                for edit in ("without term 1", "-1 times 1", "2 times 1", "1/2 times 1")
                for place in PLACES
            ),
        ),
        NEAR_ONE: (
            "1/2 times -1/samples",
            "square root of 1 - 1/samples",
            "samples -> weight_variance in 1/samples",
        ),
    },
}
