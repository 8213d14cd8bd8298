"""Claims of every kind, with scores made by hand to judge them by."""

import numpy as np
from scipy import stats

from simulate.monte_carlo import Block, Point
from tests.verify.judging.one_claim import mixed
from verify.judging.intervals import Interval
from verify.judging.judge import Judgement, judge, outcome, readings
from verify.model import ALPHA, SPANS_SIZES, Claim, Experiment, Kind
from verify.results import PointOutcome

M = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
SIZES = Point(sizes=(10, 20, 40, 80, 160))
PAIR = Point(sizes=(80, 160))
POINT = Point(scale=3.0)
N = 1024


def nothing(block: Block, point: Point) -> dict[str, np.ndarray]:
    raise AssertionError("nothing is simulated here")


def claim(kind: Kind, point: Point = POINT, **changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": Experiment(id="paper/x", replicate="one x", simulate=nothing, points=(point,)),
        "kind": kind,
        "score": "y",
        "predict": lambda p: 3.0,
        "margin": 0.01,
        "margin_reason": "a test",
        "along": "sizes" if kind in SPANS_SIZES else "",
    }
    return Claim(**{**plain, **changes})


def judged(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> Judgement:
    point = tested.experiment.points[0]
    return judge(tested, readings(tested)[index], point, {"y": y} | others, alpha)


def recorded(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> PointOutcome:
    point, found = tested.experiment.points[0], judged(tested, y, alpha, index, **others)
    return outcome(tested, readings(tested)[index], point, found, {"y": y} | others, [], alpha)


def noisy(curve: np.ndarray, spread, seed: int = 0, n: int = N) -> np.ndarray:
    """Replicates of a curve over sizes."""
    return curve + spread * np.random.default_rng(seed).normal(size=(n, len(curve)))


def spread_evenly(mean: float, spread: float, n: int = N) -> np.ndarray:
    """Symmetric replicates of exactly this mean and standard deviation."""
    z = mixed(np.linspace(-1.0, 1.0, n))
    return mean + spread * z / z.std(ddof=1)


def most(promise: float, count: int) -> int:
    """Misses that a promise exceeds once in a thousand tests."""
    return int(stats.binom.isf(1e-3, count, promise))


def covers(interval: Interval, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


def grouped(statistic, group: int = 32, **changes) -> Claim:
    return claim(Kind.GROUPS, statistic=statistic, group=group, **changes)


def exponential(scale: float):
    return lambda t: -np.expm1(-np.maximum(t, 0.0) / scale)


def law(predict, **changes) -> Claim:
    return claim(
        Kind.DISTRIBUTION, relative=False, **{"margin": 0.1, "predict": lambda p: predict, **changes}
    )
