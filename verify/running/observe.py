"""Observations: replicates drawn one by one, and the table made of their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point, Scores
from verify.model.observation import Column, Observation
from verify.results import Observed, ObservedColumn, ObservedGroup, ObservedRow, Spread
from verify.running.pump import Draws, Pump, traceback_of
from verify.running.rows import rerun_command
from verify.running.sampled import finish

if TYPE_CHECKING:
    from verify.running.settings import Settings


class Watch(Draws):
    """An observation at one point: a replicate is a block of its own, for one may take minutes."""

    def __init__(self, observation: Observation, point: Point, settings: Settings) -> None:
        count = settings.repeats(observation)
        super().__init__(observation.id, observation.simulate, point, settings.device, 1, count)
        seconds = observation.cost(point).seconds if observation.cost else observation.seconds
        self.expected, self.wanted = count * seconds, count

    def look(self) -> None:
        """End the observation: it asks for all of its replicates at once."""
        self.done = True


def watched(o: Observation, watches: Sequence[Watch], pump: Pump, settings: Settings) -> Observed:
    """The record of an observation, from its watches; no groups where something crashed or does not fit."""
    finish(watches, pump)
    error, groups = next((run.error for run in watches if run.error), ""), []
    try:
        groups = [] if error else [_group(o, run.point, run.scores) for run in watches]
    except Exception as problem:  # the scores are not those that the columns show
        error = traceback_of(problem)
    return Observed(
        id=o.id,
        paper=o.paper,
        entries=list(o.entries),
        source=o.source,
        title=o.title,
        note=o.note,
        replicate=o.replicate,
        data=o.data,
        along=o.along,
        axis=o.axis or o.along,
        columns=[ObservedColumn(score=c.score, heading=c.heading, ratio=c.ratio) for c in o.columns],
        replicates=settings.repeats(o),
        seconds=round(math.fsum(run.seconds for run in watches), 3),
        rerun=rerun_command(o.id, settings),
        groups=groups,
        error=error,
    )


def _group(observation: Observation, point: Point, scores: Scores) -> ObservedGroup:
    places: Sequence[Any] = point[observation.along] if observation.along else (None,)
    columns = [_columns(scores, column, len(places), observation.along) for column in observation.columns]
    return ObservedGroup(
        parameters={name: value for name, value in point.items() if name != observation.along},
        rows=[
            ObservedRow(
                at=None if at is None else float(at), cells=[_spread(values[:, i]) for values in columns]
            )
            for i, at in enumerate(places)
        ],
    )


def _columns(scores: Scores, column: Column, places: int, along: str) -> NDArray[np.float64]:
    """A score as (replicates, places); a number stands at all of its places."""
    if column.score not in scores:
        raise ValueError(f"column must show one of the scores {', '.join(scores)}, got {column.score!r}")
    values = scores[column.score]
    if values.ndim == 1:
        return np.repeat(values[:, None], places, axis=1)
    if not along or values.shape[1] != places:
        expected = f"one component for each of the {places} values of {along!r}" if along else "no components"
        raise ValueError(f"score {column.score!r} must have {expected}, got {values.shape[1]}")
    return values


def _spread(values: NDArray[np.float64]) -> Spread:
    """Mean, lowest and highest; all of them NaN if one replicate is."""
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs have no mean
        return Spread(mean=float(values.mean()), lowest=float(values.min()), highest=float(values.max()))
