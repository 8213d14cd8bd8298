"""Figures 3 and 4 (left) of Vysogorets, Dawid and Kempe (2024): the excess of the G-term by the random logit model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate import data, networks
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax, zone as laws
from verify.claims.vysogorets2024.framed_networks import lenet_300_100, upper_crossing
from verify.gallery.goldilocks.parts import THIRD, drawn_networks, scale_axis, shaded_median
from verify.gallery.parts import MEASURED, OTHER, Setting, curve, legend, log_axes
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.wording import numeral

__all__ = ["EDGE_SAMPLES", "as_it_reads", "excess_law"]

SAMPLES, DIM, DRAWS = 60, 50, 6
ALPHAS: Floats = np.logspace(-1, 1.5, 41)

EDGE_SAMPLES = np.array([30, 100, 300, 1000])
EDGE_DRAWS, EDGE_DIM = 8, 12
EDGE_NETWORKS = ((60,), (50, 30))
"""Hidden widths."""


def excess_law(setting: Setting) -> list[Panel]:
    """Excess of the G-term against scale beside eq. (8) in three forms, and the upper edge against the sample."""
    nets = drawn_networks(setting, "excess law", lenet_300_100, DRAWS, samples=SAMPLES, dim=DIM)
    note = (
        f"above: medians of {DRAWS} networks, {SAMPLES} images, d = {DIM}; shade: smallest to largest;\n"
        "variances of the logit gradients as measured at each network.\n"
    )
    return [Panel(2.1, partial(_excess, nets=nets)), _edges(setting, note)]


# --- the excess against scale ------------------------------------------------------------------------------------


def _excess(axes: Axes, *, nets: list[Any]) -> None:
    measured = [curvature.positive_excess(net.scaled_g_term(ALPHAS)[0]).numpy(force=True) for net in nets]
    forms = {name: np.median(rows, 0) for name, rows in _formulas(nets).items()}
    curve(axes, ALPHAS, forms["finite"], "finite sample")
    curve(axes, ALPHAS, forms["corrected"], "eq. (8), corrected", dash=0, colour=OTHER)
    curve(axes, ALPHAS, forms["printed"], "eq. (8) as our copy reads", role="rival", dash=1)
    shaded_median(axes, ALPHAS, measured, f"LeNet-300-100, {SAMPLES} images")
    scale_axis(axes, ALPHAS)
    axes.set_ylim(0.0, 5.6)
    plain_ticks(axes.yaxis)
    axes.set_ylabel("exc(G)")
    axes.set_title("Excess of the G-term against scale")
    legend(axes, "upper right")


def _formulas(nets: list[Any]) -> dict[str, list[Floats]]:
    """Eq. (8) as it reads, corrected, and for a finite sample, a row for each network."""
    found: dict[str, list[Floats]] = {"printed": [], "corrected": [], "finite": []}
    for net in nets:
        sigma_c, sigma_e = _variances(net.jacobian.numpy(force=True))
        z = np.broadcast_to(net.logits.numpy(force=True), (len(ALPHAS), *net.logits.shape))
        gammas = softmax.batch_gammas_from_logits(z, temperature=ALPHAS**-net.depth)
        size: Any = {"dim": DIM, "sigma_c": sigma_c, "sigma_e": sigma_e}
        found["corrected"].append(gauss_newton.expected_excess(gammas.mean, **size))
        found["finite"].append(gauss_newton.finite_sample_excess(*gammas, **size))
        found["printed"].append(as_it_reads(gammas.mean, **size))
    return found


def _variances(jacobian: Floats) -> tuple[float, float]:
    """Standard deviations of means and residuals of the gradients (N, K, d) of logits, per component."""
    samples, _, dim = jacobian.shape
    means = jacobian.mean(0)
    noise = float(((jacobian - means) ** 2).mean()) * samples / (samples - 1)
    return max(float((means**2).sum(1).mean()) / dim - noise / samples, 0.0) ** 0.5, noise**0.5


def as_it_reads(gamma: Floats, *, dim: Any, sigma_c: float, sigma_e: float) -> Floats:
    """Eq. (8) with the last term that our copy has, sigma_e in place of sigma_c."""
    c, e = sigma_c**2, sigma_e**2
    return dim**0.5 * (c + e) / np.sqrt(e**2 + 2 * e * c + dim * e**2 / gamma**2)


# --- the upper edge against the sample ---------------------------------------------------------------------------


def _edges(setting: Setting, note: str) -> Panel:
    drawn = {hidden: _drawn_edges(setting, hidden) for hidden in EDGE_NETWORKS}
    grid = np.unique(np.round(np.geomspace(EDGE_SAMPLES[0], EDGE_SAMPLES[-1], 60)))
    lines = {hidden: _law(*found, grid, len(hidden) + 1) for hidden, found in drawn.items()}

    def draw(axes: Axes) -> None:
        for (hidden, (edges, _)), mark, colour in zip(drawn.items(), "os", (MEASURED, THIRD), strict=True):
            depth, (line, _) = len(hidden) + 1, lines[hidden]
            own: dict[str, Any] = {"dash": 0, "colour": colour} if depth > 2 else {}
            curve(axes, grid, line, f"N^(1/{depth})", **own)
            axes.errorbar(
                EDGE_SAMPLES, np.exp(np.mean(np.log(edges), 1)), yerr=_spread(edges), ls="", marker=mark, ms=4,
                mew=0, elinewidth=1.2, color=colour, label=f"{depth} layers of weights", zorder=4,
            )  # fmt: skip
        log_axes(axes, EDGE_SAMPLES.astype(float), "images N", "upper edge of α")
        axes.set_title("Where G falls behind for good, against the sample")
        legend(axes, "upper left", columns=2)

    constants = " and ".join(numeral(constant, 2) for _, constant in lines.values())
    note += (
        f"below: {EDGE_DRAWS} networks 64-60-K and 64-50-30-K each, d = {EDGE_DIM}; geometric means,\n"
        f"bars of two standard errors; lines: (N f(0))^(1/L) times {constants},\n"
        "with the density f(0) of gaps between the two largest logits as measured"
    )
    return Panel(1.9, draw, notes=note)


def _drawn_edges(setting: Setting, hidden: tuple[int, ...]) -> tuple[Floats, float]:
    """Upper edges, (sizes, draws), and the density at zero of the gap between the two largest logits."""
    found, densities = [], []
    for rng in setting.block(f"upper edge {hidden}", EDGE_DRAWS).streams:
        nets = [_perceptron(rng, setting, hidden, int(size)) for size in EDGE_SAMPLES]
        grid = np.geomspace(2.0, 1000 ** (2 / nets[0].depth), 20)
        found.append([upper_crossing(net, grid) for net in nets])
        densities.append(_density_at_zero(nets[-1].logits.numpy(force=True)))
    return np.array(found).T, float(np.mean(densities))


def _perceptron(rng: np.random.Generator, setting: Setting, hidden: tuple[int, ...], samples: int) -> Any:
    source = data.opened(setting.data, (1, 8, 8))
    widths = (64, *hidden, source.classes)
    images = data.sample(source, rng, samples).flat()
    weights = [w.to(setting.device) for w in networks.mlp_weights(rng, widths)]
    frame = curvature.haar(rng, networks.weight_count(widths), EDGE_DIM, device=setting.device)
    return curvature.ProjectedMlp(weights, images.images, images.labels, frame)


def _density_at_zero(logits: Floats) -> float:
    """Share of gaps below their lower quartile over that quartile."""
    top = np.sort(logits, 1)[:, -2:]
    return 0.25 / float(np.quantile(top[:, 1] - top[:, 0], 0.25))


def _law(edges: Floats, density: float, grid: Floats, depth: int) -> tuple[Floats, float]:
    """The law of growth, times the constant that fits best in logarithms, and that constant."""
    at = laws.upper_edge(EDGE_SAMPLES, gap_density=density, depth=depth)
    constant = float(np.exp(np.mean(np.log(edges) - np.log(at)[:, None])))
    line = laws.upper_edge(grid, gap_density=density, depth=depth)
    return constant * line, constant


def _spread(edges: Floats) -> Floats:
    """Distances down and up from the geometric mean, of two standard errors of the logarithm."""
    logs = np.log(edges)
    mean, error = logs.mean(1), 2 * logs.std(1, ddof=1) / logs.shape[1] ** 0.5
    return np.exp(mean) * np.array([1 - np.exp(-error), np.exp(error) - 1])
