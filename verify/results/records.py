"""Records of a run: rows with their points, observations, runs, the inventory, the suite."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from simulate.results import Columns, Result, draw_bars
from verify.model import LOGARITHMS, Kind, NoTheory, Standing, Verdict
from verify.model.inventory import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINT_COLUMNS = ("verdict", "predicted", "measured", "lower", "upper", "margin", "replicates")
"""Columns of a row after the parameters of its points."""

SCHEMA = 8
"""Version of the file's layout."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The interval after `replicates` replicates."""

    replicates: int
    measured: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class RivalOutcome:
    """Rival formula at one point: its value, its distance from the theory in margins, and whether it is excluded."""

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
    """Point of an estimand's figure at `x`: a mean at this size, or a distribution function."""

    x: float
    measured: float
    lower: float
    upper: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class PointOutcome:
    """One claim at one set of parameters.

    `statistical`, `numerical` and `size_model` are the parts of the half-width; `needed` estimates the replicates that
    decide an undecided claim; `slack` is the measured value over its bound; `rivals_replicates` is the number of
    replicates that excluded the rivals where the verdict needed fewer. For identities `measured` is the
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
    rivals: list[RivalOutcome] = field(default_factory=list[RivalOutcome], repr=False)
    rivals_replicates: int = 0
    looks: list[Look] = field(default_factory=list[Look], repr=False)
    violations: list[Violation] = field(default_factory=list[Violation], repr=False)
    profile: list[ProfilePoint] = field(default_factory=list[ProfilePoint], repr=False)

    @property
    def half_width(self) -> float:
        """The larger distance from the measured value to a limit; infinite where one is no number."""
        sides = self.upper - self.measured, self.measured - self.lower
        return math.inf if any(map(math.isnan, sides)) else max(sides)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Prediction and rivals against the parameter `axis`, the others as in `at`, which lacks it."""

    axis: str
    at: dict[str, Any]
    x: list[float]
    predicted: list[float]
    rivals: dict[str, list[float]] = field(default_factory=dict[str, list[float]])


@dataclass(frozen=True, kw_only=True, repr=False)
class Row(Result):
    """One line of the report: a claim in one reading.

    `reading` is "theory", "corrected" (another row shows a misprint) or "as our copy reads"; `standing` is its relation
    to the paper, whose own words on it are `words`, at `place`; `slip`: a slip of the text conversion is likely.
    `registered` says when margin, points and rivals were declared and every change of them since; empty where the paper
    keeps no ledger. `no_theory` is why the claim reads no function of theory; empty where it reads one. `sensitivity`
    is the smallest error of the theory that a run as sharp as this one is sure to detect: a fraction of the prediction
    where the margin is `relative`, else in its unit; None without an interval. `pilot` is the part of its bound or
    margin that was set after pilot draws, `may_be_undecided` why it may end undecided. `says` is the claim in a
    sentence without formulas, `topic` the module of its paper that holds it, `code` the file and line of what draws or
    computes its scores, and `symbols` the meaning of the letters of its statement, in LaTeX, as far as its paper lists
    them. `logarithm` is the base where its numbers are logarithms; empty where they are plain. `root` is 2 where the
    square of the quantity of the paper is measured.
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
    no_theory: str = ""
    registered: str = ""
    sensitivity: float | None = None
    pilot: str = ""
    may_be_undecided: str = ""
    says: str = ""
    topic: str = ""
    code: str = ""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    logarithm: str = ""
    root: int = 1

    def _headline(self) -> str:
        margin = f"margin {100 * self.margin:.3g} %" if self.relative else f"margin {self.margin:.3g}"
        return f"{self.id}: {self.verdict}, expected {self.expected}, {margin}"

    def _columns(self) -> Columns:
        sizes = dict.fromkeys(name for at in self.points for name in at.parameters)
        return {
            **{name: [_cell(at.parameters.get(name)) for at in self.points] for name in sizes},
            **{name: [getattr(at, name) for at in self.points] for name in _POINT_COLUMNS},
        }

    def _brief(self) -> Sequence[str]:
        columns = self._columns()
        sizes = [name for name in columns if name not in _POINT_COLUMNS]
        varying = [name for name in sizes if len(set(columns[name])) > 1 or len(self.points) == 1]
        return [*varying, *_POINT_COLUMNS[:5]]

    def _inches(self) -> tuple[float, float]:
        if not self.points:
            return 7.2, 0.9
        panel = _page_module("panels").row_panels(self)[0]
        return 7.2, (panel.above + panel.height + panel.below) / 72

    def _draw(self, axes: Axes) -> None:
        if self.points:
            _page_module("panels").row_panels(_page_module("wording").legible(self))[0].draw(axes)
        else:
            axes.set_title(f"{self.verdict}: nothing was measured")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A score over the replicates."""

    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class ObservedColumn:
    """Column of an observation; a ratio is predicted over measured."""

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
    """Measurements on real networks next to what theory says: a table that is not judged.

    `along` is the parameter that runs along the lines of a group, if any; a crash leaves an `error` and no groups.
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
    groups: list[ObservedGroup] = field(default_factory=list[ObservedGroup], repr=False)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Run of an experiment at one point: replicates, seconds, and the hash of every score drawn."""

    experiment: str
    parameters: dict[str, Any]
    replicates: int
    seconds: float
    sha256: str


@dataclass(frozen=True, kw_only=True)
class InventoryRow:
    """Entry of a paper, its status, and what judges or shows it; `ours`: no paper states it."""

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


OTHER_IMAGES = "other images, --data"
"""Key in `JudgedCounts.left_out` of claims that need images other than those of the run."""


@dataclass(frozen=True, kw_only=True)
class JudgedCounts:
    """Numbers of claims known, asked for and judged.

    `left_out` counts claims that were not asked for, by the option that left them out. Fewer judged than asked for
    means that the run was stopped. `missing` claims are registered, not withdrawn, and gone: dropped or renamed.
    `withdrawn` has the date of each withdrawal.
    """

    known: int = 0
    asked: int = 0
    judged: int = 0
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    missing: list[str] = field(default_factory=list[str])
    withdrawn: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Chance `error` that any of the `decided` verdicts, reached by sampling, is wrong.

    `paper` is the paper whose family of intervals it is; empty for the papers of this package, which share one.
    """

    paper: str
    error: float
    decided: int
    undecided: int


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Settings of the run; everything that differs between machines is in `host`.

    `ledger` is the sha256 of all that the claims have declared; `draws` says where normal tensors came from, the
    `streams` of the CPU or a generator that is `counted` on the device.
    """

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
    host: dict[str, Any] = field(repr=False)
    papers: list[PaperRow] = field(repr=False)
    ledger: str = ""
    census: JudgedCounts = field(default_factory=JudgedCounts)
    promises: list[Promise] = field(default_factory=list[Promise])
    draws: str = "streams"


@dataclass(frozen=True, kw_only=True, repr=False)
class Results(Result):
    """A whole run; `sha256` is the digest of all the rest as the run wrote it, empty until then.

    `unread` are the outputs of theory that no claim reads, by the reason.
    """

    suite: Suite
    rows: list[Row]
    runs: list[RunRecord]
    inventory: list[InventoryRow]
    planted: list[Row] = field(default_factory=list[Row])
    derivations: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    unread: dict[str, str] = field(default_factory=dict[str, str])
    observations: list[Observed] = field(default_factory=list[Observed])
    schema: int = SCHEMA
    sha256: str = ""

    def _brief(self) -> Sequence[str]:
        return ("id", "verdict", "predicted", "measured", "deviation")

    def _headline(self) -> str:
        return _page_module("terminal").tally(self.rows, self.observations)

    def _columns(self) -> Columns:
        wording = _page_module("wording")
        points = [wording.telling(row) for row in self.rows]
        of_rows = ("id", "claim", "reading", "verdict", "expected", "surprise")
        return {
            **{name: [getattr(row, name) for row in self.rows] for name in of_rows},
            **{name: [getattr(point, name, None) for point in points] for name in _POINT_COLUMNS[1:]},
            "deviation": [math.nan if point is None else wording.deviation(point) for point in points],
        }

    def _draw(self, axes: Axes) -> None:
        verdicts = Counter(row.verdict for row in self.rows)
        draw_bars(axes, [*verdicts], [*verdicts.values()])
        axes.set_title("readings by verdict")

    def summary(self) -> str:
        """Return what ``losscurv report`` prints at its end."""
        return _page_module("summary").closing_text(self) + "\n"


def _cell(value: Any) -> Any:
    """Return a parameter as a table entry: lists and records as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _page_module(name: str) -> Any:
    """Import a module of the page by its name: late, as these modules import the records."""
    return import_module(f"verify.page.{name}")


WORDS: dict[tuple[type, str], tuple[str, ...]] = {
    **{(record, "verdict"): tuple(Verdict) for record in (PointOutcome, Row)},
    (Row, "expected"): tuple(Verdict),
    (Row, "reading"): ("theory", "corrected", "as our copy reads"),
    (Row, "standing"): tuple(Standing),
    (Row, "no_theory"): ("", *NoTheory),
    (Row, "kind"): (*Kind, "identity", "exact property", "property", "check"),
    (Row, "logarithm"): ("", *LOGARITHMS),
    (InventoryRow, "status"): tuple(Status),
    (Suite, "draws"): ("streams", "counted"),
}
"""Fields with a fixed set of words."""
