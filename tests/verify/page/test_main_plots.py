"""The main plots, drawn from a run that measures what its claims predict: lines, marks, intervals and texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from tests.verify.results.sample_observations import observed
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, row
from verify.claims import registry
from verify.judging.estimands import components
from verify.model import Claim
from verify.model.observation import Observation
from verify.page.canvas import WIDTH
from verify.page.main import PLOTS, MainRun, draw_plot
from verify.page.outcomes import HOLDS
from verify.page.theme import PALETTE
from verify.results import Observed, ObservedColumn, ObservedGroup, ObservedRow, Results, Row, Spread

OBSERVED: dict[str, dict[str, Callable[[int], float]]] = {
    "edge/full-batch-path": {
        "slow": lambda k: min(1.04, 0.3 + 0.1 * k),
        "fast": lambda k: min(1.1, 0.6 + 0.25 * k),
    },
    "granziol2022/real-batches": {"broadening": lambda k: 1 + 12 / 4**k, "strength": lambda k: 0.6 * 2**k},
    "granziol2022/large-batches": {
        "broadening": lambda k: 1.2 - 0.1 * k,
        "strength": lambda k: 100.0 + 80 * k,
    },
}
"""Scores of observations by the number of their line."""

KEYS = ("theorem-4", "theorem-7", "theorem-10", "semicircle", "edge", "catapult")
VISIBLE = ("semicircle", "edge")
"""Plots whose intervals are larger than their marks."""

plots = pytest.mark.parametrize("key", KEYS)


def as_predicted(claim: Claim) -> Row:
    """A row that measures what the claim predicts, with intervals of half its margin."""
    points: list[Any] = []
    for at in (part for known in claim.experiment.points for part in components(claim, known)):
        predicted = float(claim.prediction(at))
        margin = float(claim.margin(at) if callable(claim.margin) else claim.margin)
        margin *= abs(predicted) if claim.relative else 1
        points.append(point(plain(at), predicted, margin, predicted, margin / 2))
    return row(claim.id, points=points, margin=0.01, relative=claim.relative)


def plain(at: Point) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in at.items()}


@cache
def run() -> MainRun:
    """Everything that the plots read, and no more."""
    needed = {name for plot in PLOTS if plot.key in KEYS for name in (*plot.needs, *plot.judged)}
    rows = [
        as_predicted(c) for c in registry.claims() if c.id in needed and isinstance(c, Claim) and not c.inputs
    ]
    made = [as_scored(seen, OBSERVED[seen.id]) for seen in registry.observations() if seen.id in OBSERVED]
    whole = sample()
    return MainRun(Results(**{**vars(whole), "rows": rows, "observations": made}))


def as_scored(seen: Observation, scores: dict[str, Callable[[int], float]]) -> Observed:
    """A table of these scores at the points of an observation."""
    groups = [
        ObservedGroup(
            parameters={name: value for name, value in plain(at).items() if name != seen.along},
            rows=[
                ObservedRow(at=float(place), cells=[spread(score(k)) for score in scores.values()])
                for k, place in enumerate(at[seen.along])
            ],
        )
        for at in seen.points
    ]
    columns = [ObservedColumn(score=name, heading=name, ratio=False) for name in scores]
    return observed(seen.id, columns=columns, groups=groups)


def spread(mean: float) -> Spread:
    return Spread(mean=mean, lowest=0.9 * mean, highest=1.1 * mean)


@cache
def figure_of(key: str) -> Figure:
    figure = draw_plot(next(plot for plot in PLOTS if plot.key == key), run())
    figure.draw_without_rendering()
    return figure


def pixels(key: str, x: object, y: object) -> NDArray[np.float64]:
    (axes,) = figure_of(key).axes
    return axes.transData.transform(np.column_stack([np.asarray(x, float), np.asarray(y, float)]))


def laws(key: str) -> list[NDArray[np.float64]]:
    """Lines of theory, in pixels."""
    lines: list[Any] = list(figure_of(key).axes[0].lines)
    return [pixels(key, *line.get_data()) for line in lines if line.get_color() == PALETTE["theory"]]


def series(key: str, colour: str) -> list[Any]:
    found: list[Any] = [c for c in figure_of(key).axes[0].containers if isinstance(c, ErrorbarContainer)]
    return [c for c in found if c.lines[0].get_markeredgecolor() == PALETTE[colour]]


@plots
def test_lines_pass_through_the_predictions_of_the_table(key: str) -> None:
    """Points that measure what is predicted lie on a line, within a pixel."""
    points = [pixels(key, *made.lines[0].get_data()) for made in series(key, "ink")]
    assert points or key == "edge"
    for x, y in np.concatenate([*points, np.empty((0, 2))]):
        gaps = [abs(np.interp(x, *line.T) - y) for line in laws(key) if line[0, 0] <= x <= line[-1, 0]]
        assert min(gaps) < figure_of(key).dpi / 72


@plots
def test_texts_are_inside_and_on_nothing(key: str) -> None:
    """No text is cut, or overlaps another one, a line or a mark of a random model."""
    figure, (axes,) = figure_of(key), figure_of(key).axes
    ticks = [
        tick.label1
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    ]
    texts = [t for t in [*axes.texts, *ticks] if isinstance(t, Text) and t.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    for k, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text
        assert not [other for other in boxes[:k] if box.overlaps(other)], text
    view, points = axes.bbox, [pixels(key, *made.lines[0].get_data()) for made in series(key, "ink")]
    for label, box in zip(axes.texts, boxes, strict=False):
        places = [
            place for line in [*map(dense, laws(key)), *points] for place in line if view.contains(*place)
        ]
        assert not any(box.contains(*place) for place in places), label


def dense(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """The line at every pixel of its way."""
    at = np.linspace(0, len(line) - 1, 4000)
    return np.column_stack([np.interp(at, np.arange(len(line)), part) for part in line.T])


@plots
def test_intervals_end_where_they_were_measured_and_marks_are_small(key: str) -> None:
    made = [c for colour in ("ink", "nets") for c in series(key, colour) if len(c.lines[0].get_xdata())]
    assert made
    heights = []
    for container in made:
        mark, (bars,) = container.lines[0], container.lines[2]
        assert mark.get_markersize() <= 4
        for (x, y), path in zip(np.column_stack(mark.get_data()), bars.get_paths(), strict=True):
            low, high = path.vertices[:, 1]
            (axes,) = figure_of(key).axes
            place = (*pixels(key, [x], [y])[0],)
            assert axes.bbox.padded(-mark.get_markersize() / 2).contains(*place), place
            assert low <= y <= high and np.allclose(path.vertices[:, 0], x)
            heights.append(np.ptp(pixels(key, [x, x], [low, high])[:, 1]) * 72 / figure_of(key).dpi)
    assert key not in VISIBLE or np.median(heights) > 4


@plots
def test_captions_fit_two_lines_under_the_plot(key: str) -> None:
    plot = next(plot for plot in PLOTS if plot.key == key)
    lines = [""]
    for word in plot.caption(run()).split(" "):
        longer = f"{lines[-1]} {word}".strip()
        fits = TextPath((0, 0), longer, size=12.5).get_extents().width <= WIDTH
        lines = [*lines[:-1], longer] if fits else [*lines, word]
    assert len(lines) == 2, lines
    assert plot.outcome(run()) == HOLDS


def test_a_run_without_networks_draws_random_models_alone() -> None:
    whole = run().results
    bare = MainRun(Results(**{**vars(whole), "observations": []}))
    plot = next(plot for plot in PLOTS if plot.key == "theorem-4")
    (axes,) = draw_plot(plot, bare).axes
    assert len([c for c in axes.containers if isinstance(c, ErrorbarContainer)]) == 1
    assert not bare.has(["edge/full-batch-path"])
