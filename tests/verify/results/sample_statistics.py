"""Rows of means, identities and properties: every reading and verdict, and numbers that break a careless page."""

from __future__ import annotations

import math

from tests.verify.results.sample_rows import looks, point, rival, row
from verify.judging.guards import SKEWED
from verify.results import Curve, PointOutcome, Row

SPIKES = (0.63, 1.1, 1.9, 2.7, 3.4)


def spiked(spike: float, sigma: float) -> float:
    return spike + sigma**2 / spike if spike > sigma else 2 * sigma


def _curve(sigma: float, *, printed: bool = False) -> Curve:
    x = sorted({*(0.4 + 0.04 * k for k in range(81)), *SPIKES})
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
        for k, spike in enumerate(SPIKES):
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


def statistical_rows() -> list[Row]:
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
            standing="corrected",
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
            standing="misprint",
            words="where the variance is",
            place="below eq. (10)",
            slip=True,
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


def surprises() -> list[Row]:
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
                    reason=SKEWED,
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


def exact_rows() -> list[Row]:
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
            standing="corrected",
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
            standing="misprint",
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
