"""Records of a run: rows with their points, observations, runs, the inventory, the suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from verify.model import Kind, Standing, Verdict
from verify.model.inventory import Status

__all__ = [
    "SCHEMA",
    "WORDS",
    "Curve",
    "InventoryRow",
    "Look",
    "Observed",
    "ObservedColumn",
    "ObservedGroup",
    "ObservedRow",
    "PaperRow",
    "PointOutcome",
    "ProfilePoint",
    "Results",
    "RivalOutcome",
    "Row",
    "RunRecord",
    "Spread",
    "Suite",
    "Violation",
]

SCHEMA = 5
"""Version of the file's layout; results.schema.json is checked against it in the tests."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The interval after `replicates` replicates."""

    replicates: int
    measured: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class RivalOutcome:
    """A rival formula at one point: its value, its distance from the theory in margins, and whether it is excluded."""

    name: str
    value: float
    margins: float
    rejected: bool


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A replicate that breaks a bound which must hold on every one, and by how much."""

    replicate: int
    by: float


@dataclass(frozen=True, kw_only=True)
class ProfilePoint:
    """What an estimand was made of, at `x`: a mean at this size, or a distribution function."""

    x: float
    measured: float
    lower: float
    upper: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class PointOutcome:
    """One claim at one set of parameters.

    `statistical`, `numerical` and `size_model` are the parts of the half-width; `needed` estimates the replicates an
    undecided claim still asks for; `slack` is what was measured over its bound. For identities `measured` is the
    relative difference of the two routes, `predicted` is 0 and `margin` the tolerance.
    """

    parameters: dict[str, Any]
    verdict: str
    predicted: float
    margin: float
    measured: float
    lower: float
    upper: float
    statistical: float = 0.0
    numerical: float = 0.0
    size_model: float = 0.0
    skewness: float = 0.0
    replicates: int = 0
    reason: str = ""
    needed: float | None = None
    offset_resolved: bool = False
    slack: float | None = None
    inputs: dict[str, float] = field(default_factory=dict[str, float])
    rivals: list[RivalOutcome] = field(default_factory=list[RivalOutcome])
    looks: list[Look] = field(default_factory=list[Look])
    violations: list[Violation] = field(default_factory=list[Violation])
    profile: list[ProfilePoint] = field(default_factory=list[ProfilePoint])


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Prediction and rivals against the parameter `axis`, the others as at one of the points."""

    axis: str
    at: dict[str, Any]
    x: list[float]
    predicted: list[float]
    rivals: dict[str, list[float]] = field(default_factory=dict[str, list[float]])


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the report: a claim in one reading.

    `reading` is "theory", "corrected" (another row shows a misprint) or "as our copy reads"; `standing` says how it
    stands to the paper, whose own words on it are `words`, at `place`; `slip`: of the text conversion, is likely.
    """

    id: str
    claim: str
    paper: str
    reading: str
    kind: str
    entries: list[str]
    source: str
    statement: str
    expected: str
    verdict: str
    surprise: bool
    margin: float
    relative: bool
    margin_reason: str
    quantity: str
    experiment: str
    replicate: str
    data: str
    power: str
    finding: str
    standing: str
    words: str
    place: str
    slip: bool
    rerun: str
    seconds: float
    points: list[PointOutcome] = field(default_factory=list[PointOutcome])
    curves: list[Curve] = field(default_factory=list[Curve])
    error: str = ""
    model_based: bool = False


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A score over the replicates."""

    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class ObservedColumn:
    """What stands in a column; a ratio is predicted over measured."""

    score: str
    heading: str
    ratio: bool


@dataclass(frozen=True, kw_only=True)
class ObservedRow:
    """A line of the table: one number for each column, at one value of the parameter that runs along the scores."""

    at: float | None
    cells: list[Spread]


@dataclass(frozen=True, kw_only=True)
class ObservedGroup:
    """The lines of one set of parameters."""

    parameters: dict[str, Any]
    rows: list[ObservedRow]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What real networks did beside what theory says: a table that nothing judges.

    `along` is the parameter that runs along the lines of a group, if one does; a crash leaves an `error` and no groups.
    """

    id: str
    paper: str
    entries: list[str]
    source: str
    title: str
    note: str
    replicate: str
    data: str
    along: str
    axis: str
    columns: list[ObservedColumn]
    replicates: int
    seconds: float
    rerun: str
    groups: list[ObservedGroup] = field(default_factory=list[ObservedGroup])
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """An experiment at one point: how many replicates, how long, and the hash of every score drawn."""

    experiment: str
    parameters: dict[str, Any]
    replicates: int
    seconds: float
    sha256: str


@dataclass(frozen=True, kw_only=True)
class InventoryRow:
    """An entry of a paper, where it stands, and what judges or shows it; `ours` says that no paper states it."""

    paper: str
    id: str
    title: str
    status: str
    reason: str
    claims: list[str]
    observations: list[str] = field(default_factory=list[str])
    ours: bool = False


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """A paper whose claims are known; `family_error` is 0 where it shares that of the suite."""

    id: str
    authors: str
    title: str
    family_error: float
    intervals: int
    intervals_allowed: int


@dataclass(frozen=True, kw_only=True)
class Suite:
    """How the run was made; everything that differs between machines stands in `host`."""

    version: str
    seed: int
    tier: str
    device: str
    alpha: float
    family_error: float
    intervals: int
    intervals_allowed: int
    selection: str
    replicates: int | None
    data: str
    host: dict[str, Any]
    papers: list[PaperRow]


@dataclass(frozen=True, kw_only=True)
class Results:
    """A whole run; `sha256` is the digest of all the rest as the run wrote it, empty until then."""

    suite: Suite
    rows: list[Row]
    runs: list[RunRecord]
    inventory: list[InventoryRow]
    planted: list[Row] = field(default_factory=list[Row])
    derivations: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    observations: list[Observed] = field(default_factory=list[Observed])
    schema: int = SCHEMA
    sha256: str = ""


WORDS: dict[tuple[type, str], tuple[str, ...]] = {
    **{(record, "verdict"): tuple(Verdict) for record in (PointOutcome, Row)},
    (Row, "expected"): tuple(Verdict),
    (Row, "reading"): ("theory", "corrected", "as our copy reads"),
    (Row, "standing"): tuple(Standing),
    (Row, "kind"): (*Kind, "identity", "exact property", "property", "check"),
    (InventoryRow, "status"): tuple(Status),
}
"""Fields that take some words only."""
