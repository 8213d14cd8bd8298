"""Draw the table of rules in docs/trials.md: share of good rates against training steps.

python docs/site/rates.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

from verify.page.canvas import Scale, draw_label, dress, frame
from verify.page.markup import themed
from verify.page.theme import DARK, PALETTE, STYLE

DOCS = Path(__file__).parents[1]

ROW = re.compile(r"^\| (?P<rule>[^|]+?) \| (?P<steps>\d+) \| (?P<share>[01]\.\d\d) \|", re.MULTILINE)
"""Beginning of a row of the table: rule, steps for each batch size, share."""

JOINED = (
    ("six rates × 50, the best", "six rates × 50, best two × 200"),
    ("plan, asked for 100 steps", "plan"),
)
"""Rules that are one rule with fewer and with more steps."""

MOVED = {"Prodigy": 0.02, "range test, minimum / 10": 0.01, "Schedule-Free AdamW": -0.035}
"""Distances by which names are moved up, so that none covers another."""


def table() -> dict[str, tuple[int, float]]:
    """Return steps and share of each rule."""
    text = (DOCS / "trials.md").read_text(encoding="utf-8")
    return {found["rule"]: (int(found["steps"]), float(found["share"])) for found in ROW.finditer(text)}


def picture() -> str:
    """Return the picture as SVG, in the colours of a light or a dark page."""
    rules = table()
    label = "Share of cases with regret at most 0.1 against training steps, for each rule"
    with mpl.rc_context(STYLE):
        figure, axes = frame(label, left=40, right=80, width=620, height=320)
        across = Scale("training steps for each batch size", (-25.0, 1020.0), range(0, 1001, 200))
        up = Scale("share of cases with regret ≤ 0.1", (0.0, 1.0), (0, 0.2, 0.4, 0.6, 0.8, 1))
        dress(axes, across, up, left=40)
    for pair in JOINED:
        axes.plot(*zip(*(rules[rule] for rule in pair), strict=True), lw=1.3, color=_colour(pair[0]))
    for rule, (steps, share) in rules.items():
        axes.plot(steps, share, "o", ms=4.5, color=_colour(rule))
        x, ha = (steps - 12, "right") if rule in dict(JOINED) else (steps + 12, "left")
        draw_label(axes, x, share + MOVED.get(rule, 0.0), rule.partition(", `")[0], ha=ha)
    variables = (";".join(f"--{name}:{colour}" for name, colour in each.items()) for each in (PALETTE, DARK))
    style = "<style>:root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}</style>".format(*variables)
    return re.sub("(<svg[^>]*>)", rf"\1{style}", str(themed(figure)), count=1)


def _colour(rule: str) -> str:
    return PALETTE["theory" if rule.startswith("plan") else "ink"]


if __name__ == "__main__":
    (DOCS / "gallery" / "rates.svg").write_text(picture(), encoding="utf-8")
