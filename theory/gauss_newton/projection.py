r"""Large symmetric matrices seen in a random subspace: moments and excess of :math:`R^\top H R`.

======================  ===================================================  ===============================
name                    symbol                                               Vysogorets, Dawid, Kempe (2024)
======================  ===================================================  ===============================
``dim``                 d, columns of R                                      Section 2
``parameters``          P, rows of R                                         Section 2
``trace``               :math:`\mathrm{Tr} H`
``squared_norm``        :math:`\|H\|_F^2`
``squared_diagonal``    :math:`\sum_i H_{ii}^2`
``excess``              :math:`r = \mathrm{Tr}(H) / \|H\|_F`                 Eq. (2)
`haar_moments`          R uniform among orthonormal frames                   beyond the paper
`sparse_moments`        columns of signs on a few random places              Section 2
`projected_excess`      :math:`r_d`                                          beyond the paper
`excess_noise_floor`    standard deviation of :math:`r_d` at zero trace      beyond the paper
`frame_overlap`         :math:`\mathrm{E}\|R^\top R - I\|_F^2`               beyond the paper
======================  ===================================================  ===============================

The second moments are exact for every P and d.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Check,
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    require,
    together,
    unbounded,
    whole,
)
from theory.batch_hessian.sampling import share_left

_MANY = 1e16  # parameters from which on the mean inverse count is known from two terms of its series


class ProjectedMoments(NamedTuple):
    r"""Means over random frames.

    Attributes
    ----------
    trace
        :math:`\mathrm{E}\,\mathrm{Tr}(R^\top H R)`.
    squared_norm
        :math:`\mathrm{E}\,\|R^\top H R\|_F^2`.
    excess
        The first over the root of the second.
    """

    trace: Floats
    squared_norm: Floats
    excess: Floats


@closed_form
def haar_moments(
    trace: ArrayLike, squared_norm: ArrayLike, *, dim: ArrayLike, parameters: ArrayLike
) -> ProjectedMoments:
    r"""Mean trace and mean squared norm of a matrix in a random subspace, exact.

    :math:`(d/P)\,\mathrm{Tr} H` and :math:`(a + b)\,\|H\|_F^2 + b\,(\mathrm{Tr} H)^2` with
    :math:`a = d[d(P+1)-2]/[P(P-1)(P+2)]` and :math:`b = d(P-d)/[P(P-1)(P+2)]`: nothing else of H matters.

    Parameters
    ----------
    trace
        :math:`\mathrm{Tr} H`.
    squared_norm
        :math:`\|H\|_F^2 > 0`, at least :math:`(\mathrm{Tr} H)^2 / P`.
    dim
        Dimension d of the subspace, a whole number from 1 to P.
    parameters
        Dimension P of the full space, a whole number.

    Returns
    -------
    Fields of the broadcast shape; trace and squared norm in the units of H and its square.

    Raises
    ------
    ValueError
        If `trace` is not finite, `squared_norm` is not positive or too small for the trace, `dim` or `parameters` is
        not a whole number >= 1, or `dim` exceeds `parameters`; if the result overflows.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024). Derived in `theory.derivations.zone`.

    Examples
    --------
    >>> haar_moments(2.0, 3.0, dim=[1, 2, 4], parameters=4).squared_norm.round(6)
    array([0.416667, 1.055556, 3.      ])
    """
    t, f, d, p = _matrix(trace, squared_norm, dim, parameters)
    u = 1.0 / p
    spread = np.where(p > 1, (1 - u) * (1 + 2 * u), 1.0)  # at P = 1 all is shown
    within, across = (d + 1 - 2 * u) / spread, (p - d) / p / spread
    # quotients by P one by one: P^3 would overflow
    square = (d / p) * (within * (f / p) + across * (t * (t / p)))
    return _moments(np.where(d == p, f, square), d / p * t)


@closed_form
def sparse_moments(
    trace: ArrayLike,
    squared_norm: ArrayLike,
    *,
    squared_diagonal: ArrayLike,
    dim: ArrayLike,
    parameters: ArrayLike,
) -> ProjectedMoments:
    r"""Moments for sparse frames, which are neither orthogonal nor independent of the axes.

    Entries are not zero with probability :math:`P^{-1/2}`, of random sign, and each column has unit norm (an empty
    one is drawn again). With :math:`\kappa = \mathrm{E}[1/n]` over the number n of entries in a column,

    .. math:: \mathrm{E}\|R^\top H R\|_F^2 = d\Big[\frac{\kappa}{P} D + \frac{1-\kappa}{P(P-1)}
              \big((\mathrm{Tr} H)^2 + 2\|H\|_F^2 - 3D\big)\Big] + \frac{d(d-1)}{P^2}\|H\|_F^2,

    :math:`D = \sum_i H_{ii}^2`. A diagonal matrix gains about :math:`d\,\|H\|_F^2 P^{-3/2}` over an orthonormal frame.

    Parameters
    ----------
    trace
        :math:`\mathrm{Tr} H`.
    squared_norm
        :math:`\|H\|_F^2 > 0`.
    squared_diagonal
        D, from :math:`(\mathrm{Tr} H)^2 / P` to `squared_norm`.
    dim
        Number d of columns, a whole number from 1 to P.
    parameters
        Number P of rows, a whole number.

    Returns
    -------
    Fields of the broadcast shape; trace and squared norm in the units of H and its square.

    Raises
    ------
    ValueError
        If `trace` is not finite, `squared_norm` is not positive, `squared_diagonal` is outside its range, `dim` or
        `parameters` is not a whole number >= 1, or `dim` exceeds `parameters`; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 2, which assumes that the columns are orthogonal.

    Examples
    --------
    >>> sparse_moments(2.0, 4.0, squared_diagonal=4.0, dim=5, parameters=400).squared_norm.round(6)
    np.float64(0.003132)
    """
    t, f, d, p = _matrix(trace, squared_norm, dim, parameters)
    t, f, d, p, diagonal = together(
        trace=t,
        squared_norm=f,
        dim=d,
        parameters=p,
        squared_diagonal=(nonnegative, squared_diagonal),
    )
    held = (diagonal <= f * (1 + 1e-12)) & (t * (t / p) <= diagonal * (1 + 1e-12))
    require(held, "squared_diagonal", "from trace^2 / parameters to squared_norm", squared_diagonal)
    kappa = np.vectorize(_mean_inverse_count, otypes=[np.float64])(p)
    others = t * (t / p) + 2.0 * ((f - diagonal) / p) - diagonal / p
    own = kappa * diagonal + (1 - kappa) * np.where(p > 1, p / np.maximum(p - 1.0, 1.0), 0.0) * others
    return _moments((d / p) * (own + (d - 1) * (f / p)), d / p * t)


def projected_excess(excess: ArrayLike, *, dim: ArrayLike, parameters: ArrayLike = np.inf) -> Floats:
    r"""Excess seen in a random subspace, :math:`r \sqrt{d / (d + 1 + r^2)}` for r in the full space.

    For a Haar-random subspace of dimension d, by default much smaller than the number of parameters P; it is the
    mean trace over the root mean square Frobenius norm of :math:`R^\top H R`, whatever the spectrum. It is
    less than r, and never reaches :math:`\sqrt{d}` unless d = P.

    Parameters
    ----------
    excess
        :math:`r = \mathrm{Tr}(H) / \|H\|_F` in the full space, either sign, at most :math:`\sqrt{P}` in size.
    dim
        Dimension d of the subspace, a whole number from 1 to P.
    parameters
        Dimension P of the full space, a whole number or infinity, the limit, whose relative error is O(d/P).

    Returns
    -------
    Broadcast shape of all arguments.

    Raises
    ------
    ValueError
        If `excess` is not finite or larger than :math:`\sqrt{P}`, `dim` or `parameters` is not a whole number >= 1,
        or `dim` exceeds `parameters`.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), whose Section 4 and Appendix F compare the two quantities. The ratio
    of the means in `haar_moments`.

    Examples
    --------
    >>> projected_excess([3.0, 8.0], dim=50).round(3)
    array([2.739, 5.275])
    >>> projected_excess(3.0, dim=[50, 100, 200], parameters=200).round(3)
    array([2.799, 2.928, 3.   ])
    """
    r, d, p = _in_space(dim, _ambient(parameters), excess=(finite, excess))
    require(np.abs(r) <= np.sqrt(p) * (1 + 1e-12), "excess", "at most sqrt(parameters) in size", excess)
    u, rest = 1.0 / p, share_left(d, p)
    spread = np.where(d < p, (1 - u) * (1 + 2 * u), 1.0)
    size = np.where(d < p, np.hypot(np.sqrt(d + 1 - 2 * u), np.sqrt(rest) * r), 1.0)
    return np.where(d == p, r, np.sqrt(d * spread) * (r / size))[()]


def excess_noise_floor(dim: ArrayLike, *, parameters: ArrayLike = np.inf) -> Floats:
    r"""Standard deviation of the projected excess of a matrix of zero trace, :math:`\sqrt{2/(d+1)}`.

    What a random subspace of dimension d shows of a balanced spectrum: values within two of these of zero
    are no curvature at all. It is one draw of the subspace, not of the data, so that it shifts a whole curve.

    Parameters
    ----------
    dim
        Dimension d of the subspace, a whole number from 1 to P.
    parameters
        Dimension P of the full space, a whole number or infinity: :math:`\sqrt{2(P-d)/(dP+P-2)}`.

    Returns
    -------
    Broadcast shape of both.

    Raises
    ------
    ValueError
        If `dim` or `parameters` is not a whole number >= 1, or `dim` exceeds `parameters`.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024). Root of the variance of the trace over the mean squared norm, for
    P without bound :math:`2d\|H\|_F^2/P^2` over :math:`d(d+1)\|H\|_F^2/P^2`.

    Examples
    --------
    >>> excess_noise_floor(49), excess_noise_floor(49, parameters=49)
    (np.float64(0.2), np.float64(0.0))
    """
    d, p = _in_space(dim, _ambient(parameters))
    return np.sqrt(2.0 * share_left(d, p) / np.where(d < p, d + 1 - 2.0 / p, 1.0))


@closed_form
def frame_overlap(dim: ArrayLike, *, parameters: ArrayLike) -> Floats:
    r"""Mean squared distance from orthonormal of independent random unit columns, :math:`d(d-1)/P`.

    The same for dense columns of random direction and for the sparse ones of `sparse_moments`, whose diagonal is
    exact too: scalar products of two columns have mean 0 and variance 1/P.

    Parameters
    ----------
    dim
        Number d of columns, a whole number from 1 to P.
    parameters
        Number P of rows, a whole number.

    Returns
    -------
    :math:`\mathrm{E}\|R^\top R - I\|_F^2`, broadcast shape of both; 0 would be orthonormal.

    Raises
    ------
    ValueError
        If `dim` or `parameters` is not a whole number >= 1, or `dim` exceeds `parameters`; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 2, which assumes that the columns are orthogonal.

    Examples
    --------
    >>> frame_overlap(5, parameters=8)
    np.float64(2.5)
    """
    d, p = _in_space(dim, whole("parameters", parameters))
    return d * ((d - 1) / p)


def _in_space(dim: ArrayLike, parameters: Floats, **arguments: tuple[Check, ArrayLike]) -> tuple[Floats, ...]:
    """The arguments, the dimension of the frame and that of the space, which is no smaller, checked and broadcast."""
    found = together(**arguments, dim=(whole, dim), parameters=parameters)
    require(found[-2] <= found[-1], "dim", "at most parameters", dim)
    return found


def _ambient(parameters: ArrayLike) -> Floats:
    p = unbounded("parameters", parameters)
    require((p >= 1) & (p == np.floor(p)), "parameters", "a whole number >= 1 or infinity", parameters)
    return p


def _matrix(
    trace: ArrayLike, squared_norm: ArrayLike, dim: ArrayLike, parameters: ArrayLike
) -> tuple[Floats, ...]:
    """A matrix by its two numbers, and the sizes of the frame."""
    t, f, d, p = _in_space(
        dim, whole("parameters", parameters), trace=(finite, trace), squared_norm=(positive, squared_norm)
    )
    rule = "at least trace^2 / parameters"
    require(np.abs(t) <= np.sqrt(f) * np.sqrt(p) * (1 + 1e-12), "squared_norm", rule, squared_norm)
    return t, f, d, p


def _moments(square: Floats, trace: Floats) -> ProjectedMoments:
    return ProjectedMoments(trace, square, trace / np.sqrt(square))


def _mean_inverse_count(parameters: float) -> float:
    r"""Mean of 1/n over the positive values of n, binomial of P trials with probability :math:`P^{-1/2}`."""
    mean = math.sqrt(parameters)
    if parameters > _MANY:
        return (1 + 1 / mean) / mean
    if parameters == 1:
        return 1.0
    mode, odds, reach = int(mean), 1 / (mean - 1), int(12 * math.sqrt(mean)) + 40
    up: Floats = np.arange(mode, min(mode + reach, int(parameters)), dtype=np.float64)
    down: Floats = np.arange(mode, max(mode - reach, 1), -1, dtype=np.float64)
    # ratios to the mode: binomial coefficients of many parameters overflow
    above = np.asarray(np.cumprod((parameters - up) / (up + 1) * odds), dtype=np.float64)
    below = np.asarray(np.cumprod(down / ((parameters - down + 1) * odds)), dtype=np.float64)
    mass = 1 + above.sum() + below.sum()
    return float((1 / mode + (above / (up + 1)).sum() + (below / (down - 1)).sum()) / mass)
