r"""Variance of Hutchinson's estimates of a trace, :math:`x^\top A x` with a random probe x.

========================  =====================================================  ==================================
name                      symbol                                                 source
========================  =====================================================  ==================================
``squared_norm``          :math:`\|A\|_F^2`
``squared_diagonal``      :math:`\sum_i A_{ii}^2`
`sign_probe_variance`     :math:`x_i = \pm 1`                                    Hutchinson (1990)
`normal_probe_variance`   :math:`x \sim N(0, I)`                                 Avron and Toledo (2011), Lemma 5
========================  =====================================================  ==================================

The mean is :math:`\mathrm{Tr} A` with either probe. With :math:`A = H^2` the same formulas are those of
:math:`\|H x\|^2`, whose mean is :math:`\|H\|_F^2`: the estimates of Vysogorets, Dawid and Kempe (2024), Appendix F.
Both names are offered by `theory.gauss_newton` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks

__all__ = ["normal_probe_variance", "sign_probe_variance"]

Floats = NDArray[np.float64]


@np.errstate(over="ignore")
def sign_probe_variance(squared_norm: ArrayLike, *, squared_diagonal: ArrayLike) -> Floats:
    r"""Variance of :math:`x^\top A x` over independent signs, :math:`2 (\|A\|_F^2 - \sum_i A_{ii}^2)`.

    The diagonal adds nothing to the variance: of a diagonal matrix every probe shows the trace.

    Parameters
    ----------
    squared_norm
        :math:`\|A\|_F^2 \ge 0` of a symmetric matrix.
    squared_diagonal
        :math:`\sum_i A_{ii}^2`, from 0 to `squared_norm`.

    Returns
    -------
    Broadcast shape of both, in their unit.

    Raises
    ------
    ValueError
        If an argument is negative or not finite, or `squared_diagonal` exceeds `squared_norm`; if the result
        overflows.

    References
    ----------
    Hutchinson (1990), "A stochastic estimator of the trace of the influence matrix for Laplacian smoothing splines".

    Examples
    --------
    >>> sign_probe_variance(3.0, squared_diagonal=[0.5, 3.0])
    array([5., 0.])
    """
    whole, diagonal = _checks.together(
        squared_norm=_checks.nonnegative("squared_norm", squared_norm),
        squared_diagonal=_checks.nonnegative("squared_diagonal", squared_diagonal),
    )
    _checks.require(
        diagonal <= whole * (1 + 1e-12), "squared_diagonal", "at most squared_norm", squared_diagonal
    )
    return _checks.representable(2.0 * np.maximum(whole - diagonal, 0.0), squared_norm=squared_norm)


@np.errstate(over="ignore")
def normal_probe_variance(squared_norm: ArrayLike) -> Floats:
    r"""Variance of :math:`x^\top A x` over standard normal probes, :math:`2 \|A\|_F^2`.

    Parameters
    ----------
    squared_norm
        :math:`\|A\|_F^2 \ge 0` of a symmetric matrix.

    Returns
    -------
    Shape and unit of `squared_norm`.

    Raises
    ------
    ValueError
        If `squared_norm` is negative or not finite; if the result overflows.

    References
    ----------
    Avron and Toledo (2011), "Randomized algorithms for estimating the trace of an implicit symmetric positive
    semi-definite matrix", Lemma 5.

    Examples
    --------
    >>> normal_probe_variance([3.0, 0.5])
    array([6., 1.])
    """
    found = 2.0 * _checks.nonnegative("squared_norm", squared_norm)
    return _checks.representable(found, squared_norm=squared_norm)
