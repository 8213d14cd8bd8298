"""Ratios of an observation: which are how far from 1."""

from __future__ import annotations

import math

OFF, FAR = 1.25, 2.0
"""Factors beyond which a ratio is marked once and twice."""


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
