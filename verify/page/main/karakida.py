"""Main statements of Karakida et al. (2019)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from theory import fisher
from theory.fisher import middle_normalisation
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, dress
from verify.page.main.plot import PRINTED, MainPlot, MainRun, measured_intervals
from verify.page.theme import PALETTE

__all__ = ["PLOTS"]

SAMPLES = "karakida2019/any-samples"
TOP = "karakida2019/largest-is-rayleigh"
KAPPA = "karakida2019/uneven-kappa2"
UNCHANGED, SUBTRACTED = "karakida2019/growth", "karakida2019/no-growth"
LOWER, UPPER = "karakida2019/lower-bound-with-c1", "karakida2019/upper-bound"
NORMALISED = "karakida2019/batch-norm-theorem"


def _network(parameters: dict[str, Any], *more: str) -> dict[str, Any]:
    names = ("activation", "depth", "outputs", "weight_variance", "bias_variance", *more)
    return {name: parameters[name] for name in names}


def _theorem_2_2(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale("samples $T$", (0.9, 33), (1, 3, 10, 30), logarithmic=True),
        Scale(r"$\lambda_{\max}$ / α$M\kappa_2$ − 1", (0.012, 9), (0.1, 1), logarithmic=True),
    )
    t = np.geomspace(0.9, 33, 50)
    for activation, at in (("tanh", (6, 1.8)), ("erf", (2.2, 0.23))):
        points = [p for p in run.points(SAMPLES) if p.parameters["activation"] == activation]
        network = _network(points[0].parameters, "width")
        one, two = (
            fisher.eigenvalue_statistics(**network, samples=k, finite_width=True).largest for k in (1, 2)
        )
        limit = 2 * two - one  # of many samples: the law is limit + (one - limit) / T
        draw_law(axes, t, (one / limit - 1) / t)
        relative = (values / limit - 1 for values in measured_intervals(points))
        draw_points(axes, [p.parameters["samples"] for p in points], *relative)
        draw_label(axes, *at, activation, "theory", ha="right" if activation == "erf" else "left")


def _theorem_3_3(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale("width $M$ = samples $T$", (13, 170), (16, 32, 64, 128), logarithmic=True),
        Scale(r"$\lambda_{\max}$", (2.5, 260), (3, 10, 30, 100), logarithmic=True),
    )
    network = _network(run.points(UNCHANGED)[0].parameters)
    widths = np.unique(np.geomspace(13, 170, 40).round().astype(int))
    sizes: list[dict[str, Any]] = [{"width": int(m), "samples": int(m)} for m in widths]
    draw_law(
        axes, widths, [fisher.eigenvalue_statistics(**network, **s, finite_width=True).largest for s in sizes]
    )
    bounds = [fisher.mean_subtracted_statistics(**network, **s) for s in sizes]
    lower, upper = ([getattr(b, name) for b in bounds] for name in ("lower", "upper"))
    axes.fill_between(widths, lower, upper, color=PALETTE["band"], lw=0, zorder=0.5)
    for bound in (lower, upper):
        draw_law(axes, widths, bound, lw=1.3)
    profile = run.points(UNCHANGED)[0].profile
    draw_points(axes, *np.array([(p.x, p.measured, p.lower, p.upper) for p in profile]).T)
    subtracted = run.points(LOWER)
    draw_points(axes, [p.parameters["widths"] for p in subtracted], *measured_intervals(subtracted), size=3)
    draw_label(axes, 27, 92, "unchanged", "ink", ha="right")
    draw_label(axes, 20, 6.1, "mean subtracted", "ink")
    draw_label(axes, 165, 20, "bounds", "theory", ha="right")


def _theorem_3_4(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale("width $M$ = samples $T$", (20, 204), (32, 64, 96, 128, 160, 192)),
        Scale(r"$\lambda_{\max}$ − bound", (-0.4, 2.3), (0, 1, 2)),
    )
    points = run.points(NORMALISED)
    axes.axhspan(-0.4, 0, color=PALETTE["band"], lw=0, zorder=0)
    widths = range(20, 205, 8)
    excess = [
        middle_normalisation.batch_norm_largest("relu", width=m, samples=m)
        - middle_normalisation.batch_norm_bound("relu", width=m, samples=m)
        for m in widths
    ]
    draw_law(axes, widths, excess)
    draw_law(axes, [20, 204], [0, 0], lw=1.3)
    bounds = np.array([p.predicted for p in points])
    draw_points(
        axes,
        [p.parameters["widths"] for p in points],
        *(v - bounds for v in measured_intervals(points)),
        size=3,
    )
    draw_label(axes, 112, 1.8, "derived for one hidden layer", "theory", ha="center")
    draw_label(axes, 202, 0.18, r"bound, $\propto M$", "theory", ha="right")
    draw_label(axes, 112, -0.21, "excluded by the theorem", ha="center")


def _growing(run: MainRun) -> str:
    above = np.mean([p.measured - p.predicted for p in run.points(NORMALISED)])
    return f"Batch normalisation keeps the growth: λ stays {above:.1f} above a bound proportional to M."


PLOTS = (
    MainPlot(
        key="theorem-2-2",
        where="Karakida 2019 · Theorem 2.2",
        formula=r"\lambda_{\max} \approx \alpha M\Big(\kappa_2 + \frac{\kappa_1 - \kappa_2}{T}\Big)",
        target=SAMPLES,
        judged=(SAMPLES, TOP, KAPPA, KAPPA + PRINTED),
        needs=(SAMPLES,),
        caption=lambda run: (
            f"Right within {run.closely(SAMPLES)} from one sample on. Our copy of Eq. (11) lost a tilde."
        ),
        draw=_theorem_2_2,
    ),
    MainPlot(
        key="theorem-3-3",
        where="Karakida 2019 · Theorem 3.3",
        formula=r"\rho\alpha(\kappa_1 - \kappa_2) + c_1 \le \bar\lambda_{\max} \le \sqrt{c\,M}",
        target=SUBTRACTED,
        judged=(LOWER, UPPER, SUBTRACTED),
        needs=(UNCHANGED, SUBTRACTED, LOWER),
        caption=lambda run: (
            "Subtracting the mean output stops the growth with width: exponent "
            f"{run.points(SUBTRACTED)[0].measured:.2f}.".replace("-", "−")
        ),
        draw=_theorem_3_3,
    ),
    MainPlot(
        key="theorem-3-4",
        where="Karakida 2019 · Theorem 3.4",
        formula=r"\lambda_{\max} \ge M\Big(\frac{T-1}{T}\,\hat q_{st} + \frac1T\,\hat q_t\Big)",
        target=NORMALISED,
        judged=(NORMALISED,),
        needs=(NORMALISED,),
        caption=_growing,
        draw=_theorem_3_4,
    ),
)
