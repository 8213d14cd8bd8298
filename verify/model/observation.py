"""Observations: tables of measurements on real networks next to theory, reported and never judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from simulate.monte_carlo import Point
from verify.model import Simulator, Tier

FLOPS = 2e13
"""Floating point operations in a second that estimates count with, whatever the precision: a third of what the data
sheets of the H100 and the H200 state for single precision and for products in double. Stated, not measured."""

LAUNCH = 4e-5
"""Seconds of a launch from Python: a pass of LeNet-300-100 forward and back, 17 of them, took 0.69 ms on an H200."""

CLASSES = 10
"""Classes that a cost assumes where the number of classes of the images is not given."""


def classes_of(point: Point) -> int:
    """Classes of the images that the cost of a point is for.

    >>> classes_of(Point(samples=5)), classes_of(Point(samples=5, classes=100))
    (10, 100)
    """
    return int(point.get("classes", CLASSES))


class Cost(NamedTuple):
    """Demands of one replicate at one point on a device.

    Attributes
    ----------
    memory
        Bytes at the peak.
    flops
        Floating point operations of its products.
    launches
        Operations other than views, as the pretended device counts them.
    """

    memory: float
    flops: float
    launches: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds at the stated rates.

        >>> Cost(memory=0, flops=4e13, launches=1e5).seconds
        6.0
        """
        return self.flops / FLOPS + self.launches * LAUNCH


@dataclass(frozen=True, kw_only=True)
class Column:
    """A score of an observation: shown as its mean over replicates, with the lowest and the highest.

    Attributes
    ----------
    score
        Name of the score among those that `Observation.simulate` returns.
    heading
        Meaning of the score, in plain words with its symbol or unit.
    ratio
        Predicted over measured, so that 1 is perfect: drawn against a line at 1, and marked where far from it.
    """

    score: str
    heading: str
    ratio: bool = False


def columns_of(headings: Mapping[str, str], *ratios: str) -> tuple[Column, ...]:
    """Columns by score, of which these are predicted over measured.

    >>> columns_of({"top": "largest eigenvalue", "law": "the law"}, "law")[1]
    Column(score='law', heading='the law', ratio=True)
    """
    return tuple(Column(score=name, heading=text, ratio=name in ratios) for name, text in headings.items())


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Measurements on real networks next to what theory says of them: a table, reported and never judged.

    Attributes
    ----------
    id
        ``paper/name``, stable, and of no claim or experiment: streams, reports and plots are filed under it.
    entries
        The entries of the paper's page in docs/claims that it shows.
    note
        Plain words: what the table says, where theory is off, by how much and why.
    replicate
        What one replicate is, in words: "one network with its images".
    simulate
        A function at module level (workers find it by name) from a block and a point to scores, each of shape
        (replicates,) or (replicates, k). It may use theory and simulate.
    points
        One group of rows for each.
    along
        The parameter, a tuple in the point, that runs along the components of scores that are vectors: one row for
        each of its values. A score that is a number is the same in all rows of its point.
    columns
        The scores that are shown.
    replicates
        How many are drawn at each point, one by one, each a task of its own with a stream of its own; four times
        as many in the full tier.
    brief
        Points at which the default tier draws one replicate in place of all of these, if they take too long.
    seconds
        Measured cost of one replicate at one point on one core, for the progress bar and for nothing else.
    data
        The real data set behind it, if any; `point.images` then names the images of the run.
    tier
        The lowest tier that runs it: the default one, or the full one.
    axis
        Label of the horizontal axis of its figure; the name of `along` where it is empty.
    on_host
        The part that is computed on the CPU whatever the device of the run, if it costs much; draws aside.
    cost
        Demands of a replicate at a point on a device, if these sizes are for a GPU alone, see `on_a_gpu`; the full tier
        then draws `replicates`, not four times as many. Before a run it is called with the point and the number of
        classes of the images, see `classes_of`.
    small
        The id of the same observation at sizes for a CPU, if these sizes are for a GPU.
    single
        The part that is in single precision or depends on the last digit, if any: on another device its numbers differ,
        by an unknown amount.
    """

    id: str
    entries: tuple[str, ...]
    source: str
    title: str
    note: str
    replicate: str
    simulate: Simulator
    points: tuple[Point, ...]
    along: str
    columns: tuple[Column, ...]
    replicates: int
    seconds: float
    data: str = ""
    tier: Tier = Tier.DEFAULT
    axis: str = ""
    on_host: str = ""
    cost: Callable[[Point], Cost] | None = None
    small: str = ""
    single: str = ""
    brief: tuple[Point, ...] = ()

    @property
    def paper(self) -> str:
        """The short name of its paper."""
        return self.id.partition("/")[0]

    def in_tier(self, tier: Tier) -> Observation:
        """The observation as a tier draws it, with its note."""
        if tier is Tier.FULL or not self.brief:
            return self
        shorter = "The numbers of this note are those of the full tier; here one replicate is drawn"
        note = f"{self.note} {shorter}, at {len(self.brief)} of {len(self.points)} points."
        return replace(self, points=self.brief, replicates=1, brief=(), note=note)


def on_a_gpu(
    small: Observation,
    *,
    points: tuple[Point, ...],
    cost: Callable[[Point], Cost],
    note: str,
    replicates: int = 1,
) -> Observation:
    """Return the same observation at sizes for a GPU alone; it runs on one with enough memory.

    Parameters
    ----------
    small
        The observation at sizes for a CPU, which defines what is drawn and shown.
    points
        The sizes for a GPU.
    cost
        Demands of a replicate at one of these points.
    note
        What the table shows at these sizes, which no CPU has reached.
    replicates
        Number of replicates at each point.
    """
    return replace(
        small,
        id=f"{small.id}-on-a-gpu",
        title=f"{small.title}, at sizes for a GPU",
        note=note,
        points=points,
        replicates=replicates,
        seconds=max(cost(point).seconds for point in points),
        tier=Tier.FULL,
        cost=cost,
        small=small.id,
    )
