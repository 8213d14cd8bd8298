"""Formulas that can be evaluated and edited: values at many points at once, and every formula that is one slip away.

Nothing here knows which claims there are, and nothing here is read by them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import signature
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import special
from sympy.functions.elementary.piecewise import ExprCondPair

from simulate.monte_carlo import Point

__all__ = [
    "ClosedForm",
    "Floats",
    "Quantity",
    "Sample",
    "average",
    "average_slope",
    "evaluate",
    "expression",
    "marchenko_pastur",
    "mutants",
    "quantities",
    "shared",
    "squared_component",
    "squared_diagonal_of_power",
    "trace_of_power",
]

Floats = NDArray[np.floating[Any]]
Quantity = Callable[[Point], Any]


class ClosedForm(NamedTuple):
    """A formula as a function of symbols, and the quantities in it that are no parameters of the point.

    Arguments are named like the parameters and measured inputs of the claim; `x` is the argument of a distribution
    function.
    """

    formula: Callable[..., Any]
    quantities: Mapping[str, Quantity] = {}


def expression(form: ClosedForm) -> sympy.Expr:
    """The formula as it is written: nothing is collected, cancelled or reordered."""
    with sympy.evaluate(False):
        return _flat(sympy.sympify(form.formula(*map(sympy.Symbol, _arguments(form)))))


def quantities(form: ClosedForm, point: Mapping[str, Any]) -> dict[str, float]:
    """The values of the symbols at a point."""
    return {name: float(_value(form, name, point)) for name in _arguments(form)}


def _value(form: ClosedForm, name: str, point: Any) -> Any:
    return form.quantities[name](point) if name in form.quantities else point[name]


def _arguments(form: ClosedForm) -> tuple[str, ...]:
    return tuple(signature(form.formula).parameters)


def _flat(node: Any) -> Any:
    """Sums of sums and products of products as one."""
    args = [_flat(a) for a in node.args]
    if isinstance(node, (sympy.Add, sympy.Mul)):
        args = [b for a in args for b in (a.args if isinstance(a, node.func) else (a,))]
    return node.func(*args) if args else node


# --- values --------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """Values of the symbols at several points, one column each, and the points for what else they say."""

    points: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Floats]

    @classmethod
    def at(cls, rows: Sequence[Mapping[str, float]], points: Sequence[Mapping[str, Any]]) -> Sample:
        names = rows[0] if rows else ()
        return cls(points, {name: np.array([row[name] for row in rows]) for name in names})

    def scattered(self, rng: np.random.Generator, copies: int) -> Sample:
        """Every value, of every quantity by itself, times a factor between 1/6 and 6."""
        wide = {name: np.repeat(column, copies) for name, column in self.columns.items()}
        moved = {name: column * 6.0 ** rng.uniform(-1, 1, len(column)) for name, column in wide.items()}
        return Sample([p for p in self.points for _ in range(copies)], moved)


def evaluate(node: Any, sample: Sample, memo: dict[Any, Any]) -> Any:
    """Values of an expression at a sample, in float64; NaN where it has none."""
    if node not in memo:
        memo[node] = _evaluated(node, sample, memo)
    return memo[node]


def _evaluated(node: Any, sample: Sample, memo: dict[Any, Any]) -> Any:
    if isinstance(node, sympy.Symbol):
        return sample.columns[node.name]
    if node.is_number and not node.args:
        return float(node)
    args = [evaluate(a, sample, memo) for a in node.args]
    if node.func.__name__ in KERNELS:
        return KERNELS[node.func.__name__](sample.points, *args)
    return OPERATIONS[node.func](*args)


OPERATIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: lambda *terms: sum(terms),
    sympy.Mul: lambda *factors: math.prod(factors),
    sympy.Pow: np.float_power,
    sympy.Max: lambda *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    sympy.Min: lambda *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    sympy.StrictGreaterThan: np.greater,
    sympy.StrictLessThan: np.less,
    ExprCondPair: lambda value, condition: (value, condition),
    sympy.Piecewise: lambda *pairs: np.select(
        [np.asarray(c, bool) for _, c in pairs], [v for v, _ in pairs], np.nan
    ),
    sympy.exp: np.exp,
    sympy.log: np.log,
    sympy.asin: np.arcsin,
    sympy.erf: special.erf,
}


# --- Gaussian averages of an activation and of its slope -----------------------------------------------------


def _relu_value(a: Floats, b: Floats) -> Floats:
    c = b / a
    return a * (np.sqrt(1 - c * c) + c * (np.pi - np.arccos(c))) / (2 * np.pi)


def _relu_slope(a: Floats, b: Floats) -> Floats:
    return (np.pi - np.arccos(b / a)) / (2 * np.pi)


def _erf_value(a: Floats, b: Floats) -> Floats:
    return 2 / np.pi * np.arcsin(2 * b / (1 + 2 * a))


def _erf_slope(a: Floats, b: Floats) -> Floats:
    return 4 / np.pi / np.sqrt((1 + 2 * a) ** 2 - 4 * b * b)


STEP = 0.1
NODES = STEP * np.arange(-84, 85)
WEIGHTS = STEP * np.exp(-(NODES**2) / 2) / np.sqrt(2 * np.pi)
"""Trapezoidal rule: to rounding for smooth functions of Gaussians of variance below 10."""


def _by_quadrature(function: Callable[[Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    def average(a: Floats, b: Floats) -> Floats:
        if (a == b).all():
            return function(np.sqrt(a)[:, None] * NODES) ** 2 @ WEIGHTS
        scale, c = np.sqrt(a)[:, None, None], (b / a)[:, None, None]
        first, second = NODES[:, None], NODES
        pair = function(scale * first) * function(scale * (c * first + np.sqrt(1 - c * c) * second))
        return (pair @ WEIGHTS) @ WEIGHTS

    return average


def _by_conditional_mean(
    mean: Callable[..., Floats], square: Callable[[Floats], Floats]
) -> Callable[..., Floats]:
    """From E f(x + s zeta), which is smooth where f is not, and from E f^2 for equal arguments."""

    def average(a: Floats, b: Floats) -> Floats:
        if (a == b).all():
            return square(a)
        z, s = np.sqrt(b)[:, None] * NODES, np.sqrt(a - b)[:, None]
        return mean(z, s) ** 2 @ WEIGHTS

    return average


def _clipped_mean(x: Floats, s: Floats) -> Floats:
    """E max(-1, min(u, 1)) at mean x and standard deviation s."""
    upper, lower = (x + 1) / s, (x - 1) / s
    ends = [t * special.ndtr(t) + np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi) for t in (upper, lower)]
    return s * (ends[0] - ends[1]) - 1


def _clipped_square(a: Floats) -> Floats:
    t = 1 / np.sqrt(a)
    density = np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi)
    return a * (1 - 2 * special.ndtr(-t) - 2 * t * density) + 2 * special.ndtr(-t)


KERNEL_OF = {
    "average": {
        "relu": _relu_value,
        "erf": _erf_value,
        "tanh": _by_quadrature(np.tanh),
        "sigmoid": _by_quadrature(special.expit),
        "softplus": _by_quadrature(lambda x: np.logaddexp(0, x)),
        "hard_tanh": _by_conditional_mean(_clipped_mean, _clipped_square),
    },
    "average_slope": {
        "relu": _relu_slope,
        "erf": _erf_slope,
        "tanh": _by_quadrature(lambda x: 1 - np.tanh(x) ** 2),
        "sigmoid": _by_quadrature(lambda x: special.expit(x) * special.expit(-x)),
        "softplus": _by_quadrature(special.expit),
        "hard_tanh": _by_conditional_mean(
            lambda x, s: special.ndtr((x + 1) / s) - special.ndtr((x - 1) / s),
            lambda a: special.erf(np.sqrt(0.5 / a)),
        ),
    },
}


def _kernel(name: str) -> Callable[..., Floats]:
    """The average of one argument (a variance) or of two (variance and covariance)."""

    def values(points: Sequence[Mapping[str, Any]], variance: Any, covariance: Any = None) -> Floats:
        pair = (variance, variance if covariance is None else covariance)
        a, b = (np.broadcast_to(np.asarray(x, float), len(points)) for x in pair)
        found = np.full(len(points), np.nan)
        for activation, kernel in KERNEL_OF[name].items():
            mine = np.array([p["activation"] == activation for p in points])
            if mine.any():
                found[mine] = kernel(a[mine], b[mine])
        return found

    return values


KERNELS: dict[str, Callable[..., Any]] = {name: _kernel(name) for name in KERNEL_OF}
average, average_slope = (sympy.Function(name) for name in KERNEL_OF)


# --- laws and sums by other means than the claims -------------------------------------------------------------

ANGLES, ANGLE_WEIGHTS = np.polynomial.legendre.leggauss(120)


def _marchenko_pastur(_: Any, x: Any, ratio: Any, variance: Any) -> Floats:
    """Distribution function: the density integrated over the angle that its ends are smooth in, plus the atom."""
    x, q, v = np.broadcast_arrays(
        np.asarray(x, float), ratio, np.where(np.asarray(variance) > 0, variance, np.nan)
    )
    t, half_width = x / v, 2 * np.sqrt(q)
    last = np.arccos(np.clip((1 + q - t) / half_width, -1, 1))
    angle = last[:, None] * (1 + ANGLES) / 2
    lower = (1 + q)[:, None] - half_width[:, None] * np.cos(angle)
    density = half_width[:, None] ** 2 * np.sin(angle) ** 2 / (2 * np.pi * q[:, None] * lower)
    return last / 2 * (density @ ANGLE_WEIGHTS) + np.maximum(1 - 1 / q, 0) * (t >= 0)


def _squared_component(_: Any, x: Any, dim: Any) -> Floats:
    """P(dim v_1^2 <= x) for a random unit vector, by Student's t: (dim - 1) v_1^2 / (1 - v_1^2) is its square."""
    b = np.asarray(x, float) / dim
    return 2 * special.stdtr(dim - 1, np.sqrt((dim - 1) * b / (1 - b))) - 1


def _probed_matrix(points: Sequence[Mapping[str, Any]]) -> Floats:
    """The fixed matrix of the probes."""
    rows = np.arange(int(points[0]["dim"]))
    return 1 / (1.3 + np.abs(rows[:, None] - rows)) + np.diag(2 * np.cos(rows))


def _of_power(statistic: Callable[[Floats], float]) -> Callable[..., Floats]:
    """A statistic of whole powers of the probed matrix; other powers have none."""

    def values(points: Sequence[Mapping[str, Any]], power: Any) -> Floats:
        matrix, powers = _probed_matrix(points), np.broadcast_to(np.asarray(power, float), len(points))
        whole = (powers == np.rint(powers)) & (powers > 0) & (powers < 16)
        known = {p: statistic(np.linalg.matrix_power(matrix, int(p))) for p in set(powers[whole])}
        return np.array([known.get(p, np.nan) for p in powers])

    return values


KERNELS |= {
    "marchenko_pastur": _marchenko_pastur,
    "squared_component": _squared_component,
    "trace_of_power": _of_power(lambda a: float(np.trace(a))),
    "squared_diagonal_of_power": _of_power(lambda a: float((np.diagonal(a) ** 2).sum())),
}
marchenko_pastur, squared_component, trace_of_power, squared_diagonal_of_power = (
    sympy.Function(name)
    for name in ("marchenko_pastur", "squared_component", "trace_of_power", "squared_diagonal_of_power")
)


# --- mutants -------------------------------------------------------------------------------------------------


shared = sympy.Function("shared")
"""A quantity that is defined once and used at several places, like a layer in a recursion."""

KERNELS["shared"] = lambda _, value: value


def mutants(formula: Any) -> list[tuple[str, Any]]:
    """Every expression that is one edit away, with the edit in words; equal ones may be among them."""
    names = sorted(formula.free_symbols, key=str)
    with sympy.evaluate(False):
        whole = {"minus": -formula, "twice": 2 * formula, "half": formula / 2}
        whole |= {"root of": sympy.sqrt(formula), "one over": 1 / formula, "square of": formula**2}
        found = {new: f"{edit} the whole" for edit, new in whole.items()}
        for edit, new in _mutants(formula, None, names):
            found.setdefault(new, edit)
        for part, (inside, parent) in _definitions(formula):
            for edit, new in _mutants(inside, parent, names):
                found.setdefault(formula.xreplace({part: new}), f"everywhere: {edit}")
    found.pop(formula, None)
    return [(edit, new) for new, edit in found.items()]


def _definitions(formula: sympy.Expr) -> Iterator[tuple[Any, Any]]:
    """What the formula uses several times, and where its inside stands: a slip in it shows everywhere."""
    for part, count in Counter(sympy.preorder_traversal(formula)).items():
        if isinstance(part, shared):
            yield part, (part.args[0], (part, 0))
        elif count > 1 and len(part.args) > 0 and part.free_symbols:
            yield part, (part, None)


def _mutants(node: Any, parent: Any, names: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(node, shared):
        return
    for edit, new in _edits(node, parent, names):
        yield edit or f"{_text(node)} -> {_text(new)}", new
    for i, arg in enumerate(node.args):
        place = "" if arg.args or isinstance(node, sympy.Add) else f" in {_text(node)}"
        part = "domain: " if isinstance(arg, sympy.core.relational.Relational) else ""
        for edit, new in _mutants(arg, (node, i), names):
            yield part + edit + place, node.func(*node.args[:i], new, *node.args[i + 1 :])


@cache
def _text(node: Any) -> str:
    text = str(node).replace(shared.__name__, "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


LONGEST = 50
POWERS = {sympy.Rational(1, 2): "square root", sympy.Integer(-1): "inverse", sympy.Integer(2): "square"}


def _edits(node: Any, parent: Any, names: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    outside, position = parent or (None, None)
    raised = isinstance(outside, sympy.Pow)
    if isinstance(node, sympy.Symbol):
        yield from (("", other) for other in names if other != node)
    if node.is_Number:
        yield from (("", n) for n in _numbers(node, exponent=raised and position == 1))
    if isinstance(node, (sympy.Add, sympy.Mul)):
        what = "term" if isinstance(node, sympy.Add) else "factor"
        place = f" of {_text(node)}" if what == "factor" else ""
        yield from ((f"without {what} {_text(a)}{place}", rest) for a, rest in _without_one(node))
    if isinstance(node, sympy.Add):
        for factor in (-1, 2, sympy.Rational(1, 2)):
            yield from ((f"{factor} times {_text(a)}", new) for a, new in _times(node, factor))
    if isinstance(node, (sympy.Symbol, sympy.Add, sympy.Function)) and not raised and outside is not None:
        yield from ((f"{name} of {_text(node)}", node**power) for power, name in POWERS.items())
    yield from _choices(node)


def _numbers(n: Any, *, exponent: bool) -> list[Any]:
    """Neighbours, double, half; of an exponent its negative too."""
    with sympy.evaluate(True):
        found = [n + 1, n - 1, 2 * n, n / 2, *([-n] if exponent else [])]
    return [x for x in found if x != n]


def _choices(node: Any) -> Iterator[tuple[str, Any]]:
    """Wrong branch, wrong side, wrong argument."""
    if isinstance(node, (sympy.Max, sympy.Min)):
        yield "", (sympy.Min if isinstance(node, sympy.Max) else sympy.Max)(*node.args)
        yield from (("", arg) for arg in node.args)
    elif isinstance(node, (sympy.StrictGreaterThan, sympy.StrictLessThan)):
        limit: Any = node.args[1]
        yield "", type(node)(*reversed(node.args))
        yield from (("", type(node)(node.args[0], factor * limit)) for factor in (2, sympy.Rational(1, 2)))
    elif isinstance(node, sympy.Piecewise):
        for order in permutations(range(len(node.args))):
            values = [node.args[i].args[0] for i in order]
            yield "", node.func(*((v, pair.args[1]) for v, pair in zip(values, node.args, strict=True)))
    elif isinstance(node, sympy.Function):
        yield from (("", arg) for arg in node.args)
        for i, j in permutations(range(len(node.args)), 2):
            yield "", node.func(*node.args[:i], node.args[j], *node.args[i + 1 :])


def _without_one(node: Any) -> Iterator[tuple[Any, Any]]:
    for i, arg in enumerate(node.args):
        rest = node.args[:i] + node.args[i + 1 :]
        yield arg, node.func(*rest) if len(rest) > 1 else rest[0]


def _times(node: Any, factor: Any) -> Iterator[tuple[Any, Any]]:
    for i, arg in enumerate(node.args):
        yield arg, node.func(*node.args[:i], factor * arg, *node.args[i + 1 :])
