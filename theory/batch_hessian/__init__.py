r"""Eigenvalues of the Hessian of a mini-batch, compared with those of the whole data set.

=============================  ======================  =====================================================
name                           symbol                  Granziol, Zohren and Roberts (2022)
=============================  ======================  =====================================================
``batch_size``                 B                       samples of a batch, without replacement; may be real
``dataset_size``               N                       samples of the data set; may be infinite
``dim``                        P                       number of parameters
``eigenvalue``                 lambda_1, lambda_P      of the full-data matrix H_emp
``sigma``                      sigma                   standard deviation over samples of one Hessian element,
                                                       averaged in the square over the elements
`batch_eigenvalue`             lambda_1', lambda_P'    Theorem 4, eq. (9)
`batch_overlap`                |phi_1'^T phi_1|^2      Theorem 10, eq. (44)
`crossover_batch_size`         P sigma^2/lambda_1^2    section 10.1
`noise_free_eigenvalue`        lambda_1(H_true)        Remark 6, eq. (11)
`composed_batch_eigenvalue`    lambda_1'               Theorem 4 from it, eq. (11)
`low_rank_noise`               p(lambda)               in place of Theorem 3 where B times the rank is below P
=============================  ======================  =====================================================

At B = N the batch is the data set and every eigenvalue here is the full-data one, exactly. Beside these stand
the exact statements of `theory.batch_hessian.sampling` and the rank bounds of `theory.batch_hessian.ranks`, all by
name.

How much sharper the Gauss-Newton matrix of a mini-batch is than that of the whole data set:

==============================  ======================  ====================================================
name                            symbol                  Granziol, Zohren and Roberts (2022)
==============================  ======================  ====================================================
``eigenvalue``                  lambda_1                of the full-data matrix G_emp
``variance``                    sigma^2                 of one component of a per-sample factor g_i, in the
                                                        unit of the eigenvalue
`batch_ggn_eigenvalue`          lambda_1'               Theorem 7, eq. (16), repaired
`batch_ggn_factor_eigenvalue`   lambda_1'               the model of eq. (14), its realised spectrum
==============================  ======================  ====================================================

Both start from the spike lambda_1 - sigma^2, for the full-data eigenvalue holds the mean of the noise already,
and both give lambda_1 back at B = N.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from theory import outliers
from theory._checks import (
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    quiet,
    representable,
    require,
    scalar,
    shown,
    together,
    unbounded,
    whole,
    within,
)
from theory.batch_hessian.ranks import (
    dataset_rank_bound,
    ggn_rank_bound,
    sample_rank_bound,
    sample_rank_bound_of_paths,
    two_layer_rank_bound,
)
from theory.batch_hessian.sampling import (
    effective_batch_size,
    element_fluctuation,
    element_skewness,
    element_variance,
    finite_population_fluctuation,
    joined_sizes,
    noise_bound,
    noise_scale,
    second_order_coefficient,
    second_order_eigenvalue,
    with_sizes,
)
from theory.rmt.free_poisson import CompoundFreePoisson

__all__ = [
    "batch_eigenvalue",
    "batch_ggn_eigenvalue",
    "batch_ggn_factor_eigenvalue",
    "batch_overlap",
    "composed_batch_eigenvalue",
    "crossover_batch_size",
    "dataset_rank_bound",
    "effective_batch_size",
    "element_fluctuation",
    "element_skewness",
    "element_variance",
    "finite_population_fluctuation",
    "ggn_rank_bound",
    "low_rank_noise",
    "noise_bound",
    "noise_free_eigenvalue",
    "sample_rank_bound",
    "sample_rank_bound_of_paths",
    "second_order_coefficient",
    "second_order_eigenvalue",
    "two_layer_rank_bound",
]


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


@closed_form
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
    eigenvalue, sigma, dim, total = together(
        eigenvalue=(finite, eigenvalue),
        sigma=(nonnegative, sigma),
        dim=(whole, dim),
        dataset_size=(unbounded, dataset_size),
    )
    require(eigenvalue != 0, "eigenvalue", "non-zero", eigenvalue)
    # squared last: sigma^2 and lambda^2 may overflow where their ratio does not
    ratio = np.sqrt(dim) * (sigma / np.abs(eigenvalue))
    return joined_sizes(ratio * ratio, total)


@quiet
def noise_free_eigenvalue(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Extreme eigenvalue :math:`\lambda` of the expected Hessian, from that of a data set of N samples.

    The data set is a batch itself: :math:`\lambda_1 = \lambda + P \sigma^2/(N \lambda)`, solved for
    :math:`|\lambda| \ge s = \sqrt{P/N}\, \sigma`.

    Parameters
    ----------
    eigenvalue
        Extreme eigenvalue of the full-data Hessian, of either sign, at least 2 s in size: a smaller one lies in
        the bulk of its own noise and says nothing of :math:`\lambda`.
    sigma, dim
        As in `batch_eigenvalue`.
    dataset_size
        N, positive; infinite gives the eigenvalue itself.

    Returns
    -------
    Eigenvalue without noise, s at the end of the bulk, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `eigenvalue` lies in the bulk.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Remark 6, eq. (11), which states the variances only.

    Examples
    --------
    >>> noise_free_eigenvalue([2.0, 2.5, -2.5], sigma=0.125, dim=64, dataset_size=1).round(12)
    array([ 1.,  2., -2.])
    """
    eigenvalue, _, edge = _in_a_data_set(eigenvalue, sigma, dim, dataset_size)
    return _without_noise(eigenvalue, edge)


@quiet
def composed_batch_eigenvalue(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Extreme eigenvalue of the mini-batch Hessian when the data set has noise of its own.

    Theorem 4 at 1/B from `noise_free_eigenvalue`. `batch_eigenvalue`, which takes the full-data Hessian for the
    spike and 1/b for the noise, is lower by about
    :math:`(P/b) \sigma^2 \cdot P \sigma^2 / (N \lambda^3)`.

    Parameters
    ----------
    eigenvalue
        Extreme eigenvalue of the full-data Hessian, of either sign, at least :math:`2 \sqrt{P/N}\, \sigma` in size.
    sigma, dim, batch_size, dataset_size
        As in `batch_eigenvalue`.

    Returns
    -------
    Eigenvalue: the outlier, or the edge :math:`\pm 2 \sqrt{P/B}\, \sigma`, or at B = N the full-data eigenvalue.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `eigenvalue` lies in the bulk of the full-data noise.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Remark 6, eq. (11), with Theorem 4.

    Examples
    --------
    >>> size = {"dim": 400, "dataset_size": 2000}
    >>> composed_batch_eigenvalue(1.2, sigma=1.0, batch_size=[500, 2000], **size)
    array([1.8, 1.2])
    """
    eigenvalue, sigma, edge = _in_a_data_set(eigenvalue, sigma, dim, dataset_size)
    eigenvalue, sigma, dim, edge, batch, rest = with_sizes(
        batch_size, dataset_size, eigenvalue=eigenvalue, sigma=sigma, dim=(whole, dim), edge=edge
    )
    scale = np.sqrt(dim) * (sigma / np.sqrt(batch))
    largest = np.abs(eigenvalue) + 2 * scale
    representable(largest, eigenvalue=eigenvalue, sigma=sigma, dim=dim, batch_size=batch)
    top = outliers.additive_wigner(_without_noise(eigenvalue, edge), sigma=scale).eigenvalue
    # at B = N the full-data eigenvalue itself, free of rounding
    return np.where(rest > 0, top, eigenvalue)[()]


def low_rank_noise(
    *, rank: int, variance: float, dim: int, batch_size: float, positive_share: float = 0.5
) -> CompoundFreePoisson:
    r"""Spectrum of :math:`\epsilon` where per-sample Hessians have few eigenvalues of either sign.

    Per-sample matrices :math:`\sum_{k \le r} \pm g_k g_k^\top` with g of P components of variance
    :math:`\tau^2`: a batch adds B r directions of size :math:`\pm P \tau^2/B` in P dimensions. In the limit this
    is the compound free Poisson law of rate B r/P. It tends to the semicircle of Theorem 3, of variance
    :math:`P \sigma^2/B` with :math:`\sigma^2 = r \tau^4`, only for B r well above P: its kurtosis exceeds that
    of the semicircle by P/(B r).

    Parameters
    ----------
    rank
        r >= 1, rank of a per-sample Hessian.
    variance
        :math:`\tau^2`, variance of a component of g, in the unit of the Hessian.
    dim
        P, an integer >= 1.
    batch_size
        B, positive, of a data set that is much larger.
    positive_share
        Share of the directions with positive curvature; 1 for a Gauss-Newton matrix, whose noise is then a
        Marchenko-Pastur law of aspect ratio P/(B r) with its mean. Half of them cancel in the mean.

    Returns
    -------
    Law to be handed to `theory.outliers.additive` for the outliers in it.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 3, whose first condition such noise does not meet.

    Examples
    --------
    >>> law = low_rank_noise(rank=2, variance=0.04, dim=250, batch_size=50)
    >>> law.rate, law.jumps
    (0.4, (-0.2, 0.2))
    >>> excess = law.moment(4) / law.var() ** 2 - 2
    >>> round(excess, 12)
    2.5
    """
    directions, parameters = scalar("rank", rank, whole), scalar("dim", dim, whole)
    samples = scalar("batch_size", batch_size, positive)
    share = scalar("positive_share", within("positive_share", positive_share, 0.0, 1.0))
    size = scalar("variance", variance, positive) * (parameters / samples)
    rate = samples * (directions / parameters)
    try:
        return CompoundFreePoisson(rate=rate, jumps=(-size, size), weights=(1 - share, share))
    except ValueError as error:
        names, values = "rank, variance, dim, batch_size, positive_share", (rank, variance, dim, batch_size)
        raise ValueError(f"{names} must be within reach of the law ({error}), got {shown(values)}") from None


def _in_a_data_set(
    eigenvalue: ArrayLike, sigma: ArrayLike, dim: ArrayLike, dataset_size: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """An eigenvalue of the data set, sigma, and the end of the bulk of the data set's own noise."""
    eigenvalue, sigma, dim, total = together(
        eigenvalue=(finite, eigenvalue),
        sigma=(nonnegative, sigma),
        dim=(whole, dim),
        dataset_size=(unbounded, dataset_size),
    )
    edge = representable(2 * np.sqrt(dim) * (sigma / np.sqrt(total)), sigma=sigma, dim=dim)
    require(np.abs(eigenvalue) >= edge, "eigenvalue", "at least 2 sigma sqrt(dim/dataset_size)", eigenvalue)
    return eigenvalue, sigma, np.asarray(edge)


def _without_noise(eigenvalue: Floats, edge: Floats) -> Floats:
    """Return the larger root x of x + (edge/2)^2/x = eigenvalue."""
    ratio = edge / np.where(eigenvalue == 0, 1.0, np.abs(eigenvalue))
    # in factors: 1 - ratio^2 would cancel near the bulk
    return eigenvalue * ((1 + np.sqrt(1 - ratio) * np.sqrt(1 + ratio)) / 2)


@quiet
def _noisy(
    eigenvalue: ArrayLike, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> outliers.Outlier:
    """The extreme eigenvalue under noise whose bulk ends at twice s = sqrt(P/b) sigma."""
    eigenvalue, sigma, dim, batch, rest = with_sizes(
        batch_size,
        dataset_size,
        eigenvalue=(finite, eigenvalue),
        sigma=(nonnegative, sigma),
        dim=(whole, dim),
    )
    scale = noise_scale(sigma, dim, batch, rest)
    largest = np.abs(eigenvalue) + 2 * scale
    representable(largest, eigenvalue=eigenvalue, sigma=sigma, dim=dim, batch_size=batch)
    return outliers.additive_wigner(eigenvalue, sigma=scale)


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
    return _batch(outliers.additive_wishart, eigenvalue, variance, dim, batch_size, dataset_size)


def batch_ggn_factor_eigenvalue(
    eigenvalue: ArrayLike,
    *,
    variance: ArrayLike,
    dim: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Top eigenvalue of a mini-batch Gauss-Newton matrix whose factors hold signal and noise together.

    Per-sample matrices :math:`g_i g_i^\top` with :math:`g_i \sim N(0, \lambda v v^\top + \sigma^2 I)`: the cross
    terms of signal and noise do not vanish, so the batch is sharper than in `batch_ggn_eigenvalue`. The outlier
    is :math:`(\lambda + \sigma^2)(\lambda + q \sigma^2)/\lambda` with :math:`\lambda = \lambda_1 - \sigma^2` and
    q = P/b. As there, what the noise adds to :math:`\lambda_1` beyond its mean, of order P/N, is left out.

    Parameters
    ----------
    eigenvalue, variance, dim, batch_size, dataset_size
        As in `batch_ggn_eigenvalue`. With d_y outputs a sample has d_y - 1 factors and B, N count factors.

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
    Granziol, Zohren and Roberts (2022), eqs. (14), (15), which keep the expectation of the noise only.

    Examples
    --------
    >>> size = {"dim": 100, "dataset_size": 10**4}
    >>> batch_ggn_factor_eigenvalue(5.0, variance=1.0, batch_size=[1, 100, 10**4], **size).round(3)
    array([120.989,   6.238,   5.   ])
    """
    return _batch(outliers.information_plus_noise, eigenvalue, variance, dim, batch_size, dataset_size)


@quiet
def _batch(
    model: Callable[..., outliers.Outlier],
    eigenvalue: ArrayLike,
    variance: ArrayLike,
    dim: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    """Top eigenvalue of the spike eigenvalue - variance under a model of rectangular noise; itself at B = N."""
    eigenvalue, variance, dim, batch, rest = with_sizes(
        batch_size,
        dataset_size,
        eigenvalue=(nonnegative, eigenvalue),
        variance=(nonnegative, variance),
        dim=(whole, dim),
    )
    q = np.where((rest > 0) & (variance > 0), dim * (rest / batch), 1.0)
    # the refusal names these arguments; inside the model it would name others
    largest = eigenvalue + np.sqrt(variance) * (1 + np.sqrt(q)) * np.sqrt(variance) * (1 + np.sqrt(q))
    representable(largest, eigenvalue=eigenvalue, variance=variance, dim=dim, batch_size=batch)
    # the full-data eigenvalue includes the mean of the noise already
    spike = np.maximum(eigenvalue - variance, 0.0)
    top = model(spike, q=np.where(q > 0, q, 1.0), variance=variance).eigenvalue
    return np.where((rest > 0) & (q > 0), top, eigenvalue)[()]
