"""Granziol, Zohren and Roberts (2022), appendix A: R transforms, freeness, and a spike in free noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import rmt
from theory.rmt import Semicircle
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.law_quadrature import QUADRATURE, inverse, law_at, transform
from verify.model import AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS"]

# --- appendix A.1: transforms and freeness -------------------------------------------------------------------


def blue_function(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
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


def inverse_derivative(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
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


def mixed_moment(block: Block, point: Point) -> Mapping[str, Any]:
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


def _mixed_moment(p: Point) -> float:
    return float(rmt.alternating_moment(sigma_a=p.sigma_a, sigma_b=p.sigma_b, dim=p.dim))


def subordination(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """What the noise adds to the argument: z less the u at which the transform of A is that of the sum A + noise.

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


FREENESS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/blue-function",
        entries=("B-A1",),
        source=f"{PAPER}, eqs. (27) to (29), definition 8, theorem 9, eq. (33)",
        statement=r"R(w) = S^{-1}(w) - \frac1w = \sigma^2 w \ \text{(semicircle)},\ "
        r"\frac{\sigma^2}{1 - \beta\sigma^2 w} \ \text{(Wishart)}",
        says="The inverse of the Stieltjes transform, less one over its argument, is the known R transform of the "
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
        says="The derivative of the inverse Stieltjes transform is one over the derivative of the transform "
        "itself, everywhere beyond the spectrum.",
        passage=Passage(
            Standing.MISPRINT, "using that B′ε(Sε)(z)) = 1 Sε(z)", "Appendix A.2, before Eq 41", slip=True
        ),
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
        says="The Stieltjes transform of a free sum is that of the signal at an argument from which the R "
        "transform of the noise is taken off.",
        passage=Passage(Standing.MISPRINT, "z = BA(SM (z)) +", "Eq 40"),
        routes=subordination,
        points=(Point(signal=0.7, noise=1.3), Point(signal=2.6, noise=0.4)),
        printed="B_A(S_M) - 1/S_M",
        reads=r"z = \mathcal B_A(S_M(z)) + \frac{\lambda_1}{N (1 - \lambda_1 S_M(z))} + O(N^{-2})",
        finding="As our copy reads the blue function on the right is that of the matrix A; it is that of "
        "the noise, with which Eq 41 follows.",
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
        says="The alternating moment of the squares of two independent Gaussian matrices is that of free matrices, "
        "with its exact correction for finite dimension.",
        passage=Passage(Standing.AS_STATED, "if they satisfy for any integers n1..nk", "Eq 35"),
        experiment=MIXED,
        score="moment",
        predict=_mixed_moment,
        printed=lambda p: p.sigma_a**4 * p.sigma_b**4,
        reads=r"\psi(A^{n_1} B^{n_2} A^{n_3} B^{n_4}) = \psi(A^{n_1}) \psi(B^{n_2}) \psi(A^{n_3}) \psi(A^{n_4})",
        finding="Alternating moments of centred matrices are said to factorise for all powers (the last factor, which "
        "our copy prints of A, is read as one of B). Only words of centred powers do, and they vanish: two semicircles "
        "give 3, where the product of the moments is 1.",
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


def rank_one_transform(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
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


def spike_in_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """Real part of N times the difference of the transforms with and without a spike, at one complex z.

    A multiple of v' W v, which has mean exactly 0, is taken out: most of its variance.
    """
    import torch

    noise = point.sigma * ensembles.wigner(block, point.dim)
    v = ensembles.unit_vectors(block, point.dim)
    z = complex(*point.z)
    with_spike, without = (
        (1 / (z - torch.linalg.eigvalsh(m))).sum(dim=1)
        for m in (ensembles.spiked(noise, v, point.spike), noise)
    )
    first_order = torch.einsum("ni,nij,nj->n", v, noise, v)
    return {"real": (with_spike - without).real - point.taken_out[0] * first_order}


SPIKED = Experiment(
    id="granziol2022/spike-in-transform",
    replicate="one noise matrix with one direction",
    simulate=spike_in_transform,
    points=(Point(dim=160, spike=2.3, sigma=0.9, z=(4.1, 1.3), taken_out=(-0.016, -0.191)),),
    budget=2048,
    seconds=0.45,
)


def _spike_in_transform(p: Point, *, denominator: float = 1.0) -> complex:
    """-lambda S' / (1 - lambda S), with S' = S^2 / (sigma^2 S^2 - 1) of the semicircle."""
    s = complex(Semicircle(sigma=p.sigma).stieltjes(complex(*p.z)))
    slope = s**2 / (p.sigma**2 * s**2 - 1)
    return -p.spike * slope / (1 - denominator * p.spike * s)


SPIKE_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/rank-one-transform",
        symbols={"N": "dimension of the matrix"},
        entries=("B-A3",),
        source=f"{PAPER}, eqs. (37) and (38)",
        statement=r"S_A(u) = \frac1u \Big[1 + \frac1N \frac{\lambda/u}{1 - \lambda/u}\Big]",
        says="The Stieltjes transform of a rank-one matrix differs from one over its argument by a relative "
        "correction of one over the dimension.",
        passage=Passage(Standing.MISPRINT, "1 u [ 1 + 1 N λ1 1− u−1λ1 ]", "Eq 38"),
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
    Claim(
        id="granziol2022/spike-in-transform-real",
        entries=("B-A3",),
        source=f"{PAPER}, eqs. (39) to (42)",
        statement=r"\mathrm{Re}:\quad P\,(S_M(z) - S_\varepsilon(z)) \to "
        r"\frac{-\lambda S_\varepsilon'(z)}{1 - \lambda S_\varepsilon(z)}",
        says="For large dimension a spike moves the real part of the noise's Stieltjes transform by one over "
        "the dimension times a closed form with its pole at the outlier.",
        experiment=SPIKED,
        score="real",
        predict=lambda p: _spike_in_transform(p).real,
        margin=0.0027,
        relative=False,
        margin_reason="1 % of the modulus, 0.27; finite size is O(1/P)",
        rivals={
            "first order in the spike": lambda p: _spike_in_transform(p, denominator=0.0).real,
            "plus in the denominator": lambda p: _spike_in_transform(p, denominator=-1.0).real,
            "spike without the noise": lambda p: (1 / (complex(*p.z) - p.spike) - 1 / complex(*p.z)).real,
            "not multiplied by N": lambda p: _spike_in_transform(p).real / p.dim,
        },
        quantity="real part of P times the difference, first-order noise (mean 0) left out",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*FREENESS, *SPIKE_CLAIMS)
