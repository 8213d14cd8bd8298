"""Adam at batches of another size: on a noisy quadratic, in its second moments, and on small networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import grids, rules, stacks
from theory.learning_rates import adam
from verify.claims.trained_networks import batches_of, common_rates, small_networks, trained_on_digits
from verify.model import (
    Arrays,
    Claim,
    Experiment,
    Kind,
    NoTheory,
    Verdict,
    as_stated,
    out_of_scope,
)

MALLADI = "Malladi, Lyu, Panigrahi and Arora (2022), arXiv 2205.10287"


def _setting(p: Any) -> dict[str, Any]:
    """Arguments of the rules for Adam: its setting at the batch size that the point is for."""
    return {"rate": p.rate, "momentum": p.momentum, "second": p.second, "damping": p.damping}


def _square_root_rule(p: Any, growth: int) -> tuple[adam.AdamSetting, rules.Rule]:
    """Adam's setting at a batch `growth` times as large, by the square-root rule."""
    own = adam.square_root_rule(float(growth), **_setting(p))
    return own, rules.Rule(momentum=own.momentum, second=own.second, damping=own.damping)


def adam_paths(block: Block, point: Point) -> Arrays:
    """Mean and mean square of a weight of h x^2 / 2 after Adam at a batch `growth` times as large, and as many samples.

    The noise of the gradients falls to another level on the way. `compared`: also the mean at the batch size of the
    setting.
    """
    found = {"base_mean": _paths(block, point, 1)[0]} if point.get("compared") else {}
    mean, square = _paths(block, point, point.growth)
    return {"mean": mean, "square": square} | found


def _paths(block: Block, point: Point, growth: int) -> tuple[Any, Any]:
    import torch

    own, rule = _square_root_rule(point, growth)
    like: Any = {"dtype": torch.float64, "device": block.device}
    x, memory = torch.full((len(block), point.paths), point.start, **like), rules.Memory()
    rates = torch.full((len(block),), own.rate, **like)
    for level, steps in ((point.noise, point.before), (point.later_noise, point.after)):
        for _ in range(steps // growth):
            noise = block.normal(point.paths) * (level / growth**0.5)
            memory = rule.step_([x], [point.curvature * x + noise], rates, memory)
    return x.mean(1), x.square().mean(1)


NOISY = {
    "start": 1.3,
    "curvature": 0.8,
    "noise": 31.0,
    "later_noise": 11.0,
    "before": 768,
    "after": 1280,
    "rate": 0.021,
    "momentum": 0.993,
    "second": 0.9985,
    "damping": 3.0,
}
LOUD = Experiment(
    id="adam_limit/noisy-paths",
    replicate="192 paths of Adam on a quadratic in one weight, gradients mostly noise",
    simulate=adam_paths,
    points=tuple(Point(growth=growth, paths=192, **NOISY) for growth in (4, 16)),
    budget=1024,
    seconds=0.35,
)


QUIET = Experiment(
    id="adam_limit/quiet-paths",
    replicate="32 paths of Adam on a quadratic in one weight, gradients mostly signal",
    simulate=adam_paths,
    points=(
        Point(
            growth=16,
            paths=32,
            compared=True,
            **NOISY | {"noise": 0.31, "later_noise": 0.11, "damping": 0.03, "rate": 0.00047},
        ),
    ),
    budget=256,
    seconds=0.74,
)


def _moments(p: Any, **changes: Any) -> adam.AdamMoments:
    return adam.adam_moments(
        **{
            "start": p.start,
            "curvature": p.curvature,
            "noise": (p.noise, p.later_noise),
            "steps": (p.before, p.after),
            **_setting(p),
            **changes,
        }
    )


def _otherwise(p: Any, rate_power: float, averages: bool) -> adam.AdamMoments:
    """Moments at the larger batch with another rule: the rate times a power of its factor, averages scaled or not."""
    k = p.growth
    scaled = adam.square_root_rule(float(k), **_setting(p))
    betas = {} if not averages else {"momentum": scaled.momentum, "second": scaled.second}
    return _moments(
        p,
        noise=(p.noise / k**0.5, p.later_noise / k**0.5),
        steps=(p.before // k, p.after // k),
        rate=p.rate * k**rate_power,
        damping=scaled.damping,
        **betas,
    )


def samples_kept(block: Block, point: Point) -> Arrays:
    """Correlation over `lag` samples of the difference between two averages of squares over different samples."""
    import torch

    size, lag = point.batch_size, point.lag // point.batch_size
    beta = float(adam.same_half_life(point.second, known=point.known, batch_size=size))
    v = torch.zeros(len(block), 2, point.chains, dtype=torch.float64, device=block.device)
    differences = []
    for step in range(point.steps):
        v = beta * v + (1 - beta) * block.normal(2, point.chains, size).mean(3).square()
        if step >= point.steps // 3:
            differences.append(v[:, 0] - v[:, 1])
    d = torch.stack(differences, 1)
    now, then = d[:, :-lag], d[:, lag:]
    return {
        "product": (now * then).mean((1, 2)),
        "square": ((now.square() + then.square()) / 2).mean((1, 2)),
    }


KEPT = Experiment(
    id="adam_limit/samples-kept",
    replicate="16 pairs of averages of squared gradients, in 90 steps",
    simulate=samples_kept,
    points=(
        Point(second=0.87, known=2, batch_size=10, lag=20, chains=16, steps=90),
        Point(second=0.93, known=4, batch_size=3, lag=24, chains=16, steps=90),
    ),
    seconds=0.39,
)


MOMENTS = r"\eta \to \sqrt{\kappa}\, \eta,\ 1 - \beta \to \kappa (1 - \beta),\ \epsilon \to \epsilon / \sqrt{\kappa}"

SCALING_CLAIMS = (
    Claim(
        id="adam_limit/second-moment",
        entries=("I1",),
        source=f"{MALLADI}, the limit of Adam; its moments for a quadratic are ours",
        passage=as_stated(
            "a square root scaling rule to adjust the optimization hyperparameters of RMSprop and Adam when changing "
            "batch size",
            "abstract",
        ),
        statement=r"\mathbb{E}\, x^2\ \text{after as many samples is the same at } B \text{ and } "
        rf"\kappa B:\quad {MOMENTS}",
        says="On a quadratic whose gradients are mostly noise, Adam by the square root rule has the same mean square "
        "of the weights at 4 and 16 times the batch size as its limit.",
        experiment=LOUD,
        score="square",
        predict=lambda p: _moments(p).square,
        margin=0.05,
        margin_reason="the limit is of first order in 1 - beta, which is a ninth at sixteen times the batch size",
        rivals={
            "linear in the rate": lambda p: _otherwise(p, 1.0, True).square,
            "rate as it is": lambda p: _otherwise(p, 0.0, True).square,
            "averages as they are": lambda p: _otherwise(p, 0.5, False).square,
        },
        quantity="mean square of the weight",
    ),
    Claim(
        id="adam_limit/quiet-gradients",
        entries=("I1",),
        source=MALLADI,
        passage=out_of_scope(
            "derives the SDE approximations for RMSprop and Adam",
            "abstract; such an equation keeps the noise of the gradients, and the rule is derived from it",
        ),
        statement=rf"\mathbb{{E}}\, x\ \text{{after as many samples is the same at }} B \text{{ and }} \kappa B:"
        rf"\quad {MOMENTS}\quad (\text{{gradients above their noise}})",
        says="Where gradients are mostly signal, Adam by the square root rule has the same mean of the weights at 16 "
        "times the batch size.",
        experiment=QUIET,
        score="mean",
        predict=lambda p: p.base_mean,
        inputs={"base_mean": 0.3},
        no_theory=NoTheory.MEASURED,
        margin=0.05,
        margin_reason="as where noise dominates",
        rivals={"a quarter as far": lambda p: p.start - (p.start - p.base_mean) / p.growth**0.5},
        expected=Verdict.DISAGREES,
        finding="The rule comes from a stochastic differential equation, in which noise dominates the gradients. "
        "Where it does not, Adam moves by its rate in every step: a sixteenth of the steps at four times the rate "
        "goes about a quarter as far.",
        quantity="mean of the weight",
    ),
    Claim(
        id="adam_limit/half-life",
        entries=("I4",),
        source="Marek et al. (2025), arXiv 2507.07101",
        passage=as_stated("we propose to hold its half-life fixed in terms of tokens", "abstract"),
        statement=r"\mathrm{corr}(v_t, v_{t + k}) = 2^{-n/n_{1/2}}\ \text{after } n = k B \text{ samples, the same at "
        r"every } B:\quad \beta_2 \to \beta_2^{B'/B}",
        says="With beta 2 to the power of the ratio of batch sizes, Adam's average of squares keeps the same share "
        "after as many samples, at larger and smaller batches.",
        experiment=KEPT,
        kind=Kind.RATIO,
        score=("product", "square"),
        # the share of what an average held that is left `lag` samples later
        predict=lambda p: 2.0 ** -float(p.lag / adam.half_life(p.second, batch_size=p.known)),
        margin=0.03,
        margin_reason="exact for an average that has settled",
        rivals={
            "beta 2 as it is": lambda p: p.second ** (p.lag / p.batch_size),
            "linear in the batch size": lambda p: (
                (1 - p.batch_size / p.known * (1 - p.second)) ** (p.lag / p.batch_size)
            ),
        },
        quantity="correlation of the average with itself",
    ),
)


def two_batch_sizes(block: Block, point: Point) -> Arrays:
    """Logarithm of the loss of all samples at the larger batch over that at the smaller, after as many epochs."""
    start, samples = small_networks(block, point)
    stack, losses = stacks.Perceptrons(point.activation), list[Any]()
    for growth in (1, point.growth):
        own, rule = _square_root_rule(point, growth)
        size = growth * point.batch_size
        run = grids.train(
            stack,
            start,
            samples,
            batches_of(block, point.samples, size),
            rates=common_rates(block, float(own.rate)),
            steps=point.epochs * (point.samples // size),
            rule=rule,
        )
        losses.append(grids.ends_measured(stack, run, samples)[0][:, 0].double().cpu().numpy())
    return {"log ratio": np.log(losses[1] / losses[0])}


SHARED = {
    "images": "digits",
    "samples": 128,
    "batch_size": 2,
    "growth": 4,
    "epochs": 8,
    "rate": 0.001,
    "momentum": 0.9,
    "second": 0.999,
    "damping": 1e-8,
}

TWO_SIZES = trained_on_digits(
    id="adam_limit/two-batch-sizes",
    replicate="one perceptron with its images, trained by Adam at two batch sizes",
    simulate=two_batch_sizes,
    points=(
        Point(activation="relu", hidden=(24,), **SHARED),
        Point(activation="tanh", hidden=(16, 12), **SHARED),
    ),
    budget=256,
    seconds=0.73,
)

CLAIMS = (
    *SCALING_CLAIMS,
    Claim(
        id="adam_limit/loss-after-equal-epochs",
        entries=("I2",),
        source=f"{MALLADI}, abstract",
        passage=as_stated("its empirical validation in deep learning settings", "abstract"),
        statement=r"\mathbb{E} \ln L_{4B} - \mathbb{E} \ln L_B \approx 0\ \text{after as many epochs}:\quad "
        r"\eta \to 2 \eta,\ 1 - \beta \to 4 (1 - \beta),\ \epsilon \to \epsilon / 2",
        says="On small perceptrons, Adam at batches of eight by the square root rule comes within a factor of 1.3 of "
        "the loss at batches of two.",
        experiment=TWO_SIZES,
        score="log ratio",
        predict=lambda _: 0.0,
        margin=float(np.log(1.3)),
        relative=False,
        margin_reason="a factor of 1.3: gradients are not all noise; other rules for the rate are off by more",
        pilot="the margin, with seed 5: 0.20 and 0.11 by the square root rule, -0.80 and -0.57 with the rate four "
        "times as large, 1.00 and 0.50 with the rate as it is",
        rivals={
            "linear in the rate": lambda p: -0.8 if p.activation == "relu" else -0.57,
            "rate as it is": lambda p: 1.0 if p.activation == "relu" else 0.5,
        },
        no_theory=NoTheory.CONSTANT,
        quantity="logarithm of the loss at four times the batch size over that at one",
        logarithm="e",
    ),
)
