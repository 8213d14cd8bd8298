"""Granziol, Zohren and Roberts (2022), figures 12 and 20 to 22, on a small perceptron: rates and losses, reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.perceptrons import (
    TriedRates,
    convolutional_setting,
    drawn_setting,
    ladder,
    rule_of,
    steps_of,
    tried,
)
from verify.claims.trained_networks import VGG_16, pass_cost, vgg_layers
from verify.model import Tier
from verify.model.observation import Column, Cost, Observation, on_a_gpu

__all__ = ["OBSERVATIONS"]

KNOWN = 64
"""The batch size from whose best rate others are scaled."""

LOST = 10.0
"""In place of losses above it, over that of the best constant output, and of those that are no number."""

RUNGS = 13
"""Rates on either side of the middle of a ladder, a factor of 90."""


def rates_by_batch_size(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest and best rate at each batch size, and the losses at the best one and at those that two rules give."""
    setting = (convolutional_setting if "stages" in point else drawn_setting)(block, point)
    rungs = point.get("rungs", RUNGS)
    found = [
        tried(
            setting,
            ladder(block, centre, rungs, rungs),
            size=size,
            steps=steps_of(size, samples=point.samples, epochs=point.epochs, least=point.least),
            rule=rule_of(point.rule),
        )
        for size, centre in zip(point.batch_size, point.centres, strict=True)
    ]
    known = _best(found[point.batch_size.index(KNOWN)])
    rows, constant = [], setting.constant.double().cpu().numpy()
    for size, each in zip(point.batch_size, found, strict=True):
        rows.append(
            {
                "largest": each.largest,
                "open": (each.trains.all(1) | ~each.trains.any(1)).astype(float),
                "best": _best(each),
                "loss": each.losses.min(1) / constant,
                "by the root": np.minimum(_loss_at(each, known * (size / KNOWN) ** 0.5) / constant, LOST),
                "by the size": np.minimum(_loss_at(each, known * size / KNOWN) / constant, LOST),
            }
        )
    return {name: np.stack([row[name] for row in rows], 1) for name in rows[0]}


def _best(tried_rates: TriedRates) -> np.ndarray[Any, Any]:
    lowest = tried_rates.losses.argmin(1)
    return tried_rates.rates[np.arange(len(lowest)), lowest]


def _loss_at(tried_rates: TriedRates, rates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """At the rung nearest to each rate."""
    nearest = np.abs(np.log(tried_rates.rates / rates[:, None])).argmin(1)
    return tried_rates.losses[np.arange(len(nearest)), nearest]


SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MIDDLES = {
    "sgd": tuple(min(0.02 * size, 0.5) for size in SIZES),
    "adam": tuple(0.003 * size**0.5 for size in SIZES),
}


def _point(rule: str, noise: float) -> Point:
    return Point(
        rule=rule, noise=noise, images="digits", samples=512, epochs=5, least=200, batch_size=SIZES,
        centres=MIDDLES[rule],
    )  # fmt: skip


BY_BATCH_SIZE = Observation(
    id="granziol2022/rates-by-batch-size",
    entries=("B47", "B57"),
    source=f"{PAPER}, sections 10.1 and 11, figures 12 and 20 to 22",
    title="Largest and best rates of SGD and Adam in training, and what scaling rules cost",
    note="Losses are those at the end over that of the best constant output, 10 if lost. Scaled down from 64 to 1, "
    "a rate in proportion costs SGD little (0.03 for 0.01, and 0.76 for 0.74 where most labels are noise), "
    "the root much (0.25 and 0.95); for Adam the root costs next to nothing where most labels are noise (0.76 "
    "for 0.75) and twice the loss where they are clean, in proportion it costs 0.85 and more. Scaled up from "
    "64 to 256 no rule holds for SGD, whose largest rate is flat there; the root costs Adam less than "
    "proportion. Best rates lie a factor of two to five below the largest for SGD, and of five to fifty for "
    "Adam.",
    replicate="one perceptron with 512 images, trained at 26 rates at each batch size",
    simulate=rates_by_batch_size,
    single="its networks are trained in single precision",
    points=tuple(_point(rule, noise) for rule in ("sgd", "adam") for noise in (0.0, 0.6)),
    along="batch_size",
    columns=(
        Column(score="largest", heading="largest rate that trains"),
        Column(score="open", heading="share whose largest rate lies beyond those tried"),
        Column(score="best", heading="best rate"),
        Column(score="loss", heading="loss at the best rate"),
        Column(score="by the root", heading="at the best of 64 scaled by the root"),
        Column(score="by the size", heading="at the best of 64 scaled by the size"),
    ),
    replicates=4,
    seconds=5.0,
    data="digits",
    tier=Tier.FULL,
    axis="batch size",
)


# --- a network of the kind of VGG ------------------------------------------------------------------------------


def _convolutional(rule: str, **size: Any) -> Point:
    return Point(rule=rule, images="digits", **size)


def cost_of_rates(point: Point) -> Cost:
    """All rates at once, twice a pass forth and back for each, as their own kernels are counted; Adam keeps copies."""
    forward, kept = pass_cost(point)
    layers, rates = vgg_layers(point), 2 * point.rungs
    weights = sum(count for count, _ in layers)
    steps = [
        steps_of(size, samples=point.samples, epochs=point.epochs, least=point.least)
        for size in point.batch_size
    ]
    passed = sum(6 * count * size for count, size in zip(steps, point.batch_size, strict=True))
    passed += len(steps) * point.samples
    held = 6 * weights + kept * max(3 * max(point.batch_size), point.chunk)
    return Cost(4 * rates * held, rates * forward * passed, 25 * len(layers) * sum(steps) + 1000)


OF_VGG = Observation(
    id="granziol2022/vgg-rates",
    entries=("B47", "B57"),
    source=f"{PAPER}, sections 10.1 and 11, figures 12 and 20 to 22: the kind of network it has",
    title="Largest and best rates of SGD and Adam of a convolutional network",
    note="Three stages of convolutions on 256 digits, two epochs, twenty steps at least. Of four networks SGD trains "
    "up to 0.10 to 0.25 at batches of 16 and 0.16 to 0.41 at 64, Adam up to 0.020 to 0.044 and 0.023 to 0.060: 1.5 and "
    "1.4 times as much in the mean for four times the size, where the root would give 2. Losses are over that of the "
    "best constant output; scaled down from 64 the root costs no more than the size under both.",
    replicate="one network with its images, trained at 14 rates at each batch size",
    simulate=rates_by_batch_size,
    single="its networks are trained in single precision",
    points=tuple(
        _convolutional(
            rule, stages=((4, 4), (8, 8), (16,)), head=(32,), samples=256, chunk=256, epochs=2, least=20,
            batch_size=(16, 64), centres=centres, rungs=7,
        )
        for rule, centres in (("sgd", (0.1, 0.15)), ("adam", (0.02, 0.035)))
    ),
    along="batch_size",
    columns=BY_BATCH_SIZE.columns,
    replicates=1,
    seconds=5.3,
    data="digits",
    tier=Tier.FULL,
    axis="batch size",
)  # fmt: skip

OBSERVATIONS: tuple[Observation, ...] = (
    BY_BATCH_SIZE,
    OF_VGG,
    on_a_gpu(
        OF_VGG,
        points=tuple(
            _convolutional(
                rule, stages=VGG_16, head=(512, 512), samples=10_000, chunk=250, epochs=1, least=40,
                batch_size=(16, 64), centres=centres, rungs=6,
            )
            for rule, centres in (("sgd", (0.02, 0.05)), ("adam", (6e-4, 1e-3)))
        ),
        cost=cost_of_rates,
        note="VGG-16, 15 million parameters, one epoch of 10,000 images of CIFAR-10 (one network, an H200: no error is "
        "known). The largest rate of SGD is 0.062 at a batch of 16 and 0.064 at 64; the best one, 0.0066 and 0.0136, "
        "grows by 2.1 for four times the batch. Adam: 0.00065 and 0.00079, best 0.00010 and 0.00017. The best rate of "
        "64 scaled to 16 by the root costs nothing, by the size 0.01 in loss under SGD and nothing under Adam. Ladders "
        "span a factor of 45.",
    ),
)  # fmt: skip
