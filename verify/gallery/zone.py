"""Excess of the G-term and gradients, after the figures of Vysogorets, Dawid and Kempe (2024)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate import data, networks
from simulate.modules import logit_kernel
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024.framed_networks import lenet_300_100
from verify.gallery.parts import MEASURED, OTHER, Setting, curve, inches, legend
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.wording import numeral

__all__ = ["IMAGES", "SAMPLES", "excess_law", "gradient"]

SAMPLES, DIM, DRAWS = 60, 50, 6
EXCESS_ALPHAS: Floats = np.logspace(-1, 1.5, 41)


def _nets(setting: Setting, name: str) -> list[Any]:
    point = Point(images=setting.data, samples=SAMPLES, dim=DIM)
    return [lenet_300_100(rng, point, setting.device).net for rng in setting.block(name, DRAWS).streams]


def _shaded_median(axes: Axes, x: Any, rows: Any, label: str) -> None:
    """Median over networks, a row each, and a shade from the smallest to the largest."""
    rows = np.asarray(rows, dtype=float)
    axes.fill_between(x, rows.min(0), rows.max(0), color=MEASURED, alpha=0.2, lw=0, zorder=2)
    axes.plot(x, np.median(rows, 0), color=MEASURED, lw=1.3, label=label, zorder=3.5)


def _excess_of(matrix: Any) -> Floats:
    return curvature.positive_excess(matrix).numpy(force=True)


def _scale_axis(axes: Axes, values: Floats, y_label: str) -> None:
    axes.set_xscale("log")
    axes.set_xlim(values[0], values[-1])
    decades(axes.xaxis, values[0], values[-1])
    axes.set_xlabel("scale α")
    axes.set_ylabel(y_label)
    axes.grid(axis="y")


# --- the excess of the G-term ------------------------------------------------------------------------------------


def excess_law(setting: Setting) -> list[Panel]:
    """Excess of the G-term against scale, with eq. (8) in three forms."""
    nets = _nets(setting, "excess law")
    forms = {name: np.median(rows, 0) for name, rows in _forms(nets).items()}
    measured = [_excess_of(net.scaled_g_term(EXCESS_ALPHAS)[0]) for net in nets]

    def draw(axes: Axes) -> None:
        curve(axes, EXCESS_ALPHAS, forms["finite"], "finite sample")
        curve(axes, EXCESS_ALPHAS, forms["corrected"], "eq. (8), corrected", dash=0, colour=OTHER)
        curve(axes, EXCESS_ALPHAS, forms["printed"], "eq. (8) as our copy reads", role="rival", dash=1)
        _shaded_median(axes, EXCESS_ALPHAS, measured, f"LeNet-300-100, {SAMPLES} images")
        _scale_axis(axes, EXCESS_ALPHAS, "exc(G)")
        axes.set_ylim(0.0, 5.6)
        plain_ticks(axes.yaxis)
        axes.set_title("Excess of the G-term against scale")
        legend(axes, "upper right")

    note = (
        f"medians of {DRAWS} networks, {SAMPLES} images, d = {DIM}; shade: smallest to largest; "
        "variances of the logit gradients as measured at each network"
    )
    return [inches(2.4, draw, notes=note)]


def _forms(nets: list[Any]) -> dict[str, list[Floats]]:
    """Eq. (8) as it reads, corrected, and for a finite sample, a row for each network."""
    found: dict[str, list[Floats]] = {"printed": [], "corrected": [], "finite": []}
    for net in nets:
        sigma_c, sigma_e = _variances(net.jacobian.numpy(force=True))
        z = np.broadcast_to(net.logits.numpy(force=True), (len(EXCESS_ALPHAS), *net.logits.shape))
        gammas = softmax.batch_gammas_from_logits(z, temperature=EXCESS_ALPHAS**-net.depth)
        size: Any = {"dim": DIM, "sigma_c": sigma_c, "sigma_e": sigma_e}
        found["corrected"].append(gauss_newton.expected_excess(gammas.mean, **size))
        found["finite"].append(gauss_newton.finite_sample_excess(*gammas, **size))
        found["printed"].append(_as_it_reads(gammas.mean, **size))
    return found


def _variances(jacobian: Floats) -> tuple[float, float]:
    """Standard deviations of means and residuals of the gradients (N, K, d) of logits, per component."""
    samples, _, dim = jacobian.shape
    means = jacobian.mean(0)
    noise = float(((jacobian - means) ** 2).mean()) * samples / (samples - 1)
    return max(float((means**2).sum(1).mean()) / dim - noise / samples, 0.0) ** 0.5, noise**0.5


def _as_it_reads(gamma: Floats, *, dim: Any, sigma_c: float, sigma_e: float) -> Floats:
    """Eq. (8) with the last term that our copy has, sigma_e in place of sigma_c."""
    c, e = sigma_c**2, sigma_e**2
    return dim**0.5 * (c + e) / np.sqrt(e**2 + 2 * e * c + dim * e**2 / gamma**2)


# --- gradients ---------------------------------------------------------------------------------------------------

IMAGES, PRIORS = 130, 2000


def gradient(setting: Setting) -> list[Panel]:
    """Gradient norm of one network over many class priors, with eq. (9) corrected and as our copy reads."""
    import torch

    (rng,) = setting.block("gradient", 1).streams
    source = data.opened(setting.data, (3, 32, 32))
    images = data.sample(source, rng, IMAGES)
    network = networks.LeNet5(3, source.classes, rng=rng).to(setting.device)
    kernel = logit_kernel.logit_kernel(network, torch.as_tensor(images.images, device=setting.device))
    labels = np.eye(source.classes)[images.labels]
    (rng,) = setting.block("priors", 1).streams
    return [inches(2.4, partial(_over_priors, kernel=kernel, labels=labels, rng=rng), notes=_GRADIENT_NOTE)]


_GRADIENT_NOTE = (
    f"LeNet-5, max pooled, with {IMAGES} images, classes weighted by {PRIORS} priors; "
    "σ_c and the noise of single samples as measured"
)


def _over_priors(axes: Axes, *, kernel: Any, labels: Floats, rng: np.random.Generator) -> None:
    measured = _weighted_gradients(kernel, labels, rng)
    distance, norm = measured["distance"], measured["norm"]
    straight, floor = measured["expected"], float(np.median(measured["square"] - measured["expected"] ** 2))
    grid = np.linspace(0, distance.max(), 100)
    slope = float(np.median(straight / distance))
    # so many points are smaller as an image than as shapes
    axes.plot(distance, norm, "o", ms=1.8, mew=0, alpha=0.5, color=MEASURED, zorder=2, rasterized=True)
    axes.plot([], [], "o", ms=4, mew=0, color=MEASURED, label="measured")
    curve(axes, grid, np.hypot(slope * grid, floor**0.5), "with the noise of samples")
    curve(axes, grid, slope * grid, "√P σ_c |Q̂ − Q|", dash=0)
    printed = kernel.dim * kernel.scales().sigma_c ** 2 * grid
    curve(axes, grid, printed, "P σ_c² |Q̂ − Q|, as our copy reads", role="rival", dash=1)
    axes.set_xlim(0, None)
    axes.set_ylim(0, 1.45 * norm.max())
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")
    axes.set_xlabel("|Q̂ − Q|")
    axes.set_ylabel("gradient norm")
    correlation = numeral(float(np.corrcoef(distance, norm)[0, 1]), 2)
    axes.set_title(f"Gradient norm over class priors, correlation {correlation}")
    legend(axes, (0.09, 0.61))


def _weighted_gradients(kernel: Any, labels: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    """Norms of the gradient under random class priors, measured and by theory without and with the noise of samples.

    A prior lies between the mean prediction under even weights and a random corner.
    """
    p = kernel.logits.softmax(1).numpy(force=True)
    share = labels / np.maximum(labels.sum(0), 1)
    natural = share.sum(1) @ p / share.sum()
    mix = rng.uniform(size=(PRIORS, 1))
    priors = mix * rng.dirichlet(np.full(p.shape[1], 0.4), PRIORS) + (1 - mix) * natural
    weights = priors @ share.T
    weights /= weights.sum(1, keepdims=True)
    slopes = (weights[:, :, None] * (p - labels)).reshape(PRIORS, -1)
    gram = kernel.gram.numpy(force=True).reshape(slopes.shape[1], -1)
    mean, prior = weights @ p, weights @ labels
    count = np.maximum(1, (1 / (weights**2).sum(1) + 1e-9).astype(int))
    scales, size = kernel.scales(), {"dim": kernel.dim}
    error = weights**2 @ ((p - labels) ** 2).sum(1) * count
    return {
        "norm": np.sqrt(np.einsum("ij,ij->i", slopes @ gram, slopes)),
        "distance": np.linalg.norm(mean - prior, axis=1),
        "expected": gauss_newton.expected_gradient_norm(mean, prior, sigma_c=scales.sigma_c, **size),
        "square": gauss_newton.squared_gradient_norm(
            mean, prior, squared_error=error, sigma_c=scales.sigma_c, sigma_e=scales.sigma_e,
            samples=count, **size,
        ),
    }  # fmt: skip
