"""Vysogorets, Dawid and Kempe (2024): Hutchinson's probes, and whether they see what a projection sees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks, spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, full_space
from theory import gauss_newton
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, NoTheory

__all__ = ["CLAIMS"]

# --- probes of random matrices -------------------------------------------------------------------------------


def _probes(block: Block, point: Point) -> Mapping[str, Any]:
    """Means over probes of x'Hx and |Hx|^2 for one matrix each, beside what is exact of it."""
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
"""Of the matrices below, to two or three digits: they place margins and rivals."""

PROBES = Experiment(
    id="vysogorets2024/hutchinson-probes",
    replicate="one symmetric matrix with 96 probes of signs and 96 normal ones",
    simulate=_probes,
    points=(Point(dim=70, probes=96, noise=0.12, diagonal=1.6, mean=1.3, spike=6.6, rank=3),),
    budget=8192,
    seconds=1.4,
)


UNBIASED = "an unbiased mean over probes; at most 1 % for random matrices"

PROBE_CLAIM = Claim(
    id="vysogorets2024/hutchinson-norm",
    entries=("A58",),
    source=f"{PAPER}, appendix F",
    no_theory=NoTheory.MEASURED,
    statement=r"\mathbb{E}\,\lVert H x\rVert^2 = \lVert H\rVert_F^2,\quad x_i = \pm 1",
    says="Averaged over random sign vectors, the squared length of a matrix-vector product is the squared "
    "Frobenius norm of the matrix.",
    experiment=PROBES,
    score="sign_length",
    inputs=TYPICAL,
    predict=lambda p: p.square,
    margin=0.01,
    margin_reason=UNBIASED,
    rivals={
        "squared trace": lambda p: p.trace**2,
        "square of the mean length": lambda p: p.length**2,
    },
    quantity="squared norm of the matrix",
)

# --- probes against projections on a network -----------------------------------------------------------------


def hessian_both_ways(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared norm of the Hessian of one network in some projections, over the exact one."""
    import torch

    source = data.opened(point.images, (1, 8, 8))
    widths = (64, *point.hidden, source.classes)
    dim, found = networks.weight_count(widths), []
    for rng in block.streams:
        images = data.sample(source, rng, point.samples).flat()
        weights = [w.to(block.device) for w in networks.mlp_weights(rng, widths)]
        exact = full_space.norms(weights, images.images, images.labels)
        rng.integers(
            0, 2, (point.probes, dim)
        )  # signs of probes that are no longer read: frames come after them
        seen = []
        for _ in range(point.frames):
            frame = curvature.haar(rng, dim, point.dim, device=block.device)
            seen.append(curvature.ProjectedMlp(weights, images.images, images.labels, frame).terms().hessian)
        square = torch.stack(seen).square().sum((1, 2)).mean()
        found.append((exact.excess_hessian, float(square) / (point.dim / dim * exact.norm_hessian) ** 2))
    excess, seen_square = np.array(found).T
    return {"excess": excess, "seen_square": seen_square}


NETWORK = Experiment(
    id="vysogorets2024/hutchinson-and-projection",
    replicate="one bias-free ReLU network 64-30-20-10 with 28 images, in five projections",
    simulate=hessian_both_ways,
    points=(Point(images="digits", hidden=(30, 20), samples=28, dim=23, probes=30, frames=5),),
    budget=1024,
    seconds=3.4,
    data="digits",
)

EXCESS = {"excess": 2.95}
"""Typical, of the Hessian in full space."""

SQUARED = "3 % of the excess is 6 % of its square; squares are unbiased, ratios of estimates are not"


def _factor(p: Any) -> Any:
    return p.excess / gauss_newton.projected_excess(p.excess, dim=p.dim)


NETWORK_CLAIM = Claim(
    id="vysogorets2024/projection-is-not-hutchinson",
    entries=("A58", "A7"),
    source=f"ours, beside {PAPER}, appendix F, where the two agree fairly well",
    passage=OURS,
    statement=r"(P/d)^2\,\mathbb{E}\,\lVert R^\top H R\rVert_F^2 = (r/r_d)^2 \lVert H\rVert_F^2 = "
    r"\Big(1 + \frac{1 + r^2}{d}\Big) \lVert H\rVert_F^2,\quad r = \mathrm{exc}(H)",
    says="Random projections of a small network's Hessian show more than their share of its squared norm, by a "
    "factor that its excess and the projection dimension set.",
    experiment=NETWORK,
    score="seen_square",
    inputs=EXCESS,
    predict=lambda p: _factor(p) ** 2,
    margin=0.06,
    margin_reason=SQUARED,
    rivals={
        "what probes see": lambda p: 1 + 0 * p.excess,
        "no trace": lambda p: 1 + 1 / p.dim + 0 * p.excess,
        "not squared": _factor,
    },
    quantity="squared norm in a projection over the share of the exact one",
)

CLAIMS: tuple[AnyClaim, ...] = (PROBE_CLAIM, NETWORK_CLAIM)
