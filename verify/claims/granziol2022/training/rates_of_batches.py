"""Granziol, Zohren and Roberts (2022), sections 10 and 11: the largest rate of training against the batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import learning_rates
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.perceptrons import drawn_setting, ladder, rule_of, steps_of, tried
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing, Tier

__all__ = ["CLAIMS"]

SIZES = (1, 8, 64)
STEP = math.log(SIZES[1] / SIZES[0])

BASE = 0.8
"""The rate that is scaled to another batch size, over the largest at which a network trains."""


def rates_of_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest rate at which a network trains, at several batch sizes: its exponents, and which rules train."""
    trained = drawn_setting(block, point)
    found = []
    for size, centre in zip(SIZES, point.centres, strict=True):
        rates = ladder(block, centre, point.below, point.above)
        steps = steps_of(size, samples=point.samples, epochs=point.epochs, least=point.least)
        found.append(tried(trained, rates, size=size, steps=steps, rule=rule_of(point.rule)))
    one, eight, many = (each.largest for each in found)
    return {
        "small": np.log(eight / one) / STEP,
        "whole": np.log(many / one) / math.log(SIZES[2] / SIZES[0]),
        "by the size": (BASE * eight / 8 < one).astype(float),
        "by the root": (BASE * eight / math.sqrt(8) < one).astype(float),
        "raised by the size": (BASE * one * 64 < many).astype(float),
    }


def _point(rule: str, noise: float, rungs: tuple[int, int], centres: tuple[float, ...]) -> Point:
    shared = {"images": "digits", "samples": 512, "epochs": 5, "least": 200}
    return Point(rule=rule, noise=noise, below=rungs[0], above=rungs[1], centres=centres, **shared)


def _experiment(name: str, point: Point, budget: int, seconds: float, tier: Tier) -> Experiment:
    return Experiment(
        id=f"granziol2022/{name}",
        replicate="one perceptron with 512 images, some labels drawn anew, trained at a ladder of rates at three "
        "batch sizes",
        simulate=rates_of_batches,
        single="its networks are trained in single precision",
        points=(point,),
        budget=budget,
        seconds=seconds,
        tier=tier,
        data="digits",
        special="no label is drawn anew: the data as they are",
    )


SGD_CLEAN, SGD_NOISY, ADAM_NOISY = (
    _experiment(f"{rule}-rates-{name}", _point(rule, noise, rungs, centres), budget, seconds, tier)
    for rule, name, noise, rungs, centres, budget, seconds, tier in (
        ("sgd", "clean", 0.0, (3, 4), (0.21, 1.03, 1.65), 320, 10.0, Tier.DEFAULT),
        ("sgd", "noisy", 0.6, (3, 4), (0.13, 0.83, 2.3), 320, 8.4, Tier.FULL),
        ("adam", "noisy", 0.6, (3, 4), (0.0149, 0.047, 0.15), 192, 10.0, Tier.FULL),
    )
)
"""Centres of the ladders from pilot draws: what lies below a ladder counts as training, what lies above as not."""

CENTRES = "where the ladders of rates stand: around the rates of networks drawn first"


def _inverse_sizes(p: Any) -> list[float]:
    return [1 / size - 1 / p.samples for size in SIZES]


def _through_both_ends(p: Any) -> Any:
    """Exponent from 1 to 8 of the rule that is linear, then flat, through the rates at 1 and 64."""
    first, _, last = _inverse_sizes(p)
    ratio = (SIZES[2] / SIZES[0]) ** np.asarray(p.whole)
    linear = ratio * last >= first
    effective = np.maximum(ratio - 1, 0.0) / np.where(linear, 1.0, first - ratio * last)
    rates = learning_rates.linear_then_flat(
        1.0,
        known=SIZES[0],
        batch_size=SIZES[1],
        crossover=np.where(linear, math.inf, effective / (1 + effective / p.samples)),
        dataset_size=p.samples,
    )
    return np.log(rates) / STEP


def _of_theorem_4(p: Any) -> Any:
    """Exponent from 1 to 8 of 2 / lambda_1' of theorem 4, with lambda_1 / sigma from the rates at 1 and 64."""
    first, _, last = _inverse_sizes(p)
    noise = math.sqrt(last)
    top = math.sqrt(first) / (SIZES[2] / SIZES[0]) ** np.asarray(p.whole)
    eigenvalue = np.where(top > noise, top + np.sqrt(np.maximum(top**2 - noise**2, 0.0)), noise)
    how = {"sigma": 1.0, "dim": 1, "dataset_size": p.samples}
    large, small = (
        learning_rates.sgd_limit(eigenvalue, batch_size=size, **how) for size in (SIZES[1], SIZES[0])
    )
    return np.log(large / small) / STEP


EVENTS = "one in four; the readings at issue are always and never"


ROOTS: Mapping[str, Callable[[Any], Any]] = {
    "theorem 4 through both ends": _of_theorem_4,
    "square root": lambda _: 0.5,
}
FAR_WHERE_CLEAN: Mapping[str, Callable[[Any], Any]] = {
    "one power through both ends": lambda p: p.whole,
    "linear": lambda _: 1.0,
}
"""With noisy labels the crossover lies further up, and the curve within two margins of these."""


def _noisy(experiment: Experiment) -> bool:
    return experiment.points[0].noise > 0


def _labels(experiment: Experiment) -> str:
    return "labels of which most are noise" if _noisy(experiment) else "clean labels"


def _curve(experiment: Experiment) -> Claim:
    """The rule that is linear, then flat, on one of the two sets of labels."""
    return Claim(
        id=f"{experiment.id}-linear-then-flat",
        entries=("B47", "beyond/D2"),
        source=f"ours, beside {PAPER}, section 10.1: the shape of the limit in the mean square",
        passage=OURS,
        statement=r"\frac{1}{\alpha_{\max}(B)} \text{ is linear in } 1/b:\quad "
        r"\alpha_{\max} \propto \frac{1}{1 + b^*/b} \text{ through } B = 1, 64 \text{ holds at } B = 8",
        says="The largest rate at which SGD trains goes with the batch size as one over one plus a crossover over it: "
        f"those at 1 and 64 give the one at 8, with {_labels(experiment)}.",
        experiment=experiment,
        score="small",
        inputs={"whole": lambda p: 0.7 if p.noise else 0.5},
        predict=_through_both_ends,
        margin=0.1,
        relative=False,
        margin_reason="an exponent over three doublings: a rate at 8 within 23 % of the curve's",
        pilot=CENTRES,
        rivals=ROOTS if _noisy(experiment) else {**ROOTS, **FAR_WHERE_CLEAN},
        quantity="exponent of the largest rate between batches of 1 and 8, less the curve's",
    )


def _by_the_size(experiment: Experiment) -> Claim:
    """Reducing the rate in proportion to the batch size, on one of the two sets of labels."""
    return Claim(
        id=f"{experiment.id}-by-the-size",
        entries=("B47",),
        source=f"{PAPER}, section 10.1 and figure 12: training stays stable below the batch size where it was tuned",
        passage=Passage(
            Standing.AS_STATED, "The training and validation accuracy remains stable", "caption of Figure 12"
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(0.8\, \alpha_{\max}(8) / 8 < \alpha_{\max}(1)\big) = 1 \quad\text{(SGD)}",
        says=f"With {_labels(experiment)}, SGD trains with one sample a step at a rate that was reduced in "
        "proportion to the batch size from a good one at eight.",
        experiment=experiment,
        kind=Kind.PROPORTION,
        score="by the size",
        predict=lambda _: 1.0,
        margin=0.25,
        relative=False,
        margin_reason=EVENTS,
        pilot=CENTRES,
        rivals={"never": lambda _: 0.0},
        quantity="share of networks that train at the scaled rate",
    )


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/sgd-rate-in-training",
        entries=("B47",),
        source=f"{PAPER}, section 10.1 and figure 12",
        passage=Passage(
            Standing.AS_STATED,
            "For small batch sizes the maximal learning rate is proportional to the batch size.",
            "Section 10.1",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"\frac{\log \alpha_{\max}(8) - \log \alpha_{\max}(1)}{\log 8} = 1\quad "
        r"(\alpha_{\max}: \text{ largest rate after which SGD ends below the best constant output})",
        says="Where most labels are noise, the largest learning rate at which SGD trains a perceptron grows in "
        "proportion to the batch size from one sample to eight.",
        experiment=SGD_NOISY,
        score="small",
        predict=lambda _: 1.0,
        margin=0.2,
        relative=False,
        margin_reason="an exponent over three doublings: small against the half that tells it from a square root; "
        "batches of 8 are not negligible against a crossover at some twenty",
        pilot=CENTRES,
        rivals={"square root": lambda _: 0.5, "no noise of batches": lambda _: 0.0},
        quantity="exponent of the largest rate between batches of 1 and 8",
    ),
    *(_curve(experiment) for experiment in (SGD_CLEAN, SGD_NOISY)),
    Claim(
        id="granziol2022/sgd-rate-by-the-root",
        entries=("B47",),
        source=f"{PAPER}, section 11 and figure 21",
        passage=Passage(
            Standing.AS_STATED,
            "reducing the learning rate using square-root scaling, leads to poor training and divergence",
            "Section 11",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(0.8\, \alpha_{\max}(8) / \sqrt 8 < \alpha_{\max}(1)\big) = 0 \quad\text{(SGD)}",
        says="Where most labels are noise, SGD does not train with one sample a step at a rate that was reduced by "
        "the square root of the batch size from a good one at eight.",
        experiment=SGD_NOISY,
        kind=Kind.PROPORTION,
        score="by the root",
        predict=lambda _: 0.0,
        margin=0.25,
        relative=False,
        margin_reason=EVENTS,
        pilot=CENTRES,
        rivals={"always": lambda _: 1.0},
        quantity="share of networks that train at the scaled rate",
    ),
    *(_by_the_size(experiment) for experiment in (SGD_CLEAN, SGD_NOISY)),
    Claim(
        id="granziol2022/adam-rate-in-training",
        entries=("B57",),
        source=f"{PAPER}, section 11 and figure 20",
        passage=Passage(
            Standing.AS_STATED,
            "we would expect to be able to scale the learning only proportionally to the square root of the batch size",
            "Section 11",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"\frac{\log \alpha_{\max}(8) - \log \alpha_{\max}(1)}{\log 8} = \tfrac12 \quad\text{(Adam)}",
        says="Where most labels are noise, the largest learning rate at which Adam trains a perceptron grows as the "
        "square root of the batch size from one sample to eight.",
        experiment=ADAM_NOISY,
        score="small",
        predict=lambda _: 0.5,
        margin=0.15,
        relative=False,
        margin_reason="an exponent over three doublings, a third of the half that tells a root from a line",
        pilot=CENTRES,
        rivals={"linear": lambda _: 1.0, "no noise of batches": lambda _: 0.0},
        quantity="exponent of the largest rate between batches of 1 and 8",
    ),
    Claim(
        id="granziol2022/adam-rate-by-the-size",
        entries=("B57",),
        source=f"{PAPER}, section 11 and figure 22",
        passage=Passage(
            Standing.AS_STATED,
            "Note that there is rapid divergence upon using a doubled batch size.",
            "Section 11",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(0.8 \cdot 64\, \alpha_{\max}(1) < \alpha_{\max}(64)\big) = 0 \quad\text{(Adam)}",
        says="Where most labels are noise, Adam does not train with 64 samples a step at a rate that was raised in "
        "proportion to the batch size from a good one at one.",
        experiment=ADAM_NOISY,
        kind=Kind.PROPORTION,
        score="raised by the size",
        predict=lambda _: 0.0,
        margin=0.25,
        relative=False,
        margin_reason=EVENTS,
        pilot=CENTRES,
        rivals={"always": lambda _: 1.0},
        quantity="share of networks that train at the scaled rate",
    ),
)
