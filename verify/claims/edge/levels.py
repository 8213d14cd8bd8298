"""Where curvature comes to rest under SGD: networks, labels, rates and batch sizes, reported and not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.learning_rates import edge_of_stability
from verify.claims.edge import networks
from verify.model import Tier
from verify.model.observation import Column, Observation

__all__ = ["OBSERVATIONS"]


def levels(block: Block, point: Point) -> Mapping[str, Any]:
    """Levels over the edge, and the rate of instability over the rate, at each batch size; 0 where a run is lost."""
    (rate,) = point.rate
    unit = {"counts": 1.0, "unstable": rate}
    rows = [networks.late_levels(block, point, size) for size in point.batch_size]
    return {
        name: np.concatenate([np.nan_to_num(row[name]) for row in rows], 1)
        / unit.get(name, float(edge_of_stability.edge(rate)))
        for name in rows[0]
    }


COLUMNS = (
    Column(score="whole", heading="largest eigenvalue over 2 / rate"),
    Column(score="batch", heading="mean largest eigenvalue of batches"),
    Column(score="along", heading="batch sharpness"),
    Column(score="counts", heading="share of runs that count by their trend"),
)
SHARED: dict[str, Any] = {
    "images": "digits",
    "samples": 64,
    "batch_size": (16, 8, 4),
    "steps": 8000,
    "looks": (50, 2500, 3500, 4500, 5500, 6500, 7500),
}


def _points(network: Mapping[str, Any], loss: str, labels: str, *rates: float) -> tuple[Point, ...]:
    return tuple(Point(labels=labels, loss=loss, rate=(rate,), **network, **SHARED) for rate in rates)


OBSERVATIONS = (
    Observation(
        id="edge/levels",
        entries=("E1", "E2", "E3", "E6"),
        source="ours, on the statements of Cohen et al. (2021) and Andreyev and Beneventano (2024)",
        title="Where curvature comes to rest under SGD, over 2 / rate",
        note="With random labels batch sharpness and the rate of instability follow the rate at every batch size, "
        "while the whole Hessian falls with the batch and the mean of batches lies a quarter to two thirds above. With "
        "true labels nothing lies at one level: the curves are flat because the loss is gone, and the rate of "
        "instability reaches the largest one that is tried, 1.35. The trends alone do not tell such runs: some count.",
        replicate="one perceptron with its images, trained with batches of three sizes",
        simulate=levels,
        single="its networks are trained in single precision",
        points=(
            *_points(networks.TANH, "squared error", "random", 0.09, 0.18, 0.3),
            *_points(networks.TANH, "squared error", "true", 0.09, 0.18, 0.3),
            *_points(networks.RELU, "squared error", "random", 0.075, 0.15),
        ),
        along="batch_size",
        columns=(
            *COLUMNS,
            Column(score="unstable", heading="rate of instability over the rate", ratio=True),
        ),
        replicates=2,
        seconds=12.0,
        data="digits",
        tier=Tier.FULL,
        axis="batch size",
    ),
    Observation(
        id="edge/levels-of-cross-entropy",
        entries=("E2", "E3"),
        source="ours, on the statements of Andreyev and Beneventano (2024), who mean the squared error unless they say "
        "otherwise",
        title="The same on the cross-entropy: outside of what the paper means, and never at rest",
        note="With random labels the curvature has passed the edge and is gone once the network is sure of its images; "
        "no run comes to rest.",
        replicate="one perceptron with its images, trained with batches of three sizes",
        simulate=levels,
        single="its networks are trained in single precision",
        points=_points(networks.TANH, "cross-entropy", "random", 0.115, 0.23),
        along="batch_size",
        columns=COLUMNS,
        replicates=2,
        seconds=10.0,
        data="digits",
        tier=Tier.FULL,
        axis="batch size",
    ),
)
