"""A main plot, and the run that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from verify.page.canvas import LEFT
from verify.page.outcomes import outcome_of
from verify.page.statements import how_closely
from verify.results import ObservedGroup, PointOutcome, Results, Row

__all__ = ["MainPlot", "MainRun", "measured_intervals"]

Floats = NDArray[np.float64]

PRINTED = " [as our copy reads]"
"""Ends the id of the row on a formula as our copy has it."""


class MainRun:
    """Rows and observations of a run by their ids."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.rows = {row.id: row for row in results.rows}
        self.observations = {made.id: made for made in results.observations if not made.error}

    def has(self, names: Iterable[str]) -> bool:
        """Whether the run has these rows, with points, and observations, or columns of them as "id:score"."""
        return all(self._observed(*name.split(":")) or self._measured(name) for name in names)

    def _observed(self, name: str, *scores: str) -> bool:
        return name in self.observations and {*scores} <= {c.score for c in self.observations[name].columns}

    def _measured(self, name: str) -> bool:
        return name in self.rows and bool(self.rows[name].points)

    def points(self, *names: str) -> list[PointOutcome]:
        """Return the points of these rows."""
        return [point for name in names for point in self.rows[name].points]

    def closely(self, *names: str) -> str:
        """Return how closely the least exact of these rows holds, as "0.9 %"."""

        def size(name: str) -> float:
            points = [p for p in self.rows[name].points if p.predicted]
            return max((abs(p.measured / p.predicted - 1) for p in points), default=0.0)

        said = how_closely(self.rows[max(names, key=size)])
        return said.removeprefix("within ").replace(" %", "\N{NO-BREAK SPACE}%")

    def columns(self, name: str, **where: object) -> tuple[Floats, dict[str, tuple[Floats, Floats, Floats]]]:
        """Return places and, by score, mean, lowest and highest of the group of an observation with these parameters.

        Raises
        ------
        KeyError
            If no group has them.
        """
        group = self.group(name, **where)
        at = np.array([row.at for row in group.rows], dtype=float)
        found: dict[str, tuple[Floats, Floats, Floats]] = {}
        for k, column in enumerate(self.observations[name].columns):
            cells = [row.cells[k] for row in group.rows]
            mean, low, high = np.array([[c.mean, c.lowest, c.highest] for c in cells], dtype=float).T
            found[column.score] = mean, low, high
        return at, found

    def group(self, name: str, **where: object) -> ObservedGroup:
        """Return the group of an observation with these parameters; a KeyError says that none has them."""
        for group in self.observations[name].groups:
            if all(group.parameters.get(key) == value for key, value in where.items()):
                return group
        raise KeyError(f"{name} has no group with {where}")


class MainPlot(NamedTuple):
    """A main statement: where it is in its paper, formula (LaTeX), card, caption, what it needs of a run, drawing.

    `judged` are the rows of the statement, whose outcome is its mark; without any it is reported and not judged.
    """

    key: str
    where: str
    formula: str
    target: str
    judged: tuple[str, ...]
    needs: tuple[str, ...]
    caption: Callable[[MainRun], str]
    draw: Callable[[Axes, MainRun], None]
    left: float = LEFT

    def outcome(self, run: MainRun) -> str:
        """Return the outcome of the statement."""
        rows: list[Row] = [run.rows[name] for name in self.judged if name in run.rows]
        return outcome_of(rows)


def measured_intervals(points: Iterable[PointOutcome]) -> tuple[Floats, Floats, Floats]:
    """Return measured values of points with the ends of their measured_intervals."""
    found = [(point.measured, point.lower, point.upper) for point in points]
    measured, low, high = np.array(found, dtype=float).reshape(-1, 3).T
    return measured, low, high
