"""Vysogorets, Dawid and Kempe (2024): real networks seen through random frames."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks
from simulate.modules import logit_kernel
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, gram_excess
from theory import gauss_newton
from theory.gauss_newton import projection
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]


def _in_frames(rng: np.random.Generator, values: Any, point: Point, total: int) -> Any:
    """R'HR for fresh frames R of all P coordinates, of a matrix of few eigenvalues that are not zero.

    Of a frame it sees the part in the span of its eigenvectors, and the others are never drawn.
    """
    import torch

    order = values.abs().argsort(descending=True)
    nonzero = int((values.abs() > 1e-12 * values.abs().max()).sum())
    values = values[order[: max(nonzero, point.dims[-1])]]
    drawn = (
        curvature.haar(rng, len(values), point.dims[-1], total=total, device=str(values.device))
        for _ in range(point.frames)
    )
    return torch.stack([frame.T @ (values[:, None] * frame) for frame in drawn])


# --- the G-term of LeNet-300-100 -----------------------------------------------------------------------------


def lenet_spectra(block: Block, point: Point) -> Mapping[str, Any]:
    """G-term of LeNet-300-100 in fresh frames, beside its excess in full space and the fit of the random model."""
    import torch

    source = data.opened(point.images, (1, 28, 28))
    widths = (*networks.LENET_300_100[:-1], source.classes)
    parameters = networks.weight_count(widths)
    found = []
    for rng in block.streams:
        images = data.sample(source, rng, point.samples).flat()
        network = networks.Mlp(widths, rng=rng).to(block.device)
        with torch.no_grad():
            for w in network.parameters():
                w *= point.alpha
        kernel = logit_kernel.logit_kernel(network, images.tensors(block.device)[0])
        values = gram_excess.gram_spectrum(kernel.gram, kernel.logits)
        seen = _in_frames(rng, values, point, parameters)
        found.append(
            _fitted(kernel)
            | {
                "excess": float(values.sum()),
                "parameters": parameters,
                "seen_excess": float(curvature.positive_excess(seen).mean()),
            }
        )
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _fitted(kernel: Any) -> dict[str, float]:
    """Standard deviations of class means and residuals of the gradients of the logits; Gamma of the mean matrix."""
    import torch

    scales, p = kernel.scales(), kernel.logits.softmax(1)
    covariance = torch.diag(p.mean(0)) - p.T @ p / len(p)
    return {
        "sigma_c": scales.sigma_c,
        "sigma_e": scales.sigma_e,
        "gamma": float(curvature.positive_excess(covariance)),
    }


LENET_TYPICAL: dict[float, dict[str, float]] = {
    0.8: {"excess": 5.2, "sigma_c": 0.026, "sigma_e": 0.033, "gamma": 2.7},
    1.7: {"excess": 2.7, "sigma_c": 0.12, "sigma_e": 0.15, "gamma": 1.6},
}

LENET = Experiment(
    id="vysogorets2024/lenet-spectra",
    replicate="one LeNet-300-100 at initialisation with 16 images, in 20 projections",
    simulate=lenet_spectra,
    points=tuple(
        Point(images="digits", alpha=alpha, samples=16, frames=20, dims=(5, 13, 50))
        for alpha in LENET_TYPICAL
    ),
    budget=512,
    seconds=3.0,
    data="digits",
)


def _typical(name: str) -> Any:
    return lambda p: LENET_TYPICAL[p.alpha][name]


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/excess-in-50-dimensions",
        entries=("A7", "A31"),
        source=f"ours, beside section 4 and figure 4 left of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\mathrm{exc}(G_d) = r \sqrt{d / (d + 1 + r^2)},\quad d = 50",
        says="The mean excess of LeNet-300-100's Gauss-Newton term in fifty random directions is that in full space, "
        "reduced by a law of dimension without fitted numbers.",
        experiment=LENET,
        score="seen_excess",
        inputs={"parameters": lambda _: 266_200}
        | {name: _typical(name) for name in ("excess", "sigma_c", "sigma_e", "gamma")},
        predict=lambda p: projection.projected_excess(p.excess, dim=p.dims[-1]),
        margin=0.03,
        margin_reason="3 % for networks: a mean of ratios is not the ratio of means: 3 % at d = 5, less at 50",
        rivals={
            "independent of d": lambda p: p.excess,
            "root of d/P": lambda p: p.excess * np.sqrt(p.dims[-1] / p.parameters),
            "root of d": lambda p: math.sqrt(p.dims[-1]) + 0 * p.excess,
            "eq. (8) with fitted variances": lambda p: gauss_newton.expected_excess(
                p.gamma, dim=p.dims[-1], sigma_c=p.sigma_c, sigma_e=p.sigma_e
            ),
        },
        quantity="excess of the projected G-term",
    ),
)
