"""Figure 10 of Vysogorets, Dawid and Kempe (2024): what the top eigenvector of the first layer's Hessian looks like."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from simulate import data, networks
from simulate.perceptrons import layer_blocks
from theory import zone as laws
from verify.gallery.goldilocks.parts import SECOND, frames_beside, scale_axis, shaded_median
from verify.gallery.parts import Setting, legend
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["first_layer"]

SAMPLES, DRAWS, SHOWN = 60, 6, 2
SHOWN_AT = (1.0, 4.0, 16.0)
ALPHAS: Floats = np.logspace(-1, 1.5, 18)
DEPTH = 3
GREYS = LinearSegmentedColormap.from_list("greys", [PALETTE["paper"], PALETTE["ink"]])


class _Network(NamedTuple):
    """One network: its least confident image, eigenvectors as images, and energy and share along the scales."""

    image: Floats
    seen: list[tuple[Floats, float]]
    energy: Floats
    share: Floats
    edge: float


def first_layer(setting: Setting) -> list[Panel]:
    """Least confident image and eigenvectors at three scales; energy along that image, and its share of the trace."""
    nets = [_drawn(rng, setting) for rng in setting.block("first layer", DRAWS).streams]
    rows = [
        Panel(
            0.98, partial(_images, net=net, titled=first), left=0.3, top=0.42 if first else 0.06, bottom=0.26
        )
        for net, first in zip(nets[:SHOWN], (True, *(False,) * (SHOWN - 1)), strict=True)
    ]
    note = (
        f"above: two networks LeNet-300-100 with {SAMPLES} images; top eigenvector of the block\n"
        "of the first layer, mean over hidden units, and its energy along the least\n"
        f"confident image; below: medians of {DRAWS} networks, shades: smallest to largest;\n"
        "upright: (N f(0))^(1/L) of these networks, beyond which one image comes to lead"
    )
    return [*rows, Panel(1.7, partial(_energies, nets=nets), notes=note)]


def _drawn(rng: np.random.Generator, setting: Setting) -> _Network:
    source = data.opened(setting.data, (1, 28, 28))
    images, _ = data.sample(source, rng, SAMPLES).flat().tensors(setting.device)
    widths = (images.shape[1], *networks.LENET_300_100[1:-1], source.classes)
    weights = [w.to(setting.device) for w in networks.mlp_weights(rng, widths)]
    top = networks.mlp_logits(weights, images).topk(2, dim=1).values
    gaps = (top[:, 0] - top[:, 1]).numpy(force=True)
    least = int(gaps.argmin())
    unit = images[least] / images[least].norm()

    def at(alpha: float) -> tuple[Any, float, float]:
        block = layer_blocks.layer_block(weights, images, alpha=alpha)
        direction = block.top_direction()
        return direction, float((direction @ unit).square().sum()), float(block.shares[least])

    found = [at(float(alpha))[1:] for alpha in ALPHAS]
    shown = [at(alpha)[:2] for alpha in SHOWN_AT]
    energy, share = np.array(found).T
    seen = [(_mean_of_units(direction, unit), energy) for direction, energy in shown]
    edge = laws.upper_edge(SAMPLES, gap_density=0.25 / float(np.quantile(gaps, 0.25)), depth=DEPTH)
    return _Network(images[least].numpy(force=True).reshape(28, 28), seen, energy, share, float(edge))


def _mean_of_units(direction: Any, unit: Any) -> Floats:
    """Mean over hidden units, with the sign that it has along the image."""
    mean = direction.mean(0)
    sign = 1.0 if float(mean @ unit) >= 0 else -1.0
    return sign * mean.numpy(force=True).reshape(28, 28)


def _images(axes: Axes, *, net: _Network, titled: bool) -> None:
    def image(axes: Axes, pixels: Floats, title: str, below: str) -> None:
        axes.imshow(pixels, cmap=GREYS, interpolation="nearest", aspect="equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_xlabel(below, fontsize=7.5, labelpad=3)
        if titled:
            axes.set_title(title, fontsize=8.0, loc="center")

    draws = [partial(image, pixels=net.image, title="least confident", below="")]
    for (pixels, energy), alpha in zip(net.seen, SHOWN_AT, strict=True):
        draws.append(partial(image, pixels=pixels, title=f"α = {alpha:g}", below=f"energy {energy:.3f}"))
    frames_beside(axes, draws, gap=0.04)


def _energies(axes: Axes, *, nets: list[_Network]) -> None:
    edges = [net.edge for net in nets]
    axes.axvspan(min(edges), max(edges), color=PALETTE["theory"], alpha=0.22, lw=0, zorder=1)
    axes.axvline(float(np.median(edges)), color=PALETTE["theory"], lw=1.0, zorder=2)
    axes.axhline(1.0, color=PALETTE["theory"], lw=1.2, dashes=(4, 2), zorder=2)
    shaded_median(axes, ALPHAS, [net.energy for net in nets], "energy along its image")
    shaded_median(axes, ALPHAS, [net.share for net in nets], "its share of the trace", colour=SECOND)
    scale_axis(axes, ALPHAS)
    axes.set_ylim(0.0, 1.08)
    plain_ticks(axes.yaxis)
    axes.set_title("The least confident image in the block of layer 1")
    legend(axes, (0.02, 0.1))
