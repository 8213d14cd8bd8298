"""A repeated run beside the recorded one: all that a verdict rests on is compared, to the last bit."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from verify.results import Curve, Observed, PointOutcome, Results, Row, RunRecord, canonical, edited
from verify.results.lines import same_line

__all__ = ["INTERRUPTED", "devices_compared", "replay_agrees", "replay_differences"]

INTERRUPTED = " (interrupted)"
"""At the end of the selection of a run that was stopped."""

_SETTINGS = ("seed", "tier", "draws", "data", "replicates", "alpha", "family_error")
_ROW = ("expected", "surprise", "reading", "standing", "kind", "model_based", "relative", "margin")
_FIRST = ("measured", "replicates", "predicted", "margin", "verdict")
_POINT = (*_FIRST, *(f.name for f in fields(PointOutcome) if f.name not in _FIRST))
_TABLE = ("replicates", "along", "columns", "groups")
"""What is compared, the most telling first: one difference of a row is told."""

_SHOWN = 100
"""Characters of a value."""

NONE: Mapping[str, float] = {}

CLOSE = 1e-6
"""Relative difference of numbers that two devices may leave: rounding in double precision, through decompositions.

Where an experiment is in single precision what its claim allows for, if that is more.
"""


def devices_compared(recorded: Results, repeated: Results) -> str:
    """Between which devices a replay was, and how closely they were compared; empty if it was one.

    >>> from types import SimpleNamespace
    >>> gpu, cpu = (SimpleNamespace(suite=SimpleNamespace(device=name)) for name in ("cuda", "cpu"))
    >>> devices_compared(gpu, cpu), devices_compared(cpu, cpu)
    ('recorded on cuda, repeated on cpu: numbers compared to 1e-06, scores not by their hash', '')
    """
    one, other = recorded.suite.device, repeated.suite.device
    how = f"numbers compared to {CLOSE:g}, scores not by their hash"
    return "" if one == other else f"recorded on {one}, repeated on {other}: {how}"


def replay_agrees(left_out: Collection[str] = ()) -> str:
    """What is said of a replay without differences, in which these were left out.

    >>> replay_agrees(), replay_agrees(["a/b"])
    ('every score and verdict is the same', 'every score and verdict is the same, of all but a/b, which is left out')
    """
    same = "every score and verdict is the same"
    verb = "is" if len(left_out) == 1 else "are"
    return f"{same}, of all but {', '.join(left_out)}, which {verb} left out" if left_out else same


def replay_differences(
    recorded: Results,
    repeated: Results,
    asked: Collection[str] | None = None,
    left_out: Collection[str] = (),
    single: Collection[str] = (),
    rounding: Mapping[str, float] = NONE,
) -> list[str]:
    """What a repeated run has otherwise than the recorded one, a line each; on another device what rounding is not.

    Compared are the settings, the scores by their hash, and of every row the verdicts, predictions, margins, measured
    values and all else that its points hold, and the lines drawn through them, but for rounding; of observations the
    tables. What is there in one of the two runs only is a difference too. What was not asked for, or not reached before
    an interruption, is not compared.

    Parameters
    ----------
    recorded
        As its file has it; that it was edited is a difference.
    repeated
        The new run.
    asked
        Ids of the claims and observations that were to be repeated; all recorded ones if None.
    left_out
        Ids of claims and observations that this version does not have or this machine cannot draw: all others are
        compared as if these had not been recorded. Of an experiment that such a claim read the scores are not compared
        by their hash, which covers what only that claim may have read.
    single
        Ids of experiments and observations in single precision: between two devices, of claims on them that know no
        numerical error the verdicts alone are compared, and of such observations that there is a table.
    rounding
        By which part, if by more than others, rounding moves what claims read, by the id of the claim: where that is
        infinite verdicts alone are compared.
    """
    known = _names(recorded).difference(left_out)
    names = set(known if asked is None else asked)
    if repeated.suite.selection.endswith(INTERRUPTED):
        names &= _names(repeated)
    whole = names >= known and not recorded.suite.selection.endswith(INTERRUPTED)
    close = CLOSE if devices_compared(recorded, repeated) else 0.0
    # a claim that is gone may have asked for more replicates, and for scores that nobody else reads
    apart = {*left_out, *(row.experiment for row in recorded.rows if row.claim in left_out)}
    runs = [[run for run in made.runs if run.experiment not in apart] for made in (recorded, repeated)]
    return [
        *(["the results file was edited after its run: its sha256 does not fit"] * edited(recorded)),
        *_settings(recorded, repeated),
        *_runs(*runs, whole=whole, hashed=not close),
        *_rows(recorded.rows, repeated.rows, names, close, single, rounding),
        *_rows(recorded.planted, repeated.planted, {row.claim for row in recorded.planted}, close, single),
        *_tables(recorded.observations, repeated.observations, names, close, single),
    ]


def _names(made: Results) -> set[str]:
    return {*(row.claim for row in made.rows), *(table.id for table in made.observations)}


def _settings(recorded: Results, repeated: Results) -> Iterator[str]:
    for name in _SETTINGS:
        change = _change(getattr(recorded.suite, name), getattr(repeated.suite, name))
        if change:
            yield f"{name} {change}"


def _runs(
    recorded: Sequence[RunRecord], repeated: Sequence[RunRecord], *, whole: bool, hashed: bool
) -> Iterator[str]:
    """Where fewer claims are repeated, the others may have asked for more of the same replicates."""
    before, now = (
        {(r.experiment, canonical(r.parameters)): r for r in runs} for runs in (recorded, repeated)
    )
    for name, run in before.items():
        place, again = f"{run.experiment} at {run.parameters}", now.get(name)
        if again is None or run.replicates != again.replicates:
            count = again.replicates if again else "none"
            yield from [f"{place}: {run.replicates} replicates were recorded, now {count}"] * whole
        elif hashed and run.sha256 != again.sha256:
            yield f"{place}: {run.replicates} replicates, scores differ"
    for name in now.keys() - before.keys() if whole else ():
        yield f"{now[name].experiment} at {now[name].parameters}: none was recorded, now it is drawn"


def _rows(
    recorded: Sequence[Row],
    repeated: Sequence[Row],
    names: Collection[str],
    close: float,
    single: Collection[str],
    rounding: Mapping[str, float] = NONE,
) -> Iterator[str]:
    before, now = ({row.id: row for row in rows if row.claim in names} for rows in (recorded, repeated))
    for name in dict.fromkeys((*before, *now)):
        change = _presence(name, before, now)
        if not change:
            row, left = before[name], rounding.get(before[name].claim, 0.0)
            loose = row.experiment in single or left == math.inf
            change = _row_change(row, now[name], max(close, left) if close and not loose else close, loose)
        if change:
            yield f"{name}: {change}"


def _row_change(recorded: Row, again: Row, close: float, loose: bool) -> str:
    if recorded.verdict != again.verdict:
        return f"{recorded.verdict} was recorded, now {again.verdict}"
    if close and loose and not any(point.numerical for point in recorded.points):
        return ""  # a training moves with the last bit, by how much nobody knows
    if len(recorded.points) != len(again.points):
        return f"{len(recorded.points)} points were recorded, now {len(again.points)}"
    pairs = list(zip(recorded.points, again.points, strict=True))
    changes = (
        (name, i, _change(getattr(one, name), getattr(other, name), _allowed(one, name, close)))
        for name in _POINT
        for i, (one, other) in enumerate(pairs)
    )
    where = ", at point {}" if len(pairs) > 1 else ""
    told = next((f"{name} {change}{where.format(i)}" for name, i, change in changes if change), "")
    return told or _field_change(recorded, again, _ROW, close) or _line_change(recorded.curves, again.curves)


DERIVED = 100
"""So many times as far as a mean what else is made of the scores may move: the ends of its interval, its skewness."""


def _allowed(point: PointOutcome, name: str, close: float) -> float:
    """Relative difference of a number of a point; some experiments are in single precision and say so."""
    size = abs(point.measured or 0.0)
    allowed = max(close, point.numerical / size) if close and size > 0 else close
    return allowed if name in _FIRST else DERIVED * allowed


def _line_change(recorded: Sequence[Curve], again: Sequence[Curve]) -> str:
    """Layouts differ in the digits and places of a curve, which no verdict rests on: what is compared is the line."""
    settings = [canonical([(curve.axis, curve.at) for curve in curves]) for curves in (recorded, again)]
    pairs = zip(recorded, again, strict=False)
    if settings[0] == settings[1] and all(same_line(one, other) for one, other in pairs):
        return ""
    return f"curves {_change(recorded, again)}"


def _field_change(recorded: Any, again: Any, names: Sequence[str], close: float) -> str:
    changes = ((name, _change(getattr(recorded, name), getattr(again, name), close)) for name in names)
    return next((f"{name} {change}" for name, change in changes if change), "")


def _tables(
    recorded: Sequence[Observed],
    repeated: Sequence[Observed],
    names: Collection[str],
    close: float,
    single: Collection[str],
) -> Iterator[str]:
    before, now = ({table.id: table for table in made if table.id in names} for made in (recorded, repeated))
    for name in dict.fromkeys((*before, *now)):
        change = _presence(name, before, now)
        change = change or _table_change(before[name], now[name], close, name in single)
        if change:
            yield f"{name}: {change}"


def _table_change(recorded: Observed, again: Observed, close: float, single: bool) -> str:
    if bool(recorded.error) != bool(again.error):
        return "a table was recorded, now broken" if again.error else "broken was recorded, now a table"
    if close and single:
        return ""
    return "the table differs" if _field_change(recorded, again, _TABLE, close) else ""


def _presence(name: str, before: Collection[str], now: Collection[str]) -> str:
    if name not in now:
        return "recorded, now missing"
    return "" if name in before else "not recorded, now there"


def _change(recorded: Any, again: Any, close: float = 0.0) -> str:
    """Values as text, in which a NaN equals itself, and a list, as files have it, a tuple."""
    one, other = canonical(recorded), canonical(again)
    if one == other or (close and _near(json.loads(one), json.loads(other), close)):
        return ""
    return f"{_short(one)} was recorded, now {_short(other)}"


def _near(one: Any, other: Any, close: float) -> bool:
    """Whether two values differ by numbers that are close alone."""
    if isinstance(one, int | float) and isinstance(other, int | float):  # a whole number has lost its point
        return math.isclose(one, other, rel_tol=close, abs_tol=close * close)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(_near(a, b, close) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return all(_near(value, other[name], close) for name, value in one.items())
    return one == other


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
