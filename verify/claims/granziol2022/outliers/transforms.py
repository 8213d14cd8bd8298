"""Granziol, Zohren and Roberts (2022), appendices A and B: transforms, freeness, one spike, Wishart noise."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import outliers, rmt
from theory.rmt import MarchenkoPastur, Semicircle
from verify.claims import Array
from verify.claims.granziol2022 import PAPER
from verify.model import Arrays, Claim, Experiment, Identity, as_stated, misprint

Law = Semicircle | MarchenkoPastur

STEPS = 4000

QUADRATURE = "trapezoids in the angle, which converge geometrically off the spectrum; a root to rounding"
"""The reason for a tolerance on what is found here."""


def law_at(p: Point) -> Law:
    """The semicircle, or the law of Wishart noise where the point has a ratio."""
    return (
        MarchenkoPastur(q=p.ratio, variance=p.variance) if "ratio" in p else Semicircle(variance=p.variance)
    )


def masses(law: Law) -> tuple[Array, Array]:
    """Points of the spectrum with their masses; an atom at 0 is the last of them."""
    low, high = law.edges
    angle = (np.arange(STEPS) + 0.5) * np.pi / STEPS
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    mass = law.pdf(x) * (high - low) / 2 * np.sin(angle) * np.pi / STEPS
    return np.append(x, 0.0), np.append(mass, law.atom)


def transform(law: Law, z: Any, power: int = 1) -> Any:
    """Integral of rho(x) / (z - x)^power, of the shape of z."""
    x, mass = masses(law)
    return (mass / (np.asarray(z)[..., None] - x) ** power).sum(axis=-1)


def inverse(law: Law, values: Any) -> Array:
    """Arguments above the spectrum at which the transform takes these values."""
    return np.array([root_above(law, lambda z, at=at: transform(law, z) - at) for at in values])


def root_above(law: Law, function: Callable[[float], float]) -> float:
    """Zero of a function above the spectrum."""
    edge = law.edges[1]
    return root(function, edge * (1 + 1e-3), edge * 1e4)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Zero of a function between two numbers."""
    from scipy import optimize

    solver: Any = optimize
    return float(solver.brentq(function, low, high, xtol=1e-14, rtol=1e-14))


# --- appendix A.1: transforms and freeness -------------------------------------------------------------------


def blue_function(_: Generator, point: Point) -> Arrays:
    """R from the inverse of the transform of the density, at several w, and in closed form."""
    law, w = law_at(point), np.array(point.w)
    z = inverse(law, w)
    return {
        "inverse less 1/w": z - 1 / w,
        "R": law.r_transform(w),
        "inverse plus 1/w": z + 1 / w,
        "standard deviation for variance": law.r_transform(w) / math.sqrt(point.variance),
        "inverse": z,
    }


LAWS = (
    Point(variance=1.7, w=(0.13, 0.31, 0.47)),
    Point(variance=0.6, ratio=0.3, w=(0.21, 0.55, 0.83)),
    Point(variance=1.3, ratio=2.7, w=(0.04, 0.09, 0.14)),
)


def inverse_derivative(_: Generator, point: Point) -> Arrays:
    """Derivative of the blue function 1/w + R(w) at w = S(z), for z beyond the spectrum."""
    law = law_at(point)
    z = law.edges[1] * np.array([1.1, 1.7, 3.3])
    w = law.stieltjes(z)
    slopes = -transform(law, z, 2)
    return {
        "B'(S)": -1 / w**2 + np.imag(law.r_transform(w + 1e-20j)) / 1e-20,
        "1/S'": 1 / slopes,
        "1/S": 1 / w,
        "S'": slopes,
    }


def mixed_moment(block: Block, point: Point) -> Arrays:
    """Normalised trace of A^2 B^2 A^2 B^2 for two independent Gaussian matrices."""
    a, b = (s * ensembles.wigner(block, point.dim) for s in (point.sigma_a, point.sigma_b))
    product = a @ a @ b @ b
    return {"moment": (product * product.mT).sum((1, 2)) / point.dim}


MIXED = Experiment(
    id="granziol2022/mixed-moment",
    replicate="two independent Gaussian matrices",
    simulate=mixed_moment,
    points=(Point(dim=90, sigma_a=1.1, sigma_b=0.8),),
    budget=8192,
    seconds=0.94,
)


def _mixed_moment(p: Point) -> Any:
    return rmt.alternating_moment(sigma_a=p.sigma_a, sigma_b=p.sigma_b, dim=p.dim)


def subordination(_: Generator, point: Point) -> Arrays:
    """Shift of the argument by noise: z - u, where the transform of A at u equals that of A + noise at z.

    A and the noise are free semicircles, so the sum is one of their variances' sum.
    """
    signal, noise = Semicircle(variance=point.signal), Semicircle(variance=point.noise)
    total = Semicircle(variance=point.signal + point.noise)
    z = total.edges[1] * np.array([1.2, 1.9, 4.1])
    w = transform(total, z)
    u = inverse(signal, w)
    return {
        "z - u": z - u,
        "B_noise(S_M) - 1/S_M": noise.r_transform(w),
        "B_A(S_M) - 1/S_M": signal.r_transform(w),
        "B_noise(S_M)": noise.r_transform(w) + 1 / w,
    }


FREENESS = (
    Identity(
        id="granziol2022/blue-function",
        entries=("B-A1",),
        source=f"{PAPER}, eqs. (27) to (29), definition 8, theorem 9, eq. (33)",
        statement=r"R(w) = S^{-1}(w) - \frac1w = \sigma^2 w \ \text{(semicircle)},\ "
        r"\frac{\sigma^2}{1 - \beta\sigma^2 w} \ \text{(Wishart)}",
        says="The inverse Stieltjes transform, less one over its argument, is the known R transform of the "
        "semicircle and of Wishart noise.",
        routes=blue_function,
        points=LAWS,
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        seconds=0.17,
        quantity="R transform",
    ),
    Identity(
        id="granziol2022/inverse-derivative",
        entries=("B-A3",),
        source=f"{PAPER}, appendix A.2, after eq. (40)",
        statement=r"\mathcal B'(S(z)) = 1 / S'(z)",
        says="The derivative of the inverse Stieltjes transform is one over that of the transform, everywhere beyond "
        "the spectrum.",
        passage=misprint("using that B′ε(Sε)(z)) = 1 Sε(z)", "Appendix A.2, before Eq 41", slip=True),
        routes=inverse_derivative,
        points=LAWS,
        printed="1/S",
        reads=r"\mathcal B'_\epsilon(S_\epsilon(z)) = \frac{1}{S_\epsilon(z)}",
        finding="As our copy reads the derivative of the inverse function is 1/S(z); it is 1/S'(z), with "
        "which Eq 41 follows.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        seconds=0.01,
        quantity="derivative of the blue function",
    ),
    Identity(
        id="granziol2022/subordination",
        entries=("B-A3",),
        source=f"{PAPER}, eq. (40)",
        statement=r"S_M(z) = S_A(u):\quad z = u + \mathcal B_\varepsilon(S_M(z)) - \frac{1}{S_M(z)}",
        says="The Stieltjes transform of a free sum is the signal's at an argument from which the noise's R "
        "transform is taken off.",
        passage=misprint("z = BA(SM (z)) +", "Eq 40"),
        routes=subordination,
        points=(Point(signal=0.7, noise=1.3), Point(signal=2.6, noise=0.4)),
        printed="B_A(S_M) - 1/S_M",
        reads=r"z = \mathcal B_A(S_M(z)) + \frac{\lambda_1}{N (1 - \lambda_1 S_M(z))} + O(N^{-2})",
        finding="As our copy reads the blue function on the right is that of A; it is that of the noise, with which "
        "Eq 41 follows.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        seconds=0.016,
        quantity="shift of the argument by the noise",
    ),
    Claim(
        id="granziol2022/mixed-moment",
        entries=("B-A2",),
        source=f"{PAPER}, eqs. (34) and (35); the value at finite size is ours",
        statement=r"\psi(A^2 B^2 A^2 B^2) = \psi(A^4)\psi(B^2)^2 + \psi(A^2)^2\psi(B^4) - \psi(A^2)^2\psi(B^2)^2 "
        r"= 3\,\sigma_A^4\sigma_B^4 + \tfrac{15}{P}\,\sigma_A^4\sigma_B^4 + O(P^{-2})",
        says="The alternating moment of squares of two independent Gaussian matrices is that of free ones, exactly "
        "corrected for finite dimension.",
        passage=as_stated("if they satisfy for any integers n1..nk", "Eq 35"),
        experiment=MIXED,
        score="moment",
        predict=_mixed_moment,
        printed=lambda p: p.sigma_a**4 * p.sigma_b**4,
        reads=r"\psi(A^{n_1} B^{n_2} A^{n_3} B^{n_4}) = \psi(A^{n_1}) \psi(B^{n_2}) \psi(A^{n_3}) \psi(A^{n_4})",
        finding="Alternating moments of centred matrices are said to factorise for all powers (the last factor, "
        "printed of A, read as one of B). Only words of centred powers do, and they vanish: two semicircles give 3, "
        "where the product of the moments is 1.",
        margin=0.01,
        margin_reason="exact at every size; at most 1 % for random matrices",
        rivals={
            "limit of infinite size": lambda p: 3 * p.sigma_a**4 * p.sigma_b**4,
            "last factor of A, as our copy reads": lambda p: p.sigma_a**6 * p.sigma_b**2,
            "commuting: fourth moments": lambda p: 4 * p.sigma_a**4 * p.sigma_b**4,
            "without the last term": lambda p: _mixed_moment(p) + p.sigma_a**4 * p.sigma_b**4,
        },
        quantity="normalised trace of the word",
    ),
)

# --- appendix A.2: one spike ---------------------------------------------------------------------------------


def rank_one_transform(_: Generator, point: Point) -> Arrays:
    """Transform of the matrix lambda v v^T of dimension N, from its eigenvalues, at complex u."""
    u, spike = complex(*point.u), point.spike
    v = np.cos(np.arange(point.dim))
    eigenvalues = np.linalg.eigvalsh(spike * np.outer(v, v) / (v @ v))
    correction = spike / u / (1 - spike / u) / point.dim
    return {
        "eigenvalues": np.mean(1 / (u - eigenvalues)),
        "(1 + correction) / u": rmt.rank_one_stieltjes(u, spike=spike, dim=point.dim),
        "1/u + correction": 1 / u + correction,
        "no correction": 1 / u,
        "rank in full": (1 + point.dim * correction) / u,
    }


SPIKE_CLAIMS = (
    Identity(
        id="granziol2022/rank-one-transform",
        symbols={"N": "dimension of the matrix"},
        entries=("B-A3",),
        source=f"{PAPER}, eqs. (37) and (38)",
        statement=r"S_A(u) = \frac1u \Big[1 + \frac1N \frac{\lambda/u}{1 - \lambda/u}\Big]",
        says="The Stieltjes transform of a rank-one matrix differs from one over its argument by a share of one over "
        "the dimension.",
        passage=misprint("1 u [ 1 + 1 N λ1 1− u−1λ1 ]", "Eq 38"),
        routes=rank_one_transform,
        points=(Point(dim=40, spike=1.7, u=(2.3, 0.7)), Point(dim=12, spike=-0.9, u=(0.6, -1.2))),
        printed="1/u + correction",
        reads=r"\frac1u \Big[1 + \frac1N \frac{\lambda_1}{1 - u^{-1} \lambda_1}\Big]",
        finding="As our copy reads the correction in the bracket lacks the factor 1/u that the sum on the "
        "left gives.",
        tolerance=1e-12,
        tolerance_reason="exact; rounding of an eigensolver",
        seconds=0.01,
        quantity="Stieltjes transform of a rank-one matrix",
    ),
)


def wishart_transform(block: Block, point: Point) -> Arrays:
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


def _eq_51(z: complex, *, ratio: float, variance: float) -> complex:
    """Transform with z + sigma^2 (1 - beta), on the branch that decays."""
    shifted = z + variance * (1 - ratio)
    root = cmath.sqrt(shifted**2 - 4 * ratio * variance * z)
    return (shifted - (root if (root * shifted.conjugate()).real > 0 else -root)) / (2 * ratio * variance * z)


def _wishart_point(p: Point) -> complex:
    return p.x + 1j * p.height


def _law_51(p: Point, ratio: float) -> complex:
    return complex(MarchenkoPastur(q=ratio, variance=p.variance).stieltjes(_wishart_point(p)))


def _semicircle_51(p: Point) -> complex:
    width = math.sqrt(p.dim / p.samples) * p.variance
    return complex(Semicircle(sigma=width).stieltjes(_wishart_point(p) - p.variance))


def t_transform(_: Generator, point: Point) -> Arrays:
    """Points z with T(z) = z S(z) - 1 = 1/theta for Wishart noise, and those of other readings of eq. (53)."""
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
            (1 / at) * _eq_51(1 / at, ratio=point.ratio, variance=point.variance) - 1 for at in point.thetas
        ],
    }


# --- eqs. (46) to (50): one rank-one term, and the sum of them -----------------------------------------------


def expanded_roots(rng: Generator, point: Point) -> Arrays:
    """Point at which the transform of one term is s, and the root expanded to first order in 1/P."""
    dim, s = point.dim, point.s
    spike = point.ratio * point.variance
    a, b = s * spike - 1, s * spike + 1
    step, near = 2 * s * spike / b, -1 / s
    return {
        "eigenvalues": _of_one_term(rng, point),
        "expanded": rmt.rank_one_expansion(s, spike=spike, dim=dim),
        "expanded, wrong sign and extra P": (a - b - step) / (2 * s),
        "no correction": near,
        "expanded, wrong sign": (a - b - step / dim) / (2 * s),
        "term over P for N": near + point.variance / (dim * (s * point.variance + 1)),
    }


def _of_one_term(rng: Generator, point: Point) -> float:
    """Point z at which the mean of 1 / (eigenvalue - z), over the eigenvalues of one term, is s."""
    dim, s = point.dim, point.s
    r = rng.standard_normal(dim)
    r *= math.sqrt(dim * point.variance) / np.linalg.norm(r)
    eigenvalues = np.linalg.eigvalsh(np.outer(r, r) * point.ratio / dim)

    def excess(z: float) -> float:
        return float(np.mean(1 / (eigenvalues - z))) - s

    near = -1 / s
    return root(excess, *sorted((0.9 * near, 1.2 * near)))


TERMS = (
    Point(dim=160, ratio=0.4, variance=1.3, s=-0.3),
    Point(dim=120, ratio=1.7, variance=0.6, s=0.45),
)


def sum_of_terms(_: Generator, point: Point) -> Arrays:
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


CLAIMS = (
    *FREENESS,
    *SPIKE_CLAIMS,
    Identity(
        id="granziol2022/rank-one-expansion",
        entries=("B-B1",),
        source=f"{PAPER}, eq. (49)",
        statement=r"z = \frac{1}{2 s}\Big[s\lambda - 1 - (s\lambda + 1) + \frac1P \frac{2 s\lambda}{s\lambda + 1}\Big] "
        r"= -\frac1s + \frac{\lambda}{P (s\lambda + 1)}",
        says="For large dimension the inverse Stieltjes transform of one rank-one term is its pole plus a correction "
        "of one over the dimension.",
        passage=misprint("P (sβσ2 − 1)− P (sβσ2 + 1)− 2Psβσ2 sβσ2+1", "Eq 49"),
        routes=expanded_roots,
        points=TERMS,
        printed="expanded, wrong sign and extra P",
        reads=r"z \approx \frac{P (s \beta\sigma^2 - 1) - P (s \beta\sigma^2 + 1) - \frac{2 P s \beta\sigma^2}{s "
        r"\beta\sigma^2 + 1}}{2 P s}",
        finding="As our copy reads the last term of the middle line has the wrong sign and a factor P too many; the "
        "last line is right.",
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
        passage=misprint("N × ( z − 1 s )", "Eq 50"),
        routes=sum_of_terms,
        points=(
            Point(variance=1.7, ratio=0.6, s=(-0.3, 0.2, 1.1), dim=10**6),
            Point(variance=0.8, ratio=3.1, s=(-0.12, 0.7), dim=10**6),
        ),
        printed="N (z - 1/s)",
        reads=r"R_{W_P}(s) = N \times \Big(z - \frac1s\Big)",
        finding="As our copy reads R = N (z - 1/s), which grows with N; the appendix's sign convention gives z + "
        "1/s, and with it the value of Eq 50.",
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
        says="For large dimension the real part of a Wishart matrix's Stieltjes transform is the Marchenko-Pastur "
        "law's.",
        passage=misprint("−(z + σ2(1− β)) +", "Eq 51"),
        experiment=WISHART,
        score="real",
        along="x",
        axis="x",
        predict=lambda p: _law_51(p, p.dim / p.samples).real,
        printed=lambda p: _eq_51(_wishart_point(p), ratio=p.dim / p.samples, variance=p.variance).real,
        reads=r"S_{W_P} = \frac{-(z + \sigma^2 (1 - \beta)) + "
        r"\sqrt{(z + \sigma^2 (1 - \beta))^2 - 4 \beta\sigma^2 z}}{2 \beta\sigma^2 z}",
        finding="As our copy reads z + sigma^2 (1 - beta), where Eq 50 gives minus; the two agree at "
        "beta = 1 only.",
        margin=0.004,
        relative=False,
        margin_reason="1 % of the largest modulus on this line; finite size is O(1/P)",
        rivals={
            "ratio upside down": lambda p: _law_51(p, p.samples / p.dim).real,
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
        says="The inverse T transform of Wishart noise gives the outlier of the multiplicative model, not of the "
        "additive one.",
        passage=misprint("λ′i = T ( 1 λi )", "Appendix B, before Eq 53"),
        routes=t_transform,
        points=(
            Point(variance=1.3, ratio=0.4, thetas=(0.9, 2.1, 4.7)),
            Point(variance=0.7, ratio=2.6, thetas=(2.3, 6.1)),
        ),
        printed="T itself",
        reads=r"\lambda'_i = T\Big(\frac{1}{\lambda_i}\Big)",
        finding="As our copy reads the outlier is T at 1/theta, which is complex where that lies in the bulk; it is "
        "the inverse of T there. That is the multiplicative map, not the additive one of Theorem 7.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        seconds=0.016,
        quantity="outlier in the multiplicative model",
    ),
)
