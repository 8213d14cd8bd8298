"""Figures drawn from the records alone: the same results give the same bytes.

| function | shows |
|---|---|
| `agreement` | one row: prediction, margin, measured intervals, rivals |
| `observation` | ratios of theory to measurement on real networks, a panel for each point |

Text stays text in the SVG, so that a page shows it in its own font; all of it is laid out for DejaVu Sans,
which is wider than the fonts that replace it.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from simulate._checks import one_of
from verify.escapes import escaped
from verify.files import replace_files, writing
from verify.page import wording
from verify.page.drawing import EDGE, TIP, WIDTH, any_glyph, stack
from verify.page.heading import top_lines
from verify.page.observed_panels import observed_panels, panels_beside
from verify.page.panels import row_panels
from verify.page.theme import FONTS, STYLE
from verify.page.vocabulary import SYMBOLS
from verify.results import Observed, Results, Row

SHARED = (f"font-family:{FONTS}", "text-anchor:start")
"""Styles that all texts share, set once at the head of a figure or left out."""

PANELS = ("main", "all")
"""Panels of the figure of a claim."""

FORMATS = ("pdf", "svg", "png")
"""Formats of a single figure."""

LARGEST_PNG = 30_000.0
"""Pixels to a side, less than half of what matplotlib can draw: a longer figure gets coarser ones."""


def agreement(
    row: Row, stamp: str = "", panels: str = "main", width: float | None = None, *, heading: bool = True
) -> Figure:
    """One row as one landscape figure that is understood by itself.

    Its heading is the formula, or the sentence where the formula is too long, with paper, equation and verdict. Below,
    theory is a line in its margin, what was measured are dots, or squares on networks, and rivals are dashed.

    Parameters
    ----------
    panels
        "main", or "all" for the deviations in margins as well.
    width
        Inches, 6 to 30; about 7 if None.
    heading
        False where the page around the figure has the formula, its source and the verdict.

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
        shown = row_panels(row, points, main=panels == "main")
        source = ("as our copy reads: " if "copy" in row.reading else "") + row.source
        verdict = f"{SYMBOLS.get(row.verdict, SYMBOLS['broken'])} {row.verdict}"
        top = None
        if heading:
            top = top_lines(row.statement, row.says or row.id, source, verdict, points - 2 * EDGE)
        return stack(shown, f"{row.id}: {row.verdict}", stamp, points, top)


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
        top = top_lines("", made.title, made.source, "", WIDTH - 2 * EDGE)
        return stack(
            panels, f"{made.id}: predicted over measured", stamp, heading=top, columns=panels_beside(len(panels))
        )  # fmt: skip


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
    """Without comments, indents, names of groups, digits below a hundredth of a point and repeated styles."""
    text = re.sub(r"<!--.*?-->\s*|\n\s+(?=<)", "", text)
    text = re.sub(rf'<g id="{TIP}([^"]*)">', r"<g><title>\1</title>", text)
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


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, both or none of them; returns their paths."""
    files = {stem.with_name(f"{stem.name}.{form}"): _render(figure, form) for form in ("svg", "png")}
    replace_files(files)
    return list(files)


def format_of(path: Path) -> str:
    """Return the one of `FORMATS` that a name ends in.

    Raises
    ------
    ValueError
        If it ends otherwise.
    """
    form = path.suffix.removeprefix(".").lower()
    one_of("format", form, FORMATS)
    return form


def save_as(figure: Figure, path: Path) -> None:
    """Write a figure to one file, in the format of its name: the same figure gives the same bytes.

    Raises
    ------
    ValueError
        As `format_of`, or if the file cannot be written.
    """
    form = format_of(path)
    with writing("figure", path):
        replace_files({path: _render(figure, form)})


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
