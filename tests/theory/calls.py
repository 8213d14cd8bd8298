"""A right call of every public function of the theory, and what a caller may put in place of an argument.

The calls are those of the shell's catalogue, or written here. In place of an argument come extreme numbers, other
types, libraries, classes and memory.
"""

import importlib
import inspect
import math
import shlex
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import torch

from theory import own_direction, rmt
from theory.activations import Activation, erf, tanh
from verify.estimate import FUNCTIONS
from verify.estimate.words import bind

SINE = Activation("sine", np.sin, np.cos)
_EYES = np.array([np.eye(2)] * 7)
STATISTICS = {
    "projected": _EYES, "squared": _EYES, "largest": np.ones(7), "overlaps": np.zeros((7, 2)),
    "background": 0.0, "spread": 0.0,
}  # fmt: skip
LAW = own_direction.own_directions(**STATISTICS)

OTHERS = {
    "activations.leaky_relu": {"slope": 0.3},
    "activations.single": {"activation": "relu"},
    "activations.resolve": {"activation": "relu", "layers": 2},
    "activations.built_in": {"activation": tanh},
    "activations.gaussian_kernels": {"activation": tanh},
    "activations.precise_kernels.precise_kernels": {"activation": erf, "digits": 20},
    "batch_hessian.low_rank_noise": {"rank": 2, "variance": 0.6, "dim": 226, "batch_size": 64},
    "outliers.additive": {"spike": 1.7, "law": rmt.Semicircle(sigma=0.6)},
    "own_direction.own_directions": STATISTICS,
    **{
        f"own_direction.{name}": {"statistics": LAW, "batches": [[0, 1]]}
        for name in ("batch_eigenvalues", "expected_eigenvalue", "batch_bounds")
    },
    "learning_rates.noise_scale.mean_square_distances": {
        "curvatures": [[[4.0]], [[2.0]]], "start": [1.0], "rate": 0.02, "batch_size": 1, "steps": 3
    },
    "learning_rates.noise_scale.least_squares_risks": {
        "eigenvalues": [1.3, 0.4], "start": [1.0, 0.7], "noise": 0.3, "rate": [0.2, 0.4], "batch_size": 3, "steps": 4
    },
    "learning_rates.adam.adam_moments": {
        "start": 1.2, "curvature": 1.3, "noise": (6.0, 3.0), "steps": (15, 25), "rate": 0.02, "momentum": 0.99,
        "second": 0.998, "damping": 0.5,
    },
    "softmax.covariance": {"p": [0.7, 0.2, 0.1]},
    "gauss_newton.loss_gradient": {"p": [0.7, 0.2, 0.1], "label": 1, "jacobian": [[0.3], [1.0], [-0.2]]},
    "gauss_newton.hessian_terms": {
        "p": [0.7, 0.2, 0.1], "label": 1, "jacobian": [[0.3], [1.0], [-0.2]], "second": [[[0.3]], [[1.0]], [[-0.2]]]
    },
    "gauss_newton.gauss_newton_trace": {"p": [0.7, 0.2, 0.1], "jacobian": [[0.3], [1.0], [-0.2]]},
    "zone.tanh_correction": {"matrices": [[[1.0, 2.0]], [[0.5]]], "x": [0.3, -0.2]},
    "order_parameters.propagate": {"activations": [erf], "weight_variance": 1.3, "bias_variance": 0.4},
    "rmt.Semicircle": {"sigma": 0.6, "variance": None},
    "rmt.MarchenkoPastur": {"q": 0.4, "variance": 0.6},
    "rmt.CompoundFreePoisson": {"rate": 1.0, "jumps": 1.0, "weights": None},
    "rmt.TracyWidom": {"beta": 1},
}  # fmt: skip
"""Right calls that the catalogue lacks: callables, records, and arguments that belong together."""


def function(name: str) -> Callable[..., Any]:
    """The public function of this name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(f"theory.{module}"), last)


def _right(name: str) -> dict[str, Any]:
    words = FUNCTIONS.get(name)
    return (
        OTHERS[name]
        if words is None
        else bind(name, inspect.signature(function(name)).parameters, shlex.split(words))
    )


CALLS = {name: _right(name) for name in (*FUNCTIONS, *OTHERS)}


def call(name: str, changes: dict[str, Any]) -> Any:
    """The public function, with right arguments but for the changes."""
    return function(name)(**CALLS[name] | changes)


EXTREMES = [
    0,
    -0.0,
    1e308,
    -1e308,
    1.7e308,
    1e-308,
    5e-324,
    -5e-324,
    1e200,
    1e-200,
    10**30,
    2**31,
    2**63,
    1,
    0.5,
    -1,
]
"""Numbers at the ends of every range."""


class Series:
    """A column of a table, as pandas has them: numbers behind `__array__`, with labels."""

    def __init__(self, values: list[float]) -> None:
        self._values = np.array(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._values.astype(dtype) if dtype else self._values.copy()

    def __len__(self) -> int:
        return len(self._values)


class Broken:
    """Its numbers cannot be had."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("no numbers here")


class Sub(np.ndarray):
    """A subclass that adds nothing."""


def masked(*values: float) -> Any:
    return np.ma.array(values, mask=[False] * (len(values) - 1) + [True])


def read_only(*values: float) -> np.ndarray:
    array = np.array(values)
    array.flags.writeable = False
    return array


SELF = [1.0]
SELF.append(SELF)  # pyright: ignore[reportArgumentType]

HOSTILE = [
    None,
    "x",
    b"1",
    1j,
    True,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    Fraction(1, 3),
    Decimal("0.5"),
    {},
    {1.0},
    object(),
    [None],
    [True],
    [[1.0], [1.0, 2.0]],
    [],
    np.array(["a"]),
    np.array([0.5, math.nan]),
    np.ones(7),
    np.ones((5, 1, 1, 3)),
    np.zeros((0, 3)),
    np.int8(-100),
    np.int64(2**62),
    np.float32(3.3),
    np.longdouble("1e-40"),
    np.array([200, 100], dtype=np.uint8),
    np.array([0.25, 0.75], dtype=np.float16),
    masked(0.5),
    masked(1.0, 2.0),
    [masked(0.5, 0.25), masked(0.5, 0.25)],
    [0.5, np.ma.masked],
    np.ma.masked,
    np.ma.array(3, mask=True),
    SELF,
    [True, 2.0],
    [10**30, 0.5],
    [1, 10**400],
    np.uint64(2**64 - 1),
    np.float16(200),
    np.array([60000.0, 6e-8], dtype=np.float16),
    np.float32(1e-45),
    np.longdouble("1e4000"),
    np.longdouble("1e-4000"),
    1e-320,
    [1e-320, 1],
    [1e308, 1e308],
    sympy.Rational(1, 3),
    sympy.pi,
    sympy.Float("0.3"),
    sympy.Integer(3),
    sympy.Symbol("x"),
    sympy.zoo,
    mpmath.mpf("0.3"),
    mpmath.inf,
    mpmath.mpc(1, 2),
    torch.tensor(0.3),
    torch.tensor([0.3, 0.7], dtype=torch.float64),
    torch.tensor([1, 2]),
    torch.tensor(0.3, requires_grad=True),
    torch.tensor([0.5], dtype=torch.bfloat16),
    torch.empty(0),
    torch.empty(2, device="meta"),
    Series([0.3, 0.7]),
    Series([]),
    Broken(),
    np.array([[0.25, 0.75]]).view(np.matrix),
    np.array([0.25, 0.75]).view(Sub),
    read_only(0.25, 0.75),
    np.arange(12.0).reshape(3, 4)[::2, ::-1],
    np.broadcast_to(np.float64(0.5), (2, 2)),
    np.array([Fraction(1, 3), Decimal("0.1")]),
    np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
    np.rec.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.timedelta64(3, "s"),
    np.str_("0.5"),
    "9" * 5000,
    bytearray(b"ab"),
    memoryview(b"ab"),
    range(3),
    iter([1.0]),
    (x for x in [0.5]),
    {0.5: 1.0}.keys(),
    slice(3),
    Ellipsis,
    NotImplemented,
    type,
    lambda x: x,
    ValueError("x"),
]
