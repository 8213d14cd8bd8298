"""Main statements of Granziol et al. (2022)."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes

from theory import outliers, rmt
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, draw_rival, dress
from verify.page.main.plot import PRINTED, At, Floats, MainPlot, MainRun, draw_outcomes, in_percent

_SPIKES = tuple(
    f"granziol2022/{name}" for name in ("theorem-4", "batch-sizes", "other-noise", "several-spikes")
)
"""Claims on eigenvalues above the threshold, in random models."""

_NETWORKS = ("granziol2022/real-batches", "granziol2022/large-batches")
"""Observations of batches of networks, of 226 and of 15 880 parameters."""

_LARGE_BATCH = 128
"""Smallest batch for which section 8.2.1 expects Theorem 4 to hold on networks, within 30 %."""

_RATIOS, _OVERLAP, _DENSITY = (
    f"granziol2022/{name}" for name in ("theorem-7-ratios", "theorem-10", "semicircle")
)

_STRENGTH = r"$\lambda_1$ / $s$,  $s^2 = P\sigma^2 / b$"


def _spike(at: At) -> float:
    """Eigenvalue of the mean, in the names that claims give it."""
    return next(at[name] for name in ("eigenvalue", "spike", "spikes") if name in at)


def _scale(at: At) -> float:
    """Scale s = sigma sqrt(P/b) of the noise; sigma is s where no batch is drawn."""
    batched = "batch_size" in at
    return at["sigma"] * math.sqrt(
        at["dim"] * (1 / at["batch_size"] - 1 / at["dataset_size"]) if batched else 1
    )


def _strength(at: At) -> float:
    return abs(_spike(at)) / _scale(at)


def _networks(run: MainRun) -> Floats:
    """Columns of batches: lambda_1 / s, the shift with its ends, predicted over measured, whether B is large."""
    found = []
    for name in _NETWORKS:
        for at, sizes, seen in run.tables(name):
            if at["matrix"] == "hessian":
                shift, large = seen["broadening"] - 1, sizes >= _LARGE_BATCH
                found.append(np.vstack([seen["strength"][0], shift, seen["theorem_4"][0], large]))
    return np.hstack(found)


def _theorem_4(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(_STRENGTH, (0.4, 300), (1, 10, 100), logarithmic=True),
        Scale(
            r"shift of the eigenvalue, $\lambda_1$′ / $\lambda_1$ − 1", (1e-5, 60), (1e-4, 1e-2, 1),
            logarithmic=True, texts={1e-4: "10⁻⁴"},
        ),
    )  # fmt: skip
    x = np.geomspace(0.4, 300, 400)
    draw_law(axes, x, outliers.additive_wigner(x, sigma=1.0).eigenvalue / x - 1)
    networks = _networks(run)
    for hollow in (True, False):
        draw_points(axes, *networks[:4, networks[5] != hollow], networks=True, hollow=hollow)
    points = run.points(*_SPIKES)
    draw_outcomes(axes, points, _strength, lambda at, value: value / _spike(at) - 1)
    draw_label(axes, 0.46, 0.01, f"{len(points)} random\nmodels", "ink")
    draw_label(axes, 70, 1e-3, "predicted", "theory")
    draw_label(axes, 2.5, 16, "networks, $P$ = 226", "nets")
    draw_label(axes, 290, 3, "$P$ = 15 880", "nets", ha="right")
    draw_label(axes, 17, 0.012, "hollow: $B$ < 128", "nets")


def _large_batches(run: MainRun) -> str:
    *_, ratio, large = _networks(run)
    return in_percent(np.abs(ratio[large > 0] - 1).max())


def _theorem_7(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(
            r"$\lambda_1$ / $\beta\sigma^2$,  $\beta = P/b$", (1.2, 30), (1.5, 3, 10, 30), logarithmic=True
        ),
        Scale(
            r"shift of the eigenvalue, ($\lambda_1$′ − $\lambda_1$) / $\sigma^2$",
            (0.9, 2.95),
            (1, 1.5, 2, 2.5),
        ),
    )
    x = np.geomspace(1.3, 30, 400)
    draw_law(axes, x, x / (x - 1))
    points = run.points(_RATIOS)
    ratios = [p.parameters["dim"] / p.parameters["samples"] for p in points]
    draw_outcomes(
        axes,
        points,
        lambda at: at["spike"] * at["samples"] / (at["dim"] * at["variance"]),
        lambda at, value: (value - at["spike"]) / at["variance"],
    )
    ratio = min(ratios)
    for draw, edge, end in (
        (draw_rival, 2 * (1 + ratio), 1 + 1 / ratio),
        (draw_law, (1 + math.sqrt(ratio)) ** 2, 1 + ratio**-0.5),
    ):
        x = np.linspace(1.2, end)
        draw(axes, x, edge - ratio * x, lw=1.3)
    draw_label(
        axes, 4.2, 2.05, f"as stated, $\\beta$ = {ratio:.2g}:\nno outlier, edge 2(1 + $\\beta$)$\\sigma^2$"
    )
    draw_label(axes, 2.4, 2.6, f"{len(points)} spikes, $\\beta$ from {ratio:.2g} to {max(ratios):.2g}", "ink")
    draw_label(axes, 1.25, 1.14, f"true edge, $\\beta$ = {ratio:.2g}", "theory")


def _theorem_10(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(_STRENGTH, (0, 5.6), range(6)),
        Scale("squared overlap of eigenvectors", (0, 1.04), (0, 0.5, 1)),
    )
    x = np.linspace(0.0, 5.6, 600)
    draw_law(axes, x, outliers.additive_wigner(x, sigma=1.0).overlap)
    draw_rival(axes, [1, 2, 2], [0, 0, 0.75], lw=1.6)
    draw_label(axes, 2.12, 0.2, "misprint in Lemma 11:\nno overlap up to $2s$")
    draw_outcomes(axes, run.points(_OVERLAP), _strength)


def _densities(run: MainRun) -> Floats:
    """Eigenvalue / s, and density with its ends.

    A density is a difference of two of the shares that are judged. Their errors go together, so that the root of the
    sum of squares is not too small. Every second step of each law: its points do not hide those of the other.
    """
    found = []
    for k, (_, points) in enumerate(groupby(run.points(_DENSITY), lambda p: p.parameters["law"])):
        at, share, low, high = np.array(
            [(p.parameters["x"] / _scale(p.parameters), p.measured, p.lower, p.upper) for p in points]
        ).T
        step, half = np.diff(at), (high - low) / 2
        x, density, error = at[1:] - step / 2, np.diff(share) / step, np.hypot(half[1:], half[:-1]) / step
        found.append(np.array([x, density, density - error, density + error])[:, k::2])
    return np.hstack(found)


def _semicircle(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"eigenvalue of the noise / $s$", (-2.6, 2.6), range(-2, 3)),
        Scale("density × $s$", (0, 0.37), (0, 0.1, 0.2, 0.3)),
    )
    at = run.points(_DENSITY)[0].parameters
    wide = (1 - at["batch_size"] / at["dataset_size"]) ** -0.5
    for draw, scale in ((draw_law, 1.0), (draw_rival, wide)):
        x = np.linspace(-2 * scale, 2 * scale, 801)
        draw(axes, x, rmt.Semicircle(sigma=scale).pdf(x))
    draw_points(axes, *_densities(run))
    draw_label(axes, -2.55, 0.31, "with $B$ in\nplace of $b$")
    draw_label(axes, 0, 0.1, "Gaussian and ±1 elements", "ink", ha="center")


def _of_the_peak(run: MainRun) -> str:
    x, density, *_ = _densities(run)
    law = rmt.Semicircle(sigma=1.0).pdf
    return in_percent(np.abs(density - law(x)).max() / law(0.0))


PLOTS = (
    MainPlot(
        "Granziol 2022 · Theorem 4",
        r"\lambda_1' = \lambda_1 + \frac{P\sigma^2}{b\,\lambda_1}\ \text{ if } \lambda_1 > s,\ \text{ else } 2s",
        _SPIKES[0],
        _theorem_4,
        "Random models agree. λ₁′ of these networks is within {} at large B, but its shift is missed.",
        _large_batches,
        needs=(*_SPIKES, *_NETWORKS),
        judged=("granziol2022/theorem-4-on-networks",),
    ),
    MainPlot(
        "Granziol 2022 · Theorem 7",
        r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2}"
        r"\text{ if } \lambda_1 > (1 + \beta)\sigma^2",
        _RATIOS,
        _theorem_7,
        "The formula is right within {}. Its condition is wrong: at small β outliers appear far below it.",
    ),
    MainPlot(
        "Granziol 2022 · Theorem 10",
        r"(\phi_1' \cdot \phi_1)^2 = 1 - \frac{s^2}{\lambda_1^2}\ \text{ if } \lambda_1 > s",
        _OVERLAP,
        _theorem_10,
        "Right within {}. Lemma 11, from which it follows, prints twice the threshold.",
    ),
    MainPlot(
        "Granziol 2022 · Theorem 3",
        r"p(\lambda) = \frac{\sqrt{4s^2 - \lambda^2}}{2\pi s^2},\ s = \sigma\sqrt{P/b}",
        _DENSITY,
        _semicircle,
        "The density of batch noise is right within {} of its peak. In print a root of P is missing.",
        _of_the_peak,
        judged=(f"granziol2022/universal-semicircle{PRINTED}",),
    ),
)
