"""Overlap of the top Fisher eigenvectors with the mean gradients, without vectors as long as the parameters.

The Fisher matrix J^T J / T has the eigenvectors J^T a_j / |J^T a_j|, a_j those of the Gram matrix K = J J^T; the mean
gradient of output k over the samples is J^T e_k with e_k = 1 / T at its samples. Their inner products are in K.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from simulate.wide.fisher_gram import as_matrices

_SMALLEST = 1e-12
"""Reciprocal condition of the Gram matrix of the mean gradients, below which they count as dependent."""


class Span(NamedTuple):
    """Top eigenvalues, and overlap of their eigenvectors with the C mean gradients."""

    eigenvalues: Tensor
    """C largest eigenvalues of the Fisher matrix, ascending: (n, C)."""
    overlap: Tensor
    """Tr P_v P_g / C for the projectors on the two spans, 1 if they coincide: (n,)."""


def top_span(gram: Tensor) -> Span:
    """Compare the span of the C top eigenvectors of the Fisher matrix with that of the mean gradients.

    Parameters
    ----------
    gram
        K as `simulate.wide.fisher_gram` forms it, (n, C, C, T, T).

    Raises
    ------
    ValueError
        If the mean gradients are linearly dependent, as for outputs minus their mean.

    Examples
    --------
    Two outputs with one sample: all gradients are mean gradients.

    >>> gram = torch.tensor([[3.0, 1.0], [1.0, 2.0]]).double().reshape(1, 2, 2, 1, 1)
    >>> round(top_span(gram).overlap.item(), 12)
    1.0
    """
    n, outputs, _, samples, _ = gram.shape
    values, vectors = torch.linalg.eigh(as_matrices(gram))
    values, vectors = values[:, -outputs:], vectors[:, :, -outputs:]
    norms = gram.mean((-2, -1))
    sizes = torch.linalg.eigvalsh(norms)
    if not bool((sizes[:, 0] > _SMALLEST * sizes[:, -1]).all()):
        raise ValueError("gram must have linearly independent mean gradients of all outputs")
    # (J^T a_j / sqrt(value_j))' J^T e_k = sqrt(value_j) a_j' e_k
    inner = values.sqrt()[:, :, None] * vectors.mT.reshape(n, outputs, outputs, samples).mean(3)
    shared = (inner @ torch.linalg.inv(norms) * inner).sum((1, 2))
    return Span(values / samples, shared / outputs)
