"""Figure 5 of Vysogorets, Dawid and Kempe (2024): gradients of unrelated data, and gradient norms over priors."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from simulate import data, networks
from simulate.modules import logit_kernel
from theory import gauss_newton
from verify.gallery.goldilocks.parts import SECOND, scale_axis, shaded_median
from verify.gallery.parts import MEASURED, Setting, curve, legend
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.wording import numeral

__all__ = ["gradient"]

NETWORKS, IMAGES, NOISE, PRIORS = 4, 130, 70, 2000
ALPHAS: Floats = np.logspace(-1.5, 0.5, 25)


class _Gradients(NamedTuple):
    """One network: logits (N, K), inner products of their gradients, and labels of images and of noise."""

    kernel: Any
    labels: Floats
    depth: int

    def weighted(self, logits: Floats, part: slice, prior: Floats) -> _Weighted:
        """Gradient over some of the samples, the classes weighted by a prior."""
        labels = self.labels[part]
        weights = np.zeros(len(self.labels))
        weights[part] = (prior * labels / np.maximum(labels.sum(0), 1)).sum(1)
        weights /= weights.sum()
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        slope = weights[:, None] * (p - self.labels)
        square = float(weights @ weights)
        count = max(1, int(1 / square + 1e-9))
        error = float(weights**2 @ ((p - self.labels) ** 2).sum(1)) * count
        return _Weighted(slope, weights @ p, weights @ self.labels, error, count)


class _Weighted(NamedTuple):
    """Slopes of the loss in the logits, mean prediction, prior, and error and size of an even sample as noisy.

    Of one gradient, or of many along the first axis.
    """

    slope: Floats
    mean: Floats
    prior: Floats
    error: Any
    samples: Any

    def expected_norm(self, scales: Any, dim: int) -> Floats:
        """Eq. (9)."""
        return gauss_newton.expected_gradient_norm(self.mean, self.prior, dim=dim, sigma_c=scales.sigma_c)

    def squared_norm(self, scales: Any, dim: int) -> Floats:
        """With the noise floor."""
        return gauss_newton.squared_gradient_norm(
            self.mean, self.prior, squared_error=self.error, dim=dim, sigma_c=scales.sigma_c,
            sigma_e=scales.sigma_e, samples=self.samples,
        )  # fmt: skip


def gradient(setting: Setting) -> list[Panel]:
    """Cosine of the gradients of images and of noise against scale; gradient norms of one network over many priors."""
    nets = [_drawn(rng, setting) for rng in setting.block("gradient", NETWORKS).streams]
    rng = setting.block("priors", 1).streams[0]
    note = (
        f"LeNet-5, max pooled, with {IMAGES} images and {NOISE} of Gaussian noise;\n"
        "classes weighted by a prior.\n"
        f"above: medians of {NETWORKS} networks, shades from the smallest to the largest, blue: by\n"
        "eq. (9) with its noise floor, as if images and noise had the same class means;\n"
        f"below: {PRIORS} priors, the images of one network; σ_c and σ_e as measured"
    )
    return [
        Panel(1.9, partial(_cosines, nets=nets)),
        Panel(2.1, partial(_norms, net=nets[0], rng=rng), notes=note),
    ]


def _drawn(rng: np.random.Generator, setting: Setting) -> _Gradients:
    import torch

    source = data.opened(setting.data, (3, 32, 32))
    images = data.sample(source, rng, IMAGES)
    network = networks.LeNet5(3, source.classes, rng=rng).to(setting.device)
    noise = rng.standard_normal((NOISE, 3, 32, 32))
    labels = np.concatenate([images.labels, rng.integers(0, source.classes, NOISE)])
    inputs = torch.as_tensor(np.concatenate([images.images, noise]), device=setting.device)
    return _Gradients(logit_kernel.logit_kernel(network, inputs), np.eye(source.classes)[labels], depth=5)


def _cosines(axes: Axes, *, nets: list[_Gradients]) -> None:
    classes = nets[0].labels.shape[1]
    even, steep = np.full(classes, 1 / classes), 0.5 ** np.arange(1, classes + 1)
    shown = ((steep / steep.sum(), "one prior for both", MEASURED, None), (even, "balanced", SECOND, 0))
    for prior, name, colour, dash in shown:
        found = np.array([_cosines_of(net, prior) for net in nets])
        curve(axes, ALPHAS, np.median(found[:, 1], 0), "", dash=dash)
        shaded_median(axes, ALPHAS, found[:, 0], name, colour=colour)
    scale_axis(axes, ALPHAS)
    axes.set_ylim(-0.2, 1.05)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("cosine")
    axes.set_title("Gradients of real images and of noise")
    legend(axes, (0.02, 0.24))


def _cosines_of(net: _Gradients, prior: Floats) -> Floats:
    """Measured and predicted, (2, scales)."""
    scales, dim = _scales(net), net.kernel.dim
    logits, parts = net.kernel.logits.numpy(force=True), (slice(IMAGES), slice(IMAGES, None))
    pairs = [[net.weighted(a**net.depth * logits, part, prior) for part in parts] for a in ALPHAS]
    moved = _moved(net, [w.slope for pair in pairs for w in pair])  # by all at once: the kernel is large
    rows = []
    for pair, sent in zip(pairs, np.split(moved, len(pairs)), strict=True):
        gram = np.reshape([w.slope for w in pair], sent.shape) @ sent.T
        first, second = (w.mean - w.prior for w in pair)
        shared = dim * scales.sigma_c**2 * float(first @ second)
        sizes = [w.squared_norm(scales, dim) for w in pair]
        rows.append((gram[0, 1] / np.sqrt(gram[0, 0] * gram[1, 1]), shared / np.sqrt(sizes[0] * sizes[1])))
    return np.array(rows).T


def _moved(net: _Gradients, slopes: list[Floats], count: int | None = None) -> Floats:
    """Changes of the logits along gradients given by their slopes in them, of the first samples or all; a row each.

    The product of one with the slopes of another gradient is the inner product of both, at the weights as drawn.
    """
    gram = net.kernel.gram[:count, :, :count].numpy(force=True)
    rows = np.array([slope[:count] for slope in slopes]).reshape(len(slopes), -1)
    return rows @ gram.reshape(rows.shape[1], -1)


def _scales(net: _Gradients) -> Any:
    """Of the images alone."""
    kernel = net.kernel
    return kernel._replace(logits=kernel.logits[:IMAGES], gram=kernel.gram[:IMAGES, :, :IMAGES]).scales()


def _norms(axes: Axes, *, net: _Gradients, rng: np.random.Generator) -> None:
    logits, scales, dim = net.kernel.logits.numpy(force=True), _scales(net), net.kernel.dim
    natural = net.weighted(logits, slice(IMAGES), np.ones(net.labels.shape[1]) / net.labels.shape[1]).mean
    drawn = [net.weighted(logits, slice(IMAGES), _prior(rng, natural)) for _ in range(PRIORS)]
    slopes = [w.slope for w in drawn]  # zero but for the images
    sent = _moved(net, slopes, IMAGES)
    norm = np.sqrt(np.einsum("ij,ij->i", np.reshape([s[:IMAGES] for s in slopes], sent.shape), sent))
    distance = np.array([np.linalg.norm(w.mean - w.prior) for w in drawn])
    grid = np.linspace(0, distance.max(), 100)
    together = _Weighted(*(np.array(column) for column in zip(*drawn, strict=True)))
    lines = together.expected_norm(scales, dim)
    floor = np.median(together.squared_norm(scales, dim) - lines**2)
    slope = float(np.median(lines / distance))
    # so many points are smaller as an image than as shapes
    axes.plot(distance, norm, "o", ms=1.8, mew=0, alpha=0.5, color=MEASURED, zorder=2, rasterized=True)
    axes.plot([], [], "o", ms=4, mew=0, color=MEASURED, label="measured")
    curve(axes, grid, np.hypot(slope * grid, floor**0.5), "with the noise floor")
    curve(axes, grid, slope * grid, "√P σ_c |Q̂ − Q|", dash=0)
    curve(
        axes, grid, dim * scales.sigma_c**2 * grid, "P σ_c² |Q̂ − Q|, as our copy reads", role="rival", dash=1
    )
    axes.set_xlim(0, None)
    axes.set_ylim(0, 1.45 * norm.max())
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")
    axes.set_xlabel("|Q̂ − Q|")
    axes.set_ylabel("gradient norm")
    correlation = np.corrcoef(distance, norm)[0, 1]
    axes.set_title(f"Gradient norm over class priors, correlation {numeral(correlation, 2)}")
    legend(axes, (0.09, 0.61))


def _prior(rng: np.random.Generator, natural: Floats) -> Floats:
    """Between the mean prediction and a random corner."""
    share = rng.uniform()
    return share * rng.dirichlet(np.full(len(natural), 0.4)) + (1 - share) * natural
