"""From the scores of one experiment at one point to a verdict on one reading of a claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import BLOCK, Point
from verify.intervals import FEWEST, Interval, mean_interval, proportion_interval, ratio_interval
from verify.model import Claim, Kind, Prediction, Verdict
from verify.results import Look, PointOutcome, RivalOutcome

__all__ = [
    "PRINTED",
    "SEPARATION",
    "Judgement",
    "Reading",
    "applies",
    "decide",
    "judge",
    "looks",
    "outcome",
    "readings",
    "separation",
]

PRINTED = "as our copy reads"
GROWTH = 1.25

SEPARATION = 2.0
"""A rival must be this many margins away from the theory to be told apart from it."""

Scores = Mapping[str, NDArray[np.float64]]


class Reading(NamedTuple):
    """A claim as corrected (or undisputed), or as our copy of the paper reads."""

    label: str
    predict: Prediction
    score: str | tuple[str, str]
    expected: Verdict


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on one reading at one point, after so many replicates."""

    verdict: Verdict
    interval: Interval
    predicted: float
    margin: float
    replicates: int


def readings(claim: Claim) -> tuple[Reading, ...]:
    """The reading the suite stands behind and, where the paper reads otherwise in our copy, that one too."""
    if claim.printed is None:
        return (Reading("theory", claim.predict, claim.score, claim.expected),)
    printed = claim.printed
    other = (
        Reading(PRINTED, claim.predict, printed, Verdict.DISAGREES)
        if isinstance(printed, str)
        else Reading(PRINTED, printed, claim.score, Verdict.DISAGREES)
    )
    return (Reading("corrected", claim.predict, claim.score, claim.expected), other)


def separation(claim: Claim, point: Point, formula: Prediction) -> float:
    """Distance of a formula from the theory at a point, in margins; infinite where it gives no real number."""
    try:
        value = claim.prediction(point, formula)
    except TypeError:  # complex
        return math.inf
    distance = abs(value - claim.prediction(point))
    return distance / claim.margin_at(point) if math.isfinite(distance) else math.inf


def applies(claim: Claim, reading: Reading, point: Point) -> bool:
    """Whether a reading is judged at a point: one that coincides with the theory there has nothing to be judged."""
    if reading.label != PRINTED or reading.score != claim.score:
        return True
    return separation(claim, point, reading.predict) >= SEPARATION


def looks(budget: int) -> list[int]:
    """Numbers of replicates at which a verdict is tried: from 64 on, growing by a quarter, whole blocks.

    >>> looks(200)
    [64, 80, 112, 144, 192, 208]
    """
    last = BLOCK * math.ceil(budget / BLOCK)
    steps = [min(FEWEST, last)]
    while steps[-1] < last:
        steps.append(min(BLOCK * math.ceil(GROWTH * steps[-1] / BLOCK), last))
    return steps


def decide(interval: Interval, low: float, high: float) -> Verdict:
    """Agrees with the interval strictly inside (low, high), disagrees with it outside [low, high].

    >>> decide(Interval(estimate=1.0, lower=0.9, upper=1.1), 0.8, 1.2)
    <Verdict.AGREES: 'agrees'>
    """
    if interval.obstacle:
        return Verdict.UNDECIDED
    if low < interval.lower and interval.upper < high:
        return Verdict.AGREES
    if interval.upper < low or interval.lower > high:
        return Verdict.DISAGREES
    return Verdict.UNDECIDED


def judge(claim: Claim, reading: Reading, point: Point, scores: Scores, alpha: float) -> Judgement:
    """Judge one reading on all replicates drawn so far.

    Raises
    ------
    ValueError
        If a score is missing or not finite.
    """
    interval, predicted = _measure(claim, reading.predict, reading.score, point, scores, alpha)
    measured_inputs = claim.inputs and claim.relative and math.isfinite(predicted)
    margin = claim.margin * abs(predicted) if measured_inputs else claim.margin_at(point)
    # a prediction that is no number cannot be agreed with: whatever was measured lies outside of it
    band = _band(claim, predicted, margin)
    verdict = decide(interval, *band) if math.isfinite(predicted) else _beyond(interval)
    return Judgement(
        verdict=verdict, interval=interval, predicted=predicted, margin=margin, replicates=_count(scores)
    )


def outcome(
    claim: Claim,
    reading: Reading,
    point: Point,
    judged: Judgement,
    scores: Scores,
    trail: Sequence[Judgement],
    alpha: float,
) -> PointOutcome:
    """The record of a judgement: interval in its parts, rivals, inputs, and the judgements that led to it."""
    interval, n = judged.interval, judged.replicates
    used = {name: column[:n] for name, column in scores.items()}
    reason, needed = _undecided(claim, judged) if judged.verdict is Verdict.UNDECIDED else ("", None)
    return PointOutcome(
        parameters=dict(point),
        verdict=judged.verdict,
        predicted=judged.predicted,
        margin=judged.margin,
        measured=interval.estimate,
        lower=interval.lower,
        upper=interval.upper,
        statistical=interval.half_width - interval.numerical,
        numerical=interval.numerical,
        skewness=interval.skewness,
        replicates=n,
        reason=reason,
        needed=needed,
        offset_resolved=judged.verdict is Verdict.AGREES
        and claim.kind is not Kind.AT_LEAST
        and not interval.lower <= judged.predicted <= interval.upper,
        inputs={name: float(used[name].mean()) for name in claim.inputs},
        rivals=[_rival(claim, name, point, used, judged, alpha) for name in claim.rivals]
        if reading.label != PRINTED
        else [],
        looks=[_look(claim, judged, earlier) for earlier in trail],
    )


def _look(claim: Claim, judged: Judgement, earlier: Judgement) -> Look:
    """An earlier interval; a prediction from measured inputs has moved since, and the interval with it."""
    interval = earlier.interval.shifted(judged.predicted - earlier.predicted if claim.inputs else 0.0)
    return Look(
        replicates=earlier.replicates,
        measured=interval.estimate,
        lower=interval.lower,
        upper=interval.upper,
    )


def _measure(
    claim: Claim,
    predict: Prediction,
    score: str | tuple[str, str],
    point: Point,
    scores: Scores,
    alpha: float,
) -> tuple[Interval, float]:
    if claim.inputs:
        joined = SimpleNamespace(**point, **dict(_columns(scores, *claim.inputs)))
        values = _column(scores, score)
        return _paired(claim, values, np.broadcast_to(_evaluate(predict, joined), values.shape), alpha)
    predicted = float(_evaluate(predict, point))
    if claim.kind is Kind.RATIO:
        top, bottom = (column for _, column in _columns(scores, *score))
        return ratio_interval(top, bottom, alpha=alpha), predicted
    values = _column(scores, score)
    if claim.kind is Kind.PROPORTION:
        if not np.isin(values, (0.0, 1.0)).all():
            raise ValueError(f"score {score!r} must be 0 or 1 to count as an event, got {_stray(values)}")
        return proportion_interval(int(values.sum()), len(values), alpha=alpha), predicted
    return mean_interval(values, alpha=alpha, numerical=claim.numerical), predicted


def _paired(
    claim: Claim, values: NDArray[np.float64], predicted: NDArray[np.float64], alpha: float
) -> tuple[Interval, float]:
    """Score against the prediction on the same replicate, relative to it where the margin is.

    What the two share cancels replicate by replicate, the skewness of a common scale above all.
    """
    centre = float(predicted.mean())
    if not np.isfinite(predicted).all():
        return mean_interval(values, alpha=alpha, numerical=claim.numerical), math.nan
    relative = claim.relative and bool((predicted != 0).all()) and centre != 0
    unit = np.abs(predicted) if relative else np.ones_like(predicted)
    numerical = claim.numerical / float(unit.min())
    residual = mean_interval((values - predicted) / unit, alpha=alpha, numerical=numerical)
    return residual.scaled(abs(centre) if relative else 1.0).shifted(centre), centre


def _evaluate(predict: Prediction, point: Point | SimpleNamespace) -> NDArray[np.float64]:
    value = np.asarray(predict(point))
    return np.where(np.isreal(value), np.real(value), np.nan).astype(np.float64)


def _rival(
    claim: Claim, name: str, point: Point, scores: Scores, judged: Judgement, alpha: float
) -> RivalOutcome:
    if claim.inputs:
        interval, value = _measure(claim, claim.rivals[name], claim.score, point, scores, alpha)
    else:
        interval, value = judged.interval, float(_evaluate(claim.rivals[name], point))
    # a rival bound below what was measured holds too, however far away it is
    lower = -math.inf if claim.kind is Kind.AT_LEAST else interval.lower
    return RivalOutcome(
        name=name,
        value=value,
        margins=abs(value - judged.predicted) / judged.margin,
        rejected=not interval.obstacle and not lower <= value <= interval.upper,
    )


def _undecided(claim: Claim, judged: Judgement) -> tuple[str, float | None]:
    """Why no verdict was reached, and the replicates it would take at the present estimate and spread."""
    interval = judged.interval
    if interval.obstacle:
        return interval.obstacle, None
    low, high = _band(claim, judged.predicted, judged.margin)
    # only the statistical part of the half-width shrinks
    room = min(abs(interval.estimate - low), abs(interval.estimate - high)) - interval.numerical
    shrink = (interval.half_width - interval.numerical) / room if room > 0 else math.inf
    needed = judged.replicates * shrink * shrink
    return "budget", float(BLOCK * math.ceil(needed / BLOCK)) if math.isfinite(needed) else needed


def _band(claim: Claim, predicted: float, margin: float) -> tuple[float, float]:
    return predicted - margin, math.inf if claim.kind is Kind.AT_LEAST else predicted + margin


def _beyond(interval: Interval) -> Verdict:
    return Verdict.UNDECIDED if interval.obstacle else Verdict.DISAGREES


def _columns(scores: Scores, *names: str) -> list[tuple[str, NDArray[np.float64]]]:
    return [(name, _column(scores, name)) for name in names]


def _column(scores: Scores, name: Any) -> NDArray[np.float64]:
    if name not in scores:
        raise ValueError(f"score must be one of {', '.join(scores)}, got {name!r}")
    if not np.isfinite(scores[name]).all():
        index = int(np.flatnonzero(~np.isfinite(scores[name]))[0])
        raise ValueError(f"score {name!r} must be finite, got {scores[name][index]} in replicate {index}")
    return scores[name]


def _stray(values: NDArray[np.float64]) -> float:
    return float(values[~np.isin(values, (0.0, 1.0))][0])


def _count(scores: Scores) -> int:
    return len(next(iter(scores.values())))
