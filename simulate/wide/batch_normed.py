"""Wide networks with batch-normalised hidden layers: signals, and the Gram matrix of their gradients.

In every hidden layer the pre-activations of a unit, u_i(t) at the samples t = 1..T, are replaced by
(u_i(t) - mu_i) / sigma_i before the activation is applied, where mu_i and sigma_i are their mean and standard
deviation over all T samples (divided by T, nothing added to sigma_i, no trainable scale or shift). The last layer
stays linear. Layers and shapes are those of `simulate.wide.signals`.

Samples are coupled: output s depends on the pre-activations of all samples t, and its derivative by them has one
more axis. With v the derivative by the normalised pre-activations z = (u - mu) / sigma, the derivative by u is

    (v - mean_t v - z mean_t(z v)) / sigma,

so the derivatives by the biases of hidden layers, sums of it over t, vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from simulate.activations import ActivationLike, Nonlinearity, by_layer
from simulate.lanczos.rows import identity
from simulate.objectives.batches import cuts
from simulate.wide.signals import Network, WideNetwork, forward

_CONSTANT = 1e-12
"""Deviation over root mean square below which the pre-activations of a unit differ by rounding only."""


_ROWS = 64
"""Rows of a Gram matrix that are added up at once: intermediates stay near the cache."""


class BatchNormedSignals(NamedTuple):
    """Signals of networks with normalised hidden layers.

    Attributes
    ----------
    normalised
        Normalised pre-activations of the L - 1 hidden layers, (n, T, M_l).
    deviations
        Standard deviations by which they were divided, (n, 1, M_l).
    activations
        h^0..h^{L-1}, inputs first, (n, T, M_l).
    outputs
        Outputs, (n, T, C).
    """

    normalised: tuple[Tensor, ...]
    deviations: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]
    outputs: Tensor


def batch_normed_signals(network: Network, activation: ActivationLike) -> BatchNormedSignals:
    """Return the signals of networks with normalised hidden layers.

    Parameters
    ----------
    network
        Weights, biases and at least two inputs, stacked over n replicates.
    activation
        A name, a pair of function and derivative, or one of these for each hidden layer.

    Raises
    ------
    ValueError
        If the pre-activations of a unit are the same at all samples, or the activation is unknown.

    Examples
    --------
    >>> x = torch.tensor([[[1.0], [2.0], [3.0]]])
    >>> weights, biases = (torch.ones(1, 1, 1), torch.ones(1, 1, 1)), (torch.zeros(1, 1), torch.zeros(1, 1))
    >>> batch_normed_signals(WideNetwork(weights=weights, biases=biases, inputs=x), "relu").outputs.flatten()
    tensor([0.0000, 0.0000, 1.2247])
    """
    deviations = list[Tensor]()

    def normalise(u: Tensor, layer: int) -> Tensor:
        if layer == network.depth:
            return u
        centred = u - u.mean(1, keepdim=True)
        deviations.append(centred.square().mean(1, keepdim=True).sqrt())
        if not bool((deviations[-1] > _CONSTANT * u.square().mean(1, keepdim=True).sqrt()).all()):
            raise ValueError(
                "network must have different pre-activations at different samples in every unit, got the same at all"
            )
        return centred / deviations[-1]

    (*normalised, outputs), activations = forward(network, activation, normalise)
    return BatchNormedSignals(tuple(normalised), tuple(deviations), activations, outputs)


def measured_moments(signals: BatchNormedSignals) -> dict[str, Tensor]:
    """Return the second moments of the activations of the hidden layers.

    The mean over the units of h_i(s)^2 (``q_hat_t``) and of h_i(s) h_i(t) (``q_hat_st``), averaged over the
    samples s, or over the pairs s != t of samples.

    Returns
    -------
    Both arrays under their names, each of shape (n, L - 1).
    """
    pairs = [_moments(h) for h in signals.activations[1:]]
    empty = signals.outputs.new_zeros(len(signals.outputs), 0)
    own, shared = (torch.stack(column, 1) for column in zip(*pairs, strict=True)) if pairs else (empty, empty)
    return {"q_hat_t": own, "q_hat_st": shared}


def last_layer_rayleigh(signals: BatchNormedSignals) -> Tensor:
    """Return the Rayleigh quotient 1^T h h^T 1 / T^2 of the block of W^L at equal weights of the samples, (n,)."""
    return signals.activations[-1].mean(1).square().sum(1)


def batch_normed_gram(network: WideNetwork, activation: ActivationLike) -> Tensor:
    """Return the Gram matrix J J^T of the gradients of all outputs at all samples, through the normalisation.

    Parameters
    ----------
    network, activation
        As in :func:`batch_normed_signals`.

    Returns
    -------
    Shape (n, C, C, T, T), as in `simulate.wide.fisher_gram`, whose statistics and centring apply. One hidden layer
    takes about 6 (C T)^2 M flops; each further layer 2 C T^2 M (M + T + C T), and memory for C T^2 M numbers.

    Raises
    ------
    ValueError
        As in :func:`batch_normed_signals`.

    Examples
    --------
    Two samples are normalised to -1 and 1 whatever the weights: the gradients below the last layer vanish.

    >>> weights, biases = (torch.ones(1, 1, 1), torch.ones(1, 1, 1)), (torch.zeros(1, 1), torch.zeros(1, 1))
    >>> two = WideNetwork(weights=weights, biases=biases, inputs=torch.tensor([[[1.0], [7.0]]]))
    >>> batch_normed_gram(two, "linear").squeeze().abs().round()
    tensor([[2., 0.],
            [0., 2.]])
    """
    signals = batch_normed_signals(network, activation)
    n, samples, outputs = signals.outputs.shape
    # 1 is the square of the derivative by the bias
    last = _overlap(signals.activations[-1]) + 1.0
    total = identity(outputs, last)[:, None, :, None] * last[:, None, :, None]
    if network.depth > 1:
        total = total + _hidden_layers_gram(network, by_layer(activation, network.depth - 1), signals)
    return total.reshape(n, outputs, samples, outputs, samples).transpose(2, 3)


def _hidden_layers_gram(
    network: WideNetwork, phis: Sequence[Nonlinearity], signals: BatchNormedSignals
) -> Tensor:
    """Return the contribution of the hidden layers, with rows and columns over outputs and samples."""
    steep = [
        phi.derivative(z) / deviation
        for phi, z, deviation in zip(phis, signals.normalised, signals.deviations, strict=True)
    ]
    back = network.weights[-1][:, :, None, :] * steep[-1][:, None]
    total = _diagonal_layer(back, signals.normalised[-1], signals.activations[-2])
    if len(steep) > 1:
        for i, one in enumerate(total):  # one replicate at a time stays in the cache
            tensors = signals.normalised, steep, signals.activations, network.weights
            one += _coupled_layers(back[i], *([tensor[i] for tensor in kind] for kind in tensors))
    return total.unflatten(1, back.shape[1:3]).unflatten(3, back.shape[1:3])


def _diagonal_layer(back: Tensor, z: Tensor, h: Tensor) -> Tensor:
    """Return the Gram matrix of the layer under a linear read-out, from derivatives `back` (n, C, T, M).

    Each unit has one projector. The gradient of output k at sample s by row i is
    back_ki(s) [h(s) - mean h - z_i(s) m_i], with m_i = mean_t z_i(t) h(t).
    """
    centred = h - h.mean(1, keepdim=True)
    slopes = z.mT @ centred / h.shape[1]
    flat = back.flatten(1, 2)
    tilted = (back * z[:, None]).flatten(1, 2)
    along = (back * (centred @ slopes.mT)[:, None]).flatten(1, 2)
    cross = tilted @ along.mT
    overlap = _overlap(centred).repeat(1, back.shape[1], back.shape[1])
    lengths = slopes.square().sum(2)[:, None]
    return (flat @ flat.mT) * overlap - cross - cross.mT + (tilted * lengths) @ tilted.mT


def _coupled_layers(
    back: Tensor, z: Sequence[Tensor], steep: Sequence[Tensor], h: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """Return the Gram matrix of all hidden layers but the last, for one replicate.

    Derivatives by the pre-activations u_i(t) of a layer have the shape (T, C T, M), the sample t first. The part of
    their Gram matrix above the diagonal is added up, some rows at a time.
    """
    delta = _couple_samples(back, z[-1])
    total = back.new_zeros(delta.shape[1], delta.shape[1])
    for layer in reversed(range(len(steep) - 1)):
        delta = _pull_through_normalisation(delta @ weights[layer + 1], z[layer], steep[layer])
        overlap = _overlap(h[layer] - h[layer].mean(0))
        for rows in cuts(len(total), _ROWS):
            part = delta[:, rows]
            mixed = (overlap @ part.flatten(1)).view_as(part)
            total[rows, rows.start :].addbmm_(mixed, delta[:, rows.start :].mT)
    # only the tiles on and above the diagonal were added up
    return total.triu() + total.triu(1).mT


def _couple_samples(back: Tensor, z: Tensor) -> Tensor:
    """Return derivatives of f_k(s) by u_i(t), (T, C T, M), from those by z_i(s) over the deviation, (C, T, M)."""
    outputs, samples, _ = back.shape
    delta = (-back * z / samples).flatten(0, 1) * z[:, None]
    delta -= (back / samples).flatten(0, 1)
    delta.unflatten(1, (outputs, samples)).diagonal(dim1=0, dim2=2).add_(back.permute(0, 2, 1))
    return delta


def _pull_through_normalisation(delta: Tensor, z: Tensor, steep: Tensor) -> Tensor:
    """Turn derivatives by the activations of a layer into derivatives by its pre-activations, in place."""
    delta *= steep[:, None]
    tilt = torch.einsum("trm,tm->rm", delta, z) / len(z)
    delta -= delta.mean(0)
    return delta.addcmul_(z[:, None], tilt, value=-1)


def _moments(h: Tensor) -> tuple[Tensor, Tensor]:
    samples, units = h.shape[1:]
    own, together = h.square().sum((1, 2)), h.sum(1).square().sum(1)
    return own / (samples * units), (together - own) / (samples * (samples - 1) * units)


def _overlap(h: Tensor) -> Tensor:
    return h @ h.mT
