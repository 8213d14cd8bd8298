"""A claim on one score, and scores of exactly the mean and the spread that a verdict is to be seen on."""

import math

import numpy as np
from hypothesis import settings

from simulate.monte_carlo import Point
from verify.judging.intervals import multiplier
from verify.judging.judge import (
    Judgement,
    judge,
    outcome,
    readings,
)
from verify.model import Claim, Experiment

quick = settings(deadline=None, max_examples=50, derandomize=True)


POINT = Point(scale=3.0)


ALPHA = 1e-4


N = 256


def never(block, point):
    raise AssertionError("nothing is simulated here")


def claim(**changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x = 3",
        "experiment": Experiment(id="paper/x", replicate="one x", simulate=never, points=(POINT,)),
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.1,
        "margin_reason": "a test",
    }
    return Claim(**{**plain, **changes})


def scores(mean: float = 3.0, spread: float = 0.3, n: int = N) -> dict[str, np.ndarray]:
    """Symmetric replicates of exactly this mean: the verdict follows from the numbers alone."""
    z = mixed(np.linspace(-1.0, 1.0, n))
    return {"x": mean + spread * z / z.std(ddof=1)}


def mixed(ordered: np.ndarray) -> np.ndarray:
    """The same numbers out of order: every block of sixteen holds some of all sizes, as independent ones would."""
    return ordered[np.argsort(np.arange(len(ordered)) * math.sqrt(2) % 1)]


def verdict_of(tested: Claim, drawn: dict[str, np.ndarray], index: int = 0) -> Judgement:
    return judge(tested, readings(tested)[index], POINT, drawn, ALPHA)


def outcome_of(tested: Claim, drawn: dict[str, np.ndarray], index: int = 0):
    judged = verdict_of(tested, drawn, index)
    return outcome(tested, readings(tested)[index], POINT, judged, drawn, [], ALPHA)


def half(spread: float, n: int = N) -> float:
    return multiplier(n, ALPHA) * spread / math.sqrt(n)
