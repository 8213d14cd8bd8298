"""Granziol, Zohren and Roberts (2022), appendix B: transforms of Wishart noise, by quadrature and on matrices."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import outliers
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.law_quadrature import (
    PARTS,
    QUADRATURE,
    law_at,
    root_above,
    transform,
)
from verify.model import AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS"]


def wishart_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of 1 / (z - eigenvalue) for Wishart noise, along a line of complex z."""
    import torch

    values = torch.linalg.eigvalsh(point.variance * ensembles.wishart(block, point.dim, point.samples))
    z = torch.tensor(point.x, dtype=torch.complex128, device=values.device) + 1j * point.height
    found = (1 / (z - values[:, :, None])).mean(dim=1)
    return {"real": found.real, "imaginary": found.imag}


WISHART = Experiment(
    id="granziol2022/wishart-transform",
    replicate="one Wishart matrix",
    simulate=wishart_transform,
    points=(
        Point(dim=140, samples=240, variance=1.7, x=(-0.7, 3.4, 8.1), height=0.7),
        Point(dim=180, samples=120, variance=0.8, x=(-0.3, 1.9, 5.2), height=0.6),
    ),
    budget=512,
    seconds=0.12,
)


def _eq_51(z: complex, *, ratio: float, variance: float, sign: int) -> complex:
    """Transform with z + sign sigma^2 (1 - beta), on the branch that decays."""
    shifted = z + sign * variance * (1 - ratio)
    root = cmath.sqrt(shifted**2 - 4 * ratio * variance * z)
    return (shifted - (root if (root * shifted.conjugate()).real > 0 else -root)) / (2 * ratio * variance * z)


def _wishart_point(p: Point) -> complex:
    return p.x + 1j * p.height


def _corrected_51(p: Point) -> complex:
    return complex(MarchenkoPastur(q=p.dim / p.samples, variance=p.variance).stieltjes(_wishart_point(p)))


def _read_51(p: Point) -> complex:
    return _eq_51(_wishart_point(p), ratio=p.dim / p.samples, variance=p.variance, sign=1)


def _upside_down_51(p: Point) -> complex:
    return complex(MarchenkoPastur(q=p.samples / p.dim, variance=p.variance).stieltjes(_wishart_point(p)))


def _semicircle_51(p: Point) -> complex:
    width = math.sqrt(p.dim / p.samples) * p.variance
    return complex(Semicircle(sigma=width).stieltjes(_wishart_point(p) - p.variance))


def t_transform(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where T(z) = z S(z) - 1 of Wishart noise is 1/theta, and what other readings of eq. (53) give."""
    law, thetas = law_at(point), np.array(point.thetas)
    inverse = [root_above(law, lambda z, at=at: z * transform(law, z) - 1 - 1 / at) for at in point.thetas]
    spikes = thetas * point.variance
    multiplicative = outliers.information_plus_noise(spikes, q=point.ratio, variance=point.variance)
    additive = outliers.additive_wishart(spikes, q=point.ratio, variance=point.variance)
    return {
        "inverse of T": inverse,
        "multiplicative map": multiplicative.eigenvalue,
        "T itself": law.stieltjes(1 / thetas + 1e-9j) / thetas - 1,
        "additive map": additive.eigenvalue,
        "T itself, with the sign of eq. (51)": [
            (1 / at) * _eq_51(1 / at, ratio=point.ratio, variance=point.variance, sign=1) - 1
            for at in point.thetas
        ],
    }


CUT = 1e-12
"""Height above the cut, in units of x."""


CLAIMS: tuple[AnyClaim, ...] = (
    *(
        Claim(
            id=f"granziol2022/wishart-transform-{name}",
            entries=("B-B3",),
            source=f"{PAPER}, eq. (51)",
            statement=rf"\mathrm{{{operator}}}\ S(z),\quad S(z) = \frac{{z - \sigma^2(1 - \beta) - "
            r"\sqrt{(z - \sigma^2(1 - \beta))^2 - 4\beta\sigma^2 z}}{2\beta\sigma^2 z}",
            says=f"For large dimension the {name} part of a Wishart matrix's Stieltjes transform is that of the "
            "Marchenko-Pastur law at its ratio of dimension to samples.",
            passage=Passage(Standing.MISPRINT, "−(z + σ2(1− β)) +", "Eq 51"),
            experiment=WISHART,
            score=name,
            along="x",
            axis="x",
            predict=lambda p, part=part: part(_corrected_51(p)),
            printed=lambda p, part=part: part(_read_51(p)),
            reads=r"S_{W_P} = \frac{-(z + \sigma^2 (1 - \beta)) + "
            r"\sqrt{(z + \sigma^2 (1 - \beta))^2 - 4 \beta\sigma^2 z}}{2 \beta\sigma^2 z}",
            finding="As our copy reads z + sigma^2 (1 - beta), where Eq 50 gives minus; the two agree at "
            "beta = 1 only.",
            margin=0.004,
            relative=False,
            margin_reason="1 % of the largest modulus on this line; finite size is O(1/P)",
            rivals={
                "ratio upside down": lambda p, part=part: part(_upside_down_51(p)),
                "semicircle of the same variance": lambda p, part=part: part(_semicircle_51(p)),
                "no noise": lambda p, part=part: part(1 / (_wishart_point(p) - p.variance)),
            },
            quantity=f"{name} part of the Stieltjes transform",
        )
        for name, operator, part in PARTS
    ),
    Identity(
        id="granziol2022/t-transform",
        entries=("B-B5",),
        source=f"{PAPER}, eq. (53)",
        statement=r"T(z) = z S(z) - 1:\quad T^{-1}(1/\theta) = \sigma^2 (1 + \theta)(1 + \beta/\theta)",
        says="The inverse of the T transform of Wishart noise gives the outlier of the multiplicative model, not "
        "of the additive one.",
        passage=Passage(Standing.MISPRINT, "λ′i = T ( 1 λi )", "Appendix B, before Eq 53"),
        routes=t_transform,
        points=(
            Point(variance=1.3, ratio=0.4, thetas=(0.9, 2.1, 4.7)),
            Point(variance=0.7, ratio=2.6, thetas=(2.3, 6.1)),
        ),
        printed="T itself",
        reads=r"\lambda'_i = T\Big(\frac{1}{\lambda_i}\Big)",
        finding="As our copy reads the outlier is T at 1/theta, which is complex where 1/theta lies in "
        "the bulk; it is the inverse of T there. That is the multiplicative map, not the additive one of "
        "Theorem 7.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        seconds=0.016,
        quantity="outlier in the multiplicative model",
    ),
)
