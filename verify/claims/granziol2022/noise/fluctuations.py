"""Granziol, Zohren and Roberts (2022): how far the outlier of one matrix scatters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import finite_size
from verify.judging.estimands import variance
from verify.model import KNOWN, AnyClaim, Claim, Experiment, Kind, Tier

__all__ = ["CLAIMS"]


def fluctuating_outlier(block: Block, point: Point) -> Mapping[str, Any]:
    """Outlier of a spike in noise of signs of edge 2 sigma, in a random direction or along one coordinate."""
    import torch

    noise = point.sigma * ensembles.wigner(block, point.dim, law="rademacher")
    if point.place == "axis":
        v = torch.eye(point.dim, dtype=noise.dtype, device=noise.device)[0].expand(len(block), -1)
    else:
        v = ensembles.unit_vectors(block, point.dim)
    return {"eigenvalue": ensembles.top_eigenvalue(ensembles.spiked(noise, v, point.spike))}


SPREAD, AXIS = (
    Experiment(
        id=f"granziol2022/fluctuation-{place}",
        replicate="one noise matrix of signs with one direction",
        simulate=fluctuating_outlier,
        points=(Point(place=place, spike=spike, sigma=0.31, dim=dim),),
        budget=32768,
        seconds=3.4,
        tier=Tier.FULL,
    )
    for place, spike, dim in (("spread", 0.68, 120), ("axis", 0.51, 90))
)


def _spread_variance(p: Point) -> float:
    return float(finite_size.additive_wigner_sd(p.spike, sigma=p.sigma, dim=p.dim)) ** 2


def _axis_variance(p: Point) -> float:
    """Of signs: variance 1 of the entry on the spike, fourth cumulant -2 of the others."""
    law = {"diagonal": 1.0, "fourth_cumulant": -2.0}
    return float(finite_size.axis_wigner_sd(p.spike, sigma=p.sigma, dim=p.dim, **law)) ** 2


A_VARIANCE = "a variance: 10 % takes some 10^4 matrices; finite size is O(1/P), below 1 % at these sizes"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/fluctuation-axis",
        entries=("B15",),
        source="Capitaine, Donati-Martin and Feral (2009), on the fluctuations of the outlier",
        statement=r"\mathrm{Var}\,\lambda_1' = \frac{\sigma^2}{P} (1 - m)^2 \Big(1 - 2 m + \frac{2 m}{1 - m}\Big),"
        r"\quad m = \sigma^2/\lambda_1^2\quad (\text{noise of signs, } v_1 = e_1)",
        says="In noise of random signs, a spike along one coordinate has an outlier whose variance depends on the "
        "law of the elements, unlike a spread-out one.",
        passage=KNOWN,
        experiment=AXIS,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        score="eigenvalue",
        predict=_axis_variance,
        margin=0.1,
        margin_reason=A_VARIANCE,
        rivals={
            "universal": _spread_variance,
            "Gaussian fourth cumulant": lambda p: (
                _axis_variance(p)
                + 2 * (p.sigma / p.spike) ** 2 * (1 - (p.sigma / p.spike) ** 2) ** 2 * p.sigma**2 / p.dim
            ),
            "no noise on the coordinate": lambda p: (
                _axis_variance(p) - (1 - (p.sigma / p.spike) ** 2) ** 2 * p.sigma**2 / p.dim
            ),
        },
        quantity="variance of the largest eigenvalue",
    ),
)
