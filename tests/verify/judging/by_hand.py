"""Claims of every kind, and scores made by hand to judge them by: the verdict follows from the numbers alone."""

import math
from functools import partial

import numpy as np
from scipy import stats

from simulate.monte_carlo import Block, Point
from verify.judging.intervals import Interval, multiplier
from verify.judging.judge import Judgement, judge, outcome, readings
from verify.model import (
    ALPHA,
    MODEL_BASED,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    StatisticalProperty,
)
from verify.model.domains import Between
from verify.results import PointOutcome

M = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
SIZES = Point(sizes=(10, 20, 40, 80, 160))
POINT = Point(scale=3.0)
LOOSE = 1e-4
N = 256

COMMON = {"entries": ("A1",), "source": "a paper", "statement": "x"}
"""What every claim says."""

ROUNDED = {"tolerance": 1e-9, "tolerance_reason": "rounding"}


def never(block: Block, point: Point) -> dict[str, np.ndarray]:
    raise AssertionError("nothing is simulated here")


def claim(kind: Kind = Kind.MEAN, point: Point = POINT, **changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "experiment": Experiment(id="paper/x", replicate="one x", simulate=never, points=(point,)),
        "kind": kind,
        "score": "x",
        "predict": lambda p: 3.0,
        "margin": 0.1,
        "margin_reason": "a test",
        "along": "sizes" if kind in MODEL_BASED else "",
    }
    return Claim(**{**COMMON, **plain, **changes})


tight = partial(claim, score="y", margin=0.01)


def law(predict, **changes) -> Claim:
    return tight(
        Kind.DISTRIBUTION, relative=False, **{"margin": 0.1, "predict": lambda p: predict, **changes}
    )


def exponential(scale: float):
    return lambda t: -np.expm1(-np.maximum(t, 0.0) / scale)


def identity(**changes) -> Identity:
    plain = {"id": "paper/identity", "routes": never, "points": (Point(dim=3),)}
    return Identity(**{**COMMON, **ROUNDED, **plain, **changes})


def exact(**changes) -> ExactProperty:
    plain = {
        "id": "paper/exact",
        "domain": {},
        "violation": lambda rng, p: 0.0,
        "examples": (Point(dim=3),),
        "rivals": {"r": lambda rng, p: 1.0},
    }
    return ExactProperty(**{**COMMON, **ROUNDED, **plain, **changes})


def statistical(**changes) -> StatisticalProperty:
    plain = {
        "id": "paper/statistical",
        "domain": {"scale": Between(1.1, 3.0)},
        "simulate": never,
        "replicate": "one x",
        "examples": (Point(scale=3.7),),
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.1,
        "margin_reason": "a test",
        "rivals": {"twice": lambda p: 2 * p.scale},
    }
    return StatisticalProperty(**{**COMMON, **plain, **changes})


# --- judged


def verdict_of(
    tested: Claim, drawn: dict[str, np.ndarray], index: int = 0, alpha: float = LOOSE
) -> Judgement:
    return judge(tested, readings(tested)[index], tested.experiment.points[0], drawn, alpha)


def outcome_of(
    tested: Claim, drawn: dict[str, np.ndarray], index: int = 0, alpha: float = LOOSE
) -> PointOutcome:
    point, found = tested.experiment.points[0], verdict_of(tested, drawn, index, alpha)
    return outcome(tested, readings(tested)[index], point, found, drawn, [], alpha)


def judged(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> Judgement:
    return verdict_of(tested, {"y": y} | others, index, alpha)


def recorded(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> PointOutcome:
    return outcome_of(tested, {"y": y} | others, index, alpha)


# --- scores


def spread_evenly(mean: float, spread: float, n: int = 1024) -> np.ndarray:
    """Symmetric replicates of exactly this mean and standard deviation."""
    z = mixed(np.linspace(-1.0, 1.0, n))
    return mean + spread * z / z.std(ddof=1)


def scores(mean: float = 3.0, spread: float = 0.3, n: int = N) -> dict[str, np.ndarray]:
    return {"x": spread_evenly(mean, spread, n)}


def mixed(ordered: np.ndarray) -> np.ndarray:
    """Reorder numbers so that each block of sixteen holds some of all sizes, as independent ones would."""
    return ordered[np.argsort(np.arange(len(ordered)) * math.sqrt(2) % 1)]


def noisy(curve: np.ndarray, spread, seed: int = 0, n: int = 1024) -> np.ndarray:
    """Replicates of a curve over sizes."""
    return curve + spread * np.random.default_rng(seed).normal(size=(n, len(curve)))


def half(spread: float, n: int = N) -> float:
    """The half-width of the interval of `scores`."""
    return multiplier(n, LOOSE) * spread / math.sqrt(n)


def most(promise: float, count: int = 10_000) -> int:
    """Misses that a promise exceeds once in a thousand tests."""
    return int(stats.binom.isf(1e-3, count, promise))


def covers(interval: Interval, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper
