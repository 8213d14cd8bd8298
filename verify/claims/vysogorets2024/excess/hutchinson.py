"""Vysogorets, Dawid and Kempe (2024): Hutchinson's probes, and whether they see what a projection sees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks, objectives, operators, spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, full_space
from theory import gauss_newton
from verify.claims.vysogorets2024 import PAPER
from verify.model import KNOWN, OURS, AnyClaim, Claim, Experiment, NoTheory, Prediction

__all__ = ["CLAIMS"]

# --- probes of random matrices -------------------------------------------------------------------------------


def _probes(block: Block, point: Point) -> Mapping[str, Any]:
    """Means and variances over probes of x'Hx and |Hx|^2 for one matrix each, beside what is exact of it."""
    matrices = _matrices(block, point)
    squares = matrices @ matrices
    gaussian = block.normal(point.probes, point.dim)
    images = gaussian @ matrices
    forms, lengths = (gaussian * images).sum(2), images.square().sum(2)
    scores = {
        "trace": matrices.diagonal(dim1=1, dim2=2).sum(1),
        "square": matrices.square().sum((1, 2)),
        "fourth": squares.square().sum((1, 2)),
        "diagonal_square": matrices.diagonal(dim1=1, dim2=2).square().sum(1),
        "diagonal_fourth": squares.diagonal(dim1=1, dim2=2).square().sum(1),
        "gaussian_form": forms.mean(1),
        "gaussian_length": lengths.mean(1),
        "gaussian_form_variance": forms.var(1),
        "gaussian_length_variance": lengths.var(1),
        "length": lengths.sqrt().mean(1),
    }
    for name, power in (("form", 1), ("length", 2)):
        found = [
            spectra.trace(matrix, rng, probes=point.probes, power=power)
            for matrix, rng in zip(matrices, block.streams, strict=True)
        ]
        scores[f"sign_{name}"] = np.array([e.value for e in found])
        scores[f"sign_{name}_variance"] = np.array([e.standard_error**2 for e in found]) * point.probes
    return scores


def _matrices(block: Block, point: Point) -> Any:
    """Symmetric noise with a strong diagonal, and spikes in random directions."""
    import torch

    noise = point.noise * ensembles.wigner(block, point.dim) * math.sqrt(point.dim)
    own = torch.diag_embed(point.diagonal * block.normal(point.dim) + point.mean)
    frame = ensembles.haar_frames(block, point.dim, point.rank)[:, 0]
    return noise + own + point.spike * frame @ frame.mT


TYPICAL = {
    "trace": 111.0,
    "square": 550.0,
    "fourth": 19_700.0,
    "diagonal_square": 358.0,
    "diagonal_fourth": 7380.0,
    "length": 23.1,
}
"""Of the matrices below, to two or three digits: they place margins and rivals."""

PROBES = Experiment(
    id="vysogorets2024/hutchinson-probes",
    replicate="one symmetric matrix with 96 probes of signs and 96 normal ones",
    simulate=_probes,
    points=(Point(dim=70, probes=96, noise=0.12, diagonal=1.6, mean=1.3, spike=6.6, rank=3),),
    budget=8192,
    seconds=1.4,
)


def _inputs(*names: str) -> dict[str, float]:
    return {name: TYPICAL[name] for name in names}


def _spread(
    name: str, statement: str, says: str, score: str, predict: Prediction, rivals: Mapping[str, Prediction]
) -> Claim:
    return Claim(
        id=f"vysogorets2024/hutchinson-{name}-variance",
        entries=("A58",),
        source=f"beside appendix F of {PAPER}: the variance as in Hutchinson (1990)",
        passage=KNOWN,
        statement=statement,
        says=says,
        experiment=PROBES,
        score=score,
        inputs=_inputs("square", "diagonal_square", "fourth", "diagonal_fourth"),
        predict=predict,
        margin=0.03,
        margin_reason="a variance over probes, unbiased; 3 %, the default of sizes",
        rivals=rivals,
        quantity=f"variance of a probe of the {'trace' if 'form' in score else 'squared norm'}",
    )


UNBIASED = "an unbiased mean over probes; at most 1 % for random matrices"

PROBE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/hutchinson-norm",
        entries=("A58",),
        source=f"{PAPER}, appendix F",
        no_theory=NoTheory.MEASURED,
        statement=r"\mathbb{E}\,\lVert H x\rVert^2 = \lVert H\rVert_F^2,\quad x_i = \pm 1",
        says="Averaged over random sign vectors, the squared length of a matrix-vector product is the squared "
        "Frobenius norm of the matrix.",
        experiment=PROBES,
        score="sign_length",
        inputs=_inputs("trace", "square", "length"),
        predict=lambda p: p.square,
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "squared trace": lambda p: p.trace**2,
            "square of the mean length": lambda p: p.length**2,
        },
        quantity="squared norm of the matrix",
    ),
    _spread(
        "sign-trace",
        r"\mathrm{Var}\,x^\top H x = 2 \big(\lVert H\rVert_F^2 - \textstyle\sum_i H_{ii}^2\big),\ x_i = \pm 1",
        "A probe of the trace with random signs has as its variance twice the sum of the squared off-diagonal "
        "entries.",
        "sign_form_variance",
        lambda p: gauss_newton.sign_probe_variance(p.square, squared_diagonal=p.diagonal_square),
        {"normal probes": lambda p: 2 * p.square, "once": lambda p: p.square - p.diagonal_square},
    ),
    _spread(
        "normal-trace",
        r"\mathrm{Var}\,x^\top H x = 2 \lVert H\rVert_F^2,\quad x \sim N(0, I)",
        "A probe of the trace with a Gaussian vector has as its variance twice the squared Frobenius norm, "
        "diagonal included.",
        "gaussian_form_variance",
        lambda p: gauss_newton.normal_probe_variance(p.square),
        {"signs": lambda p: 2 * (p.square - p.diagonal_square), "once": lambda p: p.square},
    ),
    _spread(
        "sign-norm",
        r"\mathrm{Var}\,\lVert H x\rVert^2 = 2 \big(\lVert H^2\rVert_F^2 - \textstyle\sum_i (H^2)_{ii}^2\big),"
        r"\quad x_i = \pm 1",
        "A probe of the squared norm with random signs has as its variance twice the sum of the squared "
        "off-diagonal entries of the squared matrix.",
        "sign_length_variance",
        lambda p: gauss_newton.sign_probe_variance(p.fourth, squared_diagonal=p.diagonal_fourth),
        {"normal probes": lambda p: 2 * p.fourth, "once": lambda p: p.fourth - p.diagonal_fourth},
    ),
    _spread(
        "normal-norm",
        r"\mathrm{Var}\,\lVert H x\rVert^2 = 2 \lVert H^2\rVert_F^2,\quad x \sim N(0, I)",
        "A probe of the squared norm with a Gaussian vector has as its variance twice the squared Frobenius norm "
        "of the squared matrix.",
        "gaussian_length_variance",
        lambda p: gauss_newton.normal_probe_variance(p.fourth),
        {"signs": lambda p: 2 * (p.fourth - p.diagonal_fourth), "once": lambda p: p.fourth},
    ),
)

# --- probes against projections on a network -----------------------------------------------------------------


def hessian_both_ways(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared norm of the Hessian of one network by probes and in some projections, over the exact one."""
    import torch
    from torch import nn

    source = data.opened(point.images, (1, 8, 8))
    widths = (64, *point.hidden, source.classes)
    found = []
    for rng in block.streams:
        images = data.sample(source, rng, point.samples).flat()
        network = networks.Mlp(widths, rng=rng).to(block.device)
        weights = list(network.parameters())
        exact = full_space.norms(weights, images.images, images.labels)
        loss = nn.functional.cross_entropy
        hessian = operators.hessian(objectives.Objective(network, images.tensors(block.device), loss))
        vectors = hessian.vectors(2.0 * rng.integers(0, 2, (point.probes, hessian.dim)) - 1.0)
        products = hessian(vectors)
        seen = []
        for _ in range(point.frames):
            frame = curvature.haar(rng, hessian.dim, point.dim, device=block.device)
            seen.append(curvature.ProjectedMlp(weights, images.images, images.labels, frame).terms().hessian)
        share = point.dim / hessian.dim
        found.append(
            {
                "excess": exact.excess_hessian,
                "probed_square": float(products.square().sum(1).mean()) / exact.norm_hessian**2,
                "seen_square": float(torch.stack(seen).square().sum((1, 2)).mean())
                / (share * exact.norm_hessian) ** 2,
            }
        )
    return {name: np.array([one[name] for one in found]) for name in found[0]}


NETWORK = Experiment(
    id="vysogorets2024/hutchinson-and-projection",
    replicate="one bias-free ReLU network 64-30-20-10 with 28 images, by 30 probes and in five projections",
    simulate=hessian_both_ways,
    points=(Point(images="digits", hidden=(30, 20), samples=28, dim=23, probes=30, frames=5),),
    budget=1024,
    seconds=3.4,
    data="digits",
)

EXCESS = {"excess": 2.95}
"""Typical, of the Hessian in full space."""

SQUARED = "3 % of the excess is 6 % of its square; squares are unbiased, ratios of estimates are not"


def _seen(p: Any) -> Any:
    return gauss_newton.projected_excess(p.excess, dim=p.dim)


NETWORK_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
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
        predict=lambda p: (p.excess / _seen(p)) ** 2,
        margin=0.06,
        margin_reason=SQUARED,
        rivals={
            "what probes see": lambda p: 1 + 0 * p.excess,
            "no trace": lambda p: 1 + 1 / p.dim + 0 * p.excess,
            "not squared": lambda p: p.excess / _seen(p),
        },
        quantity="squared norm in a projection over the share of the exact one",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*PROBE_CLAIMS, *NETWORK_CLAIMS)
