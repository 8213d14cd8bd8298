"""Curvature of a homogeneous network at every scale of its weights, from derivatives taken once.

Within a linear piece the logits are linear in each layer, so that a positive factor alpha on all weights multiplies
them by alpha^L, their first derivatives by alpha^(L - 1) and their second ones by alpha^(L - 2).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulate import _checks
from simulate.modules import softmax


class Terms(NamedTuple):
    """The two terms of the Hessian, G-term and H-term, each (..., d, d)."""

    g_term: Tensor
    h_term: Tensor

    @property
    def hessian(self) -> Tensor:
        """H, the sum of both terms."""
        return self.g_term + self.h_term


class Homogeneous:
    """Both terms of the Hessian of a homogeneous network seen through a frame, at any scale and temperature.

    Attributes
    ----------
    logits
        (N, K), at the weights given.
    labels
        (N,).
    jacobian
        (N, K, d), derivative of the logits in the coordinates of the frame.
    depth
        Degree L of homogeneity.
    """

    def __init__(
        self, logits: Tensor, labels: Tensor, jacobian: Tensor, half: Callable[[], Tensor], depth: int
    ) -> None:
        self.logits, self.labels, self.jacobian, self.depth = logits, labels, jacobian, depth
        # one entry per ordered pair of layers; the second derivative is this plus its transpose
        self._half = functools.cache(half)
        self._contrasts = softmax.contrasts(jacobian, logits)

    @property
    def second_derivatives(self) -> Tensor:
        """Second derivatives of the logits in t at the weights given, (N, K, d, d)."""
        return self._half() + self._half().mT

    def mirrored(self, signs: ArrayLike = -1.0) -> Homogeneous:
        """Return the network whose outputs have these signs, one for all or one each, which its last layer takes.

        The rows of the frame that belong to a row of that layer take its sign too.
        """
        sign = torch.as_tensor(signs, dtype=self.logits.dtype, device=self.logits.device)
        logits, jacobian = sign * self.logits, sign[..., None] * self.jacobian
        return Homogeneous(
            logits, self.labels, jacobian, lambda: sign[..., None, None] * self._half(), self.depth
        )

    def terms(self, alpha: ArrayLike = 1.0, temperature: ArrayLike = 1.0) -> Terms:
        """Return both terms of the Hessian, (..., d, d), for scales and temperatures that broadcast to shape (...).

        A G-term below the range of float64 comes out as zero: see `scaled_g_term`.

        Raises
        ------
        ValueError
            If `alpha` or `temperature` is not positive, or the scaled logits overflow.
        """
        g_term, log_scale = self.scaled_g_term(alpha, temperature)
        return Terms(g_term * log_scale.exp()[..., None, None], self.h_term(alpha, temperature))

    def scaled_g_term(self, alpha: ArrayLike = 1.0, temperature: ArrayLike = 1.0) -> tuple[Tensor, Tensor]:
        """Return the G-term as a matrix (..., d, d) and a logarithm (...): G = exp(logarithm) matrix, however small.

        Raises
        ------
        ValueError
            If `alpha` or `temperature` is not positive, or the scaled logits overflow.
        """
        scale, temperature, logits = self._scaled_logits(alpha, temperature)
        factor, log_scale = softmax.covariance_factor(logits, self._contrasts)
        factor = factor.flatten(-3, -2)
        jacobian_scale = _power(scale, self.depth - 1) / temperature
        g_term = factor.mT @ factor * (jacobian_scale**2 / len(self.logits))[..., None, None]
        # a product of a matrix with its transpose may differ from symmetric by rounding
        return (g_term + g_term.mT) / 2, log_scale

    def h_term(self, alpha: ArrayLike = 1.0, temperature: ArrayLike = 1.0) -> Tensor:
        """Return the H-term of `terms` by itself."""
        scale, temperature, logits = self._scaled_logits(alpha, temperature)
        weighted = self._weighted(softmax.residuals(logits, self.labels))
        # alpha^(L - 2) as a quotient: L = 1 has no second derivative, but its power would be -1
        h_scale = _power(scale, self.depth) / scale**2 / temperature / len(self.logits)
        h_term = weighted * h_scale[..., None, None]
        return h_term + h_term.mT

    def _weighted(self, weights: Tensor) -> Tensor:
        """Return a sum of logits with these weights (..., N, K): one half of its second derivative, (..., d, d)."""
        half = self._half().flatten(0, 1)
        return (weights.flatten(-2) @ half.flatten(1)).unflatten(-1, half.shape[1:])

    def _scaled_logits(self, alpha: ArrayLike, temperature: ArrayLike) -> tuple[Tensor, Tensor, Tensor]:
        scale, temp = (
            torch.as_tensor(_checks.positive_numbers(name, value), device=self.logits.device)
            for name, value in (("alpha", alpha), ("temperature", temperature))
        )
        scale, temp = torch.broadcast_tensors(scale, temp)
        logits = _power(scale, self.depth)[..., None, None] * self.logits / temp[..., None, None]
        return scale, temp, _checks.finite_logits(logits, alpha)


def _power(base: Tensor, exponent: int) -> Tensor:
    # products, not pow: exact for powers of two on every machine
    return functools.reduce(torch.mul, [base] * exponent, torch.ones_like(base))
