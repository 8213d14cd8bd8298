"""Where curvature hovers under SGD: networks, losses, rates and batch sizes side by side, reported and not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.learning_rates import edge_of_stability
from verify.claims.edge.networks import start_and_images, trained_and_watched
from verify.model import Tier
from verify.model.observation import Column, Observation

__all__ = ["OBSERVATIONS"]


def levels(block: Block, point: Point) -> Mapping[str, Any]:
    """Time means over the edge at each batch size, and what descent with full batches says they should be."""
    setting = start_and_images(block, point)
    edge = float(edge_of_stability.edge(point.rate))
    full = trained_and_watched(block, point, setting, point.samples, looked=point.batch_size)
    found = {"full": full["whole"].mean(1) / edge}
    rows: list[Mapping[str, Any]] = []
    for size in point.batch_size:
        seen = trained_and_watched(block, point, setting, size, looked=(size,))
        whole = seen["whole"].mean(1) / edge
        broadening = (full[f"batch {size}"] / full["whole"]).mean(1)
        rows.append(
            {
                "whole": whole,
                "batch": seen[f"batch {size}"].mean(1) / edge,
                "along": seen[f"along {size}"].mean(1) / edge,
                "from the edge": 1 / broadening / whole,
                "by the gap": _by_the_gap(full, point, size) / whole,
            }
        )
    return found | {name: np.stack([row[name] for row in rows], 1) for name in rows[0]}


def _by_the_gap(full: Mapping[str, np.ndarray[Any, Any]], point: Point, size: int) -> np.ndarray[Any, Any]:
    """Level that the gap of Liao et al. leaves, at least 0, from the means along full-batch descent."""
    sharpening, stabilisation, noise = (
        full[name].mean(1) for name in ("sharpening", "stabilisation", "noise")
    )
    rising = sharpening > 0
    gap = edge_of_stability.sharpness_gap(
        point.rate,
        noise=noise * (1 / size - 1 / point.samples),
        sharpening=np.where(rising, sharpening, 1.0),
        stabilisation=stabilisation,
    )
    left = 1 - gap / edge_of_stability.edge(point.rate)
    return np.where(rising, np.maximum(left, 0.0), 0.0)


TANH: dict[str, Any] = {"activation": "tanh", "hidden": (16, 16)}
RELU: dict[str, Any] = {"activation": "relu", "hidden": (32,)}
SQUARED: dict[str, Any] = {"loss": "squared error", "samples": 128}
ENTROPY: dict[str, Any] = {"loss": "cross-entropy", "samples": 512}
SHARED: dict[str, Any] = {"images": "digits", "batch_size": (32, 16, 8, 4)}


def _point(network: Mapping[str, Any], loss: Mapping[str, Any], rate: float, looks: range) -> Point:
    return Point(rate=rate, steps=looks[-1], looks=tuple(looks), **network, **loss, **SHARED)


OBSERVATIONS = (
    Observation(
        id="edge/levels",
        entries=("E1", "E2", "E3", "E5", "E6"),
        source="ours, on the statements of Cohen et al. (2021), Andreyev and Beneventano (2024) and Liao et al. (2026)",
        title="Where curvature hovers under SGD, over 2 / rate",
        note="With the squared error the mean largest eigenvalue of batches stands at two over the rate, within a "
        "fifth, wherever descent with full batches comes there; batch sharpness stands at half of it. With cross- "
        "entropy batch sharpness is the one that comes near at small batches, while the batch Hessians are up to "
        "twice above. The last columns ask what is known beforehand: the edge over the broadening at the full- "
        "batch network is right to a quarter on the squared error; the gap formula, with its constants measured "
        "there, is off by anything up to a factor of three.",
        replicate="one perceptron with its images, trained with full batches and with batches of four sizes",
        simulate=levels,
        single="its networks are trained in single precision",
        points=tuple(
            _point(network, loss, rate, looks)
            for network in (TANH, RELU)
            for loss, rate, looks in (
                (SQUARED, 0.25, range(800, 1201, 50)),
                (SQUARED, 0.12, range(1800, 2601, 100)),
                (ENTROPY, 0.5, range(40, 121, 10)),
                (ENTROPY, 0.25, range(40, 121, 10)),
            )
        ),
        along="batch_size",
        columns=(
            Column(score="full", heading="largest eigenvalue, full batch"),
            Column(score="whole", heading="largest eigenvalue"),
            Column(score="batch", heading="mean largest eigenvalue of batches"),
            Column(score="along", heading="batch sharpness"),
            Column(
                score="from the edge",
                heading="from the edge and the broadening at full batch, over measured",
                ratio=True,
            ),
            Column(score="by the gap", heading="by the gap formula, over measured", ratio=True),
        ),
        replicates=2,
        seconds=3.0,
        data="digits",
        tier=Tier.FULL,
        axis="batch size",
    ),
)
