"""Networks on images at their start, and along one course of training: what several papers' claims share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from simulate import data, networks, objectives
from simulate.monte_carlo import Block, Point
from simulate.training import grids, rules, stacks, trial_training
from verify.model import Experiment
from verify.model.observation import classes_of

if TYPE_CHECKING:
    from torch import Tensor, nn

VGG_16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the convolutions of VGG-16, between two poolings each."""

DECAY = 0.0005
"""Weight decay of section 8 of Granziol et al. (2022)."""

RARE: dict[str, Any] = {
    "margin": 0.15,
    "relative": False,
    "margin_reason": "the share of exceptions that a hundred networks would show",
}
"""Margin of a bound on every network."""

SINGLE = "its networks are trained in single precision"

trained_on_digits = partial(Experiment, single=SINGLE, data="digits")
"""An experiment on networks that are trained on the digits."""

LAST = 0.01
"""Last rate over the first, there."""


def scheduled(rate: float, steps: int) -> list[float]:
    """Rates of the steps by eq. (21) there: constant for half, falling on a line to nine tenths, then constant."""
    done = np.arange(steps) / steps
    fall = np.clip((done - 0.5) / 0.4, 0.0, 1.0)
    return (rate * (1 - (1 - LAST) * fall)).tolist()


def steps_at(shares: Sequence[float], steps: int) -> tuple[int, ...]:
    """Numbers of steps after which these shares of training are over."""
    return tuple(round(share * steps) for share in shares)


def drawn_images(block: Block, point: Point) -> tuple[list[data.Images], int]:
    """Flat images of 8 x 8 in one channel for each network of a block, and how many classes there are."""
    source = data.opened(point.images, (1, 8, 8))
    return [data.sample(source, rng, point.samples).flat() for rng in block.streams], source.classes


def training_sets(block: Block, images: Sequence[Any], targets: Sequence[Any]) -> grids.TrainingSets:
    """Images and targets of each network of a block, its own, in single precision but for classes."""
    import torch

    x, y = (torch.from_numpy(np.concatenate(values)).to(block.device) for values in (images, targets))
    own = torch.arange(len(x), device=block.device).view(len(block), -1)
    return grids.TrainingSets(x.float(), y.float() if y.is_floating_point() else y, own)


def all_samples(samples: grids.TrainingSets, networks: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """All samples of networks with some of their own, (n, N, ...): of those numbered (n,), of each network if None."""
    own = cast("Tensor", samples.own)
    return samples.rows(own if networks is None else own[networks])


def common_rates(block: Block, *rates: float) -> Tensor:
    """Return learning rates of shape (R, C), the same C for each of the R networks of a block."""
    import torch

    return torch.tensor(rates, device=block.device).expand(len(block), -1)


def perceptrons_drawn(block: Block, widths: tuple[int, ...]) -> list[Tensor]:
    """Perceptrons with biases as torch draws them, one for each network of a block."""
    return [p.to(block.device) for p in stacks.perceptrons_at_start(block.streams, widths)]


def labelled_images(block: Block, point: Point) -> tuple[grids.TrainingSets, int]:
    """Images of 8 x 8 with their labels for each network of a block, and how many classes there are."""
    drawn, classes = drawn_images(block, point)
    return training_sets(block, [d.images for d in drawn], [d.labels for d in drawn]), classes


def small_networks(block: Block, point: Point) -> tuple[list[Tensor], grids.TrainingSets]:
    """Perceptrons at their start, with images of 8 x 8 of their own."""
    samples, classes = labelled_images(block, point)
    return perceptrons_drawn(block, (64, *point.hidden, classes)), samples


def centred_images(block: Block, point: Point) -> grids.TrainingSets:
    """Images of 8 x 8 for each network of a block, of mean 0 at each pixel and mean square 1, with their labels."""
    drawn, _ = drawn_images(block, point | {"images": "digits"})
    images = [d.images - d.images.mean(0) for d in drawn]
    return training_sets(block, [x / np.sqrt(np.mean(x**2)) for x in images], [d.labels for d in drawn])


def normal_perceptrons(block: Block, widths: Sequence[int], variance: float) -> list[Tensor]:
    """Perceptrons without biases, their weights normal with this variance over the number of inputs."""
    return [
        block.normal(out, into).float() * (variance / into) ** 0.5 for into, out in itertools.pairwise(widths)
    ]


def full_batches(samples: grids.TrainingSets, networks: int) -> list[trial_training.CommonBatches]:
    """Batches of all samples for each network."""
    return [trial_training.CommonBatches(samples=samples.each, size=samples.each)] * networks


LOST = 1e9
"""A catapult may raise the loss a thousandfold before it falls; descent that diverges is soon beyond this."""


def below_constants(stack: stacks.Perceptrons, run: grids.GridRun, samples: grids.TrainingSets) -> Tensor:
    """Whether each run ends with a squared error below that of the best constant outputs, (R, C)."""
    from torch.nn import functional

    losses, _ = grids.ends_measured(stack, run, samples)
    shares = functional.one_hot(samples.targets.view(len(losses), -1), 10).float().mean(1)
    return losses < (1 - shares.square().sum(1, keepdim=True)) / 2


def batches_of(block: Block, samples: int, size: int) -> list[trial_training.CommonBatches]:
    """Batches of one size for each network of a block, the short one left out."""
    return [
        trial_training.CommonBatches(
            samples=samples, size=size, seed=int(rng.integers(2**31)), drop_last=True
        )
        for rng in block.streams
    ]


class Classifier(NamedTuple):
    """A network, float32, and images of 32 x 32 in three channels with their labels.

    `chunk` is how many of them a pass takes at most, None for all.
    """

    model: nn.Module
    images: Tensor
    labels: Tensor
    chunk: int | None = None

    def objective(self, images: Tensor | None = None, labels: Tensor | None = None) -> objectives.Objective:
        """The mean loss of the network as it is now, on its images or on others."""
        from torch import nn

        inputs = self.images if images is None else images
        targets = self.labels if labels is None else labels
        return objectives.Objective(self.model, (inputs, targets), nn.CrossEntropyLoss(), chunk=self.chunk)

    def moved(self, checkpoint: grids.TrainingState) -> None:
        """The network goes where it is at this time of training."""
        import torch

        with torch.no_grad():
            for own, other in zip(self.model.parameters(), checkpoint.parameters, strict=True):
                own.copy_(other[0])

    def lost(self) -> float | None:
        """The loss where there is no curvature to speak of: of weights that have diverged, or if all logits are 0.

        None where there is one.
        """
        import torch

        with torch.no_grad():
            parts = self.images.split(self.chunk or len(self.images))
            logits = torch.cat([self.model(images) for images in parts])
        finite = all(bool(p.isfinite().all()) for p in self.model.parameters()) and bool(
            logits.isfinite().all()
        )
        if finite and bool(logits.any()):
            return None
        return float(torch.nn.functional.cross_entropy(logits, self.labels)) if finite else math.nan

    def trained(self, rng: Generator, point: Point, at: Sequence[float]) -> list[grids.TrainingState]:
        """Checkpoints at some shares of training with momentum 0.9 by the schedule of eq. (21)."""
        seed = int(rng.integers(2**31))
        batches = trial_training.CommonBatches(samples=len(self.labels), size=point.training_batch, seed=seed)
        steps, stack = point.epochs * batches.per_epoch, stacks.Modules(self.model)
        return grids.checkpoints(
            stack,
            stack.stacked([self.model]),
            grids.TrainingSets(self.images, self.labels),
            [batches],
            rates=scheduled(point.rate, steps),
            at=steps_at(at, steps),
            rule=rules.MOMENTUM,
            decay=DECAY,
        )


def classifier_at_start(rng: Generator, point: Point, device: str) -> Classifier:
    """A network of the stages and the head of the point, without biases where it says so, else LeNet-5, average pooled.

    Images are drawn, then the network, for as many classes as they have: Kaiming normal weights.
    """
    import torch

    source = data.opened(point.images, (3, 32, 32))
    images, labels = data.sample(source, rng, point.samples).tensors(device, torch.float32)
    if "stages" in point:
        shape = {"stages": point.stages, "head": point.head, "bias": point.get("bias", True)}
        model: nn.Module = networks.Vgg(3, source.classes, rng=rng, **shape)
    else:
        model = networks.LeNet5(3, source.classes, rng=rng, pooling="average")
    return Classifier(model.to(device, torch.float32).eval(), images, labels, point.get("chunk"))


def vgg_layers(point: Point, *, side: int = 32) -> list[tuple[int, int]]:
    """Weights of each layer of a network of these stages and head, and the places that they are applied at.

    >>> vgg_layers(Point(stages=((4,), (8,)), head=(6,), classes=3), side=4)
    [(108, 16), (288, 4), (48, 1), (18, 1)]
    """
    found, narrow = [], 3
    for stage in point.stages:
        for wide in stage:
            found.append((9 * narrow * wide, side**2))
            narrow = wide
        side //= 2
    units = (narrow * side**2, *point.head, classes_of(point))
    return [*found, *((a * b, 1) for a, b in itertools.pairwise(units))]


def pass_cost(point: Point) -> tuple[float, float]:
    """Cost of one image: floating point operations of a forward pass, and numbers that the layers give and keep.

    A layer gives as many as it has places and channels; a ReLU keeps them again.
    """
    layers = vgg_layers(point)
    wide = [channels for stage in point.stages for channels in stage] + [*point.head, classes_of(point)]
    activations = sum(2.0 * places * units for (_, places), units in zip(layers, wide, strict=True))
    return sum(2.0 * weights * places for weights, places in layers), activations
