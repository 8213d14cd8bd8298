"""Granziol, Zohren and Roberts (2022), Theorem 7: outliers in rectangular noise at any ratio and spike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.matrices import reduced
from simulate.monte_carlo import Block, Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.rectangular import drowned_in_wishart, outlier_of
from verify.model import KNOWN, AnyClaim, StatisticalProperty
from verify.model.domains import Between, Domain

__all__ = ["CLAIMS"]


RECTANGULAR_PARAMETERS: Domain = {
    "dim": Between(700, 9000),
    "samples": Between(700, 9000),
    "variance": Between(0.03, 30.0),
    "relative_spike": Between(1.6, 4.0),
}


def _in_units(p: Point, threshold: float) -> Point:
    """The spike in units of the threshold that it is given for variance 1."""
    return p | {"spike": p.relative_spike * threshold * p.variance}


def _above_additive(p: Point) -> Point:
    root = math.sqrt(p.dim / p.samples)
    return _in_units(p, root * (1 + root))


def _above_information(p: Point) -> Point:
    return _in_units(p, math.sqrt(p.dim / p.samples))


def any_additive_wishart(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue with added Wishart noise, the spike in units of its threshold."""
    return drowned_in_wishart(block, _above_additive(point))


def any_information(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue with noise inside the factor, the spike in units of its threshold."""
    p = _above_information(point)
    found = reduced.information_plus_noise_top(block, p.dim, p.samples, spike=p.spike / p.variance)
    return {"eigenvalue": p.variance * found.eigenvalue}


EXAMPLES = (
    Point(dim=900, samples=3800, variance=1.7, relative_spike=1.83),
    Point(dim=5300, samples=740, variance=0.7, relative_spike=2.6),
)

CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="granziol2022/additive-wishart-map",
        entries=("B25",),
        source=f"{PAPER}, theorem 7, eq. (16)",
        statement=r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2} \text{ for } "
        r"\lambda_1 \text{ from 1.6 to 4 times } \sigma^2 \sqrt\beta\,(1 + \sqrt\beta)",
        says="Over ranges of shape and variance, added Wishart noise moves any spike well above the threshold to "
        "the outlier of Theorem 7.",
        domain=RECTANGULAR_PARAMETERS,
        simulate=any_additive_wishart,
        on_host="eigenvalues of tridiagonal matrices, by LAPACK",
        replicate="one Wishart matrix with one direction",
        examples=EXAMPLES,
        score="eigenvalue",
        predict=lambda p: float(outlier_of("additive", _above_additive(p)).eigenvalue),
        margin=0.01,
        margin_reason="finite size is O(1/P + 1/n), below 0.1 % at 700",
        rivals={
            "information plus noise": lambda p: float(
                outlier_of("information", _above_additive(p)).eigenvalue
            ),
            "mean of the noise only": lambda p: _above_additive(p).spike + p.variance,
            "edge of the noise": lambda p: float(outlier_of("additive", _above_additive(p)).edge),
        },
        budget=4096,
        seconds=0.38,
        quantity="largest eigenvalue",
    ),
    StatisticalProperty(
        id="granziol2022/information-map",
        entries=("B24",),
        source=f"Benaych-Georges and Nadakuditi (2012), for the model of eqs. (14), (15) of {PAPER}",
        statement=r"\lambda_1' = \frac{(\lambda_1 + \sigma^2)(\lambda_1 + \beta \sigma^2)}{\lambda_1} \text{ for } "
        r"\lambda_1 \text{ from 1.6 to 4 times } \sigma^2 \sqrt\beta",
        says="Over ranges of shape and variance, noise inside the factor moves any spike well above the threshold "
        "to the information-plus-noise outlier.",
        passage=KNOWN,
        domain=RECTANGULAR_PARAMETERS,
        simulate=any_information,
        on_host="eigenvalues of tridiagonal matrices, by LAPACK",
        replicate="one noise matrix inside the factor of one direction",
        examples=EXAMPLES,
        score="eigenvalue",
        predict=lambda p: float(outlier_of("information", _above_information(p)).eigenvalue),
        margin=0.01,
        margin_reason="finite size is O(1/P + 1/n), below 0.1 % at 700",
        rivals={
            "noise added, not inside": lambda p: float(
                outlier_of("additive", _above_information(p)).eigenvalue
            ),
            "mean of the noise only": lambda p: _above_information(p).spike + p.variance,
            "edge of the noise": lambda p: float(outlier_of("information", _above_information(p)).edge),
        },
        budget=4096,
        seconds=0.81,
        quantity="largest eigenvalue",
    ),
)
