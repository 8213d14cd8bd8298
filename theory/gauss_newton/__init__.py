r"""The Gauss-Newton matrix of a classifier under a random model of its logit gradients.

==========================  =========================================================  ===================
name                        symbol                                                     where
==========================  =========================================================  ===================
``sigma_c``                 :math:`\sigma_c`, of the class means :math:`c_k`           Section 4
``sigma_e``                 :math:`\sigma_e`, of the residuals :math:`e_k^\mu`         Section 4
``dim``                     d, number of (projected) parameters                        Section 4
``gamma``                   :math:`\Gamma_p`, see `theory.softmax`                     Section 4
``expected_eigenvalues``    :math:`\lambda_i(\mathrm{E}\, G)`                          Eq. (7), Appendix B
``expected_excess``         :math:`\mathrm{Tr} / \|\cdot\|_F` of :math:`\mathrm{E}\,G` Eq. (8)
``finite_sample_excess``    the same of G itself, N samples                            beyond the paper
==========================  =========================================================  ===================

Equations and sections are those of Vysogorets, Dawid and Kempe (2024). The model: logit k of sample
:math:`\mu` has the gradient :math:`c_k + e_k^\mu` in :math:`\mathbb{R}^d`, with class means
:math:`c_k \sim N(0, \sigma_c^2 I)` common to all samples and residuals
:math:`e_k^\mu \sim N(0, \sigma_e^2 I)` independent of the probabilities. The class means are taken as
orthogonal and of equal length, :math:`|c_k|^2 = d \sigma_c^2`. Only their differences act on the curvature,
and these fit into d >= K - 1 dimensions. Both scales are standard deviations per component.

Offered here too: the two parts of a Hessian without any model (`theory.gauss_newton.split`, Eqs. (3) and (4)), the
excess of positive curvature (`excess`, Eq. (2)), gradients of the model (`gradients`, Eq. (9)), what a random subspace
shows of any matrix (`projection`), and Hutchinson's probes (`probes`, Appendix F).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks, softmax
from theory.gauss_newton._scales import at_least_one, both_scales
from theory.gauss_newton.excess import excess_ceiling, hessian_excess, largest_excess, spectrum_excess
from theory.gauss_newton.gradients import (
    expected_gradient_norm,
    expected_gradient_weights,
    gradient_scatter,
    squared_gradient_norm,
)
from theory.gauss_newton.probes import normal_probe_variance, sign_probe_variance
from theory.gauss_newton.projection import (
    ProjectedMoments,
    excess_noise_floor,
    frame_overlap,
    haar_moments,
    projected_excess,
    sparse_moments,
)
from theory.gauss_newton.split import HessianTerms, gauss_newton_trace, hessian_terms, loss_gradient

__all__ = [
    "HessianTerms",
    "ProjectedMoments",
    "excess_ceiling",
    "excess_noise_floor",
    "expected_eigenvalues",
    "expected_excess",
    "expected_gradient_norm",
    "expected_gradient_weights",
    "finite_sample_excess",
    "frame_overlap",
    "gauss_newton_trace",
    "gradient_scatter",
    "haar_moments",
    "hessian_excess",
    "hessian_terms",
    "largest_excess",
    "loss_gradient",
    "normal_probe_variance",
    "projected_excess",
    "sign_probe_variance",
    "sparse_moments",
    "spectrum_excess",
    "squared_gradient_norm",
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
    c, e = both_scales(sigma_c, sigma_e)
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
    g = at_least_one("gamma", gamma)
    c, e = both_scales(sigma_c, sigma_e)
    g, d, c, e = _checks.together(gamma=g, dim=_checks.whole("dim", dim), sigma_c=c, sigma_e=e)
    root = np.sqrt(d)
    largest = np.maximum(c, e)
    cc, ee = np.square(c / largest), np.square(e / largest)
    return root * (cc + ee) / np.hypot(np.sqrt(ee * (ee + 2.0 * cc)), root * cc / g)


def finite_sample_excess(
    gamma: ArrayLike,
    separate_gamma: ArrayLike,
    *,
    dim: ArrayLike,
    sigma_c: ArrayLike,
    sigma_e: ArrayLike,
    orthogonal: bool = False,
) -> Floats:
    r"""Excess of the Gauss-Newton matrix of a finite sample: mean trace over root mean square norm.

    .. math:: \frac{\sqrt{d}\,s}{\sqrt{s^2 + (d+1)\,[\sigma_c^4\,\bar\Gamma^{-2}
              + (s^2 - \sigma_c^4)\,\Gamma_\oplus^{-2}]}}, \quad s = \sigma_c^2 + \sigma_e^2

    Exact in the model for any number of samples and any probabilities, with Gaussian class means. One sample has
    :math:`\sqrt{d}/\sqrt{1 + (d+1)\Gamma^{-2}}`, whatever the scales. Where a few samples carry all the curvature
    (before the collapse to one-hot) :math:`\Gamma_\oplus` is small, and this stays far below `expected_excess`.

    Parameters
    ----------
    gamma
        :math:`\bar\Gamma \ge 1` of the mean softmax covariance, `theory.softmax.BatchGammas.mean`.
    separate_gamma
        :math:`\Gamma_\oplus \ge \bar\Gamma` of the covariances side by side, ``BatchGammas.separate``.
    dim
        Number of parameters d, a whole number >= 1.
    sigma_c, sigma_e
        Standard deviations per component, >= 0 and not both 0. Only their ratio matters.
    orthogonal
        Class means exactly orthogonal and of length :math:`\sqrt{d}\,\sigma_c` instead of Gaussian; then the radicand
        is :math:`(s^2 - \sigma_c^4)(1 + (d+1)\Gamma_\oplus^{-2}) + d\,\sigma_c^4\,\bar\Gamma^{-2}`, and
        `expected_excess` the limit of many samples.

    Returns
    -------
    Broadcast shape of all arguments.

    Raises
    ------
    ValueError
        If `gamma` is below 1, `separate_gamma` below `gamma`, `dim` not a whole number >= 1, a scale negative or not
        finite, both are 0, or `orthogonal` is not a bool.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), whose Section 4 compares Eq. (8), an infinite sample, with networks on
    a finite one. The moments are derived in `theory.derivations.zone`.

    Examples
    --------
    >>> finite_sample_excess(2.0, [2.0, 20.0, 1e9], dim=50, sigma_c=1.0, sigma_e=2.0).round(4)
    array([1.9069, 5.5344, 5.7544])
    """
    g, own = at_least_one("gamma", gamma), at_least_one("separate_gamma", separate_gamma)
    c, e = both_scales(sigma_c, sigma_e)
    g, own, d, c, e = _checks.together(
        gamma=g, separate_gamma=own, dim=_checks.whole("dim", dim), sigma_c=c, sigma_e=e
    )
    _checks.require(own >= g * (1.0 - 1e-12), "separate_gamma", "at least gamma", separate_gamma)
    largest = np.maximum(c, e)
    cc, ee = np.square(c / largest), np.square(e / largest)
    noise = ee * (ee + 2.0 * cc)
    shared, single = np.square(cc / g), noise * np.square(1.0 / own)
    if _checks.flag("orthogonal", orthogonal):
        return (cc + ee) / np.sqrt((noise + single) / d + shared + single)
    return (cc + ee) / np.sqrt((np.square(cc + ee) + shared + single) / d + shared + single)
