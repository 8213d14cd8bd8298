"""Rows of means, identities and properties: every reading and verdict, and numbers that break a careless page."""

import math

from tests.verify.results.sample_rows import looks, point, rival, row
from verify.judging.guards import SKEWED
from verify.results import Curve, PointOutcome, Row

SPIKES = (0.63, 1.1, 1.9, 2.7, 3.4)
PRINTED = {"reading": "as our copy reads", "standing": "misprint"}
CORRECTED = {"reading": "corrected", "standing": "corrected"}


def spiked(spike: float, sigma: float) -> float:
    return spike + sigma**2 / spike if spike > sigma else 2 * sigma


def _curve(sigma: float, *, printed: bool = False) -> Curve:
    x = sorted({*(0.4 + 0.04 * k for k in range(81)), *SPIKES})
    theory, copy = [spiked(v, sigma) for v in x], [v + sigma / v for v in x]
    rivals = {
        "sigma for its square": copy,
        "no repulsion": x,
        "twice the noise, as a reader might take the variance of the entries": [
            v + 4 * sigma**2 / v for v in x
        ],
        "far away": [v + 900 for v in x],
        "undefined below": [math.nan if v < 2 else v + 0.3 for v in x],
    }
    predicted, others = (copy, {"corrected": theory}) if printed else (theory, rivals)
    return Curve(axis="spike", at={"sigma": sigma, "dim": 400}, x=x, predicted=predicted, rivals=others)


def _outliers(*, printed: bool = False) -> list[PointOutcome]:
    made = []
    for sigma in (0.7, 1.3):
        for k, spike in enumerate(SPIKES):
            truth, copy, at = (
                spiked(spike, sigma),
                spike + sigma / spike,
                {"spike": spike, "sigma": sigma, "dim": 400},
            )
            predicted, margin = copy if printed else truth, 0.01 * truth
            told = (("sigma for its square", copy), ("no repulsion", spike))
            close = [] if printed else [rival(name, value, predicted, margin) for name, value in told]
            measured, drawn = truth * (1 + 0.001 * (-1) ** k), (192, 304, 768, 480, 240)[k]
            made.append(
                point(at, predicted, margin, measured, 0.0032 * truth, rivals=close, replicates=drawn)
            )
    return made


def statistical_rows() -> list[Row]:
    wide = {"width": 500, "samples": 60, "depth": 3}
    overlaps = []
    for b, p, d in ((32, 0.31, 0.001), (128, 0.74, -0.005), (512, 0.93, 0.0)):
        rivals = [rival("square root", math.sqrt(p), p, 0.01), rival("no threshold", p - 0.031, p, 0.01),
                  rival("limit instead of finite size", p + 0.013, p, 0.01, rejected=False),
                  rival("not defined here", math.nan, p, 0.01)]  # fmt: skip
        at, more = {**wide, "batch_size": b, "weight_variance": 1.7}, {"numerical": 1e-9, "skewness": 0.4}
        resolved = abs(d) > 0.003
        overlaps.append(point(at, p, 0.01, p + d, 0.003, offset_resolved=resolved, rivals=rivals, **more))
    ratios = [
        point({**wide, "activation": a}, p, 0.03 * p, 1.009 * p, 0.012 * p, numerical=1e-6 * p)
        for a, p in (("relu", 1503.2), ("tanh", 12.41), ("erf", 4.03e7))
    ]
    signs = [
        point({"width": 300}, 1.0, 0.02, 1.0, 0.012, upper=1.0),
        point({"width": 600}, 0.5, 0.05, 0.507, 0.021),
    ]
    above = [
        point({"width": 400}, 10.0, 0.1, 14.0, 0.5, upper=math.inf, verdict="agrees"),
        point({"width": 800}, 20.0, 0.2, 29.0, 0.9, verdict="agrees"),
    ]
    excess = point({"classes": 10, "dim": 64}, 0.0213, 0.0008, 0.02141, 0.0003, inputs={"sigma_c": 0.31, "gamma": 2.6},
                   rivals=[rival("gamma for gamma squared", 0.041, 0.0213, 0.0008)])  # fmt: skip
    theorem = {
        "entries": ["B8", "B9"],
        "source": "Granziol, Zohren and Roberts (2022), Theorem 4, eq. (10)",
        "quantity": "largest eigenvalue of the batch Hessian",
    }
    finding = "As our copy reads, the noise enters with its standard deviation; the variance is meant."
    printed = {"finding": finding, "words": "where the variance is", "place": "below eq. (10)", "slip": True}
    return [
        row("granziol2022/theorem-4", points=_outliers(), curves=[*map(_curve, (0.7, 1.3))], **CORRECTED, **theorem),
        row("granziol2022/theorem-4", points=_outliers(printed=True), curves=[_curve(0.7, printed=True)],
            **PRINTED, **printed, **theorem),
        row("granziol2022/theorem-10", entries=["B17", "B18"], relative=False, points=overlaps,
            quantity="squared overlap"),
        row("karakida2019/eq-11", kind="ratio of means", entries=["C11"], margin=0.03, points=ratios,
            quantity="E tr F² / E (tr F)²"),
        row("karakida2019/sign", kind="probability", entries=["C12"], relative=False, points=signs,
            quantity="share of negative overlaps"),
        row("karakida2019/theorem-3.3 lower", kind="lower bound on a mean", entries=["C28"], points=above,
            quantity="largest eigenvalue after mean subtraction"),
        row("vysogorets2024/equation 8 / inputs", entries=["A8"], points=[excess],
            quantity="expected excess <of the spectrum> & more"),
    ]  # fmt: skip


def surprises() -> list[Row]:
    inputs = {"batch_size": 96, "dim": 300, "sigma": 0.9}
    off = point(inputs, 2.4, 0.024, 2.5501, 0.0098, rivals=[rival("kappa2", 1.9, 2.4, 0.024)])
    crash = 'Traceback (most recent call last):\n  File "networks.py", line 12, in draw\nValueError: <nan>'
    slow = looks(1.04, 0.2, until=768, start=10)
    open_still = [
        point(
            {"dim": 20, "law": "lognormal"},
            1.0,
            0.01,
            1.04,
            math.inf,
            skewness=9.1,
            reason=SKEWED,
            looks=slow,
        ),
        point({"dim": 40, "law": "normal"}, 1.0, 0.01, 1.003, 0.009, reason="budget", needed=1648.0),
        point(
            {"dim": 80, "law": "normal"}, 1.0, 0.01, math.nan, math.inf, reason="zero variance", replicates=96
        ),
        point({"dim": 160, "law": "normal"}, 1.0, 0.01, 1.01, 0.004, reason="budget", needed=math.inf),
    ]
    nothing = dict.fromkeys(("margin_reason", "quantity", "replicate", "power"), "")
    return [
        row("vysogorets2024/eq-12", entries=["A12", "A13"], verdict="disagrees", surprise=True, points=[off]),
        row("beyond/planned surprise", expected="disagrees", surprise=True,
            points=[point(inputs, 2.4, 0.024, 2.4001, 0.0098)], finding="Expected to be wrong below the threshold."),
        row("karakida2019/crash", kind="check", entries=["C40"], verdict="broken", surprise=True, margin=0.0,
            relative=False, error=crash, **nothing),
        row("vysogorets2024/skewed", entries=["A31"], verdict="undecided", points=open_still),
    ]  # fmt: skip


def _identity(value: float, name: str, rivals: dict[str, float]) -> PointOutcome:
    others = [rival(k, v, 0.0, 1e-10, rejected=v > 2e-10) for k, v in rivals.items()]
    verdict = "agrees" if value <= 1e-10 else "disagrees"
    return point(
        {"net": name, "depth": 3}, 0.0, 1e-10, value, 0.0, verdict=verdict, replicates=0, rivals=others
    )


def exact_rows() -> list[Row]:
    routes = [
        _identity(3.2e-16, "relu", {"no bias gradient": 0.21, "transposed": 4e-9}),
        _identity(0.0, "linear", {"no bias gradient": 0.4, "transposed": 0.0}),
        _identity(8e-13, "tanh", {"no bias gradient": math.inf, "transposed": 2e-3}),
    ]
    wrong = [_identity(0.31, "relu", {}), _identity(math.inf, "tanh", {})]
    tried = []
    for k in range(12):
        value = 0.0 if k % 3 == 0 else 10.0 ** (-16 + 0.5 * k)
        rivals = [rival("without the square root", 0.2 + k, 0.0, 1e-9)] if k < 2 else []
        at = {"classes": 3 + k, "temperature": 0.13 * (k + 1)}
        tried.append(point(at, 0.0, 1e-9, value, 0.0, verdict="agrees", replicates=0, rivals=rivals))
    drawn = []
    for k in range(10):
        size, rivals = 2.0 + k, [rival("kappa1 for kappa2", 2.9, 2.0, 0.04)] if k == 0 else []
        at = {"spike": round(0.7 + 0.31 * k, 2), "sigma": round(0.4 + 0.1 * k, 2)}
        measured = size * (1 + 0.004 * math.sin(1.7 * k))
        drawn.append(point(at, size, 0.02 * size, measured, 0.006 * size, rivals=rivals))
    split = {
        "kind": "identity", "entries": ["C4"], "margin": 1e-10, "relative": False, "replicate": "",
        "margin_reason": "double precision through six layers", "quantity": "the Jacobian",
        "statement": r"\frac{\partial f_k}{\partial W^l_{ij}} = \delta^l_{k,i}\, h^{l-1}_j",
    }  # fmt: skip
    return [
        row("karakida2019/eq-4", points=routes, **CORRECTED, **split),
        row("karakida2019/eq-4", points=wrong, finding="The layer index of the activation reads one too high.",
            **PRINTED, **split),
        row("vysogorets2024/gamma range", kind="exact property", entries=["A3"], statement=r"\frac{", margin=1e-9,
            relative=False, points=tried, quantity=""),
        row("granziol2022/any spike", kind="property", entries=["B20"], margin=0.02, points=drawn),
        row("granziol2022/digits", entries=["B60"], data="scikit-learn digits, 1797 images", margin=0.05,
            points=[point({"batch_size": b}, 3.1, 0.155, 3.14, 0.03) for b in (48, 96)],
            replicate="one batch of the data", model_based=True),
    ]  # fmt: skip
