"""Steps of SGD and of Adam, exponents and largest eigenvalues, at any rate, batch size and population."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, lyapunov, optimisers, stacks, trial_training
from theory import learning_rates
from theory.finite_size import wishart_edge
from verify.claims.adam_limit.scaling import CLAIMS as ADAM
from verify.claims.beyond.rates import MULAYOFF, samples_of
from verify.claims.granziol2022.rates.least_squares import CLAIMS as LEAST_SQUARES
from verify.judging.families import by_name, one, ratio
from verify.model import OURS, AnyClaim, StatisticalProperty
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

GROWTH = by_name(LEAST_SQUARES, "least-squares-growth")["least-squares-growth"]
SECOND_MOMENT = by_name(ADAM, "second-moment")["second-moment"]


def _sgd(block: Block, p: Point) -> Any:
    """Loss of distance at a multiple of the largest stable rate, and what else is 1 there."""
    return np.array([_descents(rng, p) for rng in block.streams])


def _descents(rng: np.random.Generator, p: Point) -> float:
    batch = min(p.batch_size, p.samples - 1)
    matrices = samples_of(rng, p | {"rank": 2, "spread": 0.6, "decay": 0.5, "heavy": 0.0})
    found = optimisers.population(matrices)
    limit = optimisers.largest_stable_rate(found, batch)
    setting = {"rate": p.times * limit.rate, "batch_size": batch, "runs": 2048}
    steps = optimisers.sgd_steps(Block((rng,)), matrices, limit.moment, **setting)
    lost = -steps["change"][0] / steps["gain"][0]
    still = optimisers.moment_radius(optimisers.all_batches(matrices, batch), limit.rate)
    directions = optimisers.trial_directions(found, top=2, heavy=2)
    bracket = learning_rates.mean_square_bracket(
        *optimisers.form_moments(found, directions),
        square=optimisers.whitened_square(found, batch),
        batch_size=batch,
        dataset_size=len(matrices),
    )
    sides = (float(bracket.lower) / limit.rate, float(bracket.upper) / limit.rate)
    outside = (min(1.0, 1 / sides[0]), max(1.0, 1 / sides[1])) if p.dim > 1 else sides
    known = float(learning_rates.mean_square_descent(p.times, limit=1.0))
    return float(np.mean([1 + lost - known, still, *outside]))


def _exponent(block: Block, p: Point) -> Any:
    """One weight, so that a step on a sample multiplies its distance by what descent on that sample does."""
    import torch

    stack, steps = stacks.Perceptrons("relu", "squared error", bias=False), 3 * p.samples + 1
    x = 1 + 0.4 * block.normal(p.samples, 1).cpu().sigmoid()
    # to either side of the rate that ends on the spot, where the logarithm has no bottom
    rate = 0.3 * p.times if p.batch_size % 2 else 1.3 + p.times
    kernels = lyapunov.output_kernels(stack, [torch.ones(len(block), 1, 1, dtype=x.dtype)], x)
    batches = [
        trial_training.CommonBatches(samples=p.samples, size=1, seed=int(rng.integers(1 << 31)))
        for rng in block.streams
    ]
    rates = torch.full((len(block), 1), rate, dtype=x.dtype)
    found = lyapunov.lyapunov_exponents(kernels, batches, rates=rates, steps=steps)[:, 0]
    squares = x[:, :, 0].square().numpy()
    factors = learning_rates.heavy_ball_contraction(rate, 0.0, largest=squares, smallest=squares)
    return 1 + found.numpy() - np.log(factors).mean(1)


def _largest(block: Block, p: Point) -> Any:
    """Of the Hessian of a linear output on Gaussian inputs."""
    stack = stacks.Perceptrons("relu", "squared error", bias=False)
    dim, size = 10 + 10 * p.dim, 12 * p.samples
    x, y = block.normal(size, dim), block.normal(size, 1)
    found = edges.top_eigenvalues(stack, [x.new_zeros(len(block), 1, dim)], x, y, steps=dim)
    return found.values / float(wishart_edge(dim, size, variance=1.0).mean)


def _adam(block: Block, p: Point) -> Any:
    """By the square root rule, where noise dominates the gradients."""
    loss = {"start": 1.3, "curvature": 0.8, "noise": 31.0, "later_noise": 11.0}
    setting = {"rate": 0.021 * p.times, "momentum": 0.993, "second": 0.9985, "damping": 3.0}
    runs = {"growth": min(p.batch_size, 2), "paths": 256, "before": 12 * p.samples, "after": 96}
    return ratio(SECOND_MOMENT, block, Point(**loss, **setting, **runs))


CASES: dict[str, Callable[[Block, Point], Any]] = {
    "least squares": lambda block, p: ratio(
        GROWTH, block, Point(dim=p.dim, batch_size=p.batch_size, rate=p.times / 3, steps=2, runs=48)
    ),
    "sgd": _sgd,
    "exponent": _exponent,
    "largest": _largest,
    "adam": _adam,
}


def any_rate(block: Block, point: Point) -> Mapping[str, Any]:
    """What steps do over what theory says they do."""
    return {"ratio": CASES[point.case](block, point)}


def _example(case: str) -> Point:
    return Point(case=case, samples=7, dim=4, batch_size=3, times=0.7)


CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="beyond/any-rate",
        entries=("D2", "granziol2022/B46"),
        source=f"ours; the limit of SGD is that of {MULAYOFF}",
        passage=OURS,
        statement=r"\text{a step of SGD from the moment that } \alpha_{\rm ms} \text{ keeps: } 1 - a/\alpha_{\rm ms};\ "
        r"\text{exponents, moments of Adam and largest eigenvalues as theory has them}",
        says="Over ranges of rate, batch size and population, steps of SGD and of Adam move what they move in theory, "
        "and exponents and largest eigenvalues come out as there.",
        domain={
            "case": OneOf(*CASES),
            "samples": Between(4, 9),
            "dim": Between(1, 4),
            "batch_size": Between(1, 4),
            "times": Between(0.3, 1.4),
        },
        simulate=any_rate,
        on_host="populations in numpy",
        replicate="some hundred runs, or one set of inputs",
        examples=(*map(_example, CASES), _example("sgd") | {"dim": 1}),
        score="ratio",
        predict=one,
        margin=0.02,
        margin_reason="exact, but for the first order of Adam's limit and of the edge, below 1 %",
        rivals={
            "no batch noise": lambda p: 1 - p.times / p.batch_size,
            "twice the rate": lambda p: 1 + p.times,
        },
        budget=4096,
        seconds=4.0,
        quantity="what steps do over theory",
    ),
)
