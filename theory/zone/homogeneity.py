r"""What a factor of all weights does to the logits of a bias-free network and to their derivatives.

====================  ==========================================================  ===================================
name                  symbol                                                      Vysogorets, Dawid and Kempe (2024)
====================  ==========================================================  ===================================
``alpha``             :math:`\alpha`, factor of all weights                       Section 3
``depth``             L, degree of homogeneity: layers with weights               Section 2
``order``             k, order of the derivative by the weights
`homogeneous_factor`  :math:`\alpha^{L-k}/T`                                      Sections 2 and 3
`euler_factor`        :math:`L (L-1) \cdots (L-k+1)`                              beyond the paper
`tanh_correction`     leading deviation of a tanh network from homogeneity        beside Section 2
====================  ==========================================================  ===================================

:math:`f(\alpha\theta) = \alpha^L f(\theta)` for :math:`\alpha > 0` if the activation is, like ReLU, homogeneous of
degree one. All names are offered by `theory.zone` too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks

__all__ = ["euler_factor", "homogeneous_factor", "tanh_correction"]

Floats = NDArray[np.float64]

_HIGHEST = 1000  # derivative that anybody takes


@np.errstate(over="ignore")
def homogeneous_factor(
    alpha: ArrayLike, *, depth: int, order: int = 0, temperature: ArrayLike = 1.0
) -> Floats:
    r"""Factor of the k-th derivatives of the heated logits when all weights are scaled, :math:`\alpha^{L-k}/T`.

    At k = 0 that of the logits over T, and of the loss where :math:`\alpha \gg 1`; at k = 1 that of their gradients,
    and of the gradient of the loss at fixed probabilities; at k = 2 that of their Hessians, and of the H-term.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0`.
    depth
        Number L >= 1 of layers with weights.
    order
        Order k >= 0 of the derivative by the weights, at most 1000.
    temperature
        T > 0.

    Returns
    -------
    Broadcast shape of `alpha` and `temperature`.

    Raises
    ------
    ValueError
        If `alpha` or `temperature` is not positive and finite, `depth` is not a whole number >= 1, or `order` not one
        from 0 to 1000; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Sections 2 and 3.

    Examples
    --------
    >>> [float(homogeneous_factor(2.0, depth=3, order=k)) for k in range(3)]
    [8.0, 4.0, 2.0]
    """
    a, heat = _checks.together(
        alpha=_checks.positive("alpha", alpha), temperature=_checks.positive("temperature", temperature)
    )
    power = _checks.layers("depth", depth, least=1) - _checks.integer("order", order, least=0, most=_HIGHEST)
    found = a ** float(power) / heat
    return _checks.representable(found, alpha=alpha, depth=depth, order=order, temperature=temperature)


def euler_factor(depth: int, *, order: int = 1) -> float:
    r"""Factor of the k-th derivative of the logits along the weights themselves, :math:`L (L-1) \cdots (L-k+1)`.

    Euler's theorem: :math:`\theta \cdot \nabla z = L z` and :math:`\theta^\top \nabla^2 z\, \theta = L (L - 1) z`. The
    derivative of :math:`\alpha^L` at 1; it vanishes from k = L + 1 on.

    Parameters
    ----------
    depth
        Number L >= 1 of layers with weights.
    order
        Order k >= 0, at most 1000.

    Returns
    -------
    A whole number.

    Raises
    ------
    ValueError
        If `depth` is not a whole number >= 1, or `order` not one from 0 to 1000; if the result overflows.

    References
    ----------
    From the homogeneity of Vysogorets, Dawid and Kempe (2024), Section 2.

    Examples
    --------
    >>> euler_factor(3), euler_factor(5, order=2), euler_factor(1, order=2)
    (3.0, 20.0, 0.0)
    """
    degree = _checks.layers("depth", depth, least=1)
    high = _checks.integer("order", order, least=0, most=_HIGHEST)
    found = math.perm(degree, high)
    _checks.require(found < 10**308, "order", "such that the result does not overflow", order)
    return float(found)


@np.errstate(over="ignore", invalid="ignore")
def tanh_correction(matrices: Sequence[ArrayLike], x: ArrayLike) -> Floats:
    r"""Leading deviation of a scaled-down tanh network from a homogeneous one, over :math:`\alpha^{L+2}`.

    :math:`\alpha^{-L} f_{\tanh}(\alpha\theta) = W_L \cdots W_1 x - \tfrac{\alpha^2}{3} W_L \cdots W_2 (W_1 x)^3 +
    O(\alpha^4)`, the cube elementwise: this is the second term without its :math:`\alpha^2`. Only the first layer has
    a part in it, the signals of the others being smaller by a factor of :math:`\alpha` and more.

    Parameters
    ----------
    matrices
        Weights :math:`W_1, \ldots, W_L` of shape (out, in), L >= 2, in a list or tuple.
    x
        Inputs, shape (..., n).

    Returns
    -------
    Shape (..., K).

    Raises
    ------
    ValueError
        If there are fewer than two matrices, one is not finite or does not fit the one before, or `x` is not finite or
        does not fit the first; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 2, which has activations with f(0) = 0 almost homogeneous. The
    3 is that of :math:`\tanh u = u - u^3/3 + O(u^5)`.

    Examples
    --------
    >>> tanh_correction([[[3.0]], [[2.0]]], [1.0])
    array([-18.])
    """
    first, *others = _chain(matrices)
    signals = np.atleast_1d(_checks.finite("x", x))
    _checks.require(
        signals.shape[-1] == first.shape[1], "x", f"of shape (..., {first.shape[1]})", signals.shape
    )
    signals = -((signals @ first.T) ** 3) / 3.0
    for matrix in others:
        signals = signals @ matrix.T
    return _checks.representable(signals, matrices=matrices, x=x)


def _chain(matrices: Any) -> list[Floats]:
    _checks.instance("matrices", matrices, list | tuple, "a list of matrices")
    _checks.require(len(matrices) >= 2, "matrices", "at least two", len(matrices))
    found = [_checks.finite("matrices", matrix) for matrix in matrices]
    _checks.require(
        all(m.ndim == 2 for m in found), "matrices", "of shape (out, in)", [m.shape for m in found]
    )
    fitting = all(a.shape[0] == b.shape[1] for a, b in itertools.pairwise(found))
    _checks.require(fitting, "matrices", "each as wide as the one before is high", [m.shape for m in found])
    return found
