"""Main statements of papers after these: the edge of stability, the catapult."""

from __future__ import annotations

from collections import Counter

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.special import betaincinv

from theory.learning_rates import catapult
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, dress
from verify.page.main.plot import MainPlot, MainRun
from verify.page.theme import PALETTE
from verify.results import PointOutcome

__all__ = ["PLOTS"]

Floats = NDArray[np.float64]

_PATH = "edge/full-batch-path"
_ENDS = "catapult/where-the-curvature-ends"

_NODES = 1024
"""Quantiles of the output at the start in a mean: within half a percent of `catapult.mean_final_product`."""


def _path(run: MainRun) -> tuple[Floats, tuple[float, float], Floats]:
    """Steps, the two rates, and (rate, [mean, lowest, highest], step) of eta lambda_1 / 2."""
    group = run.observations[_PATH].groups[0]
    steps, found = run.columns(_PATH)
    slow, fast = group.parameters["rate"]
    return steps, (slow, fast), np.array([found["slow"], found["fast"]])


def _edge(axes: Axes, run: MainRun) -> None:
    steps, rates, levels = _path(run)
    last = steps[-1]
    dress(
        axes,
        Scale("steps of full-batch descent", (-0.02 * last, 1.02 * last), np.linspace(0, last, 5)),
        Scale(r"$\eta\lambda_1$ / 2", (0, 1.42), (0, 0.5, 1)),
    )
    draw_law(axes, [0, last], [1, 1])
    for level, hollow in zip(levels, (True, False), strict=True):
        axes.plot(steps, level[0], color=PALETTE["nets"], lw=0.8, alpha=0.5, zorder=3)
        draw_points(axes, steps, *level, networks=True, hollow=hollow)
    draw_label(axes, 0.27 * last, 0.5, f"$\\eta$ = {rates[0]:g}", "nets")
    draw_label(axes, 0.1 * last, 1.33, f"$\\eta$ = {rates[1]:g}", "nets")
    draw_label(axes, last, 0.9, r"edge 2 / $\eta$", "theory", ha="right")


def _above(run: MainRun) -> str:
    steps, _, levels = _path(run)
    late = levels[:, 0, steps > steps[-1] / 2]
    return f"{100 * (late.mean() - 1):.0f}\N{NO-BREAK SPACE}%"


def _ends(run: MainRun) -> tuple[int, list[PointOutcome]]:
    """The width with most rates, and its points."""
    points = run.points(_ENDS)
    width = Counter(int(p.parameters["width"]) for p in points).most_common(1)[0][0]
    return width, [p for p in points if p.parameters["width"] == width]


def _mean_ends(product: Floats, width: int) -> Floats:
    """Mean of `catapult.final_product` over networks, at every rate."""
    b = betaincinv(width / 2, width / 2, 0.5 + (np.arange(_NODES) + 0.5) / (2 * _NODES))
    return catapult.final_product(product[:, None] * (b - 0.5), product[:, None]).mean(1)


def _catapult(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"$\eta\lambda_0$ at the start", (0, 4.25), range(5)),
        Scale(r"$\eta\lambda$ at the end", (0, 2.35), range(3)),
    )
    width, points = _ends(run)
    x = np.r_[np.linspace(0.05, 1.98, 20), np.linspace(2.0, 3.985, 90)]
    draw_law(axes, x, _mean_ends(x, width))
    draw_law(axes, [2, 4], [2, 2], lw=1.3)
    axes.axvline(4, color=PALETTE["rule"], lw=0.8, zorder=1)
    draw_points(
        axes,
        *np.array(sorted((p.parameters["product"], p.measured, p.lower, p.upper) for p in points)).T,
    )
    draw_label(axes, 3.95, 2.18, "diverges from 4 on", ha="right")
    draw_label(axes, 2.65, 1.75, "bound 2", "theory")
    draw_label(axes, 0.8, 0.55, f"mean at width {width}", "theory")


PLOTS = (
    MainPlot(
        key="edge",
        where="Cohen 2021 · Edge of stability",
        formula=r"\lambda_1 \to \frac{2}{\eta}",
        target="edge/full-batch",
        judged=("edge/full-batch",),
        needs=(_PATH,),
        caption=lambda run: (
            f"Curvature rises to 2/η at either rate, then stays {_above(run)} above it in the mean."
        ),
        draw=_edge,
    ),
    MainPlot(
        key="catapult",
        where="Lewkowycz 2020 · Catapult",
        formula=r"\eta\lambda_0 < 4 \;\Rightarrow\; \eta\lambda_{\mathrm{end}} \le 2",
        target=_ENDS,
        judged=("catapult/below-the-edge", _ENDS, "catapult/largest-rate-of-linear-networks"),
        needs=(_ENDS,),
        caption=lambda run: (
            f"Above 2 the loss grows first; descent ends where it is flatter, predicted within {run.closely(_ENDS)}."
        ),
        draw=_catapult,
    ),
)
