"""The look of every figure and page: its colours, light and dark, and how matplotlib draws."""

from __future__ import annotations

from typing import Any

PALETTE = {
    "paper": "#fdfdfb",
    "ink": "#1c2127",
    "muted": "#5a636e",
    "rule": "#d9dde2",
    "band": "#e8eef6",
    "theory": "#1f5fa8",
    "rival": "#87898c",
    "nets": "#b64f08",
    "agrees": "#00776a",
    "limits": "#6f4bb2",
    "disagrees": "#b5123e",
    "undecided": "#8c6208",
    "broken": "#9c1fb8",
}
"""Every colour of a figure by its part; pages replace them by variables of their light and dark theme."""

DARK = {
    "paper": "#14171b",
    "ink": "#e6e9ec",
    "muted": "#a0a9b4",
    "rule": "#363d46",
    "band": "#1f2d40",
    "theory": "#7fb4f5",
    "rival": "#8e959d",
    "nets": "#f2984f",
    "agrees": "#43c5b0",
    "limits": "#b79bf2",
    "disagrees": "#ff7d97",
    "undecided": "#dfb04a",
    "broken": "#d68bf0",
}
"""Colours on a dark page."""

PAGE = {"page": "#fdfdfb", "soft": "#f3f4f1", "alarm": "#fbeae2"}
PAGE_DARK = {"page": "#14171b", "soft": "#1c2026", "alarm": "#3a2318"}
"""What a page has around its figures."""

FONTS = "system-ui, 'DejaVu Sans', sans-serif"

STYLE: Any = {
    "svg.hashsalt": "losscurv",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # nothing stands above a frame: no search for room at every drawing
    "axes.labelsize": 9.0,
    "axes.labelcolor": PALETTE["muted"],
    "axes.titlecolor": PALETTE["ink"],
    "axes.edgecolor": PALETTE["rule"],
    "axes.facecolor": PALETTE["paper"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "figure.facecolor": PALETTE["paper"],
    "figure.edgecolor": PALETTE["paper"],
    "text.color": PALETTE["ink"],
    "text.parse_math": False,
    "xtick.color": PALETTE["rule"],
    "ytick.color": PALETTE["rule"],
    "xtick.labelcolor": PALETTE["muted"],
    "ytick.labelcolor": PALETTE["muted"],
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.solid_capstyle": "butt",
}
