"""Networks on images along one course of training by the schedule of eq. (21): what the experiments on it share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate import data
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import sample_products
from simulate.training import grids, rules, stacks, trial_training
from verify.claims.trained_networks import DECAY, scheduled, steps_at

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Course", "course"]

Floats = NDArray[np.float64]


class Course(NamedTuple):
    """Perceptrons of a block on their way, with the images and labels that each is trained on."""

    widths: tuple[int, ...]
    images: list[Floats]
    labels: list[NDArray[np.int64]]
    found: list[grids.TrainingState]

    def samples(
        self, network: int, checkpoint: grids.TrainingState, matrix: Any
    ) -> sample_products.PerceptronSamples:
        """Curvature of the single samples of one network, float64."""
        import torch

        theta = torch.cat([p[network].flatten() for p in checkpoint.parameters]).double().cpu()
        return sample_products.PerceptronSamples(
            self.widths, theta, self.images[network], self.labels[network], "relu", matrix=matrix
        )


def course(block: Block, point: Point) -> Course:
    """ReLU perceptrons with biases on small images, trained with momentum 0.9; a share of the labels is drawn anew."""
    import torch

    source = data.opened(point.images, (1, point.pixels, point.pixels))
    widths = (point.pixels**2, point.hidden, source.classes)
    start = stacks.perceptrons_at_start(block.streams, widths)
    images: list[Floats] = []
    labels: list[NDArray[np.int64]] = []
    for rng in block.streams:
        drawn = data.sample(source, rng, point.samples).flat()
        wrong = rng.uniform(size=point.samples) < point.noise
        images.append(drawn.images)
        labels.append(np.where(wrong, rng.integers(source.classes, size=point.samples), drawn.labels))
    own = torch.arange(len(block) * point.samples).view(len(block), point.samples)
    samples = grids.TrainingSets(
        torch.from_numpy(np.concatenate(images)).float().to(block.device),
        torch.from_numpy(np.concatenate(labels)).to(block.device),
        own.to(block.device),
    )
    batches = [
        trial_training.CommonBatches(
            samples=point.samples, size=point.batch_size, seed=int(rng.integers(2**31))
        )
        for rng in block.streams
    ]
    steps = point.epochs * batches[0].per_epoch
    found = grids.checkpoints(
        stacks.Perceptrons("relu"),
        _placed(start, block.device),
        samples,
        batches,
        rates=scheduled(point.rate, steps),
        at=steps_at(point.done, steps),
        rule=rules.MOMENTUM,
        decay=DECAY,
    )
    return Course(widths, images, labels, found)


def _placed(parameters: Sequence[Tensor], device: str) -> list[Tensor]:
    return [p.to(device) for p in parameters]
