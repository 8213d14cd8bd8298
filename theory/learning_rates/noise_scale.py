r"""Value of a larger batch: best rate of one step, and of SGD that can fit every sample, against the batch size.

========================  ====================================================  =======================================
name                      symbol                                                source
========================  ====================================================  =======================================
`gradient_noise_scale`    B_noise = tr(H S)/(g'H g)                             McCandlish, Kaplan and Amodei (2018)
`simple_noise_scale`      B_simple = tr S/|g|^2                                 the same
`best_step_rate`           eps_max/(1 + B_noise/B), eps_max = |g|^2/(g'H g)      the same
`best_step_decrease`       dL_max/(1 + B_noise/B), dL_max = |g|^4/(2 g'H g)      the same
`critical_batch_size`     m* = beta/(lambda_1 - lambda_n) + 1                   Ma, Bassily and Belkin (2018)
`interpolating_rate`      eta*(m)                                               the same
`mean_square_factor`      g(eta, m) along an eigenvector                        the same
`mixture_share`           p = (N - B)/(B (N - 1))                               Mulayoff and Michaeli (2024)
`mean_square_distances`   E|w_t|^2, step by step                                the same
`least_squares_risks`     E(x'w_t)^2, step by step, Gaussian inputs             Zou et al. (2021), bounds of it
`critical_batch_exponent` d log B* / d log D                                    Zhang et al. (2025), section 1
========================  ====================================================  =======================================

g and H are the gradient and the Hessian of the whole loss, S the covariance of the gradient of one sample. The mean
loss after a step of a batch gradient is, to second order and exactly so on a quadratic,

    L - eps |g|^2 + eps^2 (g'H g + tr(H S)/B)/2,

which is least at `best_step_rate`. Batches drawn from N samples without replacement have 1/B - 1/N in place of 1/B,
and S with the divisor N - 1.

With interpolation the loss of every sample is least at the same weights; it is there (x_i'w)^2/2 with |x_i|^2 <= beta,
and SGD with m fresh samples in a step takes w along an eigenvector of the eigenvalue lambda to a mean squared
distance of at most (1 - eta lambda)^2 + eta^2 lambda (beta - lambda)/m, equal where all |x_i|^2 are beta. It is convex
in lambda, so that the slower end of the spectrum decides. See docs/claims/noise_scale.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    finite,
    flag,
    integer,
    nonnegative,
    positive,
    quiet,
    require,
    require_symmetric,
    scalar,
    together,
    whole,
)
from theory.batch_hessian.sampling import inverse_size

__all__ = [
    "SgdRisks",
    "best_step_decrease",
    "best_step_rate",
    "critical_batch_exponent",
    "critical_batch_size",
    "gradient_noise_scale",
    "interpolating_rate",
    "least_squares_risks",
    "mean_square_distances",
    "mean_square_factor",
    "mixture_share",
    "simple_noise_scale",
]


@closed_form
def gradient_noise_scale(noise: ArrayLike, *, curvature: ArrayLike) -> Floats:
    r"""Batch size at which noise costs as much as the gradient's own curvature, :math:`\mathrm{tr}(HS)/(g'Hg)`.

    Parameters
    ----------
    noise
        tr(H S), at least 0.
    curvature
        g'H g, positive.

    Returns
    -------
    B_noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the quotient larger than any float.

    References
    ----------
    McCandlish, Kaplan and Amodei (2018), An empirical model of large-batch training, arXiv 1812.06162, section 2.2.

    Examples
    --------
    >>> float(gradient_noise_scale(24.0, curvature=0.5))
    48.0
    """
    noise, curvature = together(noise=(nonnegative, noise), curvature=(positive, curvature))
    return noise / curvature


@closed_form
def simple_noise_scale(trace: ArrayLike, *, squared_gradient: ArrayLike) -> Floats:
    r"""`gradient_noise_scale` if H is a multiple of the identity: :math:`\mathrm{tr}\,S / |g|^2`.

    Parameters
    ----------
    trace
        tr S, at least 0.
    squared_gradient
        |g|^2, positive.

    Returns
    -------
    B_simple, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the quotient larger than any float.

    References
    ----------
    McCandlish, Kaplan and Amodei (2018), arXiv 1812.06162, section 2.2.

    Examples
    --------
    >>> float(simple_noise_scale(6.0, squared_gradient=0.25))
    24.0
    """
    trace, squared = together(trace=(nonnegative, trace), squared_gradient=(positive, squared_gradient))
    return trace / squared


@closed_form
def best_step_rate(
    squared_gradient: ArrayLike,
    *,
    curvature: ArrayLike,
    noise: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Rate at which the mean loss after one step of SGD is least, :math:`\epsilon_{max}/(1 + B_{noise}/b)`.

    As :math:`|g|^2/(g'Hg + \mathrm{tr}(HS)/b)`, which needs no positive curvature along the gradient itself.

    Parameters
    ----------
    squared_gradient
        |g|^2, positive.
    curvature
        g'H g, finite.
    noise
        tr(H S), finite.
    batch_size, dataset_size
        B and N, as in `theory.batch_hessian.effective_batch_size`: 1/b = 1/B - 1/N.

    Returns
    -------
    Learning rate, |g|^2/(g'H g) at B = N, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, the mean loss has no minimum as g'H g + tr(H S)/b is not positive, or
        the rate is larger than any float.

    References
    ----------
    McCandlish, Kaplan and Amodei (2018), arXiv 1812.06162, section 2.2; without replacement ours.

    Examples
    --------
    >>> step = {"curvature": 2.0, "noise": 12.0, "dataset_size": float("inf")}
    >>> best_step_rate(1.0, batch_size=[2, 6, 18], **step)
    array([0.125, 0.25 , 0.375])
    """
    squared, curvature, noise, inverse = together(
        squared_gradient=(positive, squared_gradient),
        curvature=(finite, curvature),
        noise=(finite, noise),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
    )
    bend = curvature + noise * inverse
    require(bend > 0, "curvature", "above minus the noise over b", curvature)
    return squared / bend


@closed_form
def best_step_decrease(
    squared_gradient: ArrayLike,
    *,
    curvature: ArrayLike,
    noise: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Mean decrease of the loss in a step at `best_step_rate`, :math:`|g|^4/(2 g'Hg)/(1 + B_{noise}/b)`.

    Parameters
    ----------
    squared_gradient
        |g|^2, positive.
    curvature, noise
        g'H g, positive, and tr(H S), at least 0.
    batch_size, dataset_size
        As in `best_step_rate`.

    Returns
    -------
    Decrease, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the decrease larger than any float.

    References
    ----------
    McCandlish, Kaplan and Amodei (2018), arXiv 1812.06162, section 2.2.

    Examples
    --------
    >>> step = {"curvature": 2.0, "noise": 12.0, "dataset_size": float("inf")}
    >>> best_step_decrease(1.0, batch_size=[2, 6], **step)
    array([0.0625, 0.125 ])
    """
    squared, curvature, scale, inverse = together(
        squared_gradient=(positive, squared_gradient),
        curvature=(positive, curvature),
        noise=gradient_noise_scale(noise, curvature=curvature),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
    )
    # |g|^4 may overflow where the decrease does not
    return squared / curvature / (1 + scale * inverse) * squared / 2


@quiet
def critical_batch_size(squared_norm: ArrayLike, *, largest: ArrayLike, smallest: ArrayLike) -> Floats:
    r"""Batch size up to which the best rate of SGD with interpolation grows, :math:`\beta/(\lambda_1-\lambda_n) + 1`.

    Parameters
    ----------
    squared_norm
        beta, the squared length of an input: at least the largest eigenvalue.
    largest, smallest
        lambda_1 and lambda_n, of the second moment of the inputs, positive.

    Returns
    -------
    m*, infinite where all eigenvalues are equal, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the eigenvalues are not in order.

    References
    ----------
    Ma, Bassily and Belkin (2018), The power of interpolation, arXiv 1712.06559, on the quadratic loss.

    Examples
    --------
    >>> critical_batch_size(6.0, largest=[2.0, 4.0], smallest=0.5)
    array([5.        , 2.71428571])
    """
    beta, top, bottom = _spectrum(squared_norm, largest, smallest)
    gap = top - bottom
    # with equal eigenvalues the best rate grows at every batch size
    return np.where(gap > 0, beta / np.where(gap > 0, gap, 1.0) + 1, np.inf)[()]


@closed_form
def interpolating_rate(
    batch_size: ArrayLike, *, squared_norm: ArrayLike, largest: ArrayLike, smallest: ArrayLike
) -> Floats:
    r"""Rate of the fastest guaranteed mean-square descent with interpolation.

    .. math:: \frac{m}{\beta + (m-1)\lambda_n} (m \le m^*), \qquad
        \frac{2m}{\beta + (m-1)(\lambda_1 + \lambda_n)} (m \ge m^*)

    Parameters
    ----------
    batch_size
        m, at least 1, of fresh samples.
    squared_norm, largest, smallest
        As in `critical_batch_size`.

    Returns
    -------
    Learning rate, of the broadcast shape; the smaller of the two forms.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the rate larger than any float.

    References
    ----------
    Ma, Bassily and Belkin (2018), arXiv 1712.06559, on the quadratic loss.

    Examples
    --------
    >>> interpolating_rate([1, 5, 17], squared_norm=6.0, largest=2.0, smallest=0.5)
    array([0.16666667, 0.625     , 0.73913043])
    """
    size = positive("batch_size", batch_size)
    require(size >= 1, "batch_size", "at least 1", batch_size)
    beta, top, bottom = _spectrum(squared_norm, largest, smallest)
    critical = critical_batch_size(squared_norm, largest=largest, smallest=smallest)
    size, _ = together(batch_size=size, squared_norm=beta)
    # numerators and denominators over m, so that a large m does not overflow
    rest = 1 - 1 / size
    below, above = 1 / (beta / size + rest * bottom), 2 / (beta / size + rest * (top + bottom))
    return np.where(size <= critical, below, above)


@closed_form
def mean_square_factor(
    rate: ArrayLike, *, eigenvalue: ArrayLike, squared_norm: ArrayLike, batch_size: ArrayLike
) -> Floats:
    r"""Factor of E|w|^2 in a step from an eigenvector: :math:`(1-\eta\lambda)^2 + \eta^2\lambda(\beta-\lambda)/m`.

    For inputs of one length and fresh samples in each step; if none is longer, a bound.

    Parameters
    ----------
    rate
        eta, positive.
    eigenvalue
        lambda, positive, at most `squared_norm`.
    squared_norm
        beta, the squared length of the inputs.
    batch_size
        m, positive.

    Returns
    -------
    Factor, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the factor larger than any float.

    References
    ----------
    Ma, Bassily and Belkin (2018), arXiv 1712.06559, on the quadratic loss.

    Examples
    --------
    >>> mean_square_factor([0.25, 0.5], eigenvalue=2.0, squared_norm=6.0, batch_size=4)
    array([0.375, 0.5  ])
    """
    eta, value, beta, size = together(
        rate=(positive, rate),
        eigenvalue=(positive, eigenvalue),
        squared_norm=(positive, squared_norm),
        batch_size=(positive, batch_size),
    )
    require(value <= beta, "eigenvalue", "at most squared_norm", eigenvalue)
    step = eta * value
    return (1 - step) ** 2 + step * eta * ((beta - value) / size)


def mixture_share(batch_size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    r"""Share of single-sample steps, among full ones, that is as stable as batches: :math:`(N-B)/(B(N-1))`.

    Parameters
    ----------
    batch_size
        B, a whole number from 1 to N, without replacement.
    dataset_size
        N, a whole number, at least 2.

    Returns
    -------
    p in [0, 1], of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Mulayoff and Michaeli (2024), Exact mean square linear stability analysis for SGD, arXiv 2306.07850.

    Examples
    --------
    >>> mixture_share([1, 4, 16], 16)
    array([1. , 0.2, 0. ])
    """
    size, total = together(batch_size=(whole, batch_size), dataset_size=(whole, dataset_size))
    require(total >= 2, "dataset_size", "at least 2", dataset_size)
    require(size <= total, "batch_size", "at most dataset_size", batch_size)
    return (total - size) / (total - 1) / size


@closed_form
def mean_square_distances(
    curvatures: ArrayLike, start: ArrayLike, *, rate: float, batch_size: int, steps: int
) -> Floats:
    r"""Mean squared distance to the common minimum of all samples, after every step of SGD on a quadratic.

    A step takes the second moment M of the weights to

    .. math:: (1-p)\,(I - aH) M (I - aH) + p\, \mathrm{E}_i (I - aH_i) M (I - aH_i)

    with `mixture_share` p: full steps mixed with single-sample steps have the same moments as batches.

    Parameters
    ----------
    curvatures
        H_i of N >= 2 samples, (N, P, P), symmetric.
    start
        Weights at first, less those of the minimum, (P,).
    rate
        a, positive.
    batch_size
        B, from 1 to N, drawn without replacement in each step.
    steps
        At least 1.

    Returns
    -------
    E|w|^2 after 1, ..., `steps` steps, (steps,).

    Raises
    ------
    ValueError
        If an argument is out of its domain, the shapes do not fit, or a value is larger than any float.

    References
    ----------
    Mulayoff and Michaeli (2024), arXiv 2306.07850: the same recursion by Kronecker products.

    Examples
    --------
    Two samples of one weight: 1 - a H_i is -1 or 0.

    >>> mean_square_distances([[[4.0]], [[2.0]]], [1.0], rate=0.5, batch_size=1, steps=2)
    array([0.5 , 0.25])
    """
    matrices, weights = finite("curvatures", curvatures), finite("start", start)
    shaped = matrices.ndim == 3 and len(matrices) >= 2 and matrices.shape[1] == matrices.shape[2]
    require(shaped, "curvatures", "of shape (N, P, P), N >= 2", matrices.shape)
    require_symmetric("curvatures", matrices)
    require(weights.shape == matrices.shape[1:2], "start", f"of shape {matrices.shape[1:2]}", weights.shape)
    share = mixture_share(integer("batch_size", batch_size, least=1), len(matrices))
    each = np.eye(len(weights)) - scalar("rate", rate, positive) * matrices
    mean, moment = each.mean(axis=0), np.outer(weights, weights)
    found: list[float] = []
    for _ in range(integer("steps", steps, least=1, most=10**6)):
        moment = (1 - share) * (mean @ moment @ mean) + share * (each @ moment @ each).mean(axis=0)
        found.append(float(np.trace(moment)))
    return np.array(found)


class SgdRisks(NamedTuple):
    """Mean excess risks after 1, 2, ... steps, (steps, ...): of the last weights, and of the average of all before."""

    last: Floats
    average: Floats


@closed_form
def least_squares_risks(
    eigenvalues: ArrayLike,
    start: ArrayLike,
    *,
    noise: ArrayLike,
    rate: ArrayLike,
    batch_size: ArrayLike,
    steps: int,
) -> SgdRisks:
    r"""Mean excess risk of SGD on least squares with fresh Gaussian inputs at every step, exactly.

    With inputs of covariance :math:`\mathrm{diag}(\lambda)`, labels :math:`x'w^* + \sigma\xi` and weights relative to
    :math:`w^*`, a step takes the second moments :math:`m_i = E w_i^2` to

    .. math:: \left[(1-\eta\lambda_i)^2 + \tfrac{\eta^2}{B}\lambda_i^2\right] m_i
        + \tfrac{\eta^2}{B}\lambda_i \left(\sum_j \lambda_j m_j + \sigma^2\right).

    Parameters
    ----------
    eigenvalues
        Positive, (d,).
    start
        Second moments at the start, at least 0, (d,).
    noise
        Variance of the labels about x'w*, at least 0.
    rate
        eta, positive.
    batch_size
        B, positive; the formula is exact at whole numbers.
    steps
        At least 1.

    Returns
    -------
    :math:`E (x'w_t)^2` after t steps, and that of :math:`\bar w_t = \tfrac1t (w_0 + \dots + w_{t-1})`; steps along the
    first axis, before the broadcast shape of noise, rate and batch size.

    Raises
    ------
    ValueError
        If an argument is out of its domain, the shapes do not fit, or a value is larger than any float.

    References
    ----------
    Zou, Wu, Braverman, Gu and Kakade (2021), arXiv 2103.12692, bound both risks from the same recursion.

    Examples
    --------
    One weight and no noise: 1 - eta x^2 has the second moment 1 - 2 eta + 3 eta^2.

    >>> least_squares_risks([1.0], [1.0], noise=0.0, rate=0.5, batch_size=1, steps=2)
    SgdRisks(last=array([0.75  , 0.5625]), average=array([1.    , 0.6875]))
    """
    curvature, moment = positive("eigenvalues", eigenvalues), nonnegative("start", start)
    require(
        curvature.ndim == 1 and curvature.size > 0, "eigenvalues", "of shape (d,), d >= 1", curvature.shape
    )
    require(moment.shape == curvature.shape, "start", f"of shape {curvature.shape}", moment.shape)
    variance, step, size = together(
        noise=(nonnegative, noise), rate=(positive, rate), batch_size=(positive, batch_size)
    )
    mean = 1 - step[..., None] * curvature
    spread = (step**2 / size)[..., None] * curvature
    kept = mean**2 + spread * curvature
    # second moments of the sum of all weights so far, and of this sum with the weights
    total = cross = np.zeros_like(mean)
    # the first risk, before all steps, is not returned
    last, average = [moment @ curvature], list[Floats]()
    for count in range(1, integer("steps", steps, least=1, most=10**6) + 1):
        total = total + 2 * cross + moment
        cross = mean * (cross + moment)
        moment = kept * moment + spread * (last[-1] + variance)[..., None]
        last.append(moment @ curvature)
        average.append(total @ curvature / count**2)
    return SgdRisks(np.array(last[1:]), np.array(average))


@closed_form
def critical_batch_exponent(capacity: ArrayLike, source: ArrayLike, *, averaged: bool = True) -> Floats:
    r"""Power of the number of samples with which the critical batch size of one pass of SGD on least squares grows.

    With eigenvalues :math:`i^{-a}` and parts :math:`i^{-b}` of the variance of the labels, the best risk of a pass over
    D samples is reached up to a batch size of order :math:`D^{\max(0, 1 - a/b)}` by the average of the weights, and of
    order :math:`D^{(b-1)/(a+b-1)}` by the last weights, whatever the number of dimensions.

    Parameters
    ----------
    capacity
        a, above 1.
    source
        b, above 1; below 2a + 1 for the average, which from there on keeps too much of the first weights.
    averaged
        Whether the weights are averaged.

    Returns
    -------
    Exponent in [0, 1), of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Derived in docs/claims/noise_scale.md, H10. Zhang, Morwani, Vyas, Wu, Zou, Ghai, Foster and Kakade (2025), How does
    critical batch size scale in pre-training?, arXiv 2410.21676, study the average.

    Examples
    --------
    >>> critical_batch_exponent([1.5, 2.0, 3.0], [3.0, 3.0, 2.0]).round(3)
    array([0.5  , 0.333, 0.   ])
    >>> critical_batch_exponent([1.5, 2.0, 3.0], [3.0, 3.0, 2.0], averaged=False).round(3)
    array([0.571, 0.5  , 0.25 ])
    """
    a, b = together(capacity=(positive, capacity), source=(positive, source))
    require(a > 1, "capacity", "above 1", capacity)
    require(b > 1, "source", "above 1", source)
    if not flag("averaged", averaged):
        return (b - 1) / (a - 1 + b)
    require(b < 2 * a + 1, "source", "below 2 capacity + 1 for averages", source)
    return np.maximum(0.0, 1 - a / b)


def _spectrum(squared_norm: ArrayLike, largest: ArrayLike, smallest: ArrayLike) -> tuple[Floats, ...]:
    beta, top, bottom = together(
        squared_norm=(positive, squared_norm),
        largest=(positive, largest),
        smallest=(positive, smallest),
    )
    require(bottom <= top, "smallest", "at most largest", smallest)
    require(top <= beta, "largest", "at most squared_norm", largest)
    return beta, top, bottom
