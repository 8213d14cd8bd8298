"""Main statements of Granziol et al. (2022)."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from theory import outliers
from verify.page.canvas import Scale, draw_label, draw_law, draw_points, dress
from verify.page.main.plot import MainPlot, MainRun
from verify.results import PointOutcome

__all__ = ["PLOTS"]

_SPIKES = ("theorem-4", "batch-sizes", "outlier-map", "other-noise", "several-spikes")
"""Claims on eigenvalues above the threshold, in random models."""

_SPIKE_ROWS = tuple(f"granziol2022/{name}" for name in _SPIKES)


def _effective(batch: float, samples: float) -> float:
    """Effective batch size b = B / (1 - B/N)."""
    return batch / (1 - batch / samples)


def _spike(name: str, point: PointOutcome) -> tuple[float, float]:
    """Eigenvalue of the mean and scale s of the noise, in the names that each claim gives its parameters."""
    at = point.parameters
    if name == "outlier-map":
        spike = next(rival.value for rival in point.rivals if rival.name == "no broadening")
        return spike, spike / at["relative_spike"]
    if name in ("other-noise", "several-spikes"):
        return at["spike" if name == "other-noise" else "spikes"], at["sigma"]
    noise = at["sigma"] * math.sqrt(at["dim"] / _effective(at["batch_size"], at["dataset_size"]))
    return at["eigenvalue"], noise


def _theorem_4(axes: Axes, run: MainRun) -> None:
    dress(
        axes,
        Scale(r"$\lambda_1$ / $s$", (0.3, 20), (0.3, 1, 3, 10), logarithmic=True),
        Scale(r"($\lambda_1$′ − $\lambda_1$) / $s$", (0.1, 14), (0.1, 1, 10), logarithmic=True),
    )
    x = np.geomspace(0.3, 20, 400)
    draw_law(axes, x, outliers.additive_wigner(x, sigma=1.0).eigenvalue - x)
    found = []
    for name in _SPIKES:
        for point in run.points(f"granziol2022/{name}"):
            spike, scale = _spike(name, point)
            sign = math.copysign(1, spike)
            low, high = sorted((sign * point.lower, sign * point.upper))
            found.append(
                [abs(spike) / scale, *((v - abs(spike)) / scale for v in (sign * point.measured, low, high))]
            )
    draw_points(axes, *np.array(sorted(found)).T)
    draw_label(axes, 2.15, 0.23, f"{len(found)} random models", "ink", ha="right")


PLOTS = (
    MainPlot(
        key="theorem-4",
        where="Granziol 2022 · Theorem 4",
        formula=r"\lambda_1' = \lambda_1 + \frac{P\sigma^2}{b\,\lambda_1}",
        target="granziol2022/theorem-4",
        judged=("granziol2022/theorem-4", "granziol2022/theorem-4-on-networks"),
        needs=_SPIKE_ROWS,
        caption=lambda run: (
            f"Right within {run.closely(*_SPIKE_ROWS)} where noise has no preferred direction."
        ),
        draw=_theorem_4,
    ),
)
