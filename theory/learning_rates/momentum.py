r"""Momentum on a quadratic: the best constants, and how fast any others contract.

=====================  ===========================  =====================================================
name                   symbol                       Granziol, Zohren and Roberts (2022)
=====================  ===========================  =====================================================
``largest``            L                            eqs. (24), (25)
``smallest``           mu                           eqs. (24), (25); must be positive
``learning_rate``      alpha
``momentum``           rho
``contraction``                                     spectral radius of one step: error per iteration
=====================  ===========================  =====================================================

Along an eigenvector of eigenvalue h the error follows x_{t+1} = tau x_t - delta x_{t-1}: heavy ball has
tau = 1 + rho - alpha h, delta = rho, Nesterov's method tau = (1 + rho)(1 - alpha h), delta = rho (1 - alpha h).
All names here are offered by `theory.learning_rates` too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import finite, positive, representable, require, together

__all__ = [
    "MomentumRates",
    "best_nesterov",
    "heavy_ball",
    "heavy_ball_contraction",
    "nesterov",
    "nesterov_contraction",
]

Floats = NDArray[np.float64]


class MomentumRates(NamedTuple):
    """Constant rates of a momentum method, and the factor by which one step shrinks the error in the end."""

    learning_rate: Floats
    momentum: Floats
    contraction: Floats


@np.errstate(over="ignore")
def heavy_ball(largest: ArrayLike, smallest: ArrayLike) -> MomentumRates:
    r"""Polyak's momentum, best constant rates for a quadratic with eigenvalues in [smallest, largest].

    Step :math:`w_{t+1} = w_t - \alpha \nabla L(w_t) + \rho (w_t - w_{t-1})` with
    :math:`\alpha = (2/(\sqrt L + \sqrt\mu))^2` and
    :math:`\sqrt\rho = (\sqrt L - \sqrt\mu)/(\sqrt L + \sqrt\mu)`, which is also the contraction.

    Parameters
    ----------
    largest, smallest
        Extreme eigenvalues, positive, ``largest >= smallest``.

    Returns
    -------
    Learning rate, momentum and contraction, of the broadcast shape.

    Raises
    ------
    ValueError
        If an eigenvalue is not positive and finite, or `largest` is below `smallest`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (24); the square of the learning rate is missing in our copy,
    which then diverges for large L. Polyak (1964), Some methods of speeding up the convergence of iteration
    methods.

    Examples
    --------
    >>> [float(x) for x in heavy_ball(9.0, 1.0)]
    [0.25, 0.25, 0.5]
    """
    upper, lower = _ordered(largest, smallest)
    top, low = np.sqrt(upper), np.sqrt(lower)
    ratio = _ratio(upper, lower)
    rate = representable((2 / (top + low)) ** 2, largest=largest, smallest=smallest)
    return MomentumRates(rate, (ratio**2)[()], ratio[()])


@np.errstate(over="ignore")
def nesterov(largest: ArrayLike, smallest: ArrayLike) -> MomentumRates:
    r"""Nesterov's momentum for a quadratic with eigenvalues in [smallest, largest].

    Step :math:`w_{t+1} = y_t - \alpha \nabla L(y_t)`, :math:`y_t = w_t + \rho (w_t - w_{t-1})` with
    :math:`\alpha = 1/L`, :math:`\rho = (\sqrt L - \sqrt\mu)/(\sqrt L + \sqrt\mu)` and contraction
    :math:`1 - \sqrt{\mu/L}`.

    Parameters
    ----------
    largest, smallest
        Extreme eigenvalues, positive, ``largest >= smallest``.

    Returns
    -------
    Learning rate, momentum and contraction, of the broadcast shape.

    Raises
    ------
    ValueError
        If an eigenvalue is not positive and finite, or `largest` is below `smallest`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (24) and (25); the learning rate reads sqrt(mu/L) in our copy,
    which has no unit. Nesterov (2004), Introductory lectures on convex optimization, section 2.2.1.

    Examples
    --------
    >>> [float(x) for x in nesterov(4.0, 1.0)]
    [0.25, 0.3333333333333333, 0.5]
    """
    upper, lower = _ordered(largest, smallest)
    top, low = np.sqrt(upper), np.sqrt(lower)
    ratio = _ratio(upper, lower)
    rate = representable(1 / upper, largest=largest)
    return MomentumRates(rate, ratio[()], np.minimum(ratio * (1 + low / top), 1.0)[()])


@np.errstate(over="ignore")
def best_nesterov(largest: ArrayLike, smallest: ArrayLike) -> MomentumRates:
    r"""Nesterov's momentum with the best constant pair for a quadratic with eigenvalues in [smallest, largest].

    With :math:`\kappa = L/\mu`: :math:`\alpha = 4/(3L + \mu)`,
    :math:`\rho = (\sqrt{3\kappa + 1} - 2)/(\sqrt{3\kappa + 1} + 2)`, contraction
    :math:`1 - 2/\sqrt{3\kappa + 1}`.

    Parameters
    ----------
    largest, smallest
        Extreme eigenvalues, positive, ``largest >= smallest``.

    Returns
    -------
    Learning rate, momentum and contraction, of the broadcast shape.

    Raises
    ------
    ValueError
        If an eigenvalue is not positive and finite, or `largest` is below `smallest`.

    References
    ----------
    Lessard, Recht and Packard (2016), Analysis and design of optimization algorithms via integral quadratic
    constraints, proposition 1. Granziol, Zohren and Roberts (2022) give the common pair, `nesterov`.

    Examples
    --------
    >>> [round(float(x), 12) for x in best_nesterov(5.0, 1.0)]
    [0.25, 0.333333333333, 0.5]
    """
    upper, lower = _ordered(largest, smallest)
    share = lower / upper
    root, low = np.sqrt(3 + share), 2 * np.sqrt(share)
    ratio = 3 * (1 - share) / (root + low)  # root - low, without cancellation for nearly equal eigenvalues
    rate = representable(4 / (3 + share) / upper, largest=largest)
    parts = (np.minimum(ratio / (root + low), 1.0), np.minimum(ratio / root, 1.0))
    return MomentumRates(rate, *(part[()] for part in parts))


@np.errstate(over="ignore", invalid="ignore")
def heavy_ball_contraction(
    rate: ArrayLike, momentum: ArrayLike, *, largest: ArrayLike, smallest: ArrayLike
) -> Floats:
    r"""Factor by which heavy ball shrinks the error per step in the end, with any constants.

    Parameters
    ----------
    rate
        Learning rate, positive.
    momentum
        Any sign, finite.
    largest, smallest
        Extreme eigenvalues, any sign, ``largest >= smallest``.

    Returns
    -------
    Largest spectral radius of a step over the eigenvalues between the two; above 1 it diverges. Of the
    broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Polyak (1964), Some methods of speeding up the convergence of iteration methods.

    Examples
    --------
    >>> float(heavy_ball_contraction(0.25, 0.25, largest=9.0, smallest=1.0))
    0.5
    """
    rate, momentum, upper, lower = _method(rate, momentum, largest, smallest)
    ends = [_radius(1 + momentum - rate * h, momentum) for h in (lower, upper)]
    return representable(np.maximum(*ends), rate=rate, momentum=momentum, largest=upper, smallest=lower)


@np.errstate(over="ignore", invalid="ignore")
def nesterov_contraction(
    rate: ArrayLike, momentum: ArrayLike, *, largest: ArrayLike, smallest: ArrayLike
) -> Floats:
    r"""Factor by which Nesterov's momentum shrinks the error per step in the end, with any constants.

    Parameters
    ----------
    rate, momentum, largest, smallest
        As in `heavy_ball_contraction`.

    Returns
    -------
    Largest spectral radius of a step over the eigenvalues between the two, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> float(nesterov_contraction(0.25, 1 / 3, largest=4.0, smallest=1.0))
    0.5
    """
    rate, momentum, upper, lower = _method(rate, momentum, largest, smallest)
    shrunk = [1 - rate * h for h in (lower, upper)]
    ends = [_radius((1 + momentum) * s, momentum * s) for s in shrunk]
    return representable(np.maximum(*ends), rate=rate, momentum=momentum, largest=upper, smallest=lower)


@np.errstate(over="ignore", invalid="ignore")
def _radius(trace: Floats, determinant: Floats) -> Floats:
    """Larger modulus of the roots of x^2 - trace x + determinant.

    Along the eigenvalues it grows with the distance from where the trace is 0, for either method, so that its maximum
    over an interval lies at an end.
    """
    half = np.abs(trace) / 2
    scale = np.maximum(half, np.sqrt(np.abs(determinant)))
    unit = np.where(scale > 0, scale, 1.0)
    square = (half / unit) ** 2 - determinant / unit / unit
    return np.where(square < 0, np.sqrt(np.abs(determinant)), half + unit * np.sqrt(np.maximum(square, 0.0)))


@np.errstate(over="ignore")
def _method(
    rate: ArrayLike, momentum: ArrayLike, largest: ArrayLike, smallest: ArrayLike
) -> tuple[Floats, ...]:
    """Constants and interval, checked and broadcast."""
    checked = together(
        rate=positive("rate", rate),
        momentum=finite("momentum", momentum),
        largest=finite("largest", largest),
        smallest=finite("smallest", smallest),
    )
    require(checked[2] >= checked[3], "largest", "at least smallest", largest)
    return checked


def _ratio(upper: Floats, lower: Floats) -> Floats:
    """(sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu)), without cancellation for nearly equal eigenvalues."""
    both = np.sqrt(upper) + np.sqrt(lower)
    return np.minimum((upper - lower) / both / both, 1.0)


def _ordered(largest: ArrayLike, smallest: ArrayLike) -> tuple[Floats, Floats]:
    """Both eigenvalues, checked and broadcast."""
    upper, lower = together(largest=positive("largest", largest), smallest=positive("smallest", smallest))
    require(upper >= lower, "largest", "at least smallest", largest)
    return upper, lower
