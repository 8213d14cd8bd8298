"""Perceptrons on small images, trained at many rates: what the experiments on learning rates share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulate import data
from simulate.monte_carlo import Block, Point
from simulate.training import grids, rules, stacks, trial_training
from verify.claims.trained_networks import vgg_at_start

if TYPE_CHECKING:
    import torch

__all__ = [
    "FACTOR",
    "Trained",
    "TriedRates",
    "convolutional_setting",
    "drawn_setting",
    "ladder",
    "rule_of",
    "steps_of",
    "tried",
]

UNIT_DAMPING = 1.0

FACTOR = math.sqrt(2)
"""From one rate of a ladder to the next."""

WIDTHS = (64, 32)


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


def drawn_setting(block: Block, point: Point) -> Trained:
    """ReLU perceptrons with biases, as torch draws them, on images of 8 x 8; a share of the labels is drawn anew."""
    import torch

    source = data.opened(point.images, (1, 8, 8))
    images, labels, seeds = [], [], []
    start = stacks.perceptrons_at_start(block.streams, (*WIDTHS, source.classes))
    for rng in block.streams:
        drawn = data.sample(source, rng, point.samples).flat()
        wrong = rng.uniform(size=point.samples) < point.noise
        images.append(drawn.images)
        labels.append(np.where(wrong, rng.integers(source.classes, size=point.samples), drawn.labels))
        seeds.append(int(rng.integers(2**31)))
    own = torch.arange(len(block) * point.samples).view(len(block), point.samples)
    samples = grids.TrainingSets(
        torch.from_numpy(np.concatenate(images)).float().to(block.device),
        torch.from_numpy(np.concatenate(labels)).to(block.device),
        own.to(block.device),
    )
    constant = _best_constant(labels, source.classes).to(block.device)
    return Trained([p.to(block.device) for p in start], samples, seeds, constant)


def _best_constant(labels: Sequence[np.ndarray[Any, Any]], classes: int) -> torch.Tensor:
    """Loss of the best constant output on the labels of each network: the entropy of their shares."""
    import torch

    shares = np.stack([np.bincount(own, minlength=classes) / len(own) for own in labels])
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    return torch.from_numpy(-(shares * logs).sum(1))


def convolutional_setting(block: Block, point: Point) -> Trained:
    """One network of the stages of the point on images of 32 x 32, labels as they are, for blocks of one replicate."""
    import torch

    (rng,) = block.streams
    network = vgg_at_start(rng, point, block.device)
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
    """What became of the rates of a ladder.

    Attributes
    ----------
    rates
        (R, C), rising by `FACTOR`.
    losses
        On all samples after training, (R, C); infinite where a run is lost.
    trains
        Where that is below the loss of the best constant output.
    """

    rates: np.ndarray[Any, Any]
    losses: np.ndarray[Any, Any]
    trains: np.ndarray[Any, Any]

    @property
    def largest(self) -> np.ndarray[Any, Any]:
        """Up to which rate each network trains, (R,): between the m-th rate and the next where it does at m of them."""
        return self.rates[:, 0] * FACTOR ** (self.trains.sum(1) - 0.5)


def ladder(block: Block, centre: float, below: int, above: int) -> np.ndarray[Any, Any]:
    """Rates around a centre, all of one network moved by one random factor up to `FACTOR`, (R, below + above)."""
    moved = np.array([rng.uniform(-0.5, 0.5) for rng in block.streams])
    return centre * FACTOR ** (np.arange(-below, above) + 0.5 + moved[:, None])


def tried(
    trained: Trained, rates: np.ndarray[Any, Any], *, size: int, steps: int, rule: rules.Rule
) -> TriedRates:
    """Each network trained at each of its rates, with batches of one size; the same at all rates."""
    import torch

    stack, samples = trained.stack or stacks.Perceptrons("relu"), trained.samples
    batches = [
        trial_training.CommonBatches(samples=samples.each, size=size, seed=seed, drop_last=True)
        for seed in trained.seeds
    ]
    like = trained.start[0]
    asked = torch.from_numpy(rates).to(like)
    run = grids.train(stack, trained.start, samples, batches, rates=asked, steps=steps, rule=rule)
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
        "adam, damping 1": rules.Rule(momentum=0.9, second=0.999, damping=UNIT_DAMPING),
        "squares, damping 1": rules.Rule(second=0.999, damping=UNIT_DAMPING),
    }
    return known[name]


def steps_of(size: int, *, samples: int, epochs: int, least: int) -> int:
    """So many epochs, and no fewer than so many steps."""
    return max(least, epochs * (samples // size))
