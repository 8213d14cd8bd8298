r"""Exact norms of the loss Hessian of a bias-free ReLU perceptron in all P coordinates, without a P x P matrix.

Hessian, G-term and H-term as in `simulate.perceptrons.curvature`. The G-term shares its non-zero eigenvalues with an
NK x NK Gram matrix. The block of layers l < m of the H-term is a mean of N products of three small arrays, so
its norm needs N x N Gram matrices only: with 2,720 weights this takes 1/300 of the time of the dense matrices of
`simulate.operators`. For eigenvalues of the Hessian see `simulate.eigenvalues`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulate import _checks
from simulate.modules import softmax
from simulate.networks import Weights
from simulate.perceptrons import _relu


@dataclass(frozen=True, kw_only=True)
class Norms:
    """Exact traces and Frobenius norms of the Hessian and its terms in all P coordinates.

    `excess_g` is trace over norm of the G-term, right even where both underflow; `inner` is <G, Ht>_F.
    """

    trace_g: float
    norm_g: float
    excess_g: float
    norm_h_term: float
    inner: float

    @property
    def trace_hessian(self) -> float:
        """Trace of H; the H-term has no entry within a layer, hence no diagonal."""
        return self.trace_g

    @property
    def norm_hessian(self) -> float:
        """Frobenius norm of H."""
        # where both terms cancel, rounding may leave less than zero
        return math.sqrt(max(self.norm_g**2 + 2 * self.inner + self.norm_h_term**2, 0.0))

    @property
    def excess_hessian(self) -> float:
        """Trace over Frobenius norm of H."""
        return self.trace_hessian / self.norm_hessian


def norms(weights: Weights, x: Any, labels: Any, alpha: float = 1.0, temperature: float = 1.0) -> Norms:
    """Return exact norms of the loss Hessian of a bias-free ReLU perceptron of any depth, without a P x P matrix.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, `alpha` or `temperature` is not positive, or G is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> found = norms(mlp_weights(rng, (6, 5, 4)), rng.standard_normal((7, 6)), np.arange(7) % 4)
    >>> found.trace_hessian / found.norm_hessian == found.excess_hessian
    True
    """
    net = _FullMlp(weights, x, labels, alpha, temperature)
    gram, scale = net.g_gram(), math.exp(net.log_scale)
    trace, norm = gram.trace().item(), torch.linalg.matrix_norm(gram).item()
    if norm == 0:
        raise ValueError("weights must affect the logits at some input, got a G-term of zero")
    return Norms(
        trace_g=scale * trace,
        norm_g=scale * norm,
        excess_g=trace / norm,
        norm_h_term=net.h_term_norm(),
        inner=scale * net.inner_product(),
    )


class _FullMlp:
    """Forward pass, backward signals and softmax factors of a scaled network; G is (1/N) sum f f' over rows f.

    Row (n, k) of layer l of the factor of G is the outer product of `rows[l][n, k]` and `hidden[l][n]`; its
    square carries exp(-log_scale).
    """

    def __init__(self, weights: Weights, x: Any, labels: Any, alpha: float, temperature: float) -> None:
        weights, x, labels = _relu.prepared(weights, x, labels)
        alpha = _checks.positive_number("alpha", alpha)
        temperature = _checks.positive_number("temperature", temperature)
        self.weights = tuple(alpha * weight for weight in weights)
        self.hidden, self.masks, logits = _relu.linear_piece(self.weights, x)
        logits = _checks.finite_logits(logits / temperature, alpha)
        self.samples = len(x)
        signals = [signal / temperature for signal in _relu.logit_signals(self.weights, self.masks, logits)]
        residuals = softmax.residuals(logits, labels)
        self.errors = [(residuals[:, None] @ signal).squeeze(1) for signal in signals]
        moved = self.hidden[-1].any(-1, keepdim=True)  # by the last layer, and through it by all below
        factors = [softmax.covariance_factor(logits, softmax.contrasts(s, logits), moved) for s in signals]
        # `moved` is common to all layers, hence the scale too
        self.rows, self.log_scale = [rows for rows, _ in factors], float(factors[0][1])

    def g_gram(self) -> Tensor:
        """Return the (NK, NK) matrix with the non-zero eigenvalues of exp(-log_scale) G."""
        return _products(self.rows, self.hidden).flatten(2).flatten(0, 1).div_(self.samples)

    def h_term_norm(self) -> float:
        """Return |Ht|_F, from the blocks below the diagonal, each by three N x N Gram matrices."""
        square = sum(
            (_gram(self.errors[upper]) * _gram(transport.flatten(1)) * _gram(self.hidden[lower])).sum()
            for upper in range(1, len(self.weights))
            for lower, transport in self._transports(upper)
        )
        # twice: the blocks above the diagonal are the transposes
        return math.sqrt(2 * max(float(square), 0.0)) / self.samples

    def inner_product(self) -> float:
        """Return exp(-log_scale) <G, Ht>_F, the sum of f' Ht f over the rows f of the factor of G."""
        total = 0.0
        for upper in range(1, len(self.weights)):
            reach = torch.einsum("nkc,mc->nmk", self.rows[upper], self.errors[upper])
            back = self.hidden[upper][:, None, :]
            for lower in reversed(range(upper)):
                # (n, m, c): the input of layer `upper` on sample n, sent back on the linear piece of sample m
                back = (back if lower == upper - 1 else back @ self.weights[lower + 1]) * self.masks[lower]
                middle = torch.einsum("nmc,nkc->nmk", back, self.rows[lower])
                total += float((reach * middle).sum(-1).mul(_gram(self.hidden[lower])).sum())
        return 2 * total / self.samples**2

    def _transports(self, upper: int) -> list[tuple[int, Tensor]]:
        """Return the derivatives of the input of layer `upper` by the pre-activations of each layer below, per sample.

        The derivative by the nearest layer is diagonal: only its diagonal (N, width) is kept, with the same inner
        products.
        """
        transports = [(upper - 1, self.masks[upper - 1])]
        if upper == 1:  # the widest layer, with nothing below it: do not build diagonal matrices
            return transports
        matrix = torch.diag_embed(self.masks[upper - 1])
        for lower in reversed(range(upper - 1)):
            matrix = (matrix @ self.weights[lower + 1]) * self.masks[lower][:, None, :]
            transports.append((lower, matrix))
        return transports


def logit_products(weights: Weights, x: Any) -> tuple[Tensor, Tensor]:
    """Return logits (N, K) of a bias-free ReLU perceptron and inner products of their gradients, (N, K, N, K).

    LeNet-300-100 takes a quarter of the time of `simulate.modules.logit_kernel`, which serves any network.

    Raises
    ------
    ValueError
        If shapes disagree.
    """
    weights, x, _ = _relu.prepared(weights, x, [0] * len(x))
    hidden, masks, logits = _relu.linear_piece(weights, x)
    return logits, _products(_relu.logit_signals(weights, masks, logits), hidden)


def _products(signals: list[Tensor], hidden: list[Tensor]) -> Tensor:
    """Return inner products (N, K, N, K) of rows, each the outer products of a signal and an input of its layer."""
    size, classes, _ = signals[0].shape
    total = signals[0].new_zeros(size, classes, size, classes)
    for signal, below in zip(signals, hidden, strict=True):
        flat = signal.flatten(0, 1)
        total += (flat @ flat.T).view_as(total).mul_(_gram(below)[:, None, :, None])
    return total


def _gram(rows: Tensor) -> Tensor:
    return rows @ rows.T
