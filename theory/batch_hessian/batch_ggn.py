r"""How much sharper the Gauss-Newton matrix of a mini-batch is than that of the whole data set.

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
from numpy.typing import ArrayLike, NDArray

from theory import outliers
from theory._checks import nonnegative, representable, together
from theory.batch_hessian._batches import checked_sizes, dimension

__all__ = ["batch_ggn_eigenvalue", "batch_ggn_factor_eigenvalue"]

Floats = NDArray[np.float64]


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


@np.errstate(over="ignore")
def _batch(
    model: Callable[..., outliers.Outlier],
    eigenvalue: ArrayLike,
    variance: ArrayLike,
    dim: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    """Top eigenvalue of the spike eigenvalue - variance under a model of rectangular noise; itself at B = N."""
    eigenvalue, variance = nonnegative("eigenvalue", eigenvalue), nonnegative("variance", variance)
    batch, rest = checked_sizes(batch_size, dataset_size)
    eigenvalue, variance, dim, batch, rest = together(
        eigenvalue=eigenvalue, variance=variance, dim=dimension(dim), batch_size=batch, dataset_size=rest
    )
    q = np.where((rest > 0) & (variance > 0), dim * (rest / batch), 1.0)
    largest = eigenvalue + np.sqrt(variance) * (1 + np.sqrt(q)) * np.sqrt(variance) * (1 + np.sqrt(q))
    representable(largest, eigenvalue=eigenvalue, variance=variance, dim=dim, batch_size=batch)
    spike = np.maximum(eigenvalue - variance, 0.0)
    top = model(spike, q=np.where(q > 0, q, 1.0), variance=variance).eigenvalue
    return np.where((rest > 0) & (q > 0), top, eigenvalue)[()]
