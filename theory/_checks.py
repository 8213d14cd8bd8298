"""Argument checks: the validated value as float64, or a ``ValueError`` that says what was expected."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Check = Callable[[str, ArrayLike], Floats]
quiet = np.errstate(all="ignore")
"""Decorator that silences floating-point warnings, for formulas whose intermediate results may overflow."""
P = ParamSpec("P")
R = TypeVar("R")

_MEMORY = 1 << 34  # bytes; a desk machine holds them, and nothing here is used at larger sizes
_PER_ELEMENT = 96  # bytes of results and work arrays in an elementwise formula
_DEEPEST = 10**5
_LARGEST_COUNT = 2**63 - 1
_SHOWN = 300  # characters of a value in a message
_FLOATS: tuple[Any, ...] = float, np.longdouble
_REAL = "real numbers"


def require(condition: Any, name: str, rule: str, value: object) -> None:
    """Raise ``ValueError("<name> must be <rule>, got <value>")`` unless `condition` holds everywhere.

    >>> require(False, "sigma", "positive", -1.0)
    Traceback (most recent call last):
    ...
    ValueError: sigma must be positive, got -1.0
    """
    # most conditions are on single numbers, and hold
    if condition is not True and condition is not np.True_ and not np.asarray(condition).all():
        raise ValueError(f"{name} must be {rule}, got {shown(value)}")


def finite(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry finite."""
    return checked(name, value, "finite", lambda x: np.isfinite(x))


def positive(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry > 0 and finite."""
    return checked(name, value, "positive and finite", lambda x: (x > 0) & np.isfinite(x))


def unbounded(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry > 0, infinity included."""
    return checked(name, value, "positive", lambda x: x > 0)


def nonnegative(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry finite and >= 0."""
    return checked(name, value, "non-negative and finite", lambda x: (x >= 0) & np.isfinite(x))


def within(name: str, value: ArrayLike, low: float, high: float) -> Floats:
    """`value` as float64, every entry in the closed interval [low, high]."""
    return checked(name, value, f"in [{low:g}, {high:g}]", lambda x: (x >= low) & (x <= high))


def inside(name: str, value: ArrayLike, low: float, high: float) -> Floats:
    """`value` as float64, every entry in the open interval (low, high)."""
    return checked(name, value, f"in ({low:g}, {high:g})", lambda x: (x > low) & (x < high))


def instance(name: str, value: object, kind: Any, rule: str) -> None:
    """Refuse a `value` that is no `kind`; types are promises that a caller may break."""
    require(isinstance(value, kind), name, rule, value)


def scalar(name: str, value: ArrayLike, check: Check | None = None) -> float:
    """`value`, checked before or by `check`, as one number."""
    found = np.asarray(value) if check is None else check(name, value)
    require(found.ndim == 0, name, "a scalar", found)
    return float(found)


def integer(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """`value` as an int from `least` to `most`; a float with a whole value is accepted, a bool is not.

    >>> integer("depth", 3.0, least=1)
    3
    """
    rule = f"an integer >= {least}"
    given: Any = value
    single: Any = as_given(name, given, rule).item() if _is_single(given) else given
    require(not isinstance(single, bool), name, rule, value)
    try:
        whole = int(single) if isinstance(single, _FLOATS) and single.is_integer() else operator.index(single)
    except TypeError:
        raise ValueError(f"{name} must be {rule}, got {shown(given)}") from None
    require(whole >= least, name, rule, value)
    require(most is None or whole <= most, name, f"at most {most}", value)
    return whole


def flag(name: str, value: object) -> bool:
    """`value`, which must be true or false and nothing that merely counts as one of them."""
    instance(name, value, bool | np.bool_, "True or False")
    return bool(value)


def probabilities(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, contiguous, each vector along the last axis a distribution over K >= 2 outcomes."""
    p = finite(name, value)
    # probabilities of lower precision sum to one only up to its rounding
    tolerance = 1e-5 if np.asarray(value).dtype.name in ("float16", "float32") else 1e-8
    rule = f"a probability vector along its last axis (at least 2 entries, >= 0, sum 1 within {tolerance:g})"
    # before the sum, which would overflow for entries that are far off
    require(p.ndim >= 1 and p.shape[-1] >= 2 and np.all((p >= 0) & (p <= 2)), name, rule, value)
    p = np.ascontiguousarray(p)
    require(np.abs(p.sum(axis=-1) - 1.0) <= tolerance, name, rule, value)
    return p


def distributions(**vectors: ArrayLike) -> tuple[Floats, ...]:
    """Probability vectors over the same outcomes, broadcast to one shape.

    >>> distributions(mean_probability=[0.5, 0.5], prior=[0.2, 0.3, 0.5])
    Traceback (most recent call last):
    ...
    ValueError: prior must be over 2 classes, got (3,)
    """
    found = {name: probabilities(name, value) for name, value in vectors.items()}
    classes = next(iter(found.values())).shape[-1]
    for name, p in found.items():
        require(p.shape[-1] == classes, name, f"over {classes} classes", p.shape)
    return together(**found)


def require_symmetric(name: str, matrices: Floats, rounding: float = 1e-8) -> None:
    """Refuse matrices (..., n, n) that differ from their transposes by more than `rounding` of the largest entry."""
    skew, size = (np.abs(x).max(axis=(-2, -1)) for x in (matrices - matrices.mT, matrices))
    require(skew <= rounding * size, name, "symmetric", matrices)


def whole(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry a whole number >= 1."""
    found = finite(name, value)
    require((found >= 1) & (found == np.floor(found)), name, "a whole number >= 1", value)
    return found


def together(
    **arguments: Floats | tuple[Check, ArrayLike],
) -> tuple[Floats, ...]:
    """The arguments of an elementwise formula, broadcast to one shape; what is not checked yet has its check beside it.

    >>> together(spike=(finite, [0, 0]), sigma=np.ones(3))
    Traceback (most recent call last):
    ...
    ValueError: spike, sigma must be broadcastable to one shape, got (2,), (3,)
    """
    arrays = [x[0](name, x[1]) if isinstance(x, tuple) else x for name, x in arguments.items()]
    shapes = [a.shape for a in arrays]
    if not any(shapes):  # numbers alone: nothing to broadcast, and most calls
        return tuple(map(np.asarray, arrays))
    names = ", ".join(arguments)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        text = ", ".join(map(str, shapes))
        raise ValueError(f"{names} must be broadcastable to one shape, got {text}") from None
    fits(names, math.prod(shape) * _PER_ELEMENT, shape)
    return np.broadcast_arrays(*arrays)


def fits(name: str, size: float, value: object) -> None:
    """Refuse what would need more than 16 GiB before any of it is taken.

    >>> fits("dim", 8 * 10**12, 10**12)
    Traceback (most recent call last):
    ...
    ValueError: dim must be small enough for memory (it needs about 7.28 TiB, the limit is 16 GiB), got 1000000000000
    """
    if size > _MEMORY:
        # an infinite size has no power of two to write
        size = min(size, 1e300)
        rule = f"small enough for memory (it needs about {_amount(size)}, the limit is {_amount(_MEMORY)})"
        require(False, name, rule, value)


def layers(name: str, value: object, *, least: int = 1) -> int:
    """A number of layers; the recursions take time and memory for each of them."""
    return integer(name, value, least=least, most=_DEEPEST)


def count(name: str, value: object, least: int = 1) -> int:
    """A number of things, no larger than a machine can count."""
    return integer(name, value, least=least, most=_LARGEST_COUNT)


def representable(result: Any, **arguments: object) -> NDArray[Any]:
    """`result`, every entry finite, or a message that names the arguments that made it overflow.

    >>> representable(np.array(np.inf), sharpness=1e-320)
    Traceback (most recent call last):
    ...
    ValueError: sharpness must be such that the result does not overflow, got 1e-320
    """
    if not np.isfinite(result).all():
        values = tuple(arguments.values())
        rule = "such that the result does not overflow"
        require(False, ", ".join(arguments), rule, values[0] if len(values) == 1 else values)
    return np.asarray(result)[()]


def closed_form(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose overflow is refused at its end, in the names of all that was given, and not on the way.

    An array without axes becomes a number.

    >>> closed_form(lambda sharpness: np.asarray(2.0) / sharpness)(1e-320)
    Traceback (most recent call last):
    ...
    ValueError: sharpness must be such that the result does not overflow, got 1e-320
    """

    @wraps(function)
    def judged(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            result: Any = function(*args, **kwargs)
        kind: Any = result.__class__
        names = getattr(kind, "__annotations__", ())  # of a record's fields
        parts = [getattr(result, name) for name in names] if names else [result]
        if not all(np.isfinite(x).all() for x in parts):
            # the names are looked up only for a message: binding takes longer than most formulas
            given = inspect.signature(function).bind(*args, **kwargs).arguments
            given.pop("self", None)
            representable(np.inf, **given)
        numbers: list[Any] = [x[()] if isinstance(x, np.ndarray) else x for x in parts]
        return kind(**dict(zip(names, numbers, strict=True))) if names else numbers[0]

    return judged


def as_given(name: str, value: ArrayLike, rule: str) -> NDArray[Any]:
    """`value` as an array of its own type, with nothing masked and no truth value among numbers.

    >>> as_given("sigma", np.ma.array([1.0, 2.0], mask=[False, True]), "real numbers")
    Traceback (most recent call last):
    ...
    ValueError: sigma must be without masked values, got masked_array(data=[1.0, --], ...
    """
    leaves = list(_leaves(value))
    masked: Any = np.ma.MaskedArray
    require(
        not any(isinstance(x, masked) and np.ma.is_masked(x) for x in leaves),
        name,
        "without masked values",
        value,
    )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{name} must be {rule}, got {shown(value)}") from None
    require(
        array.dtype.kind == "b" or not any(isinstance(x, bool | np.bool_) for x in leaves), name, rule, value
    )
    return array


def _leaves(value: object) -> Iterator[object]:
    """Yield the items of lists and tuples that numpy would convert silently; plain numbers are skipped."""
    seen: set[int] = set()
    rest: list[Any] = [value]
    while rest:
        item = rest.pop()
        if not _is_list(item):
            yield item
        elif id(item) not in seen and not set(map(type, item)) <= {int, float, np.float64}:
            seen.add(id(item))  # a list may hold itself
            rest.extend(item)


def checked(name: str, value: ArrayLike, rule: str, holds: Callable[[Floats], Any]) -> Floats:
    """`value` as float64, for all of which `holds` is true."""
    # most arguments are plain numbers; a sum, since no formula here knows a zero with a sign
    found = np.asarray(value + 0.0) if isinstance(value, float) else _converted(name, value)
    require(holds(found), name, rule, value)
    return found


def _converted(name: str, value: ArrayLike) -> Floats:
    array = as_given(name, value, _REAL)
    kinds: set[Any] = set(map(type, array.flat)) if array.dtype.kind == "O" else set()
    beyond_64_bits = int in kinds and kinds <= {int, float}
    require(array.dtype.kind in "uif" or beyond_64_bits, name, _REAL, value)
    try:
        with np.errstate(over="ignore"):
            return np.asarray(array.astype(np.float64, order="C", copy=False) + 0.0)
    except OverflowError:  # an integer of more than 1024 bits
        raise ValueError(f"{name} must be {_REAL}, got {shown(value)}; floats end at 1.8e308") from None


def shown(value: object) -> str:
    """`value` as a message shows it, cut where it is long, on one line; a single number of numpy like any other.

    >>> shown(np.float64(0.5)), shown(np.array(0.5)), shown(np.array([0.5]))
    ('0.5', '0.5', 'array([0.5])')
    """
    given: Any = value
    try:
        text = " ".join(repr(given.item() if _is_single(given) else given).split())  # a message is one line
    except ValueError:  # Python spells no integer of more than some thousand digits
        return "a number too long to print"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_single(value: Any) -> bool:
    return isinstance(value, np.generic | np.ndarray) and value.ndim == 0


def _amount(size: float) -> str:
    """Bytes in words.

    >>> _amount(8 * 10**12)
    '7.28 TiB'
    """
    power = min(int(math.log2(size)) // 10, 8)
    return f"{size / 1024**power:.3g} {'KMGTPEZY'[power - 1]}iB"
