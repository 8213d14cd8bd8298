"""Main statements of Vysogorets et al. (2024)."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from theory import gauss_newton, softmax
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, draw_rival, dress
from verify.page.main.plot import PRINTED, Floats, MainPlot, MainRun, measured_intervals
from verify.page.theme import PALETTE

__all__ = ["PLOTS"]

EQ_8 = "vysogorets2024/eq-8"
MOMENTS = "vysogorets2024/moment-form"
SLOPE = "vysogorets2024/equal-tail-slope"
SCALES = "vysogorets2024/excess-by-scale"
NETWORK = "LeNet-300-100"


def _eq_8(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"$\sigma_e$ / $\sigma_c$", (0.09, 2.7), (0.1, 0.3, 1, 2), logarithmic=True),
        Scale(r"excess of $G$", (0, 9), (0, 2, 4, 6, 8)),
    )
    x = np.geomspace(0.09, 2.7, 300)
    points = run.points(EQ_8)
    models = sorted({(point.parameters["dim"], *point.parameters["p"]) for point in points})
    for (dim, *p), beside in zip(models, (0.5, 3.0), strict=True):
        gamma = softmax.gamma(p)
        excess = gauss_newton.expected_excess(gamma, dim=dim, sigma_c=1.0, sigma_e=x)
        draw_law(axes, x, excess)
        draw_rival(axes, x, math.sqrt(dim) * (1 + x**2) / np.sqrt(x**4 + 2 * x**2 + dim * x**4 / gamma**2))
        draw_label(axes, 0.1, beside, f"{len(p)} classes", "theory")
    ratios = [point.parameters["sigma_e"] / point.parameters["sigma_c"] for point in points]
    draw_points(axes, ratios, *map(np.sqrt, measured_intervals(points)))
    draw_label(axes, 0.1, 7.4, "as printed")


def _zone(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"scale $\alpha$ of the weights", (0.075, 135), (0.1, 1, 10, 100), logarithmic=True),
        Scale("excess", (-0.5, 6.2), (0, 1, 2, 4, 6)),
    )
    at, seen = run.columns(SCALES, network=NETWORK)
    x = np.geomspace(0.075, 100, 400)

    def between(score: str) -> Floats:
        from scipy.interpolate import PchipInterpolator

        return PchipInterpolator(np.log(at), seen[score][0])(np.log(x))

    inside = x[between("excess_h") > 1]
    axes.axvspan(inside[0], inside[-1], color=PALETTE["band"], lw=0, zorder=0)
    dim = run.group(SCALES, network=NETWORK).parameters["dim"]
    fitted = {"dim": dim, "sigma_c": 1.0, "sigma_e": seen["spread"][0].mean()}
    mean = between("gamma_mean")
    separate = np.maximum(mean, between("gamma_separate"))  # equal once one sample carries all of G
    finite = gauss_newton.finite_sample_excess(mean, separate, **fitted)
    infinite = gauss_newton.expected_excess(mean, **fitted)
    draw_law(axes, x, finite)
    draw_law(axes, x, infinite, lw=1.3, ls=(0, (1, 1.4)))
    shown = at >= x[0]
    draw_points(axes, at[shown], *(values[shown] for values in seen["excess_g"]), networks=True)
    draw_points(axes, at[shown], *(values[shown] for values in seen["excess_h"]), networks=True, hollow=True)
    draw_label(axes, 22, infinite[-1] + 0.42, "Eq. (8)", "theory")
    draw_label(axes, 0.085, finite[0] - 1.35, "finite sample", "theory")
    draw_label(axes, 30, 1.5, "$G$", "nets")
    draw_label(axes, 0.21, 0.95, "$H$", "nets", ha="center")
    draw_label(axes, math.sqrt(inside[0] * inside[-1]), -0.05, "zone", ha="center")


def _zone_caption(run: MainRun) -> str:
    _, seen = run.columns(SCALES, network=NETWORK)
    off = np.abs(seen["finite_sample"][0] - 1).max()
    return (
        f"On two LeNets our finite-sample law is right within {100 * off:.0f}\N{NO-BREAK SPACE}%. "
        "Eq. (8) is too high at large scales."
    )


def _gamma(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"$1-p_{\max}$", (1.05, 7e-4), (1, 0.1, 0.01, 0.001), logarithmic=True),
        Scale(r"$\Gamma^2$", (1.35, 12.5), (2, 3, 5, 10), logarithmic=True),
    )
    points = [p for p in run.points(MOMENTS) if len(set(p.parameters["weights"][1:])) == 1]
    for members in sorted({len(p.parameters["weights"]) for p in points}):
        rest = np.geomspace((members - 1) / members, 7e-4, 300)
        draw_law(axes, rest, softmax.equal_tail_gamma(rest / (members - 1), members=members) ** 2)
        above = 4.65 * (members - 1) / (members + 2)
        draw_label(axes, 7.5e-4, above, f"$S$ = {members}", "theory", ha="right")
    shares = [np.array(p.parameters["weights"]) / sum(p.parameters["weights"]) for p in points]
    rest = [1 - share.max() for share in shares]
    # an identity keeps the relative difference of its two routes, not their values
    values = np.array([softmax.gamma(s) ** 2 * (1 + p.measured) for s, p in zip(shares, points, strict=True)])
    draw_points(axes, rest, values, values, values)


def _gamma_caption(run: MainRun) -> str:
    off = max(p.measured for p in run.points(MOMENTS))
    digits = math.floor(-math.log10(max(off, 1e-15)))
    return f"One likely class and S − 1 equal others: right to {digits} digits at every probability."


PLOTS = (
    MainPlot(
        key="eq-8",
        where="Vysogorets 2024 · Eq. (8)",
        formula=r"\mathrm{exc}^2 = \frac{d\,(\sigma_c^2 + \sigma_e^2)^2}"
        r"{\sigma_e^4 + 2\sigma_e^2\sigma_c^2 + d\,\sigma_c^4/\Gamma^2}",
        target=EQ_8,
        judged=(EQ_8, EQ_8 + PRINTED),
        needs=(EQ_8,),
        caption=lambda run: (
            f"The corrected formula is right within {run.closely(EQ_8)}. As printed it diverges without noise."
        ),
        draw=_eq_8,
    ),
    MainPlot(
        key="zone",
        where="Vysogorets 2024 · Figures 2 and 3",
        formula=r"\mathrm{exc}(H) = \mathrm{Tr}\,H / \lVert H \rVert_F > 1",
        target=SCALES,
        judged=(),
        needs=(f"{SCALES}:gamma_separate",),
        caption=_zone_caption,
        draw=_zone,
    ),
    MainPlot(
        key="gamma",
        where="Vysogorets 2024 · Eq. (11)",
        formula=r"\Gamma^2 \to 4\,\frac{S - 1}{S + 2} \text{ as } p_{\max} \to 1",
        target=SLOPE,
        judged=(SLOPE, MOMENTS),
        needs=(SLOPE, MOMENTS),
        caption=_gamma_caption,
        draw=_gamma,
    ),
)
