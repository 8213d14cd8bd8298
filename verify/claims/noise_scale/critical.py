"""Growth of critical batch sizes: with the data, of SGD on least squares; with the noise scale, of small networks."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import grids, stacks
from theory.learning_rates import noise_scale
from verify.claims import Floats
from verify.claims.noise_scale.networks import gradients_of_samples
from verify.claims.noise_scale.quadratics import MCCANDLISH
from verify.claims.trained_networks import (
    all_samples,
    batches_of,
    common_rates,
    labelled_images,
    perceptrons_drawn,
    trained_on_digits,
)
from verify.model import KNOWN, Arrays, Claim, Experiment, Identity, Kind, NoTheory, Tier, as_stated

if TYPE_CHECKING:
    from torch import Tensor


ZHANG = "Zhang et al. (2025), arXiv 2410.21676v4"

OVERHEAD = 1.2
"""Samples at the critical batch size over those at a small one, for the same loss (section 1 there)."""


def power_law(capacity: float, source: float, dim: int) -> tuple[Floats, Floats]:
    """Eigenvalues i^-a, and squared distances i^(a - b) of the weights at the start from the best ones."""
    i = np.arange(1.0, dim + 1)
    return i**-capacity, i ** (capacity - source)


def sgd_paths(block: Block, point: Point) -> Arrays:
    """Mean excess risk of the last weights and of their average, over runs of SGD with fresh Gaussian inputs."""
    import torch

    values, start = (
        torch.from_numpy(a).to(block.device) for a in power_law(point.capacity, point.source, point.dim)
    )
    w = start.sqrt().expand(len(block), point.runs, -1)
    total = torch.zeros_like(w)
    for _ in range(point.steps):
        total = total + w
        x = block.normal(point.runs, point.batch_size, point.dim) * values.sqrt()
        errors = x @ w[..., None] + point.noise**0.5 * block.normal(point.runs, point.batch_size, 1)
        w = w - point.rate / point.batch_size * (x.mT @ errors)[..., 0]
    return {"risks": torch.stack([(v.square() @ values).mean(1) for v in (w, total / point.steps)], 1)}


def _risk(p: Any, **changes: Any) -> float:
    p = p | changes
    found = noise_scale.least_squares_risks(
        *power_law(p.capacity, p.source, p.dim),
        noise=p.noise,
        rate=p.rate,
        batch_size=p.batch_size,
        steps=p.steps,
    )
    return float((found.average if p.weights == "average" else found.last)[-1])


LADDER = 0.95 / 1.2 ** np.arange(30)
"""Rates tried, over one that is stable at any eigenvalues of this sum."""


def critical_sizes(capacity: float, source: float, dim: int, samples: tuple[int, ...]) -> Floats:
    """Batch size at which a pass of SGD takes `OVERHEAD` times the samples for the risk of single ones, (2, k).

    Rows: the last weights and their average, each at its best rate. Columns: the samples of the pass of single ones.
    """
    values, start = power_law(capacity, source, dim)
    sizes, needed, targets = (
        np.r_[1.0, 2 ** np.arange(1.0, 9.5, 0.5)],
        list[Any](),
        np.zeros((2, len(samples))),
    )
    for size in sizes:
        rates = LADDER * 2 * size / ((size + 1) * values[0] + values.sum())
        # single ones set the risk, others get two and a half times the samples to reach it
        steps = math.ceil((1.0 if size == 1 else 2.5) * max(samples) / size)
        risks = noise_scale.least_squares_risks(
            values, start, noise=1.0, rate=rates, batch_size=size, steps=steps
        )
        falling = np.log([np.minimum.accumulate(each.min(1)) for each in risks])
        targets = falling[:, np.array(samples) - 1] if size == 1 else targets
        counts = np.log(size * np.arange(1, steps + 1))
        needed.append(
            [np.interp(-wanted, -best, counts) for wanted, best in zip(targets, falling, strict=True)]
        )
    ratios = np.maximum.accumulate(np.exp(needed) / np.array(samples))
    return np.array([[np.interp(OVERHEAD, each, sizes) for each in row] for row in ratios.transpose(1, 2, 0)])


def growth(_: np.random.Generator, point: Point) -> Arrays:
    """Exponents of the critical batch size in the samples, of last weights and averages, and in the dimensions."""
    pairs = list(zip(point.capacity, point.source, strict=True))
    found = np.array([critical_sizes(*pair, point.dims[0], point.samples) for pair in pairs])
    other = critical_sizes(*pairs[0], point.dims[1], point.samples)
    in_data = np.log(found[..., 1] / found[..., 0]) / math.log(point.samples[1] / point.samples[0])
    in_dims = np.log(other[1, 1] / found[0, 1, 1]) / math.log(point.dims[1] / point.dims[0])
    last, average = (
        noise_scale.critical_batch_exponent(point.capacity, point.source, averaged=averaged)
        for averaged in (False, True)
    )
    return {
        "measured": np.append(in_data.T, in_dims),
        "theory": np.r_[last, average, 0.0],
        "in proportion to the data": np.r_[np.ones(6), 0.0],
        "as the root of the data": np.r_[np.full(6, 0.5), 0.0],
        "averages as the last weights": np.r_[last, last, 0.0],
        "as the root of the dimensions too": np.r_[last, average, 0.5],
    }


def in_training(block: Block, point: Point) -> Arrays:
    """Logarithm of the growth of tr S / |g|^2 in training at two widths, and between them at one loss; same images."""
    import torch

    samples, classes = labelled_images(block, point)
    x, y = all_samples(samples)
    stack, batches = stacks.Perceptrons(point.activation), batches_of(block, point.samples, point.batch_size)

    def watch(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        each = torch.cat([g.flatten(2) for g in gradients_of_samples(stack, list(cells.parameters), x, y)], 2)
        spread = each.var(1).sum(1) / each.mean(1).square().sum(1)
        return {
            "scale": spread.log(),
            "loss": stack.losses(stack.outputs(cells.parameters, x), y).mean(1).log(),
        }

    grown, reached = list[Any](), list[Any]()
    for width in point.widths:
        start = perceptrons_drawn(block, (64, width, classes))
        rates = common_rates(block, point.rate)
        run = grids.train(
            stack, start, samples, batches, rates=rates, steps=max(point.looks), watch=watch, at=point.looks
        )
        scale, loss = (run.watched[name][:, 0].double().cpu().numpy() for name in ("scale", "loss"))
        grown.append(scale[:, -1] - scale[:, 0])
        # between looks, where the loss first falls below the level
        falling = -np.minimum.accumulate(loss, axis=1)
        reached.append(
            [np.interp(-math.log(point.level), *pair) for pair in zip(falling, scale, strict=True)]
        )
    return {"growth": np.stack(grown, 1), "between": np.subtract(reached[1], reached[0])}


PATHS = Experiment(
    id="noise_scale/sgd-paths",
    replicate="400 runs of SGD on least squares with inputs of a power law",
    simulate=sgd_paths,
    points=(
        Point(
            capacity=1.3, source=2.2, dim=11, noise=0.6, rate=0.27, batch_size=3, steps=14, runs=400,
            weights=("last", "average"),
        ),
        Point(
            capacity=1.7, source=3.1, dim=7, noise=0.3, rate=0.44, batch_size=5, steps=9, runs=400,
            weights=("last", "average"),
        ),
    ),
    seconds=0.3,
)  # fmt: skip

TRAINING = trained_on_digits(
    id="noise_scale/in-training",
    replicate="two perceptrons of unlike width trained on the same 48 images",
    simulate=in_training,
    points=(
        Point(
            images="digits", activation="tanh", widths=(10, 40), samples=48, batch_size=8, rate=0.25, level=0.3,
            looks=(0, 20, 40, 80, 120),
        ),
    ),
    budget=384,
    seconds=1.5,
)  # fmt: skip

OF_TRAINING = {
    "entries": ("H12",),
    "source": f"{MCCANDLISH}, abstract",
    "experiment": TRAINING,
    "no_theory": NoTheory.CONSTANT,
    "relative": False,
    "logarithm": "e",
}

CLAIMS = (
    Claim(
        id="noise_scale/sgd-risks",
        entries=("H10",),
        source="Zou et al. (2021), arXiv 2103.12692: the recursion; for Gaussian inputs it is closed",
        passage=KNOWN,
        statement=r"m_i' = \left[(1-\eta\lambda_i)^2 + \tfrac{\eta^2 \lambda_i^2}{B}\right] m_i + "
        r"\tfrac{\eta^2 \lambda_i}{B} \left(\textstyle\sum_j \lambda_j m_j + \sigma^2\right)",
        says="On least squares with fresh Gaussian inputs, a linear recursion of second moments gives the mean risk of "
        "SGD and of the average of its weights.",
        experiment=PATHS,
        score="risks",
        along="weights",
        predict=_risk,
        margin=0.02,
        margin_reason="exact",
        rivals={
            "no noise in labels": partial(_risk, noise=0.0),
            "full gradients": partial(_risk, batch_size=1e12),
            "single samples": partial(_risk, batch_size=1),
            "the last weights": partial(_risk, weights="last"),
        },
        quantity="mean excess risk",
        symbols={
            r"m_i": "second moment of a weight less the best one",
            r"\lambda_i": "eigenvalue of the covariance of the inputs",
            r"\sigma^2": "variance of the labels about the best outputs",
        },
    ),
    Identity(
        id="noise_scale/critical-exponents",
        entries=("H11",),
        source=f"{ZHANG}, abstract; the exponents are derived in docs/claims/noise_scale.md",
        passage=as_stated("CBS scales primarily with data size rather than model size", "abstract"),
        statement=r"\frac{d \log B^*}{d \log D} = \max\left(0, 1 - \frac ab\right) \text{ (averaged weights)},\quad "
        r"\frac{b - 1}{a + b - 1} \text{ (last weights)},\quad \frac{d \log B^*}{d \log n} = 0",
        says="The critical batch size of SGD on least squares with a power law grows as a power of the number of "
        "samples and does not go with the number of dimensions.",
        routes=growth,
        points=(
            Point(capacity=(1.4, 1.8, 2.4), source=(2.9, 2.6, 2.2), samples=(512, 4096), dims=(64, 256)),
        ),
        tolerance=0.2,
        tolerance_reason="exponents between finite numbers of samples, by rates and batch sizes on a grid; a fifth of "
        "the largest, 0.6, is a third of what tells averages from last weights",
        pilot="the tolerance: exponents looked at first were off by up to 0.09, and by less with more samples",
        tier=Tier.DEFAULT,
        seconds=1.5,
        quantity="exponents of the critical batch size",
        symbols={
            r"B^*": "critical batch size",
            r"D": "number of samples of one pass",
            r"n": "number of dimensions",
            r"a": "power with which eigenvalues fall",
            r"b": "power with which parts of the variance of the labels fall",
        },
    ),
    Claim(
        id="noise_scale/growth-in-training",
        **OF_TRAINING,
        passage=as_stated("the noise scale increases as the loss decreases over a training run", "abstract"),
        statement=r"\mathbb{E} \log \frac{B_{\rm simple}(t)}{B_{\rm simple}(0)} \ge \log 2,\quad t = 120",
        says="Training more than doubles the simple noise scale of small perceptrons, at both of two widths.",
        score="growth",
        along="widths",
        kind=Kind.AT_LEAST,
        predict=lambda _: math.log(2),
        margin=0.2,
        margin_reason="a tenth of a decade decides nothing",
        pilot="sizes and rate, and the bound, below the factors of 2.8 and 3.7 of networks trained first",
        rivals={"tenfold": lambda _: math.log(10)},
        quantity="logarithm of the growth of the simple noise scale",
    ),
    Claim(
        id="noise_scale/width-at-one-loss",
        **OF_TRAINING,
        passage=as_stated(
            "depends on the model size primarily through improved model performance", "abstract"
        ),
        statement=r"\mathbb{E} \log \frac{B_{\rm simple}(4M)}{B_{\rm simple}(M)} = 0 \quad \text{where } L = 0.3",
        says="Perceptrons of one and of four times the width have the same simple noise scale where their losses are "
        "the same.",
        score="between",
        predict=lambda _: 0.0,
        margin=math.log(1.25),
        margin_reason="a quarter; less than a third of what the root of the width would give",
        pilot="sizes, rate and loss, and the margin: at first the ratios were 0.93 to 1.04",
        rivals={
            "in proportion to the width": lambda _: math.log(4),
            "as the root of the width": lambda _: math.log(2),
        },
        quantity="logarithm of the ratio of the simple noise scales",
        symbols={r"M": "width of the hidden layer", r"L": "loss"},
    ),
)
