"""The panels of each kind of row."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from verify.model import SPANS_SIZES, Kind
from verify.page import wording
from verify.page.axes import (
    deviation_axis,
    example_axis,
    line_axis,
    logarithmic_axis,
    plain_ticks,
    replicate_ticks,
    row_bands,
    where_logarithmic,
)
from verify.page.curve_panels import curve_panel, residual_panel
from verify.page.distribution_panels import distribution_panels
from verify.page.drawing import (
    Limits,
    Panel,
    colour_of,
    draw_mark,
    draw_measured,
    drawable,
    finite_values,
    name_line,
    remark,
    tip,
)
from verify.page.panel_parts import (
    PARTS,
    agreement_band,
    at_point,
    in_margins,
    letter_key,
    letters,
    never_negative,
    points_named,
    room,
    title,
)
from verify.page.rival_labels import draw_letters, rivals_in_margins
from verify.page.size_panels import size_panels
from verify.page.theme import PALETTE
from verify.results import PointOutcome, Row

__all__ = ["row_panels"]


def row_panels(row: Row) -> list[Panel]:
    """The panels of a row: its points in the form that suits its kind, and the looks at its hardest point."""
    if row.kind == "identity":
        panels = [_identity_panel(row)]
    elif row.kind == "exact property":
        panels = [_violation_panel(row)]
    elif row.kind == "property":
        panels = [_examples_panel(row)]
    elif row.curves:
        panels = [curve_panel(row), residual_panel(row)]
    else:
        above = _profile_panels(row)
        panels = [*above, _forest_panel(row, drawn=bool(above))]
    return [*panels, *_looks_panel(row)]


def _profile_panels(row: Row) -> list[Panel]:
    """What the estimand was made of, at the point that the verdict hangs on."""
    point = wording.telling(row)
    if point is None:
        return []
    if row.kind == Kind.DISTRIBUTION:
        return distribution_panels(row, point)
    return size_panels(row, point) if row.kind in SPANS_SIZES else []


def _forest_panel(row: Row, *, drawn: bool) -> Panel:
    """One line per point: its interval and its rivals, in margins; `drawn` tells that panels above name them."""
    points, names, called = row.points, _placed(row), points_named(row)
    heading = title("" if drawn else row.quantity) or "Deviation in margins"

    def draw(axes: Axes) -> None:
        limits = deviation_axis(axes, "x", points, with_rivals=True, from_zero=never_negative(row))
        line_axis(axes, len(points))
        low, high = agreement_band(row, limits)
        row_bands(axes, [(low, high, 0.0)] * len(points), named=len(points) > 1)
        for place, point in enumerate(points):
            draw_measured(axes, in_margins(point), y=-place, limits=limits, said=tip(point))
            if names:
                rivals_in_margins(axes, point, -place, limits, names)
            name_line(axes, point, called[place], -place)
        axes.set_xlabel(f"{wording.terms(row).deviation} / margin{where_logarithmic(axes, 'x')}")
        axes.set_title(heading)

    height = _pitch(0.54 if names else 0.44, called) * len(points) + 0.1
    return Panel(height, draw, left=0.22, top=room(heading), notes=_forest_notes(row, names))


def _pitch(least: float, names: Sequence[str]) -> float:
    """Inches from one line to the next, which names of more than one line move apart."""
    return least + 0.16 * max(name.count("\n") for name in names)


def _placed(row: Row) -> dict[str, str]:
    """Letters of rivals that have a place on the axis: the distance of two laws from a third says nothing of theirs."""
    return {} if row.kind == Kind.DISTRIBUTION else letters(row)


def _forest_notes(row: Row, names: dict[str, str]) -> str:
    parts = [PARTS] if any(point.size_model > 0 for point in row.points) else []
    return "\n".join([*parts, *_violation_lines(row), letter_key(names)]).strip()


def _violation_lines(row: Row) -> list[str]:
    """The first replicates that violate a bound on every one, at the point shown first where any does."""
    point = next((point for point in row.points if point.violations), None)
    if point is None:
        return []
    found = wording.listed_violations(point)
    return textwrap.wrap(f"violated{at_point(row, point)} first by replicate {found}", 72)


def _identity_panel(row: Row) -> Panel:
    """Relative difference of the two routes at each point, on a logarithmic axis, beside the tolerance."""
    names, called = letters(row), points_named(row)

    def draw(axes: Axes) -> None:
        line_axis(axes, len(row.points))
        low, high = logarithmic_axis(axes, row)
        ends = [point.margin if 0 < point.margin < high else low for point in row.points]
        row_bands(axes, [(low, end, end) for end in ends], named=len(row.points) > 1)
        for place, point in enumerate(row.points):
            value = point.measured
            clipped = min(max(value, low), high) if not math.isnan(value) else high
            axes.plot([low, clipped], [-place, -place], color=colour_of(point), lw=1.4, alpha=0.5)
            draw_mark(axes, clipped, -place, point, said=_difference(point))
            if value <= 0 or not math.isfinite(value):
                remark(axes, clipped, -place, wording.numeral(value, 3), left=value > 0)
            rivals = [(_clipped(r.value, low, high), -place, names[r.name]) for r in point.rivals]
            draw_letters(axes, rivals, "x", clear=clipped)
            name_line(axes, point, called[place], -place)
        axes.set_xlabel("largest difference of the two routes, relative")
        axes.set_title(title(row.quantity or "Two routes to one quantity"))

    height = _pitch(0.44, called) * len(row.points) + 0.1
    return Panel(height, draw, left=0.22, top=room(row.quantity), notes=letter_key(names))


def _clipped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high) if math.isfinite(value) else high


def _difference(point: PointOutcome) -> str:
    """What the cursor finds at a difference, or at a violation."""
    return f"measured {wording.numeral(point.measured, 3)}, tolerance {wording.numeral(point.margin, 3)}"


def _violation_panel(row: Row) -> Panel:
    """Violation of a property at each example, sorted, on a logarithmic axis."""
    names, heading = letters(row), _violations(row)

    def draw(axes: Axes) -> None:
        low, high = logarithmic_axis(axes, row, axis="y")
        example_axis(axes, len(row.points))
        for place, point in enumerate(sorted(row.points, key=lambda p: _order(p.measured))):
            value = point.measured
            y = min(max(value, low), high) if not math.isnan(value) else high
            axes.plot([place, place], [low, y], color=colour_of(point), lw=1.0, alpha=0.4)
            draw_mark(axes, place, y, point, size=4.0, said=_difference(point))
            rivals = [(place, _clipped(r.value, low, high), names[r.name]) for r in point.rivals]
            draw_letters(axes, rivals, "y", clear=y)
        axes.set_title(heading)

    return Panel(1.9, draw, bottom=0.56, top=room(heading), notes=letter_key(names))


def _violations(row: Row) -> str:
    """How many examples break a property; what lies within its tolerance is rounding, and breaks nothing."""
    broken = sum(not point.measured <= point.margin for point in row.points)
    return f"Beyond the tolerance: {broken or 'none'} of {len(row.points)} examples"


def _examples_panel(row: Row) -> Panel:
    """Deviation in margins at each example, sorted, with its interval."""

    def draw(axes: Axes) -> None:
        limits = deviation_axis(axes, "y", row.points)
        axes.axhspan(-1, 1, color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for place, point in enumerate(sorted(row.points, key=lambda p: _order(wording.deviation(p)))):
            draw_measured(axes, in_margins(point), x=place, limits=limits, size=4.0, said=tip(point))
        example_axis(axes, len(row.points))
        axes.set_title(
            title(row.quantity + ": deviation in margins" if row.quantity else "Deviation in margins")
            + where_logarithmic(axes, "y")
        )

    return Panel(1.9, draw, top=room(f"{row.quantity}: deviation in margins"))


def _looks_panel(row: Row) -> list[Panel]:
    """The interval over the looks, at the point that was hardest to decide."""
    point = wording.telling(row)
    if point is None or not point.looks:
        return []
    looks = [look for look in point.looks if math.isfinite(look.measured)]
    heading = title("The interval shrinking" + at_point(row, point))

    def draw(axes: Axes) -> None:
        n = np.array([look.replicates for look in looks], dtype=float)
        limits = _look_limits(row, point)
        lower, upper = (np.clip([getattr(k, side) for k in looks], *limits) for side in ("lower", "upper"))
        if np.isfinite(drawable([point.predicted, point.margin])).all():
            sides = point.predicted - point.margin, point.predicted + point.margin
            axes.axhspan(*agreement_band(row, limits, *sides), color=PALETTE["band"], linewidth=0)
            axes.axhline(point.predicted, color=PALETTE["theory"], lw=1.4)
        colour = colour_of(point)
        axes.fill_between(n, lower, upper, color=colour, alpha=0.16, linewidth=0)
        for edge in (lower, upper):  # where the frame cuts the interval off there is no limit to draw
            axes.plot(
                n, np.where((edge > limits[0]) & (edge < limits[1]), edge, np.nan), color=colour, lw=0.9
            )
        axes.plot(n, [look.measured for look in looks], color=colour, lw=1.3, marker=".", ms=4)
        axes.set_xscale("log")
        replicate_ticks(axes, n)
        axes.set_ylim(*limits)
        plain_ticks(axes.yaxis)
        axes.grid(axis="y")
        axes.set_xlabel("replicates")
        axes.set_title(heading)

    return [Panel(1.25, draw, top=room(heading))] if len(looks) > 1 else []


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _look_limits(row: Row, point: PointOutcome) -> Limits:
    """Margin band, measured value and the later intervals: the first may be very wide, or have no end."""
    last = [look for look in point.looks if math.isfinite(look.lower + look.upper)]
    late = last[len(last) // 3 :]
    sides = [point.predicted - point.margin, point.predicted + point.margin]
    values = finite_values(
        sides, [side for look in late for side in (look.lower, look.upper)], [point.measured]
    )
    if not values.size:
        return -1.0, 1.0
    low, high = float(values.min()), float(values.max())
    low = max(low, 0.0) if never_negative(row) else low
    pad = 0.12 * (high - low) or 0.5 * abs(high) or 1.0
    return low - pad, high + pad
