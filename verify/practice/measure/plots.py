"""Pictures of a measurement: spectra of both matrices, the loss along an eigenvector, single samples, layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from verify.page import wording
from verify.page.canvas import draw_law, draw_points
from verify.page.drawing import shorten
from verify.page.theme import PALETTE
from verify.practice.measure.batches import MiniBatches
from verify.practice.measure.measurement import (
    Eigenvalue,
    LossLine,
    Matrix,
    Measurement,
    SampleNoise,
)
from verify.practice.page_plots import PagePlot, fit_axes
from verify.results.lines import spans_decades

_STYLES = {"H": (PALETTE["theory"], "o", "Hessian H"), "G": (PALETTE["nets"], "s", "Gauss-Newton G")}
"""Colour, mark and full name of each matrix."""

_BINS = 16
"""Bars of a histogram of mini-batches."""

_BELOW = 0.1
"""Lowest density shown, as a share of what one eigenvalue alone makes."""


def measurement_plots(found: Measurement) -> list[PagePlot]:
    """Pictures of the spectrum, the loss and single samples; what was not measured is left out."""
    drawn = list[PagePlot]()
    smeared = [
        f"{wording.numeral(matrix.density.width, 2)} ({name})"
        for name, matrix in _matrices(found)
        if matrix.density is not None
    ]
    if smeared:
        caption = f"Ticks: eigenvalues found. The line smears each by {' or '.join(smeared)}."
        drawn.append(PagePlot("Spectral density", partial(_densities, found=found), caption))
    caption = "Bars: bound on the error. Hollow: not converged."
    drawn.append(PagePlot("Largest eigenvalues", partial(draw_eigenvalues, found=found), caption))
    for line in found.lines[:1]:
        caption = "v₁: first eigenvector of H. Dots: the loss. Line: its gradient and curvature alone."
        drawn.append(PagePlot("Loss along v₁", partial(_line, line=line), caption))
    first = found.hessian.top[0]
    if found.noise is not None:
        caption = (
            f"Curvature of each sample along v₁. Line: the mean, λ₁(H) = {wording.numeral(first.value)}."
        )
        drawn.append(PagePlot("Single samples", partial(_histogram, noise=found.noise, first=first), caption))
    if found.batches is not None:
        caption = "λ₁ of batches. Mark: mean for G by theory, with 8 of 10 batches. Line: λ₁(H)."
        title = f"Mini-batches of {found.batches.size}"
        drawn.append(PagePlot(title, partial(_batches, drawn=found.batches, first=first), caption))
    return drawn


def layer_plots(found: Measurement) -> list[PagePlot]:
    """Pictures of the largest eigenvalue of each layer and of its share of the squared Frobenius norm."""
    names = [shorten(layer.name, 18) for layer in found.layers]
    largest = [(layer.largest.value, layer.largest.bound) for layer in found.layers]
    shares = [(layer.share.value, layer.share.error) for layer in found.layers]
    titles = {
        "Largest eigenvalue of the layer’s block": largest,
        "Share of the squared Frobenius norm": shares,
    }
    return [
        PagePlot(title, partial(_bars, names=names, pairs=pairs), bars=names)
        for title, pairs in titles.items()
    ]


def draw_eigenvalues(axes: Axes, found: Measurement) -> None:
    """The top eigenvalues of both matrices by rank."""
    values = [each.value for _, matrix in _matrices(found) for each in matrix.top]
    ranks = np.arange(1.0, len(found.hessian.top) + 1)
    fit_axes(axes, ("rank", ranks), ("eigenvalue", values), "y" * spans_decades(values))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    for name, matrix in _matrices(found):
        colour, mark, _ = _STYLES[name]
        for rank, each in zip(ranks, matrix.top, strict=True):
            axes.errorbar(
                rank, each.value, each.bound, fmt=mark, ms=4, color=colour, elinewidth=1.1,
                mfc=colour if each.converged else PALETTE["paper"],
            )  # fmt: skip
    _name_matrices(axes)


def _matrices(found: Measurement) -> list[tuple[str, Matrix]]:
    return [("H", found.hessian), ("G", found.gauss_newton)]


def _name_matrices(axes: Axes) -> None:
    for k, (colour, _, name) in enumerate(_STYLES.values()):
        axes.annotate(
            name, (1, 1), (0, -12 * k), "axes fraction", "offset points", color=colour, fontsize=9.5, ha="right",
            va="top",
        )  # fmt: skip


def _densities(axes: Axes, found: Measurement) -> None:
    drawn = [(name, matrix, matrix.density) for name, matrix in _matrices(found)]
    known = [(name, matrix, seen) for name, matrix, seen in drawn if seen is not None]
    alone = [1 / (found.parameters * math.sqrt(2 * math.pi) * seen.width) for *_, seen in known]
    low, high = _BELOW * min(alone), 3 * max([*alone, *(max(seen.value) for *_, seen in known)])
    fit_axes(axes, ("eigenvalue", [seen.x for *_, seen in known]), ("density", [low, high]), "y")
    for k, (name, matrix, seen) in enumerate(known):
        x, value, colour = np.array(seen.x), np.array(seen.value), _STYLES[name][0]
        error = np.array(seen.standard_error) + np.array(seen.truncation)
        band = np.maximum(value - error, low), np.maximum(value + error, low)
        axes.fill_between(x, *band, color=colour, alpha=0.25, lw=0)
        axes.plot(x, np.where(value > low, value, np.nan), color=colour, lw=1.3)
        lowest = [] if matrix.lowest is None else [matrix.lowest]
        marked = [each.value for each in (*matrix.top, *lowest)]
        heights = np.full(len(marked), 0.05 + 0.07 * k)
        axes.plot(
            marked, heights, ls="", marker="|", ms=6, color=colour, transform=axes.get_xaxis_transform()
        )
    _name_matrices(axes)


def _line(axes: Axes, *, line: LossLine) -> None:
    seen = [math.nan if each is None else each for each in line.loss]
    fit_axes(axes, ("distance along v₁", line.distance), ("loss", [seen, line.parabola]))
    draw_law(axes, line.distance, line.parabola)
    draw_points(axes, line.distance, seen, seen, seen, size=3.0)


def _histogram(axes: Axes, noise: SampleNoise, first: Eigenvalue) -> None:
    edges, counts = np.array(noise.edges), np.array(noise.counts)
    many = bool(counts.max() > 30)
    fit_axes(axes, ("$v_1^T H_i v_1$", edges), ("samples", [0.6 if many else 0, counts.max()]), "y" * many)
    axes.bar(
        edges[:-1], counts, np.diff(edges), align="edge", color=PALETTE["band"], ec=PALETTE["theory"], lw=0.6
    )
    axes.axvline(first.value, color=PALETTE["ink"], lw=1.2)


def _batches(axes: Axes, drawn: MiniBatches, first: Eigenvalue) -> None:
    colours = [style[0] for style in _STYLES.values()]
    counts, edges, _ = axes.hist(np.array(drawn.pairs), _BINS, histtype="step", color=colours)
    top = 1.2 * np.max(counts)
    fit_axes(axes, ("largest eigenvalue of a batch", [*edges, first.value]), ("batches", [0, top]))
    axes.axvline(first.value, color=PALETTE["ink"], lw=1.2)
    if drawn.law:
        (mean, _), low, high = drawn.law.mean, drawn.law.low, drawn.law.high
        axes.errorbar(mean, top, xerr=[[mean - low], [high - mean]], fmt="s", ms=4, color=colours[1])
    _name_matrices(axes)


def _bars(axes: Axes, *, names: Sequence[str], pairs: Sequence[tuple[float, float]]) -> None:
    values, errors = np.array(pairs).T
    places = np.arange(len(names))[::-1]
    fit_axes(axes, ("", [0.0, *(values - errors), *(values + errors)]), ("", [-0.4, len(names) - 0.6]))
    axes.barh(places, values, height=0.6, color=PALETTE["band"], ec=PALETTE["theory"], lw=0.6)
    axes.errorbar(values, places, xerr=errors, ls="", color=PALETTE["ink"], elinewidth=1.1)
    axes.set_yticks(places, names)
