"""What the panels of all kinds share: titles, letters and their key, points in units of their margin."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Any

from verify.model import Kind
from verify.page import wording
from verify.page.drawing import Limits
from verify.results import PointOutcome, Row

__all__ = [
    "EN",
    "PARTS",
    "at_point",
    "band",
    "in_margins",
    "letter_key",
    "letter_line",
    "letters",
    "letters_of",
    "never_negative",
    "room",
    "title",
]

TITLE = 50
"""Longest line of a title."""

EN = "\u2002"
"""A space that SVG does not collapse."""

PARTS = "thin ends of an interval: what the size model adds to it"


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
    return "\n".join(textwrap.wrap(f"{letter}{EN}{EN}rival: {name}", 72, subsequent_indent=5 * EN))


def title(text: str) -> str:
    """A title of at most two lines."""
    return "\n".join(textwrap.wrap(text, TITLE, max_lines=2, placeholder="…"))


def room(text: str) -> float:
    """Room above a panel with this title."""
    return 0.42 + 0.16 * title(text).count("\n")


def at_point(row: Row, point: PointOutcome) -> str:
    """Which of several points a panel shows."""
    name = wording.parameters(wording.differing(point, row.points)) if len(row.points) > 1 else ""
    return f" at {name}" if name else ""


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


def band(row: Row, limits: Limits, low: Any = -1.0, high: Any = 1.0) -> tuple[Any, Any]:
    """Where the interval of an agreeing claim lies: between `low` and `high`, one of them the frame for a bound."""
    if never_negative(row):
        return 0.0, high
    return (
        limits[0] if row.kind == Kind.AT_MOST else low,
        limits[1] if row.kind == Kind.AT_LEAST else high,
    )


def never_negative(row: Row) -> bool:
    """Whether what is judged is a share or a distance: the prediction is 0, and nothing lies below it."""
    return row.kind in (Kind.NEVER_BELOW, Kind.NEVER_ABOVE, Kind.DISTRIBUTION)


def _or(value: float, instead: float) -> float:
    return instead if math.isnan(value) else value
