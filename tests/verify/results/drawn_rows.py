"""Rows of the real inventory without a simulation, and what a figure of one holds."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from simulate.monte_carlo import Point
from verify.claims import registry
from verify.judging.estimands import components
from verify.judging.judge import Reading, applies, judge, outcome, readings
from verify.model import Claim, Kind
from verify.page.drawing import Panel
from verify.results import PointOutcome, Row
from verify.running import rows
from verify.running.settings import Settings

REPLICATES = 96
ALPHA = 1e-3

WITH_AXIS = {claim.id: claim for claim in registry.claims() if isinstance(claim, Claim) and claim.axis}


@cache
def rows_of(name: str) -> tuple[Row, ...]:
    """The rows of a claim, with scores that are noise: its predictions are what they are in a run."""
    claim = WITH_AXIS[name]
    found = {reading: list(_outcomes(claim, reading)) for reading in readings(claim)}
    return tuple(rows.claim_row(claim, reading, found, 0.0, Settings()) for reading in found)


def axes_of(panel: Panel) -> Axes:
    """Return the axes that a panel draws."""
    axes = Figure().add_axes((0, 0, 1, 1))
    panel.draw(axes)
    return axes


def written(figure: Figure) -> list[Text]:
    """Return the texts of a figure: names of ticks that are within their axis, and all others."""
    found = [*figure.texts]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            names = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
            found += [name for at, name in names if low <= at <= high]
        found += axes.texts
    return found


def _outcomes(claim: Claim, reading: Reading) -> Iterator[PointOutcome]:
    for point in (p for run_at in claim.experiment.points for p in components(claim, run_at)):
        if applies(claim, reading, point):
            scores = _scores(claim, reading, point)
            judged = judge(claim, reading, point, scores, ALPHA)
            yield outcome(claim, reading, point, judged, scores, [judged], ALPHA)


def _scores(claim: Claim, reading: Reading, point: Point) -> Mapping[str, Any]:
    """Noise, and inputs that are a fifth above what is typical and differ from replicate to replicate."""
    rng = np.random.default_rng(7)
    typical = {name: value(point) if callable(value) else value for name, value in claim.inputs.items()}
    inputs = {name: value * rng.uniform(1.1, 1.3, REPLICATES) for name, value in typical.items()}
    names = (reading.score,) if isinstance(reading.score, str) else reading.score
    drawn = {name: rng.normal(1.0, 0.1, REPLICATES) for name in names}
    if claim.kind is Kind.PROPORTION:
        drawn = {name: (values > 1) * 1.0 for name, values in drawn.items()}
    return inputs | drawn
