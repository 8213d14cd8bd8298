"""Networks as drawn, on images or noise, and ranks of their Hessians: shared by claims on networks.

Also what makes the scores of a block from those of its replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate import data, networks, objectives
from simulate.monte_carlo import Block, Point
from verify.claims import Array
from verify.model import Arrays, Simulator

ROUNDING = "an exact identity in float64"
COUNTS = "counts, which differ by one at least"

Violation = Callable[[Generator, Point], float]


def stacked_rows(rows: Sequence[Arrays], axis: int = 0) -> Arrays:
    """Arrays by name from what each replicate, or each of its settings, has of them, along a new axis."""
    return {name: np.stack([row[name] for row in rows], axis) for name in rows[0]}


def stream_by_stream(one: Callable[[Generator, Point, str], Arrays]) -> Simulator:
    """A simulator that draws its replicates one after the other, each from a generator, on a device."""

    @wraps(one)
    def simulate(block: Block, point: Point) -> Arrays:
        return stacked_rows([one(rng, point, block.device) for rng in block.streams])

    return simulate


def sampled_images(rng: Generator, point: Point, side: int) -> tuple[data.Images, int]:
    """Flat images of one channel, and how many classes their source has."""
    source = data.opened(point.images, (1, side, side))
    return data.sample(source, rng, point.samples).flat(), source.classes


def bias_free_on_images(rng: Generator, point: Point) -> tuple[Any, Any, Any]:
    """A bias-free network as drawn, with images of 16 pixels and their labels."""
    images, classes = sampled_images(rng, point, 4)
    return networks.mlp_weights(rng, (16, point.hidden, classes)), images.images, images.labels


def on_noise(rng: Generator, widths: tuple[int, ...], samples: int) -> tuple[Any, Array, Array]:
    """A bias-free network as drawn, with normal inputs and random labels."""
    weights = networks.mlp_weights(rng, widths)
    return weights, rng.standard_normal((samples, widths[0])), rng.integers(0, widths[-1], samples)


def bias_free_objective(weights: Any, x: Any, labels: Any, activation: str = "relu") -> Any:
    """Mean cross-entropy of a bias-free network on all samples, for `simulate.operators`."""
    from functools import partial

    from torch import nn

    logits = partial(networks.mlp_logits, activation=activation)
    return objectives.Objective(logits, (x, labels), nn.CrossEntropyLoss(), parameters=weights)


RESOLVED = 1e-10
"""Eigenvalues below this share of the largest are rounding: of 900 draws none had one between 1e-12 and 2e-9."""

FINELY_RESOLVED = 1e-13
"""The share for means over hundreds of samples: of 60 draws none had one between 1e-16 and 1e-9."""


def rank_of(matrix: Any, resolved: float = RESOLVED) -> int:
    """Eigenvalues above this share of the largest."""
    values = np.abs(np.linalg.eigvalsh(np.asarray(matrix)))
    return int((values > resolved * values.max()).sum())
