r"""Learning rates of preconditioned steps, limited by an outlier or by the edge of the noise.

=========================  ==========================  =======================================================
name                       symbol                      Granziol, Zohren and Roberts (2022)
=========================  ==========================  =======================================================
`outlier_over_edge`        (x + 1/x)/2                 section 11, third line of eq. (26), corrected
`adaptive_limit`           sqrt(b) kappa/(sqrt(P) s)   section 11
``preconditioner``         kappa                       eigenvalue of the preconditioner in the bulk
``sigma``                  s                           as in `theory.batch_hessian`
=========================  ==========================  =======================================================

An eigenvalue lambda of the batch Hessian under an eigenvalue eta of the preconditioner limits the rate to
2 eta/lambda. The edge limits it, not outlier j, if (eta_j + delta)/(eta_edge + delta) exceeds
`outlier_over_edge`: that is above 1, so no damping delta brings it about.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory import batch_hessian
from theory._checks import Floats, nonnegative, positive, quiet, representable, together, whole
from theory.batch_hessian.sampling import noise_scale, with_sizes

__all__ = ["adaptive_limit", "outlier_over_edge"]


@quiet
def outlier_over_edge(
    eigenvalue: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Batch eigenvalue of Theorem 4 over the edge of its noise: (x + 1/x)/2 for :math:`x > 1`, else 1.

    With :math:`x = \lambda \sqrt{b} / (\sqrt{P} \sigma)`.

    Parameters
    ----------
    eigenvalue
        Eigenvalue of the full-data Hessian, positive.
    sigma, dim, batch_size, dataset_size
        As in `theory.batch_hessian.batch_eigenvalue`.

    Returns
    -------
    Ratio, at least 1, infinite without noise, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), third line of eq. (26): x + 1/x in our copy, whose edge lacks a factor 2.

    Examples
    --------
    >>> sizes = {"sigma": 0.5, "dim": 16, "dataset_size": float("inf")}
    >>> outlier_over_edge(2.0, batch_size=[1, 4], **sizes)
    array([1.  , 1.25])
    """
    size = {"sigma": sigma, "dim": dim, "batch_size": batch_size, "dataset_size": dataset_size}
    top = batch_hessian.batch_eigenvalue(positive("eigenvalue", eigenvalue), **size)
    top, edge = together(eigenvalue=top, batch_size=_edge(**size))
    return top / edge


@quiet
def adaptive_limit(
    preconditioner: ArrayLike,
    *,
    sigma: ArrayLike,
    dim: ArrayLike,
    batch_size: ArrayLike,
    dataset_size: ArrayLike,
) -> Floats:
    r"""Largest rate that the edge of the noise allows: :math:`\sqrt{b}\,\kappa / (\sqrt{P} \sigma)`.

    The edge is :math:`2 \sqrt{P/b}\,\sigma`; the exponent in b is 1/2 everywhere.

    Parameters
    ----------
    preconditioner
        :math:`\kappa > 0`, eigenvalue of the preconditioner (with its damping) in the bulk.
    sigma, dim, batch_size, dataset_size
        As in `theory.batch_hessian.batch_eigenvalue`.

    Returns
    -------
    Learning rate, infinite without noise and at B = N, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 11.

    Examples
    --------
    >>> adaptive_limit(0.5, sigma=0.25, dim=64, batch_size=[4, 16, 64], dataset_size=64).round(4)
    array([0.5164, 1.1547,    inf])
    """
    edge = _edge(sigma=sigma, dim=dim, batch_size=batch_size, dataset_size=dataset_size)
    own, edge = together(preconditioner=(positive, preconditioner), batch_size=edge)
    # no noise, no limit: 2 / inf is 0 and is replaced by infinity below
    bounded = np.where(edge > 0, edge, np.inf)
    rate = representable(2 * (own / bounded), preconditioner=preconditioner, sigma=sigma)
    return np.where(edge > 0, rate, np.inf)[()]


@quiet
def _edge(*, sigma: ArrayLike, dim: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    """End of the bulk of the noise, 2 sqrt(P/b) sigma."""
    sigma, dim, batch, rest = with_sizes(
        batch_size, dataset_size, sigma=(nonnegative, sigma), dim=(whole, dim)
    )
    return representable(2 * noise_scale(sigma, dim, batch, rest), sigma=sigma, dim=dim, batch_size=batch)
