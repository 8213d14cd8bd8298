"""Curvature of a batch and the learning rate it allows, against the batch size."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate.matrices import ensembles
from theory import batch_hessian, learning_rates
from verify.gallery.parts import MEASURED, OTHER, Setting, batch_axis, curve, highest, legend, mean_points
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel

__all__ = ["learning_rate", "random_samples"]

DIM, SAMPLES, SIGMA, SPIKE = 110, 256, 0.35, 1.6
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
DRAWS = 24


def random_samples(setting: Setting) -> list[Panel]:
    """One population of Wigner samples around a spike, and batches of it."""
    measured, top = _random_population(setting)
    grid = np.geomspace(1, SAMPLES, 300)
    known: dict[str, Any] = {"sigma": SIGMA, "dim": DIM, "dataset_size": SAMPLES}
    scale = SIGMA * np.sqrt(DIM / batch_hessian.effective_batch_size(grid, SAMPLES))

    def draw(axes: Axes) -> None:
        curve(axes, grid, batch_hessian.batch_eigenvalue(top, batch_size=grid, **known), "theorem 4")
        curve(axes, grid, top + scale**2 / top, "without its threshold", role="rival", dash=0)
        curve(axes, grid, np.full(len(grid), top), "full matrix", role="rival", dash=1)
        mean_points(axes, SIZES, measured, "batches of one population")
        axes.set_ylim(0.9 * top, 1.6 * highest(measured))
        batch_axis(axes, SIZES.astype(float), label="top eigenvalue")
        axes.set_title("Top eigenvalue of a batch, random samples")
        legend(axes, "upper right")

    note = (
        f"{SAMPLES} samples, P = {DIM}; points: means of {DRAWS} batches, bars of two standard errors;\n"
        f"at B = {SAMPLES} the full matrix"
    )
    return [Panel(2.4, draw, notes=note)]


def _random_population(setting: Setting) -> tuple[list[Floats], float]:
    """Top eigenvalues of batches at each size, and that of the whole population."""
    import torch

    noise = SIGMA * DIM**0.5 * ensembles.wigner(setting.block("population", SAMPLES), DIM)
    vector = ensembles.unit_vectors(setting.block("population direction", 1), DIM)
    samples = ensembles.spiked(noise, vector, SPIKE)
    return _batches(setting, samples, SIZES), float(torch.linalg.eigvalsh(samples.mean(0))[-1])


def _batches(setting: Setting, samples: Any, sizes: Any) -> list[Floats]:
    """Top eigenvalues of batches drawn without replacement; once where the batch is all there is."""
    import torch

    found: list[Floats] = []
    for size in sizes:
        count = DRAWS if size < len(samples) else 2
        block = setting.block(f"batches of {size}", count)
        chosen = [rng.choice(len(samples), int(size), replace=False) for rng in block.streams]
        means = torch.stack([samples[torch.as_tensor(c)].mean(0) for c in chosen])
        found.append(torch.linalg.eigvalsh(means)[:, -1].cpu().numpy())
    return found


RATE_DIM = 60
RATE_SIZES = np.array([1, 3, 10, 30, 100, 300, 1000, 3000])
RATE_DRAWS = 400


def learning_rate(setting: Setting) -> list[Panel]:
    """The rate of theorem 4, and the one at which a step keeps the mean square, with their local exponents."""
    grid = np.geomspace(1, RATE_SIZES[-1], 300)
    theorem_4 = _theorem_4_rate(grid)
    mean_square = learning_rates.mean_square_limit(
        1.0, noise=RATE_DIM + 1, batch_size=grid, dataset_size=np.inf
    )
    measured = [_one_step_rates(setting, int(size)) for size in RATE_SIZES]
    broadened = [2 / d for d in _broadened(setting)]

    def rates(axes: Axes) -> None:
        curve(axes, grid, mean_square, "one step keeps the mean square")
        curve(axes, grid, theorem_4, "2 / eigenvalue of theorem 4", dash=0, colour=OTHER)
        mean_points(axes, RATE_SIZES, measured, "least squares, one step")
        mean_points(axes, RATE_SIZES, broadened, "2 / eigenvalue, Wigner noise", mark="s", colour=OTHER)
        batch_axis(axes, RATE_SIZES.astype(float), label="learning rate")
        axes.set_title("Learning rate against batch size")
        legend(axes, "lower right")

    def exponents(axes: Axes) -> None:
        log_b = np.log(grid)
        curve(axes, grid, np.gradient(np.log(mean_square), log_b), "")
        curve(axes, grid, np.gradient(np.log(theorem_4), log_b), "", dash=0, colour=OTHER)
        for rate, mark, colour in ((measured, "o", MEASURED), (broadened, "s", OTHER)):
            means = np.log([np.mean(r) for r in rate])
            middle = np.sqrt(RATE_SIZES[1:] * RATE_SIZES[:-1])
            slopes = np.diff(means) / np.diff(np.log(RATE_SIZES))
            axes.plot(middle, slopes, mark, ms=4, color=colour, zorder=4)
        axes.set_xscale("log")
        batch_axis(axes, RATE_SIZES.astype(float), label="")
        axes.set_yscale("linear")
        axes.set_ylim(-0.05, 1.05)
        plain_ticks(axes.yaxis)
        axes.set_title("Its local exponent d log rate / d log B")

    note = (
        f"line: one step of SGD on Gaussian least squares, P = {RATE_DIM}; dashes: theorem 4\n"
        f"with the same P σ² / λ²; points: draws, bars of two standard errors"
    )
    return [Panel(2.0, rates, bottom=0.3), Panel(1.3, exponents, notes=note)]


def _theorem_4_rate(sizes: Any) -> Floats:
    """Theorem 4 with the noise of the least squares spread evenly: P sigma^2 = P + 1."""
    sigma = ((RATE_DIM + 1) / RATE_DIM) ** 0.5
    return learning_rates.sgd_limit(1.0, sigma=sigma, dim=RATE_DIM, batch_size=sizes, dataset_size=np.inf)


def _one_step_rates(setting: Setting, size: int) -> Floats:
    """Rates at which one step on least squares keeps the mean square, from groups of draws."""
    block = setting.block(f"one step {size}", 8)
    found = []
    for rng in block.streams:
        # H v for the mean H of `size` outer products x x', x normal: v' x and the rest of x are independent
        along = rng.standard_normal((RATE_DRAWS, size))
        first = (along**2).mean(1)
        rest = (along**2).sum(1) / size**2 * rng.chisquare(RATE_DIM - 1, RATE_DRAWS)
        found.append(2 * first.mean() / (first**2 + rest).mean())
    return np.array(found)


def _broadened(setting: Setting) -> list[Floats]:
    """Top eigenvalues of a unit spike with Wigner noise of the size theorem 4 is fed with."""
    block = setting.block("broadened", DRAWS)
    noise = ensembles.wigner(block, RATE_DIM)
    directions = ensembles.unit_vectors(block, RATE_DIM)
    scales = np.sqrt((RATE_DIM + 1) / RATE_SIZES)
    return [
        ensembles.top_eigenvalue(ensembles.spiked(s * noise, directions, 1.0)).cpu().numpy() for s in scales
    ]
