"""Closed forms of `verify.claims.karakida2019.layer_norm`."""

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import KERNEL_OF, ClosedForm, Quantity

__all__ = ["FORMS", "UNSEEN", "unit_moments"]


def unit_moments(p: Point) -> dict[str, list[float]]:
    """Moments by name, layer by layer, of units of variance 1: their own, shared ones, and the same going back."""

    def kernel(name: str, correlation: float) -> float:
        pair = np.array([1.0]), np.array([correlation])
        return float(KERNEL_OF[name][p.activation](*pair)[0])

    own, cross, back = [1.0], [0.0], []
    for _ in range(p.depth - 1):
        q = p.weight_variance * own[-1] + p.bias_variance
        c = (p.weight_variance * cross[-1] + p.bias_variance) / q
        own.append(kernel("average", 1.0))
        cross.append(kernel("average", c))
        back.append([p.weight_variance / q * kernel("average_slope", at) for at in (1.0, c)])
    backward, backward_cross = [1.0], [1.0]
    for one, two in reversed(back):
        backward.insert(0, one * backward[0])
        backward_cross.insert(0, two * backward_cross[0])
    return {"own": own, "cross": cross, "backward": backward, "backward_cross": backward_cross}


def _sum_of_products(backward: str, forward: str) -> Quantity:
    def kappa(p: Point) -> float:
        m = unit_moments(p)
        return sum(b * f for b, f in zip(m[backward], m[forward], strict=True)) / (p.depth - 1)

    return kappa


SIZES: dict[str, Quantity] = {
    "alpha": lambda p: p.depth - 1,
    "parameters": lambda p: (p.depth - 1) * p.width * (p.width + 1) + p.outputs * (p.width + 1),
    "kappa1": _sum_of_products("backward", "own"),
    "kappa2": _sum_of_products("backward_cross", "cross"),
    "bias1": lambda p: sum(unit_moments(p)["backward"]),
    "bias2": lambda p: sum(unit_moments(p)["backward_cross"]),
    "back1": lambda p: unit_moments(p)["backward"][0],
    "back2": lambda p: unit_moments(p)["backward"][1],
    "fore": lambda p: unit_moments(p)["own"][1],
}


def _mean(outputs, parameters, eta1, alpha, width, back1, back2, fore, bias1):
    """Layer by layer, three of them: inputs have variance 1, hidden units an average that is the same in both."""
    kappa1 = (back1 + back2 * fore + fore) / alpha
    return (outputs - 2) * eta1 / parameters * (alpha * width * kappa1 + bias1)


def _rayleigh(outputs, samples, eta1, overlap, alpha, width, kappa1, kappa2, bias1, bias2):
    own = alpha * width * kappa1 + bias1
    return (outputs - 2) * eta1 / samples * own + overlap * (alpha * width * kappa2 + bias2)


def _squares(outputs, samples, eta1, eta2, eta3, kappa1, kappa2):
    pairs = ((outputs - 3) * eta1**2 + eta3**2) * kappa2**2
    return pairs + (outputs - 2) * eta2 / samples * (kappa1**2 - kappa2**2)


def _lower(alpha, width, outputs, samples, eta1, eta2, eta3, kappa1, kappa2):
    squares = _squares(outputs, samples, eta1, eta2, eta3, kappa1, kappa2)
    return alpha * width * squares / ((outputs - 2) * eta1 * kappa1)


def _upper(alpha, width, outputs, samples, eta1, eta2, eta3, kappa1, kappa2):
    return alpha * width * sympy.sqrt(_squares(outputs, samples, eta1, eta2, eta3, kappa1, kappa2))


FORMS = {
    "karakida2019/layer-norm-mean": ClosedForm(_mean, SIZES),
    "karakida2019/layer-norm-rayleigh": ClosedForm(_rayleigh, SIZES),
    "karakida2019/layer-norm-lower-bound": ClosedForm(_lower, SIZES),
    "karakida2019/layer-norm-upper-bound": ClosedForm(_upper, SIZES),
}


BIASES = "derivatives by the biases are at most 3 % of the whole at this width, less than two margins"
ONE_TERM = "the square of eta3 is one of C - 2 terms of its size"
SIZES_ALIKE = "a bound that is stronger by less than two margins"


def _of_biases(name: str, *others: str) -> tuple[str, ...]:
    """What can be done to a term that is too small to be seen."""
    terms = (f"without term {name}", *(f"{factor} times {name}" for factor in ("-1", "2", "1/2")))
    swaps = (f"{name} -> {other}" for other in others)
    return (*terms, *swaps, *(f"{power} of {name}" for power in ("square root", "inverse", "square")))


UNSEEN = {
    "karakida2019/layer-norm-mean": {
        BIASES: _of_biases("bias1", "alpha", "back1", "back2", "eta1", "fore", "outputs"),
    },
    "karakida2019/layer-norm-rayleigh": {
        BIASES: (
            *_of_biases(
                "bias1", "alpha", "bias2", "eta1", "kappa1", "kappa2", "outputs", "overlap", "samples"
            ),
            *_of_biases("bias2", "alpha", "bias1", "eta1", "kappa1", "kappa2", "outputs"),
        ),
        "the biases add 2 at these points, which is alpha": ("alpha -> bias1 in alpha*kappa1*width",),
    },
    "karakida2019/layer-norm-lower-bound": {
        SIZES_ALIKE: (
            "1/2 times -kappa2**2",
            "eta2 -> samples in eta2*(kappa1**2 - kappa2**2)*(outputs - 2)/samples",
        ),
    },
    "karakida2019/layer-norm-upper-bound": {
        ONE_TERM: ("1/2 times eta3**2", "eta3 -> alpha in eta3**2", "2 -> 1 in eta3**2"),
        SIZES_ALIKE: ("outputs -> samples", "samples -> outputs in 1/samples", "2 times -kappa2**2"),
    },
}
