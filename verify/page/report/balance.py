"""Whether the table of points of a card stands beside its figure or below it, so that neither column ends half-way."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from markupsafe import Markup

__all__ = ["stands_left"]

FIGURE = 496
"""Pixels of the width of a figure."""

FACT, LINE, ITEM, LETTERS = 7, 23, 20, 52
"""Pixels between two facts, of a line, of a line in a list, and letters that a line holds."""

ROW, CELL, HEAD, LONGEST = 10, 24, 40, 90
"""Pixels around a line of the table, letters of a point to a line, the head; longer points need the whole width."""


def stands_left(figure: Markup | None, facts: Markup, points: Sequence[str]) -> bool:
    """Whether less is left empty with the table under the facts, left of the figure, than with it below both.

    >>> tall = Markup('<svg viewBox="0 0 360 720">')
    >>> stands_left(tall, Markup("<dd>short</dd>"), ["a = 1", "a = 2"]), stands_left(tall, Markup("<dd>short</dd>"), [])
    (True, False)
    """
    if figure is None or len(points) < 2 or max(map(len, points)) > LONGEST:
        return False
    missing = _height(figure) - _facts(facts)
    return abs(missing - _table(points)) + LINE < abs(missing)


def _height(figure: Markup) -> float:
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure)
    return FIGURE * float(box[2]) / float(box[1]) if box else 0.0


def _facts(facts: Markup) -> float:
    """Pixels, by the letters of each fact."""
    told = [_shown(text.partition("<ul")[0]) for text in re.split("<dd>", facts)[1:]]
    lines = sum(max(1, math.ceil(len(text) / LETTERS)) for text in told)
    return FACT * len(told) + LINE * lines + ITEM * facts.count("<li>")


def _shown(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)).strip()


def _table(points: Sequence[str]) -> float:
    return HEAD + sum(ROW + LINE * math.ceil(max(len(point), 1) / CELL) for point in points)
