"""Numbers, parameters and names as the terminal, the plots and the report all write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from verify.escapes import escaped, printable
from verify.judging.guards import REMEDIES, TOLD_FROM, unseen_rate
from verify.judging.judge import PRINTED
from verify.model import Kind, Standing
from verify.page.formulas import GREEK, RAISED
from verify.results import PointOutcome, Row

EVEN = 0.9
"""Share of the larger side from which the smaller one is left out."""

_SMALLEST_DECIMAL, _LARGEST_DECIMAL = 1e-4, 1e6


class Headings(NamedTuple):
    """Column headings for the prediction, the measurement and their distance."""

    predicted: str = "predicted"
    measured: str = "measured"
    deviation: str = "(measured − predicted)"


_EXTRAPOLATED = Headings(measured="extrapolated", deviation="(extrapolated − predicted)")
_SHARE = Headings(measured="violations", deviation="share of violations")
_TERMS: dict[str, Headings] = {
    Kind.AT_LEAST: Headings("lower bound", deviation="(measured − bound)"),
    Kind.AT_MOST: Headings("upper bound", deviation="(measured − bound)"),
    Kind.NEVER_BELOW: _SHARE,
    Kind.NEVER_ABOVE: _SHARE,
    "identity": Headings(measured="difference", deviation="difference of the two routes"),
    "exact property": Headings(measured="violation", deviation="violation"),
    Kind.DISTRIBUTION: Headings(measured="distance", deviation="largest distance"),
    Kind.LIMIT: _EXTRAPOLATED,
    Kind.EXPONENT: _EXTRAPOLATED,
}


class Placed(Protocol):
    """A point of a claim or of an observation."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters by name."""
        ...


class RivalTally(NamedTuple):
    """Rivals that a run rejects at one point or more, all of them, and the names of those it missed."""

    rejected: int
    total: int
    missed: tuple[str, ...]


def numeral(value: float, digits: int = 4, *, plain: bool = False) -> str:
    r"""A number to so many significant digits; `plain` writes powers of ten in letters of the keyboard.

    >>> numeral(0.0123456), numeral(3.2e-16), numeral(3.2e-16, plain=True), numeral(float("-inf")), numeral(1500.0)
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


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.0123)
    '1.2 %'
    """
    return f"{numeral(100 * share, 2)} %"


def power_of_ten(exponent: int) -> str:
    """10 to an integer.

    >>> power_of_ten(-12)
    '10⁻¹²'
    """
    return "10" + str(exponent).translate(RAISED)


def prediction(point: PointOutcome, *, plain: bool = False) -> str:
    """Predicted value and margin, to the digits that the margin makes meaningful.

    >>> from verify.results import PointOutcome
    >>> prediction(PointOutcome(parameters={}, verdict="agrees", predicted=2.04, margin=0.0204, measured=2.03,
    ...                         lower=2.02, upper=2.04))
    '2.040 ± 0.020'
    """
    return _plus_minus(point.predicted, point.margin, plain)


def measurement(point: PointOutcome, *, plain: bool = False) -> str:
    """Measured value and half-width, or both sides where they differ; the value alone where the interval is a point.

    >>> from verify.results import PointOutcome
    >>> measurement(PointOutcome(parameters={}, verdict="agrees", predicted=2.0, margin=0.1, measured=2.0, lower=1.97,
    ...                          upper=2.08))
    '2.000 +0.080 −0.030'
    """
    half = point.half_width
    if half == 0.0:
        return numeral(point.measured, plain=plain)
    sides = point.upper - point.measured, point.measured - point.lower
    said = _plus_minus(point.measured, half, plain)
    if min(sides) > EVEN * half or not math.isfinite(half) or "×" in said or "e" in said:
        return said
    middle, _, larger = said.partition(" ± ")
    decimals = len(larger.partition(".")[2])
    up, down = (f"{max(side, 0.0):.{decimals}f}" for side in sides)
    return f"{middle} +{up} {'-' if plain else '−'}{down}"


def half_parts(point: PointOutcome, digits: int = 2, *, plain: bool = False) -> str:
    """The parts of the half-width that there are.

    >>> from verify.results import PointOutcome
    >>> half_parts(PointOutcome(parameters={}, verdict="agrees", predicted=2.0, margin=0.1, measured=2.0, lower=1.97,
    ...                         upper=2.03, statistical=0.01, size_model=0.02))
    'statistical 0.01, of the size model 0.02'
    """
    parts = {
        "statistical": point.statistical,
        "of the size model": point.size_model,
        "of rounding and truncation": point.numerical,
    }
    return ", ".join(
        f"{name} {numeral(value, digits, plain=plain)}" for name, value in parts.items() if value
    )


def headings(kind: str) -> Headings:
    """The words for prediction and measurement of a kind of claim."""
    return _TERMS.get(kind, Headings())


def listed_violations(point: PointOutcome, *, plain: bool = False) -> str:
    """The first replicates that break a bound on every one, and by how much.

    >>> from verify.results import PointOutcome, Violation
    >>> listed_violations(PointOutcome(parameters={}, verdict="disagrees", predicted=0.0, margin=0.1, measured=0.5,
    ...     lower=0.2, upper=0.7, violations=[Violation(replicate=3, by=0.25), Violation(replicate=8, by=2.0)]))
    '3 (by 0.25), 8 (by 2)'
    """
    return ", ".join(f"{v.replicate} (by {numeral(v.by, 3, plain=plain)})" for v in point.violations)


def unit(row: Row, *, plain: bool = False) -> str:
    """The logarithm that the numbers of a row are; empty where they are plain."""
    return "" if not row.logarithm else f"log{row.logarithm}" if plain else _LOGARITHMS[row.logarithm]


def undecided(point: PointOutcome) -> str:
    """Why a point has no verdict, and what helps where it left the laws that the intervals are calibrated on."""
    helps = REMEDIES.get(point.reason, "")
    return f"{point.reason}; what helps: {helps}" if helps else point.reason


DEPENDENT = (
    "nor replicates that depend on others drawn beside them, which only their separate streams exclude below "
    f"{TOLD_FROM} replicates"
)


def unseen(points: Sequence[PointOutcome], alpha: float) -> str:
    """Return what no interval and no guard can see, at the point with the fewest replicates; empty without replicates.

    >>> from dataclasses import replace
    >>> from verify.results import PointOutcome
    >>> at = PointOutcome(parameters={}, verdict="agrees", predicted=2.0, margin=0.1, measured=2.0, lower=1.97,
    ...                   upper=2.03, replicates=1392)
    >>> unseen([at], 1e-3 / 1024), unseen([], 1e-3 / 1024)
    ('an event rarer than 1 in 100 of the replicates would not be seen', '')
    >>> print(unseen([replace(at, replicates=96)], 1e-3 / 1024))
    an event rarer than 1 in 6 of the replicates would not be seen, nor replicates that depend on others drawn beside
    them, which only their separate streams exclude below 640 replicates
    """
    fewest = min((point.replicates for point in points), default=0)
    if fewest == 0:
        return ""
    share = max(1, math.floor(1 / unseen_rate(fewest, alpha)))
    rare = f"an event rarer than 1 in {share} of the replicates would not be seen"
    return rare if fewest >= TOLD_FROM else f"{rare}, {DEPENDENT}"


def standing_name(row: Row) -> str:
    """Return the name of a reading: its relation to the paper, except for a misprint, which may be one of our copy."""
    return PRINTED if row.standing == Standing.MISPRINT else row.standing


def deviation(point: PointOutcome, value: float | None = None) -> float:
    """(measured - predicted)/margin, or the same of another value; NaN where it has no meaning."""
    value = point.measured if value is None else value
    if value == point.predicted:
        return 0.0
    difference = value - point.predicted
    return difference / point.margin if point.margin > 0 else math.copysign(math.inf, difference)


def telling(row: Row) -> PointOutcome | None:
    """The point that the verdict of a row hangs on: of its verdict, the hardest to decide.

    Of a property that disagrees the last one, to which the failing example has shrunk.
    """
    if "property" in row.kind and row.verdict == "disagrees":
        return row.points[-1] if row.points else None

    def hardness(point: PointOutcome) -> tuple[bool, int, float]:
        reach = abs(deviation(point)) + (point.half_width / point.margin if point.margin > 0 else 0.0)
        return point.verdict == row.verdict, point.replicates, reach if math.isfinite(reach) else math.inf

    return max(row.points, key=hardness, default=None)


def rival_tally(row: Row) -> RivalTally:
    """Count the rivals of a row."""
    rivals = [rival for point in row.points for rival in point.rivals]
    rejected = {rival.name for rival in rivals if rival.rejected}
    names = dict.fromkeys(rival.name for rival in rivals)
    return RivalTally(len(rejected), len(names), tuple(name for name in names if name not in rejected))


def common_parameters(points: Sequence[Placed]) -> dict[str, Any]:
    """The parameters that all points have in common."""
    first = points[0].parameters if points else {}
    return {k: v for k, v in first.items() if all(p.parameters.get(k, _ABSENT) == v for p in points)}


def differing(point: Placed, points: Sequence[Placed]) -> dict[str, Any]:
    """The parameters that tell a point from the others; all of them for a single point."""
    common = common_parameters(points) if len(points) > 1 else {}
    return {k: v for k, v in point.parameters.items() if k not in common}


def parameters(values: Mapping[str, Any]) -> str:
    """Parameters as text.

    >>> parameters({"spike": 2.5, "sizes": (3, 4), "law": "relu", "bias": True, "theorem_7_read": 0.5})
    'spike = 2.5, sizes = (3, 4), law = relu, bias = yes, theorem 7 as our copy reads = 0.5'
    """
    return ", ".join(f"{named(name)} = {_value(value)}" for name, value in values.items())


def named(parameter: str) -> str:
    """A parameter or a score in words; a letter keeps its index.

    >>> named("weight_variance"), named("sigma_c"), named("theorem_7_read")
    ('weight variance', 'sigma_c', 'theorem 7 as our copy reads')
    """
    first = parameter.partition("_")[0]
    if first in GREEK or len(first) == 1 or not first:
        return parameter
    words = parameter.removesuffix("_read") + " as our copy reads" * parameter.endswith("_read")
    return words.replace("_", " ")


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> duration(431.2), duration(9.87)
    ('7 min 11 s', '9.9 s')
    """
    if not 60 <= seconds < math.inf:
        return f"{numeral(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Names to anchors and file names: letters, digits, dots and dashes, all different.

    >>> slugs(["a/b 1", "a/b [1]"])
    {'a/b 1': 'a-b-1', 'a/b [1]': 'a-b-1-2'}
    """
    taken: dict[str, str] = {}
    used: set[str] = set()
    counts: dict[str, int] = {}
    for name in dict.fromkeys(names):
        base = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:_LONGEST_SLUG] or "row"
        base = f"row-{base}" if _DEVICE.match(base) else base
        slug = base
        while slug.lower() in used:
            counts[base.lower()] = counts.get(base.lower(), 1) + 1
            slug = f"{base}-{counts[base.lower()]}"
        used.add(slug.lower())
        taken[name] = slug
    return taken


def legible(record: Any, lines: bool = False) -> Any:
    """A record with each of its texts as it can be shown; all on one line but for those that may have several."""
    if isinstance(record, str):
        return printable(record) if lines else escaped(record)
    if isinstance(record, _NUMBER):  # most of what a run holds
        return record
    if is_dataclass(record) and not isinstance(record, type):
        named = {name: legible(getattr(record, name), name in _OF_LINES) for name in _names_of(type(record))}
        return type(record)(**named)
    if isinstance(record, dict):
        return {legible(key): legible(value, key in _OF_LINES) for key, value in record.items()}
    return type(record)(map(legible, record)) if isinstance(record, list | tuple) else record


@cache
def _names_of(record: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


_ABSENT = object()
_LOGARITHMS = {"2": "log₂", "e": "ln", "10": "log₁₀"}
_LONGEST_SLUG = 120
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_NUMBER = float | int | None
_OF_LINES = ("error", "expression", "statement", "steps")
"""Tracebacks, formulas and their derivations."""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return numeral(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_value, value))})"
    return str(value).replace("_", " ")


def _plus_minus(value: float, half: float, plain: bool) -> str:
    """Both numbers to the same decimals, the half-width to two significant ones."""
    if not (math.isfinite(value) and math.isfinite(half) and half > 0):
        return f"{numeral(value, plain=plain)} ± {numeral(half, 3, plain=plain)}"
    decimals = 1 - math.floor(math.log10(half))
    largest = max(abs(value), half)
    if _SMALLEST_DECIMAL * 10 <= largest < _LARGEST_DECIMAL and decimals <= 6:
        return f"{_minus(f'{value:.{max(decimals, 0)}f}')} ± {half:.{max(decimals, 0)}f}"
    if largest < 1000 * half or value == 0:
        return f"{numeral(value, plain=plain)} ± {numeral(half, 2, plain=plain)}"
    exact = max(4, min(12, math.ceil(math.log10(abs(value)) - math.log10(half)) + 2))
    return f"{numeral(value, exact, plain=plain)} ± {numeral(half, 2, plain=plain)}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _scientific(text: str, plain: bool) -> str:
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    if plain:
        return f"{mantissa}e{int(exponent):+03d}".replace("e+", "e")
    return f"{_minus(mantissa)}\u00a0×\u00a0{power_of_ten(int(exponent))}"
