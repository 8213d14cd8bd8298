"""What is reported and never judged: a table of what real networks do beside what theory says."""

from __future__ import annotations

from dataclasses import dataclass

from simulate.monte_carlo import Point
from verify.model import Simulator, Tier

__all__ = ["Column", "Observation"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A score of an observation: shown as its mean over replicates, with the lowest and the highest.

    Attributes
    ----------
    score
        Its name among those that `Observation.simulate` returns.
    heading
        What it is, in plain words with its symbol or unit.
    ratio
        Predicted over measured, so that 1 is perfect: drawn against a line at 1, and marked where far from it.
    """

    score: str
    heading: str
    ratio: bool = False


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What real networks do beside what theory says of them: a table, reported and never judged.

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
    seconds
        Measured cost of one replicate at one point on one core, for the progress bar and for nothing else.
    data
        The real data set behind it, if any; `point.images` then names the images of the run.
    tier
        The lowest tier that runs it: the default one, or the full one.
    axis
        Label of the horizontal axis of its figure; the name of `along` where it is empty.
    on_host
        What of it is computed on the CPU whatever the device of the run, if anything of weight is; draws aside.
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

    @property
    def paper(self) -> str:
        """The short name of its paper."""
        return self.id.partition("/")[0]
