r"""A wide random network: its propagated moments, the constants of its Fisher information, its finite sizes.

And how the entries of its Gram matrix fluctuate between samples, to leading order in the width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import Floats, R, count, fits, flag, layers, positive, quiet, require
from theory.activations import Activation, gaussian_kernels, resolve
from theory.order_parameters import Initialisation, Propagation, propagate

Activations = str | Activation | Sequence[str | Activation]


class Kappas(NamedTuple):
    """Constants of Theorem 2.2; `difference` is kappa1 - kappa2 to full relative accuracy."""

    alpha: float
    kappa1: float
    kappa2: float
    difference: float


class Network:
    """Propagated moments of one setting and the sums over its layers, as `theory.fisher` documents them."""

    @quiet
    def __init__(
        self,
        activation: Activations,
        depth: int,
        weight_variance: ArrayLike,
        bias_variance: ArrayLike,
        width_ratios: Sequence[float] | None,
    ) -> None:
        self.depth = layers("depth", depth, least=2)
        self.ratios = width_ratios_of(width_ratios, self.depth)
        self.alpha = float(self.ratios[1:] @ self.ratios[:-1])
        rule = "such that alpha neither overflows nor vanishes"
        require(0 < self.alpha < math.inf, "width_ratios", rule, width_ratios)
        self.weights = self.ratios / self.alpha
        rule = "such that no ratio over alpha overflows"
        require(np.isfinite(self.weights), "width_ratios", rule, width_ratios)
        self.activations = differentiable(activation, self.depth - 1)
        self.drawn = Initialisation.checked(weight_variance, bias_variance)
        self.moments: Propagation = propagate(
            self.activations, weight_variance=self.drawn.weight, bias_variance=self.drawn.bias
        )

    def kappas(self) -> Kappas:
        m = self.moments
        forward = zip(m.q_hat_t, m.q_hat_st, m.forward_gap, strict=True)
        return self.finite(Kappas(self.alpha, *kernel_sums(m, forward, self.weights.tolist())))

    def finite(self, found: R) -> R:
        """`found`, a number or several; refused if one of them overflows."""
        given: Any = found
        moderate = math.isfinite(given) if isinstance(given, float) else all(map(math.isfinite, given))
        self.drawn.require_moderate(moderate, by_bias=False)
        return found


def kernel_sums(m: Propagation, forward: Iterable[tuple[Any, ...]], weights: Sequence[float]) -> list[float]:
    """Weighted sums over the layers of backward times forward moments: of one input, of two, and their difference."""
    rows = zip(weights, m.q_tilde_t, m.q_tilde_st, m.backward_gap, forward, strict=True)
    # w (t h - t' h') = w [t (h - h') + (t - t') h']: nothing is subtracted
    terms = [(w * t * h, w * ts * hs, w * (t * dh + e * hs)) for w, t, ts, e, (h, hs, dh) in rows]
    return [float(sum(x)) for x in zip(*terms, strict=True)]


class Size:
    """Diagonal and off-diagonal entries of K and their difference, for given M, T and C.

    They are of leading order in M, or with the biases and all parameters counted (`finite_width`).
    """

    def __init__(self, network: Network, width: int, samples: int, outputs: int, finite_width: bool) -> None:
        self.width, self.samples = count("width", width), count("samples", samples)
        self.outputs = count("outputs", outputs)
        k, m = network.kappas(), network.moments
        scale = k.alpha * self.width
        self.own, self.shared, self.gap = scale * k.kappa1, scale * k.kappa2, scale * k.difference
        self.parameters = scale * self.width
        if flag("finite_width", finite_width):
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
    depth = layers("depth", depth)
    width, outputs = count("width", width), count("outputs", outputs)
    # rationals, since a width or a number of parameters may be too large for a float to count exactly
    exact = [width * Fraction(ratio) for ratio in width_ratios_of(width_ratios, depth).tolist()]
    units = [*map(round, exact), outputs]
    whole = all(n >= 1 and abs(x - n) * 10**9 <= x for n, x in zip(units, exact, strict=False))
    require(whole, "width_ratios", f"such that width {width} gives whole layer widths", width_ratios)
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
    return min(parameters, int(outputs) * int(count("samples", samples)))


def width_ratios_of(width_ratios: Sequence[float] | None, depth: int) -> Floats:
    ratios = np.ones(depth) if width_ratios is None else positive("width_ratios", width_ratios)
    require(ratios.shape == (depth,), "width_ratios", f"a sequence of {depth} numbers", width_ratios)
    return ratios


def differentiable(activation: Activations, layers: int) -> tuple[Activation, ...]:
    """The activations of so many hidden layers, with the second derivatives that are needed without closed forms."""
    found = resolve(activation, layers)
    for a in found:
        if a.second_derivative is None and a.kernels is None:
            raise ValueError(f"second_derivative must be given for activation {a.name!r} here, got None")
    return found


class EntryVariances(NamedTuple):
    """Variances, per unit of width, of a centred Gram entry of two samples: same and different outputs."""

    same: float
    other: float


def fluctuating_network(
    activation: Activations,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None,
) -> Network:
    """The network, no deeper than memory: fluctuations take two square matrices and as many vectors.

    Two rows and columns for each layer.
    """
    fits("depth", 160 * layers("depth", depth, least=2) ** 2, depth)
    return Network(activation, depth, weight_variance, bias_variance, width_ratios)


def entry_variances(network: Network) -> EntryVariances:
    """S for the same and for different outputs: the Gram entry as a linear form in fresh noise."""
    forms = _forms(network)
    same = forms.same @ forms.covariance_same @ forms.same
    return EntryVariances(float(same), float(forms.other @ forms.covariance_other @ forms.other))


def deviation_overlap(network: Network) -> float:
    """Covariance, times width, of a centred Gram entry with a product of centred outputs, both over their diagonals.

    Given the hidden layers, the output is a sum over units with the same weights that scale the units in the backward
    pass: hence, beside the covariance of the forms, twice the covariance of a unit's own noise in both. In deeper
    layers that is known only where there is no `backward_gap`.
    """
    forms, last = _forms(network), 2 * network.depth - 2
    own = 2 * forms.same[last] * forms.covariance_same[last - 1, last]
    covariance = float(forms.forward @ forms.covariance_same @ forms.same + own)
    return covariance / float(network.moments.forward_gap[-1]) / network.alpha / network.kappas().difference


class _Forms(NamedTuple):
    """Off-diagonal entries as linear forms in fresh noise, and the covariances of the noise.

    Noise 0 is the input overlap, 2l - 1 the forward and 2l the backward one of hidden layer l.
    """

    forward: Floats  # of the last hidden layer's overlap
    same: Floats  # of the Gram, same and different outputs
    other: Floats
    covariance_same: Floats
    covariance_other: Floats


def _forms(network: Network) -> _Forms:
    m, sw2, ratios = network.moments, network.drawn.weight, network.ratios.tolist()
    units = np.eye(2 * network.depth - 1)
    covariance_same, covariance_other = np.zeros_like(units), np.zeros_like(units)
    covariance_same[0, 0] = covariance_other[0, 0] = 1 / ratios[0]
    forward, slopes, turns = [units[0]], list[float](), list[float]()
    for i, activation in enumerate(network.activations):
        kernel, a, b, d = gaussian_kernels(activation), m.variance[i], m.covariance[i], m.gap[i]
        v2, a2, ab, b2, c2 = kernel.fluctuations(b, d)
        shared, excess = m.q_tilde_st[i + 1], m.backward_gap[i + 1]
        rest, width = 2 * shared * excess * ab + excess * excess * b2, ratios[i + 1]
        slopes.append(sw2 * kernel.derivative(a, b, d).overlap)
        # response of the backward overlap to the forward one of the layer before
        turns.append(sw2 * sw2 * shared * kernel.curvature(a, b, d))
        at, back = 2 * i + 1, 2 * i + 2
        covariance_same[at, at] = covariance_other[at, at] = v2 / width
        covariance_same[at, back] = covariance_same[back, at] = sw2 * shared * c2 / width
        covariance_same[back, back] = sw2 * sw2 * (3 * shared * shared * a2 + rest) / width
        covariance_other[back, back] = sw2 * sw2 * (shared * shared * a2 + rest) / width
        forward.append(slopes[i] * forward[i] + units[at])
    same = other = backward = lone = np.zeros(len(units))
    for i in reversed(range(network.depth)):
        if i < len(turns):
            noise = units[2 * i + 2]
            backward = slopes[i] * backward + turns[i] * forward[i] + noise
            lone = slopes[i] * lone + noise
        same = same + ratios[i] * (m.q_tilde_st[i] * forward[i] + m.q_hat_st[i] * backward)
        other = other + ratios[i] * m.q_hat_st[i] * lone
    return _Forms(forward[-1], same, other, covariance_same, covariance_other)
