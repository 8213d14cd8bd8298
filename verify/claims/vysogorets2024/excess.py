"""Vysogorets, Dawid and Kempe (2024): the excess of positive curvature, and probes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    NoTheory,
)
from verify.model.domains import Between

# --- the excess itself ---------------------------------------------------------------------------------------


def _excess(matrix: Any) -> float:
    return float(curvature.positive_excess(matrix))


def excess_against_share(rng: Generator, point: Point) -> Arrays:
    """Excess of a rotated spectrum, its share of positive eigenvalues, and what that would make of the excess."""
    import torch

    values = np.repeat(point.eigenvalues, point.multiplicities)
    share, frame = float((values > 0).mean()), curvature.haar(rng, len(values), len(values))
    return {
        "excess": _excess(frame.T @ torch.diag(torch.from_numpy(values)) @ frame),
        "sum over root of squares": gauss_newton.spectrum_excess(values),
        "all of one size": (2 * share - 1) * math.sqrt(len(values)),
        "share": share,
    }


SHARE_CLAIM = Identity(
    id="vysogorets2024/excess-is-no-share",
    entries=("A4",),
    source=f"ours, beside section 2 of {PAPER}, which has either detect the zone",
    passage=OURS,
    statement=r"\mathrm{exc}(\mathrm{diag}(1 \times 98, -100, -50)) = -52/\sqrt{12598} "
    r"\text{ with } 98\,\% \text{ positive eigenvalues}",
    says="A matrix with nearly all eigenvalues positive can have a negative excess, as an explicit spectrum "
    "shows.",
    routes=excess_against_share,
    points=(Point(eigenvalues=(1.0, -100.0, -50.0), multiplicities=(98, 1, 1)),),
    tolerance=1e-12,
    tolerance_reason="rounding of a rotation in a hundred dimensions",
    seconds=0.01,
    quantity="excess of positive curvature",
)


# --- larger dimensions, larger excess ------------------------------------------------------------------------


class _Growth(NamedTuple):
    """Excess of the mean G-term as a dense matrix in d and in d + 1 dimensions; Gamma; Eq. (8) and its ceiling."""

    here: float
    further: float
    gamma: float
    law: float
    ceiling: float


def _expected(rng: Generator, point: Point) -> _Growth:
    import torch

    p = torch.softmax(torch.from_numpy(point.sharpness * rng.standard_normal(point.classes)), 0)
    covariance, dim = torch.diag(p) - torch.outer(p, p), point.classes + point.beyond

    def dense(size: int) -> float:
        means = math.sqrt(size) * point.sigma_c * curvature.haar(rng, size, point.classes)
        noise = point.sigma_e**2 * covariance.trace() * torch.eye(size, dtype=p.dtype)
        return _excess(means @ covariance @ means.T + noise)

    gamma = float(softmax.gamma(p.numpy()))
    law, ceiling = (
        float(of(gamma, dim=dim, sigma_c=point.sigma_c, sigma_e=point.sigma_e))
        for of in (gauss_newton.expected_excess, gauss_newton.excess_ceiling)
    )
    return _Growth(dense(dim), dense(dim + 1), gamma, law, ceiling)


def _not_growing(rng: Generator, point: Point) -> float:
    found = _expected(rng, point)
    flat = float(found.further <= found.here)  # it is to grow, not just not to fall
    return max(flat, found.here / found.ceiling - 1, abs(found.here / found.law - 1))


def _of_growth(violation: Callable[[_Growth, int], float]) -> Callable[[Generator, Point], float]:
    """Return a violation of the growth of the excess, in the dimension of the point."""
    return lambda rng, point: violation(_expected(rng, point), point.classes + point.beyond)


GROWTH_CLAIM = ExactProperty(
    id="vysogorets2024/growth-with-dimension",
    entries=("A31",),
    source=f"{PAPER}, section 4, figure 4 left; the ceilings are ours",
    statement=r"\mathrm{exc}(\mathbb{E}_e G)\big|_{d + 1} > \mathrm{exc}(\mathbb{E}_e G)\big|_d,\quad "
    r"\mathrm{exc}(\mathbb{E}_e G) \le \min\big(\Gamma_p (1 + \sigma_e^2/\sigma_c^2), \sqrt d\big)",
    says="The excess of the random model's mean Gauss-Newton term grows strictly with the dimension, below "
    "ceilings of dimension and gradient variances.",
    domain={
        "classes": Between(2, 6),
        "beyond": Between(0, 40),
        "sigma_c": Between(0.1, 3.0),
        "sigma_e": Between(0.1, 3.0),
        "sharpness": Between(0.0, 4.0),
    },
    violation=_not_growing,
    examples=(
        Point(classes=5, beyond=45, sigma_c=1.0, sigma_e=2.0, sharpness=0.7),
        Point(classes=3, beyond=6, sigma_c=1.6, sigma_e=0.7, sharpness=2.3),
    ),
    tolerance=1e-11,
    tolerance_reason="rounding of a dense matrix in up to fifty dimensions",
    rivals={
        "the same in every dimension": _of_growth(lambda f, _: abs(f.further - f.here)),
        "at most Gamma": _of_growth(lambda f, _: f.here / f.gamma - 1),
        "as the root of the dimension": _of_growth(
            lambda f, d: abs(f.further / f.here - math.sqrt((d + 1) / d))
        ),
    },
    seconds=0.017,
)


# --- probes of random matrices -------------------------------------------------------------------------------


def _probes(block: Block, point: Point) -> Arrays:
    """Means over probes of x'Hx and |Hx|^2 for one matrix each, next to the exact values."""
    matrices = _matrices(block, point)
    lengths = (block.normal(point.probes, point.dim) @ matrices).square().sum(2)
    scores = {
        "trace": matrices.diagonal(dim1=1, dim2=2).sum(1),
        "square": matrices.square().sum((1, 2)),
        "length": lengths.sqrt().mean(1),
    }
    for name, power in (("sign_form", 1), ("sign_length", 2)):
        found = [
            spectra.trace(matrix, rng, probes=point.probes, power=power).value
            for matrix, rng in zip(matrices, block.streams, strict=True)
        ]
        scores[name] = np.array(found)
    return scores


def _matrices(block: Block, point: Point) -> Any:
    """Symmetric noise with a strong diagonal, and spikes in random directions."""
    import torch

    noise = point.noise * ensembles.wigner(block, point.dim) * math.sqrt(point.dim)
    own = torch.diag_embed(point.diagonal * block.normal(point.dim) + point.mean)
    frame = ensembles.haar_frames(block, point.dim, point.rank)[:, 0]
    return noise + own + point.spike * frame @ frame.mT


TYPICAL = {"trace": 111.0, "square": 550.0, "length": 23.1}
"""Typical values of the matrices below, to two or three digits, for margins and rivals."""

PROBES = Experiment(
    id="vysogorets2024/hutchinson-probes",
    replicate="one symmetric matrix with 96 probes of signs and 96 normal ones",
    simulate=_probes,
    points=(Point(dim=70, probes=96, noise=0.12, diagonal=1.6, mean=1.3, spike=6.6, rank=3),),
    budget=8192,
    seconds=1.4,
)

CLAIMS = (
    SHARE_CLAIM,
    GROWTH_CLAIM,
    Claim(
        id="vysogorets2024/hutchinson-norm",
        entries=("A58",),
        source=f"{PAPER}, appendix F",
        no_theory=NoTheory.MEASURED,
        statement=r"\mathbb{E}\,\|H x\|^2 = \|H\|_F^2,\quad x_i = \pm 1",
        says="Averaged over random signs, the squared length of a matrix-vector product is the squared Frobenius "
        "norm.",
        experiment=PROBES,
        score="sign_length",
        inputs=TYPICAL,
        predict=lambda p: p.square,
        margin=0.01,
        margin_reason="an unbiased mean over probes; at most 1 % for random matrices",
        rivals={
            "squared trace": lambda p: p.trace**2,
            "square of the mean length": lambda p: p.length**2,
        },
        quantity="squared norm of the matrix",
    ),
)
