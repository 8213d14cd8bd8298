"""What a run leaves behind: plain records and their JSON file, from which the report and every plot are drawn."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "SCHEMA",
    "Curve",
    "InventoryRow",
    "Look",
    "PointOutcome",
    "Results",
    "RivalOutcome",
    "Row",
    "RunRecord",
    "Suite",
    "dumps",
    "load",
    "save",
]

SCHEMA = 1
"""Version of the file's layout; verify/results.schema.json is checked against it in the tests."""


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
class PointOutcome:
    """One claim at one set of parameters.

    `statistical` and `numerical` are the two parts of the half-width; `needed` estimates the replicates an
    undecided claim still asks for. For identities `measured` is the relative difference of the two routes,
    `predicted` is 0 and `margin` the tolerance.
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
    skewness: float = 0.0
    replicates: int = 0
    reason: str = ""
    needed: float | None = None
    offset_resolved: bool = False
    inputs: dict[str, float] = field(default_factory=dict[str, float])
    rivals: list[RivalOutcome] = field(default_factory=list[RivalOutcome])
    looks: list[Look] = field(default_factory=list[Look])


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

    `reading` is "theory", "corrected" (another row shows the formula as our copy reads) or "as our copy reads".
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
    rerun: str
    seconds: float
    points: list[PointOutcome] = field(default_factory=list[PointOutcome])
    curves: list[Curve] = field(default_factory=list[Curve])
    error: str = ""
    model_based: bool = False


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
    """An entry of a paper and where it stands."""

    paper: str
    id: str
    title: str
    status: str
    reason: str
    claims: list[str]


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
    host: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Results:
    """A whole run."""

    suite: Suite
    rows: list[Row]
    runs: list[RunRecord]
    inventory: list[InventoryRow]
    planted: list[Row] = field(default_factory=list[Row])
    derivations: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    schema: int = SCHEMA


def save(results: Results, path: Path) -> None:
    """Write the results as JSON, in one step: a reader sees the old file or the new one, never half of one.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    text = dumps(results)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def dumps(results: Results) -> str:
    """The results as JSON text; NaN and infinity are strings there."""
    return json.dumps(_plain(asdict(results)), indent=1, allow_nan=False) + "\n"


def load(path: Path) -> Results:
    """Read what `save` wrote.

    Raises
    ------
    ValueError
        If there is no such file, or it is not a results file of this version.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"results file {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"results file {path} is corrupt: not JSON; run losscurv report again") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise ValueError(f"results file {path} must have schema {SCHEMA}; run losscurv report again")
    try:
        return _results(_numbers(raw))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"results file {path} is corrupt: {error}; run losscurv report again") from None


def _results(raw: dict[str, Any]) -> Results:
    return Results(
        suite=Suite(**raw["suite"]),
        rows=[_row(row) for row in raw["rows"]],
        runs=[RunRecord(**run) for run in raw["runs"]],
        inventory=[InventoryRow(**entry) for entry in raw["inventory"]],
        planted=[_row(row) for row in raw["planted"]],
        derivations=list(raw["derivations"]),
        schema=raw["schema"],
    )


def _row(raw: dict[str, Any]) -> Row:
    points = [_point(point) for point in raw["points"]]
    return Row(**{**raw, "points": points, "curves": [Curve(**curve) for curve in raw["curves"]]})


def _point(raw: dict[str, Any]) -> PointOutcome:
    rivals = [RivalOutcome(**rival) for rival in raw["rivals"]]
    return PointOutcome(**{**raw, "rivals": rivals, "looks": [Look(**look) for look in raw["looks"]]})


def _plain(value: Any) -> Any:
    """NaN and infinity as strings: JSON has neither."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value) if value in ("nan", "inf", "-inf") else value
