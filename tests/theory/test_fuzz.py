"""Every public function of the theory, fed with anything: a right value, or a ValueError that names the argument.

Infinity counts as a value where the docstring promises it, NaN never does. A new public name fails the first
test until it has a line in the table.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory import (
    activations,
    adaptive_rates,
    batch_hessian,
    derivations,
    descent_derivations,
    finite_size,
    fisher,
    gauss_newton,
    gaussian_kernels,
    lanczos_bounds,
    law_derivations,
    learning_rates,
    loss_change,
    order_parameters,
    outliers,
    own_direction,
    precise_kernels,
    rmt,
    softmax,
    spectral_derivations,
)
from theory.gaussian_kernels import ConvergenceError

EXAMPLES = 25
"""Examples per function."""

MODULES = (
    "activations",
    "adaptive_rates",
    "batch_hessian",
    "derivations",
    "descent_derivations",
    "finite_size",
    "fisher",
    "gauss_newton",
    "gaussian_kernels",
    "lanczos_bounds",
    "law_derivations",
    "learning_rates",
    "loss_change",
    "order_parameters",
    "outliers",
    "own_direction",
    "precise_kernels",
    "rmt",
    "softmax",
    "spectral_derivations",
)

SETTINGS = settings(
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(SETTINGS, max_examples=max(EXAMPLES // 2, 1))

# ------------------------------------------------------------------------------------------- what is passed

EXTREMES = [0, -0.0, 1e308, -1e308, 1.7e308, 1e-308, 5e-324, 1e200, 1e-200, 10**30, -(10**30), 1, 2, 0.5, 1.0]
TYPED = [
    np.uint8(200),
    np.int8(-100),
    np.int64(2**62),
    np.float16(0.1),
    np.float32(3.3),
    np.longdouble("1e-40"),
    np.array([200, 100], dtype=np.uint8),
    np.array([0.25, 0.75], dtype=np.float16),
    np.array(3),
    (2, 3),
]
WRONG = [
    None,
    "x",
    b"1",
    "",
    1j,
    True,
    np.False_,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    10**5000,
    Fraction(1, 3),
    Decimal("0.5"),
    np.longdouble("1e400"),
    np.datetime64("2020-01-01"),
    {},
    {1.0},
    object(),
    [None],
    [True],
    [[1.0], [1.0, 2.0]],
    np.array(["a"]),
    np.array([0.5, 0.5], dtype=object),
    np.array([0.5, math.nan]),
    np.ones(7),
    np.ones((5, 1, 1, 3)),
    np.zeros(0),
    np.zeros((0, 3)),
    [],
    len,
    int,
]
HUGE = [10**9, 10**12, 10**30, 1e15]

hostile = st.sampled_from([*EXTREMES, *TYPED, *WRONG])


def mostly(*sensible: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Sensible values, one in eight of them anything at all."""
    return st.integers(0, 7).flatmap(lambda n: hostile if n == 0 else st.one_of(*sensible))


def shaped(element: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    """Scalars, and arrays that broadcast with each other now and then."""
    return st.one_of(
        element,
        element,
        st.lists(element, min_size=2, max_size=2),
        st.lists(element, min_size=3, max_size=3).map(lambda x: np.reshape(x, (3, 1))),
    )


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)


ANY_SIZE = log_uniform(1e-307, 1e307)
SOME_SIZE = log_uniform(1e-3, 1e3)
sizes = mostly(shaped(SOME_SIZE), shaped(ANY_SIZE))
signed = mostly(shaped(st.floats(-10, 10)), shaped(ANY_SIZE.map(lambda x: -x)))
points = mostly(
    shaped(st.floats(-3, 6)), shaped(ANY_SIZE), st.sampled_from([math.inf, -math.inf, [0.0, 1.0]])
)
planes = mostly(
    shaped(st.floats(-6, 9)),
    shaped(ANY_SIZE),
    st.complex_numbers(max_magnitude=10),
    st.builds(complex, ANY_SIZE, ANY_SIZE),
    st.builds(lambda x, y: [x, y], st.complex_numbers(), st.complex_numbers()),
)
shares = mostly(
    shaped(st.floats(0, 1)), log_uniform(1e-307, 1.0), st.sampled_from([0.0, 1.0, 1 - 2**-53, [-0.1], [1.1]])
)
dims = mostly(shaped(st.integers(1, 500)), shaped(log_uniform(1.0, 1e300).map(math.floor)))
batches = mostly(shaped(log_uniform(1.0, 100.0)), shaped(ANY_SIZE))
datasets = mostly(shaped(st.sampled_from([100.0, 1e4, math.inf])), shaped(ANY_SIZE))
flags = st.one_of(st.booleans(), st.booleans(), st.booleans(), hostile)
orders = mostly(st.integers(0, 40), st.sampled_from([999, 3000.0, *HUGE]))
counts = mostly(st.integers(1, 2000), st.sampled_from(HUGE))
widths = mostly(st.lists(counts, min_size=1, max_size=4))
depths = mostly(st.integers(2, 4), st.sampled_from([1, 30, 2.0, 2.5, *HUGE]))


@st.composite
def probability(draw: st.DrawFn, *shape: int) -> Any:
    raw = draw(st.lists(log_uniform(1e-300, 1.0), min_size=math.prod(shape), max_size=math.prod(shape)))
    p = np.reshape(raw, shape)
    return p / p.sum(axis=-1, keepdims=True)


probabilities = mostly(
    probability(3),
    probability(2),
    probability(2, 3),
    probability(4, 1, 2),
    st.sampled_from(
        [[0.5, 0.5], [1.0, 0.0], [1.0, 1e-320], [1e308, 1e308], [0.5, 0.6], [1, 0, 0], np.full((2, 4), 0.25)]
    ),
)
logits = mostly(
    st.lists(st.floats(-50, 50), min_size=2, max_size=4),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=3),
    st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([[1e308, -1e308], [0, 0], [5e-324, 0.0, 1.0]]),
)

SINE = activations.Activation("sine", np.sin, np.cos, lambda x: -np.sin(x))
CLOSED = ["relu", "erf", "linear", "leaky_relu", activations.leaky_relu(-1.0), activations.leaky_relu(1e70)]
BAD = [
    activations.Activation("complex", lambda x: 1j * x, np.cos, np.cos),
    activations.Activation("words", lambda x: np.full(x.shape, "a"), np.cos, np.cos),
    activations.Activation("one number", lambda _: 1.0, np.cos, np.cos),
    activations.Activation("huge", lambda x: 1e308 * np.tanh(x), lambda x: 1e308 / np.cosh(x) ** 2),
    activations.Activation("pole", lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3),
    activations.Activation("kink", np.abs, np.sign, np.zeros_like, (0.0,)),
]
closed = st.sampled_from([*CLOSED, *CLOSED, ["relu", "erf"], ["relu"], "swish", [], *BAD])
any_activation = st.one_of(closed, closed, closed, hostile)
kernels_of = mostly(
    st.sampled_from([activations.relu, activations.erf, activations.tanh, SINE, *BAD, *CLOSED])
)
NETWORK = {
    "activation": any_activation,
    "depth": depths,
    "weight_variance": mostly(log_uniform(1e-3, 30.0), ANY_SIZE),
    "bias_variance": mostly(st.floats(0, 3), ANY_SIZE),
}
RATIOS = {
    "width_ratios": st.one_of(
        st.none(),
        st.none(),
        mostly(st.lists(st.floats(0.5, 2), min_size=1, max_size=4), st.just([1e200] * 3)),
    )
}
SAMPLES = {"width": counts, "samples": counts, "outputs": counts, "finite_width": flags}
BATCH = {"batch_size": batches, "dataset_size": datasets}


@st.composite
def pairs(draw: st.DrawFn) -> dict[str, Any]:
    """Variance, covariance and gap that belong together, or not."""
    a = draw(
        st.one_of(log_uniform(1e-3, 10.0), log_uniform(1e-3, 10.0), st.sampled_from([0.0, 1e-308, 1e300]))
    )
    share = draw(st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1.0, -1.0, 1 - 1e-9])))
    found = {"variance": a, "covariance": a * share, "gap": a * (1 - share)}
    spoilt = draw(st.sampled_from(["", "", "", "variance", "covariance", "gap"]))
    return found | {spoilt: draw(hostile)} if spoilt else found


@st.composite
def ends_of_a_spectrum(draw: st.DrawFn) -> dict[str, Any]:
    """An extreme eigenvalue, the next one and the one at the other end, in order or not."""
    value = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e-308, 1e300]))
    at, gap, rest = draw(value), abs(draw(value)), abs(draw(value))
    sign = draw(st.sampled_from([-1, 1]))
    found = {"eigenvalue": at, "neighbour": at - sign * gap, "opposite": at - sign * gap - sign * rest}
    found |= {"angle": draw(st.floats(0, math.pi / 2)), "steps": draw(counts)}
    spoilt = draw(st.sampled_from(["", "", "", *found]))
    return found | {spoilt: draw(hostile)} if spoilt else found


@st.composite
def samples_on_directions(draw: st.DrawFn) -> dict[str, Any]:
    """Statistics of three samples on two directions that belong together, or not."""
    entry = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, 1e90, 5e-324]))
    raw = np.reshape(draw(st.lists(entry, min_size=24, max_size=24)), (2, 3, 2, 2))
    projected, squared = raw + raw.swapaxes(2, 3)
    numbers = draw(st.lists(st.floats(-0.7, 0.7), min_size=9, max_size=9))
    found = {
        "projected": projected,
        "squared": squared,
        "largest": draw(entry) * np.abs(numbers[:3]),
        "overlaps": np.reshape(numbers[3:], (3, 2)),
        "background": draw(entry),
        "spread": draw(entry),
    }
    spoilt = draw(st.sampled_from(["", "", "", *found]))
    return found | {spoilt: draw(hostile)} if spoilt else found


def law_of_batches(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the statistics and of batches, by the arguments of the statistics."""
    return lambda batches, **numbers: function(own_direction.own_directions(**numbers), batches)


def with_batches() -> st.SearchStrategy[dict[str, Any]]:
    batch = mostly(st.sampled_from([[[0]], [[0, 2], [1, 2]], [[0, 1, 2]], [[0, 0]], [[3]], [[-1]], [[0.0]]]))
    return st.builds(lambda numbers, drawn: numbers | {"batches": drawn}, samples_on_directions(), batch)


def with_pair(self: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda kernel, pair: {"self": kernel, **pair}, self, pairs())


def with_shares(self: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    sized = mostly(st.one_of(log_uniform(1e-9, 10.0), st.just(0.0)), log_uniform(1e16, 1e300))
    return st.fixed_dictionaries({"self": self, "covariance": sized, "gap": sized})


rectifiers = st.sampled_from([0.0, 0.01, -1.0, 1.0, 1e75, -1e75, -1e-200]).map(
    gaussian_kernels.PiecewiseLinear
)
sine = gaussian_kernels.Quadrature("sine", np.sin, np.cos, lambda x: -np.sin(x))
rough = gaussian_kernels.Quadrature("huge", lambda x: 1e300 * np.tanh(x), np.cos, np.sin)
quadratures = st.sampled_from([sine, rough, dataclasses.replace(sine, second=None)])
erfs = st.just(activations.erf.kernels)

# ------------------------------------------------------------------------------------------- what must hold


def outlier_lies_beyond_its_edge(arguments: Mapping[str, Any], top: outliers.Outlier) -> None:
    assert np.all((top.overlap >= 0) & (top.overlap <= 1))
    assert np.all(np.abs(top.eigenvalue) >= np.abs(top.edge))
    assert np.all(
        ~top.visible | (np.abs(top.eigenvalue) >= np.abs(np.asarray(arguments["spike"], dtype=np.float64)))
    )
    assert np.all(top.visible | (top.eigenvalue == top.edge))
    assert np.all(top.visible | (top.overlap == 0))


def scatters(_: Any, edge: finite_size.EdgeFluctuation) -> None:
    assert np.all(edge.sd >= 0)


def gamma_between_its_bounds(arguments: Mapping[str, Any], value: Any) -> None:
    classes = np.shape(arguments.get("p", arguments.get("z")))[-1]
    assert np.all((value >= 1 - 1e-12) & (value <= math.sqrt(classes - 1) + 1e-12))


def eigenvalues_share_the_trace(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 0) and np.all(value[..., -1] == 0)
    trace = 1 - np.square(np.asarray(arguments["p"], dtype=np.float64)).sum(axis=-1)
    assert_allclose(value.sum(axis=-1), trace, atol=1e-4)


def between(low: float, high: float) -> Callable[[Any, Any], None]:
    def holds(_: Any, value: Any) -> None:
        assert np.all((np.asarray(value) >= low) & (np.asarray(value) <= high))

    return holds


def on_the_support(arguments: Mapping[str, Any], value: Any) -> None:
    low, high = arguments["self"].support()
    assert np.all((value >= low - 1e-15 * high) & (value <= high * (1 + 1e-15)))


def between_the_ends(arguments: Mapping[str, Any], value: Any) -> None:
    ends = [np.asarray(arguments[name], dtype=np.float64) for name in ("eigenvalue", "opposite")]
    assert np.all((value >= np.minimum(*ends)) & (value <= np.maximum(*ends)))


def beyond_the_batch(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(value >= np.asarray(arguments["batch_size"], dtype=np.float64) * (1 - 1e-15))


def no_weaker_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(
        np.abs(value) >= np.abs(np.asarray(arguments["eigenvalue"], dtype=np.float64)) * (1 - 1e-15)
    )


def no_stronger_than_the_data(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all(np.abs(value) <= np.abs(np.asarray(arguments["eigenvalue"], dtype=np.float64)))


def below_the_dataset(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all((value >= 0) & (value <= arguments["dataset_size"]))


def rates_shrink(_: Any, value: learning_rates.MomentumRates) -> None:
    assert np.all(value.learning_rate > 0)
    assert np.all((value.momentum >= 0) & (value.momentum <= 1))
    assert np.all((value.contraction >= 0) & (value.contraction <= 1))


def bracket_is_positive(_: Any, bracket: learning_rates.RateBracket) -> None:
    assert np.all(bracket.lower >= 0) and np.all(bracket.upper >= 0)


def kappas_are_ordered(_: Any, k: fisher.Kappas) -> None:
    assert k.difference >= 0 and k.kappa1 >= 0
    assert_allclose(k.kappa1 - k.kappa2, k.difference, atol=1e-9 * k.kappa1)


def moments_are_ordered(_: Any, m: gaussian_kernels.Moments) -> None:
    assert m.moment >= 0 and m.gap >= 0 and m.overlap <= m.moment * (1 + 1e-9) + 1e-300


def descending(_: Any, value: Any) -> None:
    assert np.all(np.diff(value, axis=-1) <= 1e-15 * value[..., :1])


def real(_: Any, value: Any) -> None:
    assert np.asarray(value).dtype == np.float64


@dataclasses.dataclass(frozen=True)
class Line:
    """How a public name is called, what its arguments may be, and what its results obey."""

    function: Callable[..., Any]
    arguments: Mapping[str, st.SearchStrategy[Any]] | st.SearchStrategy[dict[str, Any]]
    holds: Callable[[Any, Any], None] = lambda _, value: None
    infinite: bool = False  # the docstring promises infinities
    unsettled: bool = False  # the docstring promises a ConvergenceError
    also: tuple[str, ...] = ()  # names that a message may use in place of the argument's

    def strategy(self) -> st.SearchStrategy[dict[str, Any]]:
        return (
            st.fixed_dictionaries(dict(self.arguments))
            if isinstance(self.arguments, Mapping)
            else self.arguments
        )


def compound_law(rate: float, jumps: list[float], unit: float) -> rmt.CompoundFreePoisson:
    return rmt.CompoundFreePoisson(rate=rate, jumps=unit * np.array(jumps))


compound = st.builds(
    compound_law,
    st.one_of(log_uniform(1e-2, 1e2), log_uniform(1e-5, 1e11), st.just(1.0)),
    st.lists(
        st.builds(lambda size, sign: sign * size, log_uniform(1e-2, 1e2), st.sampled_from([-1.0, 1.0])),
        min_size=1,
        max_size=4,
    ),
    st.one_of(st.just(1.0), log_uniform(1e-90, 1e90)),
)


def law(cls: type, method: str, **more: Any) -> Line:
    """A method of a law, or the law itself, with the law's parameters among the arguments."""
    scales = st.one_of(SOME_SIZE, log_uniform(1e-270, 1e270))
    near_one = st.sampled_from([1.0, 1 - 1e-15, 1 + 1e-12, 1e-270, 1e270])
    made = (
        st.builds(lambda v: rmt.Semicircle(variance=v), scales)
        if cls is rmt.Semicircle
        else st.builds(
            lambda v, q: rmt.MarchenkoPastur(variance=v, q=q if q * v <= 1e270 else 1.0),
            scales,
            st.one_of(SOME_SIZE, near_one),
        )
    )
    argument = more.pop("argument", {})
    found = getattr(cls, method)
    function = found.fget if isinstance(found, property) else found
    return Line(function, {"self": made, **argument}, **{"also": ("variance", "sigma", "q"), **more})


def laws(cls: type) -> dict[str, Line]:
    x, u = {"argument": {"x": points}}, {"argument": {"u": shares}}
    lines = {
        "pdf": law(cls, "pdf", infinite=True, holds=between(0, math.inf), **x),
        "logpdf": law(cls, "logpdf", infinite=True, **x),
        "cdf": law(cls, "cdf", holds=between(0, 1), **x),
        "sf": law(cls, "sf", holds=between(0, 1), **x),
        "ppf": law(cls, "ppf", holds=on_the_support, **u),
        "isf": law(cls, "isf", holds=on_the_support, **u),
        "moment": law(cls, "moment", argument={"k": orders}, holds=between(0, math.inf)),
        "stieltjes": law(cls, "stieltjes", argument={"z": planes}),
        "r_transform": law(cls, "r_transform", argument={"w": planes}),
    }
    plain = ("edges", "atom", "support", "mean", "var", "variance" if cls is rmt.Semicircle else "sigma")
    return {f"rmt.{cls.__name__}.{name}": line for name, line in lines.items()} | {
        f"rmt.{cls.__name__}.{name}": law(cls, name) for name in plain
    }


def compound_laws() -> dict[str, Line]:
    """Methods of the compound free Poisson law."""
    x, cls = {"x": points}, rmt.CompoundFreePoisson
    lines = {
        "pdf": Line(cls.pdf, {"self": compound, **x}, between(0, math.inf), infinite=True),
        "cdf": Line(cls.cdf, {"self": compound, **x}, between(0, 1)),
        "sf": Line(cls.sf, {"self": compound, **x}, between(0, 1)),
        "moment": Line(cls.moment, {"self": compound, "k": orders}),
        "stieltjes": Line(cls.stieltjes, {"self": compound, "z": planes}),
        "r_transform": Line(cls.r_transform, {"self": compound, "w": planes}),
    }
    for name in ("atom", "bulks", "edges", "mean", "support", "var"):
        found = getattr(cls, name)
        lines[name] = Line(found.fget if isinstance(found, property) else found, {"self": compound})
    return {f"rmt.CompoundFreePoisson.{name}": line for name, line in lines.items()}


def tracy_widom() -> dict[str, Line]:
    """Methods of the Tracy-Widom laws."""
    x, u, cls = {"x": points}, {"u": shares}, rmt.TracyWidom
    lines = {
        "pdf": (x, between(0, 0.5)),
        "logpdf": (x, between(-math.inf, 0)),
        "cdf": (x, between(0, 1)),
        "sf": (x, between(0, 1)),
        "ppf": (u, real),
        "isf": (u, real),
        "moment": ({"k": orders}, real),
        **{name: ({}, real) for name in ("atom", "edges", "mean", "support", "var")},
    }
    made = st.sampled_from([1, 2]).map(lambda beta: rmt.TracyWidom(beta=beta))
    found = {name: getattr(cls, name) for name in lines}
    return {
        f"rmt.TracyWidom.{name}": Line(
            found[name].fget if isinstance(found[name], property) else found[name],
            {"self": made, **arguments},
            holds,
            infinite=name in ("logpdf", "ppf", "isf", "edges", "support"),
        )
        for name, (arguments, holds) in lines.items()
    }


ELEMENT = st.one_of(st.floats(-9, 9), ANY_SIZE)
symmetric = mostly(
    st.builds(lambda a, b, c: [[a, b], [b, c]], ELEMENT, ELEMENT, ELEMENT),
    st.sampled_from([np.eye(2), np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]], np.ones((3, 2, 2)), [[1.0]]]),
)
preconditioners = st.one_of(st.none(), symmetric, symmetric)
QUADRATIC = {"gradient": mostly(st.lists(ELEMENT, min_size=2, max_size=2)), "hessian": symmetric}

OF_NETWORK = ("derivative",)
laws_of_noise = mostly(
    compound,
    SOME_SIZE.map(lambda v: rmt.Semicircle(variance=v)),
    log_uniform(1e-270, 1e270).map(lambda v: rmt.Semicircle(variance=v)),
    st.builds(lambda v, q: rmt.MarchenkoPastur(variance=v, q=q), SOME_SIZE, SOME_SIZE),
    log_uniform(1e-270, 1e270).map(lambda v: rmt.MarchenkoPastur(variance=v, q=1.0)),
)


DERIVATIONS = (derivations, descent_derivations, law_derivations, spectral_derivations)


def derivations_without_arguments() -> list[str]:
    return [
        f"{module.__name__.removeprefix('theory.')}.{name}"
        for module in DERIVATIONS
        for name in module.__all__
        if name != "Derivation"
    ]


SCALE = {"sigma": st.one_of(st.none(), sizes), "variance": st.one_of(st.none(), sizes)}
RECTANGULAR = {"spike": sizes, "q": sizes, "variance": sizes}
HESSIAN = {"eigenvalue": signed, "sigma": sizes, "dim": dims, **BATCH}
RANDOM_LOGITS = {"sigma_c": sizes, "sigma_e": sizes}


def kernels(cls: type, self: st.SearchStrategy[Any], *, unsettled: bool) -> dict[str, Line]:
    name, more = f"gaussian_kernels.{cls.__name__}", {"unsettled": unsettled, "infinite": not unsettled}
    return {
        f"{name}.value": Line(cls.value, with_pair(self), moments_are_ordered, **more),
        f"{name}.derivative": Line(cls.derivative, with_pair(self), moments_are_ordered, **more),
        f"{name}.curvature": Line(cls.curvature, with_pair(self), also=("second_derivative",), **more),
        f"{name}.fluctuations": Line(
            cls.fluctuations, with_shares(self), also=("second_derivative",), **{**more, "unsettled": True}
        ),
    }


TABLE: dict[str, Line] = {
    **{
        f"outliers.{f.__name__}": Line(f, RECTANGULAR, outlier_lies_beyond_its_edge)
        for f in (outliers.additive_wishart, outliers.information_plus_noise, outliers.spiked_covariance)
    },
    "outliers.additive_wigner": Line(
        outliers.additive_wigner, {"spike": signed, "sigma": sizes}, outlier_lies_beyond_its_edge
    ),
    "finite_size.wigner_edge": Line(
        finite_size.wigner_edge, {"dim": dims, "sigma": sizes, "lower": flags}, scatters
    ),
    "finite_size.wishart_edge": Line(
        finite_size.wishart_edge,
        {"dim": dims, "samples": dims, "variance": sizes, "lower": flags},
        scatters,
    ),
    "finite_size.additive_sd": Line(
        finite_size.additive_sd, {"spike": signed, "law": laws_of_noise, "dim": dims}, between(0, math.inf)
    ),
    "finite_size.additive_wigner_sd": Line(
        finite_size.additive_wigner_sd, {"spike": signed, "sigma": sizes, "dim": dims}, between(0, math.inf)
    ),
    **{
        f"finite_size.{f.__name__}": Line(
            f, {"spike": sizes, "dim": dims, "samples": dims, "variance": sizes}, between(0, math.inf)
        )
        for f in (
            finite_size.additive_wishart_sd,
            finite_size.information_plus_noise_sd,
            finite_size.spiked_covariance_sd,
        )
    },
    "outliers.additive": Line(
        outliers.additive,
        {"spike": signed, "law": laws_of_noise},
        lambda _, top: between(0, 1)(_, top.overlap),
    ),
    "batch_hessian.effective_batch_size": Line(
        batch_hessian.effective_batch_size, BATCH, beyond_the_batch, infinite=True
    ),
    "batch_hessian.element_fluctuation": Line(
        batch_hessian.element_fluctuation, {"variance": sizes, **BATCH}, between(0, math.inf)
    ),
    "batch_hessian.batch_eigenvalue": Line(batch_hessian.batch_eigenvalue, HESSIAN, no_weaker_than_the_data),
    "batch_hessian.batch_overlap": Line(batch_hessian.batch_overlap, HESSIAN, between(0, 1)),
    "batch_hessian.batch_ggn_eigenvalue": Line(
        batch_hessian.batch_ggn_eigenvalue,
        {"eigenvalue": sizes, "variance": sizes, "dim": dims, **BATCH},
        no_weaker_than_the_data,
    ),
    "batch_hessian.second_order_eigenvalue": Line(
        batch_hessian.second_order_eigenvalue, {"eigenvalue": signed, "coefficient": signed, **BATCH}
    ),
    "batch_hessian.element_skewness": Line(
        batch_hessian.element_skewness, {"skewness": signed, **BATCH}, real
    ),
    "batch_hessian.finite_population_fluctuation": Line(
        batch_hessian.finite_population_fluctuation,
        {"variance": sizes, **BATCH, "replacement": flags},
        between(0, math.inf),
    ),
    "batch_hessian.noise_bound": Line(
        batch_hessian.noise_bound, {"norm": sizes, **BATCH, "semidefinite": flags}, between(0, math.inf)
    ),
    "batch_hessian.second_order_coefficient": Line(
        batch_hessian.second_order_coefficient, {"eigenvalues": signed, "variances": sizes}, real
    ),
    "batch_hessian.batch_ggn_factor_eigenvalue": Line(
        batch_hessian.batch_ggn_factor_eigenvalue,
        {"eigenvalue": sizes, "variance": sizes, "dim": dims, **BATCH},
        no_weaker_than_the_data,
    ),
    "batch_hessian.noise_free_eigenvalue": Line(
        batch_hessian.noise_free_eigenvalue,
        {"eigenvalue": signed, "sigma": sizes, "dim": dims, "dataset_size": datasets},
        no_stronger_than_the_data,
    ),
    "batch_hessian.composed_batch_eigenvalue": Line(
        batch_hessian.composed_batch_eigenvalue, HESSIAN, no_weaker_than_the_data
    ),
    "batch_hessian.low_rank_noise": Line(
        batch_hessian.low_rank_noise,
        {"rank": dims, "variance": sizes, "dim": dims, "batch_size": batches, "positive_share": shares},
        also=("rate", "jumps"),
    ),
    "batch_hessian.ggn_rank_bound": Line(
        batch_hessian.ggn_rank_bound, {"batch_size": counts, "outputs": counts, "dim": counts}
    ),
    "batch_hessian.sample_rank_bound": Line(
        batch_hessian.sample_rank_bound, {"widths": widths, "biases": flags}
    ),
    "batch_hessian.sample_rank_bound_of_paths": Line(
        batch_hessian.sample_rank_bound_of_paths, {"inputs": counts, "widths": widths}
    ),
    "batch_hessian.dataset_rank_bound": Line(
        batch_hessian.dataset_rank_bound,
        {"sample_rank": counts, "samples": counts, "dim": counts, "symmetries": counts},
    ),
    "batch_hessian.element_variance": Line(
        batch_hessian.element_variance, {"total": sizes, "dim": dims}, between(0, math.inf)
    ),
    "batch_hessian.crossover_batch_size": Line(
        batch_hessian.crossover_batch_size,
        {"eigenvalue": signed, "sigma": sizes, "dim": dims, "dataset_size": datasets},
        below_the_dataset,
    ),
    "lanczos_bounds.ritz_value_bound": Line(
        lanczos_bounds.ritz_value_bound, ends_of_a_spectrum(), between_the_ends
    ),
    "learning_rates.stability_limit": Line(learning_rates.stability_limit, {"sharpness": sizes}, real),
    "learning_rates.sgd_limit": Line(
        learning_rates.sgd_limit, {**HESSIAN, "eigenvalue": sizes}, between(0, math.inf)
    ),
    "learning_rates.mean_square_limit": Line(
        learning_rates.mean_square_limit,
        {"eigenvalue": sizes, "noise": sizes, **BATCH},
        between(0, math.inf),
    ),
    "learning_rates.heavy_ball": Line(
        learning_rates.heavy_ball, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    "learning_rates.nesterov": Line(
        learning_rates.nesterov, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    "learning_rates.best_nesterov": Line(
        learning_rates.best_nesterov, {"largest": sizes, "smallest": sizes}, rates_shrink
    ),
    **{
        f"learning_rates.{f.__name__}": Line(
            f, {"rate": sizes, "momentum": signed, "largest": sizes, "smallest": signed}, between(0, math.inf)
        )
        for f in (learning_rates.heavy_ball_contraction, learning_rates.nesterov_contraction)
    },
    "learning_rates.sgd_exponent": Line(
        learning_rates.sgd_exponent, {**HESSIAN, "eigenvalue": sizes}, between(0, 0.5)
    ),
    "learning_rates.marchenko_pastur_exponent": Line(
        learning_rates.marchenko_pastur_exponent, {"q": sizes}, between(0, 1)
    ),
    "learning_rates.linear_then_flat": Line(
        learning_rates.linear_then_flat,
        {"rate": sizes, "known": batches, "crossover": mostly(sizes, st.just(math.inf)), **BATCH},
        between(0, math.inf),
    ),
    "learning_rates.square_root": Line(
        learning_rates.square_root, {"rate": sizes, "known": batches, **BATCH}, between(0, math.inf)
    ),
    "learning_rates.mean_square_exponent": Line(
        learning_rates.mean_square_exponent, {"eigenvalue": sizes, "noise": sizes, **BATCH}, between(0, 1)
    ),
    "learning_rates.mean_square_crossover": Line(
        learning_rates.mean_square_crossover,
        {"eigenvalue": sizes, "noise": sizes, "dataset_size": datasets},
        below_the_dataset,
    ),
    "learning_rates.mean_square_bracket": Line(
        learning_rates.mean_square_bracket,
        {"curvatures": sizes, "variances": sizes, "square": sizes, **BATCH},
        bracket_is_positive,
    ),
    "learning_rates.gaussian_least_squares_limit": Line(
        learning_rates.gaussian_least_squares_limit, {"batch_size": batches, "dim": dims}, between(0, 2)
    ),
    "learning_rates.gaussian_least_squares_growth": Line(
        learning_rates.gaussian_least_squares_growth,
        {"rate": sizes, "batch_size": batches, "dim": dims},
        between(0, math.inf),
    ),
    "adaptive_rates.outlier_over_edge": Line(
        adaptive_rates.outlier_over_edge,
        {**HESSIAN, "eigenvalue": sizes},
        between(1 - 1e-15, math.inf),
        infinite=True,
    ),
    "adaptive_rates.adaptive_limit": Line(
        adaptive_rates.adaptive_limit,
        {"preconditioner": sizes, "sigma": sizes, "dim": dims, **BATCH},
        between(0, math.inf),
        infinite=True,
        also=("eigenvalue",),
    ),
    "loss_change.quadratic_change": Line(
        loss_change.quadratic_change, {"rate": signed, **QUADRATIC, "preconditioner": preconditioners}, real
    ),
    "loss_change.sign_averaged_change": Line(
        loss_change.sign_averaged_change,
        {"rate": signed, **QUADRATIC, "preconditioner": preconditioners},
        real,
    ),
    "loss_change.descent_bound": Line(
        loss_change.descent_bound, {"rate": signed, "squared_gradient": sizes, "sharpness": signed}, real
    ),
    "loss_change.squared_gradient_mean": Line(
        loss_change.squared_gradient_mean,
        {"squared_gradient": sizes, "trace": sizes, "batch_size": batches},
        between(0, math.inf),
    ),
    "loss_change.squared_gradient_variance": Line(
        loss_change.squared_gradient_variance,
        {"covariance_along": sizes, "trace_of_square": sizes, "batch_size": batches},
        between(0, math.inf),
    ),
    "softmax.covariance": Line(
        softmax.covariance, {"p": probabilities}, lambda _, m: assert_array_equal(m, np.swapaxes(m, -1, -2))
    ),
    "softmax.eigenvalues": Line(softmax.eigenvalues, {"p": probabilities}, eigenvalues_share_the_trace),
    "softmax.gamma": Line(softmax.gamma, {"p": probabilities, "average": flags}, gamma_between_its_bounds),
    "softmax.gamma_from_logits": Line(
        softmax.gamma_from_logits, {"z": logits, "temperature": sizes}, gamma_between_its_bounds
    ),
    "softmax.collapse_limit": Line(softmax.collapse_limit, {"weights": sizes}, between(1 - 1e-12, 2)),
    "gauss_newton.expected_eigenvalues": Line(
        gauss_newton.expected_eigenvalues,
        {"p": probabilities, "dim": mostly(st.integers(2, 20), st.sampled_from(HUGE)), **RANDOM_LOGITS},
        descending,
    ),
    "gauss_newton.expected_excess": Line(
        gauss_newton.expected_excess, {"gamma": sizes, "dim": dims, **RANDOM_LOGITS}, between(0, math.inf)
    ),
    "gauss_newton.expected_gradient_norm": Line(
        gauss_newton.expected_gradient_norm,
        {"mean_probability": probabilities, "prior": probabilities, "dim": dims, "sigma_c": sizes},
        between(0, math.inf),
    ),
    "gauss_newton.projected_excess": Line(
        gauss_newton.projected_excess, {"excess": signed, "dim": dims}, real
    ),
    "gauss_newton.excess_noise_floor": Line(gauss_newton.excess_noise_floor, {"dim": dims}, between(0, 1)),
    "gauss_newton.hessian_excess": Line(
        gauss_newton.hessian_excess,
        {"gauss_newton_excess": sizes, "frobenius_ratio": sizes},
        between(0, math.inf),
    ),
    "activations.Activation": Line(
        activations.Activation,
        {
            "name": st.one_of(st.just("sine"), hostile),
            "function": st.one_of(st.just(np.sin), hostile),
            "derivative": st.just(np.cos),
            "second_derivative": st.one_of(st.none(), hostile),
            "kinks": st.one_of(st.just(()), hostile),
            "kernels": st.one_of(st.none(), hostile),
        },
    ),
    "activations.leaky_relu": Line(activations.leaky_relu, {"slope": signed}),
    "activations.named": Line(activations.named, {"name": any_activation}, also=("activation",)),
    "activations.resolve": Line(
        activations.resolve,
        {"activation": any_activation, "layers": mostly(st.integers(0, 3), st.sampled_from(HUGE))},
        lambda arguments, found: real(None, float(len(found) == arguments["layers"])),
    ),
    "activations.gaussian_kernels": Line(
        activations.gaussian_kernels, {"activation": kernels_of}, also=("derivative",)
    ),
    "gaussian_kernels.real_values": Line(
        gaussian_kernels.real_values,
        {
            "name": st.just("f"),
            "f": st.sampled_from([np.sin, *(a.function for a in BAD)]),
            "x": st.just(np.zeros(2)),
        },
        also=("activation",),
        infinite=True,
    ),
    "gaussian_kernels.PiecewiseLinear": Line(gaussian_kernels.PiecewiseLinear, {"slope": signed}),
    **{
        f"gaussian_kernels.{cls.__name__}": Line(
            cls,
            {
                "name": st.just("sine"),
                "function": st.one_of(st.just(np.sin), hostile),
                "first": st.one_of(st.just(np.cos), hostile),
                "second": st.one_of(st.none(), hostile),
            },
        )
        for cls in (gaussian_kernels.Quadrature, gaussian_kernels.Erf)
    },
    **kernels(gaussian_kernels.PiecewiseLinear, rectifiers, unsettled=False),
    **kernels(gaussian_kernels.Quadrature, quadratures, unsettled=True),
    **kernels(gaussian_kernels.Erf, erfs, unsettled=False),
    "order_parameters.order_parameters": Line(
        order_parameters.order_parameters,
        {
            **NETWORK,
            "input_overlap": mostly(st.floats(-1, 1), ANY_SIZE),
            "digits": st.one_of(st.none(), st.none(), mostly(st.integers(1, 30), st.sampled_from(HUGE))),
        },
        also=("derivative",),
        unsettled=True,
    ),
    "order_parameters.propagate": Line(
        order_parameters.propagate,
        {
            "activations": st.one_of(
                st.lists(st.sampled_from([a for a in CLOSED if not isinstance(a, str)] + [SINE]), max_size=3),
                hostile,
            ),
            **{k: v for k, v in NETWORK.items() if k.endswith("variance")},
        },
        also=("activation",),
        unsettled=True,
    ),
    "fisher.parameter_count": Line(
        fisher.parameter_count,
        {"depth": depths, "width": counts, "outputs": counts, **RATIOS},
        lambda _, n: real(None, float(n)),
    ),
    "fisher.kappas": Line(
        fisher.kappas, {**NETWORK, **RATIOS}, kappas_are_ordered, unsettled=True, also=OF_NETWORK
    ),
    "fisher.eigenvalue_statistics": Line(
        fisher.eigenvalue_statistics,
        {**NETWORK, **RATIOS, **SAMPLES},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.mean_subtracted_statistics": Line(
        fisher.mean_subtracted_statistics,
        {**NETWORK, **RATIOS, **SAMPLES},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "fisher.fluctuation_constants": Line(
        fisher.fluctuation_constants,
        {**NETWORK, **RATIOS, "outputs": counts},
        lambda _, found: between(0, math.inf)(None, found),
        unsettled=True,
        also=OF_NETWORK,
    ),
    "own_direction.own_directions": Line(own_direction.own_directions, samples_on_directions()),
    "own_direction.batch_eigenvalues": Line(
        law_of_batches(own_direction.batch_eigenvalues), with_batches(), real
    ),
    "own_direction.expected_eigenvalue": Line(
        law_of_batches(own_direction.expected_eigenvalue), with_batches(), real
    ),
    "precise_kernels.precise_kernels": Line(
        precise_kernels.precise_kernels,
        {"activation": kernels_of, "digits": mostly(st.integers(1, 50), st.sampled_from(HUGE))},
    ),
    "rmt.CompoundFreePoisson": Line(
        rmt.CompoundFreePoisson, {"rate": sizes, "jumps": signed, "weights": st.one_of(st.none(), shares)}
    ),
    **compound_laws(),
    "rmt.TracyWidom": Line(rmt.TracyWidom, {"beta": mostly(st.sampled_from([1, 2, 2.0, 4]))}),
    **tracy_widom(),
    "rmt.Semicircle": Line(rmt.Semicircle, SCALE),
    "rmt.MarchenkoPastur": Line(rmt.MarchenkoPastur, {"q": sizes, **SCALE}),
    **laws(rmt.Semicircle),
    **laws(rmt.MarchenkoPastur),
}

WITHOUT_ARGUMENTS = {
    "precise_kernels.mpmath": "a module",
    **dict.fromkeys(derivations_without_arguments(), "sympy's own"),
}
"""Names that a caller can give nothing to: their signatures are checked below."""

NOT_CALLED = {
    "activations": ("erf", "gelu", "linear", "relu", "sigmoid", "softplus", "tanh"),  # values
    "derivations": ("Derivation",),  # records hold what they are given
    "finite_size": ("EdgeFluctuation",),
    "fisher": ("FisherStatistics", "FluctuationConstants", "Kappas", "MeanSubtractedStatistics"),
    "gaussian_kernels": ("ConvergenceError", "Fluctuations", "Kernels", "Moments"),
    "learning_rates": ("MomentumRates", "RateBracket"),
    "order_parameters": ("ConvergenceError", "OrderParameters", "Propagation"),
    "outliers": ("Outlier",),
    "own_direction": ("OwnDirections",),
}


def public_names() -> Iterator[str]:
    for module in MODULES:
        loaded = importlib.import_module(f"theory.{module}")
        for name in loaded.__all__:
            if name in NOT_CALLED.get(module, ()):
                continue
            yield f"{module}.{name}"
            found = getattr(loaded, name)
            if inspect.isclass(found):
                methods = {
                    method
                    for cls in found.__mro__[:-1]
                    for method, value in vars(cls).items()
                    if inspect.isfunction(value) or isinstance(value, property)
                }
                yield from (f"{module}.{name}.{method}" for method in methods if not method.startswith("_"))


def test_every_public_name_has_a_line_in_the_table() -> None:
    assert set(public_names()) == TABLE.keys() | WITHOUT_ARGUMENTS.keys()


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_names_left_out_of_the_table_take_no_arguments(name: str) -> None:
    module, _, function = name.partition(".")
    assert not inspect.signature(getattr(importlib.import_module(f"theory.{module}"), function)).parameters


def leaves(value: Any) -> Iterator[np.ndarray]:
    """The arrays of numbers in a result."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, outliers.Outlier):
        yield from leaves(list(vars(value).values()))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from leaves(value.tolist())
    elif isinstance(value, np.ndarray | np.generic | float):
        yield np.asarray(value)
    elif type(value).__name__ == "mpf":
        yield np.asarray(0.0 if value - value == 0 else math.nan)


def passed(arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    named = dict(arguments)
    return ([named.pop("self")] if "self" in named else []), named


@pytest.mark.parametrize("name", TABLE)
@SETTINGS
@given(data=st.data())
def test_a_right_value_or_a_message_that_names_the_argument(name: str, data: st.DataObject) -> None:
    line = TABLE[name]
    arguments = data.draw(line.strategy())
    first, named = passed(arguments)
    try:
        result = line.function(*first, **named)
    except ValueError as error:
        text = str(error)
        assert any(word in text for word in (*named, *line.also)), text
        assert len(text) < 1500
        return
    except ConvergenceError:
        if not line.unsettled:
            raise
        return
    for numbers in leaves(result):
        assert not np.isnan(numbers).any()
        assert line.infinite or np.isfinite(numbers).all()
    line.holds(arguments, result)


RIGHT: dict[str, Any] = {
    "spike": 1.7,
    "sigma": 0.6,
    "q": 0.4,
    "variance": 0.6,
    "law": rmt.Semicircle(sigma=0.6),
    "eigenvalue": 0.56,
    "dim": 226,
    "batch_size": 64,
    "dataset_size": 1797,
    "coefficient": 2.4,
    "skewness": 0.7,
    "replacement": False,
    "norm": 1.2,
    "semidefinite": True,
    "eigenvalues": [2.0, 0.5, -1.0],
    "variances": [0.3, 0.6, 0.9],
    "rank": 2,
    "positive_share": 0.3,
    "outputs": 10,
    "inputs": 8,
    "widths": [30, 10],
    "biases": True,
    "sample_rank": 69,
    "samples": 1797,
    "symmetries": 31,
    "total": 0.81,
    "sharpness": 4.2,
    "noise": 0.3,
    "rate": 0.02,
    "known": 32,
    "crossover": 40,
    "momentum": 0.9,
    "curvatures": [0.5, 0.4, 0.2],
    "square": 3.1,
    "preconditioner": 0.7,
    "largest": 4.2,
    "smallest": 0.3,
    "p": [0.7, 0.2, 0.1],
    "average": False,
    "lower": False,
    "z": [3.1, -0.4],
    "temperature": 0.5,
    "weights": [3, 2, 1],
    "gamma": 1.3,
    "sigma_c": 1.1,
    "sigma_e": 0.7,
    "excess": -12.5,
    "mean_probability": [0.5, 0.5],
    "prior": [0.7, 0.3],
    "gauss_newton_excess": 3.1,
    "frobenius_ratio": 0.7,
}
ELEMENTWISE = [
    name
    for name in TABLE
    if name.partition(".")[0]
    in (
        "outliers",
        "finite_size",
        "batch_hessian",
        "learning_rates",
        "adaptive_rates",
        "gauss_newton",
        "softmax",
    )
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_what_is_no_number_is_refused_in_every_place(name: str) -> None:
    line = TABLE[name]
    right = {argument: RIGHT[argument] for argument in inspect.signature(line.function).parameters}
    line.function(**right)
    for argument in right:
        for wrong in (
            None,
            "x",
            1j,
            np.bool_(1),
            math.nan,
            -math.inf,
            {},
            np.array([0.5, 0.5], dtype=object),
        ):
            if isinstance(right[argument], bool) and isinstance(wrong, np.bool_):
                continue
            with pytest.raises(ValueError, match=rf"^{argument} must be"):
                line.function(**right | {argument: wrong})


# ------------------------------------------------------------------------------------------- absurd sizes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: softmax.covariance(np.full(10**6, 1e-6)),
            r"p must be small enough for memory \(it needs about 21\.8 TiB",
        ),
        (
            lambda: gauss_newton.expected_eigenvalues([0.5, 0.5], dim=10**12, sigma_c=1, sigma_e=1),
            r"dim must be small enough for memory .* about 21\.8 TiB, the limit is 16 GiB\), got 1000000000000",
        ),
        (
            lambda: outliers.additive_wigner(np.ones((10**6, 1)), sigma=np.ones(10**6)),
            r"spike, sigma must be small enough for memory .* about 87\.3 TiB",
        ),
        (lambda: activations.resolve("relu", 10**12), r"layers must be at most 1000000, got 1000000000000"),
        (lambda: rmt.Semicircle(sigma=0.5).moment(10**9), r"k must be at most 1000000, got 1000000000"),
        (
            lambda: order_parameters.order_parameters(
                "relu", depth=10**9, weight_variance=2, bias_variance=0
            ),
            r"depth must be at most 100000, got 1000000000",
        ),
        (
            lambda: order_parameters.order_parameters(
                "relu", depth=3, weight_variance=2, bias_variance=0, digits=10**9
            ),
            r"digits must be at most 1000, got 1000000000",
        ),
        (
            lambda: order_parameters.order_parameters(
                "tanh", depth=2, weight_variance=1e300, bias_variance=0, digits=20
            ),
            r"digits must be fewer for the trapezoidal rule at variance 1\.0e\+300, got 20",
        ),
        (
            lambda: fisher.fluctuation_constants(
                "linear", depth=50_000, outputs=1, weight_variance=1, bias_variance=0
            ),
            r"depth must be small enough for memory .* needs about 373 GiB",
        ),
    ],
)
def test_absurd_sizes_are_refused_before_they_are_taken(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------------------------- what must not change

powers = st.integers(-900, 900).map(lambda n: 2.0**n)  # exact in binary: relations hold to the last digit


def fields(value: Any) -> list[Any]:
    return [vars(value)[name] for name in ("eigenvalue", "overlap", "threshold", "edge", "visible")]


@pytest.mark.parametrize("name", ["additive_wishart", "information_plus_noise", "spiked_covariance"])
@FEW
@given(c=powers, spike=SOME_SIZE, q=SOME_SIZE, variance=SOME_SIZE)
def test_outliers_scale_with_spike_and_variance(
    name: str, c: float, spike: float, q: float, variance: float
) -> None:
    model = getattr(outliers, name)
    one, other = model(spike, q=q, variance=variance), model(c * spike, q=q, variance=c * variance)

    assert_array_equal(
        fields(other), [c * one.eigenvalue, one.overlap, c * one.threshold, c * one.edge, one.visible]
    )


@FEW
@given(c=powers, spike=st.integers(-80, 80).map(lambda k: k / 16), sigma=SOME_SIZE)
def test_wigner_outliers_scale_and_mirror(c: float, spike: float, sigma: float) -> None:
    one, other = (
        outliers.additive_wigner(spike, sigma=sigma),
        outliers.additive_wigner(-c * spike, sigma=c * sigma),
    )
    sign = -c if spike else c

    assert_array_equal(
        fields(other),
        [sign * one.eigenvalue, one.overlap, sign * one.threshold, sign * one.edge, one.visible],
    )


@FEW
@given(
    c=powers,
    eigenvalue=SOME_SIZE,
    sigma=SOME_SIZE,
    dim=st.integers(1, 500),
    batch_size=st.floats(1, 50),
    dataset_size=st.sampled_from([50.0, 1e4, math.inf]),
)
def test_batch_eigenvalues_have_the_unit_of_the_hessian(
    c: float, eigenvalue: float, sigma: float, **size: Any
) -> None:
    value = batch_hessian.batch_eigenvalue(eigenvalue, sigma=sigma, **size)
    ggn = batch_hessian.batch_ggn_eigenvalue(eigenvalue, variance=sigma, **size)
    limit = learning_rates.sgd_limit(eigenvalue, sigma=sigma, **size)

    assert batch_hessian.batch_eigenvalue(c * eigenvalue, sigma=c * sigma, **size) == c * value
    assert batch_hessian.batch_ggn_eigenvalue(c * eigenvalue, variance=c * sigma, **size) == c * ggn
    assert learning_rates.sgd_limit(c * eigenvalue, sigma=c * sigma, **size) == limit / c
    overlap = batch_hessian.batch_overlap(c * eigenvalue, sigma=c * sigma, **size)
    assert overlap == batch_hessian.batch_overlap(eigenvalue, sigma=sigma, **size)


@FEW
@given(eigenvalue=SOME_SIZE, sigma=ANY_SIZE, dim=st.integers(1, 500), size=ANY_SIZE)
def test_a_full_batch_has_no_noise(eigenvalue: float, sigma: float, dim: int, size: float) -> None:
    full = {"batch_size": size, "dataset_size": size}

    assert batch_hessian.batch_eigenvalue(eigenvalue, sigma=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.batch_overlap(eigenvalue, sigma=sigma, dim=dim, **full) == 1
    assert batch_hessian.batch_ggn_eigenvalue(eigenvalue, variance=sigma, dim=dim, **full) == eigenvalue
    assert batch_hessian.second_order_eigenvalue(eigenvalue, coefficient=sigma, **full) == eigenvalue
    assert batch_hessian.effective_batch_size(size, size) == math.inf
    assert_allclose(
        learning_rates.mean_square_limit(eigenvalue, noise=sigma, **full), 2 / eigenvalue, rtol=1e-15
    )


@FEW
@given(c=powers, largest=SOME_SIZE, share=st.floats(1e-3, 1))
def test_momentum_rates_scale_inversely(c: float, largest: float, share: float) -> None:
    for method in (learning_rates.heavy_ball, learning_rates.nesterov):
        rate, *rest = method(largest, share * largest)
        scaled, *same = method(4.0 * largest, 4.0 * share * largest)
        assert [4.0 * scaled, *same] == [rate, *rest]


@FEW
@given(p=probability(5), order=st.permutations(range(5)))
def test_softmax_functions_do_not_see_the_order_of_classes(p: Any, order: list[int]) -> None:
    mixed = p[order]

    assert_allclose(softmax.eigenvalues(mixed), softmax.eigenvalues(p), rtol=1e-13)
    assert_allclose(softmax.gamma(mixed), softmax.gamma(p), rtol=1e-13)
    assert_allclose(softmax.covariance(mixed), softmax.covariance(p)[np.ix_(order, order)], rtol=1e-13)
    assert_allclose(softmax.collapse_limit(mixed), softmax.collapse_limit(p), rtol=1e-13)


@FEW
@given(z=st.lists(st.integers(-40, 40), min_size=3, max_size=3), shift=st.integers(-1000, 1000), c=powers)
def test_gamma_sees_differences_of_logits_over_temperature(z: list[int], shift: int, c: float) -> None:
    value = softmax.gamma_from_logits(z)

    assert softmax.gamma_from_logits(np.add(z, shift)) == value
    assert softmax.gamma_from_logits(c * np.array(z), temperature=c) == value


@FEW
@given(c=powers, gamma=st.floats(1, 30), dim=st.integers(1, 900), sigma_c=SOME_SIZE, sigma_e=SOME_SIZE)
def test_excess_sees_the_ratio_of_scales(
    c: float, gamma: float, dim: int, sigma_c: float, sigma_e: float
) -> None:
    value = gauss_newton.expected_excess(gamma, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e)

    assert gauss_newton.expected_excess(gamma, dim=dim, sigma_c=c * sigma_c, sigma_e=c * sigma_e) == value


@FEW
@given(
    n=st.integers(-400, 400),
    q=SOME_SIZE,
    x=st.lists(st.integers(-32, 128).map(lambda k: k / 16), min_size=2, max_size=5),
    u=st.floats(0, 1),
)
def test_laws_scale_with_their_variance(n: int, q: float, x: list[float], u: float) -> None:
    c, points = 4.0**n, np.sort(x)
    pairs_of_laws = [
        (rmt.MarchenkoPastur(q=q, variance=1.0), rmt.MarchenkoPastur(q=q, variance=c), c),
        (rmt.Semicircle(sigma=1.0), rmt.Semicircle(variance=c), 2.0**n),
    ]
    for unit, scaled, length in pairs_of_laws:
        cdf = unit.cdf(points)
        assert np.all(np.diff(cdf) >= 0)
        assert_allclose(scaled.cdf(length * points), cdf, rtol=1e-12, atol=1e-15)
        assert_allclose(cdf + unit.sf(points), 1.0, rtol=1e-12)
        assert_allclose(scaled.pdf(length * points) * length, unit.pdf(points), rtol=1e-12)
        assert_allclose(scaled.ppf(u), length * unit.ppf(u), rtol=1e-12)
        assert_allclose(scaled.stieltjes(1j * length) * length, unit.stieltjes(1j), rtol=1e-12)


@FEW
@given(c=powers.filter(lambda c: 1e-100 < c < 1e100), slope=st.floats(-2, 2), share=st.floats(-1, 1))
def test_rectifiers_are_homogeneous(c: float, slope: float, share: float) -> None:
    kernel = gaussian_kernels.PiecewiseLinear(slope)
    unit, scaled = (kernel.value(a, a * share, a * (1 - share)) for a in (1.0, c))

    assert_allclose(scaled, np.multiply(unit, c), rtol=1e-13)
    assert_allclose(
        kernel.derivative(c, c * share, c * (1 - share)), kernel.derivative(1.0, share, 1 - share)
    )


@FEW
@given(depth=st.integers(2, 5), ratio=st.floats(0.1, 10), weight_variance=st.floats(0.1, 4))
def test_kappas_do_not_see_the_unit_of_width(depth: int, ratio: float, weight_variance: float) -> None:
    setting = {"depth": depth, "weight_variance": weight_variance, "bias_variance": 0.1}
    unit = fisher.kappas("relu", **setting)
    wide = fisher.kappas("relu", **setting, width_ratios=[ratio] * depth)

    assert_allclose(wide, [unit.alpha * ratio**2, *(x / ratio for x in unit[1:])], rtol=1e-12)
