"""One wrong theory per kind of check: a suite that misses these would miss anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    StatisticalProperty,
    Verdict,
)
from verify.model.domains import Between

WHY = "planted: more than two margins away from the truth"


def sums(block: Block, point: Point) -> Mapping[str, Any]:
    """Means of 24 exponential variables of mean `scale`, their squares, and how often they exceed the mean."""
    x = point.scale * np.stack([rng.exponential(size=24) for rng in block.streams])
    return {
        "mean": x.mean(axis=1),
        "second_moment": (x**2).mean(axis=1),
        "exceeds": (x[:, 0] > point.scale).astype(float),
        "first": x[:, 0],
    }


def _over_sizes(block: Block, point: Point) -> Mapping[str, Any]:
    """Scores over sizes: one tends to 3 from above as 1/M and 1/M^2, one grows as a power."""
    m = np.array(point.sizes, dtype=float)
    noise = np.stack([rng.standard_normal(len(m)) for rng in block.streams])
    return {
        "approaching": 3 + 5 / m + 2 / m**2 + 0.02 * noise,
        "growing": m**1.5 * (1 + 1 / m) * (1 + 0.01 * noise),
    }


def _routes(rng: np.random.Generator, point: Point) -> dict[str, Any]:
    """A determinant, a wrong formula for it, and a rival."""
    a = rng.standard_normal((point.dim, point.dim))
    return {
        "lu": np.linalg.det(a),
        "singular values": np.linalg.svd(a)[1].prod() + 1,
        "twice": 2 * np.linalg.det(a),
    }


def _cauchy_schwarz(rng: np.random.Generator, point: Point) -> float:
    x, y = rng.standard_normal((2, point.dim))
    return max(0.0, abs(x @ y) / (0.05 * np.linalg.norm(x) * np.linalg.norm(y)) - 1)


SUMS = Experiment(
    id="planted/sums",
    replicate="24 exponential variables",
    simulate=sums,
    on_host="all of it",
    points=(Point(scale=1.7),),
    budget=8192,
)

SIZES = Experiment(
    id="planted/sizes",
    replicate="one noisy curve over sizes",
    simulate=_over_sizes,
    on_host="all of it",
    points=(Point(sizes=(10, 20, 40, 80, 160)),),
    budget=256,
)

COMMON: dict[str, Any] = {
    "entries": (),
    "source": "planted error",
    "expected": Verdict.DISAGREES,
    "passage": OURS,
}


def _wrong(
    name: str, statement: str, experiment: Experiment, score: Any, margin: float, **facts: Any
) -> Claim:
    return Claim(
        id=f"planted/{name}",
        statement=statement,
        experiment=experiment,
        score=score,
        margin=margin,
        margin_reason=WHY,
        **facts,
        **COMMON,
    )


PLANTED: tuple[AnyClaim, ...] = (
    _wrong("mean", r"\mathbb{E}\,\bar x = 1.15\,s", SUMS, "mean", 0.05, predict=lambda p: 1.15 * p.scale),
    _wrong(
        "ratio",
        r"\mathbb{E}\,\overline{x^2} / \mathbb{E}\,\bar x = 1.7\,s",
        SUMS,
        ("second_moment", "mean"),
        0.05,
        kind=Kind.RATIO,
        predict=lambda p: 1.7 * p.scale,
    ),
    _wrong(
        "probability",
        r"\Pr(x > s) = 1/2",
        SUMS,
        "exceeds",
        0.04,
        kind=Kind.PROPORTION,
        predict=lambda _: 0.5,
        relative=False,
    ),
    _wrong(
        "lower-bound",
        r"\mathbb{E}\,\bar x \ge 1.15\,s",
        SUMS,
        "mean",
        0.05,
        kind=Kind.AT_LEAST,
        predict=lambda p: 1.15 * p.scale,
    ),
    _wrong(
        "upper-bound",
        r"\mathbb{E}\,\bar x \le 0.85\,s",
        SUMS,
        "mean",
        0.05,
        kind=Kind.AT_MOST,
        predict=lambda p: 0.85 * p.scale,
    ),
    _wrong(
        "always-above",
        r"x \ge 0.02\,s",
        SUMS,
        "first",
        0.005,
        kind=Kind.NEVER_BELOW,
        predict=lambda p: 0.02 * p.scale,
        relative=False,
    ),
    _wrong(
        "always-below",
        r"x \le 4\,s",
        SUMS,
        "first",
        0.005,
        kind=Kind.NEVER_ABOVE,
        predict=lambda p: 4 * p.scale,
        relative=False,
    ),
    _wrong(
        "distribution",
        r"\Pr(x \le t) = 1 - e^{-t / (2 s)}",
        SUMS,
        "first",
        0.08,
        kind=Kind.DISTRIBUTION,
        predict=lambda p: lambda t: -np.expm1(-np.maximum(t, 0.0) / (2 * p.scale)),
        relative=False,
    ),
    _wrong(
        "limit",
        r"\lim_M \mathbb{E}\,y_M = 3.06",
        SIZES,
        "approaching",
        0.005,
        kind=Kind.LIMIT,
        along="sizes",
        terms=(1, 2),
        predict=lambda _: 3.06,
    ),
    _wrong(
        "exponent",
        r"\mathbb{E}\,y_M \sim M",
        SIZES,
        "growing",
        0.1,
        kind=Kind.EXPONENT,
        along="sizes",
        terms=(1,),
        predict=lambda _: 1.0,
    ),
    _wrong(
        "component",
        r"\mathbb{E}\,y_M = 3 + 5.5 / M",
        SIZES,
        "approaching",
        0.001,
        along="sizes",
        predict=lambda p: 3 + 5.5 / p.sizes,
    ),
    _wrong(
        "measured-input",
        r"\mathbb{E}\,\overline{x^2} = \mathbb{E}\,\bar x^2",
        SUMS,
        "second_moment",
        0.1,
        inputs={"mean": 1.7},
        predict=lambda p: p.mean**2,
    ),
    Identity(
        id="planted/identity",
        statement=r"\det A = 1 + \prod_i \sigma_i",
        routes=_routes,
        points=(Point(dim=5),),
        tolerance=1e-10,
        tolerance_reason=WHY,
        **COMMON,
    ),
    ExactProperty(
        id="planted/exact-property",
        statement=r"|x^\top y| \le |x|\,|y| / 20",
        domain={"dim": Between(2, 9)},
        violation=_cauchy_schwarz,
        examples=(),
        tolerance=1e-12,
        tolerance_reason=WHY,
        rivals={},
        **COMMON,
    ),
    StatisticalProperty(
        id="planted/property",
        statement=r"\mathbb{E}\,\bar x = 1.15\,s \text{ for all } s",
        domain={"scale": Between(0.6, 3.0)},
        simulate=sums,
        replicate="24 exponential variables",
        examples=(),
        score="mean",
        predict=lambda p: 1.15 * p.scale,
        margin=0.05,
        margin_reason=WHY,
        rivals={},
        **COMMON,
    ),
)
