"""Things that look like numbers or hold some: of other libraries, of other classes, in other memory."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import torch

__all__ = ["LOOK_ALIKES"]


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

LOOK_ALIKES: list[Any] = [
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
    2**31,
    2**31 - 1,
    2**32,
    2**53 + 1,
    2**63,
    -(2**63),
    np.uint64(2**64 - 1),
    np.array([250, 250], dtype=np.uint8),
    np.float16(65504),
    np.array([60000.0, 6e-8], dtype=np.float16),
    np.float32(1e-45),
    np.longdouble("1e4000"),
    np.longdouble("1e-4000"),
    1e-320,
    [1e-320, 1],
    [1e308, 1e308],
    -5e-324,
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
    np.array([None, 1.0], dtype=object),
    np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
    np.rec.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.timedelta64(3, "s"),
    np.array([1 + 0j]),
    np.str_("0.5"),
    "1e5",
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
"""Objects that a caller may pass by mistake, or in good faith."""
