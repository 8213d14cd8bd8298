"""The panels of each kind of row, and of the overview."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from verify import wording
from verify.drawing import (
    CURVE_MARKS,
    DASHES,
    PALETTE,
    Floats,
    Panel,
    arrow,
    axis_of_parameter,
    colour_of,
    decades,
    deviation_axis,
    draw_letter,
    draw_mark,
    draw_measured,
    drawable,
    example_axis,
    finite,
    line_axis,
    logarithmic_axis,
    name_line,
    plain_ticks,
    remark,
    replicate_ticks,
    rivals_in_margins,
    shorten,
    tick_text,
)
from verify.results import Curve, PointOutcome, Row

__all__ = ["draw_overview", "row_panels"]

TITLE = 50
"""Longest line of a title."""

EN = "\u2002"
"""A space that SVG does not collapse."""

# Panels of one row.


def row_panels(row: Row) -> list[Panel]:
    """The panels of a row: its points in the form that suits its kind, and the looks at its hardest point."""
    if row.kind == "identity":
        panels = [_identity_panel(row)]
    elif row.kind == "exact property":
        panels = [_violation_panel(row)]
    elif row.kind == "property":
        panels = [_examples_panel(row)]
    elif row.curves:
        panels = [_curve_panel(row), _residual_panel(row)]
    else:
        panels = [_forest_panel(row)]
    return [*panels, *_looks_panel(row)]


def _curve_panel(row: Row) -> Panel:
    """Prediction with its margin, rivals, and the measured points."""
    names = list(dict.fromkeys(name for curve in row.curves for name in curve.rivals))
    letters = {name: _letter_of(k) for k, name in enumerate(names)}
    logarithmic = _needs_decades(_values(row))
    limits = _value_limits(row, logarithmic=logarithmic)

    def draw(axes: Axes) -> None:
        axis_of_parameter(axes, row)
        if logarithmic:
            axes.set_yscale("log")
            decades(axes.yaxis, *limits)
        else:
            plain_ticks(axes.yaxis)
        for curve in row.curves:
            x, y = np.array(curve.x), drawable(curve.predicted)
            half = row.margin * np.abs(y) if row.relative else np.full_like(y, row.margin)
            axes.fill_between(x, y - half, y + half, color=PALETTE["band"], linewidth=0)
            for name, values in curve.rivals.items():
                dashes = DASHES[names.index(name) % len(DASHES)]
                axes.plot(x, drawable(values), color=PALETTE["rival"], lw=1.1, dashes=dashes)
            axes.plot(x, y, color=PALETTE["theory"], lw=1.6)
        for name, place in _labelled_rivals(row, names, limits).items():
            draw_letter(axes, *place, letters[name])
        for point, place in _on_axis(row):
            if place is not None:
                mark = CURVE_MARKS[place % len(CURVE_MARKS)]
                draw_measured(
                    axes, point, x=float(point.parameters[row.curves[0].axis]), limits=limits, mark=mark
                )
        axes.set_ylim(*limits)
        axes.set_title(_title(row.quantity or "measured and predicted"))

    shown = _labelled_rivals(row, names, limits)
    key = [
        _letter_line(letters[name], name + ("" if name in shown else " (off the scale)")) for name in names
    ]
    return Panel(1.9, draw, notes="\n".join([_curve_key(row), *key]), top=_top(row.quantity))


def _labelled_rivals(
    row: Row, names: Sequence[str], limits: tuple[float, float]
) -> dict[str, tuple[float, float]]:
    """Where each rival's curve carries its letter: staggered, in the frame, away from the prediction."""
    places: dict[str, tuple[float, float]] = {}
    at = np.array([point.parameters[row.curves[0].axis] for point, _ in _on_axis(row)], dtype=float)
    for k, name in enumerate(names):
        best = 0.0
        for curve in row.curves:
            y = drawable(curve.rivals.get(name, []))
            for i in np.flatnonzero((y > limits[0]) & (y < limits[1])).tolist():
                distance = abs(y[i] - curve.predicted[i]) / (limits[1] - limits[0])
                # every rival has its own stretch of the axis, so that letters do not pile up
                home = 1.0 - abs(i / len(y) - (0.93 - 0.17 * (k % 5)))
                score = min(distance, 0.12) + home if math.isfinite(distance) else 0.0
                taken = np.abs(at - curve.x[i]).min(initial=np.inf) < 0.03 * (curve.x[-1] - curve.x[0])
                if score > best and not taken and 0.02 < i / len(y) < 0.98:
                    best, places[name] = score, (curve.x[i], float(y[i]))
    return places


def _residual_panel(row: Row) -> Panel:
    """The same points as deviations from the prediction, in margins: what the curve's scale hides."""

    def draw(axes: Axes) -> None:
        axis_of_parameter(axes, row)
        limit = deviation_axis(axes.yaxis, axes.set_ylim, axes.set_yscale, row.points)
        axes.axhspan(-1, limit if _one_sided(row) else 1, color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for point, place in _on_axis(row):
            mark = CURVE_MARKS[(place or 0) % len(CURVE_MARKS)]
            x = _dodged(axes, float(point.parameters[row.curves[0].axis]), place, len(row.curves))
            draw_measured(axes, _in_margins(point), x=x, limits=(-limit, limit), mark=mark)
        axes.set_title("Deviation in margins")

    return Panel(1.05, draw)


def _forest_panel(row: Row) -> Panel:
    """One line per point: its interval and its rivals, in margins."""
    points = row.points
    letters = _letters(row)

    def draw(axes: Axes) -> None:
        limit = deviation_axis(axes.xaxis, axes.set_xlim, axes.set_xscale, points, with_rivals=True)
        axes.axvspan(-1, limit if _one_sided(row) else 1, color=PALETTE["band"], linewidth=0)
        axes.axvline(0, color=PALETTE["theory"], lw=1.2)
        for place, point in enumerate(points):
            draw_measured(axes, _in_margins(point), y=-place, limits=(-limit, limit))
            rivals_in_margins(axes, point, -place, limit, letters)
            name_line(axes, point, row, -place)
        line_axis(axes, len(points))
        axes.set_xlabel("(measured − predicted) / margin")
        axes.set_title(_title(row.quantity or "Deviation in margins"))

    height = (0.54 if letters else 0.44) * len(points) + 0.1
    return Panel(height, draw, left=0.22, top=_top(row.quantity), notes=_letter_key(letters))


def _identity_panel(row: Row) -> Panel:
    """Relative difference of the two routes at each point, on a logarithmic axis, beside the tolerance."""
    letters = _letters(row)

    def draw(axes: Axes) -> None:
        low, high = logarithmic_axis(axes, row)
        for place, point in enumerate(row.points):
            value = point.measured
            clipped = min(max(value, low), high) if not math.isnan(value) else high
            axes.plot([low, clipped], [-place, -place], color=colour_of(point), lw=1.4, alpha=0.5)
            draw_mark(axes, clipped, -place, point)
            if value <= 0 or not math.isfinite(value):
                remark(axes, clipped, -place, wording.number(value, 3), left=value > 0)
            for rival in point.rivals:
                x = min(max(rival.value, low), high) if math.isfinite(rival.value) else high
                draw_letter(axes, x, -place, letters[rival.name])
            name_line(axes, point, row, -place)
        line_axis(axes, len(row.points))
        axes.set_xlabel("largest difference of the two routes, relative")
        axes.set_title(_title(row.quantity or "Two routes to one quantity"))

    return Panel(
        0.44 * len(row.points) + 0.1, draw, left=0.22, top=_top(row.quantity), notes=_letter_key(letters)
    )


def _violation_panel(row: Row) -> Panel:
    """Violation of a property at each example, sorted, on a logarithmic axis."""
    letters = _letters(row)

    def draw(axes: Axes) -> None:
        low, high = logarithmic_axis(axes, row, axis="y")
        for place, point in enumerate(sorted(row.points, key=lambda p: _order(p.measured))):
            value = point.measured
            y = min(max(value, low), high) if not math.isnan(value) else high
            axes.plot([place, place], [low, y], color=colour_of(point), lw=1.0, alpha=0.4)
            draw_mark(axes, place, y, point, size=4.0)
            for rival in point.rivals:
                level = min(max(rival.value, low), high) if math.isfinite(rival.value) else high
                draw_letter(axes, place, level, letters[rival.name])
        example_axis(axes, len(row.points))
        zeros = sum(point.measured <= 0 for point in row.points)
        axes.set_title(f"Violation: none at {zeros} of {len(row.points)} examples")

    return Panel(1.9, draw, notes=_letter_key(letters))


def _examples_panel(row: Row) -> Panel:
    """Deviation in margins at each example, sorted, with its interval."""

    def draw(axes: Axes) -> None:
        limit = deviation_axis(axes.yaxis, axes.set_ylim, axes.set_yscale, row.points)
        axes.axhspan(-1, 1, color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for place, point in enumerate(sorted(row.points, key=lambda p: _order(wording.deviation(p)))):
            draw_measured(axes, _in_margins(point), x=place, limits=(-limit, limit), size=4.0)
        example_axis(axes, len(row.points))
        axes.set_title(
            _title(row.quantity + ": deviation in margins" if row.quantity else "Deviation in margins")
        )

    return Panel(1.9, draw, top=_top(f"{row.quantity}: deviation in margins"))


def _looks_panel(row: Row) -> list[Panel]:
    """The interval over the looks, at the point that was hardest to decide."""
    point = wording.telling(row)
    if point is None or not point.looks:
        return []
    looks = [look for look in point.looks if math.isfinite(look.measured)]

    def draw(axes: Axes) -> None:
        n = np.array([look.replicates for look in looks], dtype=float)
        limits = _look_limits(point)
        lower, upper = (np.clip([getattr(k, side) for k in looks], *limits) for side in ("lower", "upper"))
        if np.isfinite(drawable([point.predicted, point.margin])).all():
            top = limits[1] if _one_sided(row) else point.predicted + point.margin
            axes.axhspan(point.predicted - point.margin, top, color=PALETTE["band"], linewidth=0)
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
        at = wording.parameters(wording.differing(point, row.points)) if len(row.points) > 1 else ""
        axes.set_title("The interval shrinking" + (shorten(f" at {at}", 30) if at else ""))

    return [Panel(1.25, draw)] if len(looks) > 1 else []


# The overview.


def draw_overview(axes: Axes, rows: Sequence[Row]) -> None:
    """Every point of every row, in margins, linear inside the band and logarithmic outside."""
    points = [point for row in rows for point in row.points]
    limit = _overview_limit(points)
    axes.set_xscale("symlog", linthresh=1.0, linscale=1.0)
    axes.axvspan(-1, 1, color=PALETTE["band"], linewidth=0)
    axes.axvline(0, color=PALETTE["theory"], lw=1.0)
    ticks: list[float] = []
    for place, row in _places(axes, rows):
        ticks.append(place)
        axes.axhline(place, color=PALETTE["rule"], lw=0.5, zorder=0.5)
        for point in row.points:
            value = wording.deviation(point)
            if not math.isnan(value):
                centre = min(max(value, -limit), limit)
                draw_mark(axes, centre, place, point, size=4.0, beyond=arrow(value, -limit, limit, "<>"))
        if not any(math.isfinite(wording.deviation(point)) for point in row.points):
            axes.text(
                0, place, row.verdict, ha="center", va="center", fontsize=7, color=PALETTE.get(row.verdict)
            )
    axes.set_yticks(ticks, [shorten(row.id.removeprefix(f"{row.paper}/"), 46) for row in rows], fontsize=7)
    axes.tick_params(left=False)
    outer = [10.0**k for k in range(0, math.ceil(math.log10(limit)), 1 + int(limit > 2e4))]
    axes.xaxis.set_major_locator(FixedLocator([-v for v in reversed(outer)] + [0.0] + outer))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(tick_text))
    axes.set_xlim(-limit * 1.3, limit * 1.3)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("(measured − predicted) / margin")


def _places(axes: Axes, rows: Sequence[Row]) -> Iterator[tuple[float, Row]]:
    """A height for each row, with the paper's name above its rows."""
    place, paper = 0.0, None
    for row in rows:
        if row.paper != paper:
            place, paper = place - 1.9, row.paper
            axes.annotate(
                row.paper, (0, place + 0.9), xycoords=("axes fraction", "data"), xytext=(-6, 0), fontsize=8,
                textcoords="offset points", ha="right", va="center", fontweight="bold", annotation_clip=False,
            )  # fmt: skip
        else:
            place -= 1.0
        yield place, row
    axes.set_ylim(place - 0.6, -0.4)


def _overview_limit(points: Sequence[PointOutcome]) -> float:
    values = np.abs(finite([wording.deviation(point) for point in points]))
    return float(min(max(values.max(initial=3.0) * 1.2, 3.0), 1e6))


# Small things.


def _one_sided(row: Row) -> bool:
    return row.kind == "lower bound on a mean"


def _in_margins(point: PointOutcome) -> PointOutcome:
    """The same outcome in units of its margin, the prediction at 0."""
    return PointOutcome(
        parameters=point.parameters,
        verdict=point.verdict,
        predicted=0.0,
        margin=1.0,
        measured=wording.deviation(point),
        lower=_or(wording.deviation(point, point.lower), -math.inf),
        upper=_or(wording.deviation(point, point.upper), math.inf),
    )


def _on_axis(row: Row) -> Iterator[tuple[PointOutcome, int | None]]:
    """Points with a place on the axis of the curves, each with the number of its curve, if it is drawn."""
    axis = row.curves[0].axis
    for point in row.points:
        if isinstance(point.parameters.get(axis), int | float):
            others = {k: v for k, v in point.parameters.items() if k != axis}
            yield point, next((k for k, curve in enumerate(row.curves) if _others(curve) == others), None)


def _dodged(axes: Axes, x: float, place: int | None, count: int) -> float:
    """Points of different curves at one parameter stand side by side."""
    by = 0.022 * ((count if place is None else place) - (count - 1) / 2)
    low, high = axes.get_xlim()
    return x * (high / low) ** by if axes.get_xscale() == "log" else x + by * (high - low)


def _others(curve: Curve) -> dict[str, Any]:
    return {k: v for k, v in curve.at.items() if k != curve.axis}


def _curve_key(row: Row) -> str:
    """Which mark belongs to which curve, where there are several."""
    lines = ["line and band: prediction and margin; marks: measured"]
    if len(row.curves) > 1:
        varying = {
            k
            for c in row.curves
            for k, v in _others(c).items()
            if any(_others(d).get(k) != v for d in row.curves)
        }
        names = (
            wording.parameters({k: v for k, v in _others(c).items() if k in varying}) for c in row.curves
        )
        lines += [f"{shape}{EN}{EN}{shorten(name, 64)}" for shape, name in zip("●■▲", names, strict=False)]
    hidden = sum(place is None for _, place in _on_axis(row))
    if hidden:
        lines.append(
            f"{hidden} more {'points' if hidden > 1 else 'point'}, at other settings: only in the panel below"
        )
    return "\n".join(lines)


def _letters(row: Row) -> dict[str, str]:
    names = dict.fromkeys(rival.name for point in row.points for rival in point.rivals)
    return {name: _letter_of(k) for k, name in enumerate(names)}


def _letter_of(k: int) -> str:
    return chr(ord("a") + k) if k < 26 else str(k)


def _letter_key(letters: dict[str, str]) -> str:
    return "\n".join(_letter_line(letter, name) for name, letter in letters.items())


def _letter_line(letter: str, name: str) -> str:
    return "\n".join(textwrap.wrap(f"{letter}{EN}{EN}rival: {name}", 72, subsequent_indent=5 * EN))


def _title(text: str) -> str:
    """A title of at most two lines."""
    return "\n".join(textwrap.wrap(text, TITLE, max_lines=2, placeholder="…"))


def _top(text: str) -> float:
    """Room above a panel with this title."""
    return 0.42 + 0.16 * _title(text).count("\n")


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _or(value: float, instead: float) -> float:
    return instead if math.isnan(value) else value


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _values(row: Row) -> Floats:
    return finite([v for curve in row.curves for v in curve.predicted], [p.measured for p in row.points])


def _needs_decades(values: Floats) -> bool:
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 60)


def _value_limits(row: Row, *, logarithmic: bool) -> tuple[float, float]:
    """Everything measured and predicted, and of the intervals and rivals what stays within reach of it."""
    core = _values(row)
    core = np.log(core[core > 0]) if logarithmic else core
    if not core.size:
        return (0.1, 10.0) if logarithmic else (-1.0, 1.0)
    low, high = float(core.min()), float(core.max())
    reach = 0.35 * (high - low) or 0.5 * abs(high) or 1.0
    extra = finite(
        [v for curve in row.curves for values in curve.rivals.values() for v in values],
        [side for p in row.points for side in (p.lower, p.upper)],
    )
    extra = np.log(extra[extra > 0]) if logarithmic else extra
    low, high = (
        min([low, *np.clip(extra, low - reach, high + reach)]),
        max([high, *np.clip(extra, low - reach, high + reach)]),
    )
    pad = 0.06 * (high - low) or reach
    ends = (low - pad, high + pad)
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def _look_limits(point: PointOutcome) -> tuple[float, float]:
    """Margin band, measured value and the later intervals: the first may be very wide, or have no end."""
    last = [look for look in point.looks if math.isfinite(look.lower + look.upper)]
    late = last[len(last) // 3 :]
    band = [point.predicted - point.margin, point.predicted + point.margin]
    values = finite(band, [side for look in late for side in (look.lower, look.upper)], [point.measured])
    if not values.size:
        return -1.0, 1.0
    low, high = float(values.min()), float(values.max())
    pad = 0.12 * (high - low) or 0.5 * abs(high) or 1.0
    return low - pad, high + pad
