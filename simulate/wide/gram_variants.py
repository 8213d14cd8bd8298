"""Gram matrices of wide networks in the neural tangent parameterisation, and under the cross-entropy.

The neural tangent parameterisation has standard normal parameters w and beta with W = sqrt(weight_variance / M_{l-1}) w
and b = sqrt(bias_variance) beta: the network is the same, its gradients are scaled layer by layer. The Fisher matrix
of the cross-entropy has diag(g) - g g' between the two Jacobians, with g the softmax of the outputs; it is the Gram of
the gradients of 2 sqrt(g).

Grams have the shapes of `simulate.wide.fisher_gram`, (n, C, C, T, T), and its statistics apply.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulate.wide.fisher_gram import Overlap


def tangent_overlap(*, weight_variance: float, bias_variance: float) -> Overlap:
    """Return the inner products of derivatives of pre-activations by the parameters w and beta of their layer.

    Examples
    --------
    >>> tangent_overlap(weight_variance=2.0, bias_variance=0.5)(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]]))
    tensor([[3.5000]])
    """
    return lambda one, other: (weight_variance / one.shape[-1]) * (one @ other.mT) + bias_variance


def cross_entropy_gram(gram: Tensor, logits: Tensor) -> Tensor:
    """Return B^T K B with B B^T = diag(g) - g g^T at each sample: the Gram of the gradients of 2 sqrt(g).

    B = diag(sqrt(g)) (1 - sqrt(g) sqrt(g)^T) needs no decomposition. T times the Fisher matrix of the
    cross-entropy has the non-zero eigenvalues of the result.

    Parameters
    ----------
    gram
        Gram of the outputs, (n, C, C, T, T).
    logits
        The outputs, (n, T, C).

    Returns
    -------
    Shape (n, C, C, T, T).

    Examples
    --------
    >>> equal = cross_entropy_gram(torch.eye(2).reshape(1, 2, 2, 1, 1), torch.zeros(1, 1, 2))
    >>> equal.squeeze()
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    shares = torch.softmax(logits, -1)
    roots = shares.sqrt()
    # a root in closed form: the roots of probabilities are a unit vector, so 1 - r r' is a projection
    factor = torch.diag_embed(roots) - shares[..., :, None] * roots[..., None, :]
    return torch.einsum("nsjk,njmst,ntmi->nkist", factor, gram, factor)
