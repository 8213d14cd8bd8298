"""Granziol, Zohren and Roberts (2022): what noise must be like for the semicircle, and what it is like elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate import spectra
from simulate.matrices import noise
from simulate.monte_carlo import Block, Point
from theory import rmt
from theory.batch_hessian import low_rank_noise
from theory.rmt import Semicircle
from verify.claims.granziol2022 import PAPER
from verify.model import KNOWN, AnyClaim, Claim, Experiment, Passage, Standing

__all__ = ["CLAIMS"]

# --- whole spectra: theorem 3 --------------------------------------------------------------------------------


def universal_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """Distribution function of the eigenvalues of noise of edge 2 s, s^2 = P sigma^2 / b, from entries of any law."""
    draw = {
        "student": lambda: noise.student(block, point.dim, degrees=5),
        "sparse": lambda: noise.sparse(block, point.dim, per_row=PER_ROW),
        "bands": lambda: noise.profiled(block, noise.banded_profile(point.dim, contrast=CONTRAST)),
    }[point.law]
    return {"below": spectra.distribution(point.sigma * math.sqrt(point.dim / point.batch) * draw(), point.x)}


def signed_spectrum(block: Block, point: Point) -> Mapping[str, Any]:
    """Distribution function of the eigenvalues of a mean of B samples, each of a few projections +-P tau^2 u u'."""
    return {"below": spectra.distribution(_signed(block, point), point.x)}


def _signed(block: Block, point: Point) -> Any:
    drawn = noise.signed_projections(block, point.dim, samples=point.batch_size, rank=point.rank)
    return point.dim * point.variance * drawn


PER_ROW = 70
CONTRAST = 0.9

X = (-0.61, -0.43, -0.24, -0.09, 0.17, 0.38, 0.55, 0.66)

UNIVERSAL = Experiment(
    id="granziol2022/universal-spectrum",
    replicate="one noise matrix",
    simulate=universal_spectrum,
    points=tuple(
        Point(law=law, x=X, sigma=0.083, batch=batch, dim=dim)
        for law, dim, batch in (("student", 420, 23), ("sparse", 380, 21), ("bands", 290, 17))
    ),
    budget=256,
    seconds=0.69,
)

SIGNED_SPECTRUM = Experiment(
    id="granziol2022/signed-spectrum",
    replicate="one mean of signed low-rank samples",
    simulate=signed_spectrum,
    points=(
        Point(
            x=(-2.3, -1.6, -1.1, -0.7, -0.25, 0.25, 0.7, 1.3, 1.9, 2.6),
            rank=3,
            variance=0.37,
            dim=160,
            batch_size=41,
        ),
    ),
    budget=512,
    seconds=0.36,
)


def _semicircle(p: Point, **changed: float) -> float:
    """Theorem 3 with s = sqrt(P/b) sigma."""
    scale = changed.get("scale", p.sigma * math.sqrt(p.dim / p.batch))
    return float(Semicircle(sigma=scale).cdf(p.x))


def _free_poisson(p: Point, **changed: Any) -> Any:
    sizes = {"rank": p.rank, "variance": p.variance, "dim": p.dim, "batch_size": p.batch_size}
    return low_rank_noise(**sizes | changed)


SPECTRUM_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/universal-semicircle",
        entries=("B13",),
        source=f"{PAPER}, theorem 3",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to F_{\mathrm{sc}}(x),\ s = \sqrt{P/b}\,\sigma\quad "
        r"(t_5,\ \text{70 entries a row},\ \text{variances 19 to 1 with equal row sums})",
        says="Divided by the root of the dimension, noise with heavy-tailed, sparse or unequal elements has a "
        "semicircle spectrum, as long as row variances are equal.",
        passage=Passage(
            Standing.MISPRINT,
            "the limiting spectral density p(λ) of ε(w) ∈ RP×P satisfies the semicircle law",
            "Theorem 3",
        ),
        experiment=UNIVERSAL,
        score="below",
        along="x",
        axis="x",
        predict=_semicircle,
        printed=lambda p: _semicircle(p, scale=p.sigma / math.sqrt(p.batch)),
        reads=r"p(\lambda) \text{ of } \epsilon(w):\quad p(\lambda) = \frac{\sqrt{4 \sigma_\epsilon^2 - "
        r"\lambda^2}}{2 \pi \sigma_\epsilon^2}",
        finding="As our copy reads the spectrum of eps converges; for elements of order one it is that of "
        "eps / sqrt(P), as Lemma 5 and Lindeberg's ratio in the proof have it.",
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P) with the fourth cumulant of an entry, 0.001 at these sizes",
        rivals={
            "sigma for s": lambda p: _semicircle(p, scale=p.sigma),
            "variance for standard deviation": lambda p: _semicircle(p, scale=p.sigma**2 * p.dim / p.batch),
            "uniform up to the edge": lambda p: min(
                1.0, max(0.0, 0.5 + p.x / (4 * p.sigma * math.sqrt(p.dim / p.batch)))
            ),
        },
        quantity="share of eigenvalues below x",
    ),
    Claim(
        id="granziol2022/signed-low-rank-noise",
        entries=("B13",),
        source=f"compound free Poisson laws, Nica and Speicher (2006), beside theorem 3 of {PAPER}",
        statement=r"\frac1P \#\{i: \lambda_i(\varepsilon) \le x\} \to F(x),\quad R(w) = \frac{\rho a^2 w}{1 - a^2 w^2},"
        r"\ \rho = B r / P,\ a = P \tau^2 / B",
        says="The spectrum of an average of few signed low-rank samples follows a compound free Poisson law in "
        "place of the semicircle.",
        passage=KNOWN,
        experiment=SIGNED_SPECTRUM,
        score="below",
        along="x",
        axis="x",
        predict=lambda p: float(_free_poisson(p).cdf(p.x)),
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P), below 0.002 at P = 160",
        rivals={
            "semicircle of the same variance": lambda p: float(
                Semicircle(variance=_free_poisson(p).var()).cdf(p.x)
            ),
            "positive samples, less their mean": lambda p: float(
                _free_poisson(p, positive_share=1.0).cdf(p.x + p.rank * p.variance)
            ),
            "rank one": lambda p: float(_free_poisson(p, rank=1).cdf(p.x)),
            "standard deviation for variance": lambda p: float(
                _free_poisson(p, variance=math.sqrt(p.variance)).cdf(p.x)
            ),
        },
        quantity="share of eigenvalues below x",
    ),
)

# --- moments, exact at every size ----------------------------------------------------------------------------


def uneven_rows(block: Block, point: Point) -> Mapping[str, Any]:
    """Fourth moment of the spectrum with variances v_i v_j sigma^2 / P, v = 1 +- contrast.

    What the second moment deviates from its expectation is left out, times the 4 of a semicircle: a term of mean 0
    if that is its expectation.
    """
    profile = noise.blocked_profile(point.dim, contrast=point.contrast)
    return _moments(point.sigma * noise.profiled(block, profile), second=point.sigma**2)


def few_entries(block: Block, point: Point) -> Mapping[str, Any]:
    """The same with a few entries in a row, signs of one size at random places."""
    matrices = point.sigma * noise.sparse(block, point.dim, per_row=point.per_row)
    return _moments(matrices, second=point.sigma**2)


def few_projections(block: Block, point: Point) -> Mapping[str, Any]:
    """The same of a mean of B samples, each of a few projections +-P tau^2 u u'."""
    return _moments(_signed(block, point), second=_second_moment(point))


def _moments(matrices: Any, *, second: float) -> Mapping[str, Any]:
    dim = matrices.shape[1]
    squares = matrices.square().sum(dim=(1, 2)) / dim
    fourth = (matrices @ matrices).square().sum(dim=(1, 2)) / dim
    return {"fourth": fourth - 4 * second * (squares - second)}


UNEVEN_ROWS = Experiment(
    id="granziol2022/uneven-rows",
    replicate="one noise matrix",
    simulate=uneven_rows,
    points=(Point(contrast=0.63, sigma=1.3, dim=14), Point(contrast=0.41, sigma=0.7, dim=160)),
    budget=1 << 17,
    seconds=0.51,
)

FEW_ENTRIES = Experiment(
    id="granziol2022/few-entries",
    replicate="one noise matrix",
    simulate=few_entries,
    points=(Point(per_row=7, sigma=1.3, dim=22), Point(per_row=11, sigma=0.7, dim=300)),
    budget=1 << 17,
    seconds=0.45,
)

FEW_PROJECTIONS = Experiment(
    id="granziol2022/few-projections",
    replicate="one mean of signed low-rank samples",
    simulate=few_projections,
    points=(
        Point(rank=4, variance=0.17, dim=11, batch_size=5),
        Point(rank=4, variance=0.023, dim=150, batch_size=11),
    ),
    budget=1 << 18,
    seconds=1.6,
)


def _uneven_rows(p: Point) -> float:
    return float(rmt.profiled_fourth_moment(sigma=p.sigma, contrast=p.contrast, dim=p.dim))


def _few_entries(p: Point) -> float:
    return float(rmt.sparse_fourth_moment(sigma=p.sigma, per_row=p.per_row, dim=p.dim))


def _few_projections(p: Point) -> float:
    sizes = {"rank": p.rank, "variance": p.variance, "dim": p.dim, "batch_size": p.batch_size}
    return float(rmt.low_rank_fourth_moment(**sizes))


def _second_moment(p: Point) -> float:
    """P sigma^2 / B, sigma^2 = r tau^4."""
    return p.dim * p.rank * p.variance**2 / p.batch_size


MOMENT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/uneven-rows",
        entries=("B13",),
        source=f"ours, beside condition (ii) of theorem 3 of {PAPER}",
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^4 = \Big[2 (1 + c^2) + \frac{(1 + c^2)^2}{P}\Big] "
        r"\sigma^4\quad "
        r"(\text{variances } v_i v_j \sigma^2 / P,\ v = 1 \pm c)",
        says="Where rows of the noise have unequal variances, the fourth moment of its spectrum exceeds the "
        "semicircle's by what the contrast of the rows predicts.",
        passage=Passage(
            Standing.OUTSIDE,
            "there cannot be too much variation in the variances per element",
            "Section 4.2, on condition (ii)",
        ),
        finding="Outside condition (ii), with uneven row sums of the variances, the fourth moment is "
        "above that of a semicircle.",
        experiment=UNEVEN_ROWS,
        score="fourth",
        predict=_uneven_rows,
        margin=0.01,
        margin_reason="exact at every size; at most 1 % for random matrices",
        rivals={
            "semicircle": lambda p: 2 * p.sigma**4,
            "limit of size": lambda p: 2 * p.sigma**4 * (1 + p.contrast**2),
            "semicircle of the mean squared variance": lambda p: 2 * p.sigma**4 * (1 + p.contrast**2) ** 2,
            "any variance profile": lambda p: 2 * p.sigma**4 * (1 + 1 / p.dim),
        },
        quantity="fourth moment of the spectrum",
    ),
    Claim(
        id="granziol2022/few-entries",
        entries=("B13",),
        source=f"ours, beside Lindeberg's condition in the proof of theorem 3 of {PAPER}",
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^4 = \big(2 + \tfrac1k - \tfrac2P\big) \sigma^4\quad "
        r"(\text{entries } \pm\sigma/\sqrt k \text{ at random places, } k \text{ a row on average, whatever } P)",
        says="With a fixed mean number of non-zero entries in a row, the fourth moment of the spectrum stays above "
        "the semicircle's by about the inverse of that number.",
        passage=Passage(
            Standing.OUTSIDE,
            "the tails of the normal distribution decay sufficiently rapidly",
            "proof of Theorem 3",
        ),
        finding="Outside Lindeberg's condition, with a number of entries in a row that does not grow, "
        "elements are not nearly normal and the limit is no semicircle.",
        experiment=FEW_ENTRIES,
        score="fourth",
        axis="per_row",
        predict=_few_entries,
        margin=0.01,
        margin_reason="exact at every size; at most 1 % for random matrices",
        rivals={
            "semicircle": lambda p: 2 * p.sigma**4,
            "semicircle at this size": lambda p: (2 - 1 / p.dim) * p.sigma**4,
            "twice the excess": lambda p: (2 + 2 / p.per_row) * p.sigma**4,
        },
        quantity="fourth moment of the spectrum",
    ),
    Claim(
        id="granziol2022/low-rank-kurtosis",
        entries=("B13",),
        source=f"ours, beside theorem 3 of {PAPER}",
        statement=r"\frac{m_4}{m_2^2} = \frac{P}{B r} + \Big(1 - \frac1{B r}\Big)\Big(2 + \frac3{P + 2}\Big),\quad "
        r"m_2 = P \sigma^2 / B,\ \sigma^2 = r \tau^4",
        says="The fourth moment of noise from few low-rank samples exceeds the semicircle's by the dimension over "
        "batch size times rank, up to known finite-size terms.",
        passage=Passage(
            Standing.OUTSIDE,
            "the dependence between the elements cannot be too large",
            "Section 4.2, on condition (i)",
        ),
        finding="Outside condition (i): averages of few low-rank samples have uncorrelated, nearly normal "
        "elements of equal variance that depend on each other. The semicircle needs B times the rank of a "
        "sample well above P.",
        experiment=FEW_PROJECTIONS,
        score="fourth",
        predict=_few_projections,
        margin=0.01,
        margin_reason="exact at every size; at most 1 % for random matrices",
        rivals={
            "semicircle": lambda p: 2 * _second_moment(p) ** 2,
            "limit of size": lambda p: (2 + p.dim / (p.batch_size * p.rank)) * _second_moment(p) ** 2,
            "rank left out": lambda p: (2 + p.dim / p.batch_size) * _second_moment(p) ** 2,
            "ratio upside down": lambda p: (2 + p.batch_size * p.rank / p.dim) * _second_moment(p) ** 2,
        },
        quantity="fourth moment of the spectrum",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*SPECTRUM_CLAIMS, *MOMENT_CLAIMS)
