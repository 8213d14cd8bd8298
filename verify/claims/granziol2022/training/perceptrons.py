"""Perceptrons on small images, trained at many rates: what the experiments on learning rates share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulate import data
from simulate.monte_carlo import Block, Point
from simulate.training import grids, rules, stacks, trial_training
from verify.claims import Array
from verify.claims.trained_networks import classifier_at_start, perceptrons_drawn, training_sets

if TYPE_CHECKING:
    import torch


FACTOR = math.sqrt(2)
"""Ratio of successive tried rates."""


class Trained(NamedTuple):
    """Networks at their start, with images and batch seeds of their own, and the loss of the best constant output.

    `stack` tells how they are trained, perceptrons if None, and `most` how many images are put through all of them at
    once after training.
    """

    start: list[torch.Tensor]
    samples: grids.TrainingSets
    seeds: list[int]
    constant: torch.Tensor
    stack: stacks.Stack | None = None
    most: int = 1024


class NoisyLabels(NamedTuple):
    """Perceptrons at their start, with images and labels of their own."""

    widths: tuple[int, ...]
    start: list[torch.Tensor]
    images: list[Array]
    labels: list[Array]


def noisy_labels(block: Block, point: Point, pixels: int = 8, hidden: int = 32) -> NoisyLabels:
    """ReLU perceptrons with biases, as torch draws them, on small images; a share of the labels is drawn anew."""
    source = data.opened(point.images, (1, pixels, pixels))
    found = NoisyLabels((pixels**2, hidden, source.classes), [], [], [])
    found.start.extend(perceptrons_drawn(block, found.widths))
    for rng in block.streams:
        drawn = data.sample(source, rng, point.samples).flat()
        wrong = rng.uniform(size=point.samples) < point.noise
        found.images.append(drawn.images)
        found.labels.append(np.where(wrong, rng.integers(source.classes, size=point.samples), drawn.labels))
    return found


def drawn_setting(block: Block, point: Point) -> Trained:
    """Networks on images of 8 x 8, some labels drawn anew."""
    (*_, classes), start, images, labels = noisy_labels(block, point)
    seeds = [int(rng.integers(2**31)) for rng in block.streams]
    constant = _best_constant(labels, classes).to(block.device)
    return Trained(start, training_sets(block, images, labels), seeds, constant)


def _best_constant(labels: Sequence[Array], classes: int) -> torch.Tensor:
    """Loss of the best constant output on the labels of each network: the entropy of their shares."""
    import torch

    shares = np.stack([np.bincount(own, minlength=classes) / len(own) for own in labels])
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    return torch.from_numpy(-(shares * logs).sum(1))


def convolutional_setting(block: Block, point: Point) -> Trained:
    """One network of the stages of the point on images of 32 x 32, labels as they are, for blocks of one replicate."""
    import torch

    (rng,) = block.streams
    network = classifier_at_start(rng, point, block.device)
    labels = network.labels.cpu().numpy()
    classes = network.model(network.images[:1]).shape[1]
    own = torch.arange(point.samples, device=block.device)[None]
    return Trained(
        stacks.Modules.stacked([network.model]),
        grids.TrainingSets(network.images, network.labels, own),
        [int(rng.integers(2**31))],
        _best_constant([labels], classes).to(block.device),
        stacks.Modules(network.model),
        point.chunk,
    )


class TriedRates(NamedTuple):
    """Losses after training at each of a range of rates.

    Attributes
    ----------
    rates
        (R, C), rising by `FACTOR`.
    losses
        Loss on all samples after training, (R, C); infinite where a run is lost.
    trains
        Whether that is below the loss of the best constant output.
    """

    rates: Array
    losses: Array
    trains: Array

    @property
    def largest(self) -> Array:
        """Largest rate at which each network trains, (R,): between the m-th rate and the next if it trains at m."""
        return self.rates[:, 0] * FACTOR ** (self.trains.sum(1) - 0.5)


def ladder(block: Block, centre: float, below: int, above: int) -> Array:
    """Rates around a centre, all of one network moved by one random factor up to `FACTOR`, (R, below + above)."""
    moved = np.array([rng.uniform(-0.5, 0.5) for rng in block.streams])
    return centre * FACTOR ** (np.arange(-below, above) + 0.5 + moved[:, None])


def tried(trained: Trained, rates: Array, *, size: int, steps: int, rule: rules.Rule) -> TriedRates:
    """Each network trained at each of its rates, with batches of one size; the same at all rates."""
    import torch

    stack, samples = trained.stack or stacks.Perceptrons("relu"), trained.samples
    batches = [
        trial_training.CommonBatches(samples=samples.each, size=size, seed=seed, drop_last=True)
        for seed in trained.seeds
    ]
    grid = torch.from_numpy(rates).to(trained.start[0])
    run = grids.train(stack, trained.start, samples, batches, rates=grid, steps=steps, rule=rule)
    losses, _ = grids.ends_measured(stack, run, samples, size=trained.most)
    trains = losses < trained.constant[:, None]
    return TriedRates(rates, losses.double().cpu().numpy(), trains.cpu().numpy())


def rule_of(name: str) -> rules.Rule:
    """Momentum 0.9 is torch's, or averaged: 0.9 of the last direction and 0.1 of the gradient."""
    known: Mapping[str, rules.Rule] = {
        "sgd": rules.SGD,
        "momentum": rules.MOMENTUM,
        "averaged": rules.AVERAGED,
        "adam": rules.ADAM,
        "adam, damping 1": rules.Rule(momentum=0.9, second=0.999, damping=1.0),
        "squares, damping 1": rules.Rule(second=0.999, damping=1.0),
    }
    return known[name]
