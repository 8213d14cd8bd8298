"""Granziol, Zohren and Roberts (2022), appendix B: transforms of Wishart noise and of its terms."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import outliers, rmt
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.law_quadrature import (
    QUADRATURE,
    law_at,
    root,
    root_above,
    transform,
)
from verify.model import AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS"]


def wishart_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """Real part of the mean of 1 / (z - eigenvalue) for Wishart noise, along a line of complex z."""
    import torch

    values = torch.linalg.eigvalsh(point.variance * ensembles.wishart(block, point.dim, point.samples))
    z = torch.tensor(point.x, dtype=torch.complex128, device=values.device) + 1j * point.height
    return {"real": (1 / (z - values[:, :, None])).mean(dim=1).real}


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


# --- eqs. (46) to (50): one rank-one term, and the sum of them -----------------------------------------------


def _roots(s: Any, spike: float, dim: int) -> tuple[Any, Any]:
    """Both roots of s z^2 + (1 - s spike) z - spike (1 - 1/P) = 0; the first is the one near -1/s."""
    root = np.sqrt((s * spike + 1) ** 2 - 4 * s * spike / dim)
    return (s * spike - 1 - root) / (2 * s), (s * spike - 1 + root) / (2 * s)


def rank_one_root(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where the transform s of one term r r^T / N is s, in the appendix's sign, and the roots of its equation."""
    spike = point.ratio * point.variance
    _, other = _roots(point.s, spike, point.dim)
    return {
        "eigenvalues": _of_one_term(rng, point),
        "exact root": rmt.rank_one_inverse(point.s, spike=spike, dim=point.dim),
        "other root": other,
        **_left_out(point),
    }


def expanded_roots(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same, and the root expanded to first order in 1/P."""
    dim, s = point.dim, point.s
    spike = point.ratio * point.variance
    a, b = s * spike - 1, s * spike + 1
    step = 2 * s * spike / b
    left_out = _left_out(point)
    return {
        "eigenvalues": _of_one_term(rng, point),
        "expanded": rmt.rank_one_expansion(s, spike=spike, dim=dim),
        "expanded, wrong sign and extra P": (a - b - step) / (2 * s),
        "no correction": left_out.pop("no correction"),
        "expanded, wrong sign": (a - b - step / dim) / (2 * s),
        **left_out,
    }


def _of_one_term(rng: np.random.Generator, point: Point) -> float:
    """Where the mean of 1 / (eigenvalue - z), over the eigenvalues of one term, is s."""
    dim, s = point.dim, point.s
    r = rng.standard_normal(dim)
    r *= math.sqrt(dim * point.variance) / np.linalg.norm(r)
    eigenvalues = np.linalg.eigvalsh(np.outer(r, r) * point.ratio / dim)

    def excess(z: float) -> float:
        return float(np.mean(1 / (eigenvalues - z))) - s

    near = -1 / s
    return root(excess, *sorted((0.9 * near, 1.2 * near)))


def _left_out(point: Point) -> dict[str, float]:
    near = -1 / point.s
    correction = point.variance / (point.dim * (point.s * point.variance + 1))
    return {"no correction": near, "term over P for N": near + correction}


TERMS = (
    Point(dim=160, ratio=0.4, variance=1.3, s=-0.3),
    Point(dim=120, ratio=1.7, variance=0.6, s=0.45),
)


def sum_of_terms(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R of the sum of N free rank-one terms, from the exact root for one of them at a large dimension."""
    s, dim = np.array(point.s), point.dim
    spike = point.ratio * point.variance
    z = rmt.rank_one_inverse(s, spike=spike, dim=dim)
    terms = dim / point.ratio
    law = law_at(point)
    return {
        "N (z + 1/s)": terms * (z + 1 / s),
        "R(-s)": law.r_transform(-s),
        "N (z - 1/s)": terms * (z - 1 / s),
        "R(s)": law.r_transform(s),
        "without the ratio": point.variance / (1 + s * point.variance),
    }


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/rank-one-root",
        entries=("B-B1",),
        source=f"{PAPER}, eqs. (46) to (49)",
        statement=r"s z^2 + (1 - s\lambda) z - \lambda(1 - 1/P) = 0,\quad \lambda = \beta\sigma^2,\ "
        r"W^s = \frac{r r^\top}{N}",
        says="The inverse Stieltjes transform of one rank-one term of a Wishart matrix solves a quadratic "
        "equation, exactly at finite dimension.",
        routes=rank_one_root,
        points=TERMS,
        tolerance=1e-10,
        tolerance_reason="exact; rounding of an eigensolver and of a root near 1/s",
        seconds=0.01,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/rank-one-expansion",
        entries=("B-B1",),
        source=f"{PAPER}, eq. (49)",
        statement=r"z = \frac{1}{2 s}\Big[s\lambda - 1 - (s\lambda + 1) + \frac1P \frac{2 s\lambda}{s\lambda + 1}\Big] "
        r"= -\frac1s + \frac{\lambda}{P (s\lambda + 1)}",
        says="For large dimension the inverse Stieltjes transform of one rank-one term is its leading pole plus a "
        "correction of one over the dimension.",
        passage=Passage(Standing.MISPRINT, "P (sβσ2 − 1)− P (sβσ2 + 1)− 2Psβσ2 sβσ2+1", "Eq 49"),
        routes=expanded_roots,
        points=TERMS,
        printed="expanded, wrong sign and extra P",
        reads=r"z \approx \frac{P (s \beta\sigma^2 - 1) - P (s \beta\sigma^2 + 1) - \frac{2 P s \beta\sigma^2}{s "
        r"\beta\sigma^2 + 1}}{2 P s}",
        finding="As our copy reads the last term of the middle line has the wrong sign and a factor P too "
        "many; the last line is right.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P^2 that is left out, 5e-6 here",
        seconds=0.01,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/sum-of-terms",
        entries=("B-B1", "B-B2"),
        source=f"{PAPER}, eq. (50)",
        statement=r"R = N\Big(z + \frac1s\Big) \to \frac{\sigma^2}{1 + s \beta\sigma^2}",
        says="The R transforms of many free rank-one terms add up to the R transform of Wishart noise.",
        passage=Passage(Standing.MISPRINT, "N × ( z − 1 s )", "Eq 50"),
        routes=sum_of_terms,
        points=(
            Point(variance=1.7, ratio=0.6, s=(-0.3, 0.2, 1.1), dim=10**6),
            Point(variance=0.8, ratio=3.1, s=(-0.12, 0.7), dim=10**6),
        ),
        printed="N (z - 1/s)",
        reads=r"R_{W_P}(s) = N \times \Big(z - \frac1s\Big)",
        finding="As our copy reads R = N (z - 1/s), which grows with N; the sign convention of the "
        "appendix gives z + 1/s, and with it the value that Eq 50 has.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P that is left out, 1e-6, and cancellation of nine digits",
        seconds=0.01,
        quantity="R transform of Wishart noise",
    ),
    Claim(
        id="granziol2022/wishart-transform-real",
        entries=("B-B3",),
        source=f"{PAPER}, eq. (51)",
        statement=r"\mathrm{Re}\ S(z),\quad S(z) = \frac{z - \sigma^2(1 - \beta) - "
        r"\sqrt{(z - \sigma^2(1 - \beta))^2 - 4\beta\sigma^2 z}}{2\beta\sigma^2 z}",
        says="For large dimension the real part of a Wishart matrix's Stieltjes transform is that of the "
        "Marchenko-Pastur law at its ratio of dimension to samples.",
        passage=Passage(Standing.MISPRINT, "−(z + σ2(1− β)) +", "Eq 51"),
        experiment=WISHART,
        score="real",
        along="x",
        axis="x",
        predict=lambda p: _corrected_51(p).real,
        printed=lambda p: _read_51(p).real,
        reads=r"S_{W_P} = \frac{-(z + \sigma^2 (1 - \beta)) + "
        r"\sqrt{(z + \sigma^2 (1 - \beta))^2 - 4 \beta\sigma^2 z}}{2 \beta\sigma^2 z}",
        finding="As our copy reads z + sigma^2 (1 - beta), where Eq 50 gives minus; the two agree at "
        "beta = 1 only.",
        margin=0.004,
        relative=False,
        margin_reason="1 % of the largest modulus on this line; finite size is O(1/P)",
        rivals={
            "ratio upside down": lambda p: _upside_down_51(p).real,
            "semicircle of the same variance": lambda p: _semicircle_51(p).real,
            "no noise": lambda p: (1 / (_wishart_point(p) - p.variance)).real,
        },
        quantity="real part of the Stieltjes transform",
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
