"""Main statements of Karakida et al. (2019)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from theory import fisher
from theory.fisher import middle_normalisation
from theory.order_parameters import order_parameters
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, draw_rival, dress
from verify.page.main.plot import PRINTED, At, MainPlot, MainRun, draw_outcomes
from verify.page.theme import PALETTE

SAMPLES = "karakida2019/any-samples"
KAPPA = "karakida2019/uneven-kappa2"
UNCHANGED, SUBTRACTED = "karakida2019/growth", "karakida2019/no-growth"
LOWER = "karakida2019/lower-bound-with-c1"
NORMALISED = "karakida2019/batch-norm-theorem"

WIDTHS = "width $M$ = samples $T$"


def _network(at: At, *more: str) -> dict[str, Any]:
    return {name: at[name] for name in ("activation", "depth", "weight_variance", "bias_variance", *more)}


def _without_tilde(at: At) -> list[float]:
    """Return alpha kappa1 and alpha kappa2 as our copy has them, with forward for backward order parameters."""
    found = order_parameters(**_network(at))
    last = at["bias_variance"]
    forward = ([*q[1:], at["weight_variance"] * q[-1] + last] @ q for q in (found.q_hat_t, found.q_hat_st))
    return [float(product) for product in forward]


def _theorem_2_2(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale("samples $T$", (0.9, 33), (1, 3, 10, 30), logarithmic=True),
        Scale(
            r"$\lambda_{\max}$ / its limit at many samples − 1", (0.012, 12), (0.1, 1, 10), logarithmic=True
        ),
    )
    t = np.geomspace(0.9, 33, 50)
    for activation, at, ha in (("tanh", (12, 0.9), "left"), ("erf", (2.2, 0.23), "right")):
        points = [p for p in run.points(SAMPLES) if p.parameters["activation"] == activation]
        parameters = points[0].parameters
        network = _network(parameters, "outputs", "width")
        one, two = (
            fisher.eigenvalue_statistics(**network, samples=k, finite_width=True).largest for k in (1, 2)
        )
        limit = 2 * two - one  # of many samples: the law is limit + (one - limit) / T
        draw_law(axes, t, (one / limit - 1) / t)
        draw_outcomes(axes, points, lambda at: at["samples"], lambda _, v, limit=limit: v / limit - 1)
        draw_label(axes, *at, activation, "theory", ha=ha)
        if activation == "erf":  # where the misprint changes most
            one, many = (parameters["width"] * v / limit for v in _without_tilde(parameters))
            draw_rival(axes, t, many + (one - many) / t - 1)
    draw_label(axes, 32, 3.2, "erf, as printed", ha="right")


def _theorem_3_3(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(WIDTHS, (13, 170), (16, 32, 64, 128), logarithmic=True),
        Scale("largest eigenvalue of the Fisher matrix", (2.5, 260), (3, 10, 30, 100), logarithmic=True),
    )
    widths = np.unique(np.geomspace(13, 170, 40).round().astype(int))
    network = _network(run.points(UNCHANGED)[0].parameters, "outputs")
    sizes: list[dict[str, Any]] = [{**network, "width": int(m), "samples": int(m)} for m in widths]
    draw_law(
        axes, widths, [fisher.eigenvalue_statistics(**size, finite_width=True).largest for size in sizes]
    )
    bounds = [fisher.mean_subtracted_statistics(**size) for size in sizes]
    low, high = [bound.lower for bound in bounds], [bound.upper for bound in bounds]
    axes.fill_between(widths, low, high, color=PALETTE["band"], lw=0, zorder=0.5)
    for bound in (low, high):
        draw_law(axes, widths, bound, lw=0.8)
    profile = run.points(UNCHANGED)[0].profile
    draw_points(axes, *np.array([(p.x, p.measured, p.lower, p.upper) for p in profile]).T)
    draw_outcomes(axes, run.points(LOWER), lambda at: at["widths"])
    draw_label(axes, 14.5, 120, "mean output kept", "ink")
    draw_label(axes, 20, 6.1, r"mean output subtracted, $\bar\lambda_{\max}$", "ink")
    draw_label(axes, 165, 20, r"bounds on $\bar\lambda_{\max}$", "theory", ha="right")


def _theorem_3_4(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(WIDTHS, (20, 204), (32, 64, 96, 128, 160, 192)),
        Scale("largest eigenvalue of the Fisher matrix", (0, 37), (0, 10, 20, 30)),
    )
    widths = range(20, 205, 8)
    largest, bound = (
        [law("relu", width=m, samples=m) for m in widths]
        for law in (middle_normalisation.batch_norm_largest, middle_normalisation.batch_norm_bound)
    )
    axes.fill_between(widths, bound, color=PALETTE["band"], lw=0, zorder=0)
    draw_law(axes, widths, largest)
    draw_law(axes, widths, bound, lw=0.8)
    draw_outcomes(axes, run.points(NORMALISED), lambda at: at["widths"])
    draw_label(axes, 24, 29, "derived for one hidden layer", "theory")
    draw_label(axes, 200, 6, "below the bound: excluded", ha="right")


PLOTS = (
    MainPlot(
        "Karakida 2019 · Theorem 2.2",
        r"\lambda_{\max} \approx \alpha M\left(\kappa_2 + \frac{\kappa_1 - \kappa_2}{T}\right)",
        SAMPLES,
        _theorem_2_2,
        "Right within {} from one sample on. Our copy of Eq. (11) lost a tilde.",
        judged=("karakida2019/largest-is-rayleigh", KAPPA, KAPPA + PRINTED),
    ),
    MainPlot(
        "Karakida 2019 · Theorem 3.3",
        r"\rho\alpha(\kappa_1 - \kappa_2) + c_1 \le \bar\lambda_{\max} \le \sqrt{c\,M}",
        SUBTRACTED,
        _theorem_3_3,
        "With the mean output subtracted λ stays within the bounds and hardly grows: exponent {}.",
        lambda run: f"{run.points(SUBTRACTED)[0].measured:.2f}".replace("-", "−"),
        needs=(UNCHANGED, LOWER),
        judged=(LOWER, "karakida2019/upper-bound"),
    ),
    MainPlot(
        "Karakida 2019 · Theorem 3.4",
        r"\lambda_{\max} \ge M\left(\frac{T-1}{T}\,\hat q_{st} + \frac{1}{T}\,\hat q_t\right)",
        NORMALISED,
        _theorem_3_4,
        "Batch normalisation keeps the growth: λ is {} above a bound proportional to the width.",
        lambda run: f"{np.mean([p.measured - p.predicted for p in run.points(NORMALISED)]):.1f}",
    ),
)
