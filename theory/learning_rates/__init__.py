r"""The largest stable learning rate from the curvature, and the best constant momentum.

=====================  ===========================  =====================================================
name                   symbol                       Granziol, Zohren and Roberts (2022)
=====================  ===========================  =====================================================
``sharpness``          lambda_1                     top eigenvalue of the Hessian
`stability_limit`      alpha < 2/lambda_1           eq. (22)
`sgd_limit`            2/lambda_1'                  section 10.1, Theorem 4 without its simplification
`mean_square_limit`                                 not in the paper; in `theory.learning_rates.mean_square`
`square_root`          alpha ~ b^(1/2)              footnote 6, section 11
``crossover``          B*                           batch size above which a rate is flat
=====================  ===========================  =====================================================

Theorem 4 gives a learning rate that grows like B^(1/2) while the batch size B is below
`theory.batch_hessian.crossover_batch_size` and then saturates: nowhere linear. `mean_square_limit` is linear,
then flat, without a threshold. It stands with all that belongs to it in `theory.learning_rates.mean_square` and is
offered here. What a larger batch buys in one step, and with
interpolation, is in `theory.learning_rates.noise_scale`, Adam against the batch size in `theory.learning_rates.adam`.
Preconditioned steps are in `theory.adaptive_rates`.

Prior art of the mean-square limit: Mulayoff and Michaeli (COLT 2024, arXiv 2306.07850), exactly; Ma, Bassily and Belkin
(2018, arXiv 1712.06559), its shape. That training with full gradients hovers at 2/lambda_1: Cohen et al. (2021, arXiv
2103.00065); that it survives rates somewhat above it by leaving for flatter places: Lewkowycz et al. (2020, arXiv
2003.02218).

Momentum on a quadratic: the best constants, and how fast any others contract.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import batch_hessian
from theory._checks import (
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    quiet,
    require,
    together,
    unbounded,
    within,
)
from theory.batch_hessian.sampling import inverse_size
from theory.learning_rates.mean_square import (
    RateBracket,
    gaussian_least_squares_growth,
    gaussian_least_squares_limit,
    mean_square_bracket,
    mean_square_crossover,
    mean_square_descent,
    mean_square_exponent,
    mean_square_limit,
    saturating,
)

__all__ = [
    "MomentumRates",
    "RateBracket",
    "best_nesterov",
    "gaussian_least_squares_growth",
    "gaussian_least_squares_limit",
    "heavy_ball",
    "heavy_ball_contraction",
    "linear_then_flat",
    "marchenko_pastur_exponent",
    "mean_square_bracket",
    "mean_square_crossover",
    "mean_square_descent",
    "mean_square_exponent",
    "mean_square_limit",
    "nesterov",
    "nesterov_contraction",
    "sgd_exponent",
    "sgd_limit",
    "square_root",
    "stability_limit",
]


@closed_form
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
    return 2 / sharpness


@closed_form
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
    return 2 / top


@quiet
def sgd_exponent(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Local exponent d log alpha / d log b of `sgd_limit`: 1/2 below the crossover, 1/(1 + b/b_c) above it.

    Parameters
    ----------
    eigenvalue, sigma, dim, batch_size, dataset_size
        As in `sgd_limit`.

    Returns
    -------
    Exponent in [0, 1/2], 0 at B = N and without noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 10.1, where it is 1 for small b.

    Examples
    --------
    >>> sgd_exponent(2.0, sigma=0.5, dim=48, batch_size=[1, 3, 9], dataset_size=float("inf"))
    array([0.5 , 0.5 , 0.25])
    """
    crossover = batch_hessian.crossover_batch_size(
        positive("eigenvalue", eigenvalue), sigma=sigma, dim=dim, dataset_size=float("inf")
    )
    inverse = inverse_size("batch_size", batch_size, dataset_size)
    crossover, inverse = together(eigenvalue=crossover, batch_size=inverse)
    return np.minimum(saturating(crossover * inverse), 0.5)


def marchenko_pastur_exponent(q: ArrayLike) -> Floats:
    r"""Local exponent in the batch size of one over the Marchenko-Pastur edge: sqrt(q) / (1 + sqrt(q)).

    The edge :math:`\sigma^2 (1 + \sqrt{q})^2` with q = P/b. Unlike that of Theorem 4 it comes near 1, linear
    scaling, while the batch is much smaller than the dimension.

    Parameters
    ----------
    q
        Dimension over effective batch size, >= 0 and finite.

    Returns
    -------
    Exponent in [0, 1), of the shape of `q`.

    Raises
    ------
    ValueError
        If `q` is negative or not finite.

    Examples
    --------
    >>> marchenko_pastur_exponent([0.0, 1.0, 81.0])
    array([0. , 0.5, 0.9])
    """
    root = np.sqrt(nonnegative("q", q))
    return root / (1 + root)


@closed_form
def linear_then_flat(
    rate: ArrayLike,
    *,
    known: ArrayLike,
    batch_size: ArrayLike,
    crossover: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Rate at another batch size, as alpha is proportional to 1/(1 + b*/b).

    Parameters
    ----------
    rate
        Learning rate at batch size `known`, positive.
    known, batch_size
        B where the rate is known and B where it is wanted, positive and at most `dataset_size`.
    crossover
        B of the crossover b* (`mean_square_crossover`), from 0 (flat) to N, or infinite (linear).
    dataset_size
        N, positive, may be infinite.

    Returns
    -------
    Learning rate, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the rule is linear in b and B = N.

    Notes
    -----
    The exact mean-square limit of positive semidefinite samples is at least the curve of this form through any
    two of its values, between these; and at most the curve beyond them.

    Examples
    --------
    >>> sizes = {"batch_size": [1, 8, 64, 512], "dataset_size": float("inf")}
    >>> linear_then_flat(0.01, known=1, crossover=63, **sizes).round(4)
    array([0.01  , 0.0721, 0.3225, 0.5699])
    >>> linear_then_flat(0.01, known=1, crossover=float("inf"), **sizes)
    array([0.01, 0.08, 0.64, 5.12])
    """
    rate, before, after, part, total = together(
        rate=(positive, rate),
        known=inverse_size("known", known, dataset_size),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
        crossover=within("crossover", crossover, 0, float("inf")),
        dataset_size=(unbounded, dataset_size),
    )
    linear = np.isinf(part)
    require(linear | (part <= total), "crossover", "at most dataset_size, or infinite", crossover)
    part = np.where(linear, 1.0, part)
    flat = np.where(linear, 0.0, 1 - part / total)
    largest = np.maximum(before, after)
    # in units of the larger 1/b where the product overflows
    unit = np.where(np.isfinite(part * largest), 1.0, largest)
    above, below = (flat / unit + part * (inverse / unit) for inverse in (before, after))
    for name, inverse, size in (("known", before, known), ("batch_size", after, batch_size)):
        require(flat + inverse > 0, name, "below dataset_size where the rule is linear", size)
    return rate * (above / below)


@closed_form
def square_root(
    rate: ArrayLike, *, known: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Rate at another batch size, as alpha is proportional to sqrt(b).

    Parameters
    ----------
    rate, known, batch_size, dataset_size
        As in `linear_then_flat`; both batch sizes below `dataset_size`.

    Returns
    -------
    Learning rate, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), footnote 6 (no eigenvalue outside of the bulk) and section 11.

    Examples
    --------
    >>> square_root(0.01, known=4, batch_size=[1, 16], dataset_size=float("inf"))
    array([0.005, 0.02 ])
    """
    rate, before, after = together(
        rate=(positive, rate),
        known=inverse_size("known", known, dataset_size),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
    )
    for name, inverse, size in (("known", before, known), ("batch_size", after, batch_size)):
        require(inverse > 0, name, "below dataset_size", size)
    return rate * (np.sqrt(before) / np.sqrt(after))


class MomentumRates(NamedTuple):
    """Constant rates of a momentum method, and the factor by which one step shrinks the error in the end."""

    learning_rate: Floats
    momentum: Floats
    contraction: Floats


@closed_form
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
    _, top, low, ratio = _roots(largest, smallest)
    return MomentumRates((2 / (top + low)) ** 2, ratio**2, ratio)


@closed_form
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
    upper, top, low, ratio = _roots(largest, smallest)
    # 1 - low / top as ratio (top + low) / top, which keeps its digits for nearly equal eigenvalues
    return MomentumRates(1 / upper, ratio, np.minimum(ratio * (1 + low / top), 1.0))


@closed_form
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
    momentum, contraction = np.minimum(ratio / (root + low), 1.0), np.minimum(ratio / root, 1.0)
    return MomentumRates(4 / (3 + share) / upper, momentum, contraction)


@closed_form
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
    return np.maximum(*(_radius(1 + momentum - rate * h, momentum) for h in (lower, upper)))


@closed_form
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
    shrunk = (1 - rate * h for h in (lower, upper))
    return np.maximum(*(_radius((1 + momentum) * s, momentum * s) for s in shrunk))


def _radius(trace: Floats, determinant: Floats) -> Floats:
    """Larger modulus of the roots of x^2 - trace x + determinant.

    Along the eigenvalues it grows with the distance from where the trace is 0, for either method, so that its maximum
    over an interval lies at an end.
    """
    half = np.abs(trace) / 2
    scale = np.maximum(half, np.sqrt(np.abs(determinant)))
    unit = np.where(scale > 0, scale, 1.0)
    # in units of the larger term, so that the squares do not overflow
    square = (half / unit) ** 2 - determinant / unit / unit
    return np.where(square < 0, np.sqrt(np.abs(determinant)), half + unit * np.sqrt(np.maximum(square, 0.0)))


def _method(
    rate: ArrayLike, momentum: ArrayLike, largest: ArrayLike, smallest: ArrayLike
) -> tuple[Floats, ...]:
    """Constants and interval, checked and broadcast."""
    checked = together(
        rate=(positive, rate),
        momentum=(finite, momentum),
        largest=(finite, largest),
        smallest=(finite, smallest),
    )
    require(checked[2] >= checked[3], "largest", "at least smallest", largest)
    return checked


def _roots(largest: ArrayLike, smallest: ArrayLike) -> tuple[Floats, ...]:
    """Return L, top = sqrt(L), low = sqrt(mu), and (top - low) / (top + low)."""
    upper, lower = _ordered(largest, smallest)
    top, low = np.sqrt(upper), np.sqrt(lower)
    both = top + low
    # (L - mu) / (top + low)^2 for (top - low) / (top + low), which cancels for nearly equal eigenvalues
    return upper, top, low, np.minimum((upper - lower) / both / both, 1.0)


def _ordered(largest: ArrayLike, smallest: ArrayLike) -> tuple[Floats, Floats]:
    """Both eigenvalues, checked and broadcast."""
    upper, lower = together(largest=(positive, largest), smallest=(positive, smallest))
    require(upper >= lower, "largest", "at least smallest", largest)
    return upper, lower
