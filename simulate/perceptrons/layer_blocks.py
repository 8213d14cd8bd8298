r"""Hessian block of one layer of a bias-free ReLU perceptron, to full relative precision at any scale.

Within a linear piece the logits are linear in each layer by itself, so the block of the H-term within a layer is zero
and the Hessian's own block is that of the G-term. On sample n it is a Kronecker product,

    block = (1/N) sum_n S_n' (diag(p_n) - p_n p_n') S_n (x) h_n h_n',

with S_n (K, out) the derivatives of the logits by the output of the layer and h_n (in,) its input. The block is kept as
its factor, one row f (x) h for each class of each sample, so that a norm takes a Gram matrix of the rows and never an
(out in) x (out in) matrix. Weights of the softmax are kept as logarithms: nothing cancels or underflows, however
confident the network is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from simulate import _checks
from simulate.modules import softmax
from simulate.networks import Weights
from simulate.perceptrons import _relu

_NEGLIGIBLE = 1e-36
"""Share of the largest squared norm, below which rows are left out: far below rounding."""


@dataclass(frozen=True, kw_only=True)
class LayerBlock:
    """Block B = exp(log_scale) sum_r (f_r (x) h_r)(f_r (x) h_r)' of one layer, positive semidefinite.

    Attributes
    ----------
    rows
        f_r, (R, out); the longest product f_r (x) h_r has a length of about one.
    inputs
        h_r, (R, in).
    owners
        The sample of each row, (R,).
    log_scale
        Logarithm of the scale of B.
    """

    rows: Tensor
    inputs: Tensor
    owners: Tensor
    log_scale: float

    def top_direction(self) -> Tensor:
        """Return the eigenvector of the largest eigenvalue as a matrix (out, in) of norm one, of either sign."""
        weights = _top_eigenvector(self._gram())
        direction = self.rows.T @ (weights[:, None] * self.inputs)
        return direction / direction.norm()

    def _gram(self) -> Tensor:
        # the rows of a sample follow each other and share their input
        samples, places = torch.unique_consecutive(self.owners, return_inverse=True)
        inputs = self.inputs[torch.searchsorted(self.owners, samples)]
        return (self.rows @ self.rows.T) * (inputs @ inputs.T)[places[:, None], places]


def layer_block(
    weights: Weights, x: Any, *, layer: int = 0, alpha: float = 1.0, temperature: float = 1.0
) -> LayerBlock:
    """Return the Hessian block of one layer of a bias-free ReLU perceptron whose weights are multiplied by `alpha`.

    The loss is the mean softmax cross-entropy at a temperature; labels do not enter.

    Parameters
    ----------
    weights
        Matrices of shape (out, in), see `mlp_weights`.
    x
        Inputs (N, in).
    layer
        Number of the layer, from 0 at the input.
    alpha, temperature
        Positive; the softmax takes the logits times alpha^L / temperature.

    Raises
    ------
    ValueError
        If shapes disagree, `alpha` or `temperature` is not positive, the scaled logits overflow, or the block is zero.

    Examples
    --------
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> block = layer_block(mlp_weights(rng, (6, 5, 4)), rng.standard_normal((7, 6)), alpha=300.0)
    >>> len(block.rows), block.log_scale < -100
    (1, True)
    """
    weights, x, _ = _relu.prepared(weights, x, np.zeros(np.shape(x)[:1], dtype=np.int64))
    alpha = _checks.positive_number("alpha", alpha)
    temperature = _checks.positive_number("temperature", temperature)
    hidden, masks, logits = _relu.linear_piece(weights, x)
    signals = _relu.logit_signals(weights, masks, logits)[layer]
    for _ in weights:  # products, since the power itself could overflow
        logits = alpha * logits
    logits = _checks.finite_logits(logits / temperature, alpha)
    contrasts = softmax.contrasts(signals, logits)
    moved = contrasts.any(2) & hidden[layer].any(1, keepdim=True)
    if not moved.any():
        raise ValueError("weights of this layer must affect the logits at some input, got a block of zero")
    rows, log_scale = softmax.covariance_factor(logits, contrasts, moved)
    power = 2 * ((len(weights) - 1) * math.log(alpha) - math.log(temperature))
    squares = rows.square().sum(2) * hidden[layer].square().sum(1, keepdim=True)
    largest = squares.max()
    places, classes = (squares > _NEGLIGIBLE * largest).nonzero(as_tuple=True)
    return LayerBlock(
        # the size is in log_scale, so that squares of the rows are of order one
        rows=rows[places, classes] / largest.sqrt(),
        inputs=hidden[layer][places],
        owners=places,
        log_scale=log_scale.item() + power - math.log(len(x)) + math.log(largest.item()),
    )


def _top_eigenvector(matrix: Tensor) -> Tensor:
    """Return the eigenvector of the largest eigenvalue."""
    if matrix.device.type != "cpu":
        return torch.linalg.eigh(matrix).eigenvectors[:, -1]
    last = len(matrix) - 1  # scipy finds one alone: a quarter of the time of all at 600 rows
    _, vectors = scipy.linalg.eigh(matrix.numpy(force=True), subset_by_index=(last, last))
    return torch.from_numpy(vectors[:, 0])
