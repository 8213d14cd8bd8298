r"""Gradients of the loss under the random model of logit gradients: their mean, and what one sample adds to it.

==============================  =======================================================  =====================
name                            symbol                                                   Vysogorets, Dawid and
                                                                                         Kempe (2024)
==============================  =======================================================  =====================
`expected_gradient_weights`     :math:`\hat Q - Q`                                      Eq. (9)
`expected_gradient_norm`        :math:`\|\mathrm{E} \nabla_\theta \ell\|`            Eq. (9)
`squared_gradient_norm`         :math:`\mathrm{E} \|\nabla_\theta \ell\|^2`          beyond the paper
`gradient_scatter`              relative variance of :math:`\|\nabla\|^2`             beyond the paper
==============================  =======================================================  =====================

All names are offered by `theory.gauss_newton` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.gauss_newton._scales import both_scales

__all__ = [
    "expected_gradient_norm",
    "expected_gradient_weights",
    "gradient_scatter",
    "squared_gradient_norm",
]

Floats = NDArray[np.float64]


def expected_gradient_weights(mean_probability: ArrayLike, prior: ArrayLike) -> Floats:
    r"""Coefficients of the class means in the expected gradient of the loss, :math:`\hat Q_k - Q_k`.

    :math:`\mathrm{E}_e \nabla_\theta \ell = \sum_k c_k (\hat Q_k - Q_k)`: the residuals of the logit gradients
    average out, and what is left vanishes where the mean prediction matches the class frequencies.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, predicted probabilities averaged over the data, shape (..., K).
    prior
        Q, class frequencies, shape (..., K).

    Returns
    -------
    Shape (..., K); they add up to zero.

    Raises
    ------
    ValueError
        If an argument is not a probability vector along its last axis, or their K differ.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (9).

    Examples
    --------
    >>> expected_gradient_weights([0.75, 0.25], [0.5, 0.5])
    array([ 0.25, -0.25])
    """
    predicted, actual = _checks.distributions(mean_probability=mean_probability, prior=prior)
    return predicted - actual


@np.errstate(over="ignore")
def expected_gradient_norm(
    mean_probability: ArrayLike, prior: ArrayLike, *, dim: ArrayLike, sigma_c: ArrayLike
) -> Floats:
    r"""Norm of the expected gradient of the loss, :math:`\sqrt{d}\,\sigma_c\,\|\hat Q - Q\|`.

    The class means drop out where the mean prediction matches the class frequencies. A finite batch of B
    samples adds noise of mean square :math:`\sigma_e^2 d\,\langle |p - y|^2 \rangle / B`.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, predicted probabilities averaged over the data, shape (..., K).
    prior
        Q, class frequencies, shape (..., K).
    dim
        Number of parameters d, a whole number >= 1.
    sigma_c
        Standard deviation per component of the class means, >= 0.

    Returns
    -------
    Shape (...), in the unit of `sigma_c`.

    Raises
    ------
    ValueError
        If `mean_probability` or `prior` is not a probability vector along its last axis, their K differ,
        `dim` is not a whole number >= 1, or `sigma_c` is negative or not finite.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (9). As our copy reads, the norm is
    :math:`d\,\sigma_c^2` times the distance, which is the same only at :math:`d\,\sigma_c^2 = 1`.

    Examples
    --------
    >>> expected_gradient_norm([0.75, 0.25], [0.5, 0.5], dim=8, sigma_c=2.0).round(12)
    np.float64(2.0)
    """
    distance, d, c = _checks.together(
        mean_probability=_distance(mean_probability, prior),
        dim=_checks.whole("dim", dim),
        sigma_c=_checks.nonnegative("sigma_c", sigma_c),
    )
    return _checks.representable(np.sqrt(d) * distance * c, dim=dim, sigma_c=sigma_c)


@np.errstate(over="ignore")
def squared_gradient_norm(
    mean_probability: ArrayLike,
    prior: ArrayLike,
    *,
    squared_error: ArrayLike,
    dim: ArrayLike,
    sigma_c: ArrayLike,
    sigma_e: ArrayLike,
    samples: ArrayLike,
) -> Floats:
    r"""Mean squared norm of the gradient over a finite sample, noise floor included.

    :math:`d\,\sigma_c^2\,\|\hat Q - Q\|^2 + (d\,\sigma_e^2 / N)\,\langle\|p - y\|^2\rangle`. The root against the
    distance is a hyperbola, not a line through 0. For one draw of Gaussian class means the first term scatters
    by the relative standard deviation :math:`\sqrt{2/d}`.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, predicted probabilities averaged over the sample, shape (..., K).
    prior
        Q, class frequencies in the sample, shape (..., K).
    squared_error
        :math:`\langle\|p - y\|^2\rangle` over the sample, y one-hot, in [0, 2]; 1 - 1/K at uniform `p`.
    dim
        Number of parameters d, a whole number >= 1.
    sigma_c, sigma_e
        Standard deviations per component of class means and residuals, >= 0 and not both 0.
    samples
        Size N of the sample, a whole number >= 1.

    Returns
    -------
    Shape (...), in the unit of the squared scales.

    Raises
    ------
    ValueError
        If `mean_probability` or `prior` is not a probability vector along its last axis, their K differ,
        `squared_error` is outside [0, 2], `dim` or `samples` is not a whole number >= 1, a scale is negative or not
        finite, or both are 0; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (9) for the first term; the second is not in the paper.

    Examples
    --------
    >>> uniform, size = [0.25] * 4, {"dim": 100, "sigma_c": 1.0, "sigma_e": 2.0}
    >>> squared_gradient_norm(uniform, uniform, squared_error=0.75, samples=300, **size)
    np.float64(1.0)
    """
    distance = _distance(mean_probability, prior)
    error = _checks.within("squared_error", squared_error, 0.0, 2.0)
    c, e = both_scales(sigma_c, sigma_e)
    distance, error, d, c, e, n = _checks.together(
        mean_probability=distance,
        squared_error=error,
        dim=_checks.whole("dim", dim),
        sigma_c=c,
        sigma_e=e,
        samples=_checks.whole("samples", samples),
    )
    root = np.sqrt(d)
    found = (
        np.square(root * distance * c) + np.square(root / np.sqrt(n) * np.where(error > 0, e, 0.0)) * error
    )
    return _checks.representable(found, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)


def gradient_scatter(dim: ArrayLike) -> Floats:
    r"""Relative variance of the squared norm of the mean gradient over Gaussian class means, 2/d.

    :math:`\mathrm{Var}\,\|\nabla\|^2 = (2/d)\,(\mathrm{E}\,\|\nabla\|^2)^2`, whatever the probabilities and the
    scale: the gradient is Gaussian with d equal components. With orthogonal class means of one length it is 0.

    Parameters
    ----------
    dim
        Number of parameters d, a whole number >= 1.

    Returns
    -------
    Shape of `dim`.

    Raises
    ------
    ValueError
        If `dim` is not a whole number >= 1.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), who take the class means as orthogonal, after Eq. (9). It is the
    variance of a chi-squared variable with d degrees of freedom, over its squared mean.

    Examples
    --------
    >>> gradient_scatter([8, 50])
    array([0.25, 0.04])
    """
    return 2.0 / _checks.whole("dim", dim)


def _distance(mean_probability: ArrayLike, prior: ArrayLike) -> Floats:
    return np.hypot.reduce(expected_gradient_weights(mean_probability, prior), axis=-1)
