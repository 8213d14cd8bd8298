"""Pictures of a measurement: the densities of both matrices, their top eigenvalues, and the samples along the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from verify.page import wording
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import Panel, inches, shorten, stack
from verify.page.theme import PALETTE, STYLE
from verify.practice.measure.measurement import (
    Eigenvalue,
    LossLine,
    Matrix,
    Measurement,
    Number,
    SampleNoise,
    SmearedDensity,
)
from verify.results.lines import spans_decades

_COLOURS = {"Hessian": PALETTE["theory"], "Gauss-Newton matrix": PALETTE["disagrees"]}
_MARKS = {"Hessian": "o", "Gauss-Newton matrix": "s"}
_WIDTH = 6.2
_BELOW = 0.1
"""Lowest density shown, as a share of what one eigenvalue alone makes."""


def density_figure(found: Measurement) -> Figure | None:
    """Spectral density of both matrices with their standard errors, the top eigenvalues marked; None if both are 0."""
    panels = [
        _panel(
            2.0,
            lambda axes, name=name, matrix=matrix, seen=seen: _density(
                axes, name, matrix, seen, found.parameters
            ),
            _density_note(seen),
        )
        for name, matrix in _matrices(found)
        if (seen := matrix.density) is not None
    ]
    return (
        _figure(panels, "Spectral density of the Hessian and of the Gauss-Newton matrix") if panels else None
    )


def eigenvalue_figure(found: Measurement) -> Figure:
    """The top eigenvalues of both matrices by rank, with the bounds on their errors."""
    note = "bars: bound on the error, where it is wider than the mark; hollow: not converged"
    panel = _panel(2.2, lambda axes: draw_eigenvalues(axes, found), note)
    return _figure([panel], "Top eigenvalues of the Hessian and of the Gauss-Newton matrix")


def noise_figure(noise: SampleNoise, first: Eigenvalue) -> Figure:
    """Figure of the curvature of single samples along the first eigenvector."""
    note = "line: mean over the samples, the first eigenvalue of the Hessian"
    panel = _panel(1.9, lambda axes: _histogram(axes, noise, first), note)
    return _figure([panel], "Curvature of single samples along the first eigenvector")


def line_figure(found: Measurement) -> Figure | None:
    """The loss along the first eigenvectors of the Hessian, and the parabola there; None without any."""
    panels = [_panel(1.9, partial(_line, k=k, line=line), "dashed: gradient and curvature alone")
              for k, line in enumerate(found.lines, start=1)]  # fmt: skip
    return _figure(panels, "Loss along the first eigenvectors of the Hessian") if panels else None


def layer_figure(found: Measurement) -> Figure | None:
    """Largest eigenvalue of each layer, and its share of the squared Frobenius norm; None where not measured."""
    if not found.layers:
        return None
    height = 0.9 + 0.22 * len(found.layers)
    panels = [
        _panel(height, partial(_by_layer, found=found, what="largest"), ""),
        _panel(height, partial(_by_layer, found=found, what="share"), "the rest lies between layers"),
    ]
    return _figure(panels, "The Hessian layer by layer")


def series_figure(found: Sequence[tuple[float, Measurement]]) -> Figure:
    """Curvature through training: loss, first eigenvalues, excess of positive curvature."""
    at, made = zip(*found, strict=True)
    firsts = [
        (name, [m.top[0].value for m in matrices], [m.top[0].bound for m in matrices])
        for name, matrices in (("Hessian", [m.hessian for m in made]),
                               ("Gauss-Newton matrix", [m.gauss_newton for m in made]))
    ]  # fmt: skip
    each, none = [m.hessian.excess or _NONE for m in made], [0.0] * len(made)
    panels = [
        _panel(1.7, partial(_through, at=at, rows=[("", [m.loss.value for m in made], none)], title="loss"), ""),
        _panel(2.1, partial(_through, at=at, rows=firsts, title="first eigenvalue; 2 over it is the rate at which"
               " full gradients turn unstable"), ""),
        _panel(1.7, partial(_through, at=at, rows=[("", [e.value for e in each], [e.error for e in each])],
               title="trace over Frobenius norm of the Hessian"), "bars: standard error"),
    ]  # fmt: skip
    return _figure(panels, "Curvature through training")


_NONE = Number.exact(math.nan)
"""Excess of a matrix that is zero."""

Rows = Sequence[tuple[str, list[float], list[float]]]
"""Name, values, errors."""


def _through(axes: Axes, *, at: Sequence[float], rows: Rows, title: str) -> None:
    for name, values, errors in rows:
        colour = _COLOURS.get(name, PALETTE["theory"])
        axes.errorbar(
            at, values, yerr=errors, color=colour, lw=1.3, marker=_MARKS.get(name, "o"), ms=4, capsize=2,
            label=name or None,
        )  # fmt: skip
    shown = [value for _, values, _ in rows for value in values]
    _heights(axes, all(value > 0 for value in shown) and spans_decades(shown))
    plain_ticks(axes.xaxis)
    axes.set_title(title)
    axes.set_xlabel("checkpoint, by the number in its name")
    if len(rows) > 1:
        axes.legend(frameon=False, fontsize=8.0, labelcolor=PALETTE["muted"])


def _heights(axes: Axes, logarithmic: bool) -> None:
    if logarithmic:
        axes.set_yscale("log")
        decades(axes.yaxis, *axes.get_ylim())
    else:
        plain_ticks(axes.yaxis)


def _figure(panels: list[Panel], label: str) -> Figure:
    with mpl.rc_context(STYLE):
        return stack(panels, label, "", width=72 * _WIDTH)


def _panel(height: float, draw: Callable[[Axes], None], notes: str) -> Panel:
    return inches(height, draw, left=0.82, notes=notes)


def _matrices(found: Measurement) -> list[tuple[str, Matrix]]:
    return [("Hessian", found.hessian), ("Gauss-Newton matrix", found.gauss_newton)]


def _density(axes: Axes, name: str, matrix: Matrix, seen: SmearedDensity, parameters: int) -> None:
    x, value = np.array(seen.x), np.array(seen.value)
    error = np.array(seen.standard_error) + np.array(seen.truncation)
    alone = 1 / (parameters * math.sqrt(2 * math.pi) * seen.width)
    low, colour = _BELOW * alone, _COLOURS[name]
    axes.fill_between(
        x, np.maximum(value - error, low), np.maximum(value + error, low), color=colour, alpha=0.3, lw=0
    )
    axes.plot(x, np.maximum(value, low), color=colour, lw=1.3)
    marked = [each.value for each in (*matrix.top, *_lowest(matrix))]
    axes.plot(marked, np.full(len(marked), low * 1.6), ls="", marker="|", ms=9, mew=1.1, color=PALETTE["ink"])
    axes.set_yscale("log")
    axes.set_ylim(low, 3 * float(value.max(initial=alone)))
    decades(axes.yaxis, *axes.get_ylim())
    axes.set_xlim(float(x[0]), float(x[-1]))
    plain_ticks(axes.xaxis)
    axes.set_title(f"density of eigenvalues, {name}")
    axes.set_xlabel("eigenvalue")


def _density_note(seen: SmearedDensity) -> str:
    width, probes = wording.numeral(seen.width, 2), f"{seen.probes} probes of {seen.steps} steps"
    if not seen.probes:
        return f"all {seen.steps} eigenvalues, each smeared by {width}"
    return (
        f"each eigenvalue smeared by {width}; bars: the eigenvalues found\n"
        f"band: standard error of {probes}, and what the last quarter of the steps changes"
    )


def _line(axes: Axes, *, k: int, line: LossLine) -> None:
    at, seen = np.array(line.distance), np.array([math.nan if y is None else y for y in line.loss])
    axes.plot(at, seen, color=PALETTE["theory"], lw=1.5, marker="o", ms=3)
    axes.plot(at, line.parabola, color=PALETTE["muted"], lw=1.1, ls="--")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.set_title(f"loss along eigenvector {k}, curvature {wording.numeral(line.curvature, 4)}")
    axes.set_xlabel("distance from the parameters as they are")


def _by_layer(axes: Axes, *, found: Measurement, what: str) -> None:
    places = np.arange(len(found.layers))[::-1]
    if what == "largest":
        values, errors = zip(
            *((layer.largest.value, layer.largest.bound) for layer in found.layers), strict=True
        )
        title = "largest eigenvalue of the layer's block"
    else:
        values, errors = zip(*((layer.share.value, layer.share.error) for layer in found.layers), strict=True)
        title = "share of the squared Frobenius norm"
    axes.barh(places, values, height=0.6, color=PALETTE["band"], ec=PALETTE["theory"], lw=0.6)
    axes.errorbar(values, places, xerr=errors, ls="", color=PALETTE["ink"], elinewidth=1.0, capsize=2)
    axes.set_yticks(places, [shorten(layer.name, 18) for layer in found.layers])
    axes.set_xlim(left=min(0.0, *values))
    plain_ticks(axes.xaxis)
    axes.set_title(title)


def _lowest(matrix: Matrix) -> list[Eigenvalue]:
    return [] if matrix.lowest is None else [matrix.lowest]


def draw_eigenvalues(axes: Axes, found: Measurement) -> None:
    """The top eigenvalues of both matrices by rank."""
    shown = [each.value for _, matrix in _matrices(found) for each in matrix.top]
    for place, (name, matrix) in enumerate(_matrices(found)):
        ranks = np.arange(1.0, len(matrix.top) + 1) + 0.14 * (place - 0.5)
        _bars(axes, ranks, matrix.top, name)
    _heights(axes, spans_decades(shown))
    axes.set_xlim(0.4, len(found.hessian.top) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rank")
    axes.set_title("top eigenvalues")
    axes.legend(frameon=False, fontsize=8.0, labelcolor=PALETTE["muted"])
    axes.grid(axis="y")


def _bars(axes: Axes, ranks: NDArray[Any], top: tuple[Eigenvalue, ...], name: str) -> None:
    values, bounds = np.array([each.value for each in top]), np.array([each.bound for each in top])
    colour = _COLOURS[name]
    axes.errorbar(ranks, values, yerr=bounds, ls="", color=colour, elinewidth=1.2, capsize=3)
    for converged in (True, False):
        chosen = np.array([each.converged is converged for each in top])
        axes.plot(
            ranks[chosen], values[chosen], ls="", marker=_MARKS[name], ms=5, mew=1.2, mec=colour,
            mfc=colour if converged else PALETTE["paper"], label=name if converged else None,
        )  # fmt: skip


def _histogram(axes: Axes, noise: SampleNoise, first: Eigenvalue) -> None:
    edges, counts = np.array(noise.edges), np.array(noise.counts)
    axes.bar(
        edges[:-1], counts, np.diff(edges), align="edge", color=PALETTE["band"], ec=PALETTE["theory"], lw=0.6
    )
    axes.axvline(first.value, color=PALETTE["ink"], lw=1.2)
    if counts.max() > 30:
        axes.set_ylim(0.5, 2.0 * counts.max())
    _heights(axes, counts.max() > 30)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("v₁′ Hᵢ v₁")
    axes.set_title("number of samples by their curvature along v₁")
