r"""The learning rates at which SGD is stable in the mean square, and how they grow with the batch size.

Independent batches, linearised steps w -> (I - alpha H_B) w, per-sample curvatures H_i that are positive
semidefinite.

==================  =========================================  ==============================================
name                symbol                                     meaning
==================  =========================================  ==============================================
``rate``            alpha                                      learning rate
``eigenvalue``      lambda                                     eigenvalue of the full-data curvature H
``noise``           nu                                         a variance over samples, in the squared unit
``curvatures``      u' H u                                     along unit directions u
``variances``       Var_i(u' H_i u)                            along the same directions
``square``          lambda_max(H^(-1/2) E[H_B^2] H^(-1/2))     for the batch at hand
``crossover``       b* = nu / lambda^2                         linear below, flat above
==================  =========================================  ==============================================

The exact limit is known: Mulayoff and Michaeli (COLT 2024, arXiv 2306.07850), who also show that it never falls with
the batch size. Linear growth up to a critical batch size and the flat part beyond were found for interpolating least
squares by Ma, Bassily and Belkin (2018, arXiv 1712.06559). Ours are the bounds from both sides that take a few
products, and what they show: single samples decide where batches are small. See docs/claims/beyond.md, D2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    nonnegative,
    positive,
    quiet,
    require,
    together,
    unbounded,
    whole,
)
from theory.batch_hessian.sampling import inverse_size, joined_sizes


class RateBracket(NamedTuple):
    """Two learning rates: stable up to the first, unstable beyond the second."""

    lower: Floats
    upper: Floats


@closed_form
def mean_square_limit(
    eigenvalue: ArrayLike, *, noise: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Learning rate :math:`(2/\lambda) / (1 + \nu/(\lambda^2 b))` where SGD stops shrinking a mean square.

    For independent batches and per-sample Hessians :math:`H_i` on a quadratic. With
    :math:`\nu = \mathrm{Var}_i(v_1^\top H_i v_1)` it bounds from above the rates at which SGD is stable in
    the mean square (:math:`H_i \succeq 0`). With :math:`\nu = \sum_k \mathrm{Var}_i(v_k^\top H_i v_1)`, the
    variance of :math:`H_i v_1`, one step from :math:`v_1` keeps the expected squared distance: a condition,
    not a bound.

    Parameters
    ----------
    eigenvalue
        Eigenvalue of the full-data Hessian for :math:`v_1`, positive.
    noise
        :math:`\nu \ge 0`, a variance over samples, in the squared unit of the eigenvalue.
    batch_size, dataset_size
        B and N, as in `theory.batch_hessian.effective_batch_size`.

    Returns
    -------
    Learning rate, of the broadcast shape; 2/lambda at B = N.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    Inputs x ~ N(0, I) in 20 dimensions have Var(x (x^T v)) = 21 and the limit 2B / (B + 21):

    >>> mean_square_limit(1.0, noise=21.0, batch_size=[1, 21], dataset_size=float("inf"))
    array([0.09090909, 1.        ])
    """
    eigenvalue, noise, inverse = _direction(eigenvalue, noise, batch_size, dataset_size)
    return _limit(eigenvalue, noise, inverse)


@quiet
def mean_square_exponent(
    eigenvalue: ArrayLike, *, noise: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Local exponent d log alpha / d log b of `mean_square_limit`: 1/(1 + b/b*), from 1 down to 0.

    Parameters
    ----------
    eigenvalue, noise, batch_size, dataset_size
        As in `mean_square_limit`.

    Returns
    -------
    Exponent in [0, 1], 0 at B = N and without noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> mean_square_exponent(2.0, noise=12.0, batch_size=[1, 3, 9], dataset_size=float("inf"))
    array([0.75, 0.5 , 0.25])
    """
    eigenvalue, noise, inverse = _direction(eigenvalue, noise, batch_size, dataset_size)
    return saturating((np.sqrt(noise) * np.sqrt(inverse) / eigenvalue) ** 2)[()]


@closed_form
def mean_square_crossover(eigenvalue: ArrayLike, *, noise: ArrayLike, dataset_size: ArrayLike) -> Floats:
    r"""Batch size at which `mean_square_limit` is half of its largest value: b* = nu/lambda^2, as B.

    Parameters
    ----------
    eigenvalue, noise
        As in `mean_square_limit`.
    dataset_size
        N, positive, may be infinite.

    Returns
    -------
    :math:`B = b^* / (1 + b^*/N) < N`, 0 without noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> float(mean_square_crossover(2.0, noise=16.0, dataset_size=12))
    3.0
    """
    eigenvalue, noise, total = together(
        eigenvalue=(positive, eigenvalue),
        noise=(nonnegative, noise),
        dataset_size=(unbounded, dataset_size),
    )
    return joined_sizes((np.sqrt(noise) / eigenvalue) ** 2, total)


@closed_form
def mean_square_bracket(
    curvatures: ArrayLike,
    variances: ArrayLike,
    *,
    square: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> RateBracket:
    r"""Rigorous bounds of the largest mean-square stable rate, from statistics of the samples.

    .. math:: \frac{2}{\lambda_{\max}(H^{-1/2} E[H_B^2] H^{-1/2})} \le \alpha_{\rm ms} \le
        \min_u \frac{2\, u^\top H u}{(u^\top H u)^2 + \mathrm{Var}_i(u^\top H_i u)/b}

    Any unit directions u will do. Top eigenvectors of H give the flat part, those of the samples with the
    largest eigenvalues the part that is linear in B.

    Parameters
    ----------
    curvatures
        u' H u > 0 along k >= 1 directions, shape (..., k).
    variances
        Variance over the samples, divisor N - 1, of u' H_i u along the same directions; same shape.
    square
        lambda_max of H^(-1/2) E[H_B^2] H^(-1/2) on the range of H, positive, one for each batch size.
    batch_size, dataset_size
        B and N, as in `theory.batch_hessian.effective_batch_size`. Batches without replacement, or, with N
        infinite and the variances of the law, of fresh samples.

    Returns
    -------
    Lower and upper rate, of the broadcast shape of the leading axes, `square`, `batch_size` and `dataset_size`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `curvatures` has no last axis.

    Notes
    -----
    Per step the second moment M of the weights becomes M - alpha (H M + M H) + alpha^2 E[H_B M H_B]. The trial
    moment M = I gives the lower side, M = u u' the upper one. The noise that counts is the variance of the
    quadratic form; the variance of the vector H_i u gives the condition for a single step from u.

    References
    ----------
    The limit that is bounded: Mulayoff and Michaeli (COLT 2024, arXiv 2306.07850). With fresh samples `square` is at
    most (L + (B - 1) lambda_1) / B, L the largest eigenvalue of a sample; by that bound the lower side is twice the
    step size that Ma, Bassily and Belkin (2018, arXiv 1712.06559) find best for interpolating least squares.

    Examples
    --------
    Gaussian inputs in 20 dimensions: the lower side is attained.

    >>> two_sizes = {"batch_size": [1, 21], "dataset_size": float("inf")}
    >>> lower, upper = mean_square_bracket([1.0], [2.0], square=[22.0, 2.0], **two_sizes)
    >>> lower.round(4), upper.round(4)
    (array([0.0909, 1.    ]), array([0.6667, 1.8261]))
    """
    curvatures, variances = together(curvatures=(positive, curvatures), variances=(nonnegative, variances))
    directions = curvatures.ndim >= 1 and curvatures.shape[-1] >= 1
    require(directions, "curvatures", "of shape (..., k), k >= 1", curvatures.shape)
    inverse = inverse_size("batch_size", batch_size, dataset_size)
    along, spread, noise = together(
        curvatures=curvatures, variances=variances, batch_size=np.expand_dims(inverse, -1)
    )
    upper, square, _ = together(
        curvatures=_limit(along, spread, noise).min(axis=-1),
        square=(positive, square),
        batch_size=inverse,
    )
    return RateBracket(2 / square, upper)


@closed_form
def mean_square_descent(rate: ArrayLike, *, limit: ArrayLike) -> Floats:
    r"""Gain of a step of SGD divided by its first-order gain: :math:`1 - a/\alpha_{ms}`.

    .. math:: \frac{\mathrm{E}|w|^2 - \mathrm{E}|w'|^2}{2 a\, \mathrm{E}\, w^\top H w}

    on a quadratic, from the second moment of the weights that the limit keeps as it is.

    Parameters
    ----------
    rate
        a, positive and finite.
    limit
        :math:`\alpha_{ms}`, the rate where the mean square stands still, positive and finite.

    Returns
    -------
    Share, below 1, negative beyond the limit; of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is not positive and finite, or the quotient is larger than any float.

    References
    ----------
    Ours; the limit is that of Mulayoff and Michaeli (2024).

    Examples
    --------
    >>> mean_square_descent([0.1, 0.4, 0.6], limit=0.4).round(2)
    array([ 0.75,  0.  , -0.5 ])
    """
    rate, limit = together(rate=(positive, rate), limit=(positive, limit))
    return 1 - rate / limit


@quiet
def gaussian_least_squares_limit(batch_size: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Largest mean-square stable rate of least squares on inputs x ~ N(0, I_P): 2 B / (B + P + 1), exactly.

    Parameters
    ----------
    batch_size
        B, positive: fresh inputs in every step.
    dim
        P, an integer >= 1.

    Returns
    -------
    Learning rate, below 2, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Notes
    -----
    E[H_B^2] = (1 + (P + 1)/B) I, so that the second moment stays a multiple of I and the lower side of
    `mean_square_bracket` is attained.

    Examples
    --------
    >>> gaussian_least_squares_limit([1, 21], 20)
    array([0.09090909, 1.        ])
    """
    batch, dim = together(batch_size=(positive, batch_size), dim=(whole, dim))
    return 2 / (1 + (dim + 1) / batch)


@closed_form
def gaussian_least_squares_growth(rate: ArrayLike, *, batch_size: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Factor of the mean squared distance in one step of the same: (1 - alpha)^2 + alpha^2 (P + 1)/B.

    Parameters
    ----------
    rate
        Learning rate, positive.
    batch_size, dim
        As in `gaussian_least_squares_limit`, where the factor is 1.

    Returns
    -------
    Factor of :math:`E\|w\|^2`, from any w, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> gaussian_least_squares_growth([0.5, 1.0, 1.25], batch_size=21, dim=20)
    array([0.5  , 1.   , 1.625])
    """
    rate, batch, dim = together(rate=(positive, rate), batch_size=(positive, batch_size), dim=(whole, dim))
    return (1 - rate) ** 2 + (rate * np.sqrt((dim + 1) / batch)) ** 2


def saturating(ratio: Floats) -> Floats:
    """Return r / (1 + r) for r >= 0, however large."""
    # two forms, since r / (1 + r) is infinity over infinity for a ratio that overflows
    low, high = np.minimum(ratio, 1.0), np.maximum(ratio, 1.0)
    return np.where(ratio <= 1, low / (1 + low), 1 / (1 + 1 / high))


def _direction(
    eigenvalue: ArrayLike, noise: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> tuple[Floats, ...]:
    return together(
        eigenvalue=(positive, eigenvalue),
        noise=(nonnegative, noise),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
    )


def _limit(eigenvalue: Floats, noise: Floats, inverse: Floats) -> Floats:
    """Return (2/lambda) / (1 + nu/(lambda^2 b))."""
    # hypot and two quotients, since lambda^2 and nu may overflow where the rate does not
    size = np.hypot(eigenvalue, np.sqrt(noise) * np.sqrt(inverse))
    return 2 / size * (eigenvalue / size)
