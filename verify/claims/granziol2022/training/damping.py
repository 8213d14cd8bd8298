"""Granziol, Zohren and Roberts (2022), section 11.1: the largest rates of Adam with unit damping, and of momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.perceptrons import drawn_setting, ladder, rule_of, tried
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing, Tier, Verdict

__all__ = ["CLAIMS"]


def rates_at_unit_damping(block: Block, point: Point) -> Mapping[str, Any]:
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
    adam, averaged, summed = (largest[rule] for rule in ("adam, damping 1", "averaged", "momentum"))
    plain, squares = largest["sgd"], largest["squares, damping 1"]
    return {
        "adam over momentum": adam - summed,
        "averaged over momentum": averaged - summed,
        "squares over plain": squares - plain,
    }


RATES = Experiment(
    id="granziol2022/unit-damping",
    replicate="one perceptron with 512 images, trained by five rules at a ladder of rates each",
    simulate=rates_at_unit_damping,
    single="its networks are trained in single precision",
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
    data="digits",
    special="no label is drawn anew: the data as they are",
)  # fmt: skip

AS_STATED = Passage(
    Standing.AS_STATED,
    "largest stable rates for SGD, Adam and KFAC are 0.01, 0.12, 0.32",
    "Section 11.1",
)
CENTRES = "where the ladders of rates stand: around the rates of networks drawn first"
DECADES = "a bound a factor of two or more below what was seen first, so that a quarter of that, 0.1, decides nothing"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/unit-damping-adam",
        entries=("B58",),
        source=f"{PAPER}, section 11.1, where the ratio is 12",
        passage=AS_STATED,
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E} \log_{10} \frac{\alpha_{\max}(\text{Adam}, \delta = 1)}{\alpha_{\max}(\text{momentum } "
        r"0.9)} \ge \log_{10} 3",
        says="With unit damping the largest learning rate at which Adam trains a perceptron is at least three times "
        "that of gradient descent with momentum.",
        experiment=RATES,
        kind=Kind.AT_LEAST,
        score="adam over momentum",
        predict=lambda _: float(np.log10(3)),
        margin=0.1,
        relative=False,
        margin_reason=DECADES,
        pilot=f"the bound 3, half of what the first networks showed, and {CENTRES}",
        rivals={"thirty times": lambda _: float(np.log10(30))},
        quantity="decades between the largest rates of Adam and momentum",
        logarithm="10",
    ),
    Claim(
        id="granziol2022/unit-damping-squares",
        entries=("B58",),
        source=f"{PAPER}, section 11.1: that the larger rate shows estimates of sharp directions",
        passage=Passage(
            Standing.AS_STATED,
            "indicating that both KFAC and Adam are significantly better able to estimate sharp curvature",
            "Section 11.1",
        ),
        no_theory=NoTheory.CONSTANT,
        expected=Verdict.DISAGREES,
        finding="Adam without its momentum, which divides by 1 and the root of its squared gradients, trains up to the "
        "rate of plain descent: what multiplies the rate of Adam at unit damping is that its momentum averages "
        "gradients where that of SGD sums them.",
        statement=r"\mathbb{E} \log_{10} \frac{\alpha_{\max}(g / (1 + \sqrt v))}{\alpha_{\max}(g)} \ge \log_{10} 3",
        says="Dividing by Adam's squared gradients with unit damping, without momentum, multiplies the largest rate "
        "of plain descent by three or more, as it would if they estimated sharp curvature.",
        experiment=RATES,
        kind=Kind.AT_LEAST,
        score="squares over plain",
        predict=lambda _: float(np.log10(3)),
        margin=0.1,
        relative=False,
        margin_reason=DECADES,
        pilot=f"the bound 3, half of what Adam with its momentum showed, and {CENTRES}",
        rivals={"thirty times": lambda _: float(np.log10(30))},
        quantity="decades between the largest rates with squared gradients and without",
        logarithm="10",
    ),
)
