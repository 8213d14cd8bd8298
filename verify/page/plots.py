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

import contextlib
import hashlib
import html
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from verify.escapes import escaped
from verify.files import replace_files
from verify.page import wording
from verify.page.drawing import TIP, Panel, stack
from verify.page.observed_panels import observed_panels
from verify.page.overview import draw_overview
from verify.page.panels import row_panels
from verify.page.theme import FONTS, STYLE
from verify.results import Observed, Results, Row

__all__ = [
    "FORMATS",
    "agreement",
    "draw_deviations",
    "observation",
    "overview",
    "save_all",
    "save_as",
    "save_figure",
    "stamp",
    "to_svg",
]

UNSEEN = 0.02
"""Points by which a line may miss a point that it is drawn without: a fortieth of the thinnest line."""

SHARED = (f"font-family:{FONTS}", "text-anchor:start")
"""What every text has, said once at the head of a figure or not at all."""

FORMATS = ("pdf", "svg", "png")
"""How a single figure can be written."""

LARGEST_PNG = 30_000.0
"""Pixels to a side, less than half of what matplotlib can draw: a longer figure gets coarser ones."""


def agreement(row: Row, stamp: str = "") -> Figure:
    """Prediction against measurement for one row, and how its hardest point was decided.

    Raises
    ------
    ValueError
        If the row has no points: a broken check measured nothing.
    """
    if not row.points:
        raise ValueError(f"row must have points, {row.id} has none")
    row = wording.legible(row)
    with mpl.rc_context(STYLE):
        return stack(row_panels(row), f"{row.id}: {row.verdict}", stamp)


def observation(made: Observed, stamp: str = "") -> Figure | None:
    """Predicted over measured, a line for each column of ratios; none where there is no such column or no table."""
    made = wording.legible(made)
    with mpl.rc_context(STYLE):
        panels = observed_panels(made)
        return stack(panels, f"{made.id}: predicted over measured", stamp) if panels else None


def overview(rows: Sequence[Row], stamp: str = "") -> Figure:
    """(measured - predicted)/margin of every point, one line per row, grouped by paper."""
    with mpl.rc_context(STYLE):
        height = 0.19 * max(len(rows), 1) + 0.19 * len({row.paper for row in rows})
        label = "Deviation of every measured point from its prediction, in margins"
        return stack(
            [Panel(height, lambda axes: draw_deviations(axes, rows), left=2.6, top=0.1)], label, stamp, 7.4
        )


def draw_deviations(axes: Axes, rows: Sequence[Row]) -> None:
    """The same in axes that are there."""
    # stable: the order within a paper stays
    draw_overview(axes, sorted(wording.legible(list(rows)), key=lambda row: row.paper))


def stamp(results: Results) -> str:
    """What a figure was drawn from: version, commit and seed."""
    commit = results.suite.host.get("commit", "")
    parts = ["losscurv " + results.suite.version, *([commit] if commit else []), f"seed {results.suite.seed}"]
    return escaped(" · ".join(parts))


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element that can stand in a page beside others: its ids are its own."""
    out = io.StringIO()
    with mpl.rc_context(STYLE), _any_glyph():
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    label, text = str(figure.get_label()), out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = (
        re.sub(r' (xmlns:xlink|version|width|height)="[^"]*"', "", text.partition(">")[0], count=4)
        + ">"
        + (text.partition(">")[2])
    )
    text = text.replace("xlink:href", "href").replace("'DejaVu Sans'", FONTS)
    text = _compact(text)
    own = "f" + hashlib.sha256((label + text).encode()).hexdigest()[:10]
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{own}-", text)
    opening = (
        f'<svg role="img" aria-label="{html.escape(label)}" stroke-linejoin="round" font-family="{FONTS}" '
    )
    return opening + text.removeprefix("<svg ").rstrip() + "\n"


def _compact(text: str) -> str:
    """Without indents, groups that hold nothing together, and digits below a hundredth of a point."""
    text = re.sub(rf'<g id="{TIP}([^"]*)">', r"<g><title>\1</title>", re.sub(r"\n\s+<", "<", text))
    text = re.sub(r'<g id="[^"]*"\s*/>', "", re.sub(r'<g id="[^"]*">', "<g>", text))
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)
    text = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: _rounded(found.group()), text)
    text = re.sub(
        r' style="([^"]*)"', lambda found: f' style="{_style(found[1])}"' if _style(found[1]) else "", text
    )
    # a mark has its stroke where it is defined; its fill, and how much shows through it, where it is used
    text = re.sub(r'(<use [^>]*style=")([^"]*)"', lambda found: f'{found[1]}{_fill(found[2])}"', text)
    text = text.replace(' style=""', "")
    return _flat(text)


def _rounded(numbers: str) -> str:
    """Numbers rounded to a hundredth, without what SVG lets one leave out, and lines without points on a line."""
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), numbers)
    short = re.sub(r" ?([MLCQz]) ?", r"\1", short.replace(" \n", "").replace("\n", "")).replace("-0 ", "0 ")
    return re.sub(r"M[-\d. ]+(?:L[-\d. ]+){3,}", lambda found: _thinned(found[0]), short)


def _thinned(path: str) -> str:
    """A line without the points that lie on it to the eye (Ramer, Douglas and Peucker)."""
    words = re.split("[ML]", path)[1:]
    points = np.array([[float(number) for number in word.split()] for word in words])
    kept, open_spans = {0, len(words) - 1}, [(0, len(words) - 1)]
    while open_spans:
        first, last = open_spans.pop()
        inner = points[first + 1 : last] - points[first]
        along = points[last] - points[first]
        length = float(np.hypot(*along))
        if not len(inner):
            continue
        if length:
            share = np.clip(inner @ along / length**2, 0.0, 1.0)
            inner = inner - share[:, None] * along
        off = np.hypot(inner[:, 0], inner[:, 1])
        far = int(off.argmax())
        if off[far] > UNSEEN:
            kept.add(first + 1 + far)
            open_spans += [(first, first + 1 + far), (first + 1 + far, last)]
    return "M" + "L".join(words[k] for k in sorted(kept))


def _style(style: str) -> str:
    """A style without spaces and what the figure says once for all of its texts and lines."""
    parts = (part.strip().replace(": ", ":") for part in style.split(";"))
    return ";".join(part for part in parts if part and part not in SHARED)


def _fill(style: str) -> str:
    """What a style says of the fill."""
    return ";".join(part for part in style.split(";") if part.startswith("fill"))


def _flat(text: str) -> str:
    """Without the groups that have neither an attribute nor a title; others keep theirs."""
    parts = re.split(r"(<g(?: [^>]*)?(?<!/)>|</g>)", text)
    kept: list[str] = []
    needed: list[bool] = []
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        if part == "</g>":
            kept.append(part * needed.pop())
        elif re.fullmatch(r"<g(?: [^>]*)?(?<!/)>", part):
            needed.append(part != "<g>" or after.startswith("<title>"))
            kept.append(part * needed[-1])
        else:
            kept.append(part)
    return "".join(kept)


def save_all(results: Results, folder: Path) -> list[Path]:
    """Write SVG and PNG of every row that measured something, of observations and of the overview.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    mark = stamp(results)
    # a space tells a row that is called like the overview from it; no name of a file has one
    ids = [item.id for item in (*results.rows, *results.observations)]
    names = wording.slugs(["overview", *(f"{name} " for name in ids)])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            path
            for row in results.rows
            if row.points
            for path in save_figure(agreement(row, mark), folder / names[f"{row.id} "])
        ]
        for made in results.observations:
            figure = observation(made, mark)
            written += save_figure(figure, folder / names[f"{made.id} "]) if figure else []
        if results.rows:
            written += save_figure(overview(results.rows, mark), folder / "overview")
        return written
    except OSError as error:
        raise ValueError(f"plots cannot be written to {folder}: {error.strerror or error}") from None


@contextlib.contextmanager
def _any_glyph() -> Iterator[None]:
    """No word about letters that the font of the layout lacks: a page takes them from another."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, both or none of them; returns their paths."""
    svg, png = (stem.with_name(stem.name + ending) for ending in (".svg", ".png"))
    replace_files({svg: _standing_svg(figure), png: _raster(figure)})
    return [svg, png]


def save_as(figure: Figure, path: Path, form: str) -> None:
    """Write a figure to one file, in one of `FORMATS`: the same figure gives the same bytes.

    Raises
    ------
    ValueError
        If the format is unknown, or the file cannot be written.
    """
    if form not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {form!r}")
    drawn = {"svg": _standing_svg, "png": _raster, "pdf": _printed}[form](figure)
    try:
        replace_files({path: drawn})
    except OSError as error:
        raise ValueError(f"figure cannot be written to {path}: {error.strerror or error}") from None


def _standing_svg(figure: Figure) -> str:
    """The figure with a size of its own, as a file has it."""
    width, height = figure.get_size_inches() * 96
    return to_svg(figure).replace("<svg ", f'<svg width="{width:.0f}" height="{height:.0f}" ', 1)


def _raster(figure: Figure) -> bytes:
    dpi = min(200.0, LARGEST_PNG / max(figure.get_size_inches()))
    return _saved(figure, format="png", dpi=dpi, metadata={"Software": None})


def _printed(figure: Figure) -> bytes:
    """A page of PDF with its fonts, as publishers ask for them."""
    return _saved(figure, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})


def _saved(figure: Figure, **options: Any) -> bytes:
    drawn = io.BytesIO()
    with mpl.rc_context({**STYLE, "pdf.fonttype": 42}), _any_glyph():
        figure.savefig(drawn, **options)
    return drawn.getvalue()
