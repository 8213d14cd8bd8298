r"""A wide random network: its propagated moments, the constants of its Fisher information, its finite sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory._initialisation import Initialisation
from theory.activations import Activation, resolve
from theory.order_parameters import Propagation, propagate

__all__ = [
    "Activations",
    "Kappas",
    "Network",
    "Size",
    "differentiable",
    "parameter_count",
    "rank_bound",
    "width_ratios_of",
]

Floats = NDArray[np.float64]
Activations = str | Activation | Sequence[str | Activation]


class Kappas(NamedTuple):
    """Constants of Theorem 2.2; `difference` is kappa1 - kappa2 to full relative accuracy."""

    alpha: float
    kappa1: float
    kappa2: float
    difference: float


class Network:
    """Propagated moments of one setting and the sums over its layers, as `theory.fisher` documents them."""

    def __init__(
        self,
        activation: Activations,
        depth: int,
        weight_variance: ArrayLike,
        bias_variance: ArrayLike,
        width_ratios: Sequence[float] | None,
    ) -> None:
        self.depth = _checks.layers("depth", depth, least=2)
        self.ratios = width_ratios_of(width_ratios, self.depth)
        with np.errstate(over="ignore"):
            self.alpha = float(self.ratios[1:] @ self.ratios[:-1])
        rule = "such that alpha neither overflows nor vanishes"
        _checks.require(0 < self.alpha < math.inf, "width_ratios", rule, width_ratios)
        with np.errstate(over="ignore"):
            self.weights = self.ratios / self.alpha
        rule = "such that no ratio over alpha overflows"
        _checks.require(np.isfinite(self.weights), "width_ratios", rule, width_ratios)
        self.activations = differentiable(activation, self.depth - 1)
        self.drawn = Initialisation.checked(weight_variance, bias_variance)
        self.moments: Propagation = propagate(
            self.activations, weight_variance=self.drawn.weight, bias_variance=self.drawn.bias
        )

    def kappas(self) -> Kappas:
        m = self.moments
        rows = zip(
            self.weights.tolist(),
            m.q_tilde_t,
            m.q_tilde_st,
            m.backward_gap,
            m.q_hat_t,
            m.q_hat_st,
            m.forward_gap,
            strict=True,
        )
        # w (t h - t' h') = w [t (h - h') + (t - t') h']: nothing is subtracted
        terms = [(w * t * h, w * ts * hs, w * (t * dh + e * hs)) for w, t, ts, e, h, hs, dh in rows]
        kappa1, kappa2, difference = (float(sum(x)) for x in zip(*terms, strict=True))
        self.require_finite(kappa1, kappa2, difference)
        return Kappas(self.alpha, kappa1, kappa2, difference)

    def require_finite(self, *values: float) -> None:
        self.drawn.require_moderate(all(map(math.isfinite, values)), by_bias=False)


class Size:
    """Diagonal and off-diagonal entries of K and their difference, for given M, T and C.

    They are of leading order in M, or with the biases and all parameters counted (`finite_width`).
    """

    def __init__(self, network: Network, width: int, samples: int, outputs: int, finite_width: bool) -> None:
        self.width, self.samples = _checks.count("width", width), _checks.count("samples", samples)
        self.outputs = _checks.count("outputs", outputs)
        k, m = network.kappas(), network.moments
        scale = k.alpha * self.width
        self.own, self.shared, self.gap = scale * k.kappa1, scale * k.kappa2, scale * k.difference
        self.parameters = scale * self.width
        if _checks.flag("finite_width", finite_width):
            self.own += math.fsum(m.q_tilde_t)
            self.shared += math.fsum(m.q_tilde_st)
            self.gap += math.fsum(m.backward_gap)
            self.parameters = parameter_count(
                depth=network.depth,
                width=self.width,
                outputs=self.outputs,
                width_ratios=network.ratios.tolist(),
            )


def parameter_count(
    *, depth: int, width: int, outputs: int, width_ratios: Sequence[float] | None = None
) -> int:
    r"""Number of weights and biases, :math:`P = \sum_{l=1}^L (M_l M_{l-1} + M_l)`.

    Parameters
    ----------
    depth, width, outputs
        L, M and C, each >= 1; at most 100000 layers.
    width_ratios
        L positive ratios (all 1 if None); layer widths, input included, must come out whole.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Karakida, Akaho and Amari (2019), Section 2.1.

    Examples
    --------
    >>> parameter_count(depth=2, width=3, outputs=1)
    16
    """
    depth = _checks.layers("depth", depth, least=1)
    width, outputs = _checks.count("width", width), _checks.count("outputs", outputs)
    exact = [width * Fraction(ratio) for ratio in width_ratios_of(width_ratios, depth).tolist()]
    units = [*map(round, exact), outputs]
    whole = all(n >= 1 and abs(x - n) * 10**9 <= x for n, x in zip(units, exact, strict=False))
    _checks.require(whole, "width_ratios", f"such that width {width} gives whole layer widths", width_ratios)
    return sum(after * (before + 1) for before, after in pairwise(units))


def rank_bound(
    *, depth: int, width: int, samples: int, outputs: int, width_ratios: Sequence[float] | None = None
) -> int:
    r"""Largest rank of the Fisher information of T samples, :math:`\min(P, C T)`.

    Parameters
    ----------
    depth, width, outputs, width_ratios
        As in :func:`parameter_count`.
    samples
        T >= 1.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (8): a sum of C T matrices of rank one, of size P.

    Examples
    --------
    >>> [rank_bound(depth=2, width=3, samples=t, outputs=2) for t in (1, 5, 100)]
    [2, 10, 20]
    """
    parameters = parameter_count(depth=depth, width=width, outputs=outputs, width_ratios=width_ratios)
    return min(parameters, int(outputs) * int(_checks.count("samples", samples)))


def width_ratios_of(width_ratios: Sequence[float] | None, depth: int) -> Floats:
    ratios = np.ones(depth) if width_ratios is None else _checks.positive("width_ratios", width_ratios)
    _checks.require(ratios.shape == (depth,), "width_ratios", f"a sequence of {depth} numbers", width_ratios)
    return ratios


def differentiable(activation: Activations, layers: int) -> tuple[Activation, ...]:
    """The activations of so many hidden layers, with the second derivatives that are needed without closed forms."""
    found = resolve(activation, layers)
    for a in found:
        if a.second_derivative is None and a.kernels is None:
            raise ValueError(f"second_derivative must be given for activation {a.name!r} here, got None")
    return found
