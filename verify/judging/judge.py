"""Verdict on one reading of a claim, from the scores of one experiment at one point."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulate.monte_carlo import BLOCK, Point
from verify.judging.estimands import Estimand, Scores, estimated, excesses, formula_distance, profile, slack
from verify.judging.guards import REFUTED, UNCONFIRMED
from verify.judging.intervals import FEWEST, Interval
from verify.model import (
    ABSOLUTE,
    BOUNDS_EVERY_REPLICATE,
    MODEL_BASED,
    ONE_SIDED,
    AnyClaim,
    Claim,
    Identity,
    Kind,
    Passage,
    Prediction,
    Standing,
    Verdict,
)
from verify.results import Look, PointOutcome, RivalOutcome, Violation

PRINTED = "as our copy reads"
GROWTH = 1.25

SEPARATION = 2.0
"""Least distance of a rival from the theory, in margins."""

KEPT = 8
"""Violations kept by their replicate: each can be drawn again alone."""

CITED = re.compile(r"[A-Z][\w-]+ (et al\. )?\((19|20)\d\d\)")
"""Authors with a year."""


class Reading(NamedTuple):
    """Reading of a claim: as corrected (or undisputed), or as our copy of the paper reads."""

    label: str
    predict: Prediction
    score: str | tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Verdict on one reading at one point, after so many replicates."""

    verdict: Verdict
    interval: Interval
    predicted: float
    margin: float
    replicates: int

    def half_widths_to(self, rival: RivalOutcome, kind: Kind) -> float:
        """Distance of a rival from what was measured, in half-widths; negative on the side where a bound holds."""
        if not 0 < self.interval.half_width < math.inf:
            return 0.0
        gap = (rival.value - self.interval.estimate) / self.interval.half_width
        return {Kind.AT_LEAST: gap, Kind.AT_MOST: -gap}.get(kind, abs(gap))


def readings(claim: Claim) -> tuple[Reading, ...]:
    """Return the reading held to be right and, where our copy of the paper reads otherwise, that one too."""
    own, *other = labels(claim)
    mine = Reading(own, claim.predict, claim.score)
    printed = {"score" if isinstance(claim.printed, str) else "predict": claim.printed}
    return (mine, *(mine._replace(label=label, **printed) for label in other))


def labels(claim: AnyClaim) -> tuple[str, ...]:
    """Return the names of a claim's readings: *corrected* next to a misprint, *theory* next to anything else."""
    return tuple(_passages(claim))


def passage(claim: AnyClaim, label: str) -> Passage:
    """Return the paper's passage on the reading with this label; a label of neither reading counts as the first."""
    own, *printed = _passages(claim).values()
    return printed[0] if label == PRINTED else own


def _passages(claim: AnyClaim) -> dict[str, Passage]:
    """Return the passage on each reading; the paper's own words go with one reading, not with both."""
    printed = isinstance(claim, Claim | Identity) and claim.printed not in (None, "")
    stated = claim.passage or Passage(Standing.MISPRINT if printed else Standing.AS_STATED)
    # a claim on a misprint corrects it, unless it judges the misprint alone, which is expected to fail
    corrects = stated.standing is Standing.MISPRINT and (printed or claim.expected is not Verdict.DISAGREES)
    label = "corrected" if corrects else "theory"
    if not printed:
        return {label: stated._replace(standing=Standing.CORRECTED) if corrects else stated}
    # a formula that fails and is no misprint has a counterpart: of those whom the source names, or ours
    counterpart = Standing.KNOWN if cites_others(claim) else Standing.OURS
    return {
        label: Passage(Standing.CORRECTED if corrects else counterpart, root=stated.root),
        PRINTED: stated,
    }


def cites_others(claim: AnyClaim) -> bool:
    """Whether a claim's source names anybody other than its paper, whose id is the first author and the year."""
    author, year = claim.paper[:-4], claim.paper[-4:]
    others = re.sub(rf"\b{author}\b[^()]*\({year}\)", "", claim.source, flags=re.IGNORECASE)
    return bool(CITED.search(others))


def separation(claim: Claim, point: Point, formula: Prediction) -> float:
    """Distance of a formula from the theory at a point, in margins; infinite where it gives no real number."""
    return formula_distance(claim, point, formula, claim.predict) / claim.margin_at(point)


def applies(claim: Claim, reading: Reading, point: Point) -> bool:
    """Whether a reading is judged at a point: not where it coincides with the theory."""
    # Another score, or a violation in single replicates, differs even where the formulas give the same number.
    if reading.label != PRINTED or reading.score != claim.score or claim.kind in BOUNDS_EVERY_REPLICATE:
        return True
    return separation(claim, point, reading.predict) >= SEPARATION


def replicates_fixed(claim: Claim) -> int | None:
    """Return the number of replicates after which a model-based claim is judged; None if it stops when decided.

    More replicates would resolve the terms that the size model leaves out, and worsen its fit.
    """
    return BLOCK * math.ceil(claim.experiment.budget / BLOCK) if claim.kind in MODEL_BASED else None


def looks(budget: int) -> list[int]:
    """Return the numbers of replicates at which a verdict is tried: from 96 on, growing by a quarter, whole blocks.

    >>> looks(200)
    [96, 128, 160, 208]
    """
    last = BLOCK * math.ceil(budget / BLOCK)
    steps = [min(FEWEST, last)]
    while steps[-1] < last:
        steps.append(min(BLOCK * math.ceil(GROWTH * steps[-1] / BLOCK), last))
    return steps


def decide(interval: Interval, low: float, high: float) -> Verdict:
    """Return *agrees* with the interval strictly inside (low, high), *disagrees* with it outside [low, high].

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


def combine(verdicts: Sequence[str]) -> Verdict:
    """One verdict over all points: any disagreement disagrees, all must agree to agree.

    >>> combine(["agrees", "undecided"])
    <Verdict.UNDECIDED: 'undecided'>
    """
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    agree = bool(verdicts) and all(v == Verdict.AGREES for v in verdicts)
    return Verdict.AGREES if agree else Verdict.UNDECIDED


def judge(claim: Claim, reading: Reading, point: Point, scores: Scores, alpha: float) -> Judgement:
    """Judge one reading on all replicates drawn so far.

    Raises
    ------
    ValueError
        If a score is missing or not finite.
    """
    interval, predicted, n = estimated(Estimand(claim, reading.predict, reading.score, point, scores, alpha))
    if claim.order is not None and not interval.obstacle:
        # a limit counts as known only if the claim on the order of its correction agrees
        verdict = judge(claim.order, readings(claim.order)[0], point, scores, alpha).verdict
        if verdict is not Verdict.AGREES:
            interval = interval.blocked_by(REFUTED if verdict is Verdict.DISAGREES else UNCONFIRMED)
    # The prediction moves with the measured inputs, and a relative margin moves with it.
    measured_inputs = claim.inputs and claim.relative and math.isfinite(predicted)
    margin = claim.margin * abs(predicted) if measured_inputs else claim.margin_at(point)
    if claim.kind in BOUNDS_EVERY_REPLICATE and interval.estimate > 0:
        verdict = Verdict.DISAGREES  # one violation refutes what must always hold, however rare it is
    elif math.isfinite(predicted):
        verdict = decide(interval, *_band(claim, predicted, margin))
    else:  # a prediction that is no number cannot be agreed with: whatever was measured lies outside of it
        verdict = Verdict.UNDECIDED if interval.obstacle else Verdict.DISAGREES
    return Judgement(verdict=verdict, interval=interval, predicted=predicted, margin=margin, replicates=n)


def _band(claim: Claim, predicted: float, margin: float) -> tuple[float, float]:
    low = -math.inf if claim.kind is Kind.AT_MOST else predicted - margin
    return low, math.inf if claim.kind is Kind.AT_LEAST else predicted + margin


def outcome(
    claim: Claim,
    reading: Reading,
    point: Point,
    judged: Judgement,
    scores: Scores,
    trail: Sequence[Judgement],
    alpha: float,
    *,
    later: Judgement | None = None,
) -> PointOutcome:
    """Return the record of a judgement: interval in its parts, rivals, inputs, and the judgements that led to it.

    A `later` judgement decides on rivals where the verdict came before they could be excluded.
    """
    interval, n = judged.interval, judged.replicates
    # The run may have gone on for other claims: the record holds what this verdict rests on.
    used = {name: column[:n] for name, column in scores.items()}
    estimand = Estimand(claim, reading.predict, reading.score, point, used, alpha)
    reason, needed = _undecided(claim, judged) if judged.verdict is Verdict.UNDECIDED else ("", None)
    within = interval.lower <= judged.predicted <= interval.upper
    two_sided = claim.kind not in (*ONE_SIDED, *ABSOLUTE)
    rivals: list[RivalOutcome] = []
    # Rivals are alternatives to the theory. The printed reading is wrong already.
    if reading.label != PRINTED:
        latest = later or judged
        used_then = {name: column[: latest.replicates] for name, column in scores.items()}
        mine = Estimand(claim, claim.predict, claim.score, point, used_then, alpha)
        rivals = [_rival(name, mine._replace(predict=f), latest) for name, f in claim.rivals.items()]
    beyond = excesses(estimand) if claim.kind in BOUNDS_EVERY_REPLICATE else np.zeros(0)
    return PointOutcome(
        parameters=dict(point),
        verdict=judged.verdict,
        predicted=judged.predicted,
        margin=judged.margin,
        measured=interval.estimate,
        lower=interval.lower,
        upper=interval.upper,
        statistical=interval.statistical,
        numerical=interval.numerical,
        size_model=interval.size_model,
        skewness=interval.skewness,
        replicates=n,
        reason=reason,
        needed=needed,
        # the theory agrees and is yet excluded: a difference too small to matter, but seen
        offset_resolved=judged.verdict is Verdict.AGREES and two_sided and not within,
        slack=slack(estimand) if claim.kind in (*ONE_SIDED, *BOUNDS_EVERY_REPLICATE) else None,
        inputs={name: float(used[name].mean()) for name in claim.inputs},
        rivals=rivals,
        rivals_replicates=later.replicates if later else 0,
        looks=[_look(claim, judged, earlier) for earlier in trail],
        violations=[Violation(replicate=int(i), by=float(beyond[i])) for i in np.flatnonzero(beyond)[:KEPT]],
        profile=profile(estimand) if claim.kind in (*MODEL_BASED, Kind.DISTRIBUTION) else [],
    )


def exact_outcome(
    point: Point, difference: float, tolerance: float, rivals: Mapping[str, float]
) -> PointOutcome:
    """Return the record of a check without statistics: a difference, and that of each rival, against a tolerance."""
    return PointOutcome(
        parameters=dict(point),
        verdict=Verdict.AGREES if difference <= tolerance else Verdict.DISAGREES,
        predicted=0.0,
        margin=tolerance,
        measured=difference,
        lower=difference,
        upper=difference,
        rivals=[
            RivalOutcome(name=name, value=off, margins=off / tolerance, rejected=off > SEPARATION * tolerance)
            for name, off in rivals.items()
        ],
    )


def _look(claim: Claim, judged: Judgement, earlier: Judgement) -> Look:
    """Return an earlier interval, moved as far as a prediction from measured inputs has moved since."""
    i = earlier.interval
    i = i.shifted(judged.predicted - earlier.predicted) if claim.inputs else i
    return Look(replicates=earlier.replicates, measured=i.estimate, lower=i.lower, upper=i.upper)


def _rival(name: str, estimand: Estimand, judged: Judgement) -> RivalOutcome:
    """Return the outcome of a rival formula on the replicates of a judgement of the theory."""
    claim, interval = estimand.claim, judged.interval
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        broken = excesses(estimand) > 0
        value, rejected = float(broken.mean()), bool(broken.any())
    elif claim.kind is Kind.DISTRIBUTION:
        found = estimated(estimand).interval
        value = formula_distance(claim, estimand.point, estimand.predict, claim.predict)
        rejected = not found.obstacle and found.lower > 0
    else:
        # With measured inputs the interval is of score minus prediction: each formula has its own.
        if claim.inputs:
            interval, value, _ = estimated(estimand)
        else:
            value = claim.prediction(estimand.point, estimand.predict)
        # a rival bound on the right side of what was measured holds too, however far away it is
        lower = -math.inf if claim.kind is Kind.AT_LEAST else interval.lower
        upper = math.inf if claim.kind is Kind.AT_MOST else interval.upper
        rejected = not interval.obstacle and not lower <= value <= upper
    margins = abs(value - judged.predicted) / judged.margin
    return RivalOutcome(name=name, value=value, margins=margins, rejected=rejected)


def _undecided(claim: Claim, judged: Judgement) -> tuple[str, float | None]:
    """Return why no verdict was reached, and the replicates needed at the present estimate and spread."""
    interval = judged.interval
    if interval.obstacle:
        return interval.obstacle, None
    if claim.kind in MODEL_BASED:
        return "too wide after its fixed number of replicates", None
    low, high = _band(claim, judged.predicted, judged.margin)
    # only the statistical part of the half-width shrinks
    gap = min(abs(interval.estimate - low), abs(interval.estimate - high)) - interval.numerical
    shrink = (interval.half_width - interval.numerical) / gap if gap > 0 else math.inf
    # the limit on what was never seen falls as 1/n, every other half-width as 1/sqrt(n)
    needed = judged.replicates * (shrink if claim.kind in BOUNDS_EVERY_REPLICATE else shrink * shrink)
    if claim.kind is Kind.DISTRIBUTION and math.isfinite(needed):  # which looks at every doubling only
        return "budget", float(FEWEST * 2 ** math.ceil(math.log2(max(needed, FEWEST) / FEWEST)))
    return "budget", float(BLOCK * math.ceil(needed / BLOCK)) if math.isfinite(needed) else needed
