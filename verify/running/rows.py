"""Rows of the report: verdicts over all points of a claim, what the run could have seen, and how to rerun it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Point
from verify.claims.images import DIGITS
from verify.judging.guards import BY_CHANCE
from verify.judging.judge import PRINTED, SEPARATION, Reading, combine, passage
from verify.judging.power import claim_power
from verify.model import (
    MODEL_BASED,
    AnyClaim,
    Claim,
    Experiment,
    Standing,
    StatisticalProperty,
    Verdict,
)
from verify.results import Curve, PointOutcome, Row
from verify.results.lines import drawn_at_points_only, spans_decades

if TYPE_CHECKING:
    from verify.running.settings import Settings

CURVE_POINTS = 13
"""Places of the first grid of a curve, across the points and next to them."""

STRAIGHT = 1 / 400
"""Largest error of a line, as a share of its axis: less than a pixel."""

REACH = 3.0
"""Ranges of the prediction beyond which no picture shows a rival: there its bends do not count."""

HALVINGS = 9
"""Most halvings of the distance between two places of the grid: less than a pixel is left."""

SHOWN = 7
"""Digits of a curve: fewer would miss the table, which is to be met to a millionth; a picture shows four."""

MOST_CURVES = 3

Found = Mapping[Reading, list[PointOutcome]]
"""What the readings of a claim came to; the one the suite stands behind is the first, and judged everywhere."""


def claim_row(
    claim: Claim,
    reading: Reading,
    found: Found,
    seconds: float,
    settings: Settings,
) -> Row:
    """The row of one reading of a claim, from what all of its readings came to.

    Raises
    ------
    ValueError
        If a curve does not pass through what the table says at a point.
    """
    outcomes = found[reading]
    power = claim_power(claim, outcomes)
    row = row_of(
        claim,
        reading.label,
        settings,
        kind=claim.kind.value,
        verdict=combine([o.verdict for o in outcomes]),
        margin=claim.margin,
        relative=claim.relative,
        margin_reason=claim.margin_reason,
        experiment=claim.experiment.id,
        replicate=claim.experiment.replicate,
        data=claim.experiment.data,
        quantity=claim.quantity,
        logarithm=claim.logarithm,
        power=power.words,
        sensitivity=power.sensitivity,
        seconds=seconds,
        points=outcomes,
        curves=_curves(claim, reading, found, between=False) if claim.axis else [],
        model_based=claim.kind in MODEL_BASED,
    )
    # Formulas between the points take time, which a picture of the points alone does not need.
    if row.curves and not drawn_at_points_only(row):
        return replace(row, curves=_curves(claim, reading, found, between=True))
    return row


def broken_row(claim: AnyClaim, error: str, settings: Settings) -> Row:
    """The row of a check that crashed, or that could not have failed."""
    return row_of(
        claim,
        "theory",
        settings,
        kind="check",
        verdict=Verdict.BROKEN,
        experiment=claim.experiment.id if isinstance(claim, Claim) else claim.id,
        data=claim.experiment.data if isinstance(claim, Claim) else claim.data,
        error=error,
    )


def row_id(claim: AnyClaim, label: str) -> str:
    """Return the id of the row of a reading; the reading that the suite holds true has the id of the claim."""
    return f"{claim.id} [{label}]" if label == PRINTED else claim.id


def rerun_command(claim: str, settings: Settings) -> str:
    """The shell command that runs one claim again with the same streams."""
    s = settings
    words = ["--claim", claim, "--seed", str(s.seed), "--tier", s.tier.value]
    words += ["--replicates", str(s.replicates)] if s.replicates is not None else []
    words += ["--device", s.device] if s.device != "cpu" else []
    words += ["--draws", s.draws] if s.draws else []
    words += ["--data", s.data] if s.data != DIGITS else []
    return shlex.join(["losscurv", "report", *words])


_BLANK: dict[str, Any] = {
    "margin": 0.0,
    "relative": False,
    **dict.fromkeys(("margin_reason", "quantity", "replicate", "data", "power"), ""),
}


def row_of(
    claim: AnyClaim,
    label: str,
    settings: Settings,
    *,
    verdict: Verdict,
    seconds: float = 0.0,
    **facts: Any,
) -> Row:
    """The row of one reading, whatever the kind of claim; `facts` are the fields that its kind fills."""
    # A claim with a printed reading says that this reading is wrong: our copy of the formula must fail.
    expected = Verdict.DISAGREES if label == PRINTED else claim.expected
    said = passage(claim, label)
    return Row(
        id=row_id(claim, label),
        claim=claim.id,
        paper=claim.paper,
        reading=label,
        entries=list(claim.entries),
        source=claim.source,
        statement=(claim.reads if label == PRINTED else "") or claim.statement,
        expected=expected.value,
        verdict=verdict.value,
        surprise=verdict != expected
        and not (verdict is Verdict.UNDECIDED and _excused(claim, expected, settings, facts)),
        # of a formula that fails, or of a corrected one judged alone
        finding=claim.finding
        if label == PRINTED
        or expected is Verdict.DISAGREES
        or (said.standing is Standing.CORRECTED and said.words)
        else "",
        standing=said.standing.value,
        words=said.words,
        place=said.place,
        slip=said.slip,
        root=said.root,
        no_theory=claim.no_theory or "",
        rerun=rerun_command(claim.id, settings),
        seconds=round(seconds, 3),
        pilot=claim.pilot,
        may_be_undecided=claim.may_be_undecided,
        **{**_BLANK, "experiment": claim.id, **facts},
    )


def _excused(claim: AnyClaim, expected: Verdict, settings: Settings, facts: Mapping[str, Any]) -> bool:
    """Return whether an undecided verdict is no surprise, because its reason was foreseen."""
    drawn = claim.experiment if isinstance(claim, Claim) else claim
    budget = drawn.budget if isinstance(drawn, Experiment | StatisticalProperty) else 0
    lowered = settings.replicates is not None and settings.replicates < budget
    # The caller chose fewer replicates than planned, or images that the claim was not planned for.
    if lowered or (facts.get("data") and settings.data != DIGITS):
        return True
    points: Sequence[PointOutcome] = facts.get("points", ())
    modelled = bool(facts.get("model_based"))
    far = (abs(at.measured - at.predicted) > SEPARATION * at.margin for at in points)
    # A mean this far off is evidence against the theory, not a lack of replicates.
    if modelled and expected is Verdict.AGREES and any(far):
        return False
    # The test of fit of a size model fails once in a thousand runs even if the model holds.
    by_chance = modelled and all(at.reason in BY_CHANCE for at in points if at.verdict == Verdict.UNDECIDED)
    return bool(claim.may_be_undecided.strip()) or by_chance


def require_separated(rivals: Sequence[str], outcomes: list[PointOutcome]) -> None:
    """Refuse a check with a rival that is nowhere two tolerances away: such a check cannot fail."""
    rejected = {rival.name for o in outcomes for rival in o.rivals if rival.rejected}
    for name in rivals:
        if name not in rejected:
            raise ValueError(
                f"rival {name!r} must differ by two tolerances at one point, else this check cannot fail"
            )


# --- curves --------------------------------------------------------------------------------------------------


def _curves(claim: Claim, reading: Reading, found: Found, *, between: bool) -> list[Curve]:
    """Prediction and rivals over the claim's axis, once per setting of the other parameters.

    At the points, and `between` them too unless predictions are from measured inputs.
    """
    points = [Point(**o.parameters) for o in next(iter(found.values()))]
    settings = {_setting(claim, p): p for p in points}
    others = [r for r in found if r is not reading and r.score == reading.score]
    # Inputs were measured at the points only, so nothing can be predicted between them.
    if claim.inputs:
        made = [_measured_curve(claim, reading, found, others, at) for at in settings]
        return [curve for curve in made if curve.x][:MOST_CURVES]
    values = [p[claim.axis] for p in points]
    x = _grid(values) if between else sorted({float(value) for value in values})
    return [
        _curve(claim, reading, others, at, x, between=between) for at in list(settings.values())[:MOST_CURVES]
    ]


def _setting(claim: Claim, point: Mapping[str, Any]) -> Point:
    """The parameters that do not change along a curve."""
    return Point(**{name: value for name, value in point.items() if name != claim.axis})


def _rivals(claim: Claim, reading: Reading) -> Mapping[str, Any]:
    """The rivals that stand in the table of a reading."""
    return claim.rivals if reading.label != PRINTED else {}


def _rounded_curve(
    claim: Claim, at: Point, x: Iterable[float], predicted: Iterable[float], rivals: Mapping[str, Any]
) -> Curve:
    """Return a curve in fewer digits than the table and all numbers that a verdict rests on."""
    return Curve(
        axis=claim.axis,
        at=dict(_setting(claim, at)),
        x=list(map(float, x)),
        predicted=list(map(_as_drawn, predicted)),
        rivals={name: list(map(_as_drawn, values)) for name, values in rivals.items()},
    )


def _measured_curve(
    claim: Claim, reading: Reading, found: Found, others: Sequence[Reading], at: Point
) -> Curve:
    """Predictions from measured inputs, at the points where these were measured and nowhere else."""
    here = {
        r: {o.parameters[claim.axis]: o for o in found[r] if _setting(claim, o.parameters) == at}
        for r in (reading, *others)
    }
    mine = dict(sorted(here[reading].items()))
    values = [{rival.name: rival.value for rival in o.rivals} for o in mine.values()]
    rivals = {name: [each[name] for each in values] for name in _rivals(claim, reading)}
    # The other reading may not apply at all of these points: NaN leaves a gap in its line.
    said = {r.label: [here[r][x].predicted if x in here[r] else math.nan for x in mine] for r in others}
    return _rounded_curve(claim, at, mine, (o.predicted for o in mine.values()), {**rivals, **said})


def _grid(values: Sequence[float]) -> list[float]:
    """The places of the points, and so many between and around them that a line through all looks smooth.

    Where the places are whole numbers there is nothing between two of them.
    """
    low, high = float(min(values)), float(max(values))
    # A single point has no range: reach half of its value to each side.
    reach = 0.25 * (high - low) or 0.5 * abs(high)
    # Stay above 0: many formulas end there.
    start, end = max(low - reach, low / 2) if low > 0 else low - reach, high + reach
    if spans_decades([start, end]):
        start, end = low / (high / low) ** 0.1, high * (high / low) ** 0.1
        between = np.geomspace(start, end, CURVE_POINTS)
    else:
        between = np.linspace(start, end, CURVE_POINTS)
    if all(isinstance(value, int) for value in values):
        between = np.unique(np.clip(np.round(between), math.ceil(start), math.floor(end)))
        return sorted({*between.tolist(), *map(float, values)})
    return sorted({*map(_as_drawn, between.tolist()), *map(float, values)})


def _curve(
    claim: Claim, reading: Reading, others: Sequence[Reading], at: Point, x: Sequence[float], *, between: bool
) -> Curve:
    """At these places, and `between` them where a picture needs others."""
    rivals = {**_rivals(claim, reading), **{r.label: r.predict for r in others}}

    def said(x: float) -> list[float]:
        return [_value(claim, formula, at, x) for formula in (reading.predict, *rivals.values())]

    whole = isinstance(at[claim.axis], int)
    found = _refined(x, said, whole=whole) if between else {v: said(v) for v in x}
    predicted, *values = zip(*found.values(), strict=True)
    return _rounded_curve(claim, at, found, predicted, dict(zip(rivals, values, strict=True)))


def _refined(
    grid: Sequence[float], said: Callable[[float], list[float]], *, whole: bool = False
) -> dict[float, list[float]]:
    """Return formulas on a grid that is refined until curves between its places look straight.

    Between `whole` numbers are no others.
    """
    known = {x: said(x) for x in grid}
    predicted = [values[0] for values in known.values()]
    scale, decades = _extent(predicted)
    if not scale:  # a prediction of 0 everywhere: the rivals have a range
        predicted = [y for values in known.values() for y in values]
        scale, _ = _extent(predicted)
    # Rivals that leave the picture may bend there: nobody sees it, and each bend costs evaluations.
    finite = [y for y in predicted if math.isfinite(y)] or [0.0]
    seen = min(finite) - REACH * scale, max(finite) + REACH * scale
    along = math.log if spans_decades([grid[0], grid[-1]]) else float
    between = [(a, b, HALVINGS) for a, b in pairwise(grid)]
    while between:
        a, b, left = between.pop()
        # The middle as the eye sees it on a logarithmic axis.
        m = math.sqrt(a * b) if along is math.log else (a + b) / 2
        m = float(round(m)) if whole else _as_drawn(m)
        # Rounding may have moved the middle onto an end: nothing is left between.
        if left and a < m < b:
            known[m] = said(m)
            share = (along(m) - along(a)) / (along(b) - along(a))
            values = zip(known[a], known[m], known[b], strict=True)
            if any(_is_bent(y, share, scale, decades, seen) for y in values):
                between += [(a, m, left - 1), (m, b, left - 1)]
    return dict(sorted(known.items()))


def _extent(predicted: Sequence[float]) -> tuple[float, float]:
    """Return the range of predicted values, and of their logarithms if they span decades, else 0."""
    finite = [y for y in predicted if math.isfinite(y)]
    if not finite:
        return 0.0, 0.0
    low, high = min(finite), max(finite)
    return (high - low) or abs(high), math.log(high / low) if spans_decades(finite) else 0.0


def _is_bent(
    y: tuple[float, float, float], share: float, scale: float, decades: float, seen: tuple[float, float]
) -> bool:
    """Whether the value between two lies visibly off the line that joins them, or one of the three is no number."""
    if not all(map(math.isfinite, y)):
        return any(map(math.isfinite, y))
    left, middle, right = (min(max(value, seen[0]), seen[1]) for value in y)
    if abs(left + share * (right - left) - middle) > STRAIGHT * scale:
        return True
    # On a logarithmic axis bends of the smallest values show too.
    if not decades or min(y) <= 0:
        return False
    left, middle, right = y
    return abs(math.log(left) + share * math.log(right / left) - math.log(middle)) > STRAIGHT * decades


def _as_drawn(value: float) -> float:
    return float(f"{value:.{SHOWN}g}")


def _value(claim: Claim, formula: Any, at: Point, x: float) -> float:
    """A formula on the curve's grid; NaN, a gap in the line, where it is not defined."""
    whole = isinstance(at[claim.axis], int)
    try:
        with np.errstate(all="ignore"):
            return claim.prediction(at | {claim.axis: round(x) if whole else x}, formula)
    except (ValueError, ArithmeticError, TypeError):  # a complex number is a TypeError
        return math.nan
