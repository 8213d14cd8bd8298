"""Granziol, Zohren and Roberts (2022), sections 10 and 11: the largest rate of training against the batch size."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import learning_rates
from verify.claims.drawn_networks import stacked_rows
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.perceptrons import (
    TriedRates,
    convolutional_setting,
    drawn_setting,
    ladder,
    rule_of,
    tried,
)
from verify.claims.trained_networks import SINGLE, VGG_16, pass_cost, trained_on_digits, vgg_layers
from verify.model import (
    OURS,
    Arrays,
    Claim,
    Experiment,
    Kind,
    NoTheory,
    Tier,
    Verdict,
    as_stated,
)
from verify.model.observation import Cost, Observation, columns_of, on_a_gpu

SIZES = (1, 8, 64)
STEP = math.log(8)

BASE = 0.8
"""The rate that is scaled to another batch size, over the largest at which a network trains."""


def _steps(point: Point, size: int) -> int:
    return max(point.least, point.epochs * (point.samples // size))


def rates_of_batches(block: Block, point: Point) -> Arrays:
    """The largest rate at which a network trains, at several batch sizes: its exponents, and which rules train.

    It is the geometric mean over several orders of the batches where a point says how many.
    """
    trained = drawn_setting(block, point)
    found = []
    for size, centre, orders in zip(SIZES, point.centres, point.get("orders", (1, 1, 1)), strict=True):
        steps, largest = _steps(point, size), 0.0
        for order in range(orders):
            own = trained._replace(seeds=[seed + order for seed in trained.seeds])
            rates = ladder(block, centre, point.below, point.above)
            largest += np.log(tried(own, rates, size=size, steps=steps, rule=rule_of(point.rule)).largest)
        found.append(np.exp(largest / orders))
    one, eight, many = found
    return {
        "small": np.log(eight / one) / STEP,
        "whole": np.log(many / one) / math.log(64),
        "by the size": (BASE * eight / 8 < one).astype(float),
        "by the root": (BASE * eight / math.sqrt(8) < one).astype(float),
        "raised by the size": (BASE * one * 64 < many).astype(float),
    }


def _point(rule: str, noise: float, centres: tuple[float, ...], **changes: Any) -> Point:
    shared = {"images": "digits", "samples": 512, "epochs": 5, "least": 200, "below": 3, "above": 4}
    return Point(rule=rule, noise=noise, centres=centres, **shared | changes)


def _experiment(name: str, point: Point, budget: int, seconds: float, tier: Tier) -> Experiment:
    return trained_on_digits(
        id=f"granziol2022/{name}",
        replicate="one perceptron with 512 images, trained at a ladder of rates at three batch sizes",
        simulate=rates_of_batches,
        points=(point,),
        budget=budget,
        seconds=seconds,
        tier=tier,
        special="no label is drawn anew",
    )


CLEAN = {"epochs": 1, "below": 2, "above": 2, "orders": (1, 3, 1)}
"""The rate at 8 has most of the variance of what is claimed, and is cheap to find: three orders of the batches."""

SGD_CLEAN, SGD_NOISY, ADAM_NOISY = (
    _experiment(f"{rule}-rates-{name}", _point(rule, noise, centres, **changes), budget, seconds, tier)
    for rule, name, noise, centres, changes, budget, seconds, tier in (
        ("sgd", "clean", 0.0, (0.21, 1.03, 1.65), CLEAN, 320, 1.4, Tier.DEFAULT),
        ("sgd", "noisy", 0.6, (0.13, 0.83, 2.3), {}, 320, 8.4, Tier.FULL),
        ("adam", "noisy", 0.6, (0.0149, 0.047, 0.15), {}, 192, 10.0, Tier.FULL),
    )
)
"""Centres of the ladders from pilot draws: what lies below a ladder counts as training, what lies above as not."""

CENTRES = "where the ladders of rates stand: around the rates of networks drawn first"


def _inverse_sizes(p: Any) -> list[float]:
    return [1 / size - 1 / p.samples for size in SIZES]


def _through_both_ends(p: Any) -> Any:
    """Exponent from 1 to 8 of the rule that is linear, then flat, through the rates at 1 and 64."""
    first, _, last = _inverse_sizes(p)
    ratio = 64 ** np.asarray(p.whole)
    linear = ratio * last >= first
    effective = np.maximum(ratio - 1, 0.0) / np.where(linear, 1.0, first - ratio * last)
    rates = learning_rates.linear_then_flat(
        1.0,
        known=1,
        batch_size=8,
        crossover=np.where(linear, math.inf, effective / (1 + effective / p.samples)),
        dataset_size=p.samples,
    )
    return np.log(rates) / STEP


def _of_theorem_4(p: Any) -> Any:
    """Exponent from 1 to 8 of 2 / lambda_1' of theorem 4, with lambda_1 / sigma from the rates at 1 and 64."""
    first, _, last = _inverse_sizes(p)
    noise = math.sqrt(last)
    top = math.sqrt(first) / 64 ** np.asarray(p.whole)
    eigenvalue = np.where(top > noise, top + np.sqrt(np.maximum(top**2 - noise**2, 0.0)), noise)
    how = {"sigma": 1.0, "dim": 1, "dataset_size": p.samples}
    large, small = (learning_rates.sgd_limit(eigenvalue, batch_size=size, **how) for size in (8, 1))
    return np.log(large / small) / STEP


EVENTS = {
    "kind": Kind.PROPORTION,
    "margin": 0.25,
    "relative": False,
    "margin_reason": "one in four; the readings at issue are always and never",
    "no_theory": NoTheory.CONSTANT,
    "pilot": CENTRES,
    "quantity": "share of networks that train at the scaled rate",
}


# --- section 11.1: Adam with unit damping, and momentum ------------------------------------------------------


def rates_at_unit_damping(block: Block, point: Point) -> Arrays:
    """Largest rates at which a network trains, in decades: by Adam with unit damping, and by what it is made of."""
    trained = drawn_setting(block, point)
    largest = {
        rule: np.log10(
            tried(
                trained,
                ladder(block, centre, point.below, point.above),
                size=point.batch_size,
                steps=point.steps,
                rule=rule_of(rule),
            ).largest
        )
        for rule, centre in zip(point.rules, point.centres, strict=True)
    }
    return {
        "adam over momentum": largest["adam, damping 1"] - largest["momentum"],
        "squares over plain": largest["squares, damping 1"] - largest["sgd"],
    }


RATES = trained_on_digits(
    id="granziol2022/unit-damping",
    replicate="one perceptron with 512 images, trained by five rules at a ladder of rates each",
    simulate=rates_at_unit_damping,
    points=(
        Point(
            images="digits", samples=512, noise=0.0, batch_size=128, steps=80, below=3, above=4,
            rules=("momentum", "averaged", "adam, damping 1", "sgd", "squares, damping 1"),
            centres=(2.0, 22.0, 11.0, 1.9, 1.9),
        ),
    ),
    budget=192,
    seconds=8.2,
    tier=Tier.FULL,
    special="no label is drawn anew",
)  # fmt: skip

THREEFOLD = {
    "entries": ("B58",),
    "experiment": RATES,
    "kind": Kind.AT_LEAST,
    "predict": lambda _: math.log10(3),
    "margin": 0.1,
    "relative": False,
    "margin_reason": "a bound a factor of two or more below what was seen first: a quarter of that decides nothing",
    "no_theory": NoTheory.CONSTANT,
    "rivals": {"thirty times": lambda _: math.log10(30)},
    "logarithm": "10",
}


_exponent = partial(
    Claim,
    no_theory=NoTheory.CONSTANT,
    score="small",
    relative=False,
    pilot=CENTRES,
    quantity="exponent of the largest rate between batches of 1 and 8",
)

CLAIMS = (
    _exponent(
        id="granziol2022/sgd-rate-in-training",
        entries=("B47",),
        source=f"{PAPER}, section 10.1 and figure 12",
        passage=as_stated(
            "For small batch sizes the maximal learning rate is proportional to the batch size.",
            "Section 10.1",
        ),
        statement=r"\frac{\log \alpha_{\max}(8) - \log \alpha_{\max}(1)}{\log 8} = 1\quad "
        r"(\alpha_{\max}: \text{ largest rate after which SGD ends below the best constant output})",
        says="Where most labels are noise, the largest rate at which SGD trains a perceptron grows in proportion to "
        "the batch size from 1 to 8.",
        experiment=SGD_NOISY,
        predict=lambda _: 1.0,
        margin=0.2,
        margin_reason="an exponent over three doublings: small against the half that tells it from a square root; "
        "batches of 8 are not negligible against a crossover at some twenty",
        rivals={"square root": lambda _: 0.5, "no noise of batches": lambda _: 0.0},
    ),
    Claim(
        id="granziol2022/sgd-rates-clean-linear-then-flat",
        entries=("B47", "beyond/D2"),
        source=f"ours, beside {PAPER}, section 10.1: the shape of the limit in the mean square",
        passage=OURS,
        statement=r"\frac{1}{\alpha_{\max}(B)} \text{ is linear in } 1/b:\quad "
        r"\alpha_{\max} \propto \frac{1}{1 + b^*/b} \text{ through } B = 1, 64 \text{ holds at } B = 8",
        says="The largest rate at which SGD trains goes as one over one plus a crossover over the batch size: those "
        "at 1 and 64 give the one at 8, with clean labels.",
        experiment=SGD_CLEAN,
        score="small",
        inputs={"whole": 0.5},
        predict=_through_both_ends,
        margin=0.1,
        relative=False,
        margin_reason="an exponent over three doublings: a rate at 8 within 23 % of the curve's",
        pilot=CENTRES,
        rivals={
            "theorem 4 through both ends": _of_theorem_4,
            "square root": lambda _: 0.5,
            "one power through both ends": lambda p: p.whole,
            "linear": lambda _: 1.0,
        },
        quantity="exponent of the largest rate between batches of 1 and 8, less the curve's",
    ),
    Claim(
        id="granziol2022/sgd-rate-by-the-root",
        **EVENTS,
        entries=("B47",),
        source=f"{PAPER}, section 11 and figure 21",
        passage=as_stated(
            "reducing the learning rate using square-root scaling, leads to poor training and divergence",
            "Section 11",
        ),
        statement=r"P\big(0.8\, \alpha_{\max}(8) / \sqrt 8 < \alpha_{\max}(1)\big) = 0 \quad\text{(SGD)}",
        says="Where most labels are noise, SGD does not train on single samples at a rate reduced by the root of the "
        "batch size from a good one at 8.",
        experiment=SGD_NOISY,
        score="by the root",
        predict=lambda _: 0.0,
        rivals={"always": lambda _: 1.0},
    ),
    Claim(
        id="granziol2022/sgd-rates-clean-by-the-size",
        **EVENTS,
        entries=("B47",),
        source=f"{PAPER}, section 10.1 and figure 12: training stays stable below the batch size where it was tuned",
        passage=as_stated("The training and validation accuracy remains stable", "caption of Figure 12"),
        statement=r"P\big(0.8\, \alpha_{\max}(8) / 8 < \alpha_{\max}(1)\big) = 1 \quad\text{(SGD)}",
        says="With clean labels, SGD trains on single samples at a rate reduced in proportion to the batch size from "
        "a good one at 8.",
        experiment=SGD_CLEAN,
        score="by the size",
        predict=lambda _: 1.0,
        rivals={"never": lambda _: 0.0},
    ),
    _exponent(
        id="granziol2022/adam-rate-in-training",
        entries=("B57",),
        source=f"{PAPER}, section 11 and figure 20",
        passage=as_stated(
            "we would expect to be able to scale the learning only proportionally to the square root of the batch size",
            "Section 11",
        ),
        statement=r"\frac{\log \alpha_{\max}(8) - \log \alpha_{\max}(1)}{\log 8} = \tfrac12 \quad\text{(Adam)}",
        says="Where most labels are noise, the largest rate at which Adam trains a perceptron grows as the root of "
        "the batch size from 1 to 8.",
        experiment=ADAM_NOISY,
        predict=lambda _: 0.5,
        margin=0.15,
        margin_reason="an exponent over three doublings, a third of the half that tells a root from a line",
        rivals={"linear": lambda _: 1.0, "no noise of batches": lambda _: 0.0},
    ),
    Claim(
        id="granziol2022/adam-rate-by-the-size",
        **EVENTS,
        entries=("B57",),
        source=f"{PAPER}, section 11 and figure 22",
        passage=as_stated(
            "Note that there is rapid divergence upon using a doubled batch size.",
            "Section 11",
        ),
        statement=r"P\big(0.8 \cdot 64\, \alpha_{\max}(1) < \alpha_{\max}(64)\big) = 0 \quad\text{(Adam)}",
        says="Where most labels are noise, Adam does not train on 64 samples a step at a rate raised in proportion "
        "to the batch size from a good one at 1.",
        experiment=ADAM_NOISY,
        score="raised by the size",
        predict=lambda _: 0.0,
        rivals={"always": lambda _: 1.0},
    ),
    Claim(
        id="granziol2022/unit-damping-adam",
        **THREEFOLD,
        source=f"{PAPER}, section 11.1, where the ratio is 12",
        passage=as_stated("largest stable rates for SGD, Adam and KFAC are 0.01, 0.12, 0.32", "Section 11.1"),
        statement=r"\mathbb{E} \log_{10} \frac{\alpha_{\max}(\text{Adam}, \delta = 1)}{\alpha_{\max}(\text{momentum } "
        r"0.9)} \ge \log_{10} 3",
        says="With unit damping the largest rate at which Adam trains a perceptron is at least three times "
        "momentum's.",
        score="adam over momentum",
        pilot=f"the bound 3, half of what the first networks showed, and {CENTRES}",
        quantity="decades between the largest rates of Adam and momentum",
    ),
    Claim(
        id="granziol2022/unit-damping-squares",
        **THREEFOLD,
        source=f"{PAPER}, section 11.1: that the larger rate shows estimates of sharp directions",
        passage=as_stated(
            "indicating that both KFAC and Adam are significantly better able to estimate sharp curvature",
            "Section 11.1",
        ),
        expected=Verdict.DISAGREES,
        finding="Adam without its momentum, which divides by 1 and the root of its squared gradients, trains up to "
        "descent's rate: what multiplies the rate of Adam at unit damping is that its momentum averages gradients "
        "where that of SGD sums them.",
        statement=r"\mathbb{E} \log_{10} \frac{\alpha_{\max}(g / (1 + \sqrt v))}{\alpha_{\max}(g)} \ge \log_{10} 3",
        says="Dividing by Adam's squared gradients with unit damping, without momentum, multiplies descent's largest "
        "rate by three or more, as if they estimated sharp curvature.",
        score="squares over plain",
        pilot=f"the bound 3, half of what Adam with its momentum showed, and {CENTRES}",
        quantity="decades between the largest rates with squared gradients and without",
    ),
)


KNOWN = 64
"""The batch size from whose best rate others are scaled."""

LOST = 10.0
"""Cap on a loss over that of the best constant output; also replaces losses that are no number."""


def rates_by_batch_size(block: Block, point: Point) -> Arrays:
    """Largest and best rate at each batch size, and the losses at the best one and at those that two rules give."""
    setting = (convolutional_setting if "stages" in point else drawn_setting)(block, point)
    rungs = point.get("rungs", 13)  # on either side of the middle of a ladder, a factor of 90
    found = [
        tried(
            setting,
            ladder(block, centre, rungs, rungs),
            size=size,
            steps=_steps(point, size),
            rule=rule_of(point.rule),
        )
        for size, centre in zip(point.batch_size, point.centres, strict=True)
    ]
    known = _best(found[point.batch_size.index(KNOWN)])
    constant = setting.constant.double().cpu().numpy()
    rows = [
        {
            "largest": each.largest,
            "open": (each.trains.all(1) | ~each.trains.any(1)).astype(float),
            "best": _best(each),
            "loss": each.losses.min(1) / constant,
            "by the root": np.minimum(_loss_at(each, known * (size / KNOWN) ** 0.5) / constant, LOST),
            "by the size": np.minimum(_loss_at(each, known * size / KNOWN) / constant, LOST),
        }
        for size, each in zip(point.batch_size, found, strict=True)
    ]
    return stacked_rows(rows, axis=1)


def _best(tried_rates: TriedRates) -> np.ndarray[Any, Any]:
    lowest = tried_rates.losses.argmin(1)
    return tried_rates.rates[np.arange(len(lowest)), lowest]


def _loss_at(tried_rates: TriedRates, rates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Loss at the tried rate nearest to each rate."""
    nearest = np.abs(np.log(tried_rates.rates / rates[:, None])).argmin(1)
    return tried_rates.losses[np.arange(len(nearest)), nearest]


OBSERVED_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MIDDLES = {
    "sgd": tuple(min(0.02 * size, 0.5) for size in OBSERVED_SIZES),
    "adam": tuple(0.003 * size**0.5 for size in OBSERVED_SIZES),
}


_rates = partial(
    Observation,
    entries=("B47", "B57"),
    simulate=rates_by_batch_size,
    single=SINGLE,
    along="batch_size",
    data="digits",
    tier=Tier.FULL,
    axis="batch size",
)

BY_BATCH_SIZE = _rates(
    id="granziol2022/rates-by-batch-size",
    source=f"{PAPER}, sections 10.1 and 11, figures 12 and 20 to 22",
    title="Largest and best rates of SGD and Adam in training, and what scaling rules cost",
    note="Losses at the end over that of the best constant output, 10 if lost. Scaled down from 64 to 1, a rate in "
    "proportion costs SGD little (0.03 for 0.01, and 0.76 for 0.74 where most labels are noise), the root much (0.25 "
    "and 0.95); the root costs Adam next to nothing where most labels are noise (0.76 for 0.75) and twice the loss "
    "where they are clean, proportion 0.85 and more. Scaled up from 64 to 256 no rule holds for SGD, whose largest "
    "rate is flat there; the root costs Adam less than proportion. Best rates lie two to five times below the "
    "largest for SGD, five to fifty for Adam.",
    replicate="one perceptron with 512 images, trained at 26 rates at each batch size",
    points=tuple(
        Point(
            rule=rule, noise=noise, images="digits", samples=512, epochs=5, least=200, batch_size=OBSERVED_SIZES,
            centres=centres,
        )
        for rule, centres in MIDDLES.items()
        for noise in (0.0, 0.6)
    ),
    columns=columns_of(
        {
            "largest": "largest rate that trains",
            "open": "share whose largest rate lies beyond those tried",
            "best": "best rate",
            "loss": "loss at the best rate",
            "by the root": "at the best of 64 scaled by the root",
            "by the size": "at the best of 64 scaled by the size",
        }
    ),
    replicates=4,
    seconds=5.0,
)  # fmt: skip


# --- a network of the kind of VGG ------------------------------------------------------------------------------


def cost_of_rates(point: Point) -> Cost:
    """All rates at once, twice a pass forth and back for each, as their own kernels are counted; Adam keeps copies."""
    forward, activations = pass_cost(point)
    layers, rates = vgg_layers(point), 2 * point.rungs
    weights = sum(count for count, _ in layers)
    steps = [_steps(point, size) for size in point.batch_size]
    passed = sum(6 * count * size for count, size in zip(steps, point.batch_size, strict=True))
    passed += len(steps) * point.samples
    held = 6 * weights + activations * max(3 * max(point.batch_size), point.chunk)
    return Cost(4 * rates * held, rates * forward * passed, 25 * len(layers) * sum(steps) + 1000)


OF_VGG = _rates(
    id="granziol2022/vgg-rates",
    source=f"{PAPER}, sections 10.1 and 11, figures 12 and 20 to 22: the kind of network it has",
    title="Largest and best rates of SGD and Adam of a convolutional network",
    note="Three stages of convolutions on 256 digits, two epochs, twenty steps at least. Of four networks SGD trains "
    "up to 0.10 to 0.25 at batches of 16 and 0.16 to 0.41 at 64, Adam up to 0.020 to 0.044 and 0.023 to 0.060: 1.5 "
    "and 1.4 times as much in the mean for four times the size, where the root would give 2. Scaled down from 64 the "
    "root costs no more than the size under both.",
    replicate="one network with its images, trained at 14 rates at each batch size",
    points=tuple(
        Point(
            rule=rule, images="digits", stages=((4, 4), (8, 8), (16,)),
            head=(32,), samples=256, chunk=256, epochs=2, least=20,
            batch_size=(16, 64), centres=centres, rungs=7,
        )
        for rule, centres in (("sgd", (0.1, 0.15)), ("adam", (0.02, 0.035)))
    ),
    columns=BY_BATCH_SIZE.columns,
    replicates=1,
    seconds=5.3,
)  # fmt: skip

OBSERVATIONS = (
    BY_BATCH_SIZE,
    OF_VGG,
    on_a_gpu(
        OF_VGG,
        points=tuple(
            Point(
                rule=rule, images="digits", stages=VGG_16,
                head=(512, 512), samples=10_000, chunk=250, epochs=1, least=40,
                batch_size=(16, 64), centres=centres, rungs=6,
            )
            for rule, centres in (("sgd", (0.02, 0.05)), ("adam", (6e-4, 1e-3)))
        ),
        cost=cost_of_rates,
        note="VGG-16, 15 million parameters, one epoch of 10,000 images of CIFAR-10 (one network, an H200: no error "
        "is known). The largest rate of SGD is 0.062 at 16 and 0.064 at 64; the best, 0.0066 and 0.0136, grows by "
        "2.1. Adam: 0.00065 and 0.00079, best 0.00010 and 0.00017. The best rate of 64 scaled to 16 costs nothing by "
        "the root, by the size 0.01 in loss under SGD.",
    ),
)  # fmt: skip
