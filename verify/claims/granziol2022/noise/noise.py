"""Granziol, Zohren and Roberts (2022): the noise of a batch itself, its spectrum and its edge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import outliers
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing, Tier

__all__ = ["CLAIMS"]

# --- spectra: theorem 3 and appendix B -----------------------------------------------------------------------


def wigner_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """Distribution function of the eigenvalues of noise of variance sigma^2 (1/B - 1/N) in every element."""
    spread = point.sigma * math.sqrt(point.dim * (1 / point.batch_size - 1 / point.dataset_size))
    noise = spread * ensembles.wigner(block, point.dim, law=point.law)
    return {"below": spectra.distribution(noise, point.x)}


def low_rank_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """The same for an average of rank-one samples g g', less its mean."""
    import torch

    noise = point.variance * ensembles.wishart(block, point.dim, point.batch_size)
    centred = noise - point.variance * torch.eye(point.dim, dtype=noise.dtype, device=noise.device)
    return {"below": spectra.distribution(centred, point.x)}


def _grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Points inside (low, high), away from the ends, where nothing fluctuates."""
    return tuple(round(low + (high - low) * (i + 0.5) / count, 4) for i in range(count))


NOISE = {"sigma": 0.08, "dim": 160, "batch_size": 24, "dataset_size": 72}

WIGNER_SPECTRUM = Experiment(
    id="granziol2022/wigner-spectrum",
    replicate="one noise matrix",
    simulate=wigner_spectrum,
    points=tuple(Point(law=law, x=_grid(-0.328, 0.328, 20), **NOISE) for law in ("gaussian", "rademacher")),
    budget=512,
    seconds=0.094,
    tier=Tier.SMOKE,
)

LOW_RANK_SPECTRUM = Experiment(
    id="granziol2022/low-rank-spectrum",
    replicate="one average of rank-one samples",
    simulate=low_rank_spectrum,
    points=(
        Point(dim=120, batch_size=240, variance=1.3, x=_grid(-1.23, 2.47, 13)),
        Point(dim=150, batch_size=60, variance=0.8, x=_grid(-0.61, 4.53, 13)),
    ),
    budget=512,
    seconds=0.068,
)


def _scale(p: Point) -> float:
    """Standard deviation of the semicircle, half its edge: s = sqrt(P/b) sigma."""
    return p.sigma * math.sqrt(p.dim * (1 / p.batch_size - 1 / p.dataset_size))


def _ratio(p: Point) -> float:
    return p.dim / p.batch_size


def _low_rank_law(p: Point, **changed: float) -> MarchenkoPastur:
    return MarchenkoPastur(**{"q": _ratio(p), "variance": p.variance, **changed})


def _eq_52_as_read(p: Point) -> float:
    """Mass of the density of eq. (52), as our copy reads, up to x + sigma^2."""
    q, variance, steps = _ratio(p), p.variance, 4096
    middle, square = variance * (3 * q - 1), (3 * q - 1) ** 2 - (1 - q) ** 2
    if square <= 0:
        return 0.0
    radius = variance * math.sqrt(square)
    angle = math.acos(min(1.0, max(-1.0, (middle - p.x - variance) / radius)))
    theta = (np.arange(steps) + 0.5) * angle / steps
    t = middle - radius * np.cos(theta)
    density = (radius * np.sin(theta)) ** 2 / (2 * q * variance * t)
    return float(density.sum()) * angle / steps


SPECTRUM_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/semicircle",
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to \int_{-2s}^{x} "
        r"\frac{\sqrt{4 s^2 - t^2}}{2 \pi s^2}\, dt,\quad s = \sqrt{P/b}\,\sigma,\ \text{independent elements}",
        says="The spectrum of batch noise with independent elements follows the semicircle, with the width that "
        "element variance, dimension and effective batch size set.",
        experiment=WIGNER_SPECTRUM,
        score="below",
        along="x",
        axis="x",
        predict=lambda p: float(Semicircle(sigma=_scale(p)).cdf(p.x)),
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P), below 0.003 at P = 160",
        rivals={
            "variance for standard deviation": lambda p: float(Semicircle(variance=_scale(p)).cdf(p.x)),
            "B for b": lambda p: float(Semicircle(sigma=p.sigma * math.sqrt(p.dim / p.batch_size)).cdf(p.x)),
            "uniform up to the edge": lambda p: min(1.0, max(0.0, 0.5 + p.x / (4 * _scale(p)))),
        },
        quantity="share of eigenvalues below x",
    ),
    Claim(
        id="granziol2022/low-rank-noise",
        entries=("B13", "B-B4"),
        source=f"{PAPER}, eq. (52), for averages of rank-one samples, less their mean",
        statement=r"\frac1P \#\{i: \lambda_i(\tfrac1B \textstyle\sum g g^\top - \sigma^2 I) \le x\} \to "
        r"F_{\mathrm{MP}}(x + \sigma^2),\ \beta = P/B",
        says="Averages of rank-one samples, less their mean, have a Marchenko-Pastur spectrum at the ratio of "
        "dimension to batch size.",
        passage=Passage(Standing.MISPRINT, "4βσ2y − (y + σ2(1− β))2 2βσ2y", "Eq 52"),
        experiment=LOW_RANK_SPECTRUM,
        score="below",
        along="x",
        axis="x",
        predict=lambda p: float(_low_rank_law(p).cdf(p.x + p.variance)),
        printed=_eq_52_as_read,
        reads=r"\rho(y) = \frac{\sqrt{4 \beta\sigma^2 y - (y + \sigma^2 (1 - \beta))^2}}{2 \beta\sigma^2 y}",
        finding="As our copy reads the density lacks a factor 1/pi and has the sign of sigma^2 (1 - beta) "
        "turned: its mass is not 1, and below beta = 1/2 there is none.",
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P), below 0.004 at these sizes",
        rivals={
            "semicircle, as if elements were independent": lambda p: float(
                Semicircle(variance=_ratio(p) * p.variance**2).cdf(p.x)
            ),
            "not centred": lambda p: float(_low_rank_law(p).cdf(p.x)),
            "ratio upside down": lambda p: float(_low_rank_law(p, q=1 / _ratio(p)).cdf(p.x + p.variance)),
            "standard deviation for variance": lambda p: float(
                _low_rank_law(p, variance=math.sqrt(p.variance)).cdf(p.x + p.variance)
            ),
        },
        quantity="share of eigenvalues below x",
    ),
)

# --- the edge: lemma 5 below its threshold -------------------------------------------------------------------


def noise_edge(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue of Gaussian noise of edge 2, at every size; *centred*: on the scale of P - 1/2."""
    import torch

    edges = [ensembles.goe_top_eigenvalue(block, dim) for dim in point.dims]
    centred = [edge * math.sqrt(dim / (dim - 0.5)) for dim, edge in zip(point.dims, edges, strict=True)]
    return {"edge": torch.stack(edges, dim=1), "centred": torch.stack(centred, dim=1)}


EDGE = Experiment(
    id="granziol2022/edge",
    replicate="one Gaussian matrix at each size",
    simulate=noise_edge,
    on_host="eigenvalues of tridiagonal matrices, by LAPACK",
    points=(Point(dims=tuple(50 * 2**k for k in range(8))),),
    budget=4096,
    seconds=1.7,
)

EDGE_ORDER = Claim(
    id="granziol2022/edge-order",
    entries=("B13",),
    source=f"ours, beside theorem 3 of {PAPER}; the centring by Johnstone and Ma (2012)",
    statement=r"2 - \mathbb{E}\,\sqrt{\tfrac{P}{P - 1/2}}\,\lambda_{\max}(\varepsilon) / s \sim P^{-2/3}",
    says="The largest eigenvalue of Gaussian noise, rescaled as at half a dimension less, approaches the edge like "
    "the dimension to the power minus two thirds.",
    passage=OURS,
    experiment=EDGE,
    kind=Kind.EXPONENT,
    score="centred",
    along="dims",
    terms=(2 / 3,),
    offset=lambda _: Semicircle(sigma=1.0).edges[1],
    predict=lambda _: -2 / 3,
    margin=0.15,
    relative=False,
    margin_reason="less than half the way to the nearest rival exponent, 1/3 away",
    rivals={"1/P": lambda _: -1.0, "P^(-1/3)": lambda _: -1 / 3},
    quantity="distance of the largest eigenvalue from the edge",
)

EDGE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/edge",
        entries=("B13", "B15"),
        source=f"{PAPER}, theorem 3 and lemma 5, eq. (10), without a spike",
        statement=r"\lim_{P \to \infty} \mathbb{E}\,\lambda_{\max}(\varepsilon) / s = 2",
        says="As the dimension grows, the largest eigenvalue of Gaussian noise tends to twice the standard "
        "deviation of its spectrum.",
        experiment=EDGE,
        kind=Kind.LIMIT,
        score="edge",
        along="dims",
        terms=(2 / 3, 1),
        order=EDGE_ORDER,
        predict=lambda _: float(outliers.additive_wigner(0.0, sigma=1.0).edge),
        margin=0.01,
        margin_reason="at most 1 % for random matrices, here of the limit itself: at P = 50 the edge is 5 % low",
        rivals={
            "edge at P = 50": lambda _: 2 - 1.2065 * 50 ** (-2 / 3),
            "square root of 2": lambda _: math.sqrt(2),
            "variance for standard deviation": lambda _: 4.0,
        },
        quantity="largest eigenvalue of the noise over s",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*SPECTRUM_CLAIMS, *EDGE_CLAIMS)
