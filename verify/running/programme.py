"""What only a GPU can draw: which of it a run draws, what that takes by estimate, and why the rest is left out.

Nothing is decided while a run is on its way: what does not fit is known before it starts, and said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simulate.monte_carlo import Point
from verify.claims.images import ImagesThere
from verify.model.observation import FLOPS, LAUNCH, Cost, Observation
from verify.results import canonical

__all__ = ["Programme", "at_points", "fitted"]

GIB = 2**30

Recorded = Mapping[str, Collection[str]]
"""The points of a recorded run, by the id of what was drawn, each as `at_points` writes it."""


class Programme(NamedTuple):
    """The observations that a run makes, and a line for the terminal and the report on each sort of those it does not.

    Attributes
    ----------
    observations
        Those for any device as they were, those for a GPU at the points that fit.
    lines
        First the estimate for what fits, if anything does.
    left_out
        Ids of those of which no point is drawn, each with the reason.
    """

    observations: tuple[Observation, ...]
    lines: tuple[str, ...]
    left_out: Mapping[str, str]


def fitted(
    observations: Sequence[Observation],
    *,
    device: str,
    memory: float | None,
    images: Callable[[], ImagesThere],
    replicates: Callable[[Observation], int],
    recorded: Recorded | None = None,
) -> Programme:
    """Those at sizes for a GPU, where there is one with the memory, at the points that fit; all others as they are.

    Parameters
    ----------
    observations
        Those selected.
    device
        That of the run.
    memory
        Bytes that one worker has on it; None where the workers are elsewhere.
    images
        Gives what there is to draw from; asked only where a point needs some.
    replicates
        How many of an observation the run draws at each point.
    recorded
        In a replay only these points are drawn, and an observation only if all of them fit.
    """
    made: list[Observation] = []
    left_out: dict[str, str] = {}
    lines: list[str] = []
    for o in observations:
        if o.cost is None:
            made.append(o)
            continue
        asked = o.points if recorded is None else _of(o.points, recorded.get(o.id, ()))
        why = {point: _obstacle(o.cost, point, device, memory, images) for point in asked}
        kept = tuple(point for point in asked if not why[point])
        if kept and (recorded is None or len(kept) == len(asked)):
            made.append(replace(o, points=kept))
            told = _told_apart(o.points)
            lines += [f"{o.id} leaves out {told[point]}: {reason}" for point, reason in why.items() if reason]
        else:
            left_out[o.id] = next(filter(None, why.values()), "none of its points was recorded")
    costs = [(replicates(o), o.cost(_of_images(point, images))) for o in made if o.cost for point in o.points]
    drawn = sum(o.cost is not None for o in made)
    return Programme(
        tuple(made), (*_estimate(costs, drawn, device, memory), *lines, *_not_run(left_out)), left_out
    )


def at_points(parameters: Mapping[str, object]) -> str:
    """A point without its images, which a run may exchange, as text."""
    return canonical({name: value for name, value in parameters.items() if name != "images"})


def _of(points: Sequence[Point], recorded: Collection[str]) -> tuple[Point, ...]:
    return tuple(point for point in points if at_points(point) in recorded)


def _obstacle(
    cost: Callable[[Point], Cost],
    point: Point,
    device: str,
    memory: float | None,
    images: Callable[[], ImagesThere],
) -> str:
    """Why a point is not drawn; empty if it is."""
    if device == "cpu":
        return "it needs a GPU (--device cuda)"
    if memory is None:
        return "the memory of the GPUs of an executor is not known from here"
    needed = _images(point)
    if needed and images().samples < needed:
        return f"it draws from {needed} images, of {images().samples} that there are (--data)"
    asked = cost(_of_images(point, images)).memory
    if asked > memory:
        return f"it needs {_gib(asked)}, of {_gib(memory)} that are free"
    return ""


def _images(point: Point) -> int:
    return point.get("samples", 0) + point.get("others", 0) if "images" in point else 0


def _of_images(point: Point, images: Callable[[], ImagesThere]) -> Point:
    """With the number of classes of its images, as a cost is asked for it."""
    return point | {"classes": images().classes} if "images" in point else point


def _estimate(
    costs: Sequence[tuple[int, Cost]], observations: int, device: str, memory: float | None
) -> tuple[str, ...]:
    """What the points for a GPU take at the stated rates: replicates of each, and what one of them costs."""
    if not costs:
        return ()
    count = sum(replicates for replicates, _ in costs)
    seconds = math.fsum(replicates * cost.seconds for replicates, cost in costs)
    most = max(cost.memory for _, cost in costs)
    free = "" if memory is None else f" of {_gib(memory)}"
    return (
        f"at sizes for a GPU: {count} replicates of {observations} observations on {device}, by estimate"
        f" {seconds:.0f} s at {FLOPS:.0e} operations and {1 / LAUNCH:.0e} launches a second, up to"
        f" {_gib(most)}{free} at a time",
    )


def _not_run(left_out: Mapping[str, str]) -> list[str]:
    """A line for each reason."""
    return [
        f"at sizes for a GPU, not run: {', '.join(name for name, other in left_out.items() if other == why)}: {why}"
        for why in dict.fromkeys(left_out.values())
    ]


def _told_apart(points: Sequence[Point]) -> dict[Point, str]:
    """Each point by the parameters in which not all of them are alike."""
    names = dict.fromkeys(name for point in points for name in point)
    differing = [name for name in names if len({repr(point.get(name)) for point in points}) > 1]
    return {
        point: ", ".join(f"{name} {_plain(point[name])}" for name in differing if name in point)
        for point in points
    }


def _plain(value: object) -> str:
    """In full: two tuples may differ in their last part.

    >>> _plain((4, (8, 0.5), "relu"))
    '4/(8/0.5)/relu'
    """
    if isinstance(value, tuple):
        return "/".join(f"({_plain(part)})" if isinstance(part, tuple) else _plain(part) for part in value)
    return str(value)


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
