r"""TopLines of a figure: its formula, or its sentence, then paper and equation with the verdict."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox

from verify.page.drawing import LEADING, TopLines, in_lines, width_of
from verify.page.formulas import split_before, typeset
from verify.page.theme import PALETTE

FORMULA, SMALLEST = 14.0, 11.0
"""Size of a formula, and the smallest that it shrinks to before the sentence replaces it."""

SENTENCE, SOURCE = 12.0, 10.0
"""Sizes of a sentence and of the line with paper and equation."""

LONGEST = 600
"""Letters of a formula, in LaTeX; a longer one fits into no figure."""

GAP = 5.0
"""Points between the lines of a heading."""

_ONE = r"(\\[A-Za-z]+|[A-Za-z0-9])"
_WRITTEN = (
    (r"\\([Bb]igg?)[lmr]?(?![A-Za-z])", ""),
    (r"\\[lr]?Vert(?![A-Za-z])", r"\\Vert "),
    (r"\\[lr]vert(?![A-Za-z])", "|"),
    (r"\\([lg])e(?![A-Za-z])", r"\\\1eq "),
    (r"\\[td]frac(?![A-Za-z])", r"\\frac"),
    (rf"\\frac\s*{_ONE}\s*{_ONE}", r"\\frac{\1}{\2}"),
    (rf"\\frac\s*{_ONE}\s*(?={{)", r"\\frac{\1}"),
    (rf"\\(sqrt|mathbf|mathcal)\s*{_ONE}", r"\\\1{\2}"),
    (r"\\(text|display)style(?![A-Za-z])", ""),
    (r"\\implies(?![A-Za-z])", r"\\Rightarrow "),
    (r"\\iff(?![A-Za-z])", r"\\Leftrightarrow "),
)
"""LaTeX that matplotlib cannot parse, as patterns, and their replacements."""


@lru_cache(maxsize=2048)
def mathtext(latex: str) -> str:
    r"""A formula as matplotlib reads it, between dollars; empty where it cannot.

    >>> mathtext(r"\frac1B \lVert H\rVert \ge \tfrac12")
    '$\\dfrac{1}{B} \\Vert  H\\Vert  \\geq  \\dfrac{1}{2}$'
    >>> mathtext(r"\begin{cases} 0 \end{cases}")
    ''
    """
    found: list[str] = []
    for pattern, reads in _WRITTEN:
        latex = re.sub(pattern, reads, latex)
    depth = 0
    for part in re.findall(r"\\[{}]|\\frac|[{}]|.", latex, re.DOTALL):
        depth += (part == "{") - (part == "}")
        found.append(
            r"\dfrac" if part == r"\frac" and depth == 0 else part
        )  # as large as in a displayed formula
    latex = "".join(found)
    try:
        _extent(text := f"${latex}$", FORMULA)
    except Exception:  # whatever a results file holds, its sentence is there
        return ""
    return text


def _extent(text: str, size: float) -> tuple[float, float]:
    """Width of a formula, and its height."""
    width, height, _ = text_to_path.get_text_width_height_descent(text, _font(size), ismath=True)
    return float(width), float(height)


@lru_cache(maxsize=256)  # the same row may be drawn in several widths
def _outline(text: str) -> tuple[Path, Bbox]:
    """A formula as a path of one size for all, and the box around it."""
    vertices, codes = text_to_path.get_text_path(_font(FORMULA), text, ismath=True)
    path = Path(vertices, codes)
    return path, path.get_extents()


def _font(size: float) -> FontProperties:
    return FontProperties(size=size, math_fontfamily="stix")


def formula_lines(latex: str, room: float) -> tuple[list[str], float]:
    """A formula in one or two lines of mathtext, broken at its quads, and their size; no lines if none fit."""
    if "$" in latex or len(latex) > LONGEST:
        return [], FORMULA
    pieces = [re.sub(r"^\\q?quad", "", piece) for piece in split_before(r"\\q?quad\b", latex)]
    pieces = [piece for piece in pieces if piece.strip()]
    for size, k in product((FORMULA, SMALLEST), range(len(pieces), 0, -1)):
        lines = [mathtext(r"\quad ".join(part)) for part in (pieces[:k], pieces[k:]) if part]
        if all(lines) and all(_extent(line, size)[0] <= room for line in lines):
            return lines, size
    return [], FORMULA


def top_lines(latex: str, sentence: str, source: str, verdict: str, width: float) -> TopLines:
    """A formula, or the sentence where it has none or is too long; paper and equation; the verdict."""
    formulas, size = formula_lines(latex, width) if latex else ([], FORMULA)
    said = [] if formulas else in_lines(typeset(sentence), width, SENTENCE)
    below = in_lines(typeset(source), width - width_of(verdict, SOURCE) - 14, SOURCE)
    heights = [_extent(line, size)[1] + GAP for line in formulas] + [SENTENCE * LEADING] * len(said)
    total = sum(heights) + GAP + SOURCE * LEADING * len(below) + GAP

    def draw(figure: Figure, x: float, top: float, room: float) -> None:
        def write(text: str, place: float, y: float, size: float, colour: str, **style: Any) -> None:
            at = {"transform": Affine2D().scale(1 / 72) + figure.dpi_scale_trans, "va": "top"}
            figure.text(
                place, y, text, fontsize=size, color=PALETTE.get(colour, PALETTE["ink"]), **at, **style
            )

        y = top
        for line, height in zip(formulas or said, heights, strict=True):
            if formulas:  # as a path: no reader's fonts have its signs
                path, box = _outline(line)
                unit = size / text_to_path.FONT_SCALE
                move = Affine2D().translate(-box.x0, -box.y1).scale(unit).translate(x, y).scale(1 / 72)
                figure.add_artist(
                    PathPatch(path, fc=PALETTE["ink"], lw=0, transform=move + figure.dpi_scale_trans)
                )
            else:
                write(line, x, y, SENTENCE, "ink")
            y -= height
        y -= GAP
        write(verdict, x + room, y, SOURCE, verdict[2:], ha="right")
        for line in below:
            write(line, x, y, SOURCE, "muted")
            y -= SOURCE * LEADING

    return TopLines(total, draw)
