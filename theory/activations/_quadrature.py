"""Gaussian averages of one activation: by the trapezoidal rule in the Gaussian variables, or in closed form.

The rule converges exponentially for an analytic activation; the step is halved (and the range widened) until two
results agree, so what is not smooth is found out and refused.

Closed forms are those of rectifiers (the arc-cosine kernels) and erf (the arc-sine kernel).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from theory._checks import Floats, finite, nonnegative, quiet, require, scalar
from theory._roots import special, unit_legendre


class ConvergenceError(ArithmeticError):
    """A tolerance was not reached; `estimate` is the best value found (None if there is none).

    >>> ConvergenceError("no", estimate=0.5).estimate
    0.5
    """

    def __init__(self, message: str, *, estimate: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate


class Moments(NamedTuple):
    """Second moments of one function of a Gaussian pair."""

    moment: Any
    overlap: Any
    gap: Any


class Fluctuations(NamedTuple):
    """Averages of V^2, A^2, A B, B^2, C^2: V = Var phi, A = Var phi', B = E phi'^2, C = Cov(phi, phi').

    These are taken over zeta, given z.
    """

    value: float
    derivative: float
    mixed: float
    square: float
    cross: float


class Kernels(ABC):
    """Gaussian averages of one activation; abs(`covariance`) <= `variance`, `gap` is their difference.

    All kernels of this package refuse other numbers with a ``ValueError``; averages larger than any float are
    infinite.
    """

    @abstractmethod
    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""

    @abstractmethod
    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of its derivative."""

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative (in the sense of distributions at a kink)."""
        raise NotImplementedError

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeptKernels(Kernels):
    """Averages of an activation whose values never change: one that was asked for is not averaged again.

    A curve over widths, samples or layers asks for the same ones at every point.
    """

    of: Kernels

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""
        return _cached(self.of.value, variance, covariance, gap)

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of its derivative."""
        return _cached(self.of.derivative, variance, covariance, gap)

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative."""
        return _cached(self.of.curvature, variance, covariance, gap)

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged."""
        return _cached(self.of.fluctuations, covariance, gap)


def _cached(average: Callable[..., Any], *arguments: Any) -> Any:
    plain = all(
        isinstance(number, float) for number in arguments
    )  # others cannot be told apart, or are refused
    return _remembered(average, *arguments) if plain else average(*arguments)


@lru_cache(maxsize=1 << 14)
def _remembered(average: Callable[..., Any], *arguments: float) -> Any:
    return average(*arguments)


def pair_arguments(variance: Any, covariance: Any, gap: Any) -> tuple[float, float, float]:
    """The arguments as floats that belong together, up to the rounding of a long recursion."""
    a = _number("variance", variance)
    b = covariance + 0.0 if isinstance(covariance, float) else scalar("covariance", covariance, finite)
    d = _number("gap", gap)
    # the second term is for subnormal variances, for which the first one vanishes
    slack = 1e-8 * a + 1e-320
    require(abs(b) <= a + slack, "covariance", "between -variance and variance", covariance)
    require(abs((a - b) - d) <= slack, "gap", "variance - covariance", gap)
    return a, min(max(b, -a), a), min(d, 2 * a)


def share_arguments(covariance: Any, gap: Any) -> tuple[float, float]:
    """The shared and the own part of a variance, as floats."""
    return _number("covariance", covariance), _number("gap", gap)


def require_apart(variance: float, covariance: float, gap: float) -> None:
    """Refuse two inputs that are equal or opposite, where the slope of a kink has no average."""
    require(gap > 0, "gap", "positive for an activation with a kink", gap)
    rule = "above -variance for an activation with a kink"
    require(variance + covariance > 0, "covariance", rule, covariance)


def require_callables(owner: object, *names: str) -> None:
    """Refuse fields of these names that cannot be called; the last one may be None."""
    for name in names:
        field = getattr(owner, name)
        may_lack = name == names[-1] and field is None
        require(may_lack or callable(field), name, "callable on arrays", field)


def _number(name: str, value: Any) -> float:
    """One number >= 0 whose small multiples do not overflow."""
    number = value + 0.0 if isinstance(value, float) else scalar(name, value, nonnegative)  # no -0.0
    require(number >= 0 and 8 * number < math.inf, name, "non-negative, finite and below 2e307", value)
    return number


Function = Callable[[Floats], Any]


_TOLERANCE = 1e-12  # two successive levels agree to this; the error of the finer one is then far below
_FLOOR = 1e-290  # what is smaller has lost digits to underflow
_LEVELS = 5
_TENSOR = 1 << 17  # nodes of the product rule beyond which convolution on one grid is cheaper
_LARGEST = 1 << 25
_WIDEST = 1.2e8  # variance: beyond, the nodes of one variable take seconds
_SMALL_GAP = 1e-4  # below, deviations of phi are integrals of phi' instead of differences


class Integrand(NamedTuple):
    """A function, its derivative where that is known, and how far it jumps at each kink."""

    values: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats] | None
    jumps: Floats


class Part(NamedTuple):
    """Conditional mean of a function given z, and what its covariances are made from."""

    mean: Floats
    samples: Floats


class Grid(Protocol):
    """Nodes in z with their weights, and averages over zeta at each, for u = sqrt(b) z + sqrt(d) zeta."""

    weights: Floats

    def part(self, curve: Integrand, /) -> Part:
        """Conditional mean and deviations of a function."""
        ...

    def covariance(self, x: Part, y: Part, /) -> Floats:
        """Conditional covariance of two functions."""
        ...


@dataclass(frozen=True)
class NumericalKernels(Kernels):
    """Smooth activation given by callables on float64 arrays; accurate to about 1e-13, certified to 1e-12.

    Parameters
    ----------
    name
        Used in messages.
    function, first, second
        The activation and its derivatives; without `second` the gap of :meth:`derivative` is the plain
        difference, and :meth:`curvature` and :meth:`fluctuations` raise.

    Raises
    ------
    ValueError
        If a callable returns values that are not finite or of another shape.
    ConvergenceError
        If refinement does not settle: a kink or a jump, features much finer than 1, or a variance
        beyond about 1e8.

    Examples
    --------
    >>> cosine = NumericalKernels("cos", np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x))
    >>> round(cosine.value(1.0, 0.5, 0.5).overlap / math.exp(-1) / math.cosh(0.5), 12)
    1.0
    """

    name: str
    function: Function
    first: Function
    second: Function | None = None

    def __post_init__(self) -> None:
        require_callables(self, "function", "first", "second")

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        result = self._moments(self._curve(0), variance, covariance, gap)
        # a product average near covariance 0 cancels for a centred activation
        if abs(covariance) <= 1e-3 * variance:
            return result._replace(overlap=self._small_overlap(variance, covariance))
        return result

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative."""
        return self._moments(self._curve(1), *pair_arguments(variance, covariance, gap))

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative."""
        return self._moments(self._curve(2), *pair_arguments(variance, covariance, gap)).overlap

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""
        self._second()
        value, slope = self._curve(0), self._curve(1)
        covariance, gap = share_arguments(covariance, gap)

        def at(level: int) -> Floats:
            grid = self._grid(covariance, gap, level)
            f, df = grid.part(value), grid.part(slope)
            v, a, c = grid.covariance(f, f), grid.covariance(df, df), grid.covariance(f, df)
            b = a + df.mean**2
            return np.array([v**2, a**2, a * b, b**2, c**2]) @ grid.weights

        # the covariance of an odd and an even function is 0: measure it against its bound
        result = average(self.name, at, lambda x: np.append(x[:4], math.sqrt(x[0]) * math.sqrt(x[1])))
        return Fluctuations(*result.tolist())

    def _second(self) -> Function:
        if self.second is None:
            raise ValueError(f"second_derivative must be given for activation {self.name!r} here, got None")
        return self.second

    def _curve(self, order: int) -> Integrand:
        """The activation or one of its derivatives, with the next one where it is given."""
        f = (self.function, self.first, self.second)[order] or self._second()
        slope = (self.first, self.second, None)[order]
        return Integrand(self._of(f), None if slope is None else self._of(slope), np.zeros(0))

    def _grid(self, b: float, d: float, level: int) -> Grid:
        """Symmetric in z."""
        return _trapezoid(b, d, level)

    def _of(self, function: Function) -> Callable[[Floats], Floats]:
        return lambda x: elementwise_values(self.name, function, x)

    def _moments(self, curve: Integrand, a: float, b: float, d: float) -> Moments:
        # a negative covariance is a positive one with u' mirrored, and the grid in z is symmetric
        rest = d if b >= 0 else max(a + b, 0.0)

        def at(level: int) -> Floats:
            # only |b| has a real root; the sign returns as a mirror image of the second input
            grid = self._grid(abs(b), rest, level)
            part = grid.part(curve)
            mirrored = part.mean if b >= 0 else part.mean[::-1]
            spread = grid.covariance(part, part) + 0.5 * (part.mean - mirrored) ** 2
            return np.array([part.mean * mirrored, spread]) @ grid.weights

        # an overlap may vanish: it is measured against the moment
        overlap, gap = average(
            self.name, at, lambda x: np.array([x.sum(), x.sum() if curve.slopes is None else x[1]])
        ).tolist()
        return Moments(overlap + gap, overlap, gap)

    def _small_overlap(self, a: float, b: float) -> float:
        """Return the overlap at a small covariance, by Price's theorem from covariance 0."""
        mean = average(self.name, lambda level: self._mean(a, level), lambda x: np.append(x[1], x[1]))[0]
        if b == 0:
            return float(mean**2)
        nodes, weights = np.polynomial.legendre.leggauss(4)
        overlaps = [self._slope_overlap(a, c) for c in (0.5 * b * (1 + nodes)).tolist()]
        return float(mean**2 + 0.5 * b * (weights @ overlaps))

    def _slope_overlap(self, a: float, b: float) -> float:
        """Derivative of the overlap by the covariance."""
        return self.derivative(a, b, a - b).overlap

    def _mean(self, a: float, level: int) -> Floats:
        """Mean of the activation, exactly 0 if it is odd, and its root mean square."""
        z, weights = _rule(math.sqrt(a), level)
        y = elementwise_values(self.name, self.function, math.sqrt(a) * z)
        # summed with its mirror image, an odd function has a mean of exactly 0
        return np.array([0.5 * (weights @ (y + y[::-1])), math.sqrt(weights @ y**2)])


class _Tensor:
    """Product rule in (z, zeta) for u = sqrt(b) z + sqrt(d) zeta."""

    def __init__(self, b: float, d: float, level: int) -> None:
        z, self.weights = _rule(math.sqrt(b), level)
        self._zeta, self._inner = _rule(math.sqrt(d), level)
        self._centre, self._scale = math.sqrt(b) * z, math.sqrt(d)

    def part(self, curve: Integrand) -> Part:
        f, slope, _ = curve
        shift = self._scale * self._zeta
        if slope is None or self._scale**2 > _SMALL_GAP:
            y = f(self._centre[:, None] + shift)
            mean = y @ self._inner
            return Part(mean, y - mean[:, None])
        # differences of values so close would cancel: the increment is an integral of the slope
        moved = sum(
            (w * shift) * slope(self._centre[:, None] + x * shift)
            for x, w in zip(*unit_legendre(6), strict=True)
        )
        mean = moved @ self._inner
        return Part(f(self._centre) + mean, moved - mean[:, None])

    def covariance(self, x: Part, y: Part) -> Floats:
        return (x.samples * y.samples) @ self._inner


class _Convolution:
    """Averages on one grid of u, where the average over zeta is a convolution."""

    def __init__(self, b: float, d: float, level: int) -> None:
        step, outer, inner = _one_grid(b, d, level)
        _require_few(outer + inner <= _LARGEST // 8, b + d)
        self._u = step * np.arange(-outer - inner, outer + inner + 1, dtype=float)
        self.weights = _normal_weights(step / math.sqrt(b) * np.arange(-outer, outer + 1, dtype=float))
        self._inner = _normal_weights(step / math.sqrt(d) * np.arange(-inner, inner + 1, dtype=float))

    def part(self, curve: Integrand) -> Part:
        y = curve.values(self._u)
        return Part(self._smooth(y), y)

    def covariance(self, x: Part, y: Part) -> Floats:
        product = self._smooth(x.samples * y.samples) - x.mean * y.mean
        # a difference of squares, which rounding may leave below zero
        return np.maximum(product, 0.0) if x is y else product

    def _smooth(self, y: Floats) -> Floats:
        # a power of two beyond the sum of the lengths: fast, and without wrap-around
        size = 1 << (len(y) + len(self._inner)).bit_length()
        full = np.fft.irfft(np.fft.rfft(y, size) * np.fft.rfft(self._inner, size), size)
        return full[len(self._inner) - 1 : len(y)]


def _trapezoid(b: float, d: float, level: int) -> _Tensor | _Convolution:
    """Product rule, or convolution where that has too many nodes."""
    _require_few(b + d <= _WIDEST, b + d)
    nodes = [2 * _radius(level) / _step(math.sqrt(x), level) if x > 0 else 1.0 for x in (b, d)]
    size = nodes[0] * nodes[1]
    # the convolution subtracts squares: kept for gaps that are no small part of the variance
    cheap = _TENSOR if d > 0.1 * b else _LARGEST
    if size > cheap and b > 0 and d > _SMALL_GAP and size > 2 * sum(_one_grid(b, d, level)[1:]):
        return _Convolution(b, d, level)
    _require_few(size <= _LARGEST, b + d)
    return _Tensor(b, d, level)


def _require_few(few: bool, variance: float) -> None:
    """Refuse a variance that takes too many nodes; `few` says that it does not."""
    if not few:
        raise ConvergenceError(f"variance {variance:g} is too large for the trapezoidal rule")


def _one_grid(b: float, d: float, level: int) -> tuple[float, int, int]:
    """Step in u that is fine enough for both variables, and its nodes on either side of 0 for each."""
    step = min(_step(math.sqrt(x), level) * math.sqrt(x) for x in (b, d))
    outer, inner = (math.ceil(_radius(level) * math.sqrt(x) / step) for x in (b, d))
    return step, outer, inner


def _step(scale: float, level: int) -> float:
    """Step in the Gaussian variable: fine against the Gaussian and against unit features of phi."""
    return (0.25 / scale if scale > 0.5 else 0.5) / 2**level


def _radius(level: int) -> float:
    return 9.0 + level


def _rule(scale: float, level: int) -> tuple[Floats, Floats]:
    if scale == 0:
        return np.zeros(1), np.ones(1)
    _require_few(scale**2 <= _WIDEST, scale**2)
    step = _step(scale, level)
    n = math.ceil(_radius(level) / step)
    z = step * np.arange(-n, n + 1, dtype=float)
    return z, _normal_weights(z)


def _normal_weights(z: Floats) -> Floats:
    weights = np.exp(-0.5 * z**2)
    # over their sum, so that the average of a constant is exact
    return weights / weights.sum()


def normal_density(x: Floats) -> Floats:
    """Density of a standard normal variable."""
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


@quiet
def real_values(name: str, f: Function, x: Floats) -> Floats:
    """Values of an activation or a derivative as float64, whatever numbers they are.

    Raises
    ------
    ValueError
        If they are not real numbers.

    Examples
    --------
    >>> real_values("step", lambda x: x > 0, np.array([-1.0, 2.0]))
    array([0., 1.])
    """
    y = np.asarray(f(x))
    if y.dtype.kind not in "buif":
        raise ValueError(
            f"activation {name!r} must be real with its derivatives, got values of type {y.dtype}"
        )
    return y.astype(np.float64)


def elementwise_values(name: str, f: Function, x: Floats) -> Floats:
    """Values of an activation or a derivative, one finite number for each argument."""
    y = real_values(name, f, x)
    if y.shape != x.shape:
        raise ValueError(f"activation {name!r} must be elementwise, got shape {y.shape} from {x.shape}")
    if not np.isfinite(y).all():
        at = float(x[~np.isfinite(y)][0])
        raise ValueError(
            f"activation {name!r} must be finite with its derivatives, got a bad value at {at!r}"
        )
    return y


@quiet  # what overflows does not settle
def average(name: str, at: Callable[[int], Floats], scale: Callable[[Floats], Floats]) -> Floats:
    """First of at(1), at(2), ... within tolerance of the one before."""
    last: Floats | None = None
    for level in range(_LEVELS):
        try:
            new = at(level)
        except ConvergenceError as error:
            raise ConvergenceError(f"activation {name!r}: {error}", estimate=last) from None
        if last is not None and np.all(np.abs(new - last) <= _TOLERANCE * np.abs(scale(new)) + _FLOOR):
            return new
        last = new
    raise ConvergenceError(
        f"averages of activation {name!r} did not settle to {_TOLERANCE:g}: is it smooth?",
        estimate=last,
    )


_STEEPEST = 1e75  # fourth powers of a slope stay in range


@dataclass(frozen=True)
class PiecewiseLinear(Kernels):
    r"""x for x > 0 and `slope` x for x < 0: arc-cosine kernels, written so that no digit cancels.

    With :math:`\cos\theta = b/a`, :math:`\beta = \pi - \theta`, :math:`g(x) = \sin x - x \cos x`,
    :math:`e = (1 - s)^2/4`, :math:`o = (1 + s)^2/4`:
    :math:`I_\phi = (o - e) b + 2 e a\, g(\beta)/\pi`, the gap is :math:`(o + e) d - 2 e a\, g(\theta)/\pi`,
    :math:`I_{\phi'} = o - e + 2 e \beta/\pi`, its gap is :math:`2 e \theta/\pi`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (7), evaluated for ReLU (slope 0).

    Examples
    --------
    >>> round(PiecewiseLinear(0.0).value(2.0, 0.0, 2.0).overlap * np.pi, 12)
    1.0
    """

    slope: float

    def __post_init__(self) -> None:
        slope = scalar("slope", self.slope, finite)
        require(abs(slope) <= _STEEPEST, "slope", f"at most {_STEEPEST:g} in size", self.slope)

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        o, e = self._parts()
        both = o + e  # a common factor, so that only the results may overflow
        # shares of o + e, so that squares of a large slope overflow only where the result does
        scale = 2 * (e / both) * variance / math.pi
        theta, beta = _angles(variance, covariance, gap)
        overlap = self.slope / both * covariance + scale * _sine_excess(beta)
        difference = gap - scale * _sine_excess(theta)
        return Moments(both * variance, both * overlap, both * max(difference, 0.0))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative; at variance 0 the average over the two sides of the kink."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        o, e = self._parts()
        theta, beta = _angles(variance, covariance, gap)
        return Moments(o + e, self.slope + 2 * e * beta / math.pi, 2 * e * theta / math.pi)

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative, a Dirac delta of weight 1 - slope; needs two different inputs."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        _, e = self._parts()
        if e == 0:
            return 0.0
        require_apart(variance, covariance, gap)
        return 2 * e / math.pi / math.sqrt(gap) / math.sqrt(variance + covariance)

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""
        covariance, gap = share_arguments(covariance, gap)
        if not gap > 0:
            square = 0.5 * (1 + self.slope**4)
            return Fluctuations(0.0, 0.0, 0.0, square, 0.0)
        t, weights = _kink_rule(covariance, gap)
        value, derivative, square, cross = _kinked_moments(t, self.slope)
        rows = np.array([value**2, derivative**2, derivative * square, square**2, cross**2])
        value2, derivative2, mixed, square2, cross2 = (rows @ weights).tolist()
        return Fluctuations(value2 * gap * gap, derivative2, mixed, square2, cross2 * gap)

    def _parts(self) -> tuple[float, float]:
        """Weights o and e of the odd (linear) and the even part of the activation, squared."""
        return (0.5 * (1 + self.slope)) ** 2, (0.5 * (1 - self.slope)) ** 2


def _angles(variance: float, covariance: float, gap: float) -> tuple[float, float]:
    """Return the angle between the inputs, and its supplement."""
    if variance == 0:
        return 0.0, math.pi
    # from the half angle: arccos of a number near 1 loses half of the digits
    small = 2 * math.asin(math.sqrt(max(min(gap, variance + covariance), 0.0) / variance / 2))
    return (small, math.pi - small) if covariance >= 0 else (math.pi - small, small)


def _sine_excess(x: float) -> float:
    """Return sin x - x cos x."""
    if x >= 0.2:
        return math.sin(x) - x * math.cos(x)
    y = x * x
    # the series, since both terms differ by about x^3 / 3 only
    return x * y * (1 / 3 - y * (1 / 30 - y * (1 / 840 - y * (1 / 45360 - y / 3991680))))


def _kink_rule(covariance: float, gap: float) -> tuple[Floats, Floats]:
    """Nodes t = sqrt(b) z / sqrt(d) and weights over z, resolving the kink's scale sqrt(d/b) as well as 1."""
    # roots first: the quotient of the squares may overflow
    ratio = min(math.sqrt(covariance) / math.sqrt(gap), 1e150)
    core = min(1.0, 1 / ratio) if ratio > 0 else 1.0
    step = 0.05
    n = math.ceil(math.asinh(10.0 / core) / step)
    x = step * np.arange(-n, n + 1, dtype=float)
    # sinh spreads the nodes over both scales, that of the kink and 1
    z = core * np.sinh(x)
    weights = step * core * np.cosh(x) * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return np.clip(ratio * z, -40.0, 40.0), weights  # beyond 40 all is saturated


def _kinked_moments(t: Floats, slope: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Var phi, Var phi', E phi'^2, Cov(phi, phi') of a leaky ReLU at N(t, 1)."""
    ndtr: Callable[[Floats], Floats] = special.ndtr
    p, q, density = ndtr(t), ndtr(-t), normal_density(t)
    jump = 1 - slope
    # relu(u) = u + relu(-u) carries the variance from the negative side, where nothing cancels
    below = -np.abs(t)
    tail = ndtr(below)
    mean = below * tail + density
    variance = (1 + below**2) * tail + below * density - mean**2
    relu = np.where(t > 0, 1 - 2 * q, 0.0) + np.maximum(variance, 0.0)
    value = slope**2 + 2 * slope * jump * p + jump**2 * relu
    rectified: Floats = np.where(t > 0, (t * p + density) * q, mean * q)
    cross = slope * jump * density + jump**2 * rectified
    return value, jump**2 * p * q, p + slope**2 * q, cross


@dataclass(frozen=True)
class Erf(NumericalKernels):
    r"""Closed forms for erf: :math:`I_\phi = \frac 2\pi \arcsin\frac{2b}{1 + 2a}`, as arctangents.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (7), evaluated for erf.
    """

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of erf."""
        a, b, gap = pair_arguments(variance, covariance, gap)
        own, cross = _erf_roots(a, b, gap)
        moment, overlap = (2 / math.pi * math.atan2(2 * x, s) for x, s in ((a, own), (b, cross)))
        if b < 0 or a == 0:
            return Moments(moment, overlap, moment - overlap)
        # sine and cosine of the difference of the two arcsines, safe from overflow
        share, top = a / (a + b), 1 + 2 * a
        sine = 2 * gap / (share * cross + (1 - share) * own)
        cosine = (own / top) * (cross / top) + 4 * (a / top) * (b / top)
        return Moments(moment, overlap, 2 / math.pi * math.atan2(sine, cosine))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        own, cross = _erf_roots(variance, covariance, gap)
        difference = 4 * (gap / own) * ((variance + covariance) / cross) / (own + cross)
        return Moments(*(4 / math.pi * x for x in (1 / own, 1 / cross, difference)))

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        cross = _erf_roots(variance, covariance, gap)[1]
        return 16 / math.pi * (covariance / cross) / cross / cross


def _erf_roots(a: float, b: float, d: float) -> tuple[float, float]:
    """Roots of (1 + 2a)^2 - 4a^2 and (1 + 2a)^2 - 4b^2."""
    return math.sqrt(1 + 4 * a), math.sqrt(1 + 2 * d) * math.sqrt(1 + 2 * (a + b))
