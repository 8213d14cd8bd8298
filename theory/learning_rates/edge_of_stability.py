r"""Where gradient descent hovers when its rate is large for the curvature that it meets, with and without batches.

===========================  =======================================  ==================================================
name                         symbol                                   source
===========================  =======================================  ==================================================
`edge`                       S = 2/eta                                Cohen et al. (2021); Damian et al. (2023)
`oscillation`                E x^2 = 2 alpha/beta                     Damian et al. (2023), section 4, as a time mean
`sharpness_gap`              2/eta - S = eta beta sigma^2/(4 alpha)   Liao, Kolomvaki and Kyrillidis (2026)
`noise_kernel_norm`          K = sum eta l/(2 - eta l)/b              Agarwala and Pennington (2024), arXiv 2404.19261
`stationary_preconditioner`  P_i = sum_j |H_ij| / 2                   Cohen et al. (2025), arXiv 2410.24206, solved
===========================  =======================================  ==================================================

With x along the top eigenvector u of the Hessian and S its eigenvalue, descent with noise n_t of variance sigma^2 in
the gradient along u does, to leading order,

    x' = (1 - eta S) x + eta n,     S' = S + eta (alpha - beta x^2/2),

where alpha = -dS.dL, the progressive sharpening, and beta = |dS|^2, the self-stabilisation, are of the parts of the
gradients of S and of the loss L across u. A standing S needs E x^2 = 2 alpha/beta. What x^2 loses in a step at
S = 2/eta - y is 2 eta y x^2 to first order in eta y, and what it wins is eta^2 sigma^2: so that
y = eta sigma^2/(2 E x^2), the gap. It is a mean of y with weights x^2, exactly so up to (eta y)^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import Floats, closed_form, nonnegative, positive, require, together
from theory.batch_hessian.sampling import inverse_size

__all__ = ["edge", "noise_kernel_norm", "oscillation", "sharpness_gap", "stationary_preconditioner"]


@closed_form
def edge(rate: ArrayLike) -> Floats:
    r"""Largest eigenvalue of the Hessian at which gradient descent hovers, :math:`2/\eta`.

    Parameters
    ----------
    rate
        Learning rate eta, positive.

    Returns
    -------
    Eigenvalue, of the shape of the rate.

    Raises
    ------
    ValueError
        If a rate is not positive, or too small for its inverse to be a number.

    References
    ----------
    Cohen, Kaur, Li, Kolter and Talwalkar (2021), Gradient descent on neural networks typically occurs at the edge of
    stability, section 1.

    Examples
    --------
    >>> edge([0.1, 0.25])
    array([20.,  8.])
    """
    rate = positive("rate", rate)
    return 2 / rate


@closed_form
def oscillation(*, sharpening: ArrayLike, stabilisation: ArrayLike) -> Floats:
    r"""Mean squared move along the top eigenvector that holds its eigenvalue still, :math:`2\alpha/\beta`.

    Parameters
    ----------
    sharpening
        alpha = -dS.dL, positive.
    stabilisation
        beta = |dS|^2, positive.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the ratio too large or small for a number.

    References
    ----------
    Damian, Nichani and Lee (2023), Self-stabilization: the implicit bias of gradient descent at the edge of
    stability, section 4.

    Examples
    --------
    >>> float(oscillation(sharpening=0.5, stabilisation=8.0))
    0.125
    """
    alpha, beta = together(sharpening=(positive, sharpening), stabilisation=(positive, stabilisation))
    return 2 * (alpha / beta)


@closed_form
def sharpness_gap(
    rate: ArrayLike, *, noise: ArrayLike, sharpening: ArrayLike, stabilisation: ArrayLike
) -> Floats:
    r"""Distance below :math:`2/\eta` at which gradient noise holds the eigenvalue: :math:`\eta\beta\sigma^2/(4\alpha)`.

    Parameters
    ----------
    rate
        Learning rate eta, positive.
    noise
        sigma^2, the variance of the gradient of a batch along the top eigenvector, at least 0: that of a sample
        times 1/B - 1/N.
    sharpening, stabilisation
        As in `oscillation`.

    Returns
    -------
    2/eta - S, of the broadcast shape. The derivation wants it small against 2/eta, which is not checked.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the gap too large for a number.

    References
    ----------
    Liao, Kolomvaki and Kyrillidis (2026), SGD at the edge of stability: the stochastic sharpness gap, arXiv
    2604.21016, abstract.

    Examples
    --------
    >>> float(sharpness_gap(0.25, noise=0.02, sharpening=0.1, stabilisation=40.0))
    0.5
    """
    rate, noise, alpha, beta = together(
        rate=(positive, rate),
        noise=(nonnegative, noise),
        sharpening=(positive, sharpening),
        stabilisation=(positive, stabilisation),
    )
    return rate * noise * (beta / alpha) / 4


@closed_form
def noise_kernel_norm(
    eigenvalues: ArrayLike, *, rate: ArrayLike, batch_size: ArrayLike, dataset_size: ArrayLike
) -> Floats:
    r"""Noise kernel norm of SGD on least squares, :math:`K = (1/B - 1/N) \sum_k \eta\lambda_k/(2 - \eta\lambda_k)`.

    SGD is stable in the mean square if K < 1 where :math:`\eta\lambda_1 < 2`, with many samples over which the
    eigenvectors of the kernel are spread evenly.

    Parameters
    ----------
    eigenvalues
        :math:`\lambda_k`, of the kernel J J'/N of all samples, one output each; not negative, shape (..., k).
    rate
        Learning rate eta, positive, below 2 over the largest eigenvalue.
    batch_size, dataset_size
        B and N, as in `theory.batch_hessian.effective_batch_size`.

    Returns
    -------
    K, of the broadcast shape of the leading axes and the other arguments.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `eigenvalues` has no last axis.

    Notes
    -----
    Residuals obey u' = u - eta G W u, with G of eigenvalues lambda_k and W the weights N/B of a batch. If the squares
    of the residuals are spread evenly over the samples, p_k = E (v_k'u)^2 becomes (1 - eta lambda_k)^2 p_k plus
    (1/B - 1/N) eta^2 lambda_k^2 sum_l p_l. A standing p has p_k = (1/B - 1/N) eta lambda_k/(2 - eta lambda_k) sum_l
    p_l; summed over k this is K = 1.

    References
    ----------
    Agarwala and Pennington (2024), arXiv 2404.19261, whose abstract we read: the form is derived here.

    Examples
    --------
    Curvature spread evenly, where eta/(2B) times the trace is nearly all, and the same trace in one direction:

    >>> sizes = {"batch_size": 4, "dataset_size": float("inf")}
    >>> noise_kernel_norm([[1.0] * 40, [40.0, *[0.0] * 39]], rate=0.04, **sizes).round(3)
    array([0.204, 1.   ])
    """
    values = nonnegative("eigenvalues", eigenvalues)
    require(values.ndim >= 1, "eigenvalues", "of shape (..., k)", values.shape)
    rate = positive("rate", rate)
    product = np.expand_dims(rate, -1) * values
    require(product < 2, "rate", "below 2 over the largest eigenvalue", rate)
    summed, inverse = together(
        eigenvalues=(product / (2 - product)).sum(-1),
        batch_size=inverse_size("batch_size", batch_size, dataset_size),
    )
    return summed * inverse


@closed_form
def stationary_preconditioner(*, curvature: ArrayLike, coupling: ArrayLike) -> Floats:
    r"""Preconditioner :math:`P_i = \sqrt{\nu_i}/\eta` of RMSprop at a minimum, :math:`\sum_j|H_{ij}|/2`.

    It solves min tr P over diagonal P with H <= 2P, if some signs s of the weights make every s_i H_ij s_j of i != j
    nonnegative: then (2P - H) s = 0, where 2P - H is diagonally dominant, and tr(2P) >= s'Hs for every such P.

    Parameters
    ----------
    curvature
        H_ii, positive: second derivative by one weight.
    coupling
        Sum of |H_ij| over the other weights j, at least 0; broadcast against `curvature`.

    Returns
    -------
    P_i of the broadcast shape, in the unit of the curvature. It does not depend on the learning rate.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Cohen, Damian, Talwalkar, Kolter and Lee (2025), Understanding optimization in deep learning with central flows,
    arXiv 2410.24206: the convex program of the stationary preconditioner, without its term in the gradient, which is
    0 at a minimum. The solution is derived above.

    Examples
    --------
    The Hessian [[3, -0.8], [-0.8, 1.2]]:

    >>> stationary_preconditioner(curvature=[3.0, 1.2], coupling=0.8)
    array([1.9, 1. ])
    """
    curvature, coupling = together(curvature=(positive, curvature), coupling=(nonnegative, coupling))
    return (curvature + coupling) / 2
