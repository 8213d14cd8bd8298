r"""Gaussian averages of the named activations to any number of digits, with mpmath.

The averages are those of :mod:`theory.activations.gaussian`: :math:`E\,\phi(u)^2` and
:math:`I_\phi[a, b] = E\,\phi(u)\phi(u')` of Karakida, Akaho and Amari (2019), eqs. (5) and (7), and the
same for :math:`\phi'`. Closed forms where there are any, else the trapezoidal rule with a step for which
its exponentially small error is below the last digit, checked against a coarser step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from theory._checks import instance, integer, require
from theory.activations import Activation, single
from theory.activations.gaussian import ConvergenceError, Moments, PiecewiseLinear

__all__ = ["precise_kernels"]

Function = Callable[[Any], Any]
Kernel = Callable[[Any, Any, Any], Moments]

_GUARD = 8  # digits beyond those asked for: poles of fourth order take a few
_NODES = 10**6  # of a product rule; some ten seconds
_WORK = 2.5e8  # values times digits squared, about as long
_ERROR_FUNCTION = 20  # times as dear as the exponential


def precise_kernels(activation: Activation, digits: int) -> Any:
    """Kernels with ``value`` and ``derivative``; call them at a working precision above `digits`.

    They compute in the context of the numbers they are called with.

    Raises
    ------
    ValueError
        If `activation` is not one of the named ones or is hard_tanh, or `digits` is not an integer from 1 to 1000.
        The kernels refuse digits and variances that would take minutes.

    Examples
    --------
    >>> import mpmath
    >>> half = mpmath.mpf(1) / 2
    >>> with mpmath.workdps(30):
    ...     print(precise_kernels(single("relu"), 25).derivative(2 * half, half, half).overlap)
    0.333333333333333333333333333333
    """
    instance("activation", activation, Activation, "an Activation")
    digits = integer("digits", digits, least=1, most=1000)
    if isinstance(activation.kernels, PiecewiseLinear):
        return _Kernels(*(partial(f, activation.kernels.slope) for f in (_linear_value, _linear_slope)))
    if activation.name in _SMOOTH and activation is single(activation.name):
        cost = _ERROR_FUNCTION if activation.name == "gelu" else 1
        return _Kernels(*(partial(_settled, f, digits, cost) for f in _SMOOTH[activation.name]))
    if activation is single("erf"):
        return _Kernels(_erf_value, _erf_slope)
    rule = "a named one where digits are asked for, and not hard_tanh"
    raise ValueError(f"activation must be {rule}, got {activation.name!r}")


class _Kernels(NamedTuple):
    value: Kernel
    derivative: Kernel


def _linear_parts(slope: float, variance: Any, covariance: Any) -> tuple[Any, Any, Any]:
    """Squares of the odd and of the even part of a leaky ReLU, and the correlation."""
    mp = variance.context
    s = mp.mpf(slope)
    c = covariance / variance if variance > 0 else mp.mpf(1)
    return ((1 + s) / 2) ** 2, ((1 - s) / 2) ** 2, min(max(c, -mp.mpf(1)), mp.mpf(1))


def _linear_value(slope: float, variance: Any, covariance: Any, _: Any) -> Moments:
    mp = variance.context
    o, e, c = _linear_parts(slope, variance, covariance)
    # in factors: 1 - c^2 would cancel near equal inputs
    even = 2 * variance / mp.pi * (mp.sqrt((1 - c) * (1 + c)) + c * mp.asin(c))
    return _moments((o + e) * variance, o * covariance + e * even)


def _linear_slope(slope: float, variance: Any, covariance: Any, _: Any) -> Moments:
    mp = variance.context
    o, e, c = _linear_parts(slope, variance, covariance)
    return _moments(o + e, o + e * 2 / mp.pi * mp.asin(c))


def _erf_value(variance: Any, covariance: Any, _: Any) -> Moments:
    mp = variance.context
    return _moments(*(2 / mp.pi * mp.asin(2 * x / (1 + 2 * variance)) for x in (variance, covariance)))


def _erf_slope(variance: Any, covariance: Any, gap: Any) -> Moments:
    mp = variance.context
    pairs = ((variance, 0 * gap), (covariance, gap))  # (1 + 2 a)^2 - 4 x^2 in factors: nothing cancels
    return _moments(*(4 / mp.pi / mp.sqrt((1 + 2 * d) * (1 + 2 * (variance + x))) for x, d in pairs))


def _settled(f: Function, digits: int, cost: int, a: Any, b: Any, _: Any) -> Moments:
    mp = a.context
    coarse, fine = (_pair(f, a, b, s, digits, cost) for s in (mp.mpf(3) / 2, mp.mpf(1)))
    # the error is exp(-const/step) or exp(-const/step^2): a step 3/2 as long keeps 4/9 of the digits
    slack = mp.mpf(10) ** (-0.4 * digits) * fine.moment
    if max(abs(coarse.moment - fine.moment), abs(coarse.overlap - fine.overlap)) > slack:
        raise ConvergenceError(f"Gaussian averages did not reach {digits} digits", estimate=fine)
    return fine


def _step(scale: Any, digits: int) -> Any:
    """Step in a Gaussian variable: singularities at a distance of pi/2 or more, and Gaussian growth."""
    mp = scale.context
    needed = (digits + _GUARD) * mp.log(10)
    growth = mp.pi / mp.sqrt(needed * (1 + scale**2))
    if scale == 0:
        return growth
    # tanh, sigmoid and softplus have their nearest poles at i pi / 2 or beyond
    strip = mp.pi / 2 / scale  # the Gaussian itself grows to exp(strip^2/2) at the singularity
    return min(2 * mp.pi * strip / (needed + strip**2 / 2), growth)


def _pair(f: Function, a: Any, b: Any, coarser: Any, digits: int, cost: int) -> Moments:
    """Moment and overlap, the latter as the average over z of a squared conditional mean."""
    mp = a.context
    scales = [mp.sqrt(x) for x in (a, abs(b), max(a - abs(b), mp.mpf(0)))]
    own, outer, inner = (coarser * _step(s, digits) * s for s in scales)
    one_grid = min(outer, inner) * 30 > max(outer, inner)  # of the sums of nodes, for both
    if one_grid:
        outer = inner = min(outer, inner)
    spacings = own, outer, inner
    # the integrands grow at most like the fourth power of the Gaussian variable
    reach = mp.sqrt(2 * (digits + _GUARD) * mp.log(10)) + 3
    nodes = [int(mp.ceil(reach * s / x)) if s > 0 else 0 for s, x in zip(scales, spacings, strict=True)]
    _, n, m = nodes
    values = nodes[0] + (n + m if one_grid else n * m)
    affordable = n * m <= _NODES and values * cost * (digits + 20) ** 2 <= _WORK
    require(affordable, "digits", f"fewer for the trapezoidal rule at variance {mp.nstr(a, 3)}", digits)
    own_weights, outer_weights, weights = map(_weights, scales, spacings, nodes)
    moment = mp.fdot(own_weights, [f(x) ** 2 for x in _grid(own, nodes[0])])
    if one_grid:
        on_grid = [f(x) for x in _grid(outer, n + m)]
        means = [mp.fdot(weights, on_grid[i : i + 2 * m + 1]) for i in range(2 * n + 1)]
    else:
        zeta = _grid(inner, m)
        means = [mp.fdot(weights, [f(x + y) for y in zeta]) for x in _grid(outer, n)]
    mirrored = means if b >= 0 else means[::-1]
    return _moments(moment, mp.fdot(outer_weights, [x * y for x, y in zip(means, mirrored, strict=True)]))


def _grid(spacing: Any, n: int) -> list[Any]:
    return [spacing * k for k in range(-n, n + 1)]


def _weights(scale: Any, spacing: Any, n: int) -> list[Any]:
    """Normal weights of standard deviation `scale` on a grid of n nodes on either side of 0."""
    mp = scale.context
    step = spacing / scale if n else spacing
    half = [mp.exp(-((step * k) ** 2) / 2) for k in range(n + 1)]
    total = 2 * mp.fsum(half) - half[0]
    return [half[abs(k)] / total for k in range(-n, n + 1)]


def _moments(moment: Any, overlap: Any) -> Moments:
    return Moments(moment, overlap, moment - overlap)


def _softplus(x: Any) -> Any:
    mp = x.context
    return max(x, mp.mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + x.context.exp(-x))


def _sech_squared(x: Any) -> Any:
    return x.context.sech(x) ** 2


_SMOOTH: dict[str, tuple[Function, Function]] = {
    "tanh": (lambda x: x.context.tanh(x), _sech_squared),
    "sigmoid": (_sigmoid, lambda x: _sech_squared(x / 2) / 4),
    "softplus": (_softplus, _sigmoid),
    "gelu": (
        lambda x: x * x.context.ncdf(x),
        lambda x: x.context.ncdf(x) + x * x.context.npdf(x),
    ),
}
