"""Closed forms of `verify.claims.karakida2019.training`."""

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import order_parameters_of
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]


def _entry(name: str) -> Quantity:
    """Of the Gram matrix of gradients, for one sample or for two: weights and biases of all layers."""

    def entry(p: Point) -> float:
        found = order_parameters_of(p)
        forward, backward = getattr(found, f"q_hat_{name}"), getattr(found, f"q_tilde_{name}")
        return float(((p.width * forward + 1) * backward).sum())

    return entry


FORMS = {
    "karakida2019/subtraction-never-sharpens": ClosedForm(
        lambda own, shared, samples: (
            1 - (1 - 1 / samples) * (own - shared) * samples / (own + (samples - 1) * shared)
        ),
        {"own": _entry("t"), "shared": _entry("st")},
    ),
}

WITHOUT_FORM: dict[str, str] = {
    "karakida2019/subtracted-growth-at-fixed-samples": (
        "a power of the width, read off eq. (17), whose form is mean-of-nonzero"
    ),
}

UNSEEN = {
    "karakida2019/subtraction-never-sharpens": {
        "of two samples, which leave one eigenvalue, samples - 1 is 1": [
            "without factor samples - 1 of *(samples - 1)",
            "inverse of samples - 1",
            "square of samples - 1",
            "square root of samples - 1",
        ],
    },
}
