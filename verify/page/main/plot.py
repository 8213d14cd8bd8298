"""A main plot, and the run that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.page.canvas import draw_points
from verify.page.drawing import Floats
from verify.page.outcomes import outcome_of
from verify.page.statements import how_closely
from verify.results import PointOutcome, Results

At = Mapping[str, Any]
"""Parameters of a point."""

PRINTED = " [as our copy reads]"
"""Ends the id of the row on a formula as our copy has it."""


class MainRun:
    """Rows and observations of a run by their ids."""

    def __init__(self, results: Results) -> None:
        self.rows = {row.id: row for row in results.rows}
        self.observations = {made.id: made for made in results.observations if not made.error}

    def has(self, names: Iterable[str]) -> bool:
        """Whether the run has these observations, and rows with points."""
        return all(
            name in self.observations or (name in self.rows and self.rows[name].points) for name in names
        )

    def points(self, *names: str) -> list[PointOutcome]:
        """Return the points of these rows."""
        return [point for name in names for point in self.rows[name].points]

    def closely(self, name: str) -> str:
        """Return how closely a row holds, as "0.9 %"."""
        return how_closely(self.rows[name]).removeprefix("within ").replace(" %", "\N{NO-BREAK SPACE}%")

    def tables(self, name: str) -> list[tuple[At, Floats, dict[str, Floats]]]:
        """Return, for each group of an observation, parameters, places, and mean, lowest and highest by score."""
        made = self.observations[name]
        scores = [column.score for column in made.columns]
        return [
            (
                group.parameters,
                np.array([row.at for row in group.rows], dtype=float),
                {
                    score: np.array([(c.mean, c.lowest, c.highest) for c in cells], dtype=float).T
                    for score, cells in zip(
                        scores, zip(*(row.cells for row in group.rows), strict=True), strict=True
                    )
                },
            )
            for group in made.groups
        ]


class MainPlot(NamedTuple):
    """A main statement: where it is in its paper, formula, claim of its card, drawing, and what the plot says.

    The formula keeps to the LaTeX that both MathML and matplotlib set. The caption is `words` with a number for `{}`:
    how closely the claim holds, or another. `needs` is what the plot reads next to the claim. The claim, its printed
    form and the rows `judged` make the mark; a statement without any of them is not judged.
    """

    where: str
    formula: str
    target: str
    draw: Callable[[Axes, MainRun], None]
    words: str
    number: Callable[[MainRun], str] | None = None
    needs: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()

    def caption(self, run: MainRun) -> str:
        """Return what the plot shows, in two short lines with one number."""
        return self.words.format(self.number(run) if self.number else run.closely(self.target))

    def outcome(self, run: MainRun) -> str:
        """Return the outcome of the statement."""
        names = (self.target, self.target + PRINTED, *self.judged)
        return outcome_of(run.rows[name] for name in names if name in run.rows)


def in_percent(share: Any) -> str:
    """Return a share in percent with two digits, as "28 %"."""
    return f"{100 * share:.2g}\N{NO-BREAK SPACE}%"


def draw_outcomes(
    axes: Axes,
    points: Iterable[PointOutcome],
    x: Callable[[At], float],
    y: Callable[[At, float], Any] = lambda _, value: value,
) -> None:
    """Draw points with their intervals at x and y of their parameters, and of what was measured."""
    found = [
        (
            x(p.parameters),
            y(p.parameters, p.measured),
            *sorted(y(p.parameters, v) for v in (p.lower, p.upper)),
        )
        for p in points
    ]
    draw_points(axes, *np.array(found, dtype=float).T)
