r"""Wide networks in the neural tangent parameterisation: their kernel, and their Fisher information.

===========================  ===========================================================================
name                         symbol
===========================  ===========================================================================
``kappa1, kappa2``           :math:`\kappa_1^N = \sum_{l=1}^L \tilde q_t^l q_t^l`,
                             :math:`\kappa_2^N = \sum_{l=1}^L \tilde q_{st}^l q_{st}^l`
``difference``               :math:`\kappa_1^N - \kappa_2^N`
``mean``, ``second_moment``  :math:`m_\lambda, s_\lambda`: all eigenvalues, and their squares, averaged
``largest``                  :math:`\lambda_{max}`
===========================  ===========================================================================

The parameters are standard normal numbers w and :math:`\beta`, with
:math:`W^l = \sigma_w w^l/\sqrt{M_{l-1}}` and :math:`b^l = \sigma_b \beta^l`. The outputs and the order parameters of
`theory.order_parameters` stay as they are, the gradients by the weights lose a factor
:math:`\sqrt{M_{l-1}}/\sigma_w` and those by the biases a factor :math:`1/\sigma_b`: every layer adds
:math:`\tilde q^l (\sigma_w^2 \hat q^{l-1} + \sigma_b^2) = \tilde q^l q^l` to the Gram matrix. No width is left in it,
and the biases count in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import _checks
from theory._initialisation import Initialisation
from theory.fisher._wide import Activations, differentiable, parameter_count
from theory.order_parameters import Propagation, propagate

__all__ = ["TangentKernel", "TangentKernelStatistics", "tangent_kernel", "tangent_kernel_statistics"]


class TangentKernel(NamedTuple):
    """Kernel of one input and of two, and their difference to full relative accuracy."""

    kappa1: float
    kappa2: float
    difference: float


class TangentKernelStatistics(NamedTuple):
    """Mean, mean square and largest of the eigenvalues."""

    mean: float
    second_moment: float
    largest: float


def tangent_kernel(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    input_overlap: ArrayLike = 0.0,
) -> TangentKernel:
    r"""Neural tangent kernel of an infinitely wide network, for one input and for two.

    .. math::
        \kappa_1^N = \sum_{l=1}^L \tilde q_t^l q_t^l, \qquad
        \kappa_2^N = \sum_{l=1}^L \tilde q_{st}^l q_{st}^l.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation` (with second derivative unless closed forms are known),
        its name, or one of these per hidden layer.
    depth
        L from 1 to 100000.
    weight_variance, bias_variance
        Scalars >= 0.
    input_overlap
        Scalar in [-1, 1]: inner product of the two inputs per input unit, each of norm 1 per unit.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a second derivative is missing, or the kernel overflows.
    ConvergenceError
        As in :func:`theory.order_parameters.order_parameters`.

    References
    ----------
    Ours, from the order parameters of Karakida, Akaho and Amari (2019), eqs. (5)-(7); the kernel is that of
    Jacot, Gabriel and Hongler (2018).

    Examples
    --------
    >>> tangent_kernel("relu", depth=3, weight_variance=2.0, bias_variance=0.5).kappa1
    9.0
    >>> tangent_kernel("linear", depth=1, weight_variance=2.0, bias_variance=0.5, input_overlap=0.25)
    TangentKernel(kappa1=2.5, kappa2=1.0, difference=1.5)
    """
    depth = _checks.layers("depth", depth, least=1)
    activations = differentiable(activation, depth - 1)
    drawn = Initialisation.checked(weight_variance, bias_variance)
    moments = propagate(
        activations, weight_variance=drawn.weight, bias_variance=drawn.bias, input_overlap=input_overlap
    )
    kernel = _sums(moments, drawn)
    drawn.require_moderate(np.isfinite(kernel))
    return kernel


def tangent_kernel_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> TangentKernelStatistics:
    r"""Eigenvalues of the Fisher information in the neural tangent parameterisation.

    .. math::
        m_\lambda = \frac{C \kappa_1^N}{P}, \quad
        s_\lambda = \frac C P \Big(\frac{T-1}{T} (\kappa_2^N)^2 + \frac{(\kappa_1^N)^2}{T}\Big), \quad
        \lambda_{max} = \frac{T-1}{T} \kappa_2^N + \frac{\kappa_1^N}{T},

    the last one C times. The widths enter through the number P of parameters alone, which is counted exactly.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance
        As in :func:`tangent_kernel`.
    width, samples, outputs
        M, T and C, each >= 1.
    width_ratios
        L positive numbers, all 1 if None; layer widths, input included, must come out whole.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`tangent_kernel`.

    References
    ----------
    Ours, beside Karakida, Akaho and Amari (2019), Theorem 2.2.

    Examples
    --------
    >>> sizes = dict(depth=3, width=1000, samples=100, outputs=2)
    >>> found = tangent_kernel_statistics("relu", **sizes, weight_variance=2.0, bias_variance=0.5)
    >>> round(found.largest, 3)
    3.666
    """
    kernel = tangent_kernel(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    )
    t, c = _checks.count("samples", samples), _checks.count("outputs", outputs)
    share = c / parameter_count(depth=depth, width=width, outputs=c, width_ratios=width_ratios)
    own, shared = kernel.kappa1, kernel.kappa2
    statistics = TangentKernelStatistics(
        mean=share * own,
        second_moment=(t - 1) / t * (share * shared) * shared + (share * own) * own / t,
        largest=(t - 1) / t * shared + own / t,
    )
    Initialisation.checked(weight_variance, bias_variance).require_moderate(np.isfinite(statistics))
    return statistics


def _sums(m: Propagation, drawn: Initialisation) -> TangentKernel:
    """Layer l adds qt q, or qt' q'; their difference is qt (q - q') + (qt - qt') q', term by term."""
    passed = map(drawn.through, m.q_hat_t, m.q_hat_st, m.forward_gap)
    layers = zip(m.q_tilde_t, m.q_tilde_st, m.backward_gap, passed, strict=True)
    terms = [(t * q, ts * qs, t * d + e * qs) for t, ts, e, (q, qs, d) in layers]
    return TangentKernel(*(float(sum(x)) for x in zip(*terms, strict=True)))
