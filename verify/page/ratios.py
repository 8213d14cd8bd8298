"""Ratios of an observation: which are how far from 1, and what stands for all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from verify.page import wording
from verify.results import Observed

OFF, FAR = 1.25, 2.0
"""Factors beyond which a ratio is marked once and twice."""


def ratio_columns(made: Observed) -> dict[str, list[float]]:
    """The means of each column of ratios, by its heading, one for each row."""
    rows = [row for group in made.groups for row in group.rows]
    return {
        column.heading: [row.cells[k].mean for row in rows]
        for k, column in enumerate(made.columns)
        if column.ratio and rows
    }


def off_by(ratio: float) -> float:
    """By what factor a ratio is off, either way.

    >>> off_by(0.5), off_by(3.0), off_by(-1.0)
    (2.0, 3.0, inf)
    """
    return max(ratio, 1 / ratio) if 1e-300 < ratio < math.inf else math.inf


def level(ratio: float) -> str:
    """Return the mark of a ratio: none, "off" or "far".

    >>> level(0.81), level(1.3), level(float("nan"))
    ('', 'off', 'far')
    """
    return "far" if off_by(ratio) > FAR else "off" if off_by(ratio) > OFF else ""


def mark(ratio: float) -> str:
    """Triangles up where theory is too large, down where too small: one if off, two if far.

    >>> mark(1.0), mark(1.3), mark(0.2)
    ('', '▲', '▼▼')
    """
    if math.isnan(ratio):
        return ""
    return ("▲" if ratio > 1 else "▼") * ("", "off", "far").index(level(ratio))


def median(values: Sequence[float]) -> float:
    """The median of those that are numbers; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def worst(values: Sequence[float]) -> float:
    """The ratio that is off by the largest factor; one that is no number is worse than any.

    >>> worst([0.4, 1.0, 2.0])
    0.4
    """
    return max(values, key=lambda value: (off_by(value), math.isnan(value)))


def middle_and_worst(values: Sequence[float], digits: int, *, plain: bool = False) -> str:
    """Where most ratios of a column lie, and the farthest from 1.

    >>> middle_and_worst([0.4, 1.0, 1.1], 2)
    'median 1, worst 0.4'
    """
    middle, far = (wording.numeral(of(values), digits, plain=plain) for of in (median, worst))
    return f"median {middle}, worst {far}"
