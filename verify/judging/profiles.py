"""What an estimand was made of, for its figure: means by size, or the distribution function of the replicates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from verify.judging.estimands import column, over_sizes
from verify.judging.intervals import Interval, distance_interval, doublings, mean_interval
from verify.model import SPANS_SIZES, Claim, Kind, Prediction
from verify.results import ProfilePoint

__all__ = ["profile"]

PROFILE_POINTS = 97
"""Points of a distribution function kept for its plot."""

Floats = NDArray[np.float64]
Scores = Mapping[str, Floats]


def profile(
    claim: Claim, predict: Prediction, score: str, point: Point, scores: Scores, alpha: float
) -> list[ProfilePoint]:
    """What the estimand was made of: means by size, or the distribution function of the replicates."""
    if claim.kind is Kind.DISTRIBUTION:
        return _distribution_profile(predict, point, column(scores, score), alpha)
    return _size_profile(claim, predict, score, point, scores, alpha) if claim.kind in SPANS_SIZES else []


def _size_profile(
    claim: Claim, predict: Prediction, score: str, point: Point, scores: Scores, alpha: float
) -> list[ProfilePoint]:
    """Means by size with their intervals, beside the prediction: its line, or its slope through the largest size."""
    sizes, values = point[claim.along], over_sizes(claim, score, point, scores)
    offset = claim.prediction(point, claim.offset) if claim.offset else 0.0
    values = values - offset
    theory = claim.prediction(point, predict)
    last = float(values[:, -1].mean())
    found = []
    for size, at in zip(sizes, values.T, strict=True):
        interval = mean_interval(at, alpha=alpha, numerical=claim.numerical)
        line = last * (size / sizes[-1]) ** theory if claim.kind is Kind.EXPONENT else theory
        found.append(_profile_point(float(size), interval, line))
    return found


def _distribution_profile(
    predict: Prediction, point: Point, values: Floats, alpha: float
) -> list[ProfilePoint]:
    n = doublings(len(values))
    if n == 0:
        return []
    ordered, cdf = np.sort(values[:n]), predict(point)
    radius = distance_interval(values, cdf, alpha=alpha)
    half = radius.upper - radius.estimate
    x = np.linspace(ordered[0], ordered[-1], PROFILE_POINTS)
    measured = np.searchsorted(ordered, x, side="right") / n
    return [
        ProfilePoint(
            x=float(at),
            measured=float(f),
            lower=max(0.0, f - half),
            upper=min(1.0, f + half),
            predicted=float(cdf(at)),
        )
        for at, f in zip(x, measured, strict=True)
    ]


def _profile_point(x: float, interval: Interval, predicted: float) -> ProfilePoint:
    return ProfilePoint(
        x=x, measured=interval.estimate, lower=interval.lower, upper=interval.upper, predicted=predicted
    )
