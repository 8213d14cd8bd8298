"""Figure 6 of Vysogorets, Dawid and Kempe (2024): what initialisations of one network share."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from simulate import data, networks
from simulate.modules import logit_kernel
from simulate.perceptrons import full_space
from theory import gauss_newton, initial_loss
from verify.gallery.goldilocks.parts import frames_beside
from verify.gallery.parts import MEASURED, Setting, curve
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE
from verify.page.wording import numeral

__all__ = ["initialisations"]

DRAWS, SAMPLES = 150, 30


class _Initialisation(NamedTuple):
    """One network on the same images: loss, entropy, gradient, curvature and |Q̂ - Q|; the gradient by theory."""

    loss: float
    entropy: float
    gradient: float
    excess: float
    distance: float
    line: float
    square: float


def initialisations(setting: Setting) -> list[Panel]:
    """Loss, entropy, gradient norm and excess of the Hessian of many initialisations, against each other."""
    found, lowest = _initialised(setting)
    panels = [
        [partial(_losses, found=found, lowest=lowest), partial(_gradients, found=found)],
        [
            partial(_pair, found=found, x="entropy", y="excess"),
            partial(_pair, found=found, x="loss", y="excess"),
        ],
    ]
    note = (
        f"{DRAWS} initialisations of LeNet-300-100, the same {SAMPLES} images; excess in full space;\n"
        "ρ: rank correlation; line on the left: entropy of the class frequencies, least\n"
        "mean loss; on the right: √P σ_c |Q̂ − Q| in dashes, with its noise floor as a line,\n"
        "√P σ_c and the floor their medians over the initialisations"
    )
    above, below = (partial(frames_beside, draws=row, gap=0.2) for row in panels)
    return [Panel(1.75, above, bottom=0.46), Panel(1.75, below, top=0.4, notes=note)]


def _initialised(setting: Setting) -> tuple[list[_Initialisation], float]:
    (rng,) = setting.block("initialisations", 1).streams
    images = data.sample(source := data.opened(setting.data, (1, 28, 28)), rng, SAMPLES).flat()
    frequencies = np.bincount(images.labels, minlength=source.classes) / SAMPLES
    found = [_one(rng, images, frequencies, setting.device) for _ in range(DRAWS)]
    return found, float(initial_loss.prior_entropy(frequencies))


def _one(rng: np.random.Generator, images: Any, frequencies: Floats, device: str) -> _Initialisation:
    import torch

    widths = (images.images.shape[1], *networks.LENET_300_100[1:-1], len(frequencies))
    x, labels = images.tensors(device)
    network = networks.Mlp(widths, rng=rng).to(device)
    kernel = logit_kernel.logit_kernel(network, x)
    p = kernel.logits.softmax(1)
    slope = p - torch.eye(len(frequencies), dtype=p.dtype, device=p.device)[labels]
    mean = p.mean(0).numpy(force=True)
    line, square = _theory(kernel, mean, frequencies, float(slope.square().sum(1).mean()))
    return _Initialisation(
        loss=float(torch.nn.functional.cross_entropy(kernel.logits, labels)),
        entropy=float(-torch.special.xlogy(p, p).sum(1).mean()),
        gradient=float(kernel.sample_gram(slope).sum().sqrt()) / len(x),
        excess=full_space.norms(list(network.parameters()), x, labels).excess_hessian,
        distance=float(np.linalg.norm(mean - frequencies)),
        line=line,
        square=square,
    )


def _theory(kernel: Any, mean: Floats, prior: Floats, error: float) -> tuple[float, float]:
    """Norm of the expected gradient, and squared norm with the noise floor."""
    scales, samples = kernel.scales(), len(kernel.logits)
    known: dict[str, Any] = {"dim": kernel.dim, "sigma_c": scales.sigma_c}
    square = gauss_newton.squared_gradient_norm(
        mean, prior, squared_error=error, sigma_e=scales.sigma_e, samples=samples, **known
    )
    return float(gauss_newton.expected_gradient_norm(mean, prior, **known)), float(square)


NAMES = {
    "loss": "loss",
    "entropy": "mean entropy",
    "gradient": "gradient norm",
    "excess": "exc(H)",
    "distance": "|Q̂ − Q|",
}


def _pair(axes: Axes, *, found: list[_Initialisation], x: str, y: str) -> None:
    across, up = (np.array([getattr(one, name) for one in found]) for name in (x, y))
    axes.plot(across, up, "o", ms=2.2, mew=0, alpha=0.6, color=MEASURED, zorder=2)
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)
    axes.grid(axis="y")
    axes.set_xlabel(NAMES[x])
    axes.set_ylabel(NAMES[y])
    axes.set_title(f"ρ = {numeral(_rank_correlation(across, up), 2)}")


def _rank_correlation(x: Floats, y: Floats) -> float:
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])


def _ranks(x: Floats) -> Floats:
    """From 1 up, the mean of its places for a number that is there more than once."""
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def _losses(axes: Axes, *, found: list[_Initialisation], lowest: float) -> None:
    axes.axhline(lowest, color=PALETTE["theory"], lw=1.4, zorder=3)
    _pair(axes, found=found, x="entropy", y="loss")


def _gradients(axes: Axes, *, found: list[_Initialisation]) -> None:
    grid = np.linspace(0, max(one.distance for one in found), 60)
    slope = float(np.median([one.line / one.distance for one in found]))
    floor = float(np.median([one.square - one.line**2 for one in found])) ** 0.5
    curve(axes, grid, np.hypot(slope * grid, floor), "")
    curve(axes, grid, slope * grid, "", dash=0)
    _pair(axes, found=found, x="distance", y="gradient")
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
