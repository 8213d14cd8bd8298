"""Intervals for what each kind of claim is about, from the scores of an experiment.

| kind | replicate values of the interval |
|---|---|
| mean, lower and upper bound | the score; with measured inputs, score minus prediction |
| ratio, probability, distribution | see `verify.judging.intervals` |
| bound on every replicate | whether the replicate violates it |
| limit | w . (scores at all sizes), w the first row of the pseudo-inverse of (1, M^-p, M^-p') |
| exponent | w . (local exponents), linearised in the means (delta method) |

Limits and exponents have a further half-width: the change from dropping the smallest size, times a factor that covers
the next term of the series. They have no interval where the terms do not fit the measurements. A wrong order that
noise still hides goes unseen and puts the limit off by several half-widths, so the order is a claim of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simulate._checks import one_of
from simulate.monte_carlo import Point
from verify.judging.guards import TOGETHER, Floats, events_together, share_of_a_block, untrusted_share
from verify.judging.intervals import (
    Interval,
    distance_interval,
    doublings,
    mean_interval,
    proportion_interval,
    rate_interval,
    ratio_interval,
)
from verify.judging.sizes import exponent_replicates, extrapolated
from verify.model import BOUNDS_EVERY_REPLICATE, MODEL_BASED, Claim, Kind, Prediction, raised, real_or_nan
from verify.results import ProfilePoint

TAIL = 1e-9
"""Mass on either side that the comparison of two distribution functions leaves out."""

RESOLVED = 0.5
"""Largest half-width of a mean, relative to it, at which its logarithm is near enough to linear."""

PROFILE_POINTS = 97
"""Points of a distribution function kept for its plot."""

Scores = Mapping[str, Floats]


class Estimand(NamedTuple):
    """A formula for what a claim makes of a score, at one point, with the replicates to estimate it from."""

    claim: Claim
    predict: Prediction
    score: str | tuple[str, str]
    point: Point
    scores: Scores
    alpha: float

    @property
    def predicted(self) -> float:
        """The value of the formula, measured inputs at their typical values."""
        return self.claim.prediction(self.point, self.predict)

    def column(self, name: Any = None, dimensions: int = 1) -> Floats:
        """A score, finite, with one number per replicate (or one per replicate and component)."""
        name = name or self.score
        one_of("score", name, self.scores)
        values = self.scores[name]
        if values.ndim != dimensions:
            form = "one number" if dimensions == 1 else "one vector"
            raise ValueError(f"score {name!r} must be {form} per replicate, got shape {values.shape}")
        if not np.isfinite(values).all():
            index = int(np.argwhere(~np.isfinite(values))[0, 0])
            stray = values[index][~np.isfinite(values[index])].flat[0] if dimensions > 1 else values[index]
            raise ValueError(f"score {name!r} must be finite, got {stray} in replicate {index}")
        return values

    def with_predictions(self) -> tuple[Floats, Floats]:
        """The score and the prediction for each replicate of it."""
        inputs = {name: self.column(name) for name in self.claim.inputs}
        values = self.column()
        joined = SimpleNamespace(**self.point, **inputs)
        # A prediction that uses no measured input is one number.
        return values, np.broadcast_to(real_or_nan(self.predict, joined), values.shape)

    def over_sizes(self) -> Floats:
        """The score with one component for each of the sizes that a replicate spans."""
        values, sizes = self.column(dimensions=2), self.point[self.claim.along]
        if values.shape[1] != len(sizes):
            raise ValueError(
                f"score {self.score!r} must have one component for each of {len(sizes)} sizes,"
                f" got {values.shape[1]}"
            )
        return values


class Measured(NamedTuple):
    """The interval of an estimand, the prediction for it, and the replicates it rests on."""

    interval: Interval
    predicted: float
    replicates: int


def components(claim: Claim, point: Point) -> tuple[Point, ...]:
    """Points at which a claim is judged: one for each component of a vector score, or the point itself."""
    if not claim.along or claim.kind in MODEL_BASED:
        return (point,)
    return tuple(point | {claim.along: value} for value in point[claim.along])


def estimated(estimand: Estimand) -> Measured:
    """Estimate what a reading of the claim is about, and evaluate its prediction.

    Raises
    ------
    ValueError
        If a score is missing, not finite, or not of the form that the kind reads.
    """
    kind = estimand.claim.kind
    interval, predicted = _MEASURES[kind](estimand)
    n = len(next(iter(estimand.scores.values())))
    # A distance is looked at after each doubling only, so it rests on fewer replicates than there are.
    return Measured(interval, predicted, doublings(n) if kind is Kind.DISTRIBUTION else n)


def formula_distance(claim: Claim, point: Point, formula: Prediction, other: Prediction) -> float:
    """Distance of two formulas at a point, in the unit of the margin; infinite where one has no real value."""
    try:
        if claim.kind is Kind.DISTRIBUTION:
            gap = _largest_gap(formula(point), other(point))
        else:
            gap = abs(claim.prediction(point, formula) - claim.prediction(point, other))
    except TypeError:  # complex
        return math.inf
    return gap if math.isfinite(gap) else math.inf


def excesses(estimand: Estimand) -> Floats:
    """Excess of each replicate over its bound, 0 within rounding; infinite where the bound is no number."""
    beyond = _excess_over_bounds(estimand.claim, *estimand.with_predictions())
    return np.where(np.isnan(beyond), math.inf, np.where(beyond <= estimand.claim.numerical, 0.0, beyond))


def slack(estimand: Estimand) -> float | None:
    """Mean score over mean bound, or score over bound on the replicate that comes closest where each must keep to it.

    For logarithms the ratio of the numbers they are logarithms of. None where the ratio has no meaning.
    """
    claim, (values, bounds) = estimand.claim, estimand.with_predictions()
    measured, bound = float(values.mean()), float(bounds.mean())
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        closest = np.argmax(_excess_over_bounds(claim, values, bounds))
        measured, bound = float(values[closest]), float(bounds[closest])
    if claim.logarithm:
        return raised(claim.logarithm, measured - bound) if math.isfinite(bound) else None
    return measured / bound if math.isfinite(bound) and bound else None


def profile(estimand: Estimand) -> list[ProfilePoint]:
    """Points of the estimand's figure: means by size, or the distribution function of the replicates."""
    claim, point = estimand.claim, estimand.point
    if claim.kind is Kind.DISTRIBUTION:
        return _distribution_profile(estimand)
    sizes, values, theory = point[claim.along], estimand.over_sizes(), estimand.predicted
    values = values - (claim.prediction(point, claim.offset) if claim.offset else 0.0)
    last = float(values[:, -1].mean())
    found: list[ProfilePoint] = []
    for size, at in zip(sizes, values.T, strict=True):
        # the prediction's line, or its slope through the largest size
        line = last * (size / sizes[-1]) ** theory if claim.kind is Kind.EXPONENT else theory
        i = mean_interval(at, alpha=estimand.alpha, numerical=claim.numerical)
        found.append(
            ProfilePoint(x=float(size), measured=i.estimate, lower=i.lower, upper=i.upper, predicted=line)
        )
    return found


def _distribution_profile(estimand: Estimand) -> list[ProfilePoint]:
    values, cdf = estimand.column(), estimand.predict(estimand.point)
    n = doublings(len(values))
    if n == 0:
        return []
    ordered = np.sort(values[:n])
    radius = distance_interval(values, cdf, alpha=estimand.alpha)
    half = radius.upper - radius.estimate
    x = np.linspace(ordered[0], ordered[-1], PROFILE_POINTS)
    return [
        ProfilePoint(
            x=float(at),
            measured=float(f),
            lower=max(0.0, f - half),
            upper=min(1.0, f + half),
            predicted=float(cdf(at)),
        )
        for at, f in zip(x, np.searchsorted(ordered, x, side="right") / n, strict=True)
    ]


# --- one number per replicate --------------------------------------------------------------------------------


def _mean(estimand: Estimand) -> tuple[Interval, float]:
    """Interval of a mean; with measured inputs, of score minus prediction, relative to it where the margin is.

    Fluctuations that both share cancel replicate by replicate, above all the skewness of a common scale.
    """
    claim, alpha = estimand.claim, estimand.alpha
    if not claim.inputs:
        return mean_interval(estimand.column(), alpha=alpha, numerical=claim.numerical), estimand.predicted
    values, predicted = estimand.with_predictions()
    centre = float(predicted.mean())
    # Without a prediction there is no residual: the interval of the score still shows what was measured.
    if not np.isfinite(predicted).all():
        return mean_interval(values, alpha=alpha, numerical=claim.numerical), math.nan
    # Relative to its own prediction, a replicate loses the scale that both share, and the skewness of it.
    relative = claim.relative and bool((predicted != 0).all()) and centre != 0
    unit = np.abs(predicted) if relative else np.ones_like(predicted)
    # The smallest unit gives the largest relative error.
    numerical = claim.numerical / float(unit.min())
    residual = mean_interval((values - predicted) / unit, alpha=alpha, numerical=numerical)
    return residual.scaled(abs(centre) if relative else 1.0).shifted(centre), centre


def _ratio(estimand: Estimand) -> tuple[Interval, float]:
    top, bottom = (estimand.column(name) for name in estimand.score)
    return ratio_interval(top, bottom, alpha=estimand.alpha), estimand.predicted


def _proportion(estimand: Estimand) -> tuple[Interval, float]:
    values = estimand.column()
    event = np.isin(values, (0.0, 1.0))
    if not event.all():
        raise ValueError(
            f"score {estimand.score!r} must be 0 or 1 to count as an event, got {values[~event][0]}"
        )
    interval = proportion_interval(int(values.sum()), len(values), alpha=estimand.alpha)
    if not interval.obstacle and events_together(values):
        interval = interval.blocked_by(TOGETHER)
    return interval, estimand.predicted


def _distribution(estimand: Estimand) -> tuple[Interval, float]:
    values = estimand.column()
    interval = distance_interval(values, estimand.predict(estimand.point), alpha=estimand.alpha)
    if not interval.obstacle and share_of_a_block(values) > untrusted_share(len(values)):
        interval = interval.blocked_by(TOGETHER)
    # a function that is no number somewhere is no prediction, and cannot be agreed with
    known = bool(interval.obstacle) or math.isfinite(interval.estimate)
    return interval, 0.0 if known else math.nan


def _never(estimand: Estimand) -> tuple[Interval, float]:
    beyond = excesses(estimand)
    return rate_interval(int((beyond > 0).sum()), len(beyond), alpha=estimand.alpha), 0.0


def _excess_over_bounds(claim: Claim, values: Floats, bounds: Floats) -> Floats:
    """Distance of values beyond their bounds, negative where they keep to them."""
    return values - bounds if claim.kind is Kind.NEVER_ABOVE else bounds - values


# --- one vector over sizes per replicate ---------------------------------------------------------------------


def _limit(estimand: Estimand) -> tuple[Interval, float]:
    claim = estimand.claim
    interval = extrapolated(
        estimand.over_sizes(),
        estimand.point[claim.along],
        claim.terms,
        alpha=estimand.alpha,
        numerical=claim.numerical,
    )
    return interval, estimand.predicted


def _exponent(estimand: Estimand) -> tuple[Interval, float]:
    claim, alpha, sizes = estimand.claim, estimand.alpha, estimand.point[estimand.claim.along]
    values = estimand.over_sizes() - (claim.prediction(estimand.point, claim.offset) if claim.offset else 0.0)
    intervals = [mean_interval(v, alpha=alpha, exact=True) for v in values.T]
    what = "distance from the limit" if claim.offset else "mean"
    obstacle = next((i.obstacle for i in intervals if i.obstacle), "")
    if not obstacle and not all(i.half_width < RESOLVED * abs(i.estimate) for i in intervals):
        obstacle = f"{what} not resolved from 0"
    if not obstacle and len({i.estimate > 0 for i in intervals}) > 1:
        obstacle = f"{what} changes sign between sizes"
    if obstacle:
        return Interval(estimate=math.nan, obstacle=obstacle), estimand.predicted
    replicates = exponent_replicates(values, sizes)
    # Each size is twice the one before, so a local exponent approaches its limit by the powers of the means.
    return extrapolated(replicates, sizes[:-1], claim.terms, alpha=alpha), estimand.predicted


def _largest_gap(one: Callable[[Floats], Floats], other: Callable[[Floats], Floats]) -> float:
    """Largest distance of two distribution functions, on a grid of where either has its mass.

    The grid goes over all scales: the laws are known as functions only.
    """
    decades = np.logspace(-6, 6, 4801)
    grid = np.concatenate([-decades[::-1], [0.0], decades])
    masses = [np.asarray(law(grid), dtype=float) for law in (one, other)]
    inside = np.logical_or.reduce([(m > TAIL) & (m < 1 - TAIL) for m in masses])
    # No mass on the grid: compare everywhere.
    x = grid[inside] if inside.any() else grid
    return float(np.abs(np.asarray(one(x), dtype=float) - np.asarray(other(x), dtype=float)).max())


_MEASURES: dict[Kind, Callable[[Estimand], tuple[Interval, float]]] = {
    Kind.MEAN: _mean,
    Kind.AT_LEAST: _mean,
    Kind.AT_MOST: _mean,
    Kind.RATIO: _ratio,
    Kind.PROPORTION: _proportion,
    Kind.DISTRIBUTION: _distribution,
    Kind.NEVER_BELOW: _never,
    Kind.NEVER_ABOVE: _never,
    Kind.LIMIT: _limit,
    Kind.EXPONENT: _exponent,
}
