"""Granziol, Zohren and Roberts (2022): what a batch can do, random probes, noise of the squared gradient."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from theory import loss_change, rmt
from verify.claims import Array
from verify.claims.drawn_networks import stream_by_stream
from verify.claims.granziol2022 import PAPER
from verify.model import (
    Arrays,
    Claim,
    Experiment,
    Kind,
    NoTheory,
    Tier,
    Verdict,
    as_stated,
    misprint,
    out_of_scope,
)

# --- bounds: Jensen's inequality ----------------------------------------------------------------------------


@stream_by_stream
def batches_of_a_population(rng: Generator, point: Point, _: str) -> Arrays:
    """Top eigenvalue of a batch less that of the whole population."""
    factors = rng.standard_normal((point.dataset_size, point.dim, point.dim))
    samples = (factors + factors.swapaxes(1, 2)) / 2 + np.eye(point.dim)
    means = samples[: point.batch_size].mean(axis=0), samples.mean(axis=0)
    batch, full = np.linalg.eigvalsh(means)[:, -1]
    return {"difference": batch - full}


POPULATION = Experiment(
    id="granziol2022/population",
    replicate="one population of symmetric matrices with a batch of it",
    simulate=batches_of_a_population,
    on_host="all of it, in numpy",
    points=(Point(dim=5, dataset_size=8, batch_size=3), Point(dim=7, dataset_size=20, batch_size=9)),
    seconds=0.01,
    tier=Tier.SMOKE,
)


BOUND_CLAIMS = (
    Claim(
        id="granziol2022/broadening-at-every-draw",
        no_theory=NoTheory.MEASURED,
        entries=("B1",),
        source=f"{PAPER}, abstract and sections 1 and 8.1, read as a statement on every batch",
        statement=r"\lambda_1(H_B) \ge \lambda_1(H)\quad\text{for every batch}",
        says="Read as a statement on every batch, not on their mean, the top eigenvalue of a batch is at least its "
        "population's.",
        passage=out_of_scope(
            "in expectation, the main effect of sub-sampling is a broadening of the spectrum",
            "Section 11",
        ),
        expected=Verdict.DISAGREES,
        finding="Outside the expectation, of which the paper speaks, single batches can have a top eigenvalue below "
        "their population's.",
        experiment=POPULATION,
        kind=Kind.NEVER_BELOW,
        score="difference",
        predict=lambda _: 0.0,
        margin=0.01,
        relative=False,
        margin_reason="one violation is enough",
        numerical=1e-12,
        rivals={"by a tenth": lambda _: 0.1},
        quantity="top eigenvalue of the batch less that of the population",
    ),
)

# --- random probes: eq. (56) ---------------------------------------------------------------------------------


def probed_matrix(dim: int) -> Array:
    """A fixed symmetric matrix: entries that fall off with the distance, and a diagonal of both signs."""
    rows = np.arange(dim)
    return 1 / (1.3 + np.abs(rows[:, None] - rows)) + np.diag(2 * np.cos(rows))


@cache
def _probed(dim: int, power: int) -> tuple[Array, Array]:
    """The power, and a unit eigenvector."""
    a = probed_matrix(dim)
    return np.linalg.matrix_power(a, power), np.linalg.eigh(a)[1][:, -1]


def _probes(block: Block, point: Point) -> Arrays:
    """Quadratic form of one probe of signs, and the squared overlap of a unit vector with a fixed one."""
    a, vector = _probed(point.dim, point.power)
    gaussian = np.stack([rng.standard_normal(point.dim) for rng in block.streams])
    signs = np.stack([2.0 * rng.integers(0, 2, point.dim) - 1 for rng in block.streams])
    return {
        "signs": ((signs @ a) * signs).sum(axis=1),
        "overlap": point.dim * (gaussian @ vector) ** 2 / (gaussian**2).sum(axis=1),
    }


PROBES = Experiment(
    id="granziol2022/probes",
    replicate="one probe of a fixed matrix",
    simulate=_probes,
    on_host="all of it, in numpy",
    points=(Point(dim=160, power=2),),
    budget=65536,
    seconds=1.7,
)


def _powers(p: Point) -> Array:
    """Eigenvalues of the power: powers of the eigenvalues."""
    return np.linalg.eigvalsh(probed_matrix(p.dim)) ** p.power


def _half_normal(t: Any) -> Any:
    from scipy import special

    return special.erf(np.maximum(t, 0.0) / math.sqrt(2))


PROBE_CLAIMS = (
    Claim(
        id="granziol2022/probe-mean",
        no_theory=NoTheory.MEASURED,
        entries=("B64",),
        source=f"{PAPER}, appendix D, eq. (56)",
        statement=r"\mathbb{E}\,v^\top H^m v = \sum_i \lambda_i^m",
        says="The mean quadratic form of a matrix power in random probes is the sum of that power of the eigenvalues.",
        passage=misprint("Tr(Hm) = N∑ i=1 λi", "Eq 56"),
        experiment=PROBES,
        score="signs",
        predict=lambda p: float(_powers(p).sum()),
        printed=lambda p: float(np.linalg.eigvalsh(probed_matrix(p.dim)).sum()),
        reads=r"\mathbb{E}_v \mathrm{Tr}(v^\top H^m v) = \mathrm{Tr}(H^m) = \sum_{i=1}^N \lambda_i",
        finding="As our copy reads the sum over the eigenvalues lacks the power that the trace next to it has.",
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={"mean for sum": lambda p: float(_powers(p).mean())},
        quantity="quadratic form of the squared matrix",
    ),
    Claim(
        id="granziol2022/probe-overlap",
        entries=("B65",),
        source=f"{PAPER}, appendix D; directions on the sphere, Fang, Kotz and Ng (1990)",
        statement=r"n\,|v^\top \phi|^2 \sim n\,\mathrm{Beta}\big(\tfrac12, \tfrac{n - 1}{2}\big)\quad "
        r"\text{for a random unit vector } v",
        says="The squared overlap of a random unit vector with an eigenvector has a Beta law, which does not "
        "concentrate at its mean, the inverse dimension.",
        passage=as_stated("|vTφi|2 ≈ 1 N ∀i, with high probability", "Appendix D"),
        experiment=PROBES,
        kind=Kind.DISTRIBUTION,
        score="overlap",
        predict=lambda p: lambda t: rmt.overlap_cdf(t, dim=p.dim),
        printed=lambda _: lambda t: (np.asarray(t) >= 1.0).astype(float),
        reads=r"|v^\top \phi_i|^2 \approx \frac1N\ \forall i",
        finding="The mean is 1/n, but one overlap is not near it with high probability: its relative variance is 2 "
        "(n - 1) / (n + 2), and one in four lies below a tenth of the mean.",
        margin=0.05,
        relative=False,
        margin_reason="a distance of distribution functions; 12 288 probes resolve 0.028",
        rivals={
            "complex vectors": lambda _: lambda t: -np.expm1(-np.maximum(t, 0.0)),
            "not squared": lambda _: _half_normal,
        },
        quantity="n times the squared overlap",
    ),
)


@stream_by_stream
def squared_gradients(rng: Generator, point: Point, _: str) -> Arrays:
    """Squared mean gradient of batches of normal samples: its mean, and half the squared difference of two batches."""
    g, spread = np.array(point.gradient), np.sqrt(point.variances)
    normal = rng.standard_normal((point.pairs, 2, point.batch_size, len(g)))
    squares = np.square(g + (spread * normal).mean(axis=2)).sum(axis=2)
    return {"mean": squares.mean(), "variance": np.square(squares[:, 0] - squares[:, 1]).mean() / 2}


SMALLEST = 3

GRADIENTS = Experiment(
    id="granziol2022/squared-gradients",
    replicate="24 pairs of batches of normal gradients",
    simulate=squared_gradients,
    on_host="all of it, in numpy",
    points=tuple(
        Point(gradient=(1.3, -0.7, 0.4, 0.9), variances=(3.1, 0.6, 1.7, 4.2), batch_size=size, pairs=24)
        for size in (SMALLEST, 31)
    ),
    budget=16384,
    seconds=0.22,
)


def _square(p: Point) -> float:
    return float(np.square(p.gradient).sum())


def _gradient_variance(p: Point, *, along: float = 1.0, square: float = 1.0) -> Any:
    g, c = np.array(p.gradient), np.array(p.variances)
    return loss_change.squared_gradient_variance(
        along * g**2 @ c, trace_of_square=square * c @ c, batch_size=p.batch_size
    )


CLAIMS = (
    *BOUND_CLAIMS,
    *PROBE_CLAIMS,
    Claim(
        id="granziol2022/squared-gradient-mean",
        entries=("B59",),
        source=f"{PAPER}, section 11.2; McCandlish et al. (2018), arXiv 1812.06162, appendix A",
        statement=r"\mathbb{E}\,|g_B|^2 = |g|^2 + \mathrm{tr}\,C / B",
        says="The mean squared norm of a batch gradient is the full gradient's plus the trace of the samples' "
        "covariance over the batch size.",
        passage=as_stated(
            "whilst the value of the change in loss remains unchanged in expectation",
            "Section 11.2",
        ),
        experiment=GRADIENTS,
        score="mean",
        predict=lambda p: loss_change.squared_gradient_mean(
            _square(p), trace=sum(p.variances), batch_size=p.batch_size
        ),
        printed=_square,
        reads=r"L(w - \alpha \nabla L(w)) - L(w) = -\alpha \lVert\nabla L(w)\rVert^2 \text{, unchanged in "
        r"expectation}",
        finding="With the gradient of the batch in both factors, as the displayed variance has it, the change is not "
        "unchanged: the noise adds its own squared length, tr C / B. (In a loss that does not depend on the batch it "
        "would be.)",
        margin=0.01,
        margin_reason="unbiased",
        rivals={
            "mean of the variances": lambda p: _square(p) + float(np.mean(p.variances)) / p.batch_size,
            "1/B^2": lambda p: _square(p) + sum(p.variances) / p.batch_size**2,
        },
        axis="batch_size",
        quantity="squared gradient of a batch",
    ),
    Claim(
        id="granziol2022/squared-gradient-variance",
        entries=("B59",),
        source=f"{PAPER}, section 11.2; moments of normal variables, Isserlis (1918)",
        statement=r"\mathrm{Var}\,|g_B|^2 = \frac4B g^\top C g + \frac2{B^2} \mathrm{tr}\,C^2\quad "
        r"\text{(normal gradients)}",
        says="For normal gradients the variance of the batch gradient's squared norm has a term in the inverse batch "
        "size and one in its square.",
        passage=as_stated("the variance changes as", "Section 11.2"),
        experiment=GRADIENTS,
        score="variance",
        predict=_gradient_variance,
        printed=lambda p: _gradient_variance(GRADIENTS.points[0]) * (SMALLEST / p.batch_size) ** 2,
        reads=r"\mathrm{Var}\Big(L(w) - \alpha \Big(\frac1B \sum_i^B \nabla L(w)_i\Big) \Big(\frac1B \sum_j^B "
        r"\nabla L(w)_j\Big)\Big){}^\top \propto \frac{\alpha^2}{B^2}",
        finding="From B = 3 to 31 the variance falls by 15, not by the squared ratio, 107: proportional to 1/B^2 is "
        "the second term alone; the first is larger while B |g|^2 exceeds tr C.",
        margin=0.05,
        margin_reason="a variance, from pairs of batches: 5 % takes some 10^3 replicates",
        rivals={
            "first order only": lambda p: _gradient_variance(p, square=0.0),
            "second order only": lambda p: _gradient_variance(p, along=0.0),
            "variance of the projection": lambda p: _gradient_variance(p, along=0.25),
            "without the 2": lambda p: _gradient_variance(p, square=0.5),
        },
        axis="batch_size",
        quantity="variance of the squared gradient of a batch",
    ),
)
