"""Observations that need a GPU: those that a run makes, their estimated cost, and why others are left out.

All of this is decided and printed before the run starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simulate.monte_carlo import Point
from verify.claims.images import ImagesThere
from verify.model.observation import Cost, Observation
from verify.results import canonical


class GpuOnly(NamedTuple):
    """Observations that a run makes, and lines for terminal and report on those that it leaves out.

    Attributes
    ----------
    observations
        Observations for any device unchanged, those for a GPU at the points that fit.
    lines
        First the estimate for what fits, if anything does.
    left_out
        Ids of observations without any drawn point, each with the reason.
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
    recorded: Mapping[str, Collection[str]] | None = None,
) -> GpuOnly:
    """Select observations for the device: those that need a GPU at the points that fit, all others unchanged.

    Parameters
    ----------
    observations
        Selected observations.
    device
        Device of the run.
    memory
        Bytes that one worker has on the device; None if the workers are on other machines.
    images
        Returns the images there are; called only if a point needs some.
    replicates
        Number of replicates of an observation at each point.
    recorded
        In a replay the points of the recorded run by id, as `at_points` writes them: only these are drawn, and an
        observation only if all of them fit.
    """
    made: list[Observation] = []
    left_out: dict[str, str] = {}
    lines: list[str] = []
    costs: dict[str, list[Cost]] = {}

    def at_classes(point: Point) -> Point:
        # The cost grows with the number of classes, which the images of the user decide.
        return point | {"classes": images().classes} if "images" in point else point

    def obstacle(cost: Callable[[Point], Cost], point: Point) -> str:
        """Return why a point is not drawn; empty if it is."""
        if device == "cpu":
            return "it needs a GPU (--device cuda)"
        if memory is None:
            return "the memory of the GPUs of an executor is not known from here"
        # `images()` opens the file of images, so ask only for points that draw from it.
        needed = point.get("samples", 0) + point.get("others", 0) if "images" in point else 0
        if needed and images().samples < needed:
            return f"it draws from {needed} images, of {images().samples} that there are (--data)"
        memory_needed = cost(at_classes(point)).memory
        return (
            f"it needs {_gib(memory_needed)}, of {_gib(memory)} that are free"
            if memory_needed > memory
            else ""
        )

    for o in observations:
        if o.cost is None:
            made.append(o)
            continue
        points = [p for p in o.points if recorded is None or at_points(p) in recorded.get(o.id, ())]
        why = {point: obstacle(o.cost, point) for point in points}
        fitting = tuple(point for point in points if not why[point])
        # A replay compares whole tables: a table that lacks recorded points would always differ.
        if not fitting or (recorded is not None and len(fitting) < len(points)):
            left_out[o.id] = next(filter(None, why.values()), "none of its points was recorded")
            continue
        made.append(replace(o, points=fitting))
        lines += [f"{o.id} leaves out {dict(point)}: {reason}" for point, reason in why.items() if reason]
        costs[o.id] = replicates(o) * [o.cost(at_classes(point)) for point in fitting]
    if costs:
        all_costs = [cost for each in costs.values() for cost in each]
        lines.insert(
            0,
            f"at sizes for a GPU: {len(all_costs)} replicates of {len(costs)} observations on {device}, by estimate"
            f" {math.fsum(cost.seconds for cost in all_costs):.0f} s and up to"
            f" {_gib(max(cost.memory for cost in all_costs))} at a time",
        )
    for why_not in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, other in left_out.items() if other == why_not)
        lines.append(f"at sizes for a GPU, not run: {names}: {why_not}")
    return GpuOnly(tuple(made), tuple(lines), left_out)


def at_points(parameters: Mapping[str, object]) -> str:
    """Return a point as text, without its images, which a run may exchange."""
    return canonical({name: value for name, value in parameters.items() if name != "images"})


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
