"""Main statements of papers after these: the edge of stability, the catapult."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from scipy.special import betaincinv

from theory.learning_rates import catapult
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, dress
from verify.page.main.plot import Floats, MainPlot, MainRun, draw_outcomes, in_percent
from verify.page.theme import PALETTE

_PATH = "edge/full-batch-path"
_ENDS = "catapult/where-the-curvature-ends"

_WIDTH = 40
"""Width of networks with points at eight rates."""

_NODES = 1024
"""Quantiles of the output at the start in a mean: within half a percent of `catapult.mean_final_product`."""


def _edge(axes: Axes, run: MainRun) -> None:
    ((at, steps, levels),) = run.tables(_PATH)
    last = steps[-1]
    dress(
        axes,
        Scale("steps of full-batch descent", (-0.02 * last, 1.02 * last), np.linspace(0, last, 5)),
        Scale(r"curvature / edge, $\eta\lambda_1$ / 2", (0, 1.5), (0, 0.5, 1)),
    )
    draw_law(axes, [0, last], [1, 1])
    for name, rate, x, y in zip(("slow", "fast"), at["rate"], (0.27, 0.1), (0.5, 1.37), strict=True):
        level = levels[name]
        axes.plot(steps, level[0], color=PALETTE["nets"], lw=0.8, alpha=0.5, zorder=3)
        draw_points(axes, steps, *level, networks=True, hollow=name == "slow")
        draw_label(axes, x * last, y, f"rate $\\eta$ = {rate:g}", "nets")
    draw_label(axes, last, 0.87, r"edge: $\lambda_1$ = 2 / $\eta$", "theory", ha="right")


def _above(run: MainRun) -> str:
    ((_, steps, levels),) = run.tables(_PATH)
    return in_percent(np.mean([level[0, steps > steps[-1] / 2] for level in levels.values()]) - 1)


@cache
def _mean_ends() -> tuple[Floats, Floats]:
    """Products, and at each the mean of `catapult.final_product` over networks."""
    product = np.r_[np.linspace(0.05, 1.98, 20), np.linspace(2.0, 3.985, 90)]
    b = betaincinv(_WIDTH / 2, _WIDTH / 2, 0.5 + (np.arange(_NODES) + 0.5) / (2 * _NODES))
    column = product[:, None]
    return product, catapult.final_product(column * (b - 0.5), column).mean(1)


def _catapult(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"rate × curvature at the start, $\eta\lambda_0$", (0, 5.1), range(5)),
        Scale(r"rate × curvature at the end, $\eta\lambda_{\mathrm{end}}$", (0, 2.45), range(3)),
    )
    draw_law(axes, *_mean_ends())
    draw_law(axes, [0, 4], [2, 2], lw=0.8)
    axes.axvspan(4, 5.1, color=PALETTE["band"], lw=0, zorder=0)
    draw_outcomes(
        axes, [p for p in run.points(_ENDS) if p.parameters["width"] == _WIDTH], lambda at: at["product"]
    )
    draw_label(axes, 4.55, 1, "diverges", ha="center")
    draw_label(axes, 0.1, 2.2, "bound", "theory")
    draw_label(axes, 0.95, 0.55, f"derived mean\nof width {_WIDTH}", "theory")


PLOTS = (
    MainPlot(
        "Cohen 2021 · Edge of stability",
        r"\lambda_1 \to \frac{2}{\eta}",
        "edge/full-batch",
        _edge,
        "Curvature rises to 2/η at either rate, then stays {} above it in the mean.",
        _above,
        needs=(_PATH,),
    ),
    MainPlot(
        "Lewkowycz 2020 · Catapult",
        r"\eta\lambda_0 < 4 \;\Rightarrow\; \eta\lambda_{\mathrm{end}} \le 2",
        _ENDS,
        _catapult,
        "Above ηλ₀ = 2 the loss first grows, then training ends flatter, within {} of theory.",
        judged=("catapult/below-the-edge", "catapult/largest-rate-of-linear-networks"),
    ),
)
