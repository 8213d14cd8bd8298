"""Learning rates in training: the largest ones against the batch size, and where curvature stands under a rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate.monte_carlo import Point
from theory import learning_rates
from theory.learning_rates import edge_of_stability
from verify.claims.edge.networks import start_and_images, trained_and_watched
from verify.claims.granziol2022.training.perceptrons import drawn_setting, ladder, rule_of, steps_of, tried
from verify.gallery.parts import MEASURED, OTHER, Setting, batch_axis, curve, legend, mean_points
from verify.page.axes import plain_ticks
from verify.page.drawing import Floats, Panel
from verify.page.theme import PALETTE

__all__ = ["curvature_beside_the_edge", "largest_by_batch_size"]

SAMPLES, NOISE, NETWORKS = 512, 0.6, 4
SIZES = np.array([1, 4, 16, 64, 256])
MIDDLES = {"sgd": (0.13, 0.45, 1.3, 2.3, 2.8), "adam": (0.0155, 0.03, 0.07, 0.15, 0.3)}
RUNGS, EPOCHS, LEAST = 4, 5, 200


def largest_by_batch_size(setting: Setting) -> list[Panel]:
    """Largest rates at which perceptrons train on labels that are mostly noise, by SGD and by Adam."""
    found = {rule: _largest(setting, rule) for rule in MIDDLES}
    grid = np.geomspace(SIZES[0], SIZES[-1], 200)
    ends = [float(np.exp(np.log(found["sgd"][i]).mean())) for i in (0, -1)]
    ratio, inverse = ends[1] / ends[0], 1 / SIZES[-1] - 1 / SAMPLES
    effective = (ratio - 1) / (1 - 1 / SAMPLES - ratio * inverse)
    flat = learning_rates.linear_then_flat(
        ends[0],
        known=1,
        batch_size=grid,
        crossover=effective / (1 + effective / SAMPLES),
        dataset_size=SAMPLES,
    )
    root = float(np.exp(np.log(found["adam"][0]).mean())) * grid**0.5

    def draw(axes: Axes) -> None:
        curve(axes, grid, flat, "linear, then flat, through both ends")
        curve(axes, grid, root, "square root", dash=0, colour=OTHER)
        mean_points(axes, SIZES, found["sgd"], "SGD")
        mean_points(axes, SIZES, found["adam"], "Adam", mark="s", colour=OTHER)
        batch_axis(axes, SIZES.astype(float), label="largest rate that trains")
        axes.set_title("Largest learning rate against batch size, in training")
        legend(axes, "lower right")

    note = (
        f"ReLU networks 64-32-10 on {SAMPLES} images, six labels in ten drawn anew;\n"
        f"{EPOCHS} epochs or {LEAST} steps; points: means of {NETWORKS} networks, bars of two standard errors"
    )
    return [Panel(2.4, draw, notes=note)]


def _largest(setting: Setting, rule: str) -> list[Floats]:
    block = setting.block(f"rates of {rule}", NETWORKS)
    point = Point(images=setting.data, samples=SAMPLES, noise=NOISE)
    drawn = drawn_setting(block, point)
    return [
        tried(
            drawn,
            ladder(block, centre, RUNGS, RUNGS),
            size=int(size),
            steps=steps_of(int(size), samples=SAMPLES, epochs=EPOCHS, least=LEAST),
            rule=rule_of(rule),
        ).largest
        for size, centre in zip(SIZES, MIDDLES[rule], strict=True)
    ]


EDGE_SAMPLES, EDGE_RATE, EDGE_BATCH, EDGE_NETWORKS = 64, 0.3, 4, 8
STEPS = tuple(range(0, 5001, 250))


def curvature_beside_the_edge(setting: Setting) -> list[Panel]:
    """Largest eigenvalues of the Hessian and of batches, and batch sharpness, through training, over two over rate."""
    point = Point(
        images=setting.data, samples=EDGE_SAMPLES, activation="tanh", hidden=(16, 16), loss="squared error",
        labels="random", rate=(EDGE_RATE,), steps=STEPS[-1], looks=STEPS,
    )  # fmt: skip
    block = setting.block("edge", EDGE_NETWORKS)
    begun, level = start_and_images(block, point), float(edge_of_stability.edge(EDGE_RATE))
    full = trained_and_watched(block, point, begun, EDGE_SAMPLES).seen
    some = trained_and_watched(block, point, begun, EDGE_BATCH).seen
    courses: tuple[tuple[str, Any, str], ...] = (
        ("whole Hessian, full batches", full["whole"], PALETTE["ink"]),
        (f"whole Hessian, batches of {EDGE_BATCH}", some["whole"], OTHER),
        (f"batches of {EDGE_BATCH}: mean largest eigenvalue", some["batch"], MEASURED),
        ("the same: batch sharpness", some["along"], PALETTE["rival"]),
    )

    def draw(axes: Axes) -> None:
        axes.axhline(1, color=PALETTE["theory"], lw=1.6, label="2 / rate", zorder=2)
        for name, values, colour in courses:
            middle = np.median(values[:, 0], 0) / level
            axes.plot(STEPS, middle, color=colour, lw=1.4, label=name, zorder=3)
        axes.set_ylim(0, 2.9)
        axes.set_xlim(0, STEPS[-1])
        axes.set_xlabel("step")
        axes.set_ylabel("curvature over 2 / rate")
        plain_ticks(axes.yaxis)
        axes.grid(axis="y")
        axes.set_title("What stands at the edge of stability")
        legend(axes, "upper right")

    note = (
        f"tanh networks 64-16-16-10, squared error on {EDGE_SAMPLES} images,\n"
        f"labels at random, rate {EDGE_RATE}; medians of {EDGE_NETWORKS} networks"
    )
    return [Panel(3.0, draw, notes=note)]
