r"""Gaussian averages of an activation: what one wide layer does to the moments of a pair of inputs.

============================  =========================================================================
name                          symbol (Karakida, Akaho and Amari 2019, Section 2.2)
============================  =========================================================================
``variance``, ``covariance``  :math:`a, b`: pre-activations :math:`(u, u')` have variance a, covariance b
``gap``                       :math:`d = a - b`, an argument of its own: it outlives its rounding in a - b
``Moments.moment``            :math:`E\,\phi(u)^2 = I_\phi[a, a]`
``Moments.overlap``           :math:`I_\phi[a, b] = E\,\phi(u)\phi(u')`
``Moments.gap``               :math:`I_\phi[a, a] - I_\phi[a, b]`, never computed as a difference
``Kernels.derivative``        the same three for :math:`\phi'`
``Kernels.curvature``         :math:`I_{\phi''}[a, b]`
``Kernels.fluctuations``      averages over z of conditional variances, with
                              :math:`u = \sqrt b z + \sqrt d \zeta`
============================  =========================================================================

A leaky ReLU and erf have closed forms. A smooth activation is averaged by the trapezoidal rule in the Gaussian
variables, one with kinks by Gauss-Legendre panels between them; both converge exponentially and are refined until two
results agree, so an activation that is rougher than it says is found out and refused.

The panels never cross a kink or jump. With :math:`u = \sqrt b z + \sqrt d \zeta` the plane of :math:`(z, \zeta)` is
cut along the lines on which u meets a kink k. In z, where the conditional averages are smooth on the scale
:math:`\sqrt d` about k, panels of that length surround each kink and grow away from it; positions are kept as
distances from the nearest kink, so that no gap is too small. Only the number of nodes per panel grows until two
results agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from theory._checks import Floats, finite, quiet, require
from theory.activations._quadrature import (
    ConvergenceError,
    Erf,
    Fluctuations,
    Function,
    Grid,
    Integrand,
    Kernels,
    Moments,
    NumericalKernels,
    Part,
    PiecewiseLinear,
    average,
    elementwise_values,
    normal_density,
    pair_arguments,
    real_values,
    require_apart,
    share_arguments,
)

__all__ = [
    "ConvergenceError",
    "Erf",
    "Fluctuations",
    "Kernels",
    "KinkedQuadrature",
    "Moments",
    "NumericalKernels",
    "PiecewiseLinear",
    "real_values",
]


_ORDERS = (14, 19, 28, 42, 60)  # nodes per panel, one number for each level
_PANEL = 3.0  # length of a panel in a Gaussian variable
_GROWTH = 0.7  # length of a panel over its distance from the nearest kink, where that is far
_SMALL_SCALE = 1e-2  # of zeta; below, deviations of phi are integrals of phi' instead of differences
_SMALL_STEP = 1.0  # the same for a function that jumps, perhaps far out in the tails
_LARGEST = 1 << 24
_SMOOTH = 1e-10  # a jump below this part of the function is rounding
_BESIDE = 1e-14  # nodes stay this far, relative to the kink, on their side of it
_NEGLIGIBLE = 40.0  # natural logarithms below a maximum
_REACHED = 14.0  # standard deviations beyond which a kink is never met; the chance is 1e-44
_FARTHEST = 38.0  # standard deviations; the density underflows beyond
_ROUNDING = 1e-15  # a mean below this part of the root mean square is 0
_TINY = 1e-60  # the variance that stands for 0, where a kink has two sides


@dataclass(frozen=True)
class KinkedQuadrature(NumericalKernels):
    r"""Activation that is smooth but at the points `kinks`; accurate to about 1e-13, certified to 1e-12.

    Parameters
    ----------
    name, function, first, second
        As in :class:`NumericalKernels`; away from the kinks `first` and `second` are the derivatives of `function`.
    kinks
        Points where `function` or a derivative jumps; how far is found from both sides. Where `function` itself
        jumps only :meth:`value` exists.

    Raises
    ------
    ValueError
        If a callable returns values that are not finite or of another shape, or moments do not exist.
    ConvergenceError
        If refinement does not settle: a kink that is not listed, or features much finer than 1.

    Examples
    --------
    >>> clip = KinkedQuadrature("clip", lambda x: np.clip(x, -1, 1), lambda x: 1.0 * (abs(x) < 1), kinks=(-1, 1))
    >>> round(clip.value(1.0, 1.0, 0.0).moment, 12)  # 1 - 2 pdf(1)
    0.516058550962
    """

    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        points = finite("kinks", self.kinks)
        require(points.ndim == 1, "kinks", "a sequence of points", self.kinks)
        object.__setattr__(self, "kinks", tuple(sorted({0.0 + x for x in points.tolist()})))

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself; at variance 0 the average over the two sides of a jump."""
        return super().value(*_positive(variance, covariance, gap))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative; at variance 0 the average over the two sides of a kink."""
        self._require_continuous()
        return super().derivative(*_positive(variance, covariance, gap))

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative, with the Dirac deltas at the kinks; needs two different inputs."""
        self._require_continuous()
        a, b, d = pair_arguments(variance, covariance, gap)
        return self._overlap_with_deltas(2, a, b, d)

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""
        self._require_continuous()
        shared, own = share_arguments(covariance, gap)
        return super().fluctuations(shared if shared + own > 0 else _TINY, own)

    @cached_property
    def _jumps(self) -> tuple[Floats, ...]:
        functions = (self.function, self.first, self.second)
        return tuple(np.zeros(0) if f is None else jumps_of(self.name, f, self.kinks) for f in functions)

    def _require_continuous(self) -> None:
        jumps = np.flatnonzero(self._jumps[0])
        if jumps.size:
            raise ValueError(
                f"activation {self.name!r} must be continuous for moments of its derivative, "
                f"got a jump at {self.kinks[int(jumps[0])]!r}"
            )

    def _curve(self, order: int) -> Integrand:
        return super()._curve(order)._replace(jumps=self._jumps[order])

    def _grid(self, b: float, d: float, level: int) -> Grid:
        kinks, radius, order = np.array(self.kinks), self._radius(b + d) + 0.25 * level, _ORDERS[level]
        return _Panels(kinks, _outer_nodes(kinks, b, d, radius, order), d, radius, order)

    @quiet
    def _radius(self, variance: float) -> float:
        """Where the density is negligible, in the fourth power of the activation and at the kinks it can reach."""
        scale, plain = math.sqrt(variance), math.sqrt(2 * _NEGLIGIBLE)
        z = np.linspace(-_FARTHEST, _FARTHEST, 305)
        found = [math.hypot(k / scale, plain) for k in self.kinks if abs(k) <= _REACHED * scale]
        for f in (self.function, self.first):
            logs = 4 * np.log(np.abs(real_values(self.name, f, scale * z))) - 0.5 * z**2
            logs = np.where(np.isfinite(logs), logs, -np.inf)
            seen = np.abs(z[(logs >= logs.max() - _NEGLIGIBLE) & (logs > -np.inf)])
            found.append(float(seen.max(initial=0.0)))
        return max(plain, *found)

    def _slope_overlap(self, a: float, b: float) -> float:
        return self._overlap_with_deltas(1, a, b, a - b)

    @quiet
    def _overlap_with_deltas(self, order: int, a: float, b: float, d: float) -> float:
        """Overlap of a derivative in the sense of distributions: the one before it may jump at the kinks."""
        curve, jumps, kinks = self._curve(order), self._jumps[order - 1], np.array(self.kinks)
        regular = self._moments(curve, *_positive(a, b, d)).overlap
        if not jumps.any():
            return regular
        require_apart(a, b, d)
        at_kinks = average(
            self.name,
            lambda level: self._average_at_kinks(curve, a, b, d, level),
            lambda x: np.tile(x[1], (2, 1)),
        )
        first = jumps * normal_density(kinks / math.sqrt(a)) / math.sqrt(a)
        # products of Dirac deltas at the kinks: u + u' and u - u' are independent
        plus, minus = kinks[:, None] + kinks, kinks[:, None] - kinks
        density = np.exp(-0.25 * plus**2 / (a + b) - 0.25 * minus**2 / d)
        deltas = float(jumps @ density @ jumps) / (2 * math.pi) / math.sqrt(d) / math.sqrt(a + b)
        return regular + 2 * float(first @ at_kinks[0]) + deltas

    def _average_at_kinks(self, curve: Integrand, a: float, b: float, d: float, level: int) -> Floats:
        """Average of a function of u' given that u is at each of the kinks, and its root mean square."""
        kinks, spread = np.array(self.kinks), d * ((a + b) / a)
        nodes = _Nodes(kinks, -d / a * kinks, np.ones_like(kinks))
        return _root_mean_square(_Panels(kinks, nodes, spread, self._radius(a), _ORDERS[level]), curve)

    def _mean(self, a: float, level: int) -> Floats:
        grid = _Panels(np.array(self.kinks), _ORIGIN, a, self._radius(a), _ORDERS[level])
        mean, size = _root_mean_square(grid, self._curve(0))[:, 0].tolist()
        return np.array([0.0 if abs(mean) < _ROUNDING * size else mean, size])


def _positive(variance: float, covariance: float, gap: float) -> tuple[float, float, float]:
    a, b, d = pair_arguments(variance, covariance, gap)
    return (a, b, d) if a > 0 else (_TINY, _TINY, 0.0)


def _root_mean_square(grid: _Panels, curve: Integrand) -> Floats:
    """Conditional mean and root mean square, the two rows."""
    part = grid.part(curve)
    return np.array([part.mean, np.hypot(part.mean, np.sqrt(grid.covariance(part, part)))])


def jumps_of(name: str, f: Function, kinks: Sequence[float]) -> Floats:
    """Differences of the limits from both sides, each a parabola through three values close by."""
    k = np.array(kinks)[:, None]
    apart = np.diff(kinks, prepend=-np.inf, append=np.inf)
    step = np.minimum(1e-6 * np.maximum(1.0, np.abs(k)), np.minimum(apart[:-1], apart[1:])[:, None] / 8)
    close_by = [elementwise_values(name, f, k + side * step * np.array([1.0, 2.0, 3.0])) for side in (-1, 1)]
    # the parabola through values at 1, 2 and 3 steps, extrapolated to 0
    left, right = (y @ np.array([3.0, -3.0, 1.0]) for y in close_by)
    far = np.abs(elementwise_values(name, f, k + np.array([-1.0, 1.0]))).max(axis=1)
    size = np.maximum(far, np.abs(np.hstack(close_by)).max(axis=1))
    return np.where(np.abs(right - left) <= _SMOOTH * size, 0.0, right - left)


class _Nodes(NamedTuple):
    """Points of sqrt(b) z as `anchor` + `offset`, with the weights of the average over z."""

    anchor: Floats
    offset: Floats
    weight: Floats


_ORIGIN = _Nodes(np.zeros(1), np.zeros(1), np.ones(1))


def _outer_nodes(kinks: Floats, b: float, d: float, radius: float, order: int) -> _Nodes:
    """Nodes in z for a function that is smooth but for the scale sqrt(d) about the kinks."""
    if b == 0:
        return _ORIGIN
    outer, inner = math.sqrt(b), math.sqrt(d)
    end = radius * outer
    sharp = {*kinks.tolist(), *(-kinks).tolist()}  # symmetric: a negative covariance mirrors the grid
    # 0 is always one of them: no kink may be within reach
    anchors = sorted(x for x in {0.0, *sharp} if abs(x) < end)
    halves = [0.5 * (y - x) for x, y in pairwise(anchors)]
    left, right = [anchors[0] + end, *halves], [*halves, end - anchors[-1]]
    panels: list[tuple[float, float, float]] = []
    for x, below, above in zip(anchors, left, right, strict=True):
        near = inner if any(abs(x - k) < 2 * radius * inner for k in sharp) else 0.0
        edges = [list(_distances(reach, near, radius, inner, outer)) for reach in (below, above)]
        panels += [(x, -far, -close) for close, far in reversed(list(pairwise(edges[0])))]
        panels += [(x, close, far) for close, far in pairwise(edges[1])]
    anchor, low, high = np.array(panels).T[:, :, None]
    x, w = _legendre(order)
    offset = 0.5 * (low + high) + 0.5 * (high - low) * x
    weight = 0.5 * (high - low) / outer * w * normal_density((anchor + offset) / outer)
    return _Nodes((anchor + 0 * offset).ravel(), offset.ravel(), weight.ravel())


def _distances(reach: float, near: float, radius: float, inner: float, outer: float) -> Iterator[float]:
    """Edges of panels from an anchor to `reach`, of length `near` as long as the anchor's kink is felt."""
    at = 0.0
    yield at
    while at < reach:
        felt = at < radius * near
        length = _PANEL * near if felt else max(1.0, _GROWTH * at, _PANEL * inner)
        at = min(reach, at + min(length, _PANEL * outer))
        yield at


class _Panels:
    """Panels in zeta at every node of z, cut at the kinks: one row of nodes per panel, those of a node together."""

    @quiet
    def __init__(self, kinks: Floats, nodes: _Nodes, d: float, radius: float, order: int) -> None:
        self.weights, self._scale, self._order = nodes.weight, math.sqrt(d), order
        # in this order: the distance of a node from its own kink keeps its digits however small
        crossings = ((kinks - nodes.anchor[:, None]) - nodes.offset[:, None]) / self._scale
        origin = -(nodes.anchor + nodes.offset)[:, None] / self._scale
        self._edges = self._cut(crossings, origin, radius)
        if self._edges.size * order > _LARGEST:
            raise ConvergenceError(f"variance {d:g} is too large for so many kinks")
        self._filled = np.diff(self._edges, axis=1) > 0
        # a few per cent of a large grid are left
        self._row, at = np.nonzero(self._filled)
        low, high = self._edges[self._row, [at, at + 1]]
        self._centre = np.flatnonzero((low <= 0) & (high > 0))
        self._half = 0.5 * (high - low)[:, None]
        middle = 0.5 * (low + high)
        self._piece = (crossings[self._row] <= middle[:, None]).sum(axis=1)
        x, w = _legendre(order)
        zeta = middle[:, None] + self._half * x
        self._inner = self._half * w * normal_density(zeta)
        self._u = self._arguments(nodes, kinks, zeta)

    def part(self, curve: Integrand) -> Part:
        """Conditional mean and deviations; where they are small, by integrating the derivative."""
        if curve.slopes is None or self._scale > (_SMALL_STEP if curve.jumps.any() else _SMALL_SCALE):
            y = curve.values(self._u)
            mean = self._sums(y)
            # without a spread in zeta, rounding of the values would count as a deviation
            return Part(mean, (y - mean[self._row][:, None]) * (self._scale > 0))
        moved = self._rises(curve.slopes(self._u), curve.jumps)
        mean = self._sums(moved)
        start = curve.values(self._u[self._centre, :1])[:, 0] - moved[self._centre, 0]
        return Part(start + mean, moved - mean[self._row][:, None])

    def covariance(self, x: Part, y: Part) -> Floats:
        """Conditional covariance."""
        return self._sums(x.samples * y.samples)

    def _sums(self, y: Floats) -> Floats:
        return np.asarray(
            np.bincount(self._row, (y * self._inner).sum(axis=1), len(self.weights)), np.float64
        )

    def _rises(self, slopes: Floats, jumps: Floats) -> Floats:
        """Integral from next to zeta = 0 to every node, and the jumps on the way."""
        _, w = _legendre(self._order)
        rates = self._scale * self._half * slopes
        whole = np.zeros(self._filled.shape)
        whole[self._filled] = rates @ w
        before = (np.cumsum(whole, axis=1) - whole)[self._filled]
        before += np.concatenate([[0.0], np.cumsum(jumps)])[self._piece]
        before -= before[self._centre][self._row]  # so that the tails differ from 0 by little, not from 1
        return before[:, None] + rates @ _integration(self._order).T

    def _cut(self, crossings: Floats, origin: Floats, radius: float) -> Floats:
        """Edges of the panels at every node, ascending; features of size 1 sit at the kinks or at 0."""
        count = math.ceil(2 * radius / _PANEL)
        even = np.broadcast_to(np.linspace(-radius, radius, count + 1), (len(origin), count + 1))
        edges = [even, crossings]
        if _PANEL * self._scale > 1:
            apart = 3.0 ** np.arange(0, math.ceil(math.log(2 * radius * self._scale, 3)) + 1) / self._scale
            centres = np.concatenate([origin, crossings], axis=1)[:, :, None]
            edges += [(centres + np.append(-apart[::-1], apart)).reshape(len(origin), -1), origin]
        # a few ascending runs, which a stable sort merges
        return np.sort(np.clip(np.concatenate(edges, axis=1), -radius, radius), axis=1, kind="stable")

    def _arguments(self, nodes: _Nodes, kinks: Floats, zeta: Floats) -> Floats:
        """Arguments of the activation, each on its own side of the kinks even where they round to one."""
        u = nodes.anchor[self._row][:, None] + (nodes.offset[self._row][:, None] + self._scale * zeta)
        # a node that rounds onto a kink would take its value from the other side
        margin = np.maximum(_BESIDE * np.abs(kinks), 1e-300)
        low, high = np.append(-np.inf, kinks + margin), np.append(kinks - margin, np.inf)
        return np.clip(u, low[self._piece][:, None], high[self._piece][:, None])


@cache
def _legendre(order: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(order)
    return x, w


@cache
def _integration(order: int) -> Floats:
    """Matrix of the integrals from -1 to each Gauss-Legendre node, exact for the interpolating polynomial."""
    x, w = _legendre(order)
    p = np.polynomial.legendre.legvander(x, order)
    rises = np.empty((order, order))
    rises[:, 0] = x + 1
    rises[:, 1:] = (p[:, 2:] - p[:, :-2]) / (2 * np.arange(1, order) + 1)
    coefficients = (np.arange(order) + 0.5)[:, None] * (p[:, :-1] * w[:, None]).T
    return rises @ coefficients
