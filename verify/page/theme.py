"""The look of every figure and page: its colours, light and dark, and how matplotlib draws."""

from __future__ import annotations

from typing import Any

PALETTE = {
    "paper": "#fdfdfc",
    "ink": "#20242b",
    "muted": "#616a77",
    "rule": "#e3e6ea",
    "band": "#dbe6f4",
    "theory": "#2b5fa3",
    "rival": "#86642f",
    "agrees": "#0e7466",
    "disagrees": "#c03e10",
    "undecided": "#8c6208",
    "broken": "#7d2ac7",
}
"""Every colour of a figure by its part; pages replace them by variables of their light and dark theme."""

DARK = {
    "paper": "#191d23",
    "ink": "#e4e7eb",
    "muted": "#9da7b4",
    "rule": "#343b45",
    "band": "#22364f",
    "theory": "#7fb0f0",
    "rival": "#c9a468",
    "agrees": "#4fc6b4",
    "disagrees": "#f78a55",
    "undecided": "#dfb04a",
    "broken": "#c994ff",
}
"""Colours on a dark page."""

PAGE = {"page": "#f4f4f2", "soft": "#eef0f2", "alarm": "#fbeae2", "foreseen": "#505a7d"}
PAGE_DARK = {"page": "#111418", "soft": "#222831", "alarm": "#3a2318", "foreseen": "#a9b4d9"}
"""What a page has around its cards, and the colour of what fails as foreseen: red is for surprises there."""

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
    "grid.color": PALETTE["rule"],
    "grid.linewidth": 0.6,
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
