"""Random networks whose layers are all normalised over the units of each sample, the read-out included.

u^l = W^l h^{l-1} + b^l is centred and divided by its standard deviation over the M_l units of one sample
(biased, root of the mean square), h^l = phi of that for l < L, and the outputs are the normalised u^L. With
`eps` this constant is added to the variance before the root, as libraries do. Without it, if all units of a sample
agree, the normalised signal and its derivatives are set to 0, their values for a single unit.

Shapes lead with the replicates ``n``, then samples ``T``, then units ``M_l``. A Gram is as in
`simulate.wide.fisher_gram`, whose statistics it shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from simulate.activations import ActivationLike
from simulate.wide.fisher_gram import layered_gram, plain_overlap
from simulate.wide.signals import Network, backward, forward


class LayerNormedSignals(NamedTuple):
    """Normalised pre-activations of layers 1..L (n, T, M_l), their factors 1/sigma (n, T), and activations."""

    normalised: tuple[Tensor, ...]
    inverses: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]  # of layers 0..L-1


def layer_normed_signals(
    network: Network, activation: ActivationLike, *, eps: float = 0.0
) -> LayerNormedSignals:
    """Return the signals of every layer; the outputs are ``normalised[-1]``.

    Parameters
    ----------
    network
        Weights, biases and inputs, stacked over n replicates.
    activation
        A name, a pair of function and derivative, or one of these for each hidden layer.
    eps
        Constant that is added to the variances, not negative.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.

    Examples
    --------
    >>> from simulate.wide.signals import WideNetwork
    >>> x = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    >>> one = WideNetwork(weights=(torch.eye(2)[None],), biases=(torch.zeros(1, 2),), inputs=x)
    >>> found = layer_normed_signals(one, "relu")
    >>> found.normalised[-1].tolist(), found.inverses[-1].tolist()
    ([[[-1.0, 1.0], [1.0, -1.0]]], [[2.0, 2.0]])
    """
    inverses = list[Tensor]()

    def normalise(u: Tensor, _: int) -> Tensor:
        centred = u - u.mean(-1, keepdim=True)
        variance = centred.square().mean(-1) + eps
        # where all units agree nothing is left: 0 as for a single unit, not infinity
        inverses.append(torch.where(variance > 0, variance.rsqrt(), 0.0))
        return centred * inverses[-1][..., None]

    normalised, activations = forward(network, activation, normalise)
    return LayerNormedSignals(normalised, tuple(inverses), activations)


def layer_normed_derivatives(
    network: Network, activation: ActivationLike, signals: LayerNormedSignals
) -> Iterator[Tensor]:
    """Yield the derivatives of every normalised output by the pre-activations u^l, from l = L down to 1.

    Each of shape (n, C, T, M_l). A normalisation multiplies the derivatives v by its units with
    (I - 1 1^T / M_l - f f^T / M_l) / sigma, whatever the constant in sigma.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """

    def through(v: Tensor, layer: int) -> Tensor:
        f, inverse = signals.normalised[layer - 1][:, None], signals.inverses[layer - 1]
        centred, along = v - v.mean(-1, keepdim=True), (f * v).mean(-1, keepdim=True)
        return centred.addcmul(f, along, value=-1).mul_(inverse[:, None, :, None])

    return backward(network, activation, signals.normalised, through)


def layer_normed_gram(
    network: Network,
    activation: ActivationLike,
    *,
    eps: float = 0.0,
    signals: LayerNormedSignals | None = None,
) -> Tensor:
    """Return K = J J^T of the normalised outputs, layer by layer, without J.

    Parameters
    ----------
    network, activation, eps
        As in :func:`layer_normed_signals`.
    signals
        Its result if known, which saves the pass forward; `eps` is then ignored.

    Returns
    -------
    Shape (n, C, C, T, T).

    Raises
    ------
    ValueError
        As in :func:`layer_normed_signals`.

    Examples
    --------
    Two normalised outputs are +1 and -1, whatever the parameters.

    >>> from simulate.monte_carlo import Block, fixture
    >>> from simulate.wide.signals import wide_network
    >>> block = Block((fixture(0, "a"),))
    >>> network = wide_network(block, widths=(5, 7, 2), samples=4, weight_variance=2.0, bias_variance=0.1)
    >>> bool(layer_normed_gram(network, "relu").abs().max() < 1e-20)
    True
    """
    signals = signals or layer_normed_signals(network, activation, eps=eps)
    deltas = layer_normed_derivatives(network, activation, signals)
    return layered_gram(signals.activations[::-1], deltas, plain_overlap(True), network.outputs)


def etas(signals: LayerNormedSignals) -> dict[str, Tensor]:
    """Return averages over the samples of one network of powers of 1/sigma.

    ``eta1`` and ``eta2`` average 1/sigma^2 and its square. ``eta3`` is the root of the mean over pairs of samples of
    1/(sigma(s) sigma(t))^2 times the squared overlap (f(s) . f(t) / C)^2 of the outputs. ``overlap`` sums
    1/(sigma(s) sigma(t)) times the trace C - 3 + (f(s) . f(t) / C)^2 of the projectors over pairs of different samples,
    divided by T^2.

    Returns
    -------
    ``eta1``, ``eta2``, ``eta3`` and ``overlap``, each of shape (n,).
    """
    outputs, inverse = signals.normalised[-1], signals.inverses[-1]
    samples, classes = outputs.shape[1:]
    squares = (outputs @ outputs.mT / classes).square()
    precision = inverse.square()
    weighted = squares * precision[:, :, None] * precision[:, None, :]
    traces = (classes - 3 + squares) * inverse[:, :, None] * inverse[:, None, :]
    pairs = traces.sum((1, 2)) - traces.diagonal(dim1=1, dim2=2).sum(1)
    return {
        "eta1": precision.mean(1),
        "eta2": precision.square().mean(1),
        "eta3": weighted.sum((1, 2)).sqrt() / samples,
        "overlap": pairs / samples**2,
    }
