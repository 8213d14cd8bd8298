"""The Gauss-Newton matrix in all coordinates of the parameters, from inner products of logit gradients.

G = mean J' (diag(p) - p p') J has the non-zero eigenvalues of a Gram matrix of its factor. They are right at any
confidence: no small number is a difference of large ones, and none underflows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulate.modules import softmax


def gram_excess(gram: Tensor, logits: Tensor) -> float:
    """Trace over Frobenius norm of G, at least 1.

    Parameters
    ----------
    gram
        Inner products of the logit gradients, (N, K, N, K), up to a common factor, see `simulate.modules.logit_kernel`.
    logits
        (N, K), at the scale and temperature wanted.

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
    both, norm = _weighed(gram, logits)
    return float(both.trace()) / norm


def gram_spectrum(gram: Tensor, logits: Tensor) -> Tensor:
    """Eigenvalues of G over its Frobenius norm, ascending: the NK that need not vanish, of any number of parameters.

    N of them are zero but for rounding, as the entries of a softmax sum to one.

    Parameters
    ----------
    gram, logits
        As for `gram_excess`, which is their sum.

    Raises
    ------
    ValueError
        As `gram_excess`.

    Examples
    --------
    >>> gradients = torch.eye(3, dtype=torch.float64).view(1, 3, 1, 3)
    >>> gram_spectrum(gradients, torch.zeros(1, 3, dtype=torch.float64)).square().round(decimals=12)
    tensor([0.0000, 0.5000, 0.5000], dtype=torch.float64)
    """
    both, norm = _weighed(gram, logits)
    return torch.linalg.eigvalsh(both) / norm


def _weighed(gram: Tensor, logits: Tensor) -> tuple[Tensor, float]:
    """A multiple of the Gram matrix (NK, NK) of the factor of G, and its norm."""
    n, classes = logits.shape
    half = _rows(gram.flatten(2), logits).flatten(0, 1)  # once from the left,
    both = _rows(half.T.reshape(n, classes, -1), logits).flatten(0, 1)  # once from the right
    norm = float(torch.linalg.matrix_norm(both))
    if not norm > 0:
        raise ValueError("gram must have logits that move apart, got none")
    return both, norm


def _rows(jacobian: Tensor, logits: Tensor) -> Tensor:
    return softmax.covariance_factor(logits, softmax.contrasts(jacobian, logits))[0]
