"""Granziol, Zohren and Roberts (2022), appendix B: transforms of Wishart noise, by quadrature and on matrices."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import outliers
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims.granziol2022.law_quadrature import (
    PARTS,
    QUADRATURE,
    law_at,
    masses,
    root,
    root_above,
    transform,
)
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

# --- one rank-one term at a time -----------------------------------------------------------------------------


def _roots(s: Any, spike: float, dim: int) -> tuple[Any, Any]:
    """Both roots of s z^2 + (1 - s spike) z - spike (1 - 1/P) = 0; the first is the one near -1/s."""
    root = np.sqrt((s * spike + 1) ** 2 - 4 * s * spike / dim)
    return (s * spike - 1 - root) / (2 * s), (s * spike - 1 + root) / (2 * s)


def rank_one_term(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where the transform s of one term r r^T / N is s, in the appendix's sign: s = mean of 1 / (eigenvalue - z)."""
    dim, s = point.dim, point.s
    spike = point.ratio * point.variance
    r = rng.standard_normal(dim)
    r *= math.sqrt(dim * point.variance) / np.linalg.norm(r)
    eigenvalues = np.linalg.eigvalsh(np.outer(r, r) * point.ratio / dim)

    def excess(z: float) -> float:
        return float(np.mean(1 / (eigenvalues - z))) - s

    a, b = s * spike - 1, s * spike + 1
    exact, other = _roots(s, spike, dim)
    step = 2 * s * spike / b
    near = -1 / s
    return {
        "eigenvalues": root(excess, *sorted((0.9 * near, 1.2 * near))),
        "exact root": exact,
        "other root": other,
        "expanded": (a - b + step / dim) / (2 * s),
        "expanded, wrong sign and extra P": (a - b - step) / (2 * s),
        "expanded, wrong sign": (a - b - step / dim) / (2 * s),
        "no correction": near,
        "term over P for N": near + point.variance / (dim * (s * point.variance + 1)),
    }


TERMS = (
    Point(dim=160, ratio=0.4, variance=1.3, s=-0.3),
    Point(dim=120, ratio=1.7, variance=0.6, s=0.45),
)


def sum_of_terms(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R of the sum of N free rank-one terms, from the exact root for one of them at a large dimension."""
    s, dim = np.array(point.s), point.dim
    spike = point.ratio * point.variance
    z = _roots(s, spike, dim)[0]
    terms = dim / point.ratio
    law = law_at(point)
    return {
        "N (z + 1/s)": terms * (z + 1 / s),
        "R(-s)": law.r_transform(-s),
        "N (z - 1/s)": terms * (z - 1 / s),
        "R(s)": law.r_transform(s),
        "without the ratio": point.variance / (1 + s * point.variance),
    }


ORDERS = 6


def free_cumulants(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Free cumulants of Wishart noise from the moments of its density."""
    x, mass = masses(law_at(point))
    moments = [float((mass * x**k).sum()) for k in range(ORDERS + 1)]
    n = np.arange(1, ORDERS + 1)
    return {
        "from the moments": _cumulants(moments),
        "sigma^(2n) beta^(n-1)": point.variance**n * point.ratio ** (n - 1.0),
        "sigma^(2n) beta^n": point.variance**n * point.ratio**n,
        "sigma^n beta^(n-1)": point.variance ** (n / 2) * point.ratio ** (n - 1.0),
        "moments": moments[1:],
    }


def _cumulants(moments: list[float]) -> list[float]:
    """From m_n = sum_s kappa_s [z^(n-s)] M(z)^s, with M the series of the moments."""
    found: list[float] = []
    for n in range(1, len(moments)):
        series = np.polynomial.Polynomial(moments)
        known = sum(kappa * _coefficient(series**s, n - s) for s, kappa in enumerate(found, start=1))
        found.append(moments[n] - known)
    return found


def _coefficient(series: np.polynomial.Polynomial, power: int) -> float:
    return float(series.coef[power])


WISHART_LAWS = (Point(variance=1.7, ratio=0.6), Point(variance=0.8, ratio=3.1))

TERM_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/rank-one-root",
        entries=("B-B1",),
        source=f"{PAPER}, eqs. (46) to (49)",
        statement=r"s z^2 + (1 - s\lambda) z - \lambda(1 - 1/P) = 0,\quad \lambda = \beta\sigma^2,\ "
        r"W^s = \frac{r r^\top}{N}",
        routes=rank_one_term,
        points=TERMS,
        measured="eigenvalues",
        theory="exact root",
        tolerance=1e-10,
        tolerance_reason="exact; rounding of an eigensolver and of a root near 1/s",
        rivals=("other root", "no correction", "term over P for N"),
        seconds=0.05,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/rank-one-expansion",
        entries=("B-B1",),
        source=f"{PAPER}, eq. (49)",
        statement=r"z = \frac{1}{2 s}\Big[s\lambda - 1 - (s\lambda + 1) + \frac1P \frac{2 s\lambda}{s\lambda + 1}\Big] "
        r"= -\frac1s + \frac{\lambda}{P (s\lambda + 1)}",
        passage=Passage(Standing.MISPRINT, "P (sβσ2 − 1)− P (sβσ2 + 1)− 2Psβσ2 sβσ2+1", "Eq 49"),
        routes=rank_one_term,
        points=TERMS,
        measured="eigenvalues",
        theory="expanded",
        printed="expanded, wrong sign and extra P",
        finding="As our copy reads the last term of the middle line has the wrong sign and a factor P too "
        "many; the last line is right.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P^2 that is left out, 5e-6 here",
        rivals=("no correction", "expanded, wrong sign", "term over P for N"),
        seconds=0.05,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/sum-of-terms",
        entries=("B-B1", "B-B2"),
        source=f"{PAPER}, eq. (50)",
        statement=r"R = N\Big(z + \frac1s\Big) \to \frac{\sigma^2}{1 + s \beta\sigma^2}",
        passage=Passage(Standing.MISPRINT, "N × ( z − 1 s )", "Eq 50"),
        routes=sum_of_terms,
        points=(
            Point(variance=1.7, ratio=0.6, s=(-0.3, 0.2, 1.1), dim=10**6),
            Point(variance=0.8, ratio=3.1, s=(-0.12, 0.7), dim=10**6),
        ),
        measured="N (z + 1/s)",
        theory="R(-s)",
        printed="N (z - 1/s)",
        finding="As our copy reads R = N (z - 1/s), which grows with N; the sign convention of the "
        "appendix gives z + 1/s, and with it the value that Eq 50 has.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P that is left out, 1e-6, and cancellation of nine digits",
        rivals=("R(s)", "without the ratio"),
        seconds=0.01,
        quantity="R transform of Wishart noise",
    ),
    Identity(
        id="granziol2022/free-cumulants",
        entries=("B-B2",),
        source=f"{PAPER}, eq. (50); the cumulants are ours",
        statement=r"R(w) = \frac{\sigma^2}{1 - \beta\sigma^2 w} = \sum_n \kappa_n w^{n-1},\quad "
        r"\kappa_n = \sigma^{2n} \beta^{n-1}",
        passage=OURS,
        routes=free_cumulants,
        points=WISHART_LAWS,
        measured="from the moments",
        theory="sigma^(2n) beta^(n-1)",
        tolerance=1e-10,
        tolerance_reason="moments to rounding; differences of sums up to 30 times the result",
        rivals=("sigma^(2n) beta^n", "sigma^n beta^(n-1)", "moments"),
        seconds=0.02,
        quantity="free cumulants of Wishart noise",
    ),
)

# --- the noise as a whole ------------------------------------------------------------------------------------


def wishart_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of 1 / (z - eigenvalue) for Wishart noise, along a line of complex z."""
    import torch

    from simulate.matrices import ensembles

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
    seconds=0.5,
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


MASS_STEPS = 200_000


def wishart_mass(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mass of the density of eq. (52), corrected and as our copy reads, and the atom at 0."""
    ratio, variance = point.ratio, point.variance
    law = law_at(point)
    bulk = masses(law)[1][:-1].sum()
    atom = max(0.0, 1 - 1 / ratio)
    return {
        "bulk and atom": [bulk + atom, atom],
        "one": [1.0, law.atom],
        "as our copy reads": [_mass_as_read(ratio, variance), 0.0],
        "without 1/pi": [np.pi * bulk + atom, atom],
        "no atom": [bulk, 0.0],
        "bulk of mass one": [1.0 + atom, atom],
    }


def _mass_as_read(ratio: float, variance: float) -> float:
    """Quadrature over the support of the density with x + sigma^2 (1 - beta) and without pi."""
    middle, square = variance * (3 * ratio - 1), (3 * ratio - 1) ** 2 - (1 - ratio) ** 2
    if square <= 0:
        return 0.0
    radius = variance * math.sqrt(square)
    angle = (np.arange(MASS_STEPS) + 0.5) * np.pi / MASS_STEPS
    x = middle - radius * np.cos(angle)
    return float(((radius * np.sin(angle)) ** 2 / (2 * ratio * variance * x)).sum()) * math.pi / MASS_STEPS


def zero_eigenvalues(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Share of zero eigenvalues of one Wishart matrix, counted."""
    x = rng.standard_normal((point.dim, point.samples))
    values = np.linalg.eigvalsh(x @ x.T / point.samples)
    law = MarchenkoPastur(q=point.dim / point.samples, variance=1.0)
    return {
        "counted": float((values < 1e-9 * values[-1]).mean()),
        "1 - 1/beta": law.atom,
        "none": 0.0,
        "1/beta": 1 - law.atom,
    }


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
        "T itself, with the sign of eq. (51)": [
            (1 / at) * _eq_51(1 / at, ratio=point.ratio, variance=point.variance, sign=1) - 1
            for at in point.thetas
        ],
        "additive map": additive.eigenvalue,
    }


WISHART_CLAIMS: tuple[AnyClaim, ...] = (
    *(
        Claim(
            id=f"granziol2022/wishart-transform-{name}",
            entries=("B-B3",),
            source=f"{PAPER}, eq. (51)",
            statement=rf"\mathrm{{{operator}}}\ S(z),\quad S(z) = \frac{{z - \sigma^2(1 - \beta) - "
            r"\sqrt{(z - \sigma^2(1 - \beta))^2 - 4\beta\sigma^2 z}}{2\beta\sigma^2 z}",
            passage=Passage(Standing.MISPRINT, "−(z + σ2(1− β)) +", "Eq 51"),
            experiment=WISHART,
            score=name,
            along="x",
            axis="x",
            predict=lambda p, part=part: part(_corrected_51(p)),
            printed=lambda p, part=part: part(_read_51(p)),
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
        id="granziol2022/wishart-mass",
        entries=("B-B4",),
        source=f"{PAPER}, eq. (52)",
        statement=r"\int \frac{\sqrt{4\beta\sigma^2 x - (x - \sigma^2(1 - \beta))^2}}{2\pi\beta\sigma^2 x}\,dx "
        r"= \min(1, 1/\beta),\quad \text{atom } 1 - 1/\beta \text{ at } 0 \text{ for } \beta > 1",
        passage=Passage(Standing.MISPRINT, "4βσ2y − (y + σ2(1− β))2 2βσ2y", "Eq 52"),
        routes=wishart_mass,
        points=tuple(Point(variance=1.3, ratio=ratio) for ratio in (0.3, 0.6, 3.1)),
        measured="bulk and atom",
        theory="one",
        printed="as our copy reads",
        finding="As our copy reads, without 1/pi and with the sign of Eq 51, the density has a mass of pi "
        "for beta from 1 on, 1.047 at beta = 0.6, and no support below 1/2; the atom is not mentioned.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("without 1/pi", "no atom", "bulk of mass one"),
        seconds=0.05,
        quantity="total mass, and mass at 0",
    ),
    Identity(
        id="granziol2022/zero-eigenvalues",
        entries=("B-B4",),
        source=f"ours, beside {PAPER}, eq. (52)",
        statement=r"\frac1P \#\{i : \lambda_i = 0\} = 1 - \frac1\beta,\quad \beta = P/N > 1",
        passage=OURS,
        routes=zero_eigenvalues,
        points=(Point(dim=90, samples=40), Point(dim=65, samples=52)),
        measured="counted",
        theory="1 - 1/beta",
        tolerance=1e-12,
        tolerance_reason="a count; zeros are told from the rest by nine digits",
        rivals=("none", "1/beta"),
        seconds=0.02,
        quantity="share of zero eigenvalues",
    ),
    Identity(
        id="granziol2022/t-transform",
        entries=("B-B5",),
        source=f"{PAPER}, eq. (53)",
        statement=r"T(z) = z S(z) - 1:\quad T^{-1}(1/\theta) = \sigma^2 (1 + \theta)(1 + \beta/\theta)",
        passage=Passage(Standing.MISPRINT, "λ′i = T ( 1 λi )", "Appendix B, before Eq 53"),
        routes=t_transform,
        points=(
            Point(variance=1.3, ratio=0.4, thetas=(0.9, 2.1, 4.7)),
            Point(variance=0.7, ratio=2.6, thetas=(2.3, 6.1)),
        ),
        measured="inverse of T",
        theory="multiplicative map",
        printed="T itself",
        finding="As our copy reads the outlier is T at 1/theta, which is complex where 1/theta lies in "
        "the bulk; it is the inverse of T there. That is the multiplicative map, not the additive one of "
        "Theorem 7.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("additive map", "T itself, with the sign of eq. (51)"),
        seconds=0.2,
        quantity="outlier in the multiplicative model",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*TERM_CLAIMS, *WISHART_CLAIMS)
