"""Wide fully connected networks with random weights: forward signals, backward signals, and their moments.

Layers are counted as in u^l = W^l h^{l-1} + b^l, h^0 the input, h^l = phi(u^l) for l < L, and a linear
read-out: the network's outputs are u^L. Shapes lead with the replicates ``n``, then samples ``T``, then units
``M_l``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks
from simulate.activations import ActivationLike, by_layer
from simulate.lanczos.rows import identity
from simulate.monte_carlo import Block
from simulate.wide.few_signals import LazyNetwork

OfLayer = Callable[[Tensor, int], Tensor]
"""Function of signals and of the number of their layer, counted from 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WideNetwork:
    """Weights (n, M_l, M_{l-1}) and biases (n, M_l) for l = 1..L, and inputs (n, T, M_0)."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    inputs: Tensor

    @property
    def depth(self) -> int:
        """Number of weight matrices, L."""
        return len(self.weights)

    @property
    def outputs(self) -> int:
        """Number of output units, C."""
        return self.weights[-1].shape[1]

    def to(self, target: torch.dtype | torch.device | str) -> WideNetwork:
        """Return the network in another precision, or on another device."""
        return WideNetwork(
            weights=tuple(weight.to(target) for weight in self.weights),
            biases=tuple(bias.to(target) for bias in self.biases),
            inputs=self.inputs.to(target),
        )

    def up(self, h: Tensor, layer: int) -> Tensor:
        """Return u^l for h^{l-1} of shape (n, T, M_{l-1})."""
        return torch.baddbmm(self.biases[layer - 1][:, None, :], h, self.weights[layer - 1].mT)

    def back(self, delta: Tensor, layer: int) -> Tensor:
        """Return derivatives by h^{l-1} (n, rows, M_{l-1}) from those by u^l."""
        return delta @ self.weights[layer - 1]


Network = WideNetwork | LazyNetwork
"""A network with all its weights, or one that draws what signals meet."""


class Signals(NamedTuple):
    """Pre-activations u^1..u^L and activations h^0..h^{L-1}, each of shape (n, T, units)."""

    preactivations: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]


def wide_network(
    block: Block, *, widths: Sequence[int], samples: int, weight_variance: float, bias_variance: float
) -> WideNetwork:
    """Draw networks and inputs: W ~ N(0, weight_variance / M_{l-1}), b ~ N(0, bias_variance), x ~ N(0, 1).

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    widths
        (M_0, ..., M_L), inputs first, outputs last.
    samples
        Number of inputs T.
    weight_variance, bias_variance
        Variances, not negative.

    Raises
    ------
    ValueError
        If there are fewer than two widths, one is not positive, or a variance is negative.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> block = Block((fixture(0, "a"), fixture(0, "b")))
    >>> network = wide_network(block, widths=(5, 7, 3), samples=4, weight_variance=2.0, bias_variance=0.1)
    >>> [tuple(w.shape) for w in network.weights], tuple(network.inputs.shape)
    ([(2, 7, 5), (2, 3, 7)], (2, 4, 5))
    """
    weights = tuple(
        block.normal(wide, narrow).mul_(math.sqrt(weight_variance / narrow))
        for narrow, wide in _checks.layer_sizes(widths)
    )
    biases = tuple(block.normal(units).mul_(math.sqrt(bias_variance)) for units in widths[1:])
    return WideNetwork(weights=weights, biases=biases, inputs=block.normal(samples, widths[0]))


def forward(network: Network, activation: ActivationLike, normalise: OfLayer | None = None) -> Signals:
    """Return pre-activations u^1..u^L and activations h^0..h^{L-1}; the outputs are ``preactivations[-1]``.

    `normalise`, if given, replaces the u^l of each layer l, counted from 1.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """
    phis = by_layer(activation, network.depth - 1)
    h = network.inputs
    preactivations, activations = [], [h]
    for layer in range(1, network.depth + 1):
        u = network.up(h, layer)
        u = normalise(u, layer) if normalise else u
        preactivations.append(u)
        if layer < network.depth:
            h = phis[layer - 1].function(u)
            activations.append(h)
    return Signals(tuple(preactivations), tuple(activations))


def backward(
    network: Network,
    activation: ActivationLike,
    preactivations: Sequence[Tensor],
    through: OfLayer | None = None,
) -> Iterator[Tensor]:
    """Yield the derivatives of every output by the pre-activations, delta^l_k = d f_k / d u^l, from l = L down to 1.

    Each has the shape (n, C, T, M_l). They come one at a time, so that only one layer need be held. If `forward` has
    normalised, `through` takes them back through the normalisation of each layer.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """
    phis = by_layer(activation, network.depth - 1)
    outputs = preactivations[-1]
    n, samples, classes = outputs.shape
    # one row stands for all samples while their derivatives are the same
    delta = identity(classes, outputs)[None, :, None, :].expand(n, classes, 1, classes)
    for layer in range(network.depth, 0, -1):
        if layer < network.depth:
            slope = phis[layer - 1].derivative(preactivations[layer - 1])
            delta = network.back(delta.flatten(1, 2), layer + 1).unflatten(1, (classes, -1)) * slope[:, None]
        delta = through(delta, layer) if through else delta
        yield delta.expand(-1, -1, samples, -1)


def measured_order_parameters(network: Network, activation: ActivationLike) -> dict[str, Tensor]:
    """Return second moments of the signals of a network, layer by layer.

    Forward, over the units of a layer: the mean of h_i(s)^2 (``q_hat_t``) and of h_i(s) h_i(t)
    (``q_hat_st``), for l = 0..L-1. Backward, the sum over the units of delta_i(s)^2 (``q_tilde_t``) and of
    delta_i(s) delta_i(t) (``q_tilde_st``), for l = 1..L, averaged over the outputs. All are averaged over the
    samples s, or over the ordered pairs s != t of samples.

    Returns
    -------
    The four arrays under their names, each of shape (n, L).

    Raises
    ------
    ValueError
        If the activation is unknown.
    """
    signals = forward(network, activation)
    hats = [_moments(h[:, None]) / h.shape[-1] for h in signals.activations]
    tildes = [_moments(delta) for delta in backward(network, activation, signals.preactivations)][::-1]
    hat, tilde = torch.stack(hats, -1), torch.stack(tildes, -1)
    return {"q_hat_t": hat[0], "q_hat_st": hat[1], "q_tilde_t": tilde[0], "q_tilde_st": tilde[1]}


def _moments(signal: Tensor) -> Tensor:
    # (n, outputs, T, units) -> (2, n): sums over units of x(s)^2, and of x(s) x(t) by the square of a sum
    samples = signal.shape[2]
    own = signal.square().sum((2, 3)).mean(1)
    together = signal.sum(2).square().sum(2).mean(1)
    return torch.stack([own / samples, (together - own) / (samples * (samples - 1))])
