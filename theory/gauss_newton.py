r"""The Gauss-Newton matrix of a classifier under a random model of its logit gradients.

==========================  =========================================================  ===================
name                        symbol                                                     where
==========================  =========================================================  ===================
``sigma_c``                 :math:`\sigma_c`, of the class means :math:`c_k`           Section 4
``sigma_e``                 :math:`\sigma_e`, of the residuals :math:`e_k^\mu`         Section 4
``dim``                     d, number of (projected) parameters                        Section 4
``gamma``                   :math:`\Gamma_p`, see `theory.softmax`                     Section 4
``excess``                  :math:`\mathrm{Tr}(H) / \|H\|_F`                           Eq. (2)
``expected_eigenvalues``    :math:`\lambda_i(\mathrm{E}\, G)`                          Eq. (7), Appendix B
``expected_excess``         :math:`\mathrm{Tr} / \|\cdot\|_F` of :math:`\mathrm{E}\,G` Eq. (8)
``expected_gradient_norm``  :math:`\|\mathrm{E} \nabla_\theta \ell\|`                  Eq. (9)
``projected_excess``        :math:`r_d`                                                beyond the paper
``excess_noise_floor``      standard deviation of :math:`r_d` at zero trace            beyond the paper
``hessian_excess``          of :math:`H = G + \tilde H`                                beyond the paper
==========================  =========================================================  ===================

Equations and sections are those of Vysogorets, Dawid and Kempe (2024). The model: logit k of sample
:math:`\mu` has the gradient :math:`c_k + e_k^\mu` in :math:`\mathbb{R}^d`, with class means
:math:`c_k \sim N(0, \sigma_c^2 I)` common to all samples and residuals
:math:`e_k^\mu \sim N(0, \sigma_e^2 I)` independent of the probabilities. The class means are taken as
orthogonal and of equal length, :math:`|c_k|^2 = d \sigma_c^2`. Only their differences act on the curvature,
and these fit into d >= K - 1 dimensions. Both scales are standard deviations per component.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks, softmax

__all__ = [
    "excess_noise_floor",
    "expected_eigenvalues",
    "expected_excess",
    "expected_gradient_norm",
    "hessian_excess",
    "projected_excess",
]

Floats = NDArray[np.float64]


@np.errstate(over="ignore", invalid="ignore")
def expected_eigenvalues(p: ArrayLike, *, dim: int, sigma_c: ArrayLike, sigma_e: ArrayLike) -> Floats:
    r"""Eigenvalues of the expected Gauss-Newton matrix of one softmax output.

    :math:`t \sigma_e^2 + d \sigma_c^2 \tilde\lambda_i` for i < K and the bulk :math:`t \sigma_e^2` otherwise,
    with :math:`\tilde\lambda_i` the eigenvalues of :math:`M = \mathrm{diag}(p) - pp^\top` and
    :math:`t = \mathrm{Tr} M = 1 - |p|^2`. Entries of `p` that vanish leave fewer eigenvalues above the bulk.

    Parameters
    ----------
    p
        Probabilities, shape (..., K).
    dim
        Number of parameters d, at least K - 1.
    sigma_c, sigma_e
        Standard deviations per component, >= 0 and not both 0, broadcast against the leading axes of `p`.

    Returns
    -------
    Shape (..., dim), descending, in units of the squared scales.

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, `dim` is not a whole number >= K - 1 or too
        large for memory, a scale is negative or not finite, or both are 0.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (7) and Appendix B. At uniform `p` the outliers are
    :math:`(1 - 1/K) \sigma_e^2 + d \sigma_c^2 / K`; as our copy reads, they are 1/K, which is what M has.

    Examples
    --------
    >>> expected_eigenvalues([0.5, 0.25, 0.25], dim=4, sigma_c=1.0, sigma_e=2.0)
    array([4. , 3.5, 2.5, 2.5])
    """
    tilde = softmax.eigenvalues(p)
    size = tilde.shape[-1]
    d = _checks.integer("dim", dim, least=size - 1)
    c, e = _scales(sigma_c, sigma_e)
    trace, c, e = _checks.together(p=tilde.sum(axis=-1), sigma_c=c, sigma_e=e)
    _checks.fits("dim", 24 * max(trace.size, 1) * d, dim)
    bulk = (trace * e * e)[..., None]
    outliers = bulk + c[..., None] * (d * (c[..., None] * tilde[..., : size - 1]))
    _checks.representable(outliers, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)
    rest = np.broadcast_to(bulk, (*outliers.shape[:-1], d - size + 1))
    return np.concatenate([outliers, rest], axis=-1)


def expected_excess(gamma: ArrayLike, *, dim: ArrayLike, sigma_c: ArrayLike, sigma_e: ArrayLike) -> Floats:
    r"""Excess of positive curvature of the expected Gauss-Newton matrix.

    .. math:: \frac{\sqrt{d}\,(\sigma_c^2 + \sigma_e^2)}
              {\sqrt{\sigma_e^4 + 2\sigma_e^2\sigma_c^2 + d\,\sigma_c^4\,\Gamma^{-2}}}

    It is :math:`\Gamma` at :math:`\sigma_e = 0`, :math:`\sqrt{d}` at :math:`\sigma_c = 0`, and grows with d
    up to :math:`\Gamma (1 + \sigma_e^2/\sigma_c^2)`. It belongs to the expected matrix, a batch without end:
    a finite batch has less.

    Parameters
    ----------
    gamma
        :math:`\Gamma \ge 1` of the softmax covariance; of its mean matrix for a batch.
    dim
        Number of parameters d, a whole number >= 1. The model needs d >= K - 1; where
        :math:`\Gamma^2 > d` the formula exceeds the ceiling :math:`\sqrt{d}` of any d x d matrix.
    sigma_c, sigma_e
        Standard deviations per component, >= 0 and not both 0. Only their ratio matters.

    Returns
    -------
    Broadcast shape of all arguments.

    Raises
    ------
    ValueError
        If `gamma` is below 1 or not finite, `dim` is not a whole number >= 1, a scale is negative or not
        finite, or both are 0.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (8); as our copy reads, the last term of the denominator has
    :math:`\sigma_e^4`, which is the same only at :math:`\sigma_c = \sigma_e`.

    Examples
    --------
    >>> expected_excess(5**0.5, dim=[10, 50, 200], sigma_c=1.0, sigma_e=2.0).round(4)
    array([3.1009, 6.0634, 8.8388])
    """
    g = _checks.finite("gamma", gamma)
    _checks.require(g >= 1.0 - 1e-12, "gamma", "at least 1", gamma)
    c, e = _scales(sigma_c, sigma_e)
    g, d, c, e = _checks.together(gamma=g, dim=_dimension(dim), sigma_c=c, sigma_e=e)
    root = np.sqrt(d)
    largest = np.maximum(c, e)
    cc, ee = np.square(c / largest), np.square(e / largest)
    return root * (cc + ee) / np.hypot(np.sqrt(ee * (ee + 2.0 * cc)), root * cc / g)


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
    predicted = _checks.probabilities("mean_probability", mean_probability)
    actual = _checks.probabilities("prior", prior)
    classes = predicted.shape[-1]
    _checks.require(actual.shape[-1] == classes, "prior", f"over {classes} classes", actual.shape)
    predicted, actual = _checks.together(mean_probability=predicted, prior=actual)
    distance, d, c = _checks.together(
        mean_probability=np.hypot.reduce(predicted - actual, axis=-1),
        dim=_dimension(dim),
        sigma_c=_checks.nonnegative("sigma_c", sigma_c),
    )
    return _checks.representable(np.sqrt(d) * distance * c, dim=dim, sigma_c=sigma_c)


def projected_excess(excess: ArrayLike, *, dim: ArrayLike) -> Floats:
    r"""Excess seen in a random subspace, :math:`r \sqrt{d / (d + 1 + r^2)}` for r in the full space.

    For a Haar-random subspace of dimension d much smaller than the number of parameters P; it is the mean
    trace over the root mean square Frobenius norm of :math:`R^\top H R`, whatever the spectrum. It is
    less than r, and never reaches :math:`\sqrt{d}`.

    Parameters
    ----------
    excess
        :math:`r = \mathrm{Tr}(H) / \|H\|_F` in the full space, either sign.
    dim
        Dimension d of the subspace, a whole number >= 1.

    Returns
    -------
    Broadcast shape of `excess` and `dim`; relative error O(d/P).

    Raises
    ------
    ValueError
        If `excess` is not finite or `dim` is not a whole number >= 1.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), whose Section 4 and Appendix F compare the two quantities. From
    :math:`\mathrm{E}\,\mathrm{Tr} = (d/P)\,\mathrm{Tr} H` and
    :math:`\mathrm{E}\|R^\top H R\|_F^2 \to (d/P^2)\,[(d+1)\,\mathrm{Tr}(H^2) + (\mathrm{Tr} H)^2]`.

    Examples
    --------
    >>> projected_excess([3.0, 8.0], dim=50).round(3)
    array([2.739, 5.275])
    """
    r, d = _checks.together(excess=_checks.finite("excess", excess), dim=_dimension(dim))
    return np.sqrt(d) * (r / np.hypot(np.sqrt(d + 1.0), r))


def excess_noise_floor(dim: ArrayLike) -> Floats:
    r"""Standard deviation of the projected excess of a matrix of zero trace, :math:`\sqrt{2/(d+1)}`.

    What a random subspace of dimension d shows of a balanced spectrum: values within two of these of zero
    are no curvature at all. It is one draw of the subspace, not of the data, so that it shifts a whole curve.

    Parameters
    ----------
    dim
        Dimension d of the subspace, a whole number >= 1, much smaller than the number of parameters.

    Returns
    -------
    Shape of `dim`.

    Raises
    ------
    ValueError
        If `dim` is not a whole number >= 1.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024). Root of
    :math:`\mathrm{Var}\,\mathrm{Tr}(R^\top H R) = 2d\|H\|_F^2/P^2` over
    :math:`\mathrm{E}\|R^\top H R\|_F^2 = d(d+1)\|H\|_F^2/P^2`.

    Examples
    --------
    >>> excess_noise_floor(49)
    np.float64(0.2)
    """
    return np.sqrt(2.0 / (_dimension(dim) + 1.0))


def hessian_excess(gauss_newton_excess: ArrayLike, *, frobenius_ratio: ArrayLike) -> Floats:
    r"""Excess of the Hessian :math:`H = G + \tilde H` from that of its Gauss-Newton part G.

    :math:`\mathrm{exc}(G) / \sqrt{1 + \rho^2}` with :math:`\rho = \|\tilde H\|_F / \|G\|_F`. For a bias-free
    ReLU network in its full parameter space, where :math:`\mathrm{Tr}\,\tilde H = 0`; it neglects the inner
    product of the two parts, :math:`\mathrm{Tr}(G \tilde H)`, and nothing else.

    Parameters
    ----------
    gauss_newton_excess
        :math:`\mathrm{Tr}(G) / \|G\|_F`, >= 0.
    frobenius_ratio
        :math:`\rho \ge 0`, the ratio of Frobenius, not spectral norms.

    Returns
    -------
    Broadcast shape of both.

    Raises
    ------
    ValueError
        If an argument is negative or not finite.

    References
    ----------
    A sharper form of Vysogorets, Dawid and Kempe (2024), Eq. (6), which compares spectral norms; the two
    criteria differ by the stable rank of :math:`\tilde H`.

    Examples
    --------
    >>> hessian_excess(5.0, frobenius_ratio=0.75)
    np.float64(4.0)
    """
    excess, ratio = _checks.together(
        gauss_newton_excess=_checks.nonnegative("gauss_newton_excess", gauss_newton_excess),
        frobenius_ratio=_checks.nonnegative("frobenius_ratio", frobenius_ratio),
    )
    return excess / np.hypot(1.0, ratio)


def _dimension(dim: ArrayLike) -> Floats:
    d = _checks.finite("dim", dim)
    _checks.require((d >= 1) & (d == np.floor(d)), "dim", "a whole number >= 1", dim)
    return d


def _scales(sigma_c: ArrayLike, sigma_e: ArrayLike) -> tuple[Floats, Floats]:
    c, e = _checks.together(
        sigma_c=_checks.nonnegative("sigma_c", sigma_c), sigma_e=_checks.nonnegative("sigma_e", sigma_e)
    )
    _checks.require((c > 0) | (e > 0), "sigma_c and sigma_e", "not both 0", (sigma_c, sigma_e))
    return c, e
