"""Rows of the report: verdicts over all points of a claim, what the run could have seen, and how to rerun it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Point
from verify.claims.images import DIGITS
from verify.judging.estimands import components
from verify.judging.judge import PRINTED, Reading, passage, readings
from verify.judging.power import claim_power, digits, explored_power
from verify.model import AnyClaim, Claim, ExactProperty, Identity, StatisticalProperty, Verdict
from verify.results import Curve, PointOutcome, RivalOutcome, Row
from verify.results.lines import spans_decades, strays

if TYPE_CHECKING:
    from verify.judging.properties import Explored
    from verify.running.settings import Settings

__all__ = [
    "broken_row",
    "claim_row",
    "combine",
    "identity_outcome",
    "identity_row",
    "property_row",
    "rerun_command",
]

CURVE_POINTS = 97
MOST_CURVES = 3
AGREEING_SHARE = 0.9


def claim_row(
    claim: Claim,
    reading: Reading,
    found: Mapping[str, list[PointOutcome]],
    seconds: float,
    settings: Settings,
) -> Row:
    """The row of one reading of a claim, from what all of its readings came to, by label.

    Raises
    ------
    ValueError
        If a curve does not pass through what the table says at a point.
    """
    outcomes = found[reading.label]
    row = _row(
        claim,
        reading.label,
        settings,
        kind=claim.kind.value,
        expected=reading.expected,
        verdict=combine([o.verdict for o in outcomes]),
        margin=claim.margin,
        relative=claim.relative,
        margin_reason=claim.margin_reason,
        experiment=claim.experiment.id,
        replicate=claim.experiment.replicate,
        data=claim.experiment.data,
        quantity=claim.quantity,
        power=claim_power(claim, outcomes),
        seconds=seconds,
        points=outcomes,
        curves=_curves(claim, reading, found) if claim.axis else [],
        model_based=claim.kind.model_based,
    )
    for stray in strays(row):
        raise ValueError(f"curves of {row.id} must pass through its table, got {stray}")
    return row


def identity_outcome(claim: Identity, label: str, point: Point, found: Mapping[str, Any]) -> PointOutcome:
    """The difference of two routes, relative to the largest entry, against the tolerance."""
    measured = found[claim.measured]
    difference = _difference(measured, found[claim.printed if label == PRINTED else claim.theory])
    return PointOutcome(
        parameters=dict(point),
        verdict=Verdict.AGREES if difference <= claim.tolerance else Verdict.DISAGREES,
        predicted=0.0,
        margin=claim.tolerance,
        measured=difference,
        lower=difference,
        upper=difference,
        rivals=[]
        if label == PRINTED
        else [
            _route_rival(name, _difference(measured, found[name]), claim.tolerance) for name in claim.rivals
        ],
    )


def identity_row(
    claim: Identity, label: str, outcomes: list[PointOutcome], seconds: float, settings: Settings
) -> Row:
    """The row of one reading of an identity."""
    _require_separated(claim.rivals if label != PRINTED else (), outcomes)
    worst = max(o.measured for o in outcomes)
    return _row(
        claim,
        label,
        settings,
        kind="identity",
        expected=Verdict.DISAGREES if label == PRINTED else claim.expected,
        verdict=combine([o.verdict for o in outcomes]),
        margin=claim.tolerance,
        margin_reason=claim.tolerance_reason,
        quantity=claim.quantity,
        data=claim.data,
        power=f"The two routes agree to {digits(worst)} digits; a difference beyond {claim.tolerance:.1g} is seen.",
        seconds=seconds,
        points=outcomes,
    )


def property_row(claim: ExactProperty | StatisticalProperty, explored: Explored, settings: Settings) -> Row:
    """The row of a property: one disagreeing example is enough, nine in ten must agree."""
    exact = isinstance(claim, ExactProperty)
    if exact:
        _require_separated(tuple(claim.rivals), explored.outcomes)
    return _row(
        claim,
        "theory",
        settings,
        kind="exact property" if exact else "property",
        expected=claim.expected,
        verdict=_explored_verdict(explored),
        margin=claim.tolerance if exact else claim.margin,
        relative=not exact and claim.relative,
        margin_reason=claim.tolerance_reason if exact else claim.margin_reason,
        replicate="" if exact else claim.replicate,
        quantity="" if exact else claim.quantity,
        data=claim.data,
        power=explored_power(claim, explored),
        seconds=explored.seconds,
        # the simplest failing example last, where a reader looks for it
        points=[o for o in explored.outcomes if o is not explored.failing]
        + ([explored.failing] if explored.failing else []),
    )


def broken_row(claim: AnyClaim, error: str, settings: Settings) -> Row:
    """The row of a check that crashed, or that could not have failed."""
    return _row(
        claim,
        "theory",
        settings,
        kind="check",
        expected=claim.expected,
        verdict=Verdict.BROKEN,
        experiment=claim.experiment.id if isinstance(claim, Claim) else "",
        data=claim.experiment.data if isinstance(claim, Claim) else claim.data,
        error=error,
    )


def combine(verdicts: Sequence[str]) -> Verdict:
    """One verdict over all points: any disagreement disagrees, all must agree to agree.

    >>> combine(["agrees", "undecided"])
    <Verdict.UNDECIDED: 'undecided'>
    """
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    agree = bool(verdicts) and all(v == Verdict.AGREES for v in verdicts)
    return Verdict.AGREES if agree else Verdict.UNDECIDED


def rerun_command(claim: str, settings: Settings) -> str:
    """The shell command that runs one claim again with the same streams."""
    words = [
        "losscurv",
        "report",
        "--claim",
        claim,
        "--seed",
        str(settings.seed),
        "--tier",
        settings.tier.value,
    ]
    words += ["--replicates", str(settings.replicates)] if settings.replicates is not None else []
    words += ["--device", settings.device] if settings.device != "cpu" else []
    words += ["--data", settings.data] if settings.data != DIGITS else []
    return shlex.join(words)


def _row(
    claim: AnyClaim,
    label: str,
    settings: Settings,
    *,
    kind: str,
    expected: Verdict,
    verdict: Verdict,
    margin: float = 0.0,
    relative: bool = False,
    margin_reason: str = "",
    experiment: str = "",
    replicate: str = "",
    data: str = "",
    quantity: str = "",
    power: str = "",
    seconds: float = 0.0,
    points: list[PointOutcome] | None = None,
    curves: list[Curve] | None = None,
    error: str = "",
    model_based: bool = False,
) -> Row:
    told = passage(claim, label)
    return Row(
        id=f"{claim.id} [{label}]" if label == PRINTED else claim.id,
        claim=claim.id,
        paper=claim.paper,
        reading=label,
        kind=kind,
        entries=list(claim.entries),
        source=claim.source,
        statement=claim.statement,
        expected=expected.value,
        verdict=verdict.value,
        surprise=verdict not in (expected, Verdict.UNDECIDED),
        margin=margin,
        relative=relative,
        margin_reason=margin_reason,
        quantity=quantity,
        experiment=experiment or claim.id,
        replicate=replicate,
        data=data,
        power=power,
        finding=claim.finding if label == PRINTED or expected is Verdict.DISAGREES else "",
        standing=told.standing.value,
        words=told.words,
        place=told.place,
        slip=told.slip,
        rerun=rerun_command(claim.id, settings),
        seconds=round(seconds, 3),
        points=points or [],
        curves=curves or [],
        error=error,
        model_based=model_based,
    )


def _explored_verdict(explored: Explored) -> Verdict:
    if explored.failing:
        return Verdict.DISAGREES
    agreeing, count = sum(o.verdict == Verdict.AGREES for o in explored.outcomes), len(explored.outcomes)
    return Verdict.AGREES if count and agreeing >= AGREEING_SHARE * count else Verdict.UNDECIDED


def _require_separated(rivals: Sequence[str], outcomes: list[PointOutcome]) -> None:
    """A rival that is nowhere two tolerances away would make the check one that cannot fail."""
    rejected = {rival.name for o in outcomes for rival in o.rivals if rival.rejected}
    for name in rivals:
        if name not in rejected:
            raise ValueError(
                f"rival {name!r} must differ by two tolerances at one point, this check cannot fail"
            )


def _route_rival(name: str, difference: float, tolerance: float) -> RivalOutcome:
    return RivalOutcome(
        name=name, value=difference, margins=difference / tolerance, rejected=difference > 2 * tolerance
    )


def _difference(a: Any, b: Any) -> float:
    """Largest difference of two arrays relative to their largest entry; infinite where one is not finite."""
    x, y = (np.asarray(v, dtype=np.result_type(v, np.float64)) for v in (a, b))
    if x.shape != y.shape:
        raise ValueError(f"routes must have one shape, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return math.inf
    scale = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    return float(np.abs(x - y).max(initial=0.0) / scale) if scale else 0.0


# --- curves --------------------------------------------------------------------------------------------------


def _curves(claim: Claim, reading: Reading, found: Mapping[str, list[PointOutcome]]) -> list[Curve]:
    """Prediction and rivals over the claim's axis, once per setting of the other parameters."""
    points = [p for point in claim.experiment.points for p in components(claim, point)]
    settings = {_setting(claim, p): p for p in points}
    labels = [r.label for r in readings(claim) if r.label != reading.label and r.score == reading.score]
    if claim.inputs:
        made = [_measured_curve(claim, reading, found, labels, at) for at in settings]
        return [curve for curve in made if curve.x][:MOST_CURVES]
    x = _grid([p[claim.axis] for p in points])
    return [_curve(claim, reading, labels, at, x) for at in list(settings.values())[:MOST_CURVES]]


def _setting(claim: Claim, point: Mapping[str, Any]) -> Point:
    """The parameters that do not change along a curve."""
    return Point(**{name: value for name, value in point.items() if name != claim.axis})


def _measured_curve(
    claim: Claim, reading: Reading, found: Mapping[str, list[PointOutcome]], labels: Sequence[str], at: Point
) -> Curve:
    """Predictions from measured inputs, at the points where these were measured and nowhere else."""
    here = {
        label: {o.parameters[claim.axis]: o for o in found[label] if _setting(claim, o.parameters) == at}
        for label in (reading.label, *labels)
    }
    mine = dict(sorted(here[reading.label].items()))
    rivals = {name: [_rival_value(o, name) for o in mine.values()] for name in _rivals(claim, reading)}
    said = {
        label: [here[label][x].predicted if x in here[label] else math.nan for x in mine] for label in labels
    }
    return Curve(
        axis=claim.axis,
        at=dict(at),
        x=[float(x) for x in mine],
        predicted=[o.predicted for o in mine.values()],
        rivals={**rivals, **said},
    )


def _rivals(claim: Claim, reading: Reading) -> Mapping[str, Any]:
    """The rivals that stand in the table of a reading."""
    return claim.rivals if reading.label != PRINTED else {}


def _rival_value(outcome: PointOutcome, name: str) -> float:
    return next(rival.value for rival in outcome.rivals if rival.name == name)


def _grid(values: Sequence[float]) -> list[float]:
    """The places of the points, and so many between and around them that a line through all looks smooth.

    Where the places are whole numbers there is nothing between two of them.
    """
    low, high = float(min(values)), float(max(values))
    reach = 0.25 * (high - low) or 0.5 * abs(high)
    start, end = max(low - reach, low / 2) if low > 0 else low - reach, high + reach
    if spans_decades([start, end]):
        start, end = low / (high / low) ** 0.1, high * (high / low) ** 0.1
        between = np.geomspace(start, end, CURVE_POINTS)
    else:
        between = np.linspace(start, end, CURVE_POINTS)
    if all(isinstance(value, int) for value in values):
        between = np.unique(np.clip(np.round(between), math.ceil(start), math.floor(end)))
    return sorted({*between.tolist(), *(float(value) for value in values)})


def _curve(claim: Claim, reading: Reading, labels: Sequence[str], at: Point, x: Sequence[float]) -> Curve:
    said = {r.label: r.predict for r in readings(claim) if r.label in labels}
    rivals = {**_rivals(claim, reading), **said}
    return Curve(
        axis=claim.axis,
        at=dict(_setting(claim, at)),
        x=list(x),
        predicted=[_value(claim, reading.predict, at, v) for v in x],
        rivals={name: [_value(claim, rival, at, v) for v in x] for name, rival in rivals.items()},
    )


def _value(claim: Claim, formula: Any, at: Point, x: float) -> float:
    """A formula on the curve's grid; NaN, a gap in the line, where it is not defined."""
    whole = isinstance(at[claim.axis], int)
    try:
        with np.errstate(all="ignore"):
            return claim.prediction(at | {claim.axis: round(x) if whole else x}, formula)
    except (ValueError, ArithmeticError, TypeError):  # a complex number is a TypeError
        return math.nan
