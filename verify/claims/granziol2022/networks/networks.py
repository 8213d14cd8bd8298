"""Granziol, Zohren and Roberts (2022) on networks trained on images: what holds exactly, and what comes near."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import perceptrons
from simulate.monte_carlo import Block, Point
from theory import own_direction
from verify.claims.beyond import networks
from verify.claims.beyond.networks import formulas, law_of, noise_of
from verify.claims.granziol2022 import PAPER
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    Experiment,
    Passage,
    Standing,
    Verdict,
)

__all__ = ["CLAIMS"]


# --- batches of networks drawn at random ---------------------------------------------------------------------


def network_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """One partition of a network's images into batches for each size.

    Every prediction is for the mean over the batches drawn; the own-direction law reads which samples are in them.
    """
    rows = [_batches_of_one(rng, point, block.device) for rng in block.streams]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _batches_of_one(rng: np.random.Generator, point: Point, device: str) -> dict[str, Any]:
    samples = networks.small_perceptron(rng, point, device)
    vectors = perceptrons.own_direction.top_eigenvectors(samples, point.directions)
    pairs = perceptrons.own_direction.sample_pairs(samples, tolerance=1e-4)
    law = law_of(perceptrons.own_direction.statistics(samples, vectors, pairs, rng))
    noise = noise_of(samples, rng, vectors)
    found: dict[str, list[float]] = {"measured": [], "own_directions": []}
    for size in point.batch_size:
        batches = perceptrons.own_direction.partitions(rng, samples.size, size, 1)
        tops = perceptrons.own_direction.batch_tops(samples, batches, tolerance=1e-3)
        found["measured"].append(tops.mean())
        found["own_directions"].append(own_direction.batch_eigenvalues(law, batches).mean())
    said = formulas(noise, samples.dim, point.batch_size, samples.size)
    return {**found, **said, "full": noise.eigenvalue}


IMAGES = {"images": "digits", "directions": 8}

BATCHES = Experiment(
    id="granziol2022/network-batches",
    replicate="one tanh network 16-8-10 with its images, in batches",
    simulate=network_batches,
    points=(
        Point(matrix="hessian", steps=0, samples=60, batch_size=(3, 6), **IMAGES),
        Point(matrix="gauss-newton", steps=40, samples=72, batch_size=(2, 4, 24), **IMAGES),
    ),
    budget=512,
    seconds=4.8,
    data="digits",
)

LAW = {2: 6.1, 3: 4.4, 4: 4.0, 6: 2.9, 24: 1.5}
"""The own-direction law over lambda_1 at each batch size, from runs with other seeds."""

FORMULAS = {
    "theorem_4": {2: 0.21, 3: 0.34, 4: 0.29, 6: 0.43, 24: 0.67},
    "theorem_7": {2: 1.1, 3: 1.7, 4: 0.9, 6: 1.3, 24: 0.68},
    "theorem_7_read": {2: 1.9, 3: 2.7, 4: 1.4, 6: 2.0, 24: 0.71},
}
"""The formulas over the law, from the same runs."""


def _typical(name: str) -> Any:
    """Of a formula, in units of lambda_1."""
    relative = FORMULAS.get(name, {})
    return lambda p: LAW.get(p.batch_size, 1.0) * relative.get(p.batch_size, 1.0)


INPUTS = {name: _typical(name) for name in ("own_directions", *FORMULAS)}

WITHIN = "the largest error on four networks that the law had never seen was 12 %, on one of them at one batch size"

FAR_OFF = "5 % of what the formula gives; it is off by a tenth at least, and by a factor of five at most"
SMALLER = "the margin 5 %: half of the least error of the formula on the first networks drawn"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/theorem-4-on-networks",
        entries=("B19", "B40"),
        source=f"{PAPER}, theorem 4, eq. (9), on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \lambda_1 + \frac{P \sigma^2}{b \lambda_1}\ (\lambda_1 > s),"
        r"\quad 2 s \text{ else}",
        says="Theorem 4, with one variance for all elements, gives the mean top eigenvalue of small networks' "
        "batches even of a few images, outside its limit.",
        passage=Passage(Standing.OUTSIDE, "our results are in the limit of P,B →∞", "Section 8.2.1"),
        expected=Verdict.DISAGREES,
        finding="Outside the limit of large P and B, with batches of 2 to 24, Theorem 4 is low: on "
        "networks the noise is not spread evenly over the elements but sits along the directions of large "
        "curvature, where it is many times the average.",
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.theorem_4,
        margin=0.05,
        margin_reason=FAR_OFF,
        pilot=SMALLER,
        rivals={"own directions": lambda p: p.own_directions, "theorem 7": lambda p: p.theorem_7},
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
    Claim(
        id="granziol2022/theorem-7-on-networks",
        entries=("B26", "B40"),
        source=f"{PAPER}, theorem 7, eq. (16), repaired, on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(G_B) = \theta + \frac{\sigma^2 \theta}{\theta - (P/b) \sigma^2},\quad "
        r"\theta = \lambda_1 - \sigma^2",
        says="Theorem 7, its threshold and shift repaired, gives the mean top eigenvalue of small networks' "
        "batches even of a few images, outside its limit.",
        passage=Passage(Standing.OUTSIDE, "our results are in the limit of P,B →∞", "Section 8.2.1"),
        expected=Verdict.DISAGREES,
        finding="Outside the limit of large P and B, with batches of 2 to 24, Theorem 7 is high for the "
        "smallest batches and low for larger ones, crossing the truth in between, with or without the "
        "repairs of its threshold and shift.",
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.theorem_7,
        printed=lambda p: p.theorem_7_read,
        reads=r"\lambda'_1 = \frac{\lambda_1 + \sigma^2 (1 - \frac Pb)}{1 - \frac{P \sigma^2}{\lambda_1 b}}\text{ "
        r"if } \lambda_1 > \sigma^2 \big(1 + \tfrac Pb\big),\quad 2 \sigma^2 \big(1 + \tfrac Pb\big) \text{ "
        r"otherwise}",
        margin=0.05,
        margin_reason=FAR_OFF,
        pilot=SMALLER,
        rivals={"theorem 4": lambda p: p.theorem_4, "own directions": lambda p: p.own_directions},
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
    Claim(
        id="beyond/own-directions",
        entries=("D1", "granziol2022/B19"),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \mathbb{E}_S\,\max\{\lambda : \lambda = "
        r"\lambda_{\max}(F_S(\lambda))\}",
        says="From statistics of single samples alone, the own-direction law gives the mean top eigenvalue of "
        "batches of small networks with real images.",
        passage=OURS,
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.own_directions,
        margin=0.15,
        margin_reason=WITHIN,
        pilot="the margin 0.15: the largest error on four networks drawn before was 12 %",
        rivals={
            "theorem 4": lambda p: p.theorem_4,
            "theorem 7 as our copy reads": lambda p: p.theorem_7_read,
        },
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
)
