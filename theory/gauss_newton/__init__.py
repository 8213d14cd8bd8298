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

Offered here too: the two parts of a Hessian without any model and Hutchinson's probes (`theory.gauss_newton.split`),
and what a random subspace shows of any matrix (`theory.gauss_newton.projection`).

Excess of positive curvature: of a spectrum, its largest value, and of the two parts of a Hessian together.

====================  =====================================================  ====================================
name                  symbol                                                 Vysogorets, Dawid and Kempe (2024)
====================  =====================================================  ====================================
`spectrum_excess`     :math:`\mathrm{Tr}(H) / \|H\|_F`                       Eq. (2)
`largest_excess`      :math:`\sqrt{\mathrm{rank}\,H}`                         beyond the paper
`excess_ceiling`      of the expected G, for every dimension                 beside Figure 4, left
`hessian_excess`      of :math:`H = G + \tilde H`                            beyond the paper
====================  =====================================================  ====================================

Gradients of the loss under the random model of logit gradients: their mean, and what one sample adds to it.

==============================  =======================================================  =====================
name                            symbol                                                   Vysogorets, Dawid and
                                                                                         Kempe (2024)
==============================  =======================================================  =====================
`expected_gradient_weights`     :math:`\hat Q - Q`                                      Eq. (9)
`expected_gradient_norm`        :math:`\|\mathrm{E} \nabla_\theta \ell\|`            Eq. (9)
`squared_gradient_norm`         :math:`\mathrm{E} \|\nabla_\theta \ell\|^2`          beyond the paper
`gradient_scatter`              relative variance of :math:`\|\nabla\|^2`             beyond the paper
==============================  =======================================================  =====================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory import softmax
from theory._checks import (
    Floats,
    closed_form,
    distributions,
    finite,
    fits,
    flag,
    integer,
    nonnegative,
    quiet,
    require,
    together,
    whole,
    within,
)
from theory.gauss_newton.projection import (
    ProjectedMoments,
    excess_noise_floor,
    frame_overlap,
    haar_moments,
    projected_excess,
    sparse_moments,
)
from theory.gauss_newton.split import (
    HessianTerms,
    gauss_newton_trace,
    hessian_terms,
    loss_gradient,
    normal_probe_variance,
    sign_probe_variance,
)

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


@closed_form
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
    d = integer("dim", dim, least=size - 1)
    c, e = _both_scales(sigma_c, sigma_e)
    trace, c, e = together(p=tilde.sum(axis=-1), sigma_c=c, sigma_e=e)
    fits("dim", 24 * max(trace.size, 1) * d, dim)
    bulk = (trace * e * e)[..., None]
    # one factor at a time, since sigma_c^2 may overflow where the product does not
    outliers = bulk + c[..., None] * (d * (c[..., None] * tilde[..., : size - 1]))
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
    g, d, c, e = _model(gamma, dim, sigma_c, sigma_e)
    root = np.sqrt(d)
    largest = np.maximum(c, e)
    # relative to the larger scale, so that fourth powers neither overflow nor vanish
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
    c, e = _both_scales(sigma_c, sigma_e)
    g, own, d, c, e = together(
        gamma=(_at_least_one, gamma),
        separate_gamma=(_at_least_one, separate_gamma),
        dim=(whole, dim),
        sigma_c=c,
        sigma_e=e,
    )
    require(own >= g * (1.0 - 1e-12), "separate_gamma", "at least gamma", separate_gamma)
    largest = np.maximum(c, e)
    cc, ee = np.square(c / largest), np.square(e / largest)
    noise = ee * (ee + 2.0 * cc)
    shared, single = np.square(cc / g), noise * np.square(1.0 / own)
    scatter = noise if flag("orthogonal", orthogonal) else np.square(cc + ee) + shared
    return (cc + ee) / np.sqrt((scatter + single) / d + shared + single)


def _at_least_one(name: str, value: ArrayLike) -> Floats:
    """A Gamma, which rounding may leave just below 1."""
    found = finite(name, value)
    require(found >= 1.0 - 1e-12, name, "at least 1", value)
    return found


def _model(gamma: ArrayLike, dim: ArrayLike, sigma_c: ArrayLike, sigma_e: ArrayLike) -> tuple[Floats, ...]:
    c, e = _both_scales(sigma_c, sigma_e)
    return together(gamma=(_at_least_one, gamma), dim=(whole, dim), sigma_c=c, sigma_e=e)


def _both_scales(sigma_c: ArrayLike, sigma_e: ArrayLike) -> tuple[Floats, Floats]:
    """Standard deviations of class means and residuals, broadcast to one shape."""
    c, e = together(sigma_c=(nonnegative, sigma_c), sigma_e=(nonnegative, sigma_e))
    require((c > 0) | (e > 0), "sigma_c and sigma_e", "not both 0", (sigma_c, sigma_e))
    return c, e


def spectrum_excess(eigenvalues: ArrayLike) -> Floats:
    r"""Excess of positive curvature from all eigenvalues, :math:`\sum_i \lambda_i / (\sum_i \lambda_i^2)^{1/2}`.

    It is not the share of positive eigenvalues: a few large negative ones turn its sign.

    Parameters
    ----------
    eigenvalues
        All of them with their multiplicities, any order, not all zero, shape (..., P).

    Returns
    -------
    Shape (...), at most the root of the number of eigenvalues that are not zero.

    Raises
    ------
    ValueError
        If an eigenvalue is not finite, or all along the last axis are zero.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 2, Eq. (2).

    Examples
    --------
    >>> spectrum_excess([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -3.0]])
    array([2., 0.])
    """
    values = np.atleast_1d(finite("eigenvalues", eigenvalues))
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    require(largest > 0, "eigenvalues", "not all zero along the last axis", eigenvalues)
    # relative to the largest, so that squares neither overflow nor vanish
    shares = values / largest
    return shares.sum(axis=-1) / np.sqrt(np.square(shares).sum(axis=-1))


def largest_excess(rank: ArrayLike) -> Floats:
    r"""Largest excess of a symmetric matrix of a given rank, :math:`\sqrt{\mathrm{rank}}`, where all are equal.

    By the inequality of Cauchy and Schwarz. For the softmax covariance it is :math:`\Gamma_p \le \sqrt{K - 1}`.

    Parameters
    ----------
    rank
        Number of eigenvalues that are not zero, a whole number >= 1.

    Returns
    -------
    Shape of `rank`.

    Raises
    ------
    ValueError
        If `rank` is not a whole number >= 1.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Eq. (2).

    Examples
    --------
    >>> largest_excess([1, 9])
    array([1., 3.])
    """
    return np.sqrt(whole("rank", rank))


@quiet
def excess_ceiling(gamma: ArrayLike, *, dim: ArrayLike, sigma_c: ArrayLike, sigma_e: ArrayLike) -> Floats:
    r"""Upper bound on the excess of the expected G, :math:`\min(\Gamma (1 + \sigma_e^2/\sigma_c^2), \sqrt d)`.

    `theory.gauss_newton.expected_excess` grows with d towards the first, and no matrix of d dimensions has more than
    the second.

    Parameters
    ----------
    gamma
        :math:`\Gamma \ge 1` of the softmax covariance; of its mean matrix for a batch.
    dim
        Number of parameters d, a whole number >= 1.
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
    The limit of Vysogorets, Dawid and Kempe (2024), Eq. (8), as d grows; beside Figure 4, left.

    Examples
    --------
    >>> excess_ceiling(2.0, dim=[9, 400], sigma_c=1.0, sigma_e=2.0)
    array([ 3., 10.])
    """
    g, d, c, e = _model(gamma, dim, sigma_c, sigma_e)
    return np.minimum(g * (1.0 + np.square(e / c)), np.sqrt(d))


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
    excess, ratio = together(
        gauss_newton_excess=(nonnegative, gauss_newton_excess),
        frobenius_ratio=(nonnegative, frobenius_ratio),
    )
    return excess / np.hypot(1.0, ratio)


def expected_gradient_weights(mean_probability: ArrayLike, prior: ArrayLike) -> Floats:
    r"""Coefficients of the class means in the expected gradient of the loss, :math:`\hat Q_k - Q_k`.

    :math:`\mathrm{E}_e \nabla_\theta \ell = \sum_k c_k (\hat Q_k - Q_k)`: the residuals of the logit gradients
    average out, and what is left vanishes where the mean prediction matches the class frequencies.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, predicted probabilities averaged over the data, shape (..., K).
    prior
        Q, class frequencies, shape (..., K).

    Returns
    -------
    Shape (..., K); they add up to zero.

    Raises
    ------
    ValueError
        If an argument is not a probability vector along its last axis, or their K differ.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (9).

    Examples
    --------
    >>> expected_gradient_weights([0.75, 0.25], [0.5, 0.5])
    array([ 0.25, -0.25])
    """
    predicted, actual = distributions(mean_probability=mean_probability, prior=prior)
    return predicted - actual


@closed_form
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
    distance, d, c = together(
        mean_probability=_distance(mean_probability, prior),
        dim=(whole, dim),
        sigma_c=(nonnegative, sigma_c),
    )
    return np.sqrt(d) * distance * c


@closed_form
def squared_gradient_norm(
    mean_probability: ArrayLike,
    prior: ArrayLike,
    *,
    squared_error: ArrayLike,
    dim: ArrayLike,
    sigma_c: ArrayLike,
    sigma_e: ArrayLike,
    samples: ArrayLike,
) -> Floats:
    r"""Mean squared norm of the gradient over a finite sample, noise floor included.

    :math:`d\,\sigma_c^2\,\|\hat Q - Q\|^2 + (d\,\sigma_e^2 / N)\,\langle\|p - y\|^2\rangle`. The root against the
    distance is a hyperbola, not a line through 0. For one draw of Gaussian class means the first term scatters
    by the relative standard deviation :math:`\sqrt{2/d}`.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, predicted probabilities averaged over the sample, shape (..., K).
    prior
        Q, class frequencies in the sample, shape (..., K).
    squared_error
        :math:`\langle\|p - y\|^2\rangle` over the sample, y one-hot, in [0, 2]; 1 - 1/K at uniform `p`.
    dim
        Number of parameters d, a whole number >= 1.
    sigma_c, sigma_e
        Standard deviations per component of class means and residuals, >= 0 and not both 0.
    samples
        Size N of the sample, a whole number >= 1.

    Returns
    -------
    Shape (...), in the unit of the squared scales.

    Raises
    ------
    ValueError
        If `mean_probability` or `prior` is not a probability vector along its last axis, their K differ,
        `squared_error` is outside [0, 2], `dim` or `samples` is not a whole number >= 1, a scale is negative or not
        finite, or both are 0; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (9) for the first term; the second is not in the paper.

    Examples
    --------
    >>> uniform, size = [0.25] * 4, {"dim": 100, "sigma_c": 1.0, "sigma_e": 2.0}
    >>> squared_gradient_norm(uniform, uniform, squared_error=0.75, samples=300, **size)
    np.float64(1.0)
    """
    c, e = _both_scales(sigma_c, sigma_e)
    distance, error, d, c, e, n = together(
        mean_probability=_distance(mean_probability, prior),
        squared_error=within("squared_error", squared_error, 0.0, 2.0),
        dim=(whole, dim),
        sigma_c=c,
        sigma_e=e,
        samples=(whole, samples),
    )
    root = np.sqrt(d)
    # residuals add nothing without errors, also where infinity times zero would be NaN
    return np.square(root * distance * c) + np.square(root / np.sqrt(n) * np.where(error > 0, e, 0.0)) * error


def gradient_scatter(dim: ArrayLike) -> Floats:
    r"""Relative variance of the squared norm of the mean gradient over Gaussian class means, 2/d.

    :math:`\mathrm{Var}\,\|\nabla\|^2 = (2/d)\,(\mathrm{E}\,\|\nabla\|^2)^2`, whatever the probabilities and the
    scale: the gradient is Gaussian with d equal components. With orthogonal class means of one length it is 0.

    Parameters
    ----------
    dim
        Number of parameters d, a whole number >= 1.

    Returns
    -------
    Shape of `dim`.

    Raises
    ------
    ValueError
        If `dim` is not a whole number >= 1.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), who take the class means as orthogonal, after Eq. (9). It is the
    variance of a chi-squared variable with d degrees of freedom, over its squared mean.

    Examples
    --------
    >>> gradient_scatter([8, 50])
    array([0.25, 0.04])
    """
    return 2.0 / whole("dim", dim)


def _distance(mean_probability: ArrayLike, prior: ArrayLike) -> Floats:
    return np.hypot.reduce(expected_gradient_weights(mean_probability, prior), axis=-1)
