"""Granziol, Zohren and Roberts (2022): the noise itself, its spectrum, its edge, its bounds, and random probes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.rmt import MarchenkoPastur, Semicircle
from verify.estimands import variance
from verify.model import AnyClaim, Claim, Experiment, Kind, Verdict

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

# --- spectra: theorem 3 and appendix B -----------------------------------------------------------------------


def wigner_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """Distribution function of the eigenvalues of noise of variance sigma^2 (1/B - 1/N) in every element."""
    from simulate import ensembles, spectra

    spread = point.sigma * math.sqrt(point.dim * (1 / point.batch_size - 1 / point.dataset_size))
    noise = spread * ensembles.wigner(block, point.dim, law=point.law)
    return {"below": spectra.distribution(noise, point.x)}


def low_rank_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """The same for an average of rank-one samples g g', less its mean."""
    import torch

    from simulate import ensembles, spectra

    noise = point.variance * ensembles.wishart(block, point.dim, point.batch_size)
    centred = noise - point.variance * torch.eye(point.dim, dtype=noise.dtype, device=noise.device)
    return {"below": spectra.distribution(centred, point.x)}


def wigner_sizes(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of min(|lambda|, 1) over the eigenvalues, at each size."""
    import torch

    from simulate import ensembles

    spectra = [torch.linalg.eigvalsh(ensembles.wigner(block, dim)) for dim in point.dims]
    return {"capped": torch.stack([values.abs().clamp(max=1.0).mean(dim=1) for values in spectra], dim=1)}


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
    seconds=1.5,
    smoke=True,
)

LOW_RANK_SPECTRUM = Experiment(
    id="granziol2022/low-rank-spectrum",
    replicate="one average of rank-one samples",
    simulate=low_rank_spectrum,
    points=(
        Point(dim=120, batch_size=240, variance=1.3, x=_grid(-1.2, 2.5, 13)),
        Point(dim=150, batch_size=60, variance=0.8, x=_grid(-0.6, 4.6, 13)),
    ),
    budget=512,
    seconds=1.5,
)

WIGNER_SIZES = Experiment(
    id="granziol2022/wigner-sizes",
    replicate="one noise matrix at each size",
    simulate=wigner_sizes,
    points=(Point(dims=(100, 200)),),
    budget=4096,
    seconds=5.0,
)


def _scale(p: Point) -> float:
    """Standard deviation of the semicircle, half its edge: s = sqrt(P/b) sigma."""
    return p.sigma * math.sqrt(p.dim * (1 / p.batch_size - 1 / p.dataset_size))


def _ratio(p: Point) -> float:
    return p.dim / p.batch_size


def _low_rank_law(p: Point, **changed: float) -> MarchenkoPastur:
    return MarchenkoPastur(**{"q": _ratio(p), "variance": p.variance, **changed})


SPECTRUM_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/semicircle",
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to \int_{-2s}^{x} "
        r"\frac{\sqrt{4 s^2 - t^2}}{2 \pi s^2}\, dt,\quad s = \sqrt{P/b}\,\sigma,\ \text{independent elements}",
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
        source=f"{PAPER}, theorem 3 and eq. (52), for averages of rank-one samples",
        statement=r"\frac1P \#\{i: \lambda_i(\tfrac1B \textstyle\sum g g^\top - \sigma^2 I) \le x\} \to "
        r"F_{\mathrm{MP}}(x + \sigma^2),\ \beta = P/B",
        experiment=LOW_RANK_SPECTRUM,
        score="below",
        along="x",
        axis="x",
        predict=lambda p: float(_low_rank_law(p).cdf(p.x + p.variance)),
        printed=lambda p: float(Semicircle(variance=_ratio(p) * p.variance**2).cdf(p.x)),
        finding="Uncorrelated, nearly normal elements of equal variance do not make a semicircle: averages of few "
        "low-rank samples follow the shifted law of Marchenko and Pastur.",
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P), below 0.004 at these sizes",
        rivals={
            "not centred": lambda p: float(_low_rank_law(p).cdf(p.x)),
            "ratio upside down": lambda p: float(_low_rank_law(p, q=1 / _ratio(p)).cdf(p.x + p.variance)),
            "standard deviation for variance": lambda p: float(
                _low_rank_law(p, variance=math.sqrt(p.variance)).cdf(p.x + p.variance)
            ),
        },
        quantity="share of eigenvalues below x",
    ),
    Claim(
        id="granziol2022/capped-eigenvalues",
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\mathbb{E}\,\frac1P \sum_i \min(|\lambda_i| / s, 1) \to \tfrac23 + \tfrac{16 - 9\sqrt3}{6\pi}",
        experiment=WIGNER_SIZES,
        kind=Kind.SETTLED,
        score="capped",
        along="dims",
        predict=lambda _: 2 / 3 + (16 - 9 * math.sqrt(3)) / (6 * math.pi),
        margin=0.02,
        margin_reason="it may move by a tenth of this between the two sizes, which takes some 1500 matrices to see",
        rivals={
            "normal law": lambda _: math.sqrt(2 / math.pi) * (1 - math.exp(-0.5)) + math.erfc(math.sqrt(0.5)),
            "not capped": lambda _: 8 / (3 * math.pi),
        },
        quantity="mean of |eigenvalue| capped at one standard deviation",
    ),
)

# --- the edge: lemma 5 below its threshold -------------------------------------------------------------------


def noise_edge(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue of Gaussian noise of edge 2, at every size; *centred*: on the scale of P - 1/2."""
    import torch

    from simulate import ensembles

    edges = [ensembles.goe_top_eigenvalue(block, dim) for dim in point.dims]
    centred = [edge * math.sqrt(dim / (dim - 0.5)) for dim, edge in zip(point.dims, edges, strict=True)]
    return {"edge": torch.stack(edges, dim=1), "centred": torch.stack(centred, dim=1)}


EDGE = Experiment(
    id="granziol2022/edge",
    replicate="one Gaussian matrix at each size",
    simulate=noise_edge,
    points=(Point(dims=tuple(50 * 2**k for k in range(8))),),
    budget=8192,
    seconds=8.0,
)

EDGE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/edge",
        entries=("B13", "B15"),
        source=f"{PAPER}, theorem 3 and lemma 5, eq. (10), without a spike",
        statement=r"\lim_{P \to \infty} \mathbb{E}\,\lambda_{\max}(\varepsilon) / s = 2",
        experiment=EDGE,
        kind=Kind.LIMIT,
        score="edge",
        along="dims",
        terms=(2 / 3, 1),
        predict=lambda _: 2.0,
        margin=0.01,
        margin_reason="at most 1 % for random matrices, here of the limit itself: at P = 50 the edge is 5 % low",
        rivals={
            "edge at P = 50": lambda _: 2 - 1.2065 * 50 ** (-2 / 3),
            "square root of 2": lambda _: math.sqrt(2),
            "variance for standard deviation": lambda _: 4.0,
        },
        quantity="largest eigenvalue of the noise over s",
    ),
    Claim(
        id="granziol2022/edge-order",
        entries=("B13",),
        source=f"ours, beside theorem 3 of {PAPER}; the centring by Johnstone and Ma (2012)",
        statement=r"2 - \mathbb{E}\,\sqrt{\tfrac{P}{P - 1/2}}\,\lambda_{\max}(\varepsilon) / s \sim P^{-2/3}",
        experiment=EDGE,
        kind=Kind.EXPONENT,
        score="centred",
        along="dims",
        terms=(2 / 3,),
        offset=lambda _: 2.0,
        predict=lambda _: -2 / 3,
        margin=0.15,
        relative=False,
        margin_reason="less than half the way to the nearest rival exponent, 1/3 away",
        rivals={"1/P": lambda _: -1.0, "fluctuations of a mean, squared root": lambda _: -1 / 3},
        quantity="distance of the largest eigenvalue from the edge",
    ),
)

# --- bounds: lemma 1, and Jensen's inequality ----------------------------------------------------------------


def opposed_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest noise element where one sample of N has curvature -L in one direction and all others +L."""
    signs = np.ones(point.dataset_size)
    signs[0] = -1.0
    drawn = [rng.choice(signs, point.batch_size, replace=False).mean() for rng in block.streams]
    return {"largest": point.lipschitz * np.abs(np.array(drawn) - signs.mean())}


def batches_of_a_population(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalue of a batch over that of the whole population, less one, and over that of twice the batch."""
    shape = (point.dataset_size, point.dim, point.dim)
    found = []
    for rng in block.streams:
        factors = rng.standard_normal(shape)
        samples = (factors + factors.swapaxes(1, 2)) / 2 + np.eye(point.dim)
        sizes = (point.batch_size, 2 * point.batch_size, point.dataset_size)
        found.append([np.linalg.eigvalsh(samples[:size].mean(axis=0))[-1] for size in sizes])
    batch, double, full = np.array(found).T
    return {"gain": batch / full - 1, "difference": batch - full, "over_double": batch - double}


OPPOSED = Experiment(
    id="granziol2022/opposed-samples",
    replicate="one batch of a fixed population",
    simulate=opposed_samples,
    points=(
        Point(dim=2, dataset_size=24, batch_size=1, lipschitz=0.7),
        Point(dim=3, dataset_size=32, batch_size=1, lipschitz=1.3),
    ),
    budget=1024,
    seconds=0.5,
    smoke=True,
    special="a batch of one sample shows the largest noise",
)

POPULATION = Experiment(
    id="granziol2022/population",
    replicate="one population of symmetric matrices with a batch of it",
    simulate=batches_of_a_population,
    points=(Point(dim=5, dataset_size=8, batch_size=3), Point(dim=7, dataset_size=20, batch_size=9)),
    budget=4096,
    seconds=1.5,
    smoke=True,
)


def _sharp_bound(p: Point) -> float:
    return 2 * p.lipschitz * (1 - p.batch_size / p.dataset_size)


BOUND_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/lemma-1",
        entries=("B8",),
        source=f"{PAPER}, lemma 1",
        statement=r"|\varepsilon_{jk}| \le 2 L (1 - B/N) \quad (L \text{ a bound of every sample's curvature})",
        experiment=OPPOSED,
        kind=Kind.NEVER_ABOVE,
        score="largest",
        predict=_sharp_bound,
        printed=lambda p: math.sqrt(p.dim) * p.lipschitz,
        finding="Two L-Lipschitz maps differ by one of constant 2 L: where one sample of curvature -L is drawn from "
        "many of +L, the noise is nearly 2 L, more than sqrt(P) L for P up to 3.",
        margin=0.03,
        relative=False,
        margin_reason="violations in 3 % of the batches would be seen; the copy's bound is broken in as many",
        numerical=1e-12,
        rivals={"bound for convex samples": lambda p: _sharp_bound(p) / 2},
        quantity="largest element of the noise",
    ),
    Claim(
        id="granziol2022/broadening-in-the-mean",
        entries=("B1",),
        source=f"{PAPER}, abstract and sections 1 and 8.1; Jensen's inequality",
        statement=r"\mathbb{E}\,\lambda_1(H_B) \ge \lambda_1(H)\quad\text{for any population}",
        experiment=POPULATION,
        kind=Kind.AT_LEAST,
        score="gain",
        predict=lambda _: 0.0,
        margin=0.02,
        relative=False,
        margin_reason="2 % of the eigenvalue; the gain itself is 20 % and more",
        rivals={"at least doubled": lambda _: 1.0},
        quantity="top eigenvalue of the batch over that of the population, less one",
    ),
    Claim(
        id="granziol2022/broadening-at-every-draw",
        entries=("B1",),
        source=f"{PAPER}, abstract and sections 1 and 8.1, read as a statement on every batch",
        statement=r"\lambda_1(H_B) \ge \lambda_1(H)\quad\text{for every batch}",
        expected=Verdict.DISAGREES,
        finding="Right in the mean only: single batches have a top eigenvalue below that of their population.",
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
    Claim(
        id="granziol2022/larger-batches-broaden-less",
        entries=("B1", "B60"),
        source=f"ours, beside section 13 of {PAPER}",
        statement=r"\mathbb{E}\,\lambda_1(H_B) \ge \mathbb{E}\,\lambda_1(H_{2B})",
        experiment=POPULATION,
        kind=Kind.AT_LEAST,
        score="over_double",
        predict=lambda _: 0.0,
        margin=0.05,
        relative=False,
        margin_reason="5 % of a standard deviation of one element",
        rivals={"by a whole deviation": lambda _: 1.0},
        quantity="top eigenvalue of a batch less that of twice the batch",
    ),
)

# --- random probes: eq. (56) ---------------------------------------------------------------------------------


def probed_matrix(dim: int) -> np.ndarray[Any, Any]:
    """A fixed symmetric matrix: entries that fall off with the distance, and a diagonal of both signs."""
    rows = np.arange(dim)
    return 1 / (1.3 + np.abs(rows[:, None] - rows)) + np.diag(2 * np.cos(rows))


@cache
def _probed(dim: int, power: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The power, and a unit eigenvector."""
    a = probed_matrix(dim)
    return np.linalg.matrix_power(a, power), np.linalg.eigh(a)[1][:, -1]


def probes(block: Block, point: Point) -> Mapping[str, Any]:
    """Quadratic forms of one Gaussian and one sign probe, and the squared overlap of a unit one with a fixed vector."""
    a, vector = _probed(point.dim, point.power)
    gaussian = np.stack([rng.standard_normal(point.dim) for rng in block.streams])
    signs = np.stack([2.0 * rng.integers(0, 2, point.dim) - 1 for rng in block.streams])
    return {
        "gaussian": ((gaussian @ a) * gaussian).sum(axis=1),
        "signs": ((signs @ a) * signs).sum(axis=1),
        "overlap": point.dim * (gaussian @ vector) ** 2 / (gaussian**2).sum(axis=1),
    }


PROBES = Experiment(
    id="granziol2022/probes",
    replicate="one probe of a fixed matrix",
    simulate=probes,
    points=(Point(dim=160, power=2),),
    budget=65536,
    seconds=6.0,
)


def _powers(p: Point) -> np.ndarray[Any, Any]:
    """Eigenvalues of the power: powers of the eigenvalues."""
    return np.linalg.eigvalsh(probed_matrix(p.dim)) ** p.power


def _diagonal(p: Point) -> np.ndarray[Any, Any]:
    """Diagonal of the power, from eigenvalues and eigenvectors."""
    values, vectors = np.linalg.eigh(probed_matrix(p.dim))
    return vectors**2 @ values**p.power


def _gaussian_variance(p: Point) -> float:
    return 2 * float((_powers(p) ** 2).sum())


def _sign_variance(p: Point) -> float:
    return _gaussian_variance(p) - 2 * float((_diagonal(p) ** 2).sum())


def _overlap_law(p: Point) -> Any:
    from scipy import special

    return lambda t: special.betainc(0.5, (p.dim - 1) / 2, np.clip(np.asarray(t) / p.dim, 0.0, 1.0))


def _half_normal(t: Any) -> Any:
    from scipy import special

    return special.erf(np.maximum(t, 0.0) / math.sqrt(2))


VARIANCE_MARGIN = "a variance: 10 % takes some 3 10^4 probes; the rivals are off by a third and more"

PROBE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/probe-mean",
        entries=("B64",),
        source=f"{PAPER}, appendix D, eq. (56)",
        statement=r"\mathbb{E}\,v^\top H^m v = \sum_i \lambda_i^m",
        experiment=PROBES,
        score="signs",
        predict=lambda p: float(_powers(p).sum()),
        printed=lambda p: float(np.linalg.eigvalsh(probed_matrix(p.dim)).sum()),
        finding="The power is missing from the sum over the eigenvalues.",
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={"mean for sum": lambda p: float(_powers(p).mean())},
        quantity="quadratic form of the squared matrix",
    ),
    Claim(
        id="granziol2022/gaussian-probe-variance",
        entries=("B64",),
        source=f"{PAPER}, appendix D; the variance is ours",
        statement=r"\mathrm{Var}\,v^\top H^m v = 2 \lVert H^m\rVert_F^2,\quad v \sim N(0, I)",
        experiment=PROBES,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        score="gaussian",
        predict=_gaussian_variance,
        margin=0.1,
        margin_reason=VARIANCE_MARGIN,
        rivals={
            "of sign probes": _sign_variance,
            "without the 2": lambda p: _gaussian_variance(p) / 2,
            "squared trace": lambda p: 2 * float(_powers(p).sum()) ** 2,
        },
        quantity="variance of the quadratic form",
    ),
    Claim(
        id="granziol2022/sign-probe-variance",
        entries=("B64",),
        source=f"{PAPER}, appendix D; the variance is ours",
        statement=r"\mathrm{Var}\,v^\top H^m v = 2 \lVert H^m\rVert_F^2 - 2 \textstyle\sum_i (H^m)_{ii}^2,\quad "
        r"v_i = \pm 1",
        experiment=PROBES,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        score="signs",
        predict=_sign_variance,
        margin=0.1,
        margin_reason=VARIANCE_MARGIN,
        rivals={
            "of Gaussian probes": _gaussian_variance,
            "diagonal taken off once": lambda p: (_gaussian_variance(p) + _sign_variance(p)) / 2,
            "trace of the square": lambda p: 2 * float(_powers(p).sum()),
        },
        quantity="variance of the quadratic form",
    ),
    Claim(
        id="granziol2022/probe-overlap",
        entries=("B65",),
        source=f"{PAPER}, appendix D",
        statement=r"n\,|v^\top \phi|^2 \sim n\,\mathrm{Beta}\big(\tfrac12, \tfrac{n - 1}{2}\big)\quad "
        r"\text{for a random unit vector } v",
        experiment=PROBES,
        kind=Kind.DISTRIBUTION,
        score="overlap",
        predict=_overlap_law,
        printed=lambda _: lambda t: (np.asarray(t) >= 1.0).astype(float),
        finding="The mean is 1/n, but one overlap is far from concentrated there: its relative variance is "
        "2 (n - 1) / (n + 2).",
        margin=0.05,
        relative=False,
        margin_reason="a distance of distribution functions; 8192 probes resolve 0.035",
        rivals={
            "complex vectors": lambda _: lambda t: -np.expm1(-np.maximum(t, 0.0)),
            "not squared": lambda _: _half_normal,
        },
        quantity="n times the squared overlap",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*SPECTRUM_CLAIMS, *EDGE_CLAIMS, *BOUND_CLAIMS, *PROBE_CLAIMS)
