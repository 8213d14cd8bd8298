"""Random matrices: spectra of noise with spikes, where a spike leaves the bulk, and batches of noisy samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from simulate.matrices import ensembles
from simulate.monte_carlo import Block
from theory import batch_hessian, outliers, rmt
from verify.gallery.parts import MEASURED, OTHER, Setting, batch_axis, curve, inches, legend, mean_points
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE
from verify.page.wording import numeral

DIM = 900

ZERO = 1e-9
"""Eigenvalues below are those of the null space."""


def semicircle(setting: Setting) -> list[Panel]:
    """Wigner noise of one matrix; two of its four spikes are too weak, or nearly so, to be seen."""
    sigma, spikes = 0.7, np.array([-2.1, 0.45, 0.95, 1.7])
    block = setting.block("semicircle", 1)
    noise = sigma * ensembles.wigner(block, DIM)
    values, found = _spectrum(block, noise, spikes)
    predicted = outliers.additive_wigner(spikes, sigma=sigma)
    title = f"Wigner noise of scale {sigma} with four spikes, P = {DIM}"
    return _with_spikes(title, rmt.Semicircle(sigma=sigma), values, spikes, found, predicted)


def marchenko_pastur(setting: Setting) -> list[Panel]:
    """Wishart noise with more samples than dimensions, and with fewer."""
    return [
        *_wishart(setting, 0.3, np.array([0.5, 1.5, 3.0])),
        *_wishart(setting, 2.5, np.array([2.0, 6.0, 11.0])),
    ]


def _wishart(setting: Setting, q: float, spikes: Floats) -> list[Panel]:
    variance = 1.3
    block = setting.block(f"wishart {q}", 1)
    noise = variance * ensembles.wishart(block, DIM, round(DIM / q))
    values, found = _spectrum(block, noise, spikes)
    predicted = outliers.additive_wishart(spikes, q=q, variance=variance)
    title = f"Wishart noise, q = {q}, with three spikes, P = {DIM}"
    return _with_spikes(title, rmt.MarchenkoPastur(q=q, variance=variance), values, spikes, found, predicted)


def _spectrum(block: Block, noise: Any, spikes: Floats) -> tuple[Floats, Floats]:
    """All eigenvalues of noise plus spikes in random orthogonal directions; for each spike the one it turns into.

    A spike turns into the eigenvalue of the same rank from its own end of the spectrum.
    """
    import torch

    frame = torch.linalg.qr(block.normal(noise.shape[-1], len(spikes))[0]).Q
    strength = torch.as_tensor(spikes, device=frame.device)
    values = torch.linalg.eigvalsh(noise[0] + (frame * strength) @ frame.T).cpu().numpy()
    ranks = [(spikes > s).sum() if s > 0 else -1 - (spikes < s).sum() for s in spikes]
    return values, values[::-1][ranks]


def _with_spikes(
    title: str, law: Any, values: Floats, spikes: Floats, found: Floats, predicted: outliers.Outlier
) -> list[Panel]:
    """Histogram and law; below, on the same scale, each spike before and after."""
    low, high = law.edges
    reach = [min(low, spikes.min(), found.min()), max(high, found.max(), spikes.max())]
    pad = 0.05 * (reach[1] - reach[0])
    limits = (reach[0] - pad, reach[1] + pad)

    def spectrum(axes: Axes) -> None:
        bulk = values[(values > min(low, ZERO)) | (law.atom == 0)]
        bins = np.linspace(low - pad / 2, high + pad / 2, 46)
        share = np.full(len(bulk), 1 / len(values) / (bins[1] - bins[0]))
        heights, _, _ = axes.hist(
            bulk, bins, weights=share, color=PALETTE["agrees"], alpha=0.25, label="eigenvalues of one matrix"
        )
        x = (low + high - (high - low) * np.cos(np.linspace(0, np.pi, 400))) / 2
        density = law.pdf(np.clip(x, low, high))
        curve(axes, x, density, "law of the noise")
        axes.plot(found, np.zeros(len(found)), "D", ms=4, color=PALETTE["agrees"], clip_on=False, zorder=5)
        if law.atom:
            atom, zero = numeral(law.atom, 3), numeral(float(np.mean(np.abs(values) < ZERO)), 3)
            axes.annotate(
                f"atom at 0: {atom}, measured {zero}", (0.985, 0.6), xycoords="axes fraction",
                ha="right", fontsize=7.5, color=PALETTE["muted"],
            )  # fmt: skip
        axes.set_xlim(*limits)
        axes.set_ylim(0, 1.32 * max(density.max(), np.max(heights)))
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_title(title)
        axes.set_ylabel("density")
        legend(axes, "upper right")

    def moves(axes: Axes) -> None:
        axes.axvspan(low, high, color=PALETTE["band"], linewidth=0)
        for place, (before, after) in enumerate(zip(spikes, found, strict=True)):
            goal = float(np.asarray(predicted.eigenvalue)[place])
            axes.annotate(
                "", (goal, -place), (before, -place),
                arrowprops={"arrowstyle": "->", "color": PALETTE["theory"], "lw": 1.1},
            )  # fmt: skip
            axes.plot([before], [-place], "o", ms=5, mfc=PALETTE["paper"], mec=PALETTE["ink"], zorder=4)
            axes.plot([goal] * 2, [-place - 0.32, -place + 0.32], color=PALETTE["theory"], lw=2)
            axes.plot([after], [-place], "D", ms=4, color=PALETTE["agrees"], zorder=5)
        axes.set_xlim(*limits)
        axes.set_ylim(-len(spikes) + 0.4, 0.6)
        axes.set_yticks([])
        plain_ticks(axes.xaxis)
        axes.set_xlabel("eigenvalue")

    note = "ring: spike before the noise; bar: predicted after it; diamond: measured; shade: bulk"
    return [
        inches(1.7, spectrum, bottom=0.18),
        inches(0.2 * len(spikes) + 0.1, moves, top=0.1, notes=note),
    ]


class _Model(NamedTuple):
    """A kind of noise: theory, and one draw of the top eigenpair at a list of spikes."""

    name: str
    theory: Callable[[Floats], outliers.Outlier]
    noise: Callable[[Block], Any]


TRANSITION_DIM, DRAWS = 240, 12
RATIO = 0.4


def transition(setting: Setting) -> list[Panel]:
    """Outlier over edge, and overlap, for spikes around the threshold of two kinds of noise."""
    models = (
        _Model(
            "Wigner noise",
            lambda spike: outliers.additive_wigner(spike, sigma=1.0),
            lambda block: ensembles.wigner(block, TRANSITION_DIM),
        ),
        _Model(
            f"Wishart noise, q = {RATIO}",
            lambda spike: outliers.additive_wishart(spike, q=RATIO, variance=1.0),
            lambda block: ensembles.wishart(block, TRANSITION_DIM, round(TRANSITION_DIM / RATIO)),
        ),
    )
    strengths = np.array([0.4, 0.7, 0.9, 1.1, 1.35, 1.7, 2.2, 2.8])
    drawn = {model.name: _around_threshold(setting, model, strengths) for model in models}
    grid = np.linspace(0.3, 3.0, 400)

    def panel(axes: Axes, index: int) -> None:
        for place, model in enumerate(models):
            at = float(np.asarray(model.theory(np.array(1.0)).threshold))
            top = model.theory(grid * at)
            line = (np.asarray(top.eigenvalue) / np.asarray(top.edge), np.asarray(top.overlap))[index]
            colour = (MEASURED, OTHER)[place]
            curve(axes, grid, line, model.name, dash=place or None, colour=colour if place else "")
            mean_points(axes, strengths, drawn[model.name][index], "", mark="os"[place], colour=colour)
        axes.axvline(1.0, color=PALETTE["rule"], lw=1.0, zorder=1)
        axes.set_xlim(0.3, 3.0)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.grid(axis="y")

    def eigenvalue(axes: Axes) -> None:
        panel(axes, 0)
        axes.set_title("Top eigenvalue over the edge of the bulk")
        legend(axes, "upper left")

    def overlap(axes: Axes) -> None:
        panel(axes, 1)
        axes.set_ylim(-0.02, 1.02)
        axes.set_title("Squared overlap with the spike's direction")
        axes.set_xlabel("spike over threshold")

    note = f"points: means of {DRAWS} matrices, P = {TRANSITION_DIM}, bars of two standard errors"
    return [inches(1.6, eigenvalue, bottom=0.3), inches(1.6, overlap, notes=note)]


def _around_threshold(
    setting: Setting, model: _Model, strengths: Floats
) -> tuple[list[Floats], list[Floats]]:
    """Top eigenvalue over the limiting edge, and overlap: for each strength one value per draw."""
    block = setting.block(f"transition {model.name}", DRAWS)
    noise, directions = model.noise(block), ensembles.unit_vectors(block, TRANSITION_DIM)
    limit = model.theory(np.array(1.0))
    found = [
        ensembles.top_eigenpair(ensembles.spiked(noise, directions, float(s * np.asarray(limit.threshold))))
        for s in strengths
    ]
    edge = float(np.asarray(limit.edge))
    return (
        [values.cpu().numpy() / edge for values, _ in found],
        [((vectors * directions).sum(1) ** 2).cpu().numpy() for _, vectors in found],
    )


# --- batches of noisy samples ------------------------------------------------------------------------------------

BATCH_DIM, SAMPLES, SIGMA, SPIKE = 110, 256, 0.35, 1.6
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
BATCHES = 24


def batch_size(setting: Setting) -> list[Panel]:
    """One population of Wigner samples around a spike, and batches of it."""
    measured, top = _population(setting)
    grid = np.geomspace(1, SAMPLES, 300)
    known: dict[str, Any] = {"sigma": SIGMA, "dim": BATCH_DIM, "dataset_size": SAMPLES}
    scale = SIGMA * np.sqrt(BATCH_DIM / batch_hessian.effective_batch_size(grid, SAMPLES))

    def draw(axes: Axes) -> None:
        curve(axes, grid, batch_hessian.batch_eigenvalue(top, batch_size=grid, **known), "theorem 4")
        curve(axes, grid, top + scale**2 / top, "without its threshold", role="rival", dash=0)
        curve(axes, grid, np.full(len(grid), top), "full matrix", role="rival", dash=1)
        mean_points(axes, SIZES, measured, "batches of one population")
        axes.set_ylim(0.9 * top, 1.6 * float(np.max([d.mean() for d in measured])))
        batch_axis(axes, SIZES.astype(float), label="top eigenvalue")
        axes.set_title("Top eigenvalue of a batch, random samples")
        legend(axes, "upper right")

    note = (
        f"{SAMPLES} samples, P = {BATCH_DIM}; points: means of {BATCHES} batches, bars of two standard errors; "
        f"at B = {SAMPLES} the full matrix"
    )
    return [inches(2.1, draw, notes=note)]


def _population(setting: Setting) -> tuple[list[Floats], float]:
    """Top eigenvalues of batches at each size, drawn without replacement, and that of the whole population."""
    import torch

    noise = SIGMA * BATCH_DIM**0.5 * ensembles.wigner(setting.block("population", SAMPLES), BATCH_DIM)
    vector = ensembles.unit_vectors(setting.block("population direction", 1), BATCH_DIM)
    samples = ensembles.spiked(noise, vector, SPIKE)
    found: list[Floats] = []
    for size in SIZES:
        block = setting.block(f"batches of {size}", BATCHES if size < SAMPLES else 2)
        chosen = [rng.choice(SAMPLES, int(size), replace=False) for rng in block.streams]
        means = torch.stack([samples[torch.as_tensor(c)].mean(0) for c in chosen])
        found.append(torch.linalg.eigvalsh(means)[:, -1].cpu().numpy())
    return found, float(torch.linalg.eigvalsh(samples.mean(0))[-1])
