r"""Adam against the batch size, and where it loses its stability.

==================  ==========================================================  ===================================
name                symbol                                                      source
==================  ==========================================================  ===================================
`square_root_rule`  eta sqrt(k), 1 - k (1 - beta), eps/sqrt(k) from B to k B    Malladi, Lyu, Panigrahi, Arora (2022)
`adam_moments`      E x, E x^2 in the limit of that rule                        the same
`same_half_life`    beta_2^(B'/B)                                               Marek et al. (2025)
`half_life`         samples after which an average of squares keeps a half      the same
`sign_rate`         best rate of one step of sign descent, exactly              Li et al. (2024), before its expansion
`surge_scale`       B_noise of sign descent                                     Li et al. (2024)
`surge_rate`        eta_max/((sqrt(B_noise/B) + sqrt(B/B_noise))/2)             the same
`adaptive_edge`     (2 + 2 beta_1)/((1 - beta_1) eta), 38/eta at 0.9            Cohen et al. (2022)
==================  ==========================================================  ===================================

Adam takes x to x - eta m/(sqrt(v) + eps), m and v being averages of gradients and of their squares with the weights
(1 - beta) beta^k, each corrected for its start at 0. See docs/claims/adam_limit.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import (
    Floats,
    closed_form,
    finite,
    inside,
    integer,
    nonnegative,
    positive,
    quiet,
    representable,
    require,
    scalar,
    together,
    within,
)
from theory._roots import Later, special

__all__ = [
    "AdamMoments",
    "AdamSetting",
    "adam_moments",
    "adaptive_edge",
    "half_life",
    "same_half_life",
    "sign_rate",
    "square_root_rule",
    "surge_rate",
    "surge_scale",
]


integrate: Any = Later("scipy.integrate")
_FIRST = 1e-7
"""Share of the steps at which the equations of the moments begin: at 0 the corrected averages are 0/0."""


class AdamSetting(NamedTuple):
    """Rate, beta_1, beta_2 and epsilon."""

    rate: float
    momentum: float
    second: float
    damping: float


class AdamMoments(NamedTuple):
    """E x and E x^2."""

    mean: float
    square: float


@closed_form
def square_root_rule(
    growth: float, *, rate: float, momentum: float, second: float, damping: float
) -> AdamSetting:
    r"""Setting of Adam at a batch `growth` times as large, for the same path over the same samples.

    Parameters
    ----------
    growth
        kappa, positive: the larger batch size over the one that the setting is for.
    rate, momentum, second, damping
        eta > 0, beta_1 and beta_2 in [0, 1], epsilon >= 0.

    Returns
    -------
    eta sqrt(kappa), 1 - kappa (1 - beta), epsilon/sqrt(kappa).

    Raises
    ------
    ValueError
        If an argument is out of its domain, or kappa so large that a beta would be negative.

    References
    ----------
    Malladi, Lyu, Panigrahi and Arora (2022), On the SDEs and scaling rules for adaptive gradient algorithms, arXiv
    2205.10287, the square root scaling rule of Adam.

    Examples
    --------
    >>> square_root_rule(4.0, rate=0.001, momentum=0.9, second=0.99, damping=1e-8)
    AdamSetting(rate=0.002, momentum=0.6, second=0.96, damping=5e-09)
    """
    k, own = scalar("growth", growth, positive), _checked(rate, momentum, second, damping)
    first, last = (1 - k * (1 - beta) for beta in (own.momentum, own.second))
    require(first >= 0, "momentum", "at least 1 - 1/growth", momentum)
    require(last >= 0, "second", "at least 1 - 1/growth", second)
    return AdamSetting(own.rate * k**0.5, round(first, 15), round(last, 15), own.damping / k**0.5)


@closed_form
def adam_moments(
    start: float,
    *,
    curvature: float,
    noise: tuple[float, float],
    steps: tuple[int, int],
    rate: float,
    momentum: float,
    second: float,
    damping: float,
) -> AdamMoments:
    r"""Moments of a weight of the loss h x^2/2 under Adam with noisy gradients, in the limit of small steps.

    The standard deviation of the noise changes once on the way. Noise dominates: the average of squares is that of the
    noise alone. The limit is linear,

    .. math:: \dot x = -\frac{\eta}{P} \frac{m}{1 - e^{-c_1 t}},\quad
        \mathrm{d} m = c_1 (h x - m)\, \mathrm{d} t + c_1 s\, \mathrm{d} W,\quad
        \dot u = c_2 (s^2 - u),\quad P = \sqrt{\frac{u}{1 - e^{-c_2 t}}} + \epsilon

    with c = 1 - beta and t the number of steps, so that first and second moments obey five linear equations, solved
    here by Runge and Kutta to nine digits. `square_root_rule` at t/kappa steps leaves them as they are.

    Parameters
    ----------
    start
        x at first.
    curvature
        h, finite.
    noise
        s before and after the change, positive: that of a sample over sqrt(B).
    steps
        How many before and after the change, each at least 1.
    rate, momentum, second, damping
        eta > 0, beta_1 and beta_2 in [0, 1), epsilon >= 0.

    Returns
    -------
    E x and E x^2 at the end.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a moment is larger than any float, or the equations cannot be solved.

    Notes
    -----
    The time it takes grows with (1 - beta) times the steps: a second or so where that is a hundred thousand.

    References
    ----------
    Malladi, Lyu, Panigrahi and Arora (2022), arXiv 2205.10287: the limit of Adam. Its moments for a quadratic are ours.

    Examples
    --------
    Without noise to speak of in x, it decays as exp(-eta h t / s).

    >>> setting = {"rate": 1e-5, "momentum": 0.9, "second": 0.9, "damping": 0.0}
    >>> found = adam_moments(1.0, curvature=2.0, noise=(0.5, 0.5), steps=(10_000, 10_000), **setting)
    >>> round(found.mean, 4), round(found.square, 4)
    (0.4492, 0.2018)
    """
    x0, h = np.float64(scalar("start", start, finite)), np.float64(scalar("curvature", curvature, finite))
    eta, first, last, eps = _checked(rate, momentum, second, damping)
    require(first < 1, "momentum", "below 1", momentum)
    require(last < 1, "second", "below 1", second)
    c1, c2 = 1 - first, 1 - last
    spread = positive("noise", noise)
    require(spread.shape == (2,), "noise", "two numbers", noise)
    require(np.shape(steps) == (2,), "steps", "two numbers", steps)
    change, rest = (integer("steps", count, least=1, most=10**6) for count in steps)

    def preconditioner(t: float, s: float) -> float:
        held = np.exp(-c2 * max(t - change, 0.0))
        mixed = spread[0] ** 2 * (held - np.exp(-c2 * t)) + s**2 * (1 - held)
        # 1 - exp(-c t) would cancel at the start
        return float(np.sqrt(mixed / -np.expm1(-c2 * t))) + eps

    def flow(t: float, moments: Floats, s: float) -> list[float]:
        x, m, xx, xm, mm = moments
        a = eta / preconditioner(t, s) / -np.expm1(-c1 * t)
        return [
            -a * m,
            c1 * (h * x - m),
            -2 * a * xm,
            -a * mm + c1 * (h * xx - xm),
            2 * c1 * (h * xm - mm) + (c1 * s) ** 2,
        ]

    moments, times = np.array([x0, 0.0, x0**2, 0.0, 0.0]), (_FIRST * change, change, change + rest)
    for begin, end, s in zip(times, times[1:], spread, strict=False):
        first = np.array(flow(begin, moments, s))  # a step from where it is not finite would never end
        representable(first, start=start, curvature=curvature, noise=noise, rate=rate)
        solved = integrate.solve_ivp(
            flow, (begin, end), moments, args=(s,), method="DOP853", rtol=1e-9, atol=1e-12
        )
        require(solved.success, "rate", "small enough for the equations of the moments to be solved", rate)
        moments = solved.y[:, -1]
    return AdamMoments(float(moments[0]), float(moments[2]))


@closed_form
def half_life(second: ArrayLike, *, batch_size: ArrayLike) -> Floats:
    r"""Samples after which an average of squares keeps half of what it held: :math:`B \ln 2 / \ln(1/\beta_2)`.

    Parameters
    ----------
    second
        beta_2, in (0, 1).
    batch_size
        B, positive.

    Returns
    -------
    Samples, not rounded to whole batches, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result larger than any float.

    References
    ----------
    Marek, Lotfi, Somasundaram, Wilson and Goldblum (2025), Small batch size training for language models, arXiv
    2507.07101; there in tokens.

    Examples
    --------
    >>> half_life([0.5, 0.25], batch_size=8)
    array([8., 4.])
    """
    beta, size = together(second=inside("second", second, 0, 1), batch_size=(positive, batch_size))
    return size * (np.log(2) / -np.log(beta))


@quiet
def same_half_life(second: ArrayLike, *, known: ArrayLike, batch_size: ArrayLike) -> Floats:
    r"""beta_2 at another batch size with the same `half_life` in samples: :math:`\beta_2^{B'/B}`.

    Parameters
    ----------
    second
        beta_2 at batches of `known`, in (0, 1).
    known, batch_size
        B and B', positive.

    Returns
    -------
    beta_2 at batches of `batch_size`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Marek et al. (2025), arXiv 2507.07101.

    Examples
    --------
    >>> same_half_life(0.81, known=8, batch_size=[4, 16])
    array([0.9   , 0.6561])
    """
    beta, size, known = together(
        second=inside("second", second, 0, 1),
        batch_size=(positive, batch_size),
        known=(positive, known),
    )
    # from a size so much larger nothing is kept
    return beta ** (size / known)


@closed_form
def sign_rate(gradient: ArrayLike, *, hessian: ArrayLike, noise: ArrayLike, batch_size: ArrayLike) -> Floats:
    r"""Rate at which the mean loss after one step of sign descent is least, for independent normal noise.

    .. math:: \eta = \frac{\sum_i g_i e_i}{\sum_i H_{ii} + \sum_{i \ne j} H_{ij} e_i e_j},\qquad
        e_i = \mathrm{erf}\Big(\sqrt{B/2}\, \frac{g_i}{\sigma_i}\Big)

    Parameters
    ----------
    gradient
        g, (P,).
    hessian
        H, (P, P), symmetric.
    noise
        sigma_i, standard deviation of the gradient of one sample by each weight, positive, (P,).
    batch_size
        B, positive.

    Returns
    -------
    Learning rate, of the shape of `batch_size`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, the shapes do not fit, or the mean loss has no minimum.

    References
    ----------
    Li et al. (2024), Surge phenomenon in optimal learning rate and batch size scaling, arXiv 2405.14578, before the
    error function is expanded.

    Examples
    --------
    >>> sign_rate([0.1, 0.2], hessian=[[2.0, 1.0], [1.0, 2.0]], noise=[1.0, 1.0], batch_size=[1, 100]).round(4)
    array([0.0099, 0.0489])
    """
    g, h, sigma = _signs(gradient, hessian, noise)
    arguments, power = _arguments(g, sigma, positive("batch_size", batch_size))
    signs: Floats = special.erf(np.ldexp(arguments, power[..., None]))
    (g, g_power), (h, h_power) = _scaled(g), _scaled(h)
    bend = np.trace(h) + _coupling(h, signs)
    require(bend > 0, "hessian", "such that the mean loss has a minimum", hessian)
    return np.ldexp((signs @ g) / bend, g_power - h_power)


@closed_form
def surge_scale(gradient: ArrayLike, *, hessian: ArrayLike, noise: ArrayLike) -> float:
    r"""Batch size at which `surge_rate` is largest.

    .. math:: B_{noise} = \frac{\pi}{2} \mathrm{tr} H \Big/ \sum_{i \ne j} H_{ij} \frac{g_i g_j}{\sigma_i \sigma_j}

    Parameters
    ----------
    gradient, hessian, noise
        As in `sign_rate`; the trace and the sum must be positive.

    Returns
    -------
    B_noise of sign descent.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the shapes do not fit.

    References
    ----------
    Li et al. (2024), arXiv 2405.14578.

    Examples
    --------
    >>> round(surge_scale([0.1, 0.2], hessian=[[2.0, 1.0], [1.0, 2.0]], noise=[1.0, 1.0]), 2)
    157.08
    """
    g, h, sigma = _signs(gradient, hessian, noise)
    arguments, power = _arguments(g, sigma, np.asarray(1.0))
    bend, coupled = _trace_and_coupling(_scaled(h)[0], arguments, hessian)
    return float(np.ldexp(np.pi / 4 * bend / coupled, -2 * power))


@closed_form
def surge_rate(gradient: ArrayLike, *, hessian: ArrayLike, noise: ArrayLike, batch_size: ArrayLike) -> Floats:
    r"""`sign_rate` while batches are small: :math:`\eta_{max} / (\frac12(\sqrt{B_{noise}/B} + \sqrt{B/B_{noise}}))`.

    For :math:`B \ll \frac{\pi}{2} \sigma_i^2/g_i^2`, where the error function is its argument: it rises up to
    `surge_scale` and falls from there. :math:`\eta_{max}` is the rate at that size.

    Parameters
    ----------
    gradient, hessian, noise
        As in `surge_scale`.
    batch_size
        B, positive.

    Returns
    -------
    Learning rate, of the shape of `batch_size`.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the shapes do not fit.

    References
    ----------
    Li et al. (2024), arXiv 2405.14578.

    Examples
    --------
    >>> surge_rate([0.1, 0.2], hessian=[[2.0, 1.0], [1.0, 2.0]], noise=[1.0, 1.0], batch_size=[1, 100]).round(4)
    array([0.0099, 0.0609])
    """
    g, h, sigma = _signs(gradient, hessian, noise)
    slopes, power = _arguments(g, sigma, np.asarray(2.0))
    (g, g_power), (h, h_power) = _scaled(g), _scaled(h)
    trace, _ = _trace_and_coupling(h, slopes, hessian)
    # in units in which the largest slope g/sigma is near 1: x/(1 + x^2/scale) for the root x of the batch size
    scale = surge_scale(slopes, hessian=h, noise=np.ones_like(slopes))
    root, root_power = np.frexp(np.sqrt(positive("batch_size", batch_size)))
    power = root_power + power
    down = np.maximum(power, 0)  # of a large x the square is left as it is
    rise = root / (np.ldexp(1.0, -2 * down) + np.ldexp(root**2 / scale, 2 * (power - down)))
    rate = np.sqrt(2 / np.pi) * (slopes @ g) / trace * rise
    return np.ldexp(rate, power - 2 * down + g_power - h_power)


@closed_form
def adaptive_edge(rate: ArrayLike, *, momentum: ArrayLike) -> Floats:
    r"""Largest stable eigenvalue of the preconditioned Hessian, :math:`\frac{2 + 2\beta_1}{(1-\beta_1)\eta}`.

    That of descent along an average of gradients, to which Adam with a preconditioner that stands still amounts.

    Parameters
    ----------
    rate
        eta, positive.
    momentum
        beta_1, in [0, 1).

    Returns
    -------
    Eigenvalue of diag(sqrt(v) + eps)^(-1) H, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the eigenvalue larger than any float.

    References
    ----------
    Cohen et al. (2022), Adaptive gradient methods at the edge of stability, arXiv 2207.14484.

    Examples
    --------
    >>> adaptive_edge(1e-3, momentum=[0.0, 0.9]).round(6)
    array([ 2000., 38000.])
    """
    eta, beta = together(rate=(positive, rate), momentum=within("momentum", momentum, 0, 1))
    require(beta < 1, "momentum", "below 1", momentum)
    return (2 + 2 * beta) / (1 - beta) / eta


def _checked(rate: float, momentum: float, second: float, damping: float) -> AdamSetting:
    first, last = (
        scalar(name, within(name, beta, 0, 1)) for name, beta in (("momentum", momentum), ("second", second))
    )
    return AdamSetting(scalar("rate", rate, positive), first, last, scalar("damping", damping, nonnegative))


def _signs(gradient: ArrayLike, hessian: ArrayLike, noise: ArrayLike) -> tuple[Floats, Floats, Floats]:
    g, h, sigma = finite("gradient", gradient), finite("hessian", hessian), positive("noise", noise)
    require(g.ndim == 1 and len(g) >= 1, "gradient", "a vector", g.shape)
    require(h.shape == (len(g), len(g)), "hessian", f"of shape ({len(g)}, {len(g)})", h.shape)
    # entry by entry: the sign rule reads each, however small next to the largest
    require(np.allclose(h, h.T, rtol=1e-9, atol=0), "hessian", "symmetric", hessian)
    require(sigma.shape == g.shape, "noise", f"of shape ({len(g)},)", sigma.shape)
    return g, h, sigma


def _scaled(values: Floats) -> tuple[Floats, int]:
    """Numbers of which the largest is near 1, and the power of two that they are to be multiplied by."""
    power = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -power), power


def _arguments(gradient: Floats, noise: Floats, size: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Arguments of the error function, (..., P), over the power of two that makes the largest near 1; (...)."""
    root, root_power = np.frexp(np.sqrt(size) * np.sqrt(0.5))
    (g, g_power), (sigma, sigma_power) = np.frexp(gradient), np.frexp(noise)
    each = g / sigma
    # a zero has no power of two: it must stay below all others
    powers: NDArray[np.int64] = np.where(each == 0, -(10**5), g_power.astype(np.int64) - sigma_power)
    top = powers.max()
    return root[..., None] * np.ldexp(each, powers - top), root_power + top


def _coupling(hessian: Floats, signs: Floats) -> Floats:
    """The sum over two different weights, (...)."""
    return np.einsum("...i,ij,...j->...", signs, hessian - np.diag(np.diag(hessian)), signs)


def _trace_and_coupling(hessian: Floats, arguments: Floats, given: ArrayLike) -> tuple[Floats, Floats]:
    trace, coupled = np.trace(hessian), _coupling(hessian, arguments)
    require(
        (coupled > 0) & (trace > 0),
        "hessian",
        "of positive trace and of positive coupling along the gradient",
        given,
    )
    return trace, coupled
