"""Excess of the Gauss-Newton matrix in all coordinates of the parameters, from inner products of logit gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from simulate import _softmax

__all__ = ["gram_excess"]


def gram_excess(gram: Tensor, logits: Tensor) -> float:
    """Trace over Frobenius norm of G = mean J' (diag(p) - p p') J, which has the non-zero eigenvalues of a Gram matrix.

    Right at any confidence: no small number is a difference of large ones, and none underflows.

    Parameters
    ----------
    gram
        Inner products of the logit gradients, (N, K, N, K), up to a common factor, see `simulate.modules.logit_kernel`.
    logits
        (N, K), at the scale and temperature wanted.

    Returns
    -------
    At least 1.

    Raises
    ------
    ValueError
        If the shapes do not fit together, or no logit moves.

    Examples
    --------
    >>> gradients = torch.eye(6, dtype=torch.float64).view(2, 3, 2, 3)
    >>> round(gram_excess(gradients, torch.zeros(2, 3, dtype=torch.float64)), 12)
    2.0
    """
    n, classes = logits.shape
    if gram.shape != (n, classes, n, classes):
        raise ValueError(f"gram must be of shape {(n, classes, n, classes)}, got {tuple(gram.shape)}")
    half = _rows(gram.flatten(2), logits).flatten(0, 1)  # once from the left,
    both = _rows(half.T.reshape(n, classes, -1), logits).flatten(0, 1)  # once from the right
    norm = float(torch.linalg.matrix_norm(both))
    if not norm > 0:
        raise ValueError("gram must have logits that move apart, got none")
    return float(both.trace()) / norm


def _rows(jacobian: Tensor, logits: Tensor) -> Tensor:
    return _softmax.factor(logits, _softmax.contrasts(jacobian, logits))[0]
