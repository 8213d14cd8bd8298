"""Claims on skewed scores, identities, and runs of them in a session."""

import dataclasses
import math
from concurrent.futures import Executor
from functools import partial

import numpy as np
import torch

from simulate.monte_carlo import Block, Point, SerialExecutor
from verify.model import ALPHA, Claim, ExactProperty, Experiment, Identity, Kind, StatisticalProperty
from verify.model.domains import Between
from verify.results import PointOutcome, Row
from verify.running.engine import Session, Settings
from verify.running.origin import refresh
from verify.running.pump import Pump
from verify.running.sampled import judged_alone

SETTINGS = Settings(seed=7)


def gammas(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Skewed scores of mean `shape`, a matrix decomposition among them, so that bits could differ."""
    x = np.stack([rng.gamma(point.shape, size=60) for rng in block.streams])
    matrix = torch.from_numpy(x[:, :25].reshape(-1, 5, 5))
    top = torch.linalg.eigvalsh(matrix @ matrix.mT)[:, -1]
    return {"mean": x.mean(axis=1), "square": (x**2).mean(axis=1), "top": top, "above": x[:, 0] > point.shape}


POINTS = (Point(shape=1.7, widths=(3, 4)), Point(shape=4.3, widths=(5, 6)))
GAMMAS = Experiment(
    id="paper/gammas", replicate="60 gamma variables", simulate=gammas, points=POINTS, budget=512
)


STATED = {"entries": ("A1",), "source": "a paper", "statement": "x = k"}
READS = {
    "score": "mean", "predict": lambda p: p.shape, "margin": 0.12, "margin_reason": "a test",
}  # fmt: skip


def claim(name: str = "mean", **changes) -> Claim:
    return Claim(**{"id": f"paper/{name}", "experiment": GAMMAS, **STATED, **READS, **changes})


MEAN = claim()
HARD = claim("hard", margin=0.03)
SQUARE = {"square": lambda p: p.shape**2}
MISPRINT = claim("misprint", printed=lambda p: 2 * p.shape, finding="twice", rivals=SQUARE)
RATIO = claim("ratio", kind=Kind.RATIO, score=("square", "mean"), predict=lambda p: p.shape + 1, margin=0.15)
EVENT = claim(
    "event", kind=Kind.PROPORTION, score="above", predict=lambda p: 0.4, relative=False, margin=0.25
)
PAIRED = claim(
    "paired", score="square", inputs={"mean": 2.0}, predict=lambda p: p.mean * (p.shape + 1), margin=0.3
)
ALL = (MEAN, HARD, MISPRINT, RATIO, EVENT, PAIRED)


DOMAIN = {"domain": {"shape": Between(1.1, 6.0)}, **STATED}
STATISTICAL = StatisticalProperty(
    id="paper/property",
    simulate=gammas,
    replicate="60 gamma variables",
    examples=(Point(shape=2.3),),
    rivals=SQUARE,
    **DOMAIN,
    **{**READS, "margin": 0.1},
)
EXACT = ExactProperty(
    id="paper/exact",
    violation=lambda rng, p: 0.0,
    examples=(),
    tolerance=1e-9,
    tolerance_reason="rounding",
    rivals={},
    **DOMAIN,
)


def session(*claims, settings: Settings = SETTINGS, executor: Executor | None = None) -> Session:
    return Session(claims, settings, executor or SerialExecutor())


def run(*claims, **options) -> list[Row]:
    made = session(*claims, **options)
    return [row for tested in claims for row in made.rows(tested)]


def timeless(rows: list[Row]) -> list[Row]:
    return [dataclasses.replace(row, seconds=0.0) for row in rows]


def experiment(simulate, name: str = "other") -> Experiment:
    return dataclasses.replace(GAMMAS, id=f"paper/{name}", simulate=simulate)


def _routes(rng: np.random.Generator, point: Point, *, names: tuple[str, ...]) -> dict[str, object]:
    """The trace of a matrix, and what is as large, or not quite."""
    a = torch.from_numpy(rng.standard_normal((point.dim, point.dim)))
    trace = torch.linalg.eigvals(a).sum()
    found = {
        "trace": a.trace(),
        "eigenvalues": trace.real,
        "complex": trace.numpy(),
        "imaginary": (trace + 1e-3j).numpy(),
        "twice": 2 * a.trace(),
        "pair": np.ones(2),
        "infinite": math.inf,
        "close": a.trace() * (1 + 1e-12),
    }
    return {name: found[name] for name in names}


def identity(theory: str = "eigenvalues", rivals: tuple[str, ...] = ("twice",), **changes) -> Identity:
    names = ("trace", theory, *rivals, *filter(None, [changes.get("printed")]))
    plain = {
        "id": "paper/identity",
        "routes": partial(_routes, names=names),
        "points": (Point(dim=5), Point(dim=8)),
        "tolerance": 1e-10,
        "tolerance_reason": "rounding",
    }
    return Identity(**{**STATED, **plain, **changes})


def _two_inputs(block: Block, _: Point) -> dict[str, np.ndarray]:
    x = np.stack([rng.standard_normal(2) for rng in block.streams])
    return {"score": x[:, 0], "near": x[:, 0] + 0.1 * x[:, 1], "far": np.exp(1.2 * x[:, 1])}


SKEWED_RIVAL = claim(
    "skewed-rival",
    experiment=Experiment(
        id="paper/two-inputs",
        replicate="two normals",
        simulate=_two_inputs,
        points=(Point(a=1), Point(a=2)),
        budget=4096,
    ),
    score="score",
    inputs={"near": lambda _: 1.0, "far": lambda _: 5.0},
    predict=lambda p: p.near,
    margin=0.1,
    relative=False,
    rivals={"the skewed one": lambda p: p.far},
)
"""Decided at once, while the interval of its rival, a lognormal variable, is blocked at first."""


def judge_claim(
    tested: Claim, settings: Settings, replicates: int | None = None, alpha: float = ALPHA
) -> list[PointOutcome]:
    """Judge one claim by itself, in this process."""
    refresh()
    return judged_alone(tested, Pump(SerialExecutor(), settings), settings, replicates, alpha)
