"""Numbers, parameters and names as the terminal, the plots and the report all write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from verify.results import PointOutcome, RivalOutcome, Row

__all__ = [
    "SYMBOLS",
    "RivalTally",
    "deviation",
    "differing",
    "half_width",
    "measurement",
    "number",
    "parameters",
    "power_of_ten",
    "prediction",
    "rival_tally",
    "shared",
    "slugs",
    "telling",
]

SYMBOLS = {"agrees": "●", "disagrees": "◆", "undecided": "○", "broken": "✕"}
"""A shape for each verdict, so that nothing hangs on colour."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALLEST_DECIMAL, _LARGEST_DECIMAL = 1e-4, 1e6


class RivalTally(NamedTuple):
    """How many rivals a run rejects, and how far the nearest of them is from the theory, in margins."""

    rejected: int
    total: int
    nearest: float
    missed: tuple[str, ...]


def number(value: float, digits: int = 4, *, plain: bool = False) -> str:
    r"""A number to so many significant digits; `plain` writes powers of ten in letters of the keyboard.

    >>> number(0.0123456), number(3.2e-16), number(3.2e-16, plain=True), number(float("-inf")), number(1500.0)
    ('0.01235', '3.2\xa0×\xa010⁻¹⁶', '3.2e-16', '−∞', '1500')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or _SMALLEST_DECIMAL <= abs(value) < _LARGEST_DECIMAL:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:.{decimals}f}"
        return _minus(text.rstrip("0").rstrip(".") if "." in text else text)
    return _scientific(f"{value:.{digits - 1}e}", plain)


def power_of_ten(exponent: int) -> str:
    """10 to an integer.

    >>> power_of_ten(-12)
    '10⁻¹²'
    """
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def prediction(point: PointOutcome, *, plain: bool = False) -> str:
    """Predicted value and margin, to the digits that the margin makes meaningful.

    >>> from verify.results import PointOutcome
    >>> prediction(PointOutcome(parameters={}, verdict="agrees", predicted=2.04, margin=0.0204, measured=2.03,
    ...                         lower=2.02, upper=2.04))
    '2.040 ± 0.020'
    """
    return _plus_minus(point.predicted, point.margin, 2, plain)


def measurement(point: PointOutcome, *, plain: bool = False) -> str:
    """Measured value and half-width; the value alone where the interval is a point."""
    half = half_width(point)
    return number(point.measured, plain=plain) if half == 0.0 else _plus_minus(point.measured, half, 2, plain)


def half_width(point: PointOutcome) -> float:
    """The larger distance from the measured value to a limit."""
    sides = (point.upper - point.measured, point.measured - point.lower)
    return math.inf if any(math.isnan(side) for side in sides) else max(sides)


def deviation(point: PointOutcome, value: float | None = None) -> float:
    """(measured - predicted)/margin, or the same of another value; NaN where it has no meaning."""
    value = point.measured if value is None else value
    if value == point.predicted:
        return 0.0
    difference = value - point.predicted
    return difference / point.margin if point.margin > 0 else math.copysign(math.inf, difference)


def telling(row: Row) -> PointOutcome | None:
    """The point that the verdict of a row hangs on: of its verdict, the hardest to decide."""

    def hardness(point: PointOutcome) -> tuple[bool, int, float]:
        reach = abs(deviation(point)) + (half_width(point) / point.margin if point.margin > 0 else 0.0)
        return point.verdict == row.verdict, point.replicates, reach if math.isfinite(reach) else math.inf

    return max(row.points, key=hardness, default=None)


def rival_tally(row: Row) -> RivalTally:
    """Rivals rejected at one point or more; each rival's distance is the one where it lies farthest."""
    best: dict[str, RivalOutcome] = {}
    rejected: set[str] = set()
    for rival in (rival for point in row.points for rival in point.rivals):
        rejected |= {rival.name} if rival.rejected else set()
        if rival.name not in best or _size(rival.margins) > _size(best[rival.name].margins):
            best[rival.name] = rival
    nearest = min((_size(rival.margins) for rival in best.values()), default=math.inf)
    return RivalTally(len(rejected), len(best), nearest, tuple(name for name in best if name not in rejected))


def shared(points: Sequence[PointOutcome]) -> dict[str, Any]:
    """The parameters that all points have in common."""
    first = points[0].parameters if points else {}
    return {k: v for k, v in first.items() if all(p.parameters.get(k, _ABSENT) == v for p in points)}


def differing(point: PointOutcome, points: Sequence[PointOutcome]) -> dict[str, Any]:
    """The parameters that tell a point from the others; all of them for a single point."""
    common = shared(points) if len(points) > 1 else {}
    return {k: v for k, v in point.parameters.items() if k not in common}


def parameters(values: Mapping[str, Any], separator: str = ", ") -> str:
    """Parameters as text.

    >>> parameters({"spike": 2.5, "sizes": (3, 4), "law": "relu", "bias": True})
    'spike = 2.5, sizes = (3, 4), law = relu, bias = yes'
    """
    return separator.join(f"{name} = {_value(value)}" for name, value in values.items())


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Names to anchors and file names: letters, digits, dots and dashes, all different.

    >>> slugs(["a/b 1", "a/b [1]"])
    {'a/b 1': 'a-b-1', 'a/b [1]': 'a-b-1-2'}
    """
    taken: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(names):
        base = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "row"
        slug, count = base, 1
        while slug.lower() in used:
            count += 1
            slug = f"{base}-{count}"
        used.add(slug.lower())
        taken[name] = slug
    return taken


_ABSENT = object()


def _size(margins: float) -> float:
    return math.inf if math.isnan(margins) else abs(margins)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_value, value))})"
    return str(value)


def _plus_minus(value: float, half: float, digits: int, plain: bool) -> str:
    """Both numbers to the same decimals, the half-width to `digits` significant ones."""
    if not (math.isfinite(value) and math.isfinite(half) and half > 0):
        return f"{number(value, plain=plain)} ± {number(half, 3, plain=plain)}"
    decimals = digits - 1 - math.floor(math.log10(half))
    largest = max(abs(value), half)
    if _SMALLEST_DECIMAL * 10 <= largest < _LARGEST_DECIMAL and decimals <= 6:
        return f"{_minus(f'{value:.{max(decimals, 0)}f}')} ± {half:.{max(decimals, 0)}f}"
    if largest < 1000 * half or value == 0:
        return f"{number(value, digits + 2, plain=plain)} ± {number(half, digits, plain=plain)}"
    exact = max(4, min(12, math.ceil(math.log10(abs(value) / half)) + digits))
    return f"{number(value, exact, plain=plain)} ± {number(half, digits, plain=plain)}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _scientific(text: str, plain: bool) -> str:
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    if plain:
        return f"{mantissa}e{int(exponent):+03d}".replace("e+", "e")
    return f"{_minus(mantissa)}\u00a0×\u00a0{power_of_ten(int(exponent))}"
