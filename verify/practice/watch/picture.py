"""Picture of the records of a watcher: loss, eigenvalues with their limit, and noise scale against the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from verify.page.axes import decades, plain_ticks
from verify.page.drawing import Panel, inches, stack
from verify.page.theme import PALETTE, STYLE
from verify.practice.watch.record import CurvatureRecord
from verify.results.lines import spans_decades

_WIDTH = 6.2

Records = Sequence[CurvatureRecord]


def watch_figure(records: Records) -> Figure:
    """Loss on top; below it the largest eigenvalues with their limit; the noise scale, where it was measured.

    Raises
    ------
    ValueError
        If there is no record.
    """
    if not records:
        raise ValueError("records must hold at least one measurement, got none")
    panels = [
        _panel(1.5, lambda axes: _loss(axes, records)),
        _panel(2.5, lambda axes: draw_top_eigenvalues(axes, records), 0.35),
    ]
    if any(each.preconditioned is not None for each in records):
        panels.append(_panel(2.0, lambda axes: _preconditioned(axes, records), 0.35))
    if any(each.noise_scale is not None for each in records):
        panels.append(_panel(1.5, lambda axes: _noise(axes, records)))
    last = records[-1]
    with mpl.rc_context(STYLE):
        took = f" · measuring took {100 * last.share:.1f} % of the time" if len(records) > 1 else ""
        return stack(panels, "Curvature through training", f"losscurv{took}", 72 * _WIDTH)


def _panel(height: float, draw: Callable[[Axes], None], more: float = 0.0) -> Panel:
    return inches(height, draw, left=0.82, bottom=0.5 + more)


def _loss(axes: Axes, records: Records) -> None:
    _line(axes, records, "loss")
    _finish(axes, records, "loss of the batch, after its step")


def draw_top_eigenvalues(axes: Axes, records: Records) -> None:
    """Largest eigenvalues of the Hessian with their limit."""
    _line(axes, records, "eigenvalue", "λ₁(H), fixed samples", error="error")
    batches = {"colour": "disagrees", "error": "mean_batch_error"}
    _line(axes, records, "mean_batch_eigenvalue", "E λ₁(H_B), batches", marker="s", **batches)
    _line(axes, records, "batch_eigenvalue", colour="disagrees", ls="", marker=".")
    _limit(axes, records, "eigenvalue")
    _finish(axes, records, "largest eigenvalue of the Hessian")


def _preconditioned(axes: Axes, records: Records) -> None:
    _line(axes, records, "preconditioned", "fixed samples", error="preconditioned_error")
    _limit(axes, records, "preconditioned")
    _finish(axes, records, "largest eigenvalue, scaled as the steps of the optimiser")


def _noise(axes: Axes, records: Records) -> None:
    _line(axes, records, "noise_scale")
    _finish(axes, records, "gradient noise scale, in samples")


def _limit(axes: Axes, records: Records, of: str) -> None:
    notes = {each.limit_note for each in records if each.limit_of == of}
    label = notes.pop() if len(notes) == 1 else "limit of the rate"
    own = [each if each.limit_of == of else replace(each, limit=None) for each in records]
    _line(axes, own, "limit", label, colour="ink", ls="--", marker="")


def _line(
    axes: Axes,
    records: Records,
    name: str,
    label: str = "",
    *,
    colour: str = "theory",
    ls: str = "-",
    marker: str = "o",
    error: str = "",
) -> None:
    """A curve with gaps where there is nothing, and the band of its error."""
    at = np.array([float(each.step) for each in records])
    values = _numbers(records, name)
    if np.isnan(values).all():
        return
    if error:
        errors = np.nan_to_num(_numbers(records, error))
        axes.fill_between(at, values - errors, values + errors, color=PALETTE[colour], alpha=0.2, lw=0)
    axes.plot(at, values, color=PALETTE[colour], lw=1.3, ls=ls, marker=marker, ms=2.5, label=label or None)


def _numbers(records: Records, name: str) -> np.ndarray:
    found = [getattr(each, name) for each in records]
    return np.array([math.nan if each is None or not math.isfinite(each) else each for each in found])


def _finish(axes: Axes, records: Records, title: str) -> None:
    shown = [float(y) for line in axes.get_lines() for y in np.ravel(line.get_ydata())]
    positive = [y for y in shown if math.isfinite(y)]
    if positive and min(positive) > 0 and spans_decades(positive):
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.3, max(positive) * 1.3)
        decades(axes.yaxis, *axes.get_ylim())
    else:
        plain_ticks(axes.yaxis)
    for place, each in enumerate(record for record in records if record.diverged):
        axes.axvline(each.step, color=PALETTE["broken"], lw=1.0, label=None if place else "diverged")
    plain_ticks(axes.xaxis, whole=True)
    axes.set_title(title)
    axes.set_xlabel("steps of the optimiser")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(
            loc="upper left", bbox_to_anchor=(-0.02, -0.3 if axes.bbox.height < 1 else -0.22), ncols=3, frameon=False,
            fontsize=7.8, labelcolor=PALETTE["muted"], handlelength=2.2, columnspacing=1.4,
        )  # fmt: skip
