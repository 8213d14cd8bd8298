"""Curvature of a batch of real images against the batch size, before and after training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate import perceptrons
from simulate.monte_carlo import Point
from theory import own_direction
from verify.claims.beyond.networks import formulas, law_of, noise_of, small_perceptron
from verify.gallery.parts import OTHER, Setting, batch_axis, curve, highest, legend, mean_points
from verify.page.drawing import Panel
from verify.page.theme import PALETTE

__all__ = ["network"]

SAMPLES, DIRECTIONS, DRAWS = 512, 10, 32
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
STATES = (("at initialisation", 0), ("trained", 800))


def network(setting: Setting) -> list[Panel]:
    """Hessian of a tanh network 16-8-10, and what theory makes of its per-sample curvature."""
    return [_state(setting, name, steps, last=(name, steps) == STATES[-1]) for name, steps in STATES]


def _state(setting: Setting, name: str, steps: int, *, last: bool) -> Panel:
    (rng,) = setting.block("network", 1).streams
    point = Point(images=setting.data, samples=SAMPLES, steps=steps, matrix="hessian")
    samples = small_perceptron(rng, point)
    sizes = SIZES[samples.size // 2 >= SIZES]
    grid = np.geomspace(1, sizes[-1], 200)
    measured, own, value, said = _measured(samples, rng, sizes, grid)

    def draw(axes: Axes) -> None:
        curve(axes, grid, said["theorem_4"], "theorem 4")
        curve(axes, grid, said["second_order"], "second order, true variances", dash=0, colour=OTHER)
        axes.plot(
            sizes, own, color=PALETTE["ink"], lw=1.0, label=f"own directions, k = {DIRECTIONS}", zorder=3
        )
        mean_points(axes, sizes, measured, "batches")
        axes.set_ylim(0.75 * value, 6.0 * highest(measured))
        batch_axis(axes, sizes.astype(float), label="top eigenvalue")
        axes.set_title(f"Hessian of a batch, network {name}")
        legend(axes, "upper right")

    note = (
        f"{samples.size} images, tanh network with P = {samples.dim};\n"
        f"points: means of {DRAWS} batches, bars of two standard errors"
    )
    return Panel(2.1, draw, notes=note if last else "")


def _measured(samples: Any, rng: np.random.Generator, sizes: Any, grid: Any) -> Any:
    """Top eigenvalues of batches, the own-direction law for them, lambda_1, and the formulas on a grid."""
    vectors = perceptrons.own_direction.top_eigenvectors(samples, DIRECTIONS)
    pairs = perceptrons.own_direction.sample_pairs(samples, tolerance=1e-6)
    noise = noise_of(samples, rng, vectors)
    law = law_of(perceptrons.own_direction.statistics(samples, vectors, pairs, rng))
    batches = [
        perceptrons.own_direction.partitions(rng, samples.size, int(size), DRAWS)[:DRAWS] for size in sizes
    ]
    found = [perceptrons.own_direction.batch_tops(samples, b, tolerance=1e-3) for b in batches]
    own = [float(own_direction.batch_eigenvalues(law, b).mean()) for b in batches]
    return found, own, noise.eigenvalue, formulas(noise, samples.dim, grid, samples.size)
