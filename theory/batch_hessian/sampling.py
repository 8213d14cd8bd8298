r"""Exact effects of drawing a batch on per-sample Hessians, without random matrices.

==================================  ========================  ================================================
name                                symbol                    Granziol, Zohren and Roberts (2022)
==================================  ========================  ================================================
``batch_size``                      B                         samples of a batch, without replacement
``dataset_size``                    N                         samples of the data set; may be infinite
`effective_batch_size`              b, 1/b = 1/B - 1/N        Theorem 4, footnote 3
`element_fluctuation`               E eps_jk^2                eq. (5)
`finite_population_fluctuation`     E eps_jk^2                eq. (5), variances as Algorithm 1 divides them
`element_skewness`                                            Lemma 2, how far it is from a normal law
`element_variance`                  sigma^2                   Algorithm 1
`noise_bound`                       L                         Lemma 1, corrected
`second_order_coefficient`          a                         not in the paper
`second_order_eigenvalue`           lambda_1 + a/b            not in the paper
==================================  ========================  ================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Check,
    Floats,
    closed_form,
    finite,
    flag,
    nonnegative,
    positive,
    quiet,
    representable,
    require,
    together,
    unbounded,
    whole,
)


@quiet
def effective_batch_size(batch_size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    r"""Size b of a batch drawn with replacement that fluctuates as much: :math:`1/b = 1/B - 1/N`.

    Parameters
    ----------
    batch_size
        B, positive, at most N; need not be whole.
    dataset_size
        N, positive; ``math.inf`` gives b = B.

    Returns
    -------
    b, infinite at B = N, of the broadcast shape.

    Raises
    ------
    ValueError
        If a size is not positive, `batch_size` exceeds `dataset_size`, or b is larger than any float.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 4 and its footnote.

    Examples
    --------
    >>> effective_batch_size([1.0, 50.0, 100.0], 100.0)
    array([  1.01010101, 100.        ,          inf])
    """
    batch, rest = checked_sizes(batch_size, dataset_size)
    b = representable(batch / np.where(rest > 0, rest, 1.0), batch_size=batch_size)
    return np.where(rest > 0, b, np.inf)[()]


@closed_form
def element_fluctuation(*, variance: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    r"""Expected square of one element of :math:`\epsilon = H_{batch} - H_{emp}`: :math:`(1/B - 1/N) S^2`.

    Parameters
    ----------
    variance
        :math:`S^2 \ge 0`, variance of that element over the samples. Exact for a fixed data set if S^2
        divides by N - 1, and for a redrawn data set if it is the variance of the population. A variance that
        divides by N must be multiplied by N/(N - 1) first.
    batch_size, dataset_size
        B and N, as in `effective_batch_size`.

    Returns
    -------
    Mean square, of the broadcast shape.

    Raises
    ------
    ValueError
        If `variance` is negative or not finite, or a size is refused by `effective_batch_size`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (5).

    Examples
    --------
    >>> float(element_fluctuation(variance=2.0, batch_size=2, dataset_size=4))
    0.5
    """
    variance, batch, rest = with_sizes(batch_size, dataset_size, variance=(nonnegative, variance))
    return over(variance, batch, rest)


@closed_form
def finite_population_fluctuation(
    *, variance: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike, replacement: bool = False
) -> Floats:
    r"""Expected square of one element of :math:`\epsilon`, for a fixed data set and its own variance.

    Without replacement :math:`\sigma_N^2 (N - B) / (B (N - 1))`, with it :math:`\sigma_N^2 / B`.

    Parameters
    ----------
    variance
        :math:`\sigma_N^2 \ge 0`, variance of that element over the data set, which divides by N as Algorithm 1
        does. `element_fluctuation` takes the one that divides by N - 1.
    batch_size
        B, positive; without replacement at most N.
    dataset_size
        N, at least 1; may be infinite.
    replacement
        Whether a sample can be drawn again.

    Returns
    -------
    Mean square, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (5) and Algorithm 1. Cochran (1977), Sampling techniques, theorem
    2.2.

    Examples
    --------
    >>> size = {"batch_size": 2, "dataset_size": 4}
    >>> float(finite_population_fluctuation(variance=1.5, **size))
    0.5
    >>> float(finite_population_fluctuation(variance=1.5, replacement=True, **size))
    0.75
    """
    total = unbounded("dataset_size", dataset_size)
    require(total >= 1, "dataset_size", "at least 1", dataset_size)
    if flag("replacement", replacement):
        batch, rest = positive("batch_size", batch_size), np.float64(1.0)
    else:
        batch, rest = checked_sizes(batch_size, total)
        one_less = np.where(np.isfinite(total) & (total > 1), total, 2.0) - 1
        # (1 - B/N) N/(N - 1); a data set of one sample has no variance
        rest = rest * np.where(np.isfinite(total) & (total > 1), 1 + 1 / one_less, 1.0)
    variance, batch, rest, _ = together(
        variance=(nonnegative, variance), batch_size=batch, dataset_size=np.asarray(rest), total=total
    )
    return over(variance, batch, rest)


@closed_form
def element_skewness(skewness: ArrayLike, *, batch_size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    r"""Skewness of one element of :math:`\epsilon`: :math:`\gamma (N - 2B) / \sqrt{N B (N - B)}`.

    The normal limit of an element is reached like :math:`B^{-1/2}`, and not from one side: a batch of more
    than half the data set is skewed the other way.

    Parameters
    ----------
    skewness
        :math:`\gamma`, skewness of that element over the samples. Exact for a redrawn data set if it is that of
        the population, and for a fixed one if it is :math:`k_3 / k_2^{3/2}` of the unbiased cumulants.
    batch_size
        B, positive, below N: the full batch has no noise.
    dataset_size
        N, positive, may be infinite: :math:`\gamma / \sqrt B`.

    Returns
    -------
    Skewness of :math:`H_{batch} - H_{emp}`, of the broadcast shape; its negative is that of eq. (7).

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Lemma 2, eq. (7), which claims the limit only.

    Examples
    --------
    >>> element_skewness(2.0, batch_size=[8, 16, 24], dataset_size=32).round(3)
    array([ 0.408,  0.   , -0.408])
    """
    gamma, batch, rest = with_sizes(batch_size, dataset_size, skewness=(finite, skewness))
    require(rest > 0, "batch_size", "below dataset_size", batch_size)
    # (N - 2B) / sqrt(N (N - B)), in the share 1 - B/N
    return (2 * rest - 1) / np.sqrt(rest) * (gamma / np.sqrt(batch))


def element_variance(total: ArrayLike, *, dim: ArrayLike) -> Floats:
    r"""Variance of one Hessian element from the quantity that random probes estimate.

    Parameters
    ----------
    total
        :math:`E_v[\frac1N \sum_i |H_i v|^2 - |\bar H v|^2] = P \sigma^2 \ge 0`, v uniform on the unit sphere.
    dim
        P, an integer >= 1.

    Returns
    -------
    sigma^2, the mean over the elements of their variance (dividing by N), of the broadcast shape.

    Raises
    ------
    ValueError
        If `total` is negative or not finite, or `dim` not an integer >= 1.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Algorithm 1. In our copy the first sum lacks 1/N and the second
    term reads (v^T H v)^2; from the result, P sigma^2, the variance per element is inferred (section 8.2).

    Examples
    --------
    >>> float(element_variance(0.5, dim=10))
    0.05
    """
    total, dim = together(total=(nonnegative, total), dim=(whole, dim))
    return total / dim


@closed_form
def noise_bound(
    norm: ArrayLike, *, batch_size: ArrayLike, dataset_size: ArrayLike, semidefinite: bool = False
) -> Floats:
    r"""Largest possible spectral norm of :math:`\epsilon`, and of each of its elements: :math:`2 L (1 - B/N)`.

    No batch of any data set exceeds it, and with N - B samples at -L it is attained; for positive
    semidefinite Hessians it is :math:`L (1 - B/N)`.

    Parameters
    ----------
    norm
        :math:`L \ge 0`, bound of the spectral norm of every per-sample Hessian. That of their mean is not enough:
        samples of opposite curvature cancel in it.
    batch_size, dataset_size
        B and N, as in `effective_batch_size`.
    semidefinite
        Whether every per-sample Hessian is positive semidefinite.

    Returns
    -------
    Bound in the unit of the Hessian, of the broadcast shape; 0 at B = N.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Lemma 1, where the bound is sqrt(P) L with L of the mean Hessian.

    Examples
    --------
    >>> float(noise_bound(1.0, batch_size=1, dataset_size=1000))
    1.998
    """
    norm, _, rest = with_sizes(batch_size, dataset_size, norm=(nonnegative, norm))
    return (1 if flag("semidefinite", semidefinite) else 2) * rest * norm


@closed_form
def second_order_coefficient(eigenvalues: ArrayLike, variances: ArrayLike) -> Floats:
    r"""Coefficient of 1/b in `second_order_eigenvalue`, from the spectrum and the noise along it.

    .. math:: a = \sum_{k > 1} \mathrm{Var}_i(v_k^\top H_i v_1) / (\lambda_1 - \lambda_k)

    Parameters
    ----------
    eigenvalues
        Full-data eigenvalues along the last axis: first that of :math:`v_1`, which must differ from every other;
        the order of the others is free. The lowest one first gives its (negative) coefficient.
    variances
        :math:`\mathrm{Var}_i(v_k^\top H_i v_1) \ge 0` over the samples, dividing by N - 1, in the same order. The
        first entry, the noise along v_1 itself, moves no mean and is not used.

    Returns
    -------
    a, of the shape of the leading axes.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the first eigenvalue is not simple.

    Examples
    --------
    >>> float(second_order_coefficient([2.0, 0.5, -1.0], [0.3, 0.6, 0.9]))
    0.7
    """
    eigenvalues = finite("eigenvalues", eigenvalues)
    require(eigenvalues.ndim >= 1 and eigenvalues.shape[-1] >= 1, "eigenvalues", "a vector", eigenvalues)
    eigenvalues, variances = together(eigenvalues=eigenvalues, variances=(nonnegative, variances))
    gaps = eigenvalues[..., :1] - eigenvalues[..., 1:]
    require(gaps != 0, "eigenvalues", "different from the first one in all other places", eigenvalues)
    return np.sum(variances[..., 1:] / np.where(gaps == 0, 1.0, gaps), axis=-1)


@closed_form
def second_order_eigenvalue(
    eigenvalue: ArrayLike, *, coefficient: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Expected extreme eigenvalue to second order in the fluctuation: :math:`\lambda_1 + a/b`.

    No random-matrix assumption: exact to first order in 1/b for any per-sample Hessians with
    :math:`a = \sum_{k > 1} \mathrm{Var}_i(v_k^\top H_i v_1) / (\lambda_1 - \lambda_k)`. With every variance
    equal to sigma^2 and lambda_k = 0 it is the outlier of `batch_eigenvalue`.

    Parameters
    ----------
    eigenvalue
        Simple eigenvalue of the full-data Hessian.
    coefficient
        a, same unit; negative for the lowest eigenvalue.
    batch_size, dataset_size
        B and N, as in `effective_batch_size`.

    Returns
    -------
    Eigenvalue, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> float(second_order_eigenvalue(2.0, coefficient=3.0, batch_size=4, dataset_size=12))
    2.5
    """
    eigenvalue, coefficient, batch, rest = with_sizes(
        batch_size, dataset_size, eigenvalue=(finite, eigenvalue), coefficient=(finite, coefficient)
    )
    return eigenvalue + over(coefficient, batch, rest)


def checked_sizes(
    batch_size: ArrayLike, dataset_size: ArrayLike, name: str = "batch_size"
) -> tuple[Floats, Floats]:
    """Return B and 1 - B/N, whose quotient is 1/b."""
    batch, total = together(**{name: (positive, batch_size), "dataset_size": (unbounded, dataset_size)})
    require(batch <= total, name, "at most dataset_size", batch_size)
    # two numbers, since 1/b may overflow where b does not
    return batch, share_left(batch, total)


def share_left(part: Floats, total: Floats) -> Floats:
    """1 - part / total, with all its digits where both are near each other; the total may be infinite."""
    bounded = np.where(np.isfinite(total), total, 1.0)
    return np.where(np.isfinite(total), (bounded - part) / bounded, 1.0)


def with_sizes(
    batch_size: ArrayLike, dataset_size: ArrayLike, **arguments: Floats | tuple[Check, ArrayLike]
) -> tuple[Floats, ...]:
    """Return the arguments, B and 1 - B/N, checked and broadcast to one shape."""
    batch, rest = checked_sizes(batch_size, dataset_size)
    return together(**arguments, batch_size=batch, dataset_size=rest)


@quiet
def inverse_size(name: str, size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    """1/b of a batch size, 0 at B = N."""
    batch, rest = checked_sizes(size, dataset_size, name)
    return representable(rest / batch, **{name: size})


def joined_sizes(b: Floats, total: Floats) -> Floats:
    """Return the batch size B with 1/B - 1/N = 1/b."""
    # divided by the larger of b and N, which may be infinite
    return np.where(b <= total, b / (1 + b / total), total / (1 + total / np.where(b > 0, b, 1.0)))


def over(value: Floats, batch: Floats, rest: Floats) -> Floats:
    """Return `value` / b."""
    # 0 at B = N, even where `value` / B overflows
    return rest * (np.where(rest > 0, value, 0.0) / batch)


def noise_scale(sigma: Floats, dim: Floats, batch: Floats, rest: Floats) -> Floats:
    """Half the edge of the noise, s = sqrt(P/b) sigma, for B and 1 - B/N as `checked_sizes` gives them."""
    # root by root: squares and P / b may overflow where s does not
    return np.sqrt(dim) * (np.sqrt(rest) * (np.where(rest > 0, sigma, 0.0) / np.sqrt(batch)))
