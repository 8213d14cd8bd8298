"""Excess of the Gauss-Newton matrix in all parameters, from inner products of logit gradients.

G = mean J' (diag(p) - p p') J shares its non-zero eigenvalues with a Gram matrix of its factor. The excess is accurate
for any confidence: no small number is a difference of large ones, and none underflows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulate.modules import softmax


def gram_excess(gram: Tensor, logits: Tensor) -> float:
    """Return trace over Frobenius norm of G, at least 1.

    Parameters
    ----------
    gram
        Inner products of the logit gradients, (N, K, N, K), up to a common factor, see `simulate.modules.logit_kernel`.
    logits
        Logits (N, K) at the scale and temperature of interest.

    Raises
    ------
    ValueError
        If no logit moves.

    Examples
    --------
    >>> gradients = torch.eye(6, dtype=torch.float64).view(2, 3, 2, 3)
    >>> round(gram_excess(gradients, torch.zeros(2, 3, dtype=torch.float64)), 12)
    2.0
    """
    n, classes = logits.shape
    half = _factor_rows(gram.flatten(2), logits).flatten(0, 1)  # once from the left,
    both = _factor_rows(half.T.reshape(n, classes, -1), logits).flatten(0, 1)  # once from the right
    norm = float(torch.linalg.matrix_norm(both))
    if not norm > 0:
        raise ValueError("gram must be of logits with different gradients, got equal ones")
    return float(both.trace()) / norm


def _factor_rows(jacobian: Tensor, logits: Tensor) -> Tensor:
    return softmax.covariance_factor(logits, softmax.contrasts(jacobian, logits))[0]
