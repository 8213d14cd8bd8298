"""Beyond the papers: the largest learning rate at which SGD is stable in the mean square, and steps at any rate."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.training import edges, lyapunov, optimisers, stacks
from theory import learning_rates
from theory.finite_size import wishart_edge
from verify.claims import Array
from verify.claims.adam_limit.scaling import CLAIMS as ADAM
from verify.claims.granziol2022.rates.rates import CLAIMS as RATES
from verify.claims.trained_networks import batches_of
from verify.judging.families import by_name, one, ratio
from verify.model import KNOWN, OURS, Arrays, ExactProperty, StatisticalProperty
from verify.model.domains import Between, Domain, Either, OneOf


class Rates(NamedTuple):
    """The exact limit of a population, and what bounds it or passes for it."""

    exact: float
    lower: float
    upper: float
    one_step: float
    full: float
    mean_top: float


def samples_of(rng: Generator, point: Point) -> Array:
    """Positive semidefinite samples of uneven size along uneven directions; the last heavy along the flattest one."""
    shape = (point.samples, point.dim, point.rank)
    factors = rng.standard_normal(shape) * np.exp(-point.decay * np.arange(point.dim))[:, None]
    factors = factors * np.exp(point.spread * rng.standard_normal((point.samples, 1, 1)))
    matrices = factors @ factors.swapaxes(1, 2)
    matrices[-1, -1, -1] += point.heavy
    return matrices


def rates(matrices: Array, batch_size: int) -> Rates:
    """All rates of one population at one batch size; the statistics are those that a network would give."""
    size = {"batch_size": batch_size, "dataset_size": len(matrices)}
    population = optimisers.population(matrices)
    directions = optimisers.trial_directions(population, top=3, heavy=5)
    square = optimisers.whitened_square(population, batch_size)
    forms = optimisers.form_moments(population, directions)
    bracket = learning_rates.mean_square_bracket(*forms, square=square, **size)
    top, vector = population.values[0], population.basis[:, 0]
    noise = (matrices @ vector).var(axis=0, ddof=1).sum()
    tops = np.linalg.eigvalsh(optimisers.all_batches(matrices, batch_size))[:, -1]
    return Rates(
        exact=optimisers.largest_stable_rate(population, batch_size).rate,
        lower=float(bracket.lower),
        upper=float(bracket.upper),
        one_step=float(learning_rates.mean_square_limit(top, noise=noise, **size)),
        full=float(learning_rates.stability_limit(top)),
        mean_top=2 / float(tops.mean()),
    )


def outside(rng: Generator, point: Point, *, low: str = "lower", high: str = "upper") -> float:
    """Relative distance of the limit from the interval of two rates; with one parameter, from both of them."""
    found = rates(samples_of(rng, point), point.batch_size)
    sides = getattr(found, low) / found.exact - 1, 1 - getattr(found, high) / found.exact
    return max(map(abs, sides)) if point.dim == 1 else max(0.0, *sides)


def wrong_growth(rng: Generator, point: Point, *, at: str = "exact") -> float:
    """Error of a rate said to keep the second moment, which must grow above it and decay below it.

    The moment is a mean over every possible batch. Directions without curvature stand still at any rate.
    """
    matrices = samples_of(rng, point)
    batches, rate = (
        optimisers.all_batches(matrices, point.batch_size),
        getattr(rates(matrices, point.batch_size), at),
    )
    still, above, below = (optimisers.moment_radius(batches, step * rate) for step in (1.0, 1.05, 0.95))
    return max(abs(still - 1), 1 - above, below - 1)


def off_the_curve(rng: Generator, point: Point, *, rule: str = "") -> float:
    """Violation of the law of limits over batch sizes: growing, at most linearly, above the curve through both ends.

    Also the distance by which the curve from one end misses the other.
    """
    matrices, count = samples_of(rng, point), point.samples
    found = np.array([rates(matrices, size).exact for size in range(1, count + 1)])
    sizes = np.arange(1, count + 1)
    inverse = 1 / sizes - 1 / count
    noise = (found[-1] / found[0] - 1) / inverse[0]
    crossover = noise / (1 + noise / count)
    curve = learning_rates.linear_then_flat(
        found[0], known=1, batch_size=sizes, crossover=crossover, dataset_size=count
    )
    if rule == "curve":
        return float(np.abs(found / curve - 1).max())
    if rule == "flat":
        return float(found[-1] / found[0] - 1)
    power = 0.5 if rule == "root" else 1.0
    steepest = (found[1:] / found[:-1]) * (inverse[1:] / inverse[:-1]) ** power
    return max(
        0.0,
        float((1 - found[1:] / found[:-1]).max()),
        float(steepest.max()) - 1,
        float((curve / found).max()) - 1,
        abs(float(curve[-1] / found[-1]) - 1),
    )


POPULATIONS: Domain = {
    "samples": Between(3, 6),
    "dim": Between(1, 4),
    "rank": Between(1, 3),
    "spread": Between(0.0, 2.0),
    "decay": Between(0.0, 0.9),
    "heavy": Either(OneOf(0.0), Between(0.0, 20.0)),
    "batch_size": Between(1, 3),
}


MULAYOFF = "Mulayoff and Michaeli (2024), arXiv 2306.07850"

EXAMPLES = (
    Point(samples=5, dim=3, rank=2, spread=0.7, decay=0.6, heavy=0.0, batch_size=1),
    Point(samples=6, dim=4, rank=1, spread=1.3, decay=0.4, heavy=0.0, batch_size=3),
    Point(samples=12, dim=3, rank=6, spread=0.05, decay=1.7, heavy=40.0, batch_size=1),
    Point(samples=9, dim=7, rank=8, spread=0.02, decay=0.01, heavy=0.0, batch_size=6),
)

_of_the_limit = partial(ExactProperty, entries=("D2",), domain=POPULATIONS)

PROPERTIES = (
    _of_the_limit(
        id="beyond/mean-square-limit",
        source=f"{MULAYOFF}, here as a largest Rayleigh quotient",
        statement=r"\alpha_{\rm ms} = 1/\rho,\ \rho = \max_M \frac{\mathbb{E}\,\mathrm{tr}\, M H_B M H_B}"
        r"{2\, \mathrm{tr}\, M^2 H}:\quad \text{second moments decay below it and grow above}",
        says="Over all batches, the second moment of the weights under SGD decays below the mean-square limit of the "
        "rate and grows above it.",
        passage=KNOWN,
        violation=wrong_growth,
        examples=EXAMPLES,
        tolerance=1e-8,
        tolerance_reason="rounding of the spectral radius of a matrix that is not symmetric",
        rivals={
            "2 / lambda_1": partial(wrong_growth, at="full"),
            "2 / E lambda_1(H_B)": partial(wrong_growth, at="mean_top"),
            "one step from v_1": partial(wrong_growth, at="one_step"),
            "lower side of the bracket": partial(wrong_growth, at="lower"),
            "upper side of the bracket": partial(wrong_growth, at="upper"),
        },
        seconds=0.065,
    ),
    _of_the_limit(
        id="beyond/mean-square-bracket",
        source=f"ours; the limit is that of {MULAYOFF}",
        statement=r"\frac{2}{\lambda_{\max}(H^{-1/2} \mathbb{E}[H_B^2] H^{-1/2})} \le \alpha_{\rm ms} \le "
        r"\min_{|u| = 1} \frac{2 u^\top H u}{(u^\top H u)^2 + \mathrm{Var}_i(u^\top H_i u)/b}\quad "
        r"(\text{equal for one parameter})",
        says="The mean-square limit of the rate lies between a bound from the mean squared batch Hessian and one "
        "from quadratic forms.",
        passage=OURS,
        violation=outside,
        examples=(*EXAMPLES, Point(samples=5, dim=1, rank=2, spread=0.7, decay=0.6, heavy=0.0, batch_size=3)),
        tolerance=1e-9,
        tolerance_reason="rounding of symmetric eigenvalue problems",
        rivals={
            "variance of H_i v_1 as an upper bound": partial(outside, high="one_step"),
            "variance of H_i v_1 as a lower bound": partial(outside, low="one_step"),
            "2 / lambda_1 is stable": partial(outside, low="full"),
            "2 / E lambda_1(H_B) is stable": partial(outside, low="mean_top"),
            "2 / E lambda_1(H_B) is an upper bound": partial(outside, high="mean_top"),
            "upper side attained": partial(outside, low="upper"),
        },
        seconds=0.051,
    ),
    _of_the_limit(
        id="beyond/linear-then-flat",
        source=f"ours; that the limit never falls with B is in {MULAYOFF}",
        statement=r"\alpha_{\rm ms}(b) \le \alpha_{\rm ms}(b') \le \tfrac{b'}{b} \alpha_{\rm ms}(b)\ (b < b'),\quad "
        r"\alpha_{\rm ms}(b) \ge \frac{2}{\lambda_1} \frac{1}{1 + b^*/b} \text{ through } B = 1",
        says="The mean-square limit never falls with the batch size, grows at most linearly, and stays above "
        "linear-then-flat through both ends.",
        passage=OURS,
        violation=off_the_curve,
        examples=EXAMPLES,
        tolerance=1e-8,
        tolerance_reason="rounding of symmetric eigenvalue problems",
        rivals={
            "square root of b": partial(off_the_curve, rule="root"),
            "flat": partial(off_the_curve, rule="flat"),
            "exactly on the curve": partial(off_the_curve, rule="curve"),
        },
        seconds=0.23,
    ),
)


GROWTH = by_name(RATES, "least-squares-growth")["least-squares-growth"]
SECOND_MOMENT = by_name(ADAM, "second-moment")["second-moment"]


def _sgd(block: Block, p: Point) -> Any:
    """Loss of distance at a multiple of the largest stable rate, and what else is 1 there."""
    return np.array([_descents(rng, p) for rng in block.streams])


def _descents(rng: Generator, p: Point) -> float:
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
    # the others have no scatter, so that small errors in them can be seen
    return float(1 + lost - known + 8 * (np.mean([still, *outside]) - 1))


def _exponent(block: Block, p: Point) -> Any:
    """One weight, so that a step on a sample multiplies its distance by what descent on that sample does."""
    import torch

    stack, steps = stacks.Perceptrons("relu", "squared error", bias=False), 3 * p.samples + 1
    x = 1 + 0.4 * block.normal(p.samples, 1).cpu().sigmoid()
    # to either side of the rate that ends on the spot, where the logarithm has no bottom
    rate = 0.3 * p.times if p.batch_size % 2 else 1.3 + p.times
    kernels = stack.output_kernels([torch.ones(len(block), 1, 1, dtype=x.dtype)], x)
    batches, rates = batches_of(block, p.samples, 1), torch.full((len(block), 1), rate, dtype=x.dtype)
    found = lyapunov.lyapunov_exponents(kernels, batches, rates=rates, steps=steps)[:, 0]
    squares = x[:, :, 0].square().numpy()
    factors = learning_rates.heavy_ball_contraction(rate, 0.0, largest=squares, smallest=squares)
    return 1 + found.numpy() - np.log(factors).mean(1)


def _largest(block: Block, p: Point) -> Any:
    """Largest Hessian eigenvalue of a linear output on Gaussian inputs, over the Wishart edge."""
    stack = stacks.Perceptrons("relu", "squared error", bias=False)
    dim, size = 10 + 10 * p.dim, 12 * p.samples
    x, y = block.normal(size, dim), block.normal(size, 1)
    found = edges.top_eigenvalues(stack, [x.new_zeros(len(block), 1, dim)], x, y, steps=dim)
    return found.values / float(wishart_edge(dim, size, variance=1.0).mean)


def _adam(block: Block, p: Point) -> Any:
    """Second moment of Adam's weight after the square-root rule, where noise dominates, over its prediction."""
    loss = {"start": 1.3, "curvature": 0.8, "noise": 31.0, "later_noise": 11.0}
    setting = {"rate": 0.021 * p.times, "momentum": 0.993, "second": 0.9985, "damping": 3.0}
    runs = {"growth": min(p.batch_size, 2), "paths": 256, "before": 12 * p.samples, "after": 96}
    return ratio(SECOND_MOMENT, block, Point(**loss, **setting, **runs))


CASES = {
    "least squares": lambda block, p: ratio(
        GROWTH,
        block,
        Point(dim=p.dim, batch_size=p.batch_size, rate=p.times / 3, steps=2, runs=48),
    ),
    "sgd": _sgd,
    "exponent": _exponent,
    "largest": _largest,
    "adam": _adam,
}


def any_rate(block: Block, point: Point) -> Arrays:
    """Return what descent does in one of the cases, over its prediction."""
    return {"ratio": CASES[point.case](block, point)}


def _example(case: str) -> Point:
    return Point(case=case, samples=7, dim=4, batch_size=3, times=0.7)


CLAIMS = (
    *PROPERTIES,
    StatisticalProperty(
        id="beyond/any-rate",
        entries=("D2", "granziol2022/B46"),
        source=f"ours; the limit of SGD is that of {MULAYOFF}",
        passage=OURS,
        statement=r"\text{a step of SGD from the moment that } \alpha_{\rm ms} \text{ keeps: } 1 - a/\alpha_{\rm ms};\ "
        r"\text{exponents, moments of Adam and largest eigenvalues as theory has them}",
        says="At any rate, batch size and population, steps of SGD and Adam, exponents and largest eigenvalues come "
        "out as in theory.",
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
