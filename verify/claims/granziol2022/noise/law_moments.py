"""Granziol, Zohren and Roberts (2022): moments of the limiting laws, and the scatter of an outlier."""

from __future__ import annotations

from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import finite_size
from theory.rmt import CompoundFreePoisson, MarchenkoPastur, Semicircle
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.outliers import TRIDIAGONAL
from verify.model import KNOWN, Arrays, Claim, Experiment

ORDERS = 1, 2, 3, 4


def law_moments(block: Block, point: Point) -> Arrays:
    """Mean powers of the eigenvalues of Gaussian noise or of a Wishart matrix."""
    import torch

    if point.law == "semicircle":
        matrices = point.sigma * ensembles.wigner(block, point.dim)
    else:
        matrices = point.variance * ensembles.wishart(block, point.dim, point.samples)
    square = matrices @ matrices
    products = ((matrices, matrices), (matrices, square), (square, square))
    traces = [matrices.diagonal(dim1=1, dim2=2).sum(1), *((a * b).sum((1, 2)) for a, b in products)]
    return {"moment": torch.stack([traces[k - 1] for k in point.order], dim=1) / point.dim}


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

MOMENT_CLAIM = Claim(
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
)


def scatter_of_outliers(block: Block, point: Point) -> Arrays:
    """Variance of the top eigenvalue over several Gaussian matrices of the first size."""
    import torch

    tops = [
        ensembles.goe_top_eigenvalue(block, point.dims[0], spike=point.spike) for _ in range(point.matrices)
    ]
    return {"small": torch.stack(tops).var(dim=0)}


# the second of `dims` is not drawn any more; points keep their names, which their draws have
OUTLIER_SCATTER = Experiment(
    id="granziol2022/outlier-scatter",
    replicate="eight Gaussian matrices",
    simulate=scatter_of_outliers,
    on_host=TRIDIAGONAL,
    points=(Point(dims=(100, 1600), spike=2.3, matrices=8),),
    budget=16384,
    seconds=0.6,
)


def _variance(p: Point) -> Any:
    return finite_size.additive_wigner_sd(p.spike, sigma=1.0, dim=p.dims[0]) ** 2


VARIANCE_CLAIM = Claim(
    id="granziol2022/outlier-variance",
    entries=("B39",),
    source=f"Capitaine, Donati-Martin and Feral (2012), beside section 8.2.1 of {PAPER}",
    statement=r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^2}{P} \Big(1 - \frac{\sigma^2}{\lambda_1^2}\Big)",
    says="The variance of an outlier in Gaussian noise is two noise variances over the dimension, and less near "
    "the threshold.",
    passage=KNOWN,
    experiment=OUTLIER_SCATTER,
    score="small",
    predict=_variance,
    margin=0.1,
    margin_reason="a variance at P = 100, where finite size is some 2 %",
    pilot=NOT_ON_RECORD,
    rivals={
        "first order only": lambda p: 2 / p.dims[0],
        "of the edge": lambda p: finite_size.wigner_edge(p.dims[0], sigma=1.0).sd ** 2,
        "without the 2": lambda p: _variance(p) / 2,
    },
    quantity="variance of the outlier at P = 100",
)

CLAIMS = (MOMENT_CLAIM, VARIANCE_CLAIM)
