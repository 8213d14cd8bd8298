"""One wrong theory per kind of check. A suite that does not catch these would not catch anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.model import (
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    StatisticalProperty,
    Verdict,
)

__all__ = ["PLANTED"]

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


def routes(rng: np.random.Generator, point: Point) -> dict[str, Any]:
    """A determinant two ways, and a wrong third."""
    a = rng.standard_normal((point.dim, point.dim))
    spectrum = np.linalg.eigvals(a)
    return {
        "lu": np.linalg.det(a),
        "eigenvalues": spectrum.prod().real,
        "singular values": np.linalg.svd(a)[1].prod() + 1,
    }


def _cauchy_schwarz(rng: np.random.Generator, point: Point) -> float:
    x, y = rng.standard_normal((2, point.dim))
    return max(0.0, abs(x @ y) / (0.05 * np.linalg.norm(x) * np.linalg.norm(y)) - 1)


def _dimensions() -> dict[str, Any]:
    from hypothesis import strategies as st

    return {"dim": st.integers(2, 9)}


def _scales() -> dict[str, Any]:
    from hypothesis import strategies as st

    return {"scale": st.floats(0.6, 3.0)}


SUMS = Experiment(
    id="planted/sums",
    replicate="24 exponential variables",
    simulate=sums,
    points=(Point(scale=1.7),),
    budget=8192,
)

COMMON: dict[str, Any] = {"entries": (), "source": "planted error", "expected": Verdict.DISAGREES}

PLANTED: tuple[AnyClaim, ...] = (
    Claim(
        id="planted/mean",
        statement=r"\mathbb{E}\,\bar x = 1.15\,s",
        experiment=SUMS,
        score="mean",
        predict=lambda p: 1.15 * p.scale,
        margin=0.05,
        margin_reason=WHY,
        **COMMON,
    ),
    Claim(
        id="planted/ratio",
        statement=r"\mathbb{E}\,\overline{x^2} / \mathbb{E}\,\bar x = 1.7\,s",
        experiment=SUMS,
        score=("second_moment", "mean"),
        kind=Kind.RATIO,
        predict=lambda p: 1.7 * p.scale,
        margin=0.05,
        margin_reason=WHY,
        **COMMON,
    ),
    Claim(
        id="planted/probability",
        statement=r"\Pr(x > s) = 1/2",
        experiment=SUMS,
        score="exceeds",
        kind=Kind.PROPORTION,
        predict=lambda _: 0.5,
        margin=0.04,
        relative=False,
        margin_reason=WHY,
        **COMMON,
    ),
    Claim(
        id="planted/lower-bound",
        statement=r"\mathbb{E}\,\bar x \ge 1.15\,s",
        experiment=SUMS,
        score="mean",
        kind=Kind.AT_LEAST,
        predict=lambda p: 1.15 * p.scale,
        margin=0.05,
        margin_reason=WHY,
        **COMMON,
    ),
    Claim(
        id="planted/measured-input",
        statement=r"\mathbb{E}\,\overline{x^2} = \mathbb{E}\,\bar x^2",
        experiment=SUMS,
        score="second_moment",
        inputs={"mean": 1.7},
        predict=lambda p: p.mean**2,
        margin=0.1,
        margin_reason=WHY,
        **COMMON,
    ),
    Identity(
        id="planted/identity",
        statement=r"\det A = 1 + \prod_i \sigma_i",
        routes=routes,
        points=(Point(dim=5),),
        measured="lu",
        theory="singular values",
        tolerance=1e-10,
        tolerance_reason=WHY,
        **COMMON,
    ),
    ExactProperty(
        id="planted/exact-property",
        statement=r"|x^\top y| \le |x|\,|y| / 20",
        strategies=_dimensions,
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
        strategies=_scales,
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
