"""A whole run made by hand: every kind, reading and verdict, and the numbers that break a careless page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from verify.results import (
    Curve,
    InventoryRow,
    Look,
    Observed,
    ObservedColumn,
    ObservedGroup,
    ObservedRow,
    PointOutcome,
    ProfilePoint,
    Results,
    RivalOutcome,
    Row,
    RunRecord,
    Spread,
    Suite,
    Violation,
)

PAPERS = {
    "vysogorets2024": "Vysogorets, Dawid and Kempe (2024)",
    "granziol2022": "Granziol, Zohren and Roberts (2022)",
    "karakida2019": "Karakida, Akaho and Amari (2019)",
    "beyond": "losscurv",
}
STEPS = (96, 128, 160, 208, 272, 352, 448, 560, 704, 768)


def looks(measured: float, half: float, *, until: int = 768, start: int = 1) -> list[Look]:
    """An interval that starts without limits and shrinks to `half`, its centre wandering a little."""
    steps = [n for n in STEPS if n <= until]
    made = [Look(replicates=n, measured=measured, lower=-math.inf, upper=math.inf) for n in steps[:start]]
    for k, n in enumerate(steps[start:]):
        width = half * math.sqrt(until / n)
        centre = measured + 0.25 * (width - half) * math.sin(2.1 * k)
        made.append(Look(replicates=n, measured=centre, lower=centre - width, upper=centre + width))
    return made


def point(
    parameters: dict[str, Any], predicted: float, margin: float, measured: float, half: float, **more: Any
) -> Any:
    """An outcome whose verdict follows from its numbers, unless given."""
    lower, upper = more.pop("lower", measured - half), more.pop("upper", measured + half)
    low, high = predicted - margin, predicted + margin
    inside, outside = low < lower and upper < high, upper < low or lower > high
    verdict = more.pop("verdict", "agrees" if inside else "disagrees" if outside else "undecided")
    replicates = more.pop("replicates", 768)
    return PointOutcome(
        parameters=parameters,
        verdict=verdict,
        predicted=predicted,
        margin=margin,
        measured=measured,
        lower=lower,
        upper=upper,
        statistical=more.pop("statistical", half),
        replicates=replicates,
        looks=more.pop(
            "looks", looks(measured, half, until=replicates) if math.isfinite(half) and half else []
        ),
        rivals=more.pop("rivals", []),
        **more,
    )


def rival(name: str, value: float, predicted: float, margin: float, *, rejected: bool = True) -> RivalOutcome:
    return RivalOutcome(name=name, value=value, margins=abs(value - predicted) / margin, rejected=rejected)


def row(claim: str, **more: Any) -> Row:
    """A row that agrees as expected, with the given differences."""
    paper = claim.partition("/")[0]
    reading = more.get("reading", "theory")
    printed = reading == "as our copy reads"
    plain: dict[str, Any] = {
        "id": f"{claim} [{reading}]" if printed else claim,
        "claim": claim,
        "paper": paper,
        "reading": reading,
        "kind": "mean",
        "entries": [],
        "source": PAPERS.get(paper, paper),
        "statement": r"\mathbb{E}\,\lambda_1 = \lambda + \frac{P\sigma^2}{b\,\lambda}",
        "expected": "disagrees" if printed else "agrees",
        "verdict": "disagrees" if printed else "agrees",
        "surprise": False,
        "margin": 0.01,
        "relative": True,
        "margin_reason": "finite size is O(1/P) away from the threshold, measured at two sizes",
        "quantity": "largest eigenvalue",
        "experiment": claim,
        "replicate": "one noise matrix",
        "data": "",
        "power": "A deviation beyond 0.42 % is excluded by this run; one beyond 1.4 % is caught.",
        "finding": "",
        "rerun": f"losscurv report --claim {claim} --seed 20240501 --tier default",
        "seconds": 3.214,
    }
    return Row(**{**plain, **more})


def spiked(spike: float, sigma: float) -> float:
    return spike + sigma**2 / spike if spike > sigma else 2 * sigma


def _curve(sigma: float, *, printed: bool = False) -> Curve:
    x = [0.4 + 0.04 * k for k in range(81)]
    theory = [spiked(v, sigma) for v in x]
    copy = [v + sigma / v for v in x]
    return Curve(
        axis="spike",
        at={"sigma": sigma, "dim": 400},
        x=x,
        predicted=copy if printed else theory,
        rivals={"corrected": theory}
        if printed
        else {
            "sigma for its square": copy,
            "no repulsion": x,
            "twice the noise, as a reader might take the variance of the entries": [
                v + 4 * sigma**2 / v for v in x
            ],
            "far away": [v + 900 for v in x],
            "undefined below": [math.nan if v < 2 else v + 0.3 for v in x],
        },
    )


def _outliers(*, printed: bool = False) -> list[PointOutcome]:
    made = []
    for sigma in (0.7, 1.3):
        for k, spike in enumerate((0.63, 1.1, 1.9, 2.7, 3.4)):
            truth = spiked(spike, sigma)
            predicted = spike + sigma / spike if printed else truth
            margin = 0.01 * truth
            close = [
                rival("sigma for its square", spike + sigma / spike, predicted, margin),
                rival("no repulsion", spike, predicted, margin),
            ]
            made.append(
                point(
                    {"spike": spike, "sigma": sigma, "dim": 400},
                    predicted,
                    margin,
                    truth * (1 + 0.001 * (-1) ** k),
                    0.0032 * truth,
                    rivals=[] if printed else close,
                    replicates=(192, 304, 768, 480, 240)[k],
                )
            )
    return made


def _statistical_rows() -> list[Row]:
    wide = {"width": 500, "samples": 60, "depth": 3}
    overlaps = [
        point(
            {**wide, "batch_size": b, "weight_variance": 1.7},
            p,
            0.01,
            p + d,
            0.003,
            numerical=1e-9,
            skewness=0.4,
            offset_resolved=abs(d) > 0.003,
            rivals=[
                rival("square root", math.sqrt(p), p, 0.01),
                rival("no threshold", p - 0.031, p, 0.01),
                rival("limit instead of finite size", p + 0.013, p, 0.01, rejected=False),
                rival("not defined here", math.nan, p, 0.01),
            ],
        )
        for b, p, d in ((32, 0.31, 0.001), (128, 0.74, -0.005), (512, 0.93, 0.0))
    ]
    return [
        row(
            "granziol2022/theorem-4",
            reading="corrected",
            entries=["B8", "B9"],
            source="Granziol, Zohren and Roberts (2022), Theorem 4, eq. (10)",
            points=_outliers(),
            curves=[_curve(0.7), _curve(1.3)],
            quantity="largest eigenvalue of the batch Hessian",
        ),
        row(
            "granziol2022/theorem-4",
            reading="as our copy reads",
            entries=["B8", "B9"],
            source="Granziol, Zohren and Roberts (2022), Theorem 4, eq. (10)",
            points=_outliers(printed=True),
            curves=[_curve(0.7, printed=True)],
            finding="As our copy reads, the noise enters with its standard deviation; the variance is meant.",
            quantity="largest eigenvalue of the batch Hessian",
            power="It is off by at least 11 % of what was measured.",
        ),
        row(
            "granziol2022/theorem-10",
            entries=["B17", "B18"],
            source="Granziol, Zohren and Roberts (2022), Theorem 10, eq. (44)",
            statement=r"|\phi_1'^\top \phi_1|^2 = 1 - \frac{s^2}{\lambda_1^2} \quad \text{if } \lambda_1 > s",
            margin=0.01,
            relative=False,
            points=overlaps,
            quantity="squared overlap",
        ),
        row(
            "karakida2019/eq-11",
            kind="ratio of means",
            entries=["C11"],
            source="Karakida, Akaho and Amari (2019), Theorem 2.2",
            margin=0.03,
            points=[
                point({**wide, "activation": a}, p, 0.03 * p, 1.009 * p, 0.012 * p, numerical=1e-6 * p)
                for a, p in (("relu", 1503.2), ("tanh", 12.41), ("erf", 4.03e7))
            ],
            quantity="E tr F² / E (tr F)²",
        ),
        row(
            "karakida2019/sign",
            kind="probability",
            entries=["C12"],
            relative=False,
            points=[
                point({"width": 300}, 1.0, 0.02, 1.0, 0.012, lower=0.988, upper=1.0),
                point({"width": 600}, 0.5, 0.05, 0.507, 0.021),
            ],
            quantity="share of negative overlaps",
        ),
        row(
            "karakida2019/theorem-3.3 lower",
            kind="lower bound on a mean",
            entries=["C28"],
            points=[
                point({"width": 400}, 10.0, 0.1, 14.0, 0.5, upper=math.inf, lower=13.5, verdict="agrees"),
                point({"width": 800}, 20.0, 0.2, 29.0, 0.9, verdict="agrees"),
            ],
            quantity="largest eigenvalue after mean subtraction",
        ),
        row(
            "vysogorets2024/equation 8 / inputs",
            entries=["A8"],
            points=[
                point(
                    {"classes": 10, "dim": 64},
                    0.0213,
                    0.0008,
                    0.02141,
                    0.0003,
                    inputs={"sigma_c": 0.31, "gamma": 2.6},
                    rivals=[rival("gamma for gamma squared", 0.041, 0.0213, 0.0008)],
                )
            ],
            quantity="expected excess <of the spectrum> & more",
        ),
    ]


def _surprises() -> list[Row]:
    inputs = {"batch_size": 96, "dim": 300, "sigma": 0.9}
    crash = 'Traceback (most recent call last):\n  File "networks.py", line 12, in draw\n'
    return [
        row(
            "vysogorets2024/eq-12",
            entries=["A12", "A13"],
            verdict="disagrees",
            surprise=True,
            points=[point(inputs, 2.4, 0.024, 2.5501, 0.0098, rivals=[rival("kappa2", 1.9, 2.4, 0.024)])],
            power="It is off by at least 4.8 % of what was measured.",
        ),
        row(
            "beyond/planned surprise",
            expected="disagrees",
            surprise=True,
            points=[point(inputs, 2.4, 0.024, 2.4001, 0.0098)],
            finding="Expected to be wrong below the threshold.",
        ),
        row(
            "karakida2019/crash",
            kind="check",
            entries=["C40"],
            verdict="broken",
            surprise=True,
            margin=0.0,
            relative=False,
            margin_reason="",
            quantity="",
            replicate="",
            power="",
            error=crash + "ValueError: <nan>",
        ),
        row(
            "vysogorets2024/skewed",
            entries=["A31"],
            verdict="undecided",
            points=[
                point(
                    {"dim": 20, "law": "lognormal"},
                    1.0,
                    0.01,
                    1.04,
                    math.inf,
                    skewness=9.1,
                    reason="too skewed",
                    looks=looks(1.04, 0.2, until=768, start=10),
                ),
                point({"dim": 40, "law": "normal"}, 1.0, 0.01, 1.003, 0.009, reason="budget", needed=1648.0),
                point(
                    {"dim": 80, "law": "normal"},
                    1.0,
                    0.01,
                    math.nan,
                    math.inf,
                    reason="zero variance",
                    replicates=96,
                ),
                point(
                    {"dim": 160, "law": "normal"}, 1.0, 0.01, 1.01, 0.004, reason="budget", needed=math.inf
                ),
            ],
            power="No interval yet: this run excludes nothing.",
        ),
    ]


def _identity(value: float, name: str, rivals: dict[str, float]) -> PointOutcome:
    verdict = "agrees" if value <= 1e-10 else "disagrees"
    return point(
        {"net": name, "depth": 3},
        0.0,
        1e-10,
        value,
        0.0,
        verdict=verdict,
        replicates=0,
        rivals=[rival(k, v, 0.0, 1e-10, rejected=v > 2e-10) for k, v in rivals.items()],
    )


def _exact_rows() -> list[Row]:
    routes = [
        _identity(3.2e-16, "relu", {"no bias gradient": 0.21, "transposed": 4e-9}),
        _identity(0.0, "linear", {"no bias gradient": 0.4, "transposed": 0.0}),
        _identity(8e-13, "tanh", {"no bias gradient": math.inf, "transposed": 2e-3}),
    ]
    wrong = [_identity(0.31, "relu", {}), _identity(math.inf, "tanh", {})]
    tried = [
        point(
            {"classes": 3 + k, "temperature": 0.13 * (k + 1)},
            0.0,
            1e-9,
            0.0 if k % 3 == 0 else 10.0 ** (-16 + 0.5 * k),
            0.0,
            verdict="agrees",
            replicates=0,
            rivals=[rival("without the square root", 0.2 + k, 0.0, 1e-9)] if k < 2 else [],
        )
        for k in range(12)
    ]
    drawn = [
        point(
            {"spike": round(0.7 + 0.31 * k, 2), "sigma": round(0.4 + 0.1 * k, 2)},
            2.0 + k,
            0.02 * (2 + k),
            (2.0 + k) * (1 + 0.004 * math.sin(1.7 * k)),
            0.006 * (2 + k),
            rivals=[rival("kappa1 for kappa2", 2.9 + k, 2.0 + k, 0.02 * (2 + k))] if k == 0 else [],
        )
        for k in range(10)
    ]
    return [
        row(
            "karakida2019/eq-4",
            reading="corrected",
            kind="identity",
            entries=["C4"],
            statement=r"\frac{\partial f_k}{\partial W^l_{ij}} = \delta^l_{k,i}\, h^{l-1}_j",
            margin=1e-10,
            relative=False,
            margin_reason="double precision through six layers",
            points=routes,
            quantity="the Jacobian",
            replicate="",
            power="The two routes agree to 12.1 digits; a difference beyond 1e-10 is seen.",
        ),
        row(
            "karakida2019/eq-4",
            reading="as our copy reads",
            kind="identity",
            entries=["C4"],
            statement=r"\frac{\partial f_k}{\partial W^l_{ij}} = \delta^l_{k,i}\, h^{l}_j",
            margin=1e-10,
            relative=False,
            margin_reason="double precision through six layers",
            points=wrong,
            quantity="the Jacobian",
            replicate="",
            power="The two routes agree to 0.5 digits; a difference beyond 1e-10 is seen.",
            finding="The layer index of the activation reads one too high.",
        ),
        row(
            "vysogorets2024/gamma range",
            kind="exact property",
            entries=["A3"],
            statement=r"\frac{",
            margin=1e-9,
            relative=False,
            margin_reason="rounding",
            points=tried,
            quantity="",
            power="None of 12 examples violates it by more than 1e-09.",
        ),
        row(
            "granziol2022/any spike",
            kind="property",
            entries=["B20"],
            margin=0.02,
            points=drawn,
            power="10 examples. A deviation beyond 1 % is excluded by this run.",
        ),
        row(
            "granziol2022/digits",
            entries=["B60"],
            data="scikit-learn digits, 1797 images",
            margin=0.05,
            margin_reason="measured: the spread over ten trained networks is 4 %",
            points=[point({"batch_size": b}, 3.1, 0.155, 3.14, 0.03) for b in (48, 96)],
            replicate="one batch of the data",
            model_based=True,
        ),
    ]


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


def _spectrum() -> tuple[list[PointOutcome], list[Curve]]:
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
    grid = [-2.4 + 0.05 * k for k in range(97)]
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
    places, curves = _spectrum()
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


def _planted() -> list[Row]:
    return [
        row(
            f"planted/{name}",
            kind=kind,
            expected="disagrees",
            verdict="disagrees",
            source="planted error",
            margin_reason="planted: three margins away from the truth",
            points=[point({"scale": 1.7}, 1.955, 0.098, 1.702, 0.02)],
        )
        for name, kind in (("mean", "mean"), ("ratio", "ratio of means"))
    ]


def observed(name: str, **more: Any) -> Observed:
    """An observation of one column of ratios, with the given differences."""
    paper = name.partition("/")[0]
    plain: dict[str, Any] = {
        "id": name,
        "paper": paper,
        "entries": ["B17"],
        "source": f"{PAPERS.get(paper, paper)}, Theorem 4",
        "title": "The batch Hessian of a network on digits",
        "note": "The noise of a network is not of one variance & the outlier is too large by up to a factor <3>.",
        "replicate": "one network with its images",
        "data": "digits (scikit-learn)",
        "along": "batch_size",
        "axis": "batch size",
        "columns": [ObservedColumn(score="outlier", heading="outlier", ratio=True)],
        "replicates": 6,
        "seconds": 96.3,
        "rerun": f"losscurv report --claim {name} --seed 20240501 --tier default",
    }
    return Observed(**{**plain, **more})


def spread(mean: float, part: float = 0.06) -> Spread:
    return Spread(mean=mean, lowest=mean * (1 - part), highest=mean * (1 + 1.4 * part))


def _batches(matrix: str, state: str, start: float, power: float) -> ObservedGroup:
    rows = []
    for batch in (8, 16, 32, 64, 128, 256):
        off = 1 + start * (batch / 8) ** power
        measured = 11.3 * batch**-0.4
        ratios = (spread(off), spread(0.93), spread(off**-0.9, 0.15))
        cells = [spread(measured), spread(measured * off, 0.0), *ratios]
        rows.append(ObservedRow(at=float(batch), cells=cells))
    return ObservedGroup(parameters={"matrix": matrix, "state": state, "samples": 1536}, rows=rows)


def observations() -> list[Observed]:
    """A table over batch sizes, one without such a parameter, and one that crashed."""
    names = (
        ("measured", "outlier, measured", False),
        ("predicted", "outlier, predicted", False),
        ("outlier", "outlier, predicted over measured", True),
        ("edge", "edge of the bulk, predicted over measured", True),
        ("overlap", "squared overlap of the top eigenvectors, predicted over measured", True),
    )
    columns = [ObservedColumn(score=score, heading=heading, ratio=ratio) for score, heading, ratio in names]
    lone = [
        ObservedGroup(
            parameters={"depth": depth, "activation": name}, rows=[ObservedRow(at=None, cells=[spread(r)])]
        )
        for depth, name, r in ((3, "relu", 0.97), (5, "tanh", 0.41), (7, "erf", math.nan))
    ]
    error = "Traceback (most recent call last):\nRuntimeError: <out> of memory\n"
    return [
        observed(
            "granziol2022/batches",
            columns=columns,
            groups=[
                _batches("Hessian", "initial", 2.6, -0.6),
                _batches("Hessian", "trained", 0.04, 0.3),
                _batches("Gauss-Newton", "trained", 0.5, -0.3),
            ],
        ),
        observed("karakida2019/depths", along="", axis="", groups=lone, entries=["C11", "C99"], data=""),
        observed("beyond/lost", error=error),
    ]


def _inventory(rows: list[Row]) -> list[InventoryRow]:
    covered: dict[tuple[str, str], list[str]] = {}
    for item in rows:
        for entry in item.entries:
            covered.setdefault((item.paper, entry), []).append(item.claim)
    judged = [
        InventoryRow(
            paper=paper,
            id=entry,
            title=f"Statement {entry}",
            status="judged",
            reason="",
            claims=sorted(set(claims)),
            observations=["granziol2022/batches"] if entry == "B17" else [],
        )
        for (paper, entry), claims in sorted(covered.items())
    ]
    rest = [
        ("vysogorets2024", "A1", "definition", ""),
        ("karakida2019", "C59", "not checkable here", "needs a cluster"),
    ]
    return judged + [
        InventoryRow(paper=p, id=e, title="Loss <L> & notation", status=s, reason=r, claims=[])
        for p, e, s, r in rest
    ]


def sample() -> Results:
    """The run."""
    rows = [*_statistical_rows(), *_exact_rows(), *_surprises()]
    return Results(
        suite=Suite(
            version="0.1.0",
            seed=20240501,
            tier="default",
            device="cpu",
            alpha=1e-3 / 1024,
            family_error=1e-3,
            intervals=212,
            intervals_allowed=1024,
            selection="all",
            replicates=None,
            data="digits",
            host={
                "finished": "2026-01-02 03:04 UTC",
                "wall_seconds": 431.2,
                "workers": 2,
                "executor": "local",
                "commit": "0123456789ab",
                "platform": "Linux-6.1-x86_64",
                "machine": "x86_64",
                "python": "3.11.2",
                "packages": {"numpy": "2.1.0", "torch": "2.13.0"},
            },
        ),
        rows=rows,
        runs=[
            RunRecord(
                experiment=r.experiment,
                parameters=p.parameters,
                replicates=p.replicates,
                seconds=0.7 + 3 * k,
                sha256="0" * 64,
            )
            for k, r in enumerate(rows)
            for p in r.points[:2]
        ],
        inventory=_inventory(rows),
        planted=_planted(),
        derivations=[
            {
                "name": "excess of the softmax",
                "statement": r"\gamma = \frac{\operatorname{Tr} H}{\|H\|_F}",
                "expression": r"\frac{1 - \sum_k p_k^2}{\sqrt{\sum_k p_k^2 - 2\sum_k p_k^3}}",
                "steps": "expand the square\ncollect powers",
            }
        ],
        observations=observations(),
    )


def sample_of_kinds() -> Results:
    """A run of what rests on sizes, of bounds, distributions and vector scores."""
    rows = [*model_based_rows(), *bound_rows()]
    runs = [
        RunRecord(
            experiment="beyond/spectrum",
            parameters={"x": [p.parameters["x"] for p in _spectrum()[0]], "dim": 200},
            replicates=768,
            seconds=1.5,
            sha256="0" * 64,
        )
    ]
    bare: dict[str, Any] = {"planted": [], "derivations": [], "observations": []}
    return replace(sample(), rows=rows, runs=runs, inventory=_inventory(rows), **bare)
