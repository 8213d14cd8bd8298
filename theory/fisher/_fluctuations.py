r"""How the entries of a wide network's Gram matrix fluctuate between samples, to leading order in the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.activations import gaussian_kernels
from theory.fisher._wide import Activations, Network

__all__ = ["EntryVariances", "deviation_overlap", "entry_variances", "fluctuating_network"]

Floats = NDArray[np.float64]


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
    layers = _checks.layers("depth", depth, least=2)
    _checks.fits("depth", 160 * layers**2, depth)
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
    m, sw2, depth = network.moments, network.drawn.weight, network.depth
    steps = [_layer(network, i) for i in range(depth - 1)]
    forward = [_unit(0, depth)]
    for i, step in enumerate(steps):
        forward.append(sw2 * step.slope * forward[-1] + _unit(2 * i + 1, depth))
    same = other = backward = lone = np.zeros(2 * depth - 1)
    for i in reversed(range(depth)):
        if i < len(steps):
            step = steps[i]
            noise = _unit(2 * i + 2, depth)
            backward = sw2 * step.slope * backward + step.turn * forward[i] + noise
            lone = sw2 * step.slope * lone + noise
        ratio = float(network.ratios[i])
        same = same + ratio * (m.q_tilde_st[i] * forward[i] + m.q_hat_st[i] * backward)
        other = other + ratio * m.q_hat_st[i] * lone
    return _Forms(forward[-1], same, other, *_noise(steps, network))


def _layer(network: Network, i: int) -> _Step:
    m, sw2 = network.moments, network.drawn.weight
    kernel = gaussian_kernels(network.activations[i])
    a, b, d = m.variance[i], m.covariance[i], m.gap[i]
    v2, a2, ab, b2, c2 = kernel.fluctuations(b, d)
    shared, excess = m.q_tilde_st[i + 1], m.backward_gap[i + 1]
    rest = 2 * shared * excess * ab + excess * excess * b2
    width = float(network.ratios[i + 1])
    return _Step(
        slope=kernel.derivative(a, b, d).overlap,
        turn=sw2 * sw2 * shared * kernel.curvature(a, b, d),
        forward=v2 / width,
        same=sw2 * sw2 * (3 * shared * shared * a2 + rest) / width,
        other=sw2 * sw2 * (shared * shared * a2 + rest) / width,
        cross=sw2 * shared * c2 / width,
    )


def _noise(steps: Sequence[_Step], network: Network) -> tuple[Floats, Floats]:
    same = np.zeros((2 * network.depth - 1,) * 2)
    same[0, 0] = 1 / network.ratios[0]
    other = same.copy()
    for i, step in enumerate(steps):
        pair = slice(2 * i + 1, 2 * i + 3)
        same[pair, pair] = [[step.forward, step.cross], [step.cross, step.same]]
        other[pair, pair] = [[step.forward, 0.0], [0.0, step.other]]
    return same, other


class _Step(NamedTuple):
    """Response and fresh noise of one hidden layer."""

    slope: float
    turn: float  # response of the backward overlap to the forward one of the layer before
    forward: float
    same: float
    other: float
    cross: float


def _unit(index: int, depth: int) -> Floats:
    unit = np.zeros(2 * depth - 1)
    unit[index] = 1.0
    return unit
