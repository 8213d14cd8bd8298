r"""Signal propagation in deep random networks: fixed points, the phase, and depth scales.

============================  =============================================================================
name                          symbol
============================  =============================================================================
``variance``                  :math:`q^*`, fixed point of :math:`q \to \sigma_w^2 E\,\phi(\sqrt q z)^2 + \sigma_b^2`
``variance_slope``            slope of this map there
``chi``                       :math:`\chi = \sigma_w^2 E\,\phi'(\sqrt{q^*} z)^2`
``correlation``               :math:`c^*`, stable fixed point of the map of correlations at :math:`q^*`
``correlation_slope``         slope of that map there, :math:`\sigma_w^2 I_{\phi'}[q^*, c^* q^*]`
``variance_depth``            :math:`\xi_q = -1/\log|\text{variance\_slope}|`
``correlation_depth``         :math:`\xi_c = -1/\log \text{correlation\_slope}`
============================  =============================================================================

The maps are the recursions of `theory.order_parameters`, layer after layer. Two nearby inputs come together by the
factor :math:`\chi` per layer, and squared gradients grow by the same factor on their way back:

- ordered, :math:`\chi < 1`: all inputs end alike, :math:`c^* = 1`, and gradients vanish;
- chaotic, :math:`\chi > 1`: inputs are driven apart to :math:`c^* < 1`, and gradients explode;
- critical, :math:`\chi = 1`: no depth scale bounds the depth that signals cross.

For ReLU without biases the point :math:`\sigma_w^2 = 2` is the critical line: every variance is a fixed point there,
and with biases no critical point is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import shown
from theory._roots import bracketed_root
from theory.activations import Activation, gaussian_kernels, single
from theory.activations.gaussian import ConvergenceError, Erf, Kernels, PiecewiseLinear
from theory.order_parameters import Initialisation

__all__ = ["DepthScales", "critical_weight_variance", "depth_scales", "variance_fixed_point"]


_ROUNDING = 1e-9
"""Distance of chi from 1 up to which a network is called critical."""

_LARGEST = 1e5
"""Variance up to which fixed points of smooth activations are looked for."""

_SMALLEST = 1e-12
"""Variance below which a fixed point counts as 0."""

_NARROW = 1e-8
"""Variance below which an average is the value at 0."""

_STEP, _LEAP = 2.0, 16.0


class DepthScales(NamedTuple):
    """Fixed points of the two maps and how fast they are approached; a scale may be infinite."""

    variance: float
    variance_slope: float
    chi: float
    phase: str
    correlation: float
    correlation_slope: float
    variance_depth: float
    correlation_depth: float


class _Maps:
    """The averages of one activation, as functions of the variance."""

    def __init__(self, activation: str | Activation) -> None:
        self.activation = single(activation)
        self.kernels: Kernels = gaussian_kernels(self.activation)
        self.homogeneous = isinstance(self.kernels, PiecewiseLinear)

    def moment(self, q: float) -> float:
        """E phi^2."""
        return self.kernels.value(q, q, 0.0).moment

    def slope(self, q: float) -> float:
        """E phi'^2."""
        return self.kernels.derivative(q, q, 0.0).moment

    def growth(self, q: float) -> float:
        """Derivative of `moment`, E u phi(u) phi'(u) / q."""
        if self.homogeneous:
            return self.slope(q)
        if isinstance(self.kernels, Erf):
            return 4 / math.pi / (1 + 2 * q) / math.sqrt(1 + 4 * q)
        if q < _NARROW:
            # phi'(0)^2 + phi(0) phi''(0), the latter by a difference
            x = np.array([-1e-4, 0.0, 1e-4])
            value, slope = self.activation.function(x)[1], self.activation.derivative(x)
            return float(self.slope(0.0) + value * (slope[2] - slope[0]) / 2e-4)
        # a quarter of the difference of two squares, with a linear term twice as large that never cancels the other
        scale = 2 * math.sqrt(self._square(0.0, 1.0, q) / q)
        if scale == 0:
            return 0.0
        return (self._square(scale, 1.0, q) - self._square(scale, -1.0, q)) / (4 * q * scale)

    def _square(self, linear: float, sign: float, q: float) -> float:
        """E (linear u + sign phi phi')^2, the slope of linear u^2/2 + sign phi^2/2."""
        a = self.activation
        product = Activation(
            f"square of {a.name}",
            lambda x: 0.5 * (linear * x**2 + sign * a.function(x) ** 2),
            lambda x: linear * x + sign * a.function(x) * a.derivative(x),
            kinks=a.kinks,
        )
        return gaussian_kernels(product).derivative(q, q, 0.0).moment

    def gap(self, q: float, distance: float) -> float:
        """E phi^2 - E phi phi' at correlation 1 - distance."""
        return self.kernels.value(q, q * (1 - distance), q * distance).gap

    def overlap(self, q: float, distance: float) -> float:
        """E phi'(u) phi'(u') at correlation 1 - distance."""
        return self.kernels.derivative(q, q * (1 - distance), q * distance).overlap


def variance_fixed_point(
    activation: str | Activation, *, weight_variance: ArrayLike, bias_variance: ArrayLike
) -> float:
    r"""Variance of the pre-activations deep inside a wide random network.

    The fixed point of :math:`q \to \sigma_w^2 E\,\phi(\sqrt q z)^2 + \sigma_b^2` next to
    :math:`\sigma_w^2 + \sigma_b^2`, the variance in the first layer, on the side on which the second layer lies.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation` or its name.
    weight_variance, bias_variance
        Scalars >= 0.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or there is no such fixed point (below 1e5 for a smooth activation), as
        for ReLU with :math:`\sigma_w^2 > 2`, or with :math:`\sigma_w^2 = 2` and biases.
    ConvergenceError
        If the averages of a user's activation do not settle, or the variance of the first layer is beyond 1e5 for an
        activation other than a leaky ReLU.

    References
    ----------
    Poole et al. (2016), "Exponential expressivity in deep neural networks through transient chaos", eq. (3); in
    Karakida, Akaho and Amari (2019) eqs. (5) and (6).

    Examples
    --------
    >>> variance_fixed_point("relu", weight_variance=1.5, bias_variance=0.25)
    1.0
    >>> variance_fixed_point("tanh", weight_variance=0.9, bias_variance=0.0)
    0.0
    """
    return _fixed_point(_Maps(activation), _initialisation(weight_variance, bias_variance))


def depth_scales(
    activation: str | Activation, *, weight_variance: ArrayLike, bias_variance: ArrayLike
) -> DepthScales:
    r"""Phase of a wide random network and the depths over which it forgets its inputs.

    Parameters
    ----------
    activation, weight_variance, bias_variance
        As in :func:`variance_fixed_point`.

    Returns
    -------
    The fixed points, slopes and depths of the table above; `phase` is "ordered", "chaotic" or "critical" (within 1e-9
    of :math:`\chi = 1`, where the depth is infinite). Deviations of variances fall like :math:`e^{-l/\xi_q}` in
    layer l, those of covariances like :math:`e^{-l/\xi_c}`. At :math:`q^* = 0` all inputs coincide.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`variance_fixed_point`.

    References
    ----------
    Schoenholz et al. (2017), "Deep information propagation", eqs. (6)-(9): in the chaotic phase :math:`\xi_c` has the
    slope at :math:`c^*`, not :math:`\chi`.

    Examples
    --------
    >>> depth_scales("relu", weight_variance=2.0, bias_variance=0.0).phase
    'critical'
    >>> found = depth_scales("tanh", weight_variance=2.5, bias_variance=0.1)
    >>> found.phase, round(found.chi, 3), round(found.correlation, 3), round(found.correlation_depth, 2)
    ('chaotic', 1.1, 0.664, 13.46)
    """
    drawn, maps = _initialisation(weight_variance, bias_variance), _Maps(activation)
    sw2, q = drawn.weight, _fixed_point(maps, drawn)
    chi, slope = (sw2 * maps.slope(q), sw2 * maps.growth(q)) if sw2 > 0 else (0.0, 0.0)
    phase = "ordered" if chi < 1 - _ROUNDING else "chaotic" if chi > 1 + _ROUNDING else "critical"
    distance = _distance(maps, sw2, q) if phase == "chaotic" else 0.0
    turned = sw2 * maps.overlap(q, distance) if phase == "chaotic" else chi
    return DepthScales(q, slope, chi, phase, 1 - distance, turned, _depth(slope), _depth(turned))


def critical_weight_variance(activation: str | Activation, bias_variance: ArrayLike) -> float:
    r"""Weight variance at which a wide random network is critical, :math:`\chi = 1`.

    On the critical line :math:`(q - \sigma_b^2) E\,\phi'^2 = E\,\phi^2` and :math:`\sigma_w^2 = 1/E\,\phi'^2` at
    the variance q. The smallest q is taken at which the fixed point does not repel.

    Parameters
    ----------
    activation
        As in :func:`variance_fixed_point`.
    bias_variance
        Scalar >= 0.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the network is critical at no weight variance (with a variance below
        1e5 for a smooth activation), as ReLU with biases.
    ConvergenceError
        As in :func:`variance_fixed_point`.

    References
    ----------
    Poole et al. (2016), eq. (6) and figure 1; Schoenholz et al. (2017), section 3.

    Examples
    --------
    >>> critical_weight_variance("relu", 0.0), critical_weight_variance("tanh", 0.0)
    (2.0, 1.0)
    >>> round(critical_weight_variance("tanh", 0.05), 4)
    1.761
    """
    sb2 = _initialisation(0.0, bias_variance).bias
    maps = _Maps(activation)
    for q in _critical_variances(maps, sb2):
        slope = maps.slope(q)
        if slope > 0 and _attracts(maps, q, 1 / slope):
            return 1 / slope
    name = maps.activation.name
    rule = f"such that {name} is critical at some weight variance"
    raise ValueError(f"bias_variance must be {rule}, got {shown(bias_variance)}")


def _initialisation(weight_variance: ArrayLike, bias_variance: ArrayLike) -> Initialisation:
    drawn = Initialisation.checked(weight_variance, bias_variance)
    drawn.require_moderate(max(drawn) < 1e300)
    return drawn


def _fixed_point(maps: _Maps, drawn: Initialisation) -> float:
    found = _homogeneous(maps, *drawn) if maps.homogeneous else _smooth(maps, *drawn)
    if found is None:
        name = maps.activation.name
        rule = f"such that the variance has a fixed point for {name} and bias_variance {drawn.bias:g}"
        raise ValueError(f"weight_variance must be {rule}, got {drawn.weight:g}")
    return found


def _homogeneous(maps: _Maps, sw2: float, sb2: float) -> float | None:
    """Return the fixed point of the linear map of a homogeneous activation, or None."""
    rest = 1 - sw2 * maps.slope(1.0)
    # at slope 1 without biases every variance is a fixed point: that of the first layer is meant
    if sb2 == 0 and abs(rest) <= _ROUNDING:
        return sw2
    if rest <= 0:
        return None
    found = sb2 / rest
    return found if found < 1e300 else None


def _smooth(maps: _Maps, sw2: float, sb2: float) -> float | None:
    """Walk from the first layer in the direction of the second until the map crosses the diagonal."""

    def excess(q: float) -> float:
        return sw2 * maps.moment(q) + sb2 - q

    start = sw2 + sb2
    name, value = ("bias_variance", sb2) if sb2 > sw2 else ("weight_variance", sw2)
    if start > _LARGEST:
        sought = f"fixed points of {maps.activation.name} are looked for below {_LARGEST:g}"
        raise ConvergenceError(f"{name} {value:g} is too large: {sought}")
    if start == 0 or excess(start) == 0:
        return start
    # if 0 is a fixed point itself, variances below _SMALLEST count as 0
    lowest = 0.0 if sw2 * maps.moment(0.0) + sb2 > 0 else _SMALLEST
    if excess(start) > 0:
        q = start * _STEP
        while q < _LARGEST * _STEP:
            if excess(q) <= 0:
                return bracketed_root(excess, q / _STEP, q)
            q *= _STEP
        return None
    q = start / _STEP
    while q > lowest:
        if excess(q) >= 0:
            return bracketed_root(excess, q, q * (_STEP if q > _SMALLEST else _LEAP))
        q /= _STEP if q / _STEP > _SMALLEST else _LEAP
    return 0.0


def _distance(maps: _Maps, sw2: float, q: float) -> float:
    """Return 1 - c* of a chaotic network."""

    def excess(distance: float) -> float:
        return sw2 * maps.gap(q, distance) / q - distance

    if excess(1.0) >= -1e-14:  # no correlation is left, up to rounding
        return 1.0
    # the map of 1 - c is concave and steeper than 1 at 0, so that halving finds a point above the diagonal
    low = 0.5
    while excess(low) <= 0:
        low /= 2
        if low < _ROUNDING * _ROUNDING:  # critical up to rounding
            return low
    return bracketed_root(excess, low, 2 * low)


def _depth(slope: float) -> float:
    if abs(slope) >= 1 - _ROUNDING:
        return math.inf
    return 0.0 if slope == 0 else -1 / math.log(abs(slope))


def _critical_variances(maps: _Maps, sb2: float) -> Iterator[float]:
    """Variances on the critical line, ascending."""
    if maps.homogeneous:
        if sb2 == 0:
            yield 1.0
        return
    if sb2 == 0 and maps.moment(0.0) == 0:
        yield 0.0

    def excess(q: float) -> float:
        return (q - sb2) * maps.slope(q) - maps.moment(q)

    if sb2 >= _LARGEST:
        return
    q = sb2 or 1e-6  # not positive there: all variance is that of the biases
    before = excess(q)
    while q < _LARGEST:
        step = _STEP if q > _SMALLEST else _LEAP
        after = excess(q * step)
        if (before < 0) != (after < 0):
            yield bracketed_root(excess, q, q * step)
        q, before = q * step, after


def _attracts(maps: _Maps, q: float, sw2: float) -> bool:
    """Whether variances a little above q do not run away."""
    if q < 1e-6:  # where the growth is that at 0, whatever the sign of its slope
        return sw2 * maps.moment(1e-3) <= 1e-3 * (1 + _ROUNDING)
    return abs(sw2 * maps.growth(q)) <= 1 + 1e-6
