"""What is passed: sensible values of each kind of argument, and anything at all."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings, strategies as st

from tests.theory.fuzz.objects import LOOK_ALIKES

EXAMPLES = 25
"""Examples per function."""

SETTINGS = settings(
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(SETTINGS, max_examples=max(EXAMPLES // 2, 1))

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
hostile = st.sampled_from([*EXTREMES, *TYPED, *WRONG, *LOOK_ALIKES])


def mostly(*sensible: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Sensible values, one in eight of them anything at all."""
    usual = st.one_of(*sensible)  # once: hypothesis looks through a strategy when it is first drawn from
    return st.integers(0, 7).flatmap(lambda n: hostile if n == 0 else usual)


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
BATCH = {"batch_size": batches, "dataset_size": datasets}
HESSIAN = {"eigenvalue": signed, "sigma": sizes, "dim": dims, **BATCH}


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
