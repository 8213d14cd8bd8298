"""What the claims on Hessians of networks share: networks as drawn, with images or with noise, and the rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulate.monte_carlo import Point

__all__ = [
    "COUNTS",
    "FINELY_RESOLVED",
    "PAPER",
    "RESOLVED",
    "ROUNDING",
    "Array",
    "Violation",
    "objective",
    "on_images",
    "on_noise",
    "rank_of",
]

PAPER = "Granziol, Zohren and Roberts (2022)"
ROUNDING = "an exact identity in float64"
COUNTS = "counts, which differ by one at least"

Array = np.ndarray[Any, Any]
Violation = Callable[[np.random.Generator, Point], float]


def on_images(rng: np.random.Generator, point: Point) -> tuple[Any, Any, Any]:
    """A bias-free network as drawn, with images of 16 pixels and their labels."""
    from simulate import data, networks

    source = data.opened(point.images, (1, 4, 4))
    images = data.sample(source, rng, point.samples).flat()
    return networks.mlp_weights(rng, (16, point.hidden, source.classes)), images.images, images.labels


def on_noise(rng: np.random.Generator, widths: tuple[int, ...], samples: int) -> tuple[Any, Array, Array]:
    """A bias-free network as drawn, with normal inputs and random labels."""
    from simulate import networks

    weights = networks.mlp_weights(rng, widths)
    return weights, rng.standard_normal((samples, widths[0])), rng.integers(0, widths[-1], samples)


def objective(weights: Any, x: Any, labels: Any, activation: str = "relu") -> Any:
    """Mean cross-entropy of a bias-free network on all samples, for `simulate.operators`."""
    from functools import partial

    from torch import nn

    from simulate.networks import mlp_logits
    from simulate.objectives import Objective

    logits = partial(mlp_logits, activation=activation)
    return Objective(logits, nn.CrossEntropyLoss(), (x, labels), parameters=weights)


RESOLVED = 1e-10
"""Eigenvalues below this share of the largest are rounding: of 900 draws none had one between 1e-12 and 2e-9."""

FINELY_RESOLVED = 1e-13
"""The same for means over hundreds of samples: of 60 draws none had one between 1e-16 and 1e-9."""


def rank_of(matrix: Any, resolved: float = RESOLVED) -> int:
    """Eigenvalues above this share of the largest."""
    values = np.abs(np.linalg.eigvalsh(np.asarray(matrix)))
    return int((values > resolved * values.max()).sum())
