"""Rows and outcomes made by hand, with the given differences from one that agrees."""

import math
from typing import Any

from verify.results import Look, PointOutcome, RivalOutcome, Row

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
    plain = {
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
        "standing": "as strong as stated",
        "words": "",
        "place": "",
        "slip": False,
        "rerun": f"losscurv report --claim {claim} --seed 20240501 --tier default",
        "seconds": 3.214,
    }
    return Row(**{**plain, **more})
