r"""Activation functions, with what their Gaussian averages need.

===============  ===============================  ==================================
name             :math:`\phi(x)`                  Gaussian averages
===============  ===============================  ==================================
``relu``         :math:`\max(x, 0)`               closed form
``leaky_relu``   :math:`\max(x, 0) + s\min(x,0)`  closed form
``linear``       :math:`x`                        closed form
``erf``          :math:`\mathrm{erf}(x)`          closed form
``tanh``         :math:`\tanh x`                  trapezoidal rule
``sigmoid``      :math:`1/(1 + e^{-x})`           trapezoidal rule
``softplus``     :math:`\log(1 + e^x)`            trapezoidal rule
``gelu``         :math:`x \Phi(x)`                trapezoidal rule
``hard_tanh``    :math:`\max(-1, \min(x, 1))`     panels between the kinks
===============  ===============================  ==================================

The symbol :math:`\phi` is that of Karakida, Akaho and Amari (2019), eq. (1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from theory._checks import Floats, finite, instance, integer, require, scalar, shown
from theory._roots import special
from theory.activations._quadrature import KeptKernels, require_callables
from theory.activations.gaussian import (
    Erf,
    Kernels,
    KinkedQuadrature,
    NumericalKernels,
    PiecewiseLinear,
    jumps_of,
    normal_density,
    real_values,
)

__all__ = [
    "Activation",
    "built_in",
    "erf",
    "gaussian_kernels",
    "gelu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "relu",
    "resolve",
    "sigmoid",
    "single",
    "softplus",
    "tanh",
]

Function = Callable[[Floats], Any]

_MEAN = 0.7  # mean of the Gaussian in the test of derivatives: at 0, errors of one parity average to 0


@dataclass(frozen=True)
class Activation:
    """An activation and its derivatives, elementwise callables on float64 arrays.

    Parameters
    ----------
    name
        Used in messages.
    function, derivative, second_derivative
        Finite on the real line. The second derivative is needed by :func:`theory.fisher.kappas` and what
        builds on it, not by the order parameters.
    kinks
        All points where the function or one of its derivatives jumps. At a kink of the function the second
        derivative is that of either side: its Dirac delta there is found from the derivative.
    kernels
        Closed forms of the Gaussian averages; without them they are computed by quadrature, certified to 1e-12
        between the kinks.

    Raises
    ------
    ValueError
        If a field is of the wrong kind, such as a function that cannot be called.

    Examples
    --------
    >>> sine = Activation("sin", np.sin, np.cos, lambda x: -np.sin(x))
    >>> round(gaussian_kernels(sine).value(1.0, 0.0, 1.0).moment / math.exp(-1) / math.sinh(1), 12)
    1.0
    """

    name: str
    function: Function
    derivative: Function
    second_derivative: Function | None = None
    kinks: tuple[float, ...] = ()
    kernels: Kernels | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str, "a string")
        require_callables(self, "function", "derivative", "second_derivative")
        require(finite("kinks", self.kinks).ndim == 1, "kinks", "a sequence of points", self.kinks)
        instance("kernels", self.kernels, Kernels | None, "Kernels or None")


def gaussian_kernels(activation: Activation) -> Kernels:
    """Gaussian averages of `activation`.

    Raises
    ------
    ValueError
        If it is no `Activation`, or a derivative is not that of what stands before it.

    Examples
    --------
    >>> gaussian_kernels(linear).value(2.0, 1.0, 1.0)
    Moments(moment=2.0, overlap=1.0, gap=1.0)
    >>> bump = Activation("bump", lambda x: abs(x - 1), lambda x: np.sign(x - 1), np.zeros_like, kinks=(1.0,))
    >>> round(gaussian_kernels(bump).derivative(1.0, 0.0, 1.0).overlap ** 0.5, 12)  # erf(1/sqrt 2)
    0.682689492137
    """
    instance("activation", activation, Activation, "an Activation")
    if activation.kernels is not None:
        return activation.kernels
    return _known_kernels(activation) if built_in(activation) else _numerical_kernels(activation)


@lru_cache(maxsize=64)
def _known_kernels(activation: Activation) -> Kernels:
    """Kernels of an activation whose values never change: its derivatives are tested once, not at every point."""
    return KeptKernels(_numerical_kernels(activation))


def _numerical_kernels(activation: Activation) -> Kernels:
    _require_derivatives(activation)
    functions = (activation.function, activation.derivative, activation.second_derivative)
    if activation.kinks:
        return KinkedQuadrature(activation.name, *functions, tuple(activation.kinks))
    return NumericalKernels(activation.name, *functions)


def _require_derivatives(activation: Activation) -> None:
    """Gaussian integration by parts, E (x - m) f(x) = E f'(x) at mean m, finds a wrong derivative.

    A jump of f at k adds its size times the density there.
    """
    kinks = np.unique(np.array(activation.kinks, dtype=np.float64))
    z, weights = _panels_between(kinks - _MEAN)
    # by parts: E (x - m) f(x) = E f'(x) at mean m, plus the jumps of f times the density at them
    functions = [activation.function, activation.derivative, activation.second_derivative]
    names = ["derivative", "second_derivative"]
    for name, f, df in zip(names, functions, functions[1:], strict=False):
        if f is None or df is None:
            continue
        y, dy = (real_values(activation.name, g, z + _MEAN) for g in (f, df))
        if y.shape == dy.shape == z.shape and np.isfinite(y).all() and np.isfinite(dy).all():
            # relative, so that steep activations neither overflow nor escape the test
            scale = max(np.abs(y).max(), np.abs(dy).max()) or 1.0
            y, dy = y / scale, dy / scale
            jumps = jumps_of(activation.name, f, kinks.tolist()) / scale @ normal_density(kinks - _MEAN)
            error, size = abs(weights @ (z * y - dy) - jumps), weights @ (np.abs(z * y) + np.abs(dy)) or 1.0
            require(error < 1e-3 * size, name, "the derivative of the function before it", activation.name)


def _panels_between(kinks: Floats) -> tuple[Floats, Floats]:
    """Nodes and normal weights on short panels from -10 to 10, none across a kink."""
    edges = np.unique(np.concatenate([np.linspace(-10.0, 10.0, 401), np.clip(kinks, -10.0, 10.0)]))
    x, w = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(edges)[:, None]
    z = edges[:-1, None] + half * (1 + x)
    return z.ravel(), (half * w * normal_density(z)).ravel()


def leaky_relu(slope: float = 0.01) -> Activation:
    """Rectifier x for x > 0, `slope` x for x < 0; any slope up to 1e75 in size (-1 is the absolute value).

    Raises
    ------
    ValueError
        If `slope` is not one finite number, or larger than that.

    Examples
    --------
    >>> leaky_relu(0.5).function(np.array([-2.0, 3.0]))
    array([-1.,  3.])
    """
    s = scalar("slope", slope, finite)
    return _piecewise_linear(f"leaky_relu({s:g})", s)


def single(activation: str | Activation) -> Activation:
    """One activation, as it is or by its name; "leaky_relu" has slope 0.01.

    Raises
    ------
    ValueError
        If it is neither, or there is none of that name.

    Examples
    --------
    >>> single("tanh") is single(tanh) is tanh
    True
    """
    instance("activation", activation, str | Activation, "an Activation or its name")
    if isinstance(activation, Activation):
        return activation
    require(activation in _NAMED, "activation", f"one of {', '.join(sorted(_NAMED))}", activation)
    return _NAMED[activation]


def built_in(activation: Activation) -> bool:
    """Whether it is one of those that have a name here: its values never change.

    Examples
    --------
    >>> built_in(tanh), built_in(leaky_relu(0.3))
    (True, False)
    """
    return any(activation is own for own in _NAMED.values())


def resolve(activation: str | Activation | Sequence[str | Activation], layers: int) -> tuple[Activation, ...]:
    """Activations of `layers` hidden layers, from one for all of them or one each.

    Raises
    ------
    ValueError
        If a name is unknown, the number is wrong or beyond a million, or an entry is no activation.

    Examples
    --------
    >>> [a.name for a in resolve(["relu", tanh], 2)]
    ['relu', 'tanh']
    """
    layers = integer("layers", layers, least=0, most=10**6)
    if isinstance(activation, str | Activation):
        return (single(activation),) * layers
    try:
        several = tuple(islice(activation, layers + 1))
    except TypeError:
        rule = "an Activation, a name or a sequence of these"
        raise ValueError(f"activation must be {rule}, got {shown(activation)}") from None
    if len(several) != layers:
        found = f"{len(several)}" if len(several) < layers else "more"
        raise ValueError(f"activation must be one or one per hidden layer ({layers}), got {found}")
    return tuple(map(single, several))


def _piecewise_linear(name: str, slope: float) -> Activation:
    return Activation(
        name,
        lambda x: np.where(x > 0, x, slope * x),
        lambda x: np.where(x > 0, 1.0, slope),
        np.zeros_like,
        () if slope == 1 else (0.0,),
        PiecewiseLinear(slope),
    )


def _sech_squared(x: Floats) -> Floats:
    # not 1 - tanh(x)^2, which cancels, nor 1 / cosh(x)^2, whose cosh overflows
    decay = np.exp(-2 * np.abs(x))
    return 4 * decay / (1 + decay) ** 2


def _sigmoid(x: Floats) -> Floats:
    # of -|x|, so that nothing overflows
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1 + decay)


def _sigmoid_slope(x: Floats) -> Floats:
    return 0.25 * _sech_squared(0.5 * x)


def _erf(x: Floats) -> Floats:
    return special.erf(x)


def _erf_slope(x: Floats) -> Floats:
    return 2 / math.sqrt(math.pi) * np.exp(-(x**2))


def _erf_curvature(x: Floats) -> Floats:
    return -2 * x * _erf_slope(x)


relu = _piecewise_linear("relu", 0.0)
linear = _piecewise_linear("linear", 1.0)
tanh = Activation("tanh", np.tanh, _sech_squared, lambda x: -2 * np.tanh(x) * _sech_squared(x))
erf = Activation(
    "erf", _erf, _erf_slope, _erf_curvature, kernels=Erf("erf", _erf, _erf_slope, _erf_curvature)
)
sigmoid = Activation("sigmoid", _sigmoid, _sigmoid_slope, lambda x: -np.tanh(0.5 * x) * _sigmoid_slope(x))
# log(1 + exp(x)) would overflow
softplus = Activation("softplus", lambda x: np.logaddexp(0.0, x), _sigmoid, _sigmoid_slope)
gelu = Activation(
    "gelu",
    lambda x: x * special.ndtr(x),
    lambda x: special.ndtr(x) + x * normal_density(x),
    lambda x: (2 - x**2) * normal_density(x),
)
hard_tanh = Activation(
    "hard_tanh",
    lambda x: np.clip(x, -1.0, 1.0),
    lambda x: np.where(np.abs(x) < 1, 1.0, 0.0),
    np.zeros_like,
    (-1.0, 1.0),
)

_NAMED = {a.name: a for a in (relu, linear, tanh, erf, sigmoid, softplus, gelu, hard_tanh)}
_NAMED["leaky_relu"] = leaky_relu()
