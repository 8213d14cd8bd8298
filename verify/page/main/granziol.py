"""Main statements of Granziol et al. (2022)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from theory import outliers, rmt
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, draw_rival, dress
from verify.page.main.plot import PRINTED, MainPlot, MainRun
from verify.page.theme import PALETTE
from verify.results import PointOutcome

__all__ = ["PLOTS"]

_SPIKES = tuple(
    f"granziol2022/{name}" for name in ("theorem-4", "batch-sizes", "other-noise", "several-spikes")
)
"""Claims on eigenvalues above the threshold, in random models."""

_NETWORKS = {
    "granziol2022/real-batches": False,
    "granziol2022/large-batches": True,
    "beyond/wide-network-batches": True,
}
"""Observations of batches of networks: whether they have many parameters."""

_LARGE_BATCH = 128
"""Smallest batch for which section 8.2.1 expects Theorem 4 to hold on networks, within 30 %."""

_STRENGTH = r"$\lambda_1$ / $s$"


def _effective(batch: float, samples: float) -> float:
    """Effective batch size b = B / (1 - B/N)."""
    return batch / (1 - batch / samples)


def _spike(point: PointOutcome) -> tuple[float, float]:
    """Eigenvalue of the mean and scale s of the noise, in the names that each claim gives its parameters."""
    at = point.parameters
    if "eigenvalue" not in at:
        return at["spike" if "spike" in at else "spikes"], at["sigma"]
    return at["eigenvalue"], _scale(point)


def _scale(point: PointOutcome, *, batch: float = 0.0) -> float:
    """Scale s = sigma sqrt(P/b) of the noise of batches, or with another number for b."""
    at = point.parameters
    return at["sigma"] * math.sqrt(at["dim"] / (batch or _effective(at["batch_size"], at["dataset_size"])))


def _columns(found: Iterable[Iterable[float]]) -> NDArray[np.float64]:
    """Columns x, measured, lowest, highest of points in the order of x."""
    return np.array(sorted(map(tuple, found))).T


def _theorem_4(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(_STRENGTH, (0.4, 300), (1, 10, 100), logarithmic=True),
        Scale(r"$\lambda_1$′ / $\lambda_1$ − 1", (0.006, 30), (0.01, 0.1, 1, 10), logarithmic=True),
    )
    x = np.geomspace(0.4, 300, 400)
    law = outliers.additive_wigner(x, sigma=1.0).eigenvalue / x
    axes.fill_between(
        x, np.maximum(0.7 * law - 1, 1e-3), 1.3 * law - 1, color=PALETTE["band"], lw=0, zorder=0.5
    )
    draw_law(axes, x, law - 1)
    found: list[list[float]] = []
    for point in run.points(*_SPIKES):
        spike, scale = _spike(point)
        ends = sorted((point.lower / spike, point.upper / spike))
        found.append([abs(spike) / scale, *(v - 1 for v in (point.measured / spike, *ends))])
    for name, large in _NETWORKS.items():
        _networks(axes, run, name, large=large)
    draw_points(axes, *_columns(found))
    draw_label(axes, 0.46, 0.028, f"{len(found)} random\nmodels", "ink", linespacing=1.2)
    if any(name in run.observations for name in _NETWORKS):
        draw_label(axes, 4, 4.5, "small networks", "nets")
        draw_label(axes, 270, 1.1, "larger ones, $B$ ≥ 128", "nets", ha="right")
    draw_label(axes, 270, 0.012, "within 30 %", ha="right")


def _networks(axes: Axes, run: MainRun, name: str, *, large: bool) -> None:
    """Draw batches of networks, hollow outside the limit of the theorem: of few parameters or of small batches."""
    made = run.observations.get(name)
    for group in made.groups if made else ():
        sizes, found = run.columns(name, **group.parameters)
        if group.parameters["matrix"] != "hessian" or "strength" not in found:
            continue
        for hollow in (True, False):
            keep = (large & (sizes >= _LARGE_BATCH)) != hollow
            shift = [values[keep] - 1 for values in found["broadening"]]
            draw_points(axes, found["strength"][0][keep], *shift, networks=True, hollow=hollow)


def _theorem_7(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"$\lambda_1$ / $\beta\sigma^2$", (1.2, 30), (1.5, 3, 10, 30), logarithmic=True),
        Scale(r"($\lambda_1$′ − $\lambda_1$) / $\sigma^2$", (0.9, 2.95), (1, 1.5, 2, 2.5)),
    )
    axes.axhline(1, color=PALETTE["rule"], lw=0.8, zorder=1)
    x = np.geomspace(1.3, 30, 400)
    draw_law(axes, x, x / (x - 1))
    found: list[list[float]] = []
    points = run.points("granziol2022/theorem-7-ratios")
    for point in points:
        at = point.parameters
        spike, variance = at["spike"], at["variance"]
        shifts = ((v - spike) / variance for v in (point.measured, point.lower, point.upper))
        found.append([spike * at["samples"] / (at["dim"] * variance), *shifts])
    draw_points(axes, *_columns(found))
    ratio = min(point.parameters["dim"] / point.parameters["samples"] for point in points)
    x = np.linspace(1 + ratio**-0.5, 1 + 1 / ratio, 2)
    draw_rival(axes, x, 2 * (1 + ratio) - ratio * x)
    draw_label(axes, 4.6, 1.78, f"as stated, $\\beta$ = {ratio:.2g}")
    draw_label(axes, 2.25, 2.45, f"{len(found)} spikes, $\\beta$ from {ratio:.2g} to 19", "ink")


def _theorem_10(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(_STRENGTH, (0, 5.6), range(6)),
        Scale("squared overlap", (0, 1.04), (0, 0.5, 1)),
    )
    x = np.linspace(0.0, 5.6, 600)
    draw_law(axes, x, outliers.additive_wigner(x, sigma=1.0).overlap)
    draw_rival(axes, [1, 2, 2], [0, 0, 0.75], lw=1.6)
    draw_label(axes, 2.12, 0.2, "Lemma 11 as printed:\n0 up to $2s$", linespacing=1.25)
    points = run.points("granziol2022/theorem-10")
    draw_points(
        axes,
        *_columns([p.parameters["eigenvalue"] / _scale(p), p.measured, p.lower, p.upper] for p in points),
    )


def _semicircle(axes: Axes, run: MainRun) -> None:
    """Density between the places where shares are judged: its intervals add those of both ends."""
    dress(
        axes,
        Scale("eigenvalue of the noise / $s$", (-2.6, 2.6), range(-2, 3)),
        Scale("density × $s$", (0, 0.37), (0, 0.1, 0.2, 0.3)),
    )
    x = np.linspace(-2, 2, 801)
    draw_law(axes, x, rmt.Semicircle(sigma=1.0).pdf(x))
    laws: defaultdict[str, list[PointOutcome]] = defaultdict(list)
    for point in run.points("granziol2022/semicircle"):
        laws[point.parameters["law"]].append(point)
    for k, points in enumerate(laws.values()):
        first = points[0]
        s = _scale(first)
        at = np.array([point.parameters["x"] for point in points]) / s
        share, low, high = np.array([[p.measured, p.lower, p.upper] for p in points]).T
        step = np.diff(at)
        density = [np.diff(share) / step, (low[1:] - high[:-1]) / step, (high[1:] - low[:-1]) / step]
        # every second step of each law, so that the two series do not hide each other
        draw_points(axes, ((at[1:] + at[:-1]) / 2)[k::2], *(v[k::2] for v in density), hollow=k > 0)
        wide = _scale(first, batch=first.parameters["batch_size"]) / s
        if not k:
            x = np.linspace(-2 * wide, 2 * wide, 801)
            draw_rival(axes, x, rmt.Semicircle(sigma=wide).pdf(x))
    draw_label(axes, 2.05, 0.215, "$B$ for $b$")
    draw_label(axes, 0, 0.1, "Gaussian elements,\nhollow: ±1", "ink", ha="center", linespacing=1.25)


PLOTS = (
    MainPlot(
        key="theorem-4",
        where="Granziol 2022 · Theorem 4",
        formula=r"\lambda_1' = \lambda_1 + \frac{P\sigma^2}{b\,\lambda_1}",
        target="granziol2022/theorem-4",
        judged=("granziol2022/theorem-4", "granziol2022/theorem-4-on-networks"),
        needs=_SPIKES,
        caption=lambda run: (
            f"Right within {run.closely(*_SPIKES)} in random models. "
            "Hollow squares are outside its limit of large P and B."
        ),
        draw=_theorem_4,
    ),
    MainPlot(
        key="theorem-7",
        where="Granziol 2022 · Theorem 7",
        formula=r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2}",
        target="granziol2022/theorem-7-ratios",
        judged=("granziol2022/theorem-7-ratios", f"granziol2022/theorem-7-ratios{PRINTED}"),
        needs=("granziol2022/theorem-7-ratios",),
        caption=lambda run: (
            f"Right within {run.closely('granziol2022/theorem-7-ratios')} where an outlier exists. "
            "The stated threshold is too high."
        ),
        draw=_theorem_7,
    ),
    MainPlot(
        key="theorem-10",
        where="Granziol 2022 · Theorem 10",
        formula=r"(\phi_1' \cdot \phi_1)^2 = 1 - \frac{s^2}{\lambda_1^2}",
        target="granziol2022/theorem-10",
        judged=("granziol2022/theorem-10", f"granziol2022/theorem-10{PRINTED}"),
        needs=("granziol2022/theorem-10",),
        caption=lambda run: (
            f"Overlap of eigenvectors, right within {run.closely('granziol2022/theorem-10')}. "
            "Lemma 11 prints twice the threshold."
        ),
        draw=_theorem_10,
    ),
    MainPlot(
        key="semicircle",
        where="Granziol 2022 · Theorem 3",
        formula=r"p(\lambda) = \frac{\sqrt{4s^2 - \lambda^2}}{2\pi s^2},\ s = \sigma\sqrt{P/b}",
        target="granziol2022/semicircle",
        judged=("granziol2022/semicircle", f"granziol2022/universal-semicircle{PRINTED}"),
        needs=("granziol2022/semicircle",),
        caption=lambda run: (
            f"Spectrum of batch noise: shares are right within {run.closely('granziol2022/semicircle')}. "
            "In print a root of P is missing."
        ),
        draw=_semicircle,
    ),
)
