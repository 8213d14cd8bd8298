"""Rows of what rests on sizes, of bounds, distributions and vector scores."""

from __future__ import annotations

import math
from typing import Any

from tests.verify.results.sample_rows import looks, point, rival, row
from verify.results import Curve, PointOutcome, ProfilePoint, Row, Violation

SIZES = (64, 128, 256, 512, 1024)


def _over_sizes(mean: Any, line: Any, half: float = 0.004) -> list[ProfilePoint]:
    """Means at each size, their intervals a share of them."""
    return [
        ProfilePoint(
            x=float(n),
            measured=mean(n),
            lower=mean(n) - half * abs(mean(n)),
            upper=mean(n) + half * abs(mean(n)),
            predicted=line(n),
        )
        for n in SIZES
    ]


def extrapolated(limit: float, margin: float, measured: float, half: float, **more: Any) -> PointOutcome:
    """What is judged after one look, its half-width mostly from the size model."""
    return point(
        {"sizes": SIZES, "beta": 1.0},
        limit,
        margin,
        measured,
        half,
        statistical=0.4 * half,
        size_model=0.6 * half,
        looks=looks(measured, half, until=96, start=0),
        replicates=2048,
        **more,
    )


def _edge(measured: float, half: float, **more: Any) -> PointOutcome:
    made = _over_sizes(lambda n: measured - 1.2 * n ** (-2 / 3) - 0.5 * n ** (-4 / 3), lambda _: 2.0)
    near = [rival(name, value, 2.0, 0.01) for name, value in (("sqrt(4.1)", 2.025), ("3 sigma", 3.0))]
    close = [rival("2 + 1/64", 2.0156, 2.0, 0.01, rejected=False), rival("no edge", math.nan, 2.0, 0.01)]
    return extrapolated(2.0, 0.01, measured, half, profile=made, rivals=near + close, **more)


def _slope(measured: float, half: float, *, sign: float = 1.0, **more: Any) -> PointOutcome:
    made = _over_sizes(
        lambda n: sign * 3 * n**measured * (1 + 2 / n),
        lambda n: sign * 3 * 1024**measured * (n / 1024) ** 1.5,
    )
    rivals = [
        rival(k, v, 1.5, 0.05) for k, v in (("linear", 1.0), ("square", 2.0), ("5/3", 5 / 3), ("root", 0.5))
    ]
    return extrapolated(1.5, 0.05, measured, half, profile=made, rivals=rivals, **more)


def model_based_rows() -> list[Row]:
    """Limits and exponents: agreeing, disagreeing, and where the size model is not trusted."""
    plain: dict[str, Any] = {"model_based": True, "replicate": "one matrix of each size"}
    limit: dict[str, Any] = {
        "kind": "limit of infinite size",
        "quantity": "largest eigenvalue over √N",
        **plain,
    }
    exponent: dict[str, Any] = {
        "kind": "scaling exponent",
        "margin": 1 / 30,
        "quantity": "trace of F",
        **plain,
    }
    power = "A deviation beyond 0.3 % is excluded by this run; one beyond 1.2 % would have been caught."
    blocked = {"lower": -math.inf, "upper": math.inf, "reason": "size model not trusted"}
    return [
        row("granziol2022/edge", entries=["B3"], points=[_edge(2.0012, 0.004)], power=power, **limit),
        row(
            "granziol2022/edge as written",
            expected="disagrees",
            verdict="disagrees",
            points=[_edge(2.0312, 0.004)],
            finding="The edge lies elsewhere.",
            **limit,
        ),
        row(
            "granziol2022/edge of few",
            verdict="undecided",
            points=[_edge(2.004, math.inf, **blocked)],
            **limit,
        ),
        row("karakida2019/order", points=[_slope(1.508, 0.012)], **exponent),
        row(
            "karakida2019/order as guessed",
            expected="disagrees",
            verdict="disagrees",
            points=[_slope(1.71, 0.012, sign=-1.0), _slope(1.8, 0.012)],
            **exponent,
        ),
        row(
            "karakida2019/order of few",
            verdict="undecided",
            points=[_slope(1.6, math.inf, **blocked)],
            **exponent,
        ),
    ]


def _share(measured: float, half: float, **more: Any) -> PointOutcome:
    return point({"dim": 12}, 0.0, 0.005, measured, half, lower=max(0.0, measured - half), **more)


def _law(shift: float, distance: float, verdict: str) -> PointOutcome:
    """An exponential law, measured to the right of the predicted one."""
    grid = [0.05 * k for k in range(97)]
    cdfs = [(x, 1 - math.exp(-max(0.0, x - shift)), 1 - math.exp(-x)) for x in grid]
    made = [
        ProfilePoint(x=x, measured=f, lower=max(0.0, f - 0.05), upper=min(1.0, f + 0.05), predicted=p)
        for x, f, p in cdfs
    ]
    rivals = [rival("normal law", 0.31, 0.0, 0.08), rival("twice the scale", 0.25, 0.0, 0.08)]
    return point(
        {"dim": 12}, 0.0, 0.08, distance, 0.05, lower=max(0.0, distance - 0.05), verdict=verdict, profile=made,
        rivals=rivals,
    )  # fmt: skip


def spectrum() -> tuple[list[PointOutcome], list[Curve]]:
    """A distribution function at twenty places of one vector score, with four rivals near to it."""

    def semicircle(x: float, radius: float = 2.0) -> float:
        t = min(max(x / radius, -1.0), 1.0)
        return 0.5 + (t * math.sqrt(1 - t * t) + math.asin(t)) / math.pi

    laws = {
        "radius for diameter": lambda x: semicircle(x, 2.6),
        "uniform law": lambda x: min(max((x + 2) / 4, 0.0), 1.0),
        "normal law": lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))),
        "narrow": lambda x: semicircle(x, 1.7),
        "shifted": lambda x: semicircle(x - 0.15),
        "arcsine law": lambda x: 0.5 + math.asin(min(max(x / 2, -1.0), 1.0)) / math.pi,
    }
    places = [-1.93 + 0.203 * k for k in range(20)]
    points = [
        point(
            {"x": x, "dim": 200},
            semicircle(x),
            0.01,
            semicircle(x) + 0.0012 * math.sin(5 * x),
            0.004,
            rivals=[rival(name, law(x), semicircle(x), 0.01) for name, law in laws.items()],
            looks=[],
        )
        for x in places
    ]
    grid = sorted({*(-2.4 + 0.05 * k for k in range(97)), *places})
    curve = Curve(
        axis="x",
        at={"dim": 200},
        x=grid,
        predicted=[semicircle(x) for x in grid],
        rivals={name: [law(x) for x in grid] for name, law in laws.items()},
    )
    return points, [curve]


def bound_rows() -> list[Row]:
    """Bounds, distributions, vector scores, statistics of groups and settled means."""
    never: dict[str, Any] = {"relative": False, "margin": 0.005, "quantity": "smallest eigenvalue"}
    below, law = "lower bound on every replicate", {"kind": "distribution", "relative": False, "margin": 0.08}
    places, curves = spectrum()
    settled = [
        ProfilePoint(x=float(n), measured=1.7 + d, lower=1.697 + d, upper=1.703 + d, predicted=1.7)
        for n, d in ((400, 0.0007), (800, 0.0002))
    ]
    return [
        row(
            "karakida2019/upper",
            kind="upper bound on a mean",
            points=[
                point({"width": w}, 10.0, 0.1, m, 0.05, slack=m / 10, verdict="agrees", lower=m - 0.05)
                for w, m in ((400, 9.8), (800, 9.2))
            ],
            power="The mean lies 2 % below the bound where it is tightest.",
        ),
        row(
            "karakida2019/always",
            kind=below,
            points=[_share(0.0, 0.0017, slack=3.2, rivals=[rival("twice the bound", 0.12, 0.0, 0.005)])],
            power="No violation in any replicate: they are rarer than 0.17 %.",
            **never,
        ),
        row(
            "karakida2019/always as written",
            kind=below,
            expected="disagrees",
            verdict="disagrees",
            points=[
                _share(
                    0.012,
                    0.006,
                    replicates=192,
                    slack=1.1,
                    looks=[],
                    violations=[Violation(replicate=7 + 23 * k, by=0.013 * (k + 1)) for k in range(8)],
                )
            ],
            finding="Broken where the width is small.",
            power="Broken: by 0.013 in replicate 7.",
            **never,
        ),
        row("vysogorets2024/law", points=[_law(0.02, 0.02, "agrees")], quantity="loss", **law),
        row(
            "vysogorets2024/law as guessed",
            expected="disagrees",
            verdict="disagrees",
            points=[_law(0.3, 0.26, "disagrees")],
            quantity="loss",
            **law,
        ),
        row(
            "beyond/spectrum",
            relative=False,
            points=places,
            curves=curves,
            quantity="share of eigenvalues up to x",
        ),
        row(
            "beyond/settled",
            kind="mean that no longer depends on size",
            points=[
                point(
                    {"sizes": (400, 800)},
                    1.7,
                    0.017,
                    1.7002,
                    0.003,
                    profile=settled,
                    rivals=[rival("half", 1.66, 1.7, 0.017), rival("far", 17.0, 1.7, 0.017)],
                )
            ],
        ),
        row(
            "beyond/variance",
            kind="statistic of groups",
            points=[point({"dim": 9}, 0.24, 0.024, 0.243, 0.011)],
        ),
    ]
