"""Figures drawn from the records alone: the same results give the same bytes.

| function | shows |
|---|---|
| `agreement` | one row: prediction, margin, measured intervals, rivals; below, the interval over the looks |
| `overview` | (measured - predicted)/margin of every point of every row |
| `seconds_chart` | where the time of a run went |

Text stays text in the SVG, so that a page shows it in its own font; all of it is laid out for DejaVu Sans,
which is wider than the fonts that replace it.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from verify import wording
from verify.drawing import FONTS, PALETTE, STYLE, Panel, stack
from verify.panels import draw_overview, row_panels
from verify.results import Results, Row

__all__ = ["PALETTE", "agreement", "overview", "save_all", "seconds_chart", "stamp", "to_svg"]


def agreement(row: Row, stamp: str = "") -> Figure:
    """Prediction against measurement for one row, and how its hardest point was decided.

    Raises
    ------
    ValueError
        If the row has no points: a broken check measured nothing.
    """
    if not row.points:
        raise ValueError(f"row must have points, {row.id} has none")
    with mpl.rc_context(STYLE):
        return stack(row_panels(row), f"{row.id}: {row.verdict}", stamp)


def overview(rows: Sequence[Row], stamp: str = "") -> Figure:
    """(measured - predicted)/margin of every point, one line per row, grouped by paper."""
    rows = sorted(rows, key=lambda row: row.paper)  # stable: the order within a paper stays
    with mpl.rc_context(STYLE):
        height = 0.19 * max(len(rows), 1) + 0.19 * len({row.paper for row in rows})
        label = "Deviation of every measured point from its prediction, in margins"
        return stack(
            [Panel(height, lambda axes: draw_overview(axes, rows), left=2.6, top=0.1)], label, stamp, 7.4
        )


def seconds_chart(results: Results) -> Figure:
    """Seconds per experiment, all of its points together."""
    seconds: dict[str, float] = {}
    for run in results.runs:
        seconds[run.experiment] = seconds.get(run.experiment, 0.0) + run.seconds
    ordered = sorted(seconds.items(), key=lambda item: (item[1], item[0]))

    def draw(axes: Axes) -> None:
        axes.barh(
            range(len(ordered)), [s for _, s in ordered], height=0.62, color=PALETTE["theory"], alpha=0.8
        )
        axes.set_ylim(-0.7, len(ordered) - 0.3)
        axes.set_yticks(
            range(len(ordered)), [name if len(name) <= 44 else name[:43] + "…" for name, _ in ordered]
        )
        axes.tick_params(left=False)
        axes.set_xlim(0, 1.16 * max((s for _, s in ordered), default=1.0) or 1.0)
        axes.grid(axis="x")
        axes.set_xlabel("seconds")
        for place, (_, value) in enumerate(ordered):
            axes.annotate(
                f"{value:.3g}",
                (value, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )

    with mpl.rc_context(STYLE):
        panel = Panel(0.22 * max(len(ordered), 1) + 0.1, draw, left=2.95, top=0.15)
        return stack([panel], "Seconds per experiment", stamp(results), 7.4)


def stamp(results: Results) -> str:
    """What a figure was drawn from: version, commit and seed."""
    commit = results.suite.host.get("commit", "")
    return " · ".join(
        ["losscurv " + results.suite.version, *([commit] if commit else []), f"seed {results.suite.seed}"]
    )


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element that can stand in a page beside others: its ids are its own."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = (
        re.sub(r' (xmlns:xlink|version|width|height)="[^"]*"', "", text.partition(">")[0], count=4)
        + ">"
        + (text.partition(">")[2])
    )
    text = text.replace("xlink:href", "href").replace("'DejaVu Sans'", FONTS)
    own = "f" + hashlib.sha256((str(figure.get_label()) + text).encode()).hexdigest()[:10]
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{own}-", text)
    opening = f'<svg role="img" aria-label="{html.escape(str(figure.get_label()))}" stroke-linejoin="round" '
    return opening + text.removeprefix("<svg ").rstrip() + "\n"


def save_all(results: Results, folder: Path) -> list[Path]:
    """Write SVG and PNG of every row that measured something, of the overview and of the seconds.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    mark = stamp(results)
    names = wording.slugs(row.id for row in results.rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            path
            for row in results.rows
            if row.points
            for path in _save(agreement(row, mark), folder / names[row.id])
        ]
        if results.rows:
            written += _save(overview(results.rows, mark), folder / "overview")
        return written + (_save(seconds_chart(results), folder / "seconds") if results.runs else [])
    except OSError as error:
        raise ValueError(f"plots cannot be written to {folder}: {error.strerror or error}") from None


def _save(figure: Figure, stem: Path) -> list[Path]:
    svg, png = (stem.with_name(stem.name + ending) for ending in (".svg", ".png"))
    width, height = figure.get_size_inches() * 96
    text = to_svg(figure).replace("<svg ", f'<svg width="{width:.0f}" height="{height:.0f}" ', 1)
    svg.write_text(text, encoding="utf-8")
    with mpl.rc_context(STYLE):
        figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
    return [svg, png]
