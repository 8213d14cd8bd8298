"""Figure 13 of Vysogorets, Dawid and Kempe (2024): excess by Hutchinson's probes and by random projection."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from theory import gauss_newton
from verify.gallery.goldilocks.lenet import Lenet
from verify.gallery.goldilocks.parts import SECOND, THIRD, scale_axis
from verify.gallery.parts import Setting, curve, legend, mean_points
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel

__all__ = ["hutchinson"]

SAMPLES, DIM, FRAMES = 40, 50, 10
PROBES, GROUPS = 40, 4
"""Probes are used in groups, each an estimate of its own."""

ALPHAS: Floats = np.array([0.3, 0.55, 0.9, 1.5, 2.4, 4.0])
FINE: Floats = np.logspace(-0.75, 1, 29)


def hutchinson(setting: Setting) -> list[Panel]:
    """Excess of the Hessian of one network against scale: exact, by probes, by frames, and these corrected."""
    rng, *others = setting.block("hutchinson", FRAMES + 1).streams
    net = Lenet(rng, setting, SAMPLES)
    exact = np.array([net.norms(float(alpha)).excess_hessian for alpha in FINE])
    seen = np.array([net.frame_excess(other, DIM, ALPHAS) for other in others])
    probed = np.array([net.probe_excess(rng, PROBES, GROUPS, float(alpha)) for alpha in ALPHAS])

    def draw(axes: Axes) -> None:
        curve(axes, FINE, exact, "exact, full space")
        curve(axes, FINE, gauss_newton.projected_excess(exact, dim=DIM), f"seen in d = {DIM}, law", dash=0)
        mean_points(axes, ALPHAS, list(probed), f"{PROBES} probes")
        mean_points(axes, ALPHAS * 1.03, list(seen.T), f"frames, d = {DIM}", mark="s", colour=SECOND)
        mean_points(axes, ALPHAS * 0.97, list(_undone(seen).T), "frames, corrected", mark="^", colour=THIRD)
        scale_axis(axes, FINE)
        plain_ticks(axes.yaxis)
        axes.set_ylabel("exc(H)")
        axes.set_title("Excess of the Hessian: probes and frames")
        legend(axes, "upper right")

    note = (
        f"one LeNet-300-100 with {SAMPLES} images; means of {GROUPS} estimates from {PROBES} probes each,\n"
        f"means of {FRAMES} frames; bars of two standard errors; corrected: the law undone"
    )
    return [Panel(2.3, draw, notes=note)]


def _undone(seen: Floats) -> Floats:
    """The excess r in full space of which r sqrt(d / (d + 1 + r^2)) is what is seen."""
    return seen * np.sqrt((DIM + 1) / (DIM - seen**2))
