"""Figure 4 of Vysogorets, Dawid and Kempe (2024): excess against dimension, Gamma against temperature and entropy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate.matrices import ensembles
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax
from verify.gallery.goldilocks.excess import as_it_reads
from verify.gallery.goldilocks.lenet import Lenet
from verify.gallery.goldilocks.parts import SECOND, THIRD, frames_beside, scale_axis, small_key
from verify.gallery.parts import MEASURED, OTHER, Setting, curve, legend, mean_points
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["gamma_curves"]

SAMPLES, FRAMES = 40, 6
DIMS = np.array([5, 10, 20, 50, 100, 200])
RANDOM, RAYS = 600, 7


def gamma_curves(setting: Setting) -> list[Panel]:
    """Excess of the G-term in d dimensions; Gamma of softmax covariances along temperature rays and of random p."""
    rng, *others = setting.block("gamma", FRAMES + 1).streams
    net = Lenet(rng, setting, SAMPLES)
    seen = _projected(net, others)
    found, entropy = _random_gammas(rng)
    entropies = partial(_entropies, found=found, entropy=entropy, logits=net.logits[:RAYS])
    note = (
        f"above: LeNet-300-100 at α = 1, {SAMPLES} images; means of {FRAMES} frames, bars of two\n"
        "standard errors; thin dashes: in full space; left: one logit of 6, four from 1 down\n"
        "to .4, down to .97, all of 1; points: diag(p) − p pᵀ formed in plain float64, astray\n"
        "at large β; dashes: (1 + 3h) / 4, here h = 1/4; right: dots: random p of 2 to 10\n"
        f"classes; lines: {RAYS} of the images, their temperature turned"
    )
    return [
        Panel(2.0, partial(_dimensions, net=net, seen=seen)),
        Panel(2.0, partial(frames_beside, draws=[_rays, entropies], gap=0.2), notes=note),
    ]


# --- a network in d dimensions -----------------------------------------------------------------------------------


def _projected(net: Lenet, streams: Any) -> list[Floats]:
    """Excesses of G in frames of every dimension, the smaller ones within the largest."""
    p, found = np.exp(net.logits - net.logits.max(1, keepdims=True)), []
    for rng in streams:
        gradients = net.logit_gradients(net.frame(rng, int(DIMS[-1])))
        (matrix,) = ensembles.gauss_newton_of_logits(gradients[None], p / p.sum(1, keepdims=True))
        found.append([float(curvature.positive_excess(matrix[:d, :d])) for d in DIMS])
    return list(np.array(found).T)


def _dimensions(axes: Axes, *, net: Lenet, seen: list[Floats]) -> None:
    grid = np.unique(np.round(np.geomspace(4, 260, 80)))
    gammas, scales = softmax.batch_gammas_from_logits(net.logits), net.scales()
    size: Any = {"dim": grid, "sigma_c": scales.sigma_c, "sigma_e": scales.sigma_e}
    full = net.norms().excess_g
    curve(axes, grid, gauss_newton.projected_excess(full, dim=grid), "from the excess in full space")
    curve(
        axes,
        grid,
        gauss_newton.finite_sample_excess(*gammas, **size),
        "finite sample",
        dash=1,
        colour=PALETTE["ink"],
    )
    curve(
        axes,
        grid,
        gauss_newton.expected_excess(gammas.mean, **size),
        "eq. (8), corrected",
        dash=0,
        colour=OTHER,
    )
    curve(axes, grid, as_it_reads(gammas.mean, **size), "eq. (8) as our copy reads", role="rival", dash=1)
    mean_points(axes, DIMS, seen, "random frames")
    axes.axhline(full, color=PALETTE["ink"], lw=0.8, dashes=(4, 3), zorder=2)
    scale_axis(axes, grid, "dimensions d")
    axes.set_ylim(0.0, None)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("exc(G)")
    axes.set_title("Excess of the G-term against dimension")
    legend(axes, "lower right")


# --- Gamma -------------------------------------------------------------------------------------------------------

LOGITS = (
    ("apart", (6.0, 1.0, 0.8, 0.6, 0.4), MEASURED),
    ("nearly tied", (6.0, 1.0, 0.99, 0.98, 0.97), SECOND),
    ("tied", (6.0, 1.0, 1.0, 1.0, 1.0), THIRD),
)
BETAS: Floats = np.logspace(-1.5, 3, 181)


def _rays(axes: Axes) -> None:
    for name, z, colour in LOGITS:
        ray = 1 / softmax.gamma_from_logits(np.broadcast_to(z, (len(BETAS), 5)), temperature=1 / BETAS) ** 2
        axes.plot(BETAS, ray, color=colour, lw=1.4, label=name, zorder=3)
        axes.plot(BETAS[::6], _dense(np.array(z), BETAS[::6]), "o", ms=2.6, mew=0, color=colour, zorder=4)
    plateau = float(softmax.collapse_limit(np.ones(4))) ** -2
    axes.axhline(plateau, color=PALETTE["theory"], lw=0.8, dashes=(4, 3), zorder=2)
    scale_axis(axes, BETAS, "β = 1 / T")
    axes.set_ylim(0.0, 1.35)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("Γ⁻²")
    axes.set_title("Along rays β z")
    small_key(axes, "upper left")


def _dense(z: Floats, betas: Floats) -> Floats:
    """Gamma^-2 of dense matrices in plain float64, NaN where they vanish."""
    p = np.exp(betas[:, None] * (z - z.max()))
    return _dense_of(p / p.sum(1, keepdims=True)) ** -2.0


def _dense_of(p: Floats) -> Floats:
    matrix = p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
    norm = np.linalg.norm(matrix, axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(norm > 0, np.trace(matrix, axis1=1, axis2=2) / norm, np.nan)


def _random_gammas(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Gamma and entropy of probabilities from flat to peaked, of 2 to 10 classes."""
    p = np.array([_random_p(rng) for _ in range(RANDOM)])
    return _dense_of(p), _entropy(p)


def _random_p(rng: np.random.Generator) -> Floats:
    z = 10 ** rng.uniform(-1, 0.7) * rng.standard_normal(10)
    z[int(rng.integers(2, 11)) :] = -80.0  # no longer a class
    p = np.exp(z - z.max())
    return p / p.sum()


def _entropy(p: Floats) -> Floats:
    return -(p * np.log(p)).sum(-1)


def _entropies(axes: Axes, *, found: Floats, entropy: Floats, logits: Floats) -> None:
    axes.plot(entropy, found, "o", ms=1.8, mew=0, color=MEASURED, alpha=0.7, zorder=2)
    for z in logits:
        scale = 4 / (z.max() - z.min())
        turned = scale * np.geomspace(0.02, 60, 120)[:, None] * (z - z.max())
        p = np.exp(turned) / np.exp(turned).sum(1, keepdims=True)
        ray = _entropy(np.maximum(p, 1e-300))
        axes.plot(ray, softmax.gamma_from_logits(turned), color=PALETTE["theory"], lw=0.9, zorder=3)
    axes.set_xlim(0, None)
    axes.set_ylim(0.9, None)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")
    axes.set_xlabel("entropy of p")
    axes.set_ylabel("Γ")
    axes.set_title("Against entropy")
