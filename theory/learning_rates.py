r"""The largest stable learning rate from the curvature, and the best constant momentum.

=====================  ===========================  =====================================================
name                   symbol                       Granziol, Zohren and Roberts (2022)
=====================  ===========================  =====================================================
``sharpness``          lambda_1                     top eigenvalue of the Hessian
`stability_limit`      alpha < 2/lambda_1           eq. (22)
`sgd_limit`            2/lambda_1'                  section 10.1, Theorem 4 without its simplification
`mean_square_limit`                                 not in the paper
``largest``            L                            eqs. (24), (25)
``smallest``           mu                           eqs. (24), (25); must be positive
``learning_rate``      alpha
``momentum``           rho
``contraction``                                     spectral radius of one step: error per iteration
=====================  ===========================  =====================================================

Theorem 4 gives a learning rate that grows like B^(1/2) while the batch size B is below
`theory.batch_hessian.crossover_batch_size` and then saturates: nowhere linear. `mean_square_limit` is linear,
then flat, without a threshold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import batch_hessian
from theory._checks import nonnegative, positive, representable, require, together

__all__ = [
    "MomentumRates",
    "heavy_ball",
    "mean_square_limit",
    "nesterov",
    "sgd_limit",
    "stability_limit",
]

Floats = NDArray[np.float64]


class MomentumRates(NamedTuple):
    """Constant rates of a momentum method, and the factor by which one step shrinks the error in the end."""

    learning_rate: Floats
    momentum: Floats
    contraction: Floats


@np.errstate(over="ignore")
def stability_limit(sharpness: ArrayLike) -> Floats:
    r"""Largest learning rate at which gradient descent is stable on a quadratic, :math:`2/\lambda_{max}`.

    Parameters
    ----------
    sharpness
        Largest Hessian eigenvalue, positive and finite; any shape.

    Returns
    -------
    Learning rate, of the shape of `sharpness`.

    Raises
    ------
    ValueError
        If `sharpness` is not positive and finite, or so small that the rate is larger than any float.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (22).

    Examples
    --------
    >>> stability_limit([0.5, 4.0])
    array([4. , 0.5])
    """
    sharpness = positive("sharpness", sharpness)
    return representable(2 / sharpness, sharpness=sharpness)


@np.errstate(over="ignore")
def sgd_limit(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Learning rate :math:`2/\lambda_1'` from the mini-batch eigenvalue of Theorem 4.

    Parameters
    ----------
    eigenvalue
        Largest eigenvalue of the full-data Hessian, positive.
    sigma, dim, batch_size, dataset_size
        As in `theory.batch_hessian.batch_eigenvalue`.

    Returns
    -------
    Learning rate, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Notes
    -----
    The local exponent d log rate / d log b is 1/2 below the crossover b_c and 1/(1 + b/b_c) above it.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 10.1, with eq. (9) in place of eq. (23), whose premise lies
    outside the range of eq. (9).

    Examples
    --------
    >>> sgd_limit(2.0, sigma=0.1, dim=100, batch_size=[0.01, 0.04, 10.0], dataset_size=10).round(4)
    array([0.1001, 0.2004, 1.    ])
    """
    top = batch_hessian.batch_eigenvalue(
        positive("eigenvalue", eigenvalue),
        sigma=sigma,
        dim=dim,
        batch_size=batch_size,
        dataset_size=dataset_size,
    )
    return representable(2 / top, eigenvalue=eigenvalue)


@np.errstate(over="ignore")
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
    Learning rate, of the broadcast shape; `stability_limit` at B = N.

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
    b = batch_hessian.effective_batch_size(batch_size, dataset_size)
    eigenvalue, noise, b = together(
        eigenvalue=positive("eigenvalue", eigenvalue), noise=nonnegative("noise", noise), batch_size=b
    )
    size = np.hypot(eigenvalue, np.sqrt(noise) / np.sqrt(b))
    return representable(2 / size * (eigenvalue / size), eigenvalue=eigenvalue)


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
    Granziol, Zohren and Roberts (2022), eq. (25); the learning rate reads sqrt(mu/L) in our copy, which has
    no unit. Nesterov (2004), Introductory lectures on convex optimization, section 2.2.1.

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


def _ratio(upper: Floats, lower: Floats) -> Floats:
    """(sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu)), without cancellation for nearly equal eigenvalues."""
    both = np.sqrt(upper) + np.sqrt(lower)
    return np.minimum((upper - lower) / both / both, 1.0)


def _ordered(largest: ArrayLike, smallest: ArrayLike) -> tuple[Floats, Floats]:
    """Both eigenvalues, checked and broadcast."""
    upper, lower = together(largest=positive("largest", largest), smallest=positive("smallest", smallest))
    require(upper >= lower, "largest", "at least smallest", largest)
    return upper, lower
