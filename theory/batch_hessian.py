r"""How much sharper the Hessian of a mini-batch is than that of the whole data set.

=============================  ======================  =====================================================
name                           symbol                  Granziol, Zohren and Roberts (2022)
=============================  ======================  =====================================================
``batch_size``                 B                       samples of a batch, without replacement; may be real
``dataset_size``               N                       samples of the data set; may be infinite
``dim``                        P                       number of parameters
`effective_batch_size`         b, 1/b = 1/B - 1/N      Theorem 4, footnote 3
``eigenvalue``                 lambda_1, lambda_P      of the full-data matrix H_emp or G_emp
``sigma``                      sigma                   standard deviation over samples of one Hessian element,
                                                       averaged in the square over the elements
`element_fluctuation`          E eps_jk^2              eq. (5)
`batch_eigenvalue`             lambda_1', lambda_P'    Theorem 4, eq. (9)
`batch_overlap`                |phi_1'^T phi_1|^2      Theorem 10, eq. (44)
`batch_ggn_eigenvalue`         lambda_1'               Theorem 7, eq. (16), repaired
`crossover_batch_size`         P sigma^2/lambda_1^2    section 10.1
=============================  ======================  =====================================================

At B = N the batch is the data set and every eigenvalue here is the full-data one, exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import outliers
from theory._checks import finite, nonnegative, positive, representable, require, together

__all__ = [
    "batch_eigenvalue",
    "batch_ggn_eigenvalue",
    "batch_overlap",
    "crossover_batch_size",
    "effective_batch_size",
    "element_fluctuation",
    "element_variance",
    "second_order_eigenvalue",
]

Floats = NDArray[np.float64]


@np.errstate(over="ignore")
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
    batch, rest = _sizes(batch_size, dataset_size)
    b = representable(batch / np.where(rest > 0, rest, 1.0), batch_size=batch_size)
    return np.where(rest > 0, b, np.inf)[()]


@np.errstate(over="ignore")
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
    batch, rest = _sizes(batch_size, dataset_size)
    variance = nonnegative("variance", variance)
    variance, batch, rest = together(variance=variance, batch_size=batch, dataset_size=rest)
    return representable(_over(variance, batch, rest), variance=variance, batch_size=batch)


def batch_eigenvalue(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Extreme eigenvalue of the mini-batch Hessian: :math:`\lambda + (P/b) \sigma^2/\lambda`, or the edge.

    The edge is :math:`\pm 2 s` with :math:`s = \sqrt{P/b}\, \sigma`, and holds for :math:`|\lambda| \le s`.

    Parameters
    ----------
    eigenvalue
        Extreme eigenvalue of the full-data Hessian; a negative one is the smallest and moves down.
    sigma
        Standard deviation of one element of a per-sample Hessian, averaged in the square over elements; >= 0.
    dim
        P, an integer >= 1.
    batch_size, dataset_size
        B and N, as in `effective_batch_size`.

    Returns
    -------
    Eigenvalue in the unit of the Hessian, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Notes
    -----
    Assumes noise that is independent of the eigenvectors, equal over the elements and of high rank
    (B times the rank of a per-sample Hessian well above P). Networks break all three: there it is too low.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 4, eq. (9).

    Examples
    --------
    >>> batch_eigenvalue(2.0, sigma=0.25, dim=256, batch_size=[1, 5, 10], dataset_size=10).round(3)
    array([7.589, 2.8  , 2.   ])
    """
    return _noisy(eigenvalue, sigma, dim, batch_size, dataset_size).eigenvalue


def batch_overlap(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Squared overlap of the extreme eigenvectors of batch and full data: :math:`1 - s^2/\lambda^2`, or 0.

    Parameters
    ----------
    eigenvalue, sigma, dim, batch_size, dataset_size
        As in `batch_eigenvalue`.

    Returns
    -------
    Overlap in [0, 1], 0 for :math:`|\lambda| \le s = \sqrt{P/b}\, \sigma`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 10, eq. (44); Lemma 11, eq. (45), reads 2 s in our copy.

    Examples
    --------
    >>> float(batch_overlap(2.0, sigma=0.125, dim=64, batch_size=1, dataset_size=float("inf")))
    0.75
    """
    return _noisy(eigenvalue, sigma, dim, batch_size, dataset_size).overlap


@np.errstate(over="ignore")
def batch_ggn_eigenvalue(
    eigenvalue: ArrayLike,
    *,
    variance: ArrayLike,
    dim: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Top eigenvalue of a mini-batch Gauss-Newton matrix of a spike plus isotropic per-sample noise.

    Per-sample matrices :math:`\lambda v v^\top + g_i g_i^\top` with g of variance :math:`\sigma^2` per
    component. The full-data eigenvalue already holds the mean :math:`\sigma^2` of the noise, so the spike is
    :math:`\lambda_1 - \sigma^2`, and the batch adds a Wishart matrix of aspect ratio P/b to it. What the
    noise adds to :math:`\lambda_1` beyond its mean, of order P/N, is left out: for P of the order of N the
    result is low (by 3 % at P/N = 0.08 near the threshold).

    Parameters
    ----------
    eigenvalue
        Top eigenvalue of the full-data matrix, >= 0.
    variance
        :math:`\sigma^2 \ge 0` in the unit of the eigenvalue: variance of a component of g, not of a matrix
        element (for Wishart noise that is :math:`\sigma^4` per sample).
    dim
        P, an integer >= 1.
    batch_size, dataset_size
        B and N, as in `effective_batch_size`.

    Returns
    -------
    Eigenvalue, of the broadcast shape: the outlier, or the edge :math:`\sigma^2 (1 + \sqrt{P/b})^2`, or at
    B = N the full-data eigenvalue.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 7, eq. (16). In our copy the outlier starts from lambda_1,
    which leaves lambda_1 + sigma^2 at B = N, and the edge reads 2 sigma^2 (1 + P/b).

    Examples
    --------
    >>> size = {"dim": 100, "dataset_size": 10**4}
    >>> batch_ggn_eigenvalue(5.0, variance=1.0, batch_size=[1, 100, 10**4], **size).round(3)
    array([120.989,   5.329,   5.   ])
    """
    eigenvalue, variance = nonnegative("eigenvalue", eigenvalue), nonnegative("variance", variance)
    batch, rest = _sizes(batch_size, dataset_size)
    eigenvalue, variance, dim, batch, rest = together(
        eigenvalue=eigenvalue, variance=variance, dim=_dimension(dim), batch_size=batch, dataset_size=rest
    )
    q = np.where(rest > 0, dim * (rest / batch), 1.0)
    largest = eigenvalue + np.sqrt(variance) * (1 + np.sqrt(q)) * np.sqrt(variance) * (1 + np.sqrt(q))
    representable(largest, eigenvalue=eigenvalue, variance=variance, dim=dim, batch_size=batch)
    spike = np.maximum(eigenvalue - variance, 0.0)
    top = outliers.additive_wishart(spike, q=np.where(q > 0, q, 1.0), variance=variance).eigenvalue
    return np.where((rest > 0) & (q > 0), top, eigenvalue)[()]


@np.errstate(over="ignore")
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
    batch, rest = _sizes(batch_size, dataset_size)
    eigenvalue, coefficient, batch, rest = together(
        eigenvalue=finite("eigenvalue", eigenvalue),
        coefficient=finite("coefficient", coefficient),
        batch_size=batch,
        dataset_size=rest,
    )
    shifted = eigenvalue + _over(coefficient, batch, rest)
    return representable(shifted, eigenvalue=eigenvalue, coefficient=coefficient, batch_size=batch)


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
    Granziol, Zohren and Roberts (2022), Algorithm 1. In our copy the first sum lacks 1/N, the second term
    reads (v^T H v)^2, and the result stands for the variance itself.

    Examples
    --------
    >>> float(element_variance(0.5, dim=10))
    0.05
    """
    total, dim = together(total=nonnegative("total", total), dim=_dimension(dim))
    return (total / dim)[()]


@np.errstate(over="ignore", invalid="ignore")
def crossover_batch_size(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Batch size at which the extreme eigenvalue meets the bulk: :math:`b = P \sigma^2 / \lambda^2`, as B.

    Parameters
    ----------
    eigenvalue
        Extreme eigenvalue of the full-data Hessian, not 0.
    sigma, dim
        As in `batch_eigenvalue`.
    dataset_size
        N, positive, may be infinite.

    Returns
    -------
    :math:`B = b / (1 + b/N) < N`, 0 without noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 10.1.

    Examples
    --------
    >>> float(crossover_batch_size(0.5, sigma=0.125, dim=64, dataset_size=12))
    3.0
    """
    eigenvalue = finite("eigenvalue", eigenvalue)
    require(eigenvalue != 0, "eigenvalue", "non-zero", eigenvalue)
    eigenvalue, sigma, dim, total = together(
        eigenvalue=eigenvalue,
        sigma=nonnegative("sigma", sigma),
        dim=_dimension(dim),
        dataset_size=positive("dataset_size", dataset_size, infinite=True),
    )
    ratio = np.sqrt(dim) * (sigma / np.abs(eigenvalue))
    b = ratio * ratio
    # from the smaller of b and N, which holds where the other overflows
    batch = np.where(b <= total, b / (1 + b / total), total / (1 + total / np.where(b > 0, b, 1.0)))
    return representable(batch, eigenvalue=eigenvalue, sigma=sigma, dim=dim)


def _sizes(batch_size: ArrayLike, dataset_size: ArrayLike) -> tuple[Floats, Floats]:
    """B, and 1 - B/N exactly 0 at B = N: their quotient is 1/b, which may overflow where b does not."""
    batch, total = together(
        batch_size=positive("batch_size", batch_size),
        dataset_size=positive("dataset_size", dataset_size, infinite=True),
    )
    require(batch <= total, "batch_size", "at most dataset_size", batch_size)
    bounded = np.where(np.isfinite(total), total, 1.0)
    return batch, np.where(np.isfinite(total), (bounded - batch) / bounded, 1.0)


def _over(value: Floats, batch: Floats, rest: Floats) -> Floats:
    """`value` / b; 0 at B = N, even where `value` / B overflows."""
    return rest * (np.where(rest > 0, value, 0.0) / batch)


@np.errstate(over="ignore")
def _noisy(
    eigenvalue: ArrayLike, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> outliers.Outlier:
    """The extreme eigenvalue under noise whose bulk ends at twice s = sqrt(P/b) sigma."""
    batch, rest = _sizes(batch_size, dataset_size)
    eigenvalue, sigma, dim, batch, rest = together(
        eigenvalue=finite("eigenvalue", eigenvalue),
        sigma=nonnegative("sigma", sigma),
        dim=_dimension(dim),
        batch_size=batch,
        dataset_size=rest,
    )
    scale = np.sqrt(dim) * (np.sqrt(rest) * (np.where(rest > 0, sigma, 0.0) / np.sqrt(batch)))
    largest = np.abs(eigenvalue) + 2 * scale
    representable(largest, eigenvalue=eigenvalue, sigma=sigma, dim=dim, batch_size=batch)
    return outliers.additive_wigner(eigenvalue, sigma=scale)


def _dimension(dim: ArrayLike) -> Floats:
    value = finite("dim", dim)
    require((value >= 1) & (value == np.floor(value)), "dim", "an integer >= 1", dim)
    return value
