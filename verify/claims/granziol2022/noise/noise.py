"""Granziol, Zohren and Roberts (2022): spectrum and moments of the noise of a batch, of elements of any kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulate import spectra
from simulate.matrices import ensembles, noise, populations
from simulate.monte_carlo import Block, Point
from theory import rmt
from theory.batch_hessian import element_fluctuation
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.outliers import scale
from verify.judging.families import one
from verify.model import (
    OURS,
    Arrays,
    Claim,
    Experiment,
    StatisticalProperty,
    Tier,
    misprint,
    out_of_scope,
)
from verify.model.domains import Between, OneOf

# --- spectra: theorem 3 and appendix B -----------------------------------------------------------------------


def wigner_spectrum(block: Block, point: Point) -> Arrays:
    """Distribution function of the eigenvalues of noise of variance sigma^2 (1/B - 1/N) in every element."""
    noise = scale(point) * ensembles.wigner(block, point.dim, law=point.law)
    return {"below": spectra.distribution(noise, point.x)}


def low_rank_spectrum(block: Block, point: Point) -> Arrays:
    """Distribution function of the eigenvalues of an average of rank-one samples g g', less its mean."""
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


BELOW = {
    "score": "below",
    "along": "x",
    "axis": "x",
    "margin": 0.01,
    "relative": False,
    "quantity": "share of eigenvalues below x",
}


def _uniform(x: float, s: float) -> float:
    """Distribution function that is uniform between the edges -2 s and 2 s."""
    return min(1.0, max(0.0, 0.5 + x / (4 * s)))


SPECTRUM_CLAIMS = (
    Claim(
        id="granziol2022/semicircle",
        **BELOW,
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to \int_{-2s}^{x} "
        r"\frac{\sqrt{4 s^2 - t^2}}{2 \pi s^2}\, dt,\quad s = \sqrt{P/b}\,\sigma,\ \text{independent elements}",
        says="The spectrum of batch noise with independent elements follows the semicircle, its width set by element "
        "variance, dimension and effective batch size.",
        experiment=WIGNER_SPECTRUM,
        predict=lambda p: Semicircle(sigma=scale(p)).cdf(p.x),
        margin_reason="finite size is O(1/P), below 0.003 at P = 160",
        rivals={
            "variance for standard deviation": lambda p: Semicircle(variance=scale(p)).cdf(p.x),
            "B for b": lambda p: Semicircle(sigma=p.sigma * math.sqrt(p.dim / p.batch_size)).cdf(p.x),
            "uniform up to the edge": lambda p: _uniform(p.x, scale(p)),
        },
    ),
    Claim(
        id="granziol2022/low-rank-noise",
        **BELOW,
        entries=("B13", "B-B4"),
        source=f"{PAPER}, eq. (52), for averages of rank-one samples, less their mean",
        statement=r"\frac1P \#\{i: \lambda_i(\tfrac1B \textstyle\sum g g^\top - \sigma^2 I) \le x\} \to "
        r"F_{\mathrm{MP}}(x + \sigma^2),\ \beta = P/B",
        says="Averages of rank-one samples, less their mean, have a Marchenko-Pastur spectrum of ratio dimension to "
        "batch size.",
        passage=misprint("4βσ2y − (y + σ2(1− β))2 2βσ2y", "Eq 52"),
        experiment=LOW_RANK_SPECTRUM,
        predict=lambda p: _low_rank_law(p).cdf(p.x + p.variance),
        printed=_eq_52_as_read,
        reads=r"\rho(y) = \frac{\sqrt{4 \beta\sigma^2 y - (y + \sigma^2 (1 - \beta))^2}}{2 \beta\sigma^2 y}",
        finding="As our copy reads the density lacks 1/pi and has the sign of sigma^2 (1 - beta) turned: its mass is "
        "not 1, and below beta = 1/2 there is none.",
        margin_reason="finite size is O(1/P), below 0.004 at these sizes",
        rivals={
            "semicircle, as if elements were independent": lambda p: Semicircle(
                variance=_ratio(p) * p.variance**2
            ).cdf(p.x),
            "not centred": lambda p: _low_rank_law(p).cdf(p.x),
            "ratio upside down": lambda p: _low_rank_law(p, q=1 / _ratio(p)).cdf(p.x + p.variance),
            "standard deviation for variance": lambda p: _low_rank_law(p, variance=math.sqrt(p.variance)).cdf(
                p.x + p.variance
            ),
        },
    ),
)

# --- whole spectra: theorem 3 --------------------------------------------------------------------------------


def universal_spectrum(block: Block, point: Point) -> Arrays:
    """Distribution function of the eigenvalues of noise of edge 2 s, s^2 = P sigma^2 / b, from entries of any law."""
    draw = {
        "student": lambda: noise.student(block, point.dim, degrees=5),
        "sparse": lambda: noise.sparse(block, point.dim, per_row=70),
        "bands": lambda: noise.profiled(block, noise.banded_profile(point.dim, contrast=0.9)),
    }[point.law]
    return {"below": spectra.distribution(point.sigma * math.sqrt(point.dim / point.batch) * draw(), point.x)}


UNIVERSAL = Experiment(
    id="granziol2022/universal-spectrum",
    replicate="one noise matrix",
    simulate=universal_spectrum,
    points=tuple(
        Point(
            law=law, x=(-0.61, -0.43, -0.24, -0.09, 0.17, 0.38, 0.55, 0.66), sigma=0.083, batch=batch, dim=dim
        )
        for law, dim, batch in (("student", 250, 13), ("sparse", 380, 21), ("bands", 240, 14))
    ),
    budget=256,
    seconds=0.69,
)


def _semicircle(p: Point, s: float = 0.0) -> Any:
    """Theorem 3 with s = sqrt(P/b) sigma."""
    return Semicircle(sigma=s or p.sigma * math.sqrt(p.dim / p.batch)).cdf(p.x)


OTHER_SPECTRA = (
    Claim(
        id="granziol2022/universal-semicircle",
        **BELOW,
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to F_{\mathrm{sc}}(x),\ s = \sqrt{P/b}\,\sigma\quad "
        r"(t_5,\ \text{70 entries a row},\ \text{variances 19 to 1 with equal row sums})",
        says="Over the root of the dimension, noise with heavy-tailed, sparse or unequal elements has a semicircle "
        "spectrum if row variances are equal.",
        passage=misprint(
            "the limiting spectral density p(λ) of ε(w) ∈ RP×P satisfies the semicircle law",
            "Theorem 3",
        ),
        experiment=UNIVERSAL,
        predict=_semicircle,
        printed=lambda p: _semicircle(p, p.sigma / math.sqrt(p.batch)),
        reads=r"p(\lambda) \text{ of } \epsilon(w):\quad p(\lambda) = \frac{\sqrt{4 \sigma_\epsilon^2 - "
        r"\lambda^2}}{2 \pi \sigma_\epsilon^2}",
        finding="As our copy reads the spectrum of eps converges; for elements of order one it is that of eps / "
        "sqrt(P), as in Lemma 5 and Lindeberg's ratio.",
        margin_reason="finite size is O(1/P) with the fourth cumulant of an entry, 0.002 at these sizes",
        rivals={
            "sigma for s": lambda p: _semicircle(p, p.sigma),
            "variance for standard deviation": lambda p: _semicircle(p, p.sigma**2 * p.dim / p.batch),
            "uniform up to the edge": lambda p: _uniform(p.x, p.sigma * math.sqrt(p.dim / p.batch)),
        },
    ),
)

# --- moments, exact at every size ----------------------------------------------------------------------------


def uneven_rows(block: Block, point: Point) -> Arrays:
    """Fourth moment of the spectrum with variances v_i v_j sigma^2 / P, v = 1 +- contrast.

    What the second moment deviates from its expectation is left out, times the 4 of a semicircle: a term of mean 0
    if that is its expectation.
    """
    profile = noise.blocked_profile(point.dim, contrast=point.contrast)
    return {"fourth": _fourth_moments(point.sigma * noise.profiled(block, profile), point.sigma**2)}


def _fourth_moments(matrices: Any, second: float) -> Any:
    dim = matrices.shape[1]
    squares = matrices.square().sum(dim=(1, 2)) / dim
    fourth = (matrices @ matrices).square().sum(dim=(1, 2)) / dim
    return fourth - 4 * second * (squares - second)


UNEVEN_ROWS = Experiment(
    id="granziol2022/uneven-rows",
    replicate="one noise matrix",
    simulate=uneven_rows,
    points=(Point(contrast=0.63, sigma=1.3, dim=14), Point(contrast=0.41, sigma=0.7, dim=160)),
    budget=1 << 17,
    seconds=0.51,
)


UNEVEN_CLAIM = Claim(
    id="granziol2022/uneven-rows",
    entries=("B13",),
    source=f"ours, beside condition (ii) of theorem 3 of {PAPER}",
    statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^4 = \Big[2 (1 + c^2) + \frac{(1 + c^2)^2}{P}\Big] "
    r"\sigma^4\quad "
    r"(\text{variances } v_i v_j \sigma^2 / P,\ v = 1 \pm c)",
    says="Where rows of the noise have unequal variances, the fourth moment of its spectrum exceeds the "
    "semicircle's as their contrast predicts.",
    passage=out_of_scope(
        "there cannot be too much variation in the variances per element",
        "Section 4.2, on condition (ii)",
    ),
    finding="Outside condition (ii), with uneven row sums of the variances, the fourth moment exceeds a "
    "semicircle's.",
    experiment=UNEVEN_ROWS,
    score="fourth",
    margin=0.01,
    margin_reason="exact at every size; at most 1 % for random matrices",
    quantity="fourth moment of the spectrum",
    predict=lambda p: rmt.profiled_fourth_moment(sigma=p.sigma, contrast=p.contrast, dim=p.dim),
    rivals={
        "semicircle": lambda p: 2 * p.sigma**4,
        "limit of size": lambda p: 2 * p.sigma**4 * (1 + p.contrast**2),
        "semicircle of the mean squared variance": lambda p: 2 * p.sigma**4 * (1 + p.contrast**2) ** 2,
        "any variance profile": lambda p: 2 * p.sigma**4 * (1 + 1 / p.dim),
    },
)

ENTRIES = 4096
"""Entries of all matrices of a replicate together: small matrices scatter most and cost least."""

COUNTS = {"batches": 48, "without the matrix": 64}
"""Numbers of matrices for cases that are small at any size."""


def _second(block: Block, matrices: Any, **known: float) -> Any:
    """Mean square of the eigenvalues with a spike added, over that of theory."""
    dim, spike = matrices.shape[1], 1.7
    directions = ensembles.unit_vectors(block, dim)
    found = ensembles.spiked(matrices, directions, spike).square().sum((1, 2)) / dim
    return found / float(rmt.wigner_second_moment(sigma=1.0, dim=dim, spike=spike, **known))


def _few_entries(block: Block, p: Point) -> Any:
    """Fourth moment with a few entries in a row, signs of one size at random places, over that of theory."""
    per_row = 1 + p.contrast * (p.dim - 1)
    found = _fourth_moments(p.sigma * noise.sparse(block, p.dim, per_row=per_row), p.sigma**2)
    return found / rmt.sparse_fourth_moment(sigma=p.sigma, per_row=per_row, dim=p.dim)


def _few_projections(block: Block, p: Point) -> Any:
    """Fourth moment of a mean of B samples, each of a few projections +-P tau^2 u u', over that of theory."""
    drawn = noise.signed_projections(block, p.dim, samples=p.batch_size, rank=p.rank)
    second = p.dim * p.rank * p.variance**2 / p.batch_size  # P sigma^2 / B, sigma^2 = r tau^4
    found = _fourth_moments(p.dim * p.variance * drawn, second)
    law = {"rank": p.rank, "variance": p.variance, "dim": p.dim, "batch_size": p.batch_size}
    return found / rmt.low_rank_fourth_moment(**law)


def _moments_without_matrix(block: Block, p: Point) -> Any:
    trace, square = ensembles.goe_moments(block, p.dim, spike=p.spike, rank=p.rank)
    known = rmt.wigner_second_moment(sigma=1.0, dim=p.dim, diagonal=2.0, spike=p.spike * p.rank**0.5)
    return (square / p.dim / float(known) + trace / (p.spike * p.rank)) / 2


def _batches(block: Block, p: Point) -> Any:
    """Squared distance of the means of all batches from that of the population, over the variance of the elements."""
    size, dim = p.samples + 1, p.rank + 1
    drawn = [populations.symmetric_matrices(rng, size, dim) for rng in block.streams]
    means = np.stack([populations.batch_sums(each, p.batch) / p.batch for each in drawn])
    apart = means - np.stack([each.mean(0) for each in drawn])[:, None]
    known = element_fluctuation(variance=dim * (dim + 1) / 2, batch_size=p.batch, dataset_size=size)
    return np.square(apart).sum((2, 3)).mean(1) / float(known)


def _nested(block: Block, p: Point) -> Any:
    """Squared distance of nested means, whose sizes have no bound, over its expectation."""
    sizes = (p.batch, p.batch + p.samples)
    few, all_of_them = populations.nested_means(block, p.dim, sizes).unbind(1)
    known = element_fluctuation(variance=p.dim * (p.dim + 1), batch_size=sizes[0], dataset_size=sizes[1])
    return (few - all_of_them).square().sum((1, 2)) / float(known)


CASES = {
    "gaussian": lambda b, p: _second(b, ensembles.wigner(b, p.dim), diagonal=2.0),
    "signs": lambda b, p: _second(b, ensembles.wigner(b, p.dim, law="rademacher")),
    "student": lambda b, p: _second(b, noise.student(b, p.dim, degrees=8 + p.samples)),
    "bands": lambda b, p: _second(b, noise.profiled(b, noise.banded_profile(p.dim, contrast=p.contrast))),
    "blocks": lambda b, p: uneven_rows(b, p)["fourth"] / UNEVEN_CLAIM.predict(p),
    "sparse": _few_entries,
    "projections": _few_projections,
    "without the matrix": _moments_without_matrix,
    "batches": _batches,
    "nested": _nested,
}


def any_moment(block: Block, point: Point) -> Arrays:
    """A moment over what theory says of it, averaged over as many matrices as make it scatter little."""
    count = COUNTS.get(point.case) or max(1, ENTRIES // point.dim**2)
    p = point | {"dim": 2 * (point.dim // 2), "batch": min(point.batch_size, point.samples)}
    found = CASES[point.case](block.repeated(count), p)
    return {"ratio": found.reshape(len(block), count).mean(1)}


def _example(case: str) -> Point:
    sizes = {"dim": 12 if case == "batches" else 13, "samples": 5, "batch_size": 3, "rank": 4}
    return Point(case=case, sigma=1.3, variance=0.7, contrast=0.63, spike=2.3, **sizes)


CLAIMS = (
    *SPECTRUM_CLAIMS,
    *OTHER_SPECTRA,
    UNEVEN_CLAIM,
    StatisticalProperty(
        id="granziol2022/any-noise",
        entries=("B6", "B13"),
        source=f"ours, beside eqs. (4), (5) and theorem 3 of {PAPER}",
        passage=OURS,
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^k,\ k = 2, 4,\quad "
        r"\mathbb{E}\,\lVert H_B - H\rVert_F^2 \propto \tfrac1B - \tfrac1N",
        says="At any size and shape, noise of every kind has the moment of theory, and means over batches the spread "
        "of the effective batch size.",
        domain={
            "case": OneOf(*CASES),
            "dim": Between(4, 40),
            "samples": Between(2, 6),
            "batch_size": Between(1, 5),
            "rank": Between(1, 4),
            "sigma": Between(0.03, 30.0),
            "variance": Between(0.03, 30.0),
            "contrast": Between(0.05, 0.95),
            "spike": Between(1.5, 9.0),
        },
        simulate=any_moment,
        on_host="populations of matrices, in numpy",
        replicate="noise matrices, or populations with all of their batches",
        examples=tuple(map(_example, CASES)),
        score="ratio",
        predict=one,
        margin=0.02,
        margin_reason="exact at every size; the fourth moments of few rows scatter by more than 1 % allows",
        rivals={
            "limit of size": lambda p: 1 - 1 / p.dim,
            "no diagonal": lambda p: 1 + 1 / p.dim,
            "B for b": lambda p: 1 + p.batch_size / p.samples,
        },
        budget=4096,
        seconds=2.0,
        quantity="moment over theory",
    ),
)
