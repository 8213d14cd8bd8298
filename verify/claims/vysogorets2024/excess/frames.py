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
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, NoTheory, Tier

__all__ = ["CLAIMS"]


def _blocks(matrices: Any, size: int) -> Any:
    """All that frames of some of the columns show: diagonal blocks of matrices (..., d, d), side by side."""
    import torch

    starts = range(0, matrices.shape[-1] - size + 1, size)
    return torch.stack([matrices[..., i : i + size, i : i + size] for i in starts], dim=-3)


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
            _seen(seen, parameters, point)
            | _fitted(kernel)
            | {"excess": float(values.sum()), "parameters": parameters}
        )
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _seen(matrices: Any, parameters: int, point: Point) -> dict[str, Any]:
    """Mean squared norms by dimension, in units of (d/P)^2, and the mean excess in the largest."""
    squares = [float(_blocks(matrices, d).square().sum((-2, -1)).mean()) for d in point.dims]
    units = [(parameters / d) ** 2 for d in point.dims]
    return {
        "squared_norm": np.multiply(squares, units),
        "seen_excess": float(curvature.positive_excess(matrices).mean()),
    }


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


def _law(p: Any, dim: int) -> Any:
    return projection.projected_excess(p.excess, dim=dim)


LENET_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/dimension-law-on-networks",
        entries=("A7",),
        source=f"ours, beside section 4 and figure 4 left of {PAPER}",
        passage=OURS,
        statement=r"\frac{(\mathbb{E}\,\mathrm{Tr} G_d)^2}{\mathbb{E}\,\lVert G_d\rVert_F^2} = r_d^2 = "
        r"\frac{r^2 d}{d + 1 + r^2},\quad r = \mathrm{exc}(G) \text{ in full space}",
        says="The Gauss-Newton term of LeNet-300-100, projected at random, has the mean squared norm that its own "
        "excess in full parameter space and the projection dimension set.",
        experiment=LENET,
        score="squared_norm",
        along="dims",
        inputs={"excess": _typical("excess")},
        predict=lambda p: (p.excess / _law(p, p.dims)) ** 2,
        margin=0.03,
        margin_reason="3 % of the square, 1.5 % of the excess; unbiased at every d, and exact up to d/P",
        rivals={
            "independent of d": lambda p: 1.0 + 0 * p.excess,
            "first power": lambda p: (p.dims + 1 + p.excess) / p.dims,
            "d for d + 1": lambda p: (p.dims + p.excess**2) / p.dims,
        },
        quantity="squared norm over squared mean trace, times the squared excess",
    ),
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
        predict=lambda p: _law(p, p.dims[-1]),
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

# --- the two variances of the random model -------------------------------------------------------------------


def two_spreads(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """sigma_c and sigma_e of a small network, from inner products of its logit gradients and from their elements."""
    import torch
    from torch import nn

    source = data.opened(point.images, (1, 4, 4))
    images = data.sample(source, rng, point.samples).flat()
    network = networks.Mlp((16, *point.hidden, source.classes), rng=rng)
    x, _ = images.tensors("cpu")
    weights = {name: w.detach() for name, w in network.named_parameters()}

    def logits(weights: dict[str, Any]) -> Any:
        return torch.func.functional_call(network, weights, (x,))

    rows = torch.func.jacrev(logits)(weights)
    gradients = torch.cat([rows[name].flatten(2) for name in weights], dim=2)
    within = float(gradients.var(0, correction=1).mean())
    between = float(gradients.mean(0).square().mean())
    found = logit_kernel.logit_kernel(nn.Sequential(network), x).scales()
    n = point.samples
    return {
        "by inner products": np.array([found.sigma_c, found.sigma_e]),
        "element by element": _spreads(between - within / n, within),
        "divided by N": _spreads(between - within / n, within * (n - 1) / n),
        "spread of the means not taken off": _spreads(between, within),
        "per parameter and class": _spreads(between - within / n, within * source.classes),
    }


def _spreads(means: float, residuals: float) -> Any:
    return np.sqrt([means, residuals])


SPREADS = Identity(
    id="vysogorets2024/two-spreads",
    entries=("A29",),
    source=f"ours, for the fit of the random model of section 4 of {PAPER}",
    passage=OURS,
    no_theory=NoTheory.MEASURED,
    statement=r"\sigma_e^2 = \frac{1}{P K (N - 1)} \sum_{nk} \lVert \nabla z_{nk} - \bar c_k\rVert^2,\quad "
    r"\sigma_c^2 = \frac{1}{P K} \sum_k \lVert \bar c_k\rVert^2 - \frac{\sigma_e^2}{N}",
    says="The two variances of the random model, fitted to a network, are the unbiased ones of its logit gradients' "
    "elements: within classes, and between them with the noise of the means taken off.",
    routes=two_spreads,
    points=(
        Point(images="digits", hidden=(8,), samples=5),
        Point(images="digits", hidden=(7, 6), samples=20),
    ),
    tolerance=1e-12,
    tolerance_reason="an identity in float64",
    seconds=1.3,
    data="digits",
    quantity="fitted deviations of class means and residuals",
)

# --- the H-term alone ----------------------------------------------------------------------------------------


def h_term_noise(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean squared excess of the H-term of a small network in fresh frames, by dimension."""
    found = []
    for rng in block.streams:
        values, total = _h_term_eigenvalues(rng, point, block.device)
        while not values.any():  # a layer that is dead on every image: no H-term, and no excess
            values, total = _h_term_eigenvalues(rng, point, block.device)
        matrices = _in_frames(rng, values, point, total)
        found.append(
            [float(curvature.positive_excess(_blocks(matrices, d)).square().mean()) for d in point.dims]
        )
    return {"squared_excess": np.array(found)}


def _h_term_eigenvalues(rng: np.random.Generator, point: Point, device: str) -> tuple[Any, int]:
    """Those of one network that need not vanish, and the number of its parameters."""
    import torch

    source = data.opened(point.images, (1, 28, 28))
    widths = (784, *point.hidden, source.classes)
    images = data.sample(source, rng, point.samples).flat()
    first, *others = (w.to(device) for w in networks.mlp_weights(rng, widths))
    span, coordinates = torch.linalg.qr(images.tensors(device)[0].T)
    seen = (first @ span, *others)  # what no image sees moves nothing
    identity = torch.eye(sum(w.numel() for w in seen), dtype=first.dtype, device=device)
    net = curvature.ProjectedMlp(seen, coordinates.T, images.labels, identity)
    return torch.linalg.eigvalsh(net.terms(alpha=point.alpha).h_term), networks.weight_count(widths)


H_TERM = Experiment(
    id="vysogorets2024/h-term-noise",
    replicate="one H-term at initialisation with 7 images, in 64 projections",
    simulate=h_term_noise,
    points=(Point(images="digits", alpha=0.3, hidden=(8, 6), samples=7, frames=64, dims=(4, 13, 50)),),
    budget=1024,
    seconds=3.6,
    tier=Tier.FULL,
    data="digits",
)

NOISE_CLAIM = Claim(
    id="vysogorets2024/noise-floor-on-networks",
    entries=("A8",),
    source=f"ours, beside figures 1 to 3 of {PAPER}",
    passage=OURS,
    statement=r"\mathrm{sd}\,\mathrm{exc}(\tilde H_d) = \sqrt{2 / (d + 1)} \text{ over frames}",
    says="The remainder of a small network's Hessian, projected at random, has an excess whose mean square is two "
    "over one more than the projection dimension.",
    experiment=H_TERM,
    score="squared_excess",
    along="dims",
    predict=lambda p: projection.excess_noise_floor(p.dims) ** 2,
    margin=0.1,
    margin_reason="5 % of the standard deviation, 10 % of its square: a mean of ratios is no ratio of means",
    rivals={
        "d for d + 1": lambda p: 2 / p.dims,
        "one for two": lambda p: 1 / (p.dims + 1),
        "none": lambda _: 0.0,
        "not squared": lambda p: projection.excess_noise_floor(p.dims),
    },
    quantity="squared excess of the projected H-term",
)

CLAIMS: tuple[AnyClaim, ...] = (*LENET_CLAIMS, SPREADS, NOISE_CLAIM)
