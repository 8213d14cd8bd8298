r"""TopLines of a figure: its formula, or its sentence, then paper and equation with the verdict."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from verify.page.drawing import LEADING, TopLines, in_lines, width_of
from verify.page.formulas import split_before, typeset
from verify.page.theme import PALETTE
from verify.page.vocabulary import SYMBOLS
from verify.results import Row

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
    (rf"(\\frac\s*{{[^{{}}]*}})\s*{_ONE}", r"\1{\2}"),
    (rf"\\(sqrt|mathbf|mathcal)\s*{_ONE}", r"\\\1{\2}"),
    (r"\\(text|display)style(?![A-Za-z])", ""),
    (r"\\implies(?![A-Za-z])", r"\\Rightarrow "),
    (r"\\iff(?![A-Za-z])", r"\\Leftrightarrow "),
    (r"\\!", ""),
)
"""What matplotlib does not read, and what it reads in its place."""


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


def heading(row: Row, width: float) -> TopLines:
    """The formula of a row, or its sentence where the formula is none or too long; paper and equation; the verdict."""
    formulas, size = formula_lines(row.statement, width)
    printed = "as our copy reads: " if "copy" in row.reading else ""
    return _heading(
        formulas,
        size,
        row.says or row.id,
        printed + row.source,
        width,
        f"{SYMBOLS.get(row.verdict, SYMBOLS['broken'])} {row.verdict}",
    )


def sentence_heading(sentence: str, source: str, width: float) -> TopLines:
    """A sentence, and where it is from."""
    return _heading([], FORMULA, sentence, source, width, "")


def _heading(
    formulas: list[str], size: float, sentence: str, source: str, width: float, verdict: str
) -> TopLines:
    said = [] if formulas else in_lines(typeset(sentence), width, SENTENCE)
    aside = width_of(verdict, SOURCE) + 14
    below = in_lines(typeset(source), width - aside, SOURCE)
    heights = [_extent(line, size)[1] + GAP for line in formulas] + [SENTENCE * LEADING] * len(said)
    total = sum(heights) + GAP + SOURCE * LEADING * len(below) + GAP

    def draw(figure: Figure, x: float, top: float, room: float) -> None:
        wide, tall = (72 * inches for inches in figure.get_size_inches())
        y = top
        for line, height in zip(
            formulas, heights, strict=False
        ):  # as a path: no reader's fonts have its signs
            vertices, codes = text_to_path.get_text_path(_font(size), line, ismath=True)
            path, unit = Path(vertices, codes), size / text_to_path.FONT_SCALE
            box = path.get_extents()
            move = Affine2D().translate(-box.x0, -box.y1).scale(unit).translate(x, y).scale(1 / 72)
            figure.add_artist(
                PathPatch(path, fc=PALETTE["ink"], lw=0, transform=move + figure.dpi_scale_trans)
            )
            y -= height
        for line in said:
            figure.text(x / wide, y / tall, line, fontsize=SENTENCE, va="top", color=PALETTE["ink"])
            y -= SENTENCE * LEADING
        y -= GAP
        if verdict:
            colour = PALETTE.get(verdict[2:], PALETTE["ink"])
            figure.text(
                (x + room) / wide, y / tall, verdict, ha="right", color=colour, fontsize=SOURCE, va="top"
            )
        for line in below:
            figure.text(x / wide, y / tall, line, color=PALETTE["muted"], fontsize=SOURCE, va="top")
            y -= SOURCE * LEADING

    return TopLines(total, draw)
