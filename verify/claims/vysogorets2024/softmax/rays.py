"""Vysogorets, Dawid and Kempe (2024): Gamma along temperature rays and against entropy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import softmax
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.softmax.softmax import dense_gamma
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Passage,
    Standing,
    Tier,
)
from verify.model.domains import Between, Domain, Either, Many, OneOf

__all__ = ["CLAIMS"]

Array = NDArray[Any]

ROUNDING = "exact; a few roundings in float64"

BETWEEN_RAYS: dict[str, Any] = {
    "reads": r"\Gamma_p \text{ monotonic with respect to the entropy of } p",
    "passage": Passage(
        Standing.OUTSIDE, "produced by scaling 30 different logit sets", "caption of Figure 4, right"
    ),
    "finding": "Outside of the rays of Figure 4, each of one set of logits, entropy and Gamma may order two "
    "predictions differently; along each ray Gamma is monotone, as the paper says, and that is a theorem.",
}


def _entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


# --- against entropy -----------------------------------------------------------------------------------------


def _discordant(entropy: Array, gamma: Array) -> float:
    """Share of pairs that the two order differently."""
    order = np.sign(np.subtract.outer(entropy, entropy) * np.subtract.outer(gamma, gamma))
    return float((order < 0).sum() / (len(gamma) * (len(gamma) - 1)))


def pairs_of_distributions(block: Block, point: Point) -> Mapping[str, Any]:
    """Discordant pairs among distributions drawn uniformly from the simplex."""
    found = []
    for rng in block.streams:
        p = rng.dirichlet(np.ones(point.classes), point.draws)
        found.append(_discordant(_entropy(p), dense_gamma(p)))
    return {"discordant": np.array(found)}


PAIRS = Experiment(
    id="vysogorets2024/pairs-of-distributions",
    replicate="64 probability vectors, uniform on the simplex",
    simulate=pairs_of_distributions,
    on_host="all of it, in numpy",
    points=(Point(classes=4, draws=64), Point(classes=10, draws=64)),
    budget=4096,
    seconds=0.051,
    tier=Tier.SMOKE,
)


ORDER = Claim(
    id="vysogorets2024/order-by-entropy",
    entries=("A34",),
    source=f"{PAPER}, section 4, figure 4 right, between its rays: any two predictions",
    statement=r"\Pr\big[(H(p) - H(q)) (\Gamma_p - \Gamma_q) < 0\big] = 0.128\ (K = 4),\ 0.036\ (K = 10)",
    says="Of two predictions drawn uniformly from the simplex, entropy and excess of the softmax covariance disagree "
    "on the order with a probability that depends on the number of classes.",
    experiment=PAIRS,
    score="discordant",
    predict=lambda p: softmax.entropy_discordance(p.classes),
    printed=lambda _: 0.0,
    **BETWEEN_RAYS,
    margin=0.004,
    margin_reason="seven times what seven times the points change in the integral",
    relative=False,
    rivals={
        "no association": lambda _: 0.5,
        "whatever the number of classes": lambda _: softmax.entropy_discordance(4),
    },
    quantity="share of pairs that entropy and Gamma order differently",
)


# --- along rays ----------------------------------------------------------------------------------------------


def _gamma_of_pairs(logits: Array) -> Array:
    """Gamma from the weights p_i p_j of pairs alone, (..., K) -> (...): nothing is subtracted, the scale drops out."""
    weights = logits[..., :, None] + logits[..., None, :]
    weights = np.where(np.eye(logits.shape[-1], dtype=bool), -np.inf, weights)
    weights = np.exp(weights - weights.max((-2, -1), keepdims=True))
    degrees = weights.sum(-1)
    return degrees.sum(-1) / np.sqrt(np.square(degrees).sum(-1) + np.square(weights).sum((-2, -1)))


BETAS = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 61)])


LOGITS: Domain = {
    "logits": Many(Either(OneOf(0.0, 1.0, 1.25), Between(-5.0, 5.0)), 2, 12),
    "scale": Between(0.01, 30.0),
}


def _rays(rng: np.random.Generator, point: Point) -> Array:
    """The logits of a point and 40 random ones of its size, a third of their entries tied: (41, K), largest 0.

    The pairs of the largest with the others, all that counts at low temperature, are then not rounded.
    """
    count = len(point.logits)
    drawn = rng.standard_normal((40, count)) * point.scale
    tied = rng.random((40, count)) < 0.3
    rays = np.vstack([point.logits, np.where(tied, drawn[:, :1], drawn)])
    return rays - rays.max(axis=1, keepdims=True)


def _rise(gammas: Array) -> float:
    """Largest rise from one inverse temperature to the next, along axis 0."""
    return max(0.0, float(np.diff(gammas, axis=0).max()))


def falls_along_rays(rng: np.random.Generator, point: Point) -> float:
    """Largest rise of Gamma by two routes, their largest difference, and the largest rise of the entropy."""
    rays = BETAS[:, None, None] * _rays(rng, point)
    found, pairs = softmax.gamma_from_logits(rays / 8, temperature=1 / 8), _gamma_of_pairs(rays)
    p = np.exp(rays)
    entropy = _entropy(p / p.sum(-1, keepdims=True))
    return max(_rise(found), _rise(pairs), float(np.abs(found - pairs).max()), _rise(entropy))


def _rise_of_the_mean(_: np.random.Generator, point: Point) -> float:
    """The same of the mean matrix over ten copies of the first two logits and one of the others."""
    z = np.zeros((11, 4))
    z[:10, 2:] = z[10, :2] = -1e6
    z[:10, 0], z[10, 2] = point.scale, point.scale / 2
    return _rise(softmax.batch_gammas_from_logits(z, temperature=1 / BETAS[1:]).mean)


RAY = ExactProperty(
    id="vysogorets2024/temperature-ray",
    entries=("A34",),
    source=f"{PAPER}, section 4, figure 4 right, along each of its rays; the proof is ours",
    passage=Passage(
        Standing.AS_STATED,
        "monotonic between its extreme values with respect to the entropy",
        "Section 4, on Figure 4, right",
    ),
    statement=r"\beta \mapsto \Gamma_p,\ p = \mathrm{softmax}(\beta z), \text{ never rises, nor does } H(p)",
    says="As one set of logits is scaled up, neither the excess of its softmax covariance nor the entropy ever rises.",
    domain=LOGITS,
    violation=falls_along_rays,
    examples=(
        Point(logits=(0.3, -1.2, 2.1, 0.7), scale=1.7),
        Point(logits=(1.0, 1.0, 0.0, 0.0, 0.0), scale=0.2),
        Point(logits=(2.0, 1.999, 1.998, -3.0), scale=11.0),
    ),
    tolerance=1e-13,
    tolerance_reason="roundings of the entropy and of two sums over pairs",
    rivals={
        "for the mean over a batch": _rise_of_the_mean,
        "never falls": lambda rng, point: _rise(
            -softmax.gamma_from_logits(BETAS[:, None, None] * _rays(rng, point))
        ),
    },
    seconds=0.026,
)


def _edges(p: Array) -> tuple[list[tuple[int, int]], Array]:
    edges = list(combinations(range(len(p)), 2))
    weights = np.array([p[i] * p[j] for i, j in edges])
    return edges, weights / weights.sum()


def slope_along_ray(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Derivative of Gamma^-2 in the inverse temperature, by a complex step and as covariances over pairs."""
    z, step = np.array(point.logits), 1e-30
    complex_p = np.exp((point.beta + 1j * step) * z)
    s = [np.sum((complex_p / complex_p.sum()) ** n) for n in (2, 3)]
    slope = ((s[0] - 2 * s[1] + s[0] ** 2) / (1 - s[0]) ** 2).imag / step
    p = np.exp(point.beta * z) / np.exp(point.beta * z).sum()
    edges, weights = _edges(p)
    sums = np.array([z[i] + z[j] for i, j in edges])
    kept, flat = (np.array([p[i] + p[j] - power * (p[i] - p[j]) ** 2 for i, j in edges]) for power in (1, 0))
    total = (1 - np.square(p).sum()) / 2

    def covariance(other: Array) -> Any:
        return weights @ (sums * other) - (weights @ sums) * (weights @ other)

    return {
        "complex step": slope,
        "covariance": softmax.ray_slope(z, temperature=1 / point.beta),
        "without 1/2": covariance(kept) / total,
        "p_i + p_j": covariance(flat) / (2 * total),
    }


SLOPE = Identity(
    id="vysogorets2024/ray-slope",
    entries=("A34",),
    source=f"ours, beside {PAPER}, section 4",
    passage=OURS,
    statement=r"\frac{d}{d\beta} \Gamma_p^{-2} = \frac{1}{2W}\, \mathrm{Cov}_e\big(z_i + z_j,\ "
    r"p_i + p_j - (p_i - p_j)^2\big),\quad W = \sum_{i < j} p_i p_j",
    says="As logits are scaled up, the inverse squared excess of the softmax covariance changes at a rate that is a "
    "covariance over random pairs of classes.",
    routes=slope_along_ray,
    points=tuple(Point(logits=(0.3, -1.2, 2.1, 0.7, -0.4), beta=beta) for beta in (0.13, 0.9, 2.7)),
    tolerance=1e-12,
    tolerance_reason="a few roundings of sums of powers, which cancel by a factor of some tens",
    seconds=0.01,
    quantity="slope of inverse squared Gamma along a ray",
)


def batch_ray(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma of the mean matrix of a batch along its ray: many samples on two classes, one on two others."""
    z = np.full((point.crowd + 1, 4), -1e9)
    z[:-1, :2], z[-1, 2:] = [point.gap, 0.0], [point.single_gap, 0.0]
    beta = np.array(point.betas)
    p = np.exp(beta[:, None, None] * (z - z.max(-1, keepdims=True)))
    p /= p.sum(-1, keepdims=True)
    covariances = p[..., None] * np.eye(4) - p[..., None] * p[..., None, :]
    means = covariances.mean(1)
    found = np.trace(means, axis1=1, axis2=2) / np.linalg.norm(means, axis=(1, 2))
    return {
        "dense": found,
        "theory": softmax.batch_gammas_from_logits(z, temperature=1 / beta).mean,
        "mean of Gamma": softmax.gamma_from_logits(z, temperature=1 / beta[:, None]).mean(-1),
        "never rises": np.minimum.accumulate(found),
    }


BATCH_RAY = Identity(
    id="vysogorets2024/batch-ray",
    entries=("A34",),
    source=f"ours, beside the mean over a batch in {PAPER}, figure 4 right",
    passage=OURS,
    statement=r"\Gamma\big(\tfrac{1}{N} \sum_\mu M(p^\mu)\big) \text{ of 11 or 8 samples rises, then falls along } "
    r"\beta",
    says="As logits are scaled up, the excess of a batch-averaged softmax covariance need not fall throughout: in "
    "explicit examples it rises first and then falls.",
    routes=batch_ray,
    points=(
        Point(crowd=10, gap=1.0, single_gap=0.5, betas=(0.2, 1.1, 2.3, 4.0, 4.6, 8.0)),
        Point(crowd=7, gap=1.3, single_gap=0.4, betas=(0.3, 0.9, 2.2, 3.1, 9.0)),
    ),
    tolerance=1e-12,
    tolerance_reason=ROUNDING,
    seconds=0.01,
    quantity="Gamma of the mean matrix",
)

CLAIMS: tuple[AnyClaim, ...] = (
    ORDER,
    RAY,
    SLOPE,
    BATCH_RAY,
)
