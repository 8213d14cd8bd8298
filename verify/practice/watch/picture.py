"""Pictures of the records of a watcher: loss, eigenvalues with their limit, and noise scale against the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from verify.page.axes import plain_ticks
from verify.page.canvas import name_lines
from verify.page.theme import PALETTE
from verify.practice.page_plots import ROOM, PagePlot, figure_of, fit_axes
from verify.practice.watch.record import CurvatureRecord
from verify.results.lines import spans_decades

Records = Sequence[CurvatureRecord]


def watch_figure(records: Records) -> Figure:
    """Return one figure of all pictures."""
    pictures = watch_plots(records)
    took = f"measuring took {100 * records[-1].share:.1f} % of the time" if len(records) > 1 else ""
    return figure_of(pictures, "Curvature through training", took)


def watch_plots(records: Records) -> list[PagePlot]:
    """The largest eigenvalues with their limit, the loss, and the noise scale where it was measured.

    Raises
    ------
    ValueError
        If there is no record.
    """
    if not records:
        raise ValueError("records must hold at least one measurement, got none")
    pictures = [
        PagePlot(
            "Largest eigenvalue of the Hessian", partial(draw_top_eigenvalues, records=records), right=ROOM
        )
    ]
    if any(each.preconditioned is not None for each in records):
        title = "Largest eigenvalue, scaled as the steps of the optimizer"
        pictures.append(PagePlot(title, partial(_preconditioned, records=records), right=ROOM))
    pictures.append(
        PagePlot("Loss of the batch, after its step", partial(_draw_field, records=records, name="loss"))
    )
    if any(each.noise_scale is not None for each in records):
        title = "Gradient noise scale, in samples"
        pictures.append(PagePlot(title, partial(_draw_field, records=records, name="noise_scale")))
    return pictures


def draw_top_eigenvalues(axes: Axes, records: Records) -> None:
    """Largest eigenvalues of the Hessian with their limit."""
    batches = {"colour": "nets", "error": "mean_batch_error"}
    _line(axes, records, "eigenvalue", "fixed samples", error="error")
    _line(axes, records, "mean_batch_eigenvalue", "mean of batches", **batches)
    _line(axes, records, "batch_eigenvalue", colour="nets", ls="", marker="s")
    _limit(axes, records, "eigenvalue")
    _finish(axes, records, "eigenvalue")


def _preconditioned(axes: Axes, records: Records) -> None:
    _line(axes, records, "preconditioned", "fixed samples", error="preconditioned_error")
    _limit(axes, records, "preconditioned")
    _finish(axes, records, "eigenvalue")


def _draw_field(axes: Axes, records: Records, name: str) -> None:
    _line(axes, records, name)
    _finish(axes, records, name.replace("_", " "))


def _limit(axes: Axes, records: Records, of: str) -> None:
    notes = {each.limit_note for each in records if each.limit_of == of}
    label = notes.pop() if len(notes) == 1 else "limit of the rate"
    own = [each if each.limit_of == of else replace(each, limit=None) for each in records]
    _line(axes, own, "limit", label, colour="muted", ls="--", marker="")


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


def _finish(axes: Axes, records: Records, name: str) -> None:
    shown = [float(y) for line in axes.get_lines() for y in np.ravel(line.get_ydata())]
    known = [y for y in shown if math.isfinite(y)]
    fit_axes(
        axes,
        ("step", [each.step for each in records]),
        (name, known),
        "y" * bool(known and spans_decades(known)),
    )
    plain_ticks(axes.xaxis, whole=True)
    for place, each in enumerate(record for record in records if record.diverged):
        axes.axvline(each.step, color=PALETTE["broken"], lw=1.0, label=None if place else "diverged")
    name_lines(axes)
