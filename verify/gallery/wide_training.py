"""Figure 2 of Karakida, Akaho and Amari (2019): how training ends, by width and learning rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap

from simulate.training import wide_training
from verify.claims.karakida2019.training import drawn_lines, student_and_targets
from verify.gallery.parts import HEAT, MEASURED, Setting, colour_key, curve
from verify.page.axes import decades
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["training"]

LAW: dict[str, Any] = {"activation": "relu", "depth": 3, "weight_variance": 4.0, "bias_variance": 1.0}
WIDTHS = np.array([12, 25, 50, 100])
SAMPLES, STEPS = 200, 200
RATES = {False: np.geomspace(1e-3, 1.0, 13), True: np.geomspace(1e-2, 10.0, 13)}
"""Without mean subtraction, and with it."""

LEVELS: Floats = np.logspace(-1, 4, 11)
OVERFLOW = "#a3a9b2"


class _Runs(NamedTuple):
    """Last and largest losses, (widths, rates), and at each width the realised limit and the drawn line."""

    final: Floats
    peak: Floats
    realised: Floats
    drawn: Floats


def training(setting: Setting) -> list[Panel]:
    """Losses after training and on the way, and the limits beside them."""
    plain, subtracted = (_runs(setting, less) for less in (False, True))
    return [
        _panel(plain, plain.final, RATES[False], "Final loss"),
        _panel(plain, plain.peak, RATES[False], "Peak loss"),
        _panel(subtracted, subtracted.final, RATES[True], "Final loss, mean subtraction"),
        _panel(subtracted, subtracted.peak, RATES[True], "Peak loss, mean subtraction", last=True),
    ]


def _runs(setting: Setting, subtracted: bool) -> _Runs:
    rows = [_at_width(setting, int(width), subtracted) for width in WIDTHS]
    return _Runs(*(np.array(column) for column in zip(*rows, strict=True)))


def _at_width(setting: Setting, width: int, subtracted: bool) -> tuple[Floats, Floats, float, float]:
    import torch

    law = {**LAW, "samples": SAMPLES}
    student, targets = student_and_targets(setting.block(f"training {width}", 1), law, width)
    rates = torch.as_tensor(RATES[subtracted], device=targets.device)[None]
    run = wide_training.descend(
        student, LAW["activation"], targets, rates=rates, steps=STEPS, subtracted=subtracted
    )
    top = float(wide_training.sharpness(student, LAW["activation"], subtracted=subtracted)[0])
    losses = (run.final[0].cpu().numpy(), run.peak[0].cpu().numpy())
    return *losses, 2 / top, drawn_lines(law, width)[subtracted]


def _panel(runs: _Runs, losses: Floats, rates: Floats, title: str, *, last: bool = False) -> Panel:
    def draw(axes: Axes) -> None:
        colours = ListedColormap(HEAT(np.linspace(0, 0.85, len(LEVELS) - 1))).with_extremes(bad=OVERFLOW)
        inside = np.clip(np.where(np.isfinite(losses), losses, np.nan), LEVELS[0], LEVELS[-1] * 0.999)
        mapped = axes.pcolormesh(
            _edges(WIDTHS), _edges(rates), np.ma.masked_invalid(inside).T, cmap=colours,
            norm=BoundaryNorm(LEVELS, colours.N), zorder=1,
        )  # fmt: skip
        curve(axes, WIDTHS, runs.drawn, "", colour=PALETTE["disagrees"])
        axes.plot(WIDTHS, runs.realised, "D", ms=4.5, mew=0.8, mec=PALETTE["paper"], color=MEASURED, zorder=5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*_edges(WIDTHS)[[0, -1]])
        axes.set_ylim(*_edges(rates)[[0, -1]])
        decades(axes.xaxis, *axes.get_xlim())
        decades(axes.yaxis, *axes.get_ylim())
        axes.set_ylabel("learning rate")
        axes.set_title(title)
        colour_key(axes, mapped, LEVELS)
        if last:
            axes.set_xlabel("width M")

    note = (
        f"one relu network (4, 1) a width, L = 3, T = {SAMPLES}, labels of a teacher, {STEPS} steps;\n"
        "grey: overflow; diamonds: 2 / largest eigenvalue at the start; orange: lines of\n"
        "figure 2, 2 / eq. (10) without and 2 / (ρ α (κ₁ − κ₂)) with mean subtraction"
    )
    return Panel(1.25, draw, bottom=0.5 if last else 0.22, notes=note if last else "")


def _edges(centres: Any) -> Floats:
    """Edges of cells around numbers that are evenly spaced in a logarithmic scale, or nearly so."""
    logs = np.log(centres)
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))
