"""Granziol, Zohren and Roberts (2022): moments of the limiting laws, and the law and scatter of the noise's edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import finite_size
from theory.rmt import CompoundFreePoisson, MarchenkoPastur, Semicircle, TracyWidom
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.outliers import TRIDIAGONAL
from verify.judging.estimands import variance
from verify.model import KNOWN, Arrays, Claim, Experiment, Kind, Tier

ORDERS = 1, 2, 3, 4


def law_moments(block: Block, point: Point) -> Arrays:
    """Mean powers of the eigenvalues of Gaussian noise or of a Wishart matrix, and their variance."""
    import torch

    if point.law == "semicircle":
        matrices = point.sigma * ensembles.wigner(block, point.dim)
    else:
        matrices = point.variance * ensembles.wishart(block, point.dim, point.samples)
    square = matrices @ matrices
    products = ((matrices, matrices), (matrices, square), (square, square))
    traces = [matrices.diagonal(dim1=1, dim2=2).sum(1), *((a * b).sum((1, 2)) for a, b in products)]
    powers = torch.stack(traces, dim=1) / point.dim
    return {"moment": powers[:, [k - 1 for k in point.order]], "spread": powers[:, 1] - powers[:, 0] ** 2}


MOMENTS = Experiment(
    id="granziol2022/law-moments",
    replicate="one noise matrix",
    simulate=law_moments,
    points=(
        Point(law="semicircle", sigma=1.3, dim=410, order=(2, 4)),
        Point(law="marchenko-pastur", variance=0.7, dim=310, samples=730, order=ORDERS),
        Point(law="free-poisson", variance=1.3, dim=370, samples=230, order=ORDERS),
    ),
    budget=256,
    seconds=0.44,
)


def _law(p: Point) -> Semicircle | MarchenkoPastur | CompoundFreePoisson:
    """Wishart noise is compound free Poisson too, with jumps of one size."""
    if p.law == "semicircle":
        return Semicircle(sigma=p.sigma)
    if p.law == "marchenko-pastur":
        return MarchenkoPastur(q=p.dim / p.samples, variance=p.variance)
    return CompoundFreePoisson(rate=p.samples / p.dim, jumps=p.variance * p.dim / p.samples)


NOT_ON_RECORD = "the margin: whether matrices had been drawn before it was set is not on record"

MOMENT_CLAIMS = (
    Claim(
        id="granziol2022/law-moments",
        entries=("B13", "B-B4"),
        source=f"{PAPER}, theorem 3 and eq. (52)",
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^k \to \int x^k\, dF(x)",
        says="For large dimension the moments of Gaussian and Wishart spectra equal the moments of the "
        "semicircle and the Marchenko-Pastur law.",
        experiment=MOMENTS,
        score="moment",
        along="order",
        predict=lambda p: _law(p).moment(p.order),
        margin=0.02,
        margin_reason="finite size is O(1/P), 1.2 % of the fourth moment at these sizes",
        pilot=NOT_ON_RECORD,
        rivals={
            "noise 2 % too large": lambda p: _law(p).moment(p.order) * 1.02**p.order,
            "moment of one order more": lambda p: _law(p).moment(p.order + 1),
        },
        quantity="moment of the spectrum",
    ),
    Claim(
        id="granziol2022/law-variance",
        entries=("B13", "B-B4"),
        source=f"{PAPER}, theorem 3 and eq. (52)",
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^2 - \Big(\frac1P \mathrm{tr}\,\varepsilon\Big)^2 \to "
        r"\sigma^2,\ \beta \sigma^4",
        says="For large dimension the variances of Gaussian and Wishart spectra equal the variances of the "
        "semicircle and the Marchenko-Pastur law.",
        experiment=MOMENTS,
        score="spread",
        predict=lambda p: _law(p).var(),
        margin=0.01,
        margin_reason="finite size is O(1/P), 0.4 % at these sizes",
        rivals={
            "noise 2 % too large": lambda p: 1.02**2 * _law(p).var(),
            "standard deviation": lambda p: _law(p).var() ** 0.5,
        },
        quantity="variance of the spectrum",
    ),
)


def gaussian_edge(block: Block, point: Point) -> Arrays:
    """Largest eigenvalue of Gaussian noise of edge 2, centred and scaled as at P - 1/2."""
    shifted = point.dim - 0.5
    edge = ensembles.goe_top_eigenvalue(block, point.dim) * math.sqrt(point.dim)
    return {"edge": (edge - 2 * math.sqrt(shifted)) * shifted ** (1 / 6)}


LAW_OF_THE_EDGE = Experiment(
    id="granziol2022/law-of-the-edge",
    replicate="one Gaussian matrix",
    simulate=gaussian_edge,
    on_host=TRIDIAGONAL,
    points=(Point(dim=1700),),
    budget=16384,
    seconds=1.1,
)


def scatter_of_sizes(block: Block, point: Point) -> Arrays:
    """Variance of the top eigenvalue over several Gaussian matrices, at a small and at a large size."""
    import torch

    small, large = (
        torch.stack(
            [ensembles.goe_top_eigenvalue(block, dim, spike=point.spike) for _ in range(point.matrices)]
        ).var(dim=0)
        for dim in point.dims
    )
    return {"small": small, "large": large}


OUTLIER_SCATTER, EDGE_SCATTER = (
    Experiment(
        id=f"granziol2022/{name}-scatter",
        replicate="eight Gaussian matrices of each of two sizes",
        simulate=scatter_of_sizes,
        on_host=TRIDIAGONAL,
        points=(Point(dims=(100, 1600), spike=spike, matrices=8),),
        budget=16384,
        seconds=1.7,
        special="a spike of 0 leaves the edge" if spike == 0 else "",
    )
    for name, spike in (("outlier", 2.3), ("edge", 0.0))
)


def _outlier_variance(p: Point) -> Any:
    return finite_size.additive_wigner_sd(p.spike, sigma=1.0, dim=p.dims[0]) ** 2


def _edge_variance(p: Point) -> Any:
    return finite_size.wigner_edge(p.dims[0], sigma=1.0).sd ** 2


def fluctuating_outlier(block: Block, point: Point) -> Arrays:
    """Outlier of a spike along one coordinate, in noise of signs of edge 2 sigma."""
    import torch

    noise = point.sigma * ensembles.wigner(block, point.dim, law="rademacher")
    v = torch.eye(point.dim, dtype=noise.dtype, device=noise.device)[0].expand(len(block), -1)
    return {"eigenvalue": ensembles.top_eigenvalue(ensembles.spiked(noise, v, point.spike))}


AXIS = Experiment(
    id="granziol2022/fluctuation-axis",
    replicate="one noise matrix of signs with one direction",
    simulate=fluctuating_outlier,
    points=(Point(place="axis", spike=0.51, sigma=0.31, dim=90),),
    budget=32768,
    seconds=3.4,
    tier=Tier.FULL,
)


def _axis_variance(p: Point) -> Any:
    """Outlier variance for noise of signs: variance 1 of the entry on the spike, fourth cumulant -2 of the others."""
    law = {"diagonal": 1.0, "fourth_cumulant": -2.0}
    return finite_size.axis_wigner_sd(p.spike, sigma=p.sigma, dim=p.dim, **law) ** 2


A_VARIANCE = "a variance at P = 100, where finite size is some 2 %"

EDGE_CLAIMS = (
    Claim(
        id="granziol2022/law-of-the-edge",
        entries=("B13",),
        source=f"Tracy and Widom (1996), beside theorem 3 of {PAPER}; the centring by Johnstone and Ma (2012)",
        statement=r"\frac{\lambda_{\max}(\varepsilon) \sqrt P/\sigma - 2 \sqrt{P - 1/2}}{(P - 1/2)^{-1/6}} \sim F_1",
        says="Centred and scaled, the largest eigenvalue of Gaussian noise follows the Tracy-Widom law of real "
        "matrices.",
        passage=KNOWN,
        experiment=LAW_OF_THE_EDGE,
        kind=Kind.DISTRIBUTION,
        score="edge",
        predict=lambda _: TracyWidom(beta=1).cdf,
        margin=0.05,
        relative=False,
        margin_reason="a distance of distribution functions; 12 288 matrices resolve 0.028",
        rivals={
            "complex matrices": lambda _: TracyWidom(beta=2).cdf,
            "variance twice": lambda _: lambda t: TracyWidom(beta=1).cdf(np.asarray(t) / math.sqrt(2)),
        },
        quantity="largest eigenvalue, centred and scaled",
    ),
    Claim(
        id="granziol2022/outlier-variance",
        entries=("B39",),
        source=f"Capitaine, Donati-Martin and Feral (2012), beside section 8.2.1 of {PAPER}",
        statement=r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^2}{P} \Big(1 - \frac{\sigma^2}{\lambda_1^2}\Big)",
        says="The variance of an outlier in Gaussian noise is two noise variances over the dimension, and less near "
        "the threshold.",
        passage=KNOWN,
        experiment=OUTLIER_SCATTER,
        score="small",
        predict=_outlier_variance,
        margin=0.1,
        margin_reason=A_VARIANCE,
        pilot=NOT_ON_RECORD,
        rivals={
            "first order only": lambda p: 2 / p.dims[0],
            "of the edge": _edge_variance,
            "without the 2": lambda p: _outlier_variance(p) / 2,
        },
        quantity="variance of the outlier at P = 100",
    ),
    Claim(
        id="granziol2022/edge-variance",
        entries=("B39",),
        source=f"Tracy and Widom (1996), beside section 8.2.1 of {PAPER}",
        statement=r"\mathrm{Var}\,\lambda_{\max}(\varepsilon) = 1.6078\, \sigma^2 P^{-1} (P - \tfrac12)^{-1/3}",
        says="The variance of the largest eigenvalue of Gaussian noise is that of the Tracy-Widom law, scaled by the "
        "dimension.",
        passage=KNOWN,
        experiment=EDGE_SCATTER,
        score="small",
        predict=_edge_variance,
        margin=0.1,
        margin_reason=A_VARIANCE,
        pilot=NOT_ON_RECORD,
        rivals={
            "complex matrices": lambda p: 0.8132 * p.dims[0] ** (-4 / 3),
            "a quarter more": lambda p: 1.25 * _edge_variance(p),
        },
        quantity="variance of the edge at P = 100",
    ),
    Claim(
        id="granziol2022/fluctuation-axis",
        entries=("B15",),
        source="Capitaine, Donati-Martin and Feral (2009), on the fluctuations of the outlier",
        statement=r"\mathrm{Var}\,\lambda_1' = \frac{\sigma^2}{P} (1 - m)^2 \Big(1 - 2 m + \frac{2 m}{1 - m}\Big),"
        r"\quad m = \sigma^2/\lambda_1^2\quad (\text{noise of signs, } v_1 = e_1)",
        says="In noise of signs, the variance of the outlier of a spike along one coordinate depends on the law of "
        "the elements.",
        passage=KNOWN,
        experiment=AXIS,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        score="eigenvalue",
        predict=_axis_variance,
        margin=0.1,
        margin_reason="a variance: 10 % takes some 10^4 matrices; finite size is O(1/P), below 1 % at these sizes",
        rivals={
            "universal": lambda p: finite_size.additive_wigner_sd(p.spike, sigma=p.sigma, dim=p.dim) ** 2,
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

CLAIMS = (*MOMENT_CLAIMS, *EDGE_CLAIMS)
