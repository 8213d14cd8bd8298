"""Figures drawn from the records alone: the same results give the same bytes.

| function | shows |
|---|---|
| `agreement` | one row: prediction, margin, measured intervals, rivals; below, the interval over the looks |
| `observation` | ratios of theory to measurement on real networks, a panel for each point |
| `overview` | (measured - predicted)/margin of every point of every row |

Text stays text in the SVG, so that a page shows it in its own font; all of it is laid out for DejaVu Sans,
which is wider than the fonts that replace it.
"""

from __future__ import annotations

import hashlib
import html
import io
import math
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from verify.escapes import escaped
from verify.files import replace_files
from verify.page import wording
from verify.page.axes import tick_text
from verify.page.drawing import (
    EDGE,
    TIP,
    WIDTH,
    Panel,
    any_glyph,
    arrow,
    draw_mark,
    finite_values,
    shorten,
    stack,
)
from verify.page.heading import heading, sentence_heading
from verify.page.observed_panels import observed_panels, panels_beside
from verify.page.panels import row_panels
from verify.page.theme import FONTS, PALETTE, STYLE
from verify.results import Observed, Results, Row

NAME = 46
"""Longest name of a row."""

MODEL_BASED = " (model-based)"

SHARED = (f"font-family:{FONTS}", "text-anchor:start")
"""Styles that all texts share, set once at the head of a figure or left out."""

PANELS = ("main", "all")
"""Panels of the figure of a claim."""

FORMATS = ("pdf", "svg", "png")
"""Formats of a single figure."""

LARGEST_PNG = 30_000.0
"""Pixels to a side, less than half of what matplotlib can draw: a longer figure gets coarser ones."""


def agreement(row: Row, stamp: str = "", panels: str = "main", width: float | None = None) -> Figure:
    """One row as one landscape figure that is understood by itself.

    Its heading is the formula, or the sentence where the formula is too long, with paper, equation and verdict. Below,
    theory is a line in its margin, what was measured are dots, or squares on networks, and rivals are dashed.

    Parameters
    ----------
    panels
        "main", or "all" for the deviations in margins as well.
    width
        Inches, 6 to 30; about 7 if None.

    Raises
    ------
    ValueError
        If the row has no points: a broken check measured nothing; if an argument cannot be used.
    """
    if not row.points:
        raise ValueError(f"row must have points, {row.id} has none")
    if panels not in PANELS:
        raise ValueError(f"panels must be {' or '.join(PANELS)}, got {panels!r}")
    points = require_width(width)
    row = wording.legible(row)
    with mpl.rc_context(STYLE):
        shown = row_panels(row, points)[: 1 if panels == "main" else None]
        return stack(shown, f"{row.id}: {row.verdict}", stamp, points, heading(row, points - 2 * EDGE))


def require_width(width: float | None) -> float:
    """Points of a figure of so many inches."""
    if width is None:
        return WIDTH
    if not 6 <= width <= 30:
        raise ValueError(f"width must be 6 to 30 inches, got {width:g}")
    return 72 * width


def observation(made: Observed, stamp: str = "") -> Figure | None:
    """Predicted over measured, a line for each column of ratios; none where there is no such column or no table."""
    made = wording.legible(made)
    with mpl.rc_context(STYLE):
        panels = observed_panels(made)
        if not panels:
            return None
        top = sentence_heading(made.title, made.source, WIDTH - 2 * EDGE)
        return stack(
            panels, f"{made.id}: predicted over measured", stamp, heading=top, columns=panels_beside(len(panels))
        )  # fmt: skip


def overview(rows: Sequence[Row], stamp: str = "") -> Figure:
    """(measured - predicted)/margin of every point, one line per row, grouped by paper."""
    with mpl.rc_context(STYLE):
        height = 13.7 * (max(len(rows), 1) + len({row.paper for row in rows}))
        panel = Panel(height, lambda axes: draw_deviations(axes, rows), left=187, above=7, below=36)
        return stack([panel], "Deviation of every measured point from its prediction, in margins", stamp)


def draw_deviations(axes: Axes, rows: Sequence[Row]) -> None:
    """Every point of every row, in margins, linear inside the band and logarithmic outside; papers by name."""
    rows = sorted(
        wording.legible(list(rows)), key=lambda row: row.paper
    )  # stable: the order within a paper stays
    values = finite_values([wording.deviation(point) for row in rows for point in row.points])
    limit = float(min(max(np.abs(values).max(initial=3.0) * 1.2, 3.0), 1e6))
    axes.set_xscale("symlog", linthresh=1.0, linscale=1.0)
    axes.set_xlim(-limit * 1.3, limit * 1.3)  # first: limits that are open are found anew with every line
    axes.axvspan(-1, 1, color=PALETTE["band"], linewidth=0)
    axes.axvline(0, color=PALETTE["theory"], lw=1.0)
    place, ticks = 0.0, list[float]()
    for paper, own in groupby(rows, lambda row: row.paper):
        axes.annotate(
            paper, (0, place - 1.0), xycoords=("axes fraction", "data"), xytext=(-6, 0), fontsize=8,
            textcoords="offset points", ha="right", va="center", fontweight="bold", annotation_clip=False,
        )  # fmt: skip
        place -= 0.9
        for row in own:
            place -= 1.0
            ticks.append(place)
            axes.axhline(place, color=PALETTE["rule"], lw=0.5, zorder=0.5)
            _draw_row(axes, row, place, limit)
    axes.set_ylim(place - 0.6, -0.4)
    axes.set_yticks(ticks, [_name(row) for row in rows], fontsize=7)
    axes.tick_params(left=False)
    outer = [10.0**k for k in range(0, math.ceil(math.log10(limit)), 1 + int(limit > 2e4))]
    axes.xaxis.set_major_locator(FixedLocator([-v for v in reversed(outer)] + [0.0] + outer))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(tick_text))
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("(measured − predicted) / margin")


def _draw_row(axes: Axes, row: Row, place: float, limit: float) -> None:
    """Its points, those that follow one another with one mark together; its verdict in words where none has a place."""
    marks = [
        (value, point, arrow(value, -limit, limit, "<>"))
        for point in row.points
        if not math.isnan(value := wording.deviation(point))
    ]
    for (_, beyond), alike in groupby(marks, lambda mark: (mark[1].verdict, mark[2])):
        run = list(alike)
        centres = [min(max(value, -limit), limit) for value, *_ in run]
        draw_mark(axes, centres, place, run[0][1], size=4.0, beyond=beyond)
    if not any(math.isfinite(value) for value, *_ in marks):
        axes.text(0, place, row.verdict, ha="center", va="center", fontsize=7, color=PALETTE.get(row.verdict))


def _name(row: Row) -> str:
    more = MODEL_BASED * row.model_based
    return shorten(row.id.removeprefix(f"{row.paper}/"), NAME - len(more)) + more


def stamp(results: Results) -> str:
    """Source of a figure: version, commit and seed."""
    commit = results.suite.host.get("commit", "")
    parts = ["losscurv " + results.suite.version, *([commit] if commit else []), f"seed {results.suite.seed}"]
    return escaped(" · ".join(parts))


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element that can stand in a page beside others: its ids are its own."""
    out = io.StringIO()
    with mpl.rc_context(STYLE), any_glyph():
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    label, text = html.escape(str(figure.get_label())), out.getvalue()
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text[text.index("<svg") :], flags=re.DOTALL)
    head, _, body = text.partition(">")
    head = re.sub(r' (xmlns:xlink|version|width|height)="[^"]*"', "", head)
    text = _compact(f"{head}>{body}".replace("xlink:href", "href").replace("'DejaVu Sans'", FONTS))
    own = "f" + hashlib.sha256((label + text).encode()).hexdigest()[:10]
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{own}-", text).removeprefix("<svg ").rstrip()
    return f'<svg role="img" aria-label="{label}" stroke-linejoin="round" font-family="{FONTS}" {text}\n'


def _compact(text: str) -> str:
    """Without indents, names of groups, digits below a hundredth of a point and styles that are said twice."""
    text = re.sub(rf'<g id="{TIP}([^"]*)">', r"<g><title>\1</title>", re.sub(r"\n\s+<", "<", text))
    text = re.sub(r'<g id="[^"]*"\s*/>', "", re.sub(r'<g id="[^"]*">', "<g>", text))
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)
    text = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: _rounded(found.group()), text)
    text = re.sub(r' style="([^"]*)"', lambda found: f' style="{_style(found[1])}"', text)
    # a mark has its stroke where it is defined; its fill, and how much shows through it, where it is used
    text = re.sub(
        r'(<use [^>]*style=")([^"]*)"', lambda found: f'{found[1]}{_style(found[2], "fill")}"', text
    )
    return text.replace(' style=""', "")


def _rounded(numbers: str) -> str:
    """Numbers rounded to a hundredth, without what SVG lets one leave out."""
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return re.sub(r" ?([MLCQz]) ?", r"\1", short.replace(" \n", "").replace("\n", "")).replace("-0 ", "0 ")


def _style(style: str, start: str = "") -> str:
    """Return the parts of a style that begin with `start`, without spaces and what the figure sets for all texts."""
    parts = (part.strip().replace(": ", ":") for part in style.split(";"))
    return ";".join(part for part in parts if part and part not in SHARED and part.startswith(start))


def save_all(results: Results, folder: Path) -> list[Path]:
    """Write SVG and PNG of every row that measured something, of observations and of the overview.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    mark = stamp(results)
    figures = {row.id: agreement(row, mark) for row in results.rows if row.points}
    figures |= {made.id: figure for made in results.observations if (figure := observation(made, mark))}
    # a space tells a row that is called like the overview from it; no name of a file has one
    names = wording.slugs(["overview", *(f"{name} " for name in figures)])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            path for name, made in figures.items() for path in save_figure(made, folder / names[f"{name} "])
        ]
        return written + (
            save_figure(overview(results.rows, mark), folder / "overview") if results.rows else []
        )
    except OSError as error:
        raise ValueError(f"plots cannot be written to {folder}: {error.strerror or error}") from None


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, both or none of them; returns their paths."""
    files = {stem.with_name(f"{stem.name}.{form}"): _render(figure, form) for form in ("svg", "png")}
    replace_files(files)
    return list(files)


def save_as(figure: Figure, path: Path, form: str) -> None:
    """Write a figure to one file, in one of `FORMATS`: the same figure gives the same bytes.

    Raises
    ------
    ValueError
        If the format is unknown, or the file cannot be written.
    """
    if form not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {form!r}")
    try:
        replace_files({path: _render(figure, form)})
    except OSError as error:
        raise ValueError(f"figure cannot be written to {path}: {error.strerror or error}") from None


def _render(figure: Figure, form: str) -> str | bytes:
    """Return the figure as a file: SVG with its size, PNG, or a page of PDF with its fonts."""
    width, height = figure.get_size_inches()
    if form == "svg":
        return to_svg(figure).replace(
            "<svg ", f'<svg width="{96 * width:.0f}" height="{96 * height:.0f}" ', 1
        )
    options: dict[str, Any] = {
        "png": {"dpi": min(200.0, LARGEST_PNG / max(width, height)), "metadata": {"Software": None}},
        "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    }[form]
    drawn = io.BytesIO()
    with mpl.rc_context({**STYLE, "pdf.fonttype": 42}), any_glyph():
        figure.savefig(drawn, format=form, **options)
    return drawn.getvalue()
