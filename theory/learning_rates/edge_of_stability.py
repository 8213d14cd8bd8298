r"""Where gradient descent hovers when its rate is large for the curvature that it meets, with and without batches.

===========================  =======================================  ==================================================
name                         symbol                                   source
===========================  =======================================  ==================================================
`edge`                       S = 2/eta                                Cohen et al. (2021); Damian et al. (2023)
`oscillation`                E x^2 = 2 alpha/beta                     Damian et al. (2023), section 4, as a time mean
`sharpness_gap`              2/eta - S = eta beta sigma^2/(4 alpha)   Liao, Kolomvaki and Kyrillidis (2026)
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

from numpy.typing import ArrayLike

from theory._checks import Floats, closed_form, nonnegative, positive, together

__all__ = ["edge", "oscillation", "sharpness_gap", "stationary_preconditioner"]


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
