"""Rules that a claim must meet before it is admitted: it can fail, gives the reason of its margin, and fits its kind.

An observation need not be able to fail: it must be possible to draw and understand it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from typing import Any, TypeGuard

from simulate.monte_carlo import Point
from verify.judging.estimands import components
from verify.judging.judge import PRINTED, SEPARATION, applies, cites_others, labels, readings, separation
from verify.model import (
    ABSOLUTE,
    BOUNDS_EVERY_REPLICATE,
    LOGARITHMS,
    MODEL_BASED,
    ONE_SIDED,
    AnyClaim,
    Claim,
    Identity,
    Kind,
    Standing,
    StatisticalProperty,
    Tier,
    Verdict,
)
from verify.model.observation import Observation

WIDEST = 0.5
"""No relative margin may exceed this, whatever the reason."""

TELLTALE = (0.0, 0.5, 1.0, 2.0)
"""Parameters at which a formula with a wrong power, factor or sign may still give the right number."""

LONGEST_QUOTATION = 30
"""Most words of a quotation."""

LOOKED = re.compile(
    r"\b(was|were|had \w+) seen\b|\bpilots?\b|\bfirst draws\b|\bwe tried\b|\bwere tried\b", re.IGNORECASE
)
"""Words in the reason of a margin that rests on earlier draws."""

NO_LOGARITHMS = (Kind.EXPONENT, Kind.RATIO, Kind.PROPORTION, *ABSOLUTE)
"""Kinds whose numbers are slopes or shares whatever the score is: no difference of them is a factor."""

REPLICATE_BY_REPLICATE = (Kind.MEAN, *ONE_SIDED, *BOUNDS_EVERY_REPLICATE)
"""Kinds that may compare each replicate with a prediction of its own, and know its numerical error."""


def intervals(listed: Iterable[AnyClaim]) -> int:
    """Return the number of their family's statistical intervals that claims use.

    Two readings of one score share an interval, and so do a property's examples. Model-based claims have none in the
    family.
    """
    return sum(
        sum(_scores_read(c, point) for point in c.experiment.points)
        if isinstance(c, Claim)
        else int(isinstance(c, StatisticalProperty))
        for c in listed
        if not (isinstance(c, Claim) and c.kind in MODEL_BASED)
    )


def _scores_read(claim: Claim, point: Point) -> int:
    # Here the interval is of score minus prediction, or of the distance from it: one for each formula.
    own = claim.inputs or claim.kind in ABSOLUTE
    found = {
        (at, r.score, r.predict if own else None)
        for at in components(claim, point)
        for r in readings(claim)
        if applies(claim, r, at)
    }
    return len(found)


def problems(claim: AnyClaim) -> Iterator[str]:
    """Yield the rules that a claim breaks, each as what it must do."""
    if isinstance(claim, Claim):
        yield from _claim_problems(claim)
    elif isinstance(claim, StatisticalProperty):
        yield from _margin_problems(claim)
        if not claim.examples:
            yield "have at least one point"
        yield from rival_problems(claim.claim_at(claim.examples[0]), claim.examples)
    else:
        if not (0 < claim.tolerance < 1 and claim.tolerance_reason):
            yield "have a tolerance in (0, 1), with its reason"
        if not (claim.points if isinstance(claim, Identity) else claim.examples):
            yield "have at least one point"
        if isinstance(claim, Identity) and claim.printed and not claim.finding:
            yield "say what is wrong with the formula as our copy reads"
    yield from _passage_problems(claim)
    reason = claim.margin_reason if isinstance(claim, Claim | StatisticalProperty) else claim.tolerance_reason
    if LOOKED.search(f"{reason} {claim.source}") and not claim.pilot.strip():
        yield "say what pilot draws set of its bound or margin, as pilot"


def _passage_problems(claim: AnyClaim) -> Iterator[str]:
    """Yield the rules on quotations that a claim breaks; whoever contradicts a paper quotes it first."""
    quoted, printed = claim.passage, len(labels(claim)) > 1
    if quoted is None:
        if printed or claim.finding or claim.expected is Verdict.DISAGREES:
            yield "quote the passage that it contradicts, and say how it stands to it"
        return
    if quoted.standing is Standing.CORRECTED:
        yield "say what is corrected: a misprint"
    if quoted.standing in (Standing.KNOWN, Standing.OURS):
        if printed:
            yield "say how the form as our copy reads stands to the paper, which ours does not"
        if quoted.standing is Standing.KNOWN and not cites_others(claim):
            yield "name in its source those who have shown it, with the year"
        return
    if not (quoted.words.strip() and quoted.place.strip()):
        yield "quote the paper's own words, with their place"
    if len(quoted.words.split()) > LONGEST_QUOTATION:
        yield f"quote at most {LONGEST_QUOTATION} words"


def observation_problems(observation: Observation) -> Iterator[str]:
    """Yield the rules that an observation breaks, each as what it must do."""
    o = observation
    if not all(text.strip() for text in (o.source, o.title, o.note, o.replicate)):
        yield "say its source, its title, what it shows and what a replicate is"
    if "$" in o.title + o.note:
        yield "be told in plain words, without formulas"
    # `<lambda>` or `<locals>`: a worker cannot import either.
    if "<" in o.simulate.__qualname__:
        yield "draw with a function at module level, which workers find by its name"
    if not _all_different(o.points):
        yield "have points, all different"
    if not o.columns or len({c.heading for c in o.columns}) < len(o.columns):
        yield "have columns, each with a heading of its own"
    if not all(c.score and c.heading.strip() for c in o.columns):
        yield "name the score and the heading of each column"
    if o.along and not all(_can_be_axis(point.get(o.along)) for point in (*o.points, *o.brief)):
        yield f"have a tuple of different numbers {o.along!r} at every point"
    if o.replicates < 1 or not 0 < o.seconds < math.inf:
        yield "have at least one replicate and say how many seconds one takes"
    if o.tier not in (Tier.DEFAULT, Tier.FULL):
        yield "belong to the default tier or to the full one"
    yield from _cost_problems(o)


def _cost_problems(o: Observation) -> Iterator[str]:
    """Yield the rules on costs that an observation breaks: one for a GPU declares what it costs."""
    if (o.cost is None) != (not o.small):
        yield "say what it costs and which observation draws the same at sizes for a CPU, if it is for a GPU"
    if o.cost is None:
        return
    if o.tier is not Tier.FULL:
        yield "belong to the full tier, being for a GPU"
    for point in o.points:
        cost = o.cost(point)
        if not all(0 < part < math.inf for part in cost):
            yield f"cost some memory, operations and launches, got {cost} at {point}"


def _can_be_axis(values: object) -> bool:
    """Whether these values can be positions on a horizontal axis."""
    # Not `isinstance`, for a bool is an int too.
    return _all_different(values) and all(type(v) in (int, float) and math.isfinite(v) for v in values)


def _all_different(values: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether this is a tuple of one or more different values."""
    return isinstance(values, tuple) and 0 < len(values) == len(set(values))


def _claim_problems(claim: Claim) -> Iterator[str]:
    experiment = claim.experiment
    yield from _margin_problems(claim)
    if claim.logarithm and (
        claim.logarithm not in LOGARITHMS or claim.relative or claim.kind in NO_LOGARITHMS
    ):
        yield f"have logarithms to base {', '.join(LOGARITHMS)}, means with an absolute margin, if any"
    if not _all_different(experiment.points):
        yield "have points, all different"
    wrong = [*_kind_problems(claim), *_along_problems(claim)]
    yield from wrong
    # What follows evaluates predictions, which needs a claim of the right form.
    if wrong:
        return
    points = [at for p in experiment.points for at in components(claim, p)]
    yield from rival_problems(claim, points)
    if claim.axis and any(claim.axis not in p for p in points):
        yield f"have its axis {claim.axis!r} among the parameters"
    elif claim.axis and any(not isinstance(p[claim.axis], int | float) for p in points):
        yield f"have one number at each point on its axis {claim.axis!r}"
    if claim.axis and claim.kind in ABSOLUTE:
        yield "have no axis: what is judged is a share or a distance, and its prediction is 0 everywhere"
    if claim.printed is not None and not claim.finding:
        yield "say what is wrong with the formula as our copy reads"
    if not experiment.special:
        yield from _point_problems(points)


def _kind_problems(claim: Claim) -> Iterator[str]:
    kind = claim.kind
    if kind is Kind.RATIO and not isinstance(claim.score, tuple):
        yield "name numerator and denominator of its ratio"
    if kind is not Kind.RATIO and not isinstance(claim.score, str):
        yield "name one score, as it is no ratio"
    if claim.numerical and kind not in (*REPLICATE_BY_REPLICATE, Kind.LIMIT):
        yield "be a mean or a bound, if its scores have a numerical error"
    if claim.inputs and kind not in REPLICATE_BY_REPLICATE:
        yield "be a mean or a bound, if it reads measured inputs"
    if kind in ABSOLUTE and (claim.relative or claim.margin >= 1):
        yield "have an absolute margin below 1, which is in probability"
    if claim.offset is not None and kind is not Kind.EXPONENT:
        yield "be an exponent, if it has an offset"
    if sorted(set(claim.terms)) != list(claim.terms) or any(p <= 0 for p in claim.terms):
        yield "have terms of growing positive powers"


def _along_problems(claim: Claim) -> Iterator[str]:
    kind, count = claim.kind, len(claim.terms)
    if bool(count) != (kind in MODEL_BASED) or (kind is Kind.LIMIT and count < 2):
        yield "have the powers of the correction, two at least for a limit, if and only if it extrapolates"
    if kind in MODEL_BASED and not claim.along:
        yield "say along which parameter its sizes run"
    if kind is Kind.LIMIT and not _has_order_claim(claim):
        yield "name the claim on the order of its correction: same experiment, the limit as its offset"
    for point in claim.experiment.points if claim.along else ():
        values = point.get(claim.along)
        if not _all_different(values):
            yield f"have a tuple of different values of {claim.along!r} at every point"
        elif kind in MODEL_BASED:
            yield from size_problems(values, count)


def _has_order_claim(claim: Claim) -> bool:
    """Whether the claim on the order measures how this limit is approached."""
    order = claim.order
    if order is None or order.kind is not Kind.EXPONENT or order.experiment is not claim.experiment:
        return False
    offset = order.offset
    return order.along == claim.along and all(
        offset is not None and claim.prediction(p, offset) == claim.prediction(p)
        for p in claim.experiment.points
    )


def size_problems(sizes: Sequence[float], terms: int) -> Iterator[str]:
    """Yield the rules on sizes that a claim over several sizes breaks, with so many terms of the correction."""
    if any(b != 2 * a for a, b in pairwise(sizes)) or sizes[0] <= 0:
        yield "have sizes each twice the one before"
    # a contrast must be left when the smallest is dropped; an exponent has one value fewer than there are sizes
    if len(sizes) < terms + 3:
        yield f"have at least {terms + 3} sizes"


def rival_problems(claim: Claim, points: Sequence[Point]) -> Iterator[str]:
    """Yield the rules that a claim's rivals break: each must be far enough from the theory at one of the points."""
    if claim.kind not in BOUNDS_EVERY_REPLICATE:
        yield from _far_problems(claim, points)
    if claim.kind in (*ONE_SIDED, *BOUNDS_EVERY_REPLICATE):
        yield from _stronger_problems(claim, points)


def _stronger_problems(claim: Claim, points: Sequence[Point]) -> Iterator[str]:
    """Yield the rivals of a bound that are not stronger bounds; a run shows whether bounds on replicates break."""
    sign = 1 if claim.kind in (Kind.NEVER_BELOW, Kind.AT_LEAST) else -1
    on_means = claim.kind in ONE_SIDED
    for point in points:
        # No replicate can violate an infinite bound.
        if not (on_means or math.isfinite(claim.prediction(point))):
            yield f"have a finite bound, at {point}"
    for name, formula in claim.rivals.items():
        gaps = ((p, sign * (claim.prediction(p, formula) - claim.prediction(p))) for p in points)
        if not any(gap >= SEPARATION * claim.margin_at(p) if on_means else gap > 0 for p, gap in gaps):
            by = f"bound stronger by {SEPARATION:g} margins" if on_means else "stronger bound"
            yield f"have a point where rival {name!r} is a {by}"


def _margin_problems(claim: Claim | StatisticalProperty) -> Iterator[str]:
    margin = claim.margin
    if not (math.isfinite(margin) and margin > 0) or (claim.relative and margin > WIDEST):
        yield f"have a positive margin, at most {WIDEST:g} if relative"
    if not claim.margin_reason:
        yield "say why its margin is as wide as it is"


def _far_problems(claim: Claim, points: Sequence[Point]) -> Iterator[str]:
    claim = replace(claim, predict=cache(claim.predict))  # asked for twice with each rival
    for point in points:
        if not claim.margin_at(point) > 0:
            yield f"have a margin in its own unit where it predicts 0, at {point}"
    printed = [r.predict for r in readings(claim)[1:] if r.score == claim.score]
    formulas = [*claim.rivals.items(), *((PRINTED, formula) for formula in printed)]
    for name, formula in formulas:
        if not any(separation(claim, point, formula) >= SEPARATION for point in points):
            yield f"have a point where rival {name!r} is {SEPARATION:g} margins away"


def _point_problems(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        for name, value in point.items():
            if isinstance(value, float) and value in TELLTALE:
                yield f"keep {name} away from {value:g}, where wrong formulas may be right"
        # At equal sizes a formula that exchanges them is still right.
        sizes = [(k, v) for k, v in point.items() if isinstance(v, int) and not isinstance(v, bool)]
        for (a, x), (b, y) in combinations(sizes, 2):
            if x == y:
                yield f"keep {a} and {b} apart, both are {x}"
