"""Closed forms of the claims on the constants of theorem 3.3 of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from simulate.monte_carlo import Point
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = [
    "FORMS",
    "UNSEEN",
]

Floats = NDArray[np.float64]


class Layer(NamedTuple):
    """Averages of a hidden layer of erf for two samples, and of its fluctuations."""

    slope: float  # E phi' phi'
    curve: float  # E phi'' phi''
    value: float  # E Var(phi | z)^2
    gate: float  # E Var(phi' | z)^2
    mixed: float  # E Var(phi' | z) E(phi'^2 | z)
    square: float  # E E(phi'^2 | z)^2
    cross: float  # E Cov(phi, phi' | z)^2


STEP = 0.05
NODES = STEP * np.arange(-180, 181)
WEIGHTS = STEP * np.exp(-(NODES**2) / 2) / np.sqrt(2 * np.pi)


def _layer(variance: float, covariance: float) -> Layer:
    """By the trapezoidal rule in what two samples share, z, and in what each has for itself."""
    u = np.sqrt(covariance) * NODES[:, None] + np.sqrt(variance - covariance) * NODES
    phi, slope = special.erf(u), 2 / np.sqrt(np.pi) * np.exp(-u * u)
    curve = -2 * u * slope

    def over(x: Floats) -> Floats:
        return x @ WEIGHTS

    value, gate = over(phi**2) - over(phi) ** 2, over(slope**2) - over(slope) ** 2
    square, cross = over(slope**2), over(phi * slope) - over(phi) * over(slope)
    numbers = (over(slope) ** 2, over(curve) ** 2, value**2, gate**2, gate * square, square**2, cross**2)
    return Layer(*(float(n @ WEIGHTS) for n in numbers))


class Parts(NamedTuple):
    """Variances that the sources of noise make of a centred entry, per unit of width."""

    inputs: float
    forward: float
    mixed: float
    backward: float
    other: float


@cache
def _parts(weight_variance: float, bias_variance: float, ratios: tuple[float, ...]) -> Parts:
    """Every source followed to the end by itself: what it changes in all later layers, and back down."""
    sw, depth = weight_variance, len(ratios)
    hat_t, hat_st, layers = [1.0], [0.0], []
    for _ in range(depth - 1):
        q, s = sw * hat_t[-1] + bias_variance, sw * hat_st[-1] + bias_variance
        layers.append(_layer(q, s))
        hat_t.append(2 / np.pi * np.arcsin(2 * q / (1 + 2 * q)))
        hat_st.append(2 / np.pi * np.arcsin(2 * s / (1 + 2 * q)))
    tilde_t, tilde_st = [1.0], [1.0]
    for i in reversed(range(depth - 1)):
        q = sw * hat_t[i] + bias_variance
        tilde_t.insert(0, sw * tilde_t[0] * 4 / np.pi / np.sqrt(1 + 4 * q))
        tilde_st.insert(0, sw * tilde_st[0] * layers[i].slope)

    def backwards(disturbed: list[float]) -> float:
        """The entry's change, given those of the backward signals that start in each layer."""
        total = signal = 0.0
        for i in reversed(range(depth)):
            signal = disturbed[i] + (sw * layers[i].slope * signal if i < depth - 1 else 0.0)
            total += ratios[i] * hat_st[i] * signal
        return total

    def forwards(start: int) -> float:
        overlap = [0.0] * start + [1.0]
        for layer in layers[start:]:
            overlap.append(sw * layer.slope * overlap[-1])
        turned = [sw**2 * tilde_st[i + 1] * layers[i].curve * overlap[i] for i in range(depth - 1)]
        direct = sum(r * t * o for r, t, o in zip(ratios, tilde_st, overlap, strict=True))
        return direct + backwards([*turned, 0.0])

    def alone(start: int) -> float:
        return backwards([1.0 if i == start else 0.0 for i in range(depth)])

    rows = []
    for i, layer in enumerate(layers):
        shared, rest = tilde_st[i + 1], tilde_t[i + 1] - tilde_st[i + 1]
        free = 2 * shared * rest * layer.mixed + rest**2 * layer.square
        rows.append(
            (
                forwards(i + 1) ** 2 * layer.value / ratios[i + 1],
                2 * forwards(i + 1) * alone(i) * sw * shared * layer.cross / ratios[i + 1],
                alone(i) ** 2 * sw**2 * (3 * shared**2 * layer.gate + free) / ratios[i + 1],
                alone(i) ** 2 * sw**2 * (shared**2 * layer.gate + free) / ratios[i + 1],
            )
        )
    return Parts(forwards(0) ** 2 / ratios[0], *(float(sum(column)) for column in zip(*rows, strict=True)))


def _part(name: str) -> Quantity:
    def value(p: Point) -> float:
        return getattr(_parts(p.weight_variance, p.bias_variance, p.ratios), name)

    return value


PARTS: dict[str, Quantity] = {
    **{name: _part(name) for name in Parts._fields},
    "alpha_kappa1": ENTRIES["alpha_kappa1"],
}


def _one_output(inputs, forward, mixed, backward, alpha_kappa1):
    return (inputs + forward + mixed + backward) / alpha_kappa1**2


def _two_outputs(other, alpha_kappa1):
    return other / alpha_kappa1**2


FORMS: dict[str, ClosedForm] = {
    "karakida2019/scatter-of-one-output": ClosedForm(_one_output, PARTS),
    "karakida2019/scatter-of-two-outputs": ClosedForm(_two_outputs, PARTS),
}


UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/scatter-of-one-output": {
        "forward and backward noise go together by 5 % of the whole, less than two margins": (
            "without term mixed",
            "2 times mixed",
            "1/2 times mixed",
            "square of mixed",
        ),
    },
}
