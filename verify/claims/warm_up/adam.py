"""Adam at its first steps: the preconditioned sharpness, and the rates that train with and without a remedy."""

from __future__ import annotations

import dataclasses

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, rules
from theory.learning_rates import adam
from verify.claims.trained_networks import all_samples, centred_images, trained_on_digits
from verify.claims.warm_up.descent import NEARLY_ALL, PRODUCTS, WARMUP, octaves, perceptrons_at
from verify.model import Arrays, Claim, Kind, NoTheory, as_stated

FAR = 10
"""Times the threshold that count as far above."""


def adam_rates(block: Block, point: Point) -> Arrays:
    """Octaves that each remedy gains, and whether the first preconditioned sharpness is far above its threshold.

    The preconditioner is (1 - beta_1^t) (sqrt(v) + eps), v corrected for its start at 0, at the first step. The
    threshold is that of the largest rate that trains after a warm-up.
    """
    import torch

    samples = centred_images(block, point)
    stack, start = perceptrons_at(block, point, point.hidden)
    rates = (point.low * 2.0 ** torch.arange(point.tried, device=block.device)).expand(len(block), -1)
    rule = rules.Rule(momentum=point.momentum, second=point.second)
    started = dataclasses.replace(rule, squared_start=True)
    found = octaves(stack, start, samples, rates, point, rule, (1, point.warmup))
    mended = octaves(stack, start, samples, rates, point, started)[:, 0]
    x, y = all_samples(samples)
    _, gradients = stack.losses_and_gradients(start, x, y)
    scales = [((1 - point.momentum) * (g.abs() + rule.damping)).rsqrt() for g in gradients]
    top = edges.top_eigenvalues(stack, start, x, y, steps=PRODUCTS, scales=scales).values.double()
    largest = point.low * 2 ** (found[:, 1] - 1)
    edge = torch.from_numpy(adam.adaptive_edge(largest.cpu().numpy(), momentum=point.momentum)).to(top)
    return {
        "gains": torch.stack([found[:, 1], mended], 1) - found[:, :1],
        "far": (top > FAR * edge).double(),
    }


ADAM = trained_on_digits(
    id="warm_up/adam-rates",
    replicate="one perceptron with 16 digits, at each rate of a ladder, by Adam with and without a remedy",
    simulate=adam_rates,
    points=(
        Point(
            activation="relu",
            hidden=(16, 16),
            samples=16,
            low=0.02,
            tried=7,
            momentum=0.9,
            second=0.999,
            warmup=48,
            steps=80,
            remedies=("warm-up", "GI-Adam"),
        ),
    ),
    budget=384,
    seconds=1.4,
)

CLAIMS = (
    Claim(
        id="warm_up/first-step-of-adam",
        entries=("K4",),
        source=f"{WARMUP}; the high start, by accounts of others",
        statement=r"P\Big(\lambda_1(P_1^{-1} H) > 10\, \frac{2 + 2\beta_1}{(1 - \beta_1)\, \eta_{max}(T)}\Big) = 1,"
        r"\quad P_1 = (1 - \beta_1)\,\mathrm{diag}(|g| + \epsilon)",
        symbols={
            "P_1": "preconditioner of the first step",
            "H": "Hessian",
            "g": "gradient",
            r"\epsilon": "damping of Adam",
            r"\beta_1": "share of the average of gradients that Adam keeps in a step",
        },
        says="At a rate that trains after a warm-up, Adam's preconditioned sharpness is at first more than ten times "
        "its stability threshold, but for rare networks.",
        experiment=ADAM,
        **NEARLY_ALL,
        score="far",
        rivals={"never": lambda _: 0.0, "on half of them": lambda _: 0.5},
        pilot="networks and the ten; that a share is judged: one network of 96 was below at two seeds of three",
        quantity="share of networks that are first ten times above the threshold",
    ),
    Claim(
        id="warm_up/remedies-of-adam",
        entries=("K5",),
        source=f"{WARMUP}, abstract",
        passage=as_stated(
            "an initialization for the variance in Adam which provides benefits similar to warmup", "abstract"
        ),
        statement=r"\mathbb{E} \log_2 \frac{\eta_{max}(\text{warm-up, or } v_0 = g_0^2)}{\eta_{max}} \ge 1",
        symbols={"v_0": "average of squared gradients before the first step", "g_0": "first gradient"},
        says="A warm-up of 48 steps, and second moments that start at the squared first gradient, each double the "
        "largest rate at which Adam trains small ReLU networks.",
        experiment=ADAM,
        kind=Kind.AT_LEAST,
        score="gains",
        along="remedies",
        predict=lambda _: 1.0,
        margin=0.25,
        relative=False,
        margin_reason="a quarter of an octave, a fifth of a factor",
        rivals={"sixteenfold": lambda _: 4.0, "1 / sqrt(1 - beta_2)": lambda p: -np.log2(1 - p.second) / 2},
        no_theory=NoTheory.CONSTANT,
        pilot="bound, and that ReLU is judged: 2.7 octaves at 128 steps and 3.7 with GI-Adam on the first 16, where "
        "with tanh Adam trained at nearly every rate without either",
        quantity="logarithm of the gain in the largest rate",
        logarithm="2",
    ),
)
