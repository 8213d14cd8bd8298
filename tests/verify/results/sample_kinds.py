"""Rows of what rests on sizes, of bounds, distributions and vector scores."""

import math
from collections.abc import Sequence
from typing import Any

from tests.verify.results.sample_rows import looks, point, rival, row
from verify.results import Curve, PointOutcome, ProfilePoint, Row, Violation

SIZES = (64, 128, 256, 512, 1024)
FOUND_WRONG = {"expected": "disagrees", "verdict": "disagrees"}
BLOCKED = {"lower": -math.inf, "upper": math.inf, "reason": "size model not trusted"}


def profile(places: Sequence[float], mean: Any, line: Any, half: float) -> list[ProfilePoint]:
    """Means at each place, with intervals as wide on either side, and what is predicted there."""
    return [
        ProfilePoint(
            x=float(x), measured=mean(x), lower=mean(x) - half, upper=mean(x) + half, predicted=line(x)
        )
        for x in places
    ]


def extrapolated(limit: float, margin: float, measured: float, half: float, **more: Any) -> PointOutcome:
    """Claim judged after one look, its half-width mostly from the size model."""
    return point(
        {"sizes": SIZES, "beta": 1.0}, limit, margin, measured, half, statistical=0.4 * half, size_model=0.6 * half,
        looks=looks(measured, half, until=96, start=0), replicates=2048, **more,
    )  # fmt: skip


def _edge(measured: float, half: float, **more: Any) -> PointOutcome:
    made = profile(
        SIZES, lambda n: measured - 1.2 * n ** (-2 / 3) - 0.5 * n ** (-4 / 3), lambda _: 2.0, 0.008
    )
    near = [rival(name, value, 2.0, 0.01) for name, value in (("sqrt(4.1)", 2.025), ("3 sigma", 3.0))]
    close = [rival("2 + 1/64", 2.0156, 2.0, 0.01, rejected=False), rival("no edge", math.nan, 2.0, 0.01)]
    return extrapolated(2.0, 0.01, measured, half, profile=made, rivals=near + close, **more)


def _slope(measured: float, half: float) -> PointOutcome:
    made = profile(
        SIZES, lambda n: 3 * n**measured * (1 + 2 / n), lambda n: 3 * 1024**measured * (n / 1024) ** 1.5, 1.0
    )
    rivals = [rival(k, v, 1.5, 0.05) for k, v in (("linear", 1.0), ("square", 2.0), ("5/3", 5 / 3))]
    return extrapolated(1.5, 0.05, measured, half, profile=made, rivals=rivals)


def model_based_rows() -> list[Row]:
    """Limits and exponents: agreeing, disagreeing, and where the size model is not trusted."""
    limit = {"kind": "limit of infinite size", "quantity": "largest eigenvalue over √N"}
    exponent = {"kind": "scaling exponent", "margin": 1 / 30, "quantity": "trace of F"}
    told = [
        ("granziol2022/edge", limit, {"entries": ["B3"]}, [_edge(2.0012, 0.004)]),
        ("granziol2022/edge as written", limit, FOUND_WRONG, [_edge(2.0312, 0.004)]),
        ("granziol2022/edge of few", limit, {"verdict": "undecided"}, [_edge(2.004, math.inf, **BLOCKED)]),
        ("karakida2019/order", exponent, {}, [_slope(1.508, 0.012), _slope(1.497, 0.012)]),
    ]
    plain = {"model_based": True, "replicate": "one matrix of each size"}
    return [row(name, points=points, **plain, **kind, **more) for name, kind, more, points in told]


def _law() -> Row:
    """An exponential law, measured to the right of the predicted one."""

    def cdf(x: float, shift: float = 0.0) -> float:
        return 1 - math.exp(-max(0.0, x - shift))

    made = profile([0.05 * k for k in range(97)], lambda x: cdf(x, 0.02), cdf, 0.05)
    rivals = [rival("normal law", 0.31, 0.0, 0.08), rival("twice the scale", 0.25, 0.0, 0.08)]
    at = point({"dim": 12}, 0.0, 0.08, 0.02, 0.05, lower=0.0, profile=made, rivals=rivals)
    told = {"quantity": "loss", "kind": "distribution", "relative": False, "margin": 0.08}
    return row("vysogorets2024/law", points=[at], **told)


def semicircle(x: float, radius: float = 2.0) -> float:
    t = min(max(x / radius, -1.0), 1.0)
    return 0.5 + (t * math.sqrt(1 - t * t) + math.asin(t)) / math.pi


def spectrum() -> tuple[list[PointOutcome], list[Curve]]:
    """A distribution function at twenty places of one vector score, with rivals near to it."""
    laws = {
        "radius for diameter": lambda x: semicircle(x, 2.6),
        "uniform law": lambda x: min(max((x + 2) / 4, 0.0), 1.0),
        "narrow": lambda x: semicircle(x, 1.7),
        "shifted": lambda x: semicircle(x - 0.15),
    }
    places = [-1.93 + 0.203 * k for k in range(20)]
    points = []
    for x in places:
        law, rivals = semicircle(x), [rival(name, law(x), semicircle(x), 0.01) for name, law in laws.items()]
        at = {"x": x, "dim": 200}
        points.append(point(at, law, 0.01, law + 0.0012 * math.sin(5 * x), 0.004, rivals=rivals, looks=[]))
    grid = sorted({*(-2.4 + 0.05 * k for k in range(97)), *places})
    drawn = {name: [law(x) for x in grid] for name, law in laws.items()}
    return points, [
        Curve(axis="x", at={"dim": 200}, x=grid, predicted=[*map(semicircle, grid)], rivals=drawn)
    ]


def bound_rows() -> list[Row]:
    """Bounds, distributions and vector scores."""
    never = {"relative": False, "margin": 0.005, "quantity": "smallest eigenvalue",
                             "kind": "lower bound on every replicate"}  # fmt: skip
    places, curves = spectrum()
    kept = point(
        {"dim": 12},
        0.0,
        0.005,
        0.0,
        0.0017,
        lower=0.0,
        slack=3.2,
        rivals=[rival("twice the bound", 0.12, 0.0, 0.005)],
    )
    broken = [Violation(replicate=7 + 23 * k, by=0.013 * (k + 1)) for k in range(8)]
    below = [
        point({"width": w}, 10.0, 0.1, m, 0.05, slack=m / 10, verdict="agrees")
        for w, m in ((400, 9.8), (800, 9.2))
    ]
    violated = point(
        {"dim": 12}, 0.0, 0.005, 0.012, 0.006, replicates=192, slack=1.1, looks=[], violations=broken
    )
    return [
        row("karakida2019/upper", kind="upper bound on a mean", points=below),
        row("karakida2019/always", points=[kept], **never),
        row("karakida2019/always as written", points=[violated], **FOUND_WRONG, **never),
        _law(),
        row(
            "beyond/spectrum",
            relative=False,
            points=places,
            curves=curves,
            quantity="share of eigenvalues up to x",
        ),
    ]
