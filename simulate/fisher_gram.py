"""All Fisher eigenvalues of a fully connected network through the Gram matrix of its gradients.

With J the Jacobian of the C outputs at T samples by all weights and biases, the Fisher information J^T J / T
and K / T, K = J J^T, share their non-zero eigenvalues. The gradient by W^l is an outer product of delta^l and
h^{l-1} and the one by b^l is delta^l, so K is a sum over layers of products of two inner products: neither J
nor any matrix of the size of the parameters is formed.

A Gram is a tensor of shape (n, C, C, T, T), replicates first: ``gram[:, k, m, s, t]`` is the inner product of
the gradients of output k at sample s and of output m at sample t. Every statistic below is one of the Fisher
matrix, that is, of K / T.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulate import _memory
from simulate.signals import ActivationLike, WideNetwork, backward, forward

__all__ = ["centred", "eigenvalues", "gram", "rayleigh", "trace"]


def gram(network: WideNetwork, activation: ActivationLike, *, biases: bool = True) -> Tensor:
    """K = J J^T, layer by layer, without J.

    Parameters
    ----------
    network
        Weights, biases and inputs, stacked over n replicates.
    activation
        A name, a pair of function and derivative, or one of these for each hidden layer.
    biases
        Whether the biases belong to the parameters.

    Returns
    -------
    Shape (n, C, C, T, T).

    Raises
    ------
    ValueError
        If the activation is unknown, or the memory needed exceeds what is available.

    Examples
    --------
    A linear read-out of one layer: the Gram of the inputs, plus one for the bias.

    >>> x = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    >>> one = WideNetwork(weights=(torch.ones(1, 1, 2),), biases=(torch.zeros(1, 1),), inputs=x)
    >>> gram(one, "linear").squeeze()
    tensor([[26.,  4.],
            [ 4.,  2.]])
    """
    _require_memory(network)
    signals = forward(network, activation)
    n, samples = network.inputs.shape[:2]
    outputs = network.outputs
    total = network.inputs.new_zeros(n, outputs, samples, outputs, samples)
    for h, delta in zip(reversed(signals.activations), backward(network, activation, signals), strict=True):
        flat = delta.reshape(n, outputs * samples, -1)
        overlap = h @ h.mT + float(biases)
        total += (flat @ flat.mT).reshape(total.shape).mul_(overlap[:, None, :, None, :])
    return total.transpose(2, 3)


def trace(gram: Tensor) -> Tensor:
    """Trace of the Fisher matrix, shape (n,)."""
    return gram.diagonal(dim1=1, dim2=2).diagonal(dim1=1, dim2=2).sum((1, 2)) / gram.shape[-1]


def rayleigh(gram: Tensor) -> Tensor:
    """Mean over the outputs k of 1^T K_kk 1 / T^2, the Rayleigh quotient at equal weights; shape (n,)."""
    return gram.diagonal(dim1=1, dim2=2).sum((1, 2)).mean(1) / gram.shape[-1] ** 2


def centred(gram: Tensor) -> Tensor:
    """The Gram of gradients less their mean over the samples, H K_km H with H = I - 1 1^T / T: same shape."""
    half = gram - gram.mean(-1, keepdim=True)
    return half - half.mean(-2, keepdim=True)


def eigenvalues(gram: Tensor) -> Tensor:
    """The C T largest eigenvalues of the Fisher matrix (the others are 0), ascending, shape (n, C T)."""
    n, outputs, _, samples, _ = gram.shape
    size = outputs * samples
    return torch.linalg.eigvalsh(gram.transpose(2, 3).reshape(n, size, size)) / samples


def _require_memory(network: WideNetwork) -> None:
    n, samples, _ = network.inputs.shape
    what = f"the Gram matrices of {n} replicates, {network.outputs} outputs and {samples} samples"
    advice = "use fewer samples or outputs"
    _memory.require("network", _bytes_needed(network), what, device=network.inputs.device, advice=advice)


def _bytes_needed(network: WideNetwork) -> int:
    # at the peak: the sum and one layer's term, two layers' deltas and one product between them, all signals
    n, samples, inputs = network.inputs.shape
    units = [inputs, *(weight.shape[1] for weight in network.weights)]
    grams = 2 * (network.outputs * samples) ** 2
    deltas = 3 * network.outputs * samples * max(units)
    return n * (grams + deltas + 2 * samples * sum(units)) * network.inputs.element_size()
