"""Main plots of two papers: lines pass through predictions, no text is cut, intervals are seen, captions fit."""

from __future__ import annotations

import dataclasses
import itertools
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox

from tests.verify.page.full_size import rows_of
from tests.verify.results.sample_observations import observed
from tests.verify.results.sample_results import sample
from theory import gauss_newton, softmax
from verify.claims import registry
from verify.judging.estimands import components
from verify.model import Claim
from verify.page.canvas import HEIGHT, WIDTH
from verify.page.main import PLOTS, MainPlot, MainRun, draw_plot, karakida, vysogorets
from verify.page.theme import PALETTE
from verify.results import (
    Observed,
    ObservedColumn,
    ObservedGroup,
    ObservedRow,
    PointOutcome,
    ProfilePoint,
    Results,
    Row,
    Spread,
)

OURS = (*vysogorets.PLOTS, *karakida.PLOTS)
NAMES = {name.removesuffix(" [as our copy reads]") for plot in OURS for name in (*plot.judged, *plot.needs)}
CAPTION = 12.5
"""Size of a caption, in CSS pixels."""

each_plot = pytest.mark.parametrize("plot", OURS, ids=lambda plot: plot.key)


# --- a run in which all is measured as predicted -----------------------------------------------------------------


@cache
def results(off: float = 0.0) -> Results:
    """Return a run whose measurements are so far off what is predicted, as a fraction of it."""
    rows = [
        _measured(row, claim, off)
        for claim in registry.claims()
        if claim.id in NAMES
        for row in rows_of(claim)
    ]
    return dataclasses.replace(sample(), rows=rows, observations=[_scales(off)])


def _measured(row: Row, claim: Any, off: float) -> Row:
    if not isinstance(claim, Claim):
        return dataclasses.replace(row, points=[dataclasses.replace(p, measured=off) for p in row.points])
    parts = [part for at in claim.experiment.points for part in components(claim, at)]
    predicted = map(claim.prediction, parts)
    return dataclasses.replace(
        row, points=[_at(*pair, off) for pair in zip(row.points, predicted, strict=True)]
    )


def _at(point: PointOutcome, predicted: float, off: float) -> PointOutcome:
    value = predicted * (1 + off)
    ends = {
        "measured": value,
        "lower": value - 0.02 * abs(value) - 0.02,
        "upper": value + 0.02 * abs(value) + 0.02,
    }
    widths = point.parameters.get("widths", ())
    profile = [
        ProfilePoint(x=m, measured=m, lower=0.98 * m, upper=1.02 * m, predicted=m)
        for m in (widths if isinstance(widths, tuple) else ())
    ]
    return dataclasses.replace(point, predicted=predicted, profile=profile, **ends)


def _scales(off: float) -> Observed:
    """Two networks in one: logits of a few samples, scaled."""
    at = np.geomspace(0.01, 100, 15)
    logits = np.random.default_rng(5).standard_normal((30, 10))
    gammas = softmax.batch_gammas_from_logits(logits, temperature=at**-3)
    fitted = {"dim": 50, "sigma_c": 1.0, "sigma_e": 1.4}
    excess = gauss_newton.finite_sample_excess(*gammas, **fitted) * (1 + off)
    scores = {
        "excess_g": excess,
        "excess_h": 3.0 * np.exp(-(np.log(at) ** 2)),
        "finite_sample": np.full(15, 1 / (1 + off)),
        "gamma_mean": gammas.mean,
        "gamma_separate": gammas.separate,
        "spread": np.full(15, 1.4),
    }
    lines = [
        ObservedRow(at=float(a), cells=[Spread(mean=v, lowest=0.95 * v, highest=1.05 * v) for v in values])
        for a, *values in zip(at, *scores.values(), strict=True)
    ]
    columns = [ObservedColumn(score=score, heading=score, ratio=score == "finite_sample") for score in scores]
    groups = [ObservedGroup(parameters={"network": vysogorets.NETWORK, "dim": 50}, rows=lines)]
    return observed(vysogorets.SCALES, columns=columns, groups=groups)


@cache
def drawn(plot: MainPlot, off: float = 0.0) -> Figure:
    figure = draw_plot(plot, MainRun(results(off)))
    figure.set_dpi(72)  # one pixel is one point
    return figure


# --- what is seen of it ------------------------------------------------------------------------------------------


def pixels(line: Line2D) -> np.ndarray[Any, Any]:
    """Vertices of a line in points, which are CSS pixels of the page."""
    return np.asarray(line.get_transform().transform(line.get_xydata()))


def laws(figure: Figure) -> list[np.ndarray[Any, Any]]:
    lines = figure.axes[0].get_lines()
    return [
        pixels(line)
        for line in lines
        if line.get_linestyle() != "None" and same_color(line.get_color(), PALETTE["theory"])
    ]


def points(figure: Figure) -> list[ErrorbarContainer]:
    return [c for c in figure.axes[0].containers if isinstance(c, ErrorbarContainer)]


def distance(at: np.ndarray[Any, Any], law: np.ndarray[Any, Any]) -> float:
    """Distance of a point from a line of many vertices."""
    start, end = law[:-1], law[1:]
    along = end - start
    share = np.clip(((at - start) * along).sum(1) / np.maximum((along**2).sum(1), 1e-12), 0, 1)
    return float(np.hypot(*(start + share[:, None] * along - at).T).min())


def farthest(plot: MainPlot, off: float) -> float:
    """Largest distance of a filled mark from the nearest line, of what has a prediction."""
    figure = drawn(plot, off)
    marks = [c[0] for c in points(figure) if not same_color(c[0].get_markerfacecolor(), PALETTE["paper"])]
    if plot.key == "theorem-3-3":  # whether growth follows its line is no prediction of the exponent
        marks = marks[1:]
    return max(min(distance(at, law) for law in laws(figure)) for mark in marks for at in pixels(mark))


@each_plot
def test_lines_pass_through_the_predictions_of_the_table(plot: MainPlot) -> None:
    assert farthest(plot, 0.0) < 0.6


@each_plot
def test_a_measurement_that_is_off_is_off_its_line(plot: MainPlot) -> None:
    assert farthest(plot, 0.2) > 1.5


def boxes(figure: Figure) -> dict[str, Bbox]:
    """Extents of all texts, in points."""
    axes = figure.axes[0]
    (low_x, high_x), (low_y, high_y) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    ticks = [
        label
        for axis, low, high in ((axes.xaxis, low_x, high_x), (axes.yaxis, low_y, high_y))
        for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        if low <= at <= high
    ]
    return {
        f"{k} {t.get_text()}": t.get_window_extent()
        for k, t in enumerate([*axes.texts, *ticks])
        if t.get_text()
    }


@each_plot
def test_no_text_is_cut_or_on_another_one(plot: MainPlot) -> None:
    found = boxes(drawn(plot))

    whole = Bbox.from_bounds(-1, -1, WIDTH + 2, HEIGHT + 2)
    assert [
        name for name, box in found.items() if not (whole.contains(*box.min) and whole.contains(*box.max))
    ] == []
    assert [
        pair for pair in itertools.combinations(found, 2) if Bbox.intersection(*(found[p] for p in pair))
    ] == []


@each_plot
def test_no_label_is_on_a_law_or_a_mark(plot: MainPlot) -> None:
    figure = drawn(plot)
    labels = {t.get_text(): t.get_window_extent().padded(-1.5) for t in figure.axes[0].texts}
    marks = np.concatenate([pixels(c[0]) for c in points(figure)])
    dense = [
        np.stack([np.interp(np.linspace(0, len(law) - 1, 3000), range(len(law)), v) for v in law.T], 1)
        for law in laws(figure)
    ]

    for text, box in labels.items():
        assert not [at for at in np.concatenate([marks, *dense]) if box.contains(*at)], text


@pytest.mark.parametrize("key", ["theorem-2-2", "theorem-3-4"])
def test_intervals_reach_out_of_their_marks(key: str) -> None:
    (plot,) = (plot for plot in OURS if plot.key == key)
    found = points(drawn(plot))
    bars = [container[2][0] for container in found]
    reach = [np.ptp(b.get_transform().transform(ends)[:, 1]) for b in bars for ends in b.get_segments()]

    assert max(reach) > max(container[0].get_markersize() for container in found) + 1


# --- captions and marks ------------------------------------------------------------------------------------------


def length(text: str) -> float:
    """Length of a text in the widest font of the page, in CSS pixels."""
    return float(TextPath((0, 0), text, size=CAPTION).get_extents().width)


def lines_of(words: list[str]) -> int:
    """Number of lines that words fill, broken as a browser does."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if length(longer) <= WIDTH else [*lines, word]
    return len(lines)


@each_plot
def test_captions_have_one_number_and_two_lines(plot: MainPlot) -> None:
    caption = plot.caption(MainRun(results(0.002)))

    assert lines_of(caption.split(" ")) <= 2
    assert len(re.findall(r"[−\d.]*\d", re.sub(r"Eq\. \(\d+\)|S − 1", "", caption))) == 1


@pytest.mark.parametrize(
    ("key", "outcome"),
    [
        ("eq-8", "limits"),  # corrected
        ("zone", "seen"),
        ("gamma", "holds"),
        ("theorem-2-2", "limits"),  # a misprint
        ("theorem-3-3", "holds"),
        ("theorem-3-4", "holds"),
    ],
)
def test_marks_are_those_of_the_statement(key: str, outcome: str) -> None:
    run = MainRun(results())
    assert {plot.key: plot.outcome(run) for plot in PLOTS}[key] == outcome


@each_plot
def test_readings_that_count_are_in_the_registry(plot: MainPlot) -> None:
    run = MainRun(results())
    assert set(plot.judged) <= set(run.rows)


def test_no_plot_without_what_it_needs() -> None:
    made = results()
    old = dataclasses.replace(made.observations[0], columns=made.observations[0].columns[:3])
    run = MainRun(dataclasses.replace(made, rows=[], observations=[old]))
    assert [plot.key for plot in OURS if run.has(plot.needs)] == []
