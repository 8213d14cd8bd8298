"""What the panels of all kinds share: titles, letters and their key, points in units of their margin."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verify.model import ABSOLUTE, Kind
from verify.page import wording
from verify.page.drawing import Limits
from verify.page.formulas import typeset
from verify.page.wording import Placed
from verify.results import PointOutcome, Row

__all__ = [
    "EN",
    "PARTS",
    "agreement_band",
    "at_point",
    "brief",
    "in_margins",
    "letter_key",
    "letter_line",
    "letters",
    "letters_of",
    "name_of",
    "never_negative",
    "points_named",
    "room",
    "title",
]

TITLE = 50
"""Longest line of a title."""

EN = "\u2002"
"""A space that SVG does not collapse."""

MANY = 5
"""Entries of a list that a name shows in full; of a longer one the first ones, and how many more there are."""

NAME = 66
"""Longest line of the name of a point."""

PARTS = "thin ends of an interval: what the size model adds to it"


_EQUALS = "\u00a0=\u00a0"


def letters(row: Row) -> dict[str, str]:
    """A letter for each rival of a row."""
    return letters_of(rival.name for point in row.points for rival in point.rivals)


def letters_of(names: Iterable[str]) -> dict[str, str]:
    """Names to letters, numbers after z.

    >>> letters_of(["kappa2", "half", "kappa2"])
    {'kappa2': 'a', 'half': 'b'}
    """
    return {name: chr(ord("a") + k) if k < 26 else str(k) for k, name in enumerate(dict.fromkeys(names))}


def letter_key(names: dict[str, str], hidden: Iterable[str] = ()) -> str:
    """One line per rival; `hidden` are those beyond the frame."""
    off = set(hidden)
    return "\n".join(letter_line(v, k + " (off the scale)" * (k in off)) for k, v in names.items())


def letter_line(letter: str, name: str) -> str:
    """A rival's line of the key."""
    return "\n".join(textwrap.wrap(f"{letter}{EN}{EN}rival: {typeset(name)}", 72, subsequent_indent=5 * EN))


def title(text: str) -> str:
    """A title in as many lines as it needs."""
    return _in_lines(text, TITLE)


def _in_lines(text: str, width: int) -> str:
    """A text in lines that do not part a name from its value."""
    lines = textwrap.wrap(typeset(text).replace(" = ", _EQUALS), width, break_on_hyphens=False)
    return "\n".join(lines).replace(_EQUALS, " = ")


def room(text: str) -> float:
    """Room above a panel with this title."""
    return 0.42 + 0.16 * title(text).count("\n")


def at_point(row: Row, point: PointOutcome) -> str:
    """Which of several points a panel shows."""
    name = name_of(point, row.points)
    return f" at {name}" if name else ""


def name_of(point: Placed, points: Sequence[Placed]) -> str:
    """What tells a point from the others, briefly; nothing for a single one."""
    if len(points) < 2:
        return ""
    names = [brief(wording.differing(other, points)) for other in points]
    here = brief(wording.differing(point, points))
    if names.count(here) < 2:  # long lists may differ in what is not shown
        return here
    number = next((k for k, other in enumerate(points) if other is point), None)
    return here if number is None else f"{here} ({names[: number + 1].count(here)})"


def brief(values: Mapping[str, Any]) -> str:
    """Parameters as text, of long lists the first entries.

    >>> brief({"p": (0.31, 0.22, 0.15, 0.11, 0.08, 0.05), "dim": 40})
    'p = (0.31, 0.22, 0.15, … 3 more), dim = 40'
    """
    return typeset(", ".join(_brief(name, value) for name, value in values.items()))


def _brief(name: str, value: Any) -> str:
    if not isinstance(value, list | tuple) or (len(value) <= MANY and not _nested(value)):
        return wording.parameters({name: value})
    shown = 1 if _nested(value) else MANY - 2
    if len(value) <= shown:
        return wording.parameters({name: value})
    start = wording.parameters({name: tuple(value[:shown])}).rstrip(",)") + ")" * _nested(value)
    return f"{start}, … {len(value) - shown} more)"


def _nested(value: Sequence[Any]) -> bool:
    return any(isinstance(entry, list | tuple) for entry in value)


def points_named(row: Row) -> list[str]:
    """The name of each point of a row, in as many lines as it needs."""
    names = [name_of(point, row.points) for point in row.points]
    return [_in_lines(name, NAME) for name in names]


def in_margins(point: PointOutcome) -> PointOutcome:
    """The same outcome in units of its margin, the prediction at 0."""
    return PointOutcome(
        parameters=point.parameters,
        verdict=point.verdict,
        predicted=0.0,
        margin=1.0,
        measured=wording.deviation(point),
        lower=_or(wording.deviation(point, point.lower), -math.inf),
        upper=_or(wording.deviation(point, point.upper), math.inf),
        size_model=point.size_model / point.margin if point.margin > 0 else 0.0,
    )


def agreement_band(row: Row, limits: Limits, low: Any = -1.0, high: Any = 1.0) -> tuple[Any, Any]:
    """Where the interval of an agreeing claim lies: between `low` and `high`, one of them the frame for a bound."""
    if never_negative(row):
        return 0.0, high
    return (
        limits[0] if row.kind == Kind.AT_MOST else low,
        limits[1] if row.kind == Kind.AT_LEAST else high,
    )


def never_negative(row: Row) -> bool:
    """Whether what is judged is a share or a distance: the prediction is 0, and nothing lies below it."""
    return row.kind in ABSOLUTE


def _or(value: float, instead: float) -> float:
    return instead if math.isnan(value) else value
